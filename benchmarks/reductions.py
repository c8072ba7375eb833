"""How small do findings become? Prints the table of docs/reduction.md of workspaces whose findings were reduced.

opera reduce all --workspace results && python benchmarks/reductions.py results
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable
from pathlib import Path
from statistics import median

from opera.programs.program import Program
from opera.store import tests
from opera.store.workspace import REPRODUCERS, Workspace
from opera.triage import reduction
from opera.triage.reduction import Reduction
from opera.triage.reproducers import scripts
from opera.triage.shrink import smaller

PACKED = "unpack("
"""What a script says where a tensor is given as compressed bytes."""


def main() -> None:
    """Print a line a figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workspaces", type=Path, nargs="+")
    given = parser.parse_args()
    found: list[Reduction] = []
    before: list[Program] = []
    plain = written = findings = 0
    for root in given.workspaces:
        with Workspace.open(root, write=False) as workspace:
            findings += len(scripts.members(workspace))
            here = reduction.stored(workspace)
            found += here
            before += [workspace.instance(tests.test(workspace, x.test).instance) for x in here]
            texts = [root / REPRODUCERS / f"{x.finding}.py" for x in here]
            texts = [path for path in texts if path.is_file()]
            written += len(texts)
            plain += sum(not _packed(path.read_text()) for path in texts)
    rows = [
        ("findings", findings, ""),
        ("reduced", len(found), ""),
        ("searches that ended by themselves", sum(x.finished for x in found), ""),
        ("elements of all tensors before", *_middle(smaller.elements(x) for x in before)),
        ("elements of all tensors", *_middle(x.elements for x in found)),
        ("parameters that are not the default's", *_middle(x.nondefault for x in found)),
        ("programs asked about", *_middle(x.asked for x in found)),
        ("seconds", *_middle(x.seconds for x in found)),
    ]
    print("| | median | nine of ten | most |\n|---|---|---|---|")
    for name, *numbers in rows:
        print(f"| {name} | {' | '.join(map(str, numbers))} |" + ("" if len(numbers) > 2 else " |"))
    print(f"\n{plain} of {written} scripts hold no compressed tensor")


def _packed(text: str) -> bool:
    return any(PACKED in line and not line.lstrip().startswith("def ") for line in text.splitlines())


def _middle(numbers: Iterable[float]) -> tuple[object, object, object]:
    """Return median, ninth decile and the largest."""
    ordered = sorted(numbers)
    return (median(ordered), ordered[math.ceil(0.9 * len(ordered)) - 1], ordered[-1]) if ordered else ("", "", "")


if __name__ == "__main__":
    main()
