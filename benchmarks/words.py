"""The words of compilers, all crashes and refusals of workspaces in groups: `python benchmarks/words.py WORKSPACE ...`.

A group is a frontend, a verdict, a stage and the first line that tells something, normalised as in signatures. Each is printed
with its count, its operators and an example, most frequent first, as Markdown rows; the last line says how many verdicts were
read. docs/refusals.md was decided on what it prints.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from pathlib import Path

from opera.oracle.signature import normalise
from opera.programs.verdicts import CRASH, ERROR, REFUSED, UNSUPPORTED
from opera.store import tests
from opera.store.workspace import Workspace

KINDS = (CRASH, UNSUPPORTED, REFUSED, ERROR)
SHOWN = 4


def main() -> None:
    """Print the groups of all workspaces together."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workspaces", nargs="+", type=Path)
    parser.add_argument("--verdict", choices=KINDS, action="append", help="only these verdicts")
    parser.add_argument("--frontend", default="", help="only this frontend")
    parser.add_argument("--width", type=int, default=200, help="characters of an example")
    given = parser.parse_args()
    counts: Counter[tuple[str, ...]] = Counter()
    operators: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    example: dict[tuple[str, ...], str] = {}
    total: Counter[str] = Counter()
    for folder in given.workspaces:
        with Workspace.open(folder, write=False) as workspace:
            named = {test: origin.operator for test, origin in tests.origins(workspace).items()}
            for row in workspace.stream("SELECT verdict, COUNT(*) FROM verdicts GROUP BY verdict"):
                total[str(row[0])] += int(row[1])
            chosen = tuple(given.verdict or KINDS)
            marks = ", ".join("?" * len(chosen))
            where = f"verdict IN ({marks}) AND (? = '' OR frontend = ?)"
            for verdict in workspace.verdicts(where, (*chosen, given.frontend, given.frontend), seen=True):
                outcome = verdict.outcome
                raw = outcome.seen.raised[0].text if outcome.seen and outcome.seen.raised else outcome.message
                reason = "" if outcome.verdict == CRASH else normalise(outcome.message)
                key = (verdict.frontend, outcome.verdict, outcome.stage, outcome.symptom, reason, normalise(raw))
                counts[key] += 1
                operators[key][named.get(verdict.test, "?")] += 1
                example.setdefault(key, raw)
    for key, count in counts.most_common():
        frontend, kind, stage, symptom, reason, _ = key
        called = operators[key]
        names = ", ".join(name for name, _ in called.most_common(SHOWN)) + (", ..." if len(called) > SHOWN else "")
        text = " ⏎ ".join(line.strip() for line in example[key].splitlines() if line.strip())
        text = text if len(text) <= given.width else f"{text[: given.width // 2]} … {text[-given.width // 2 :]}"
        cells = (str(count), frontend, kind, f"{stage} {symptom}", reason, f"{len(called)}: {names}", text)
        print("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    print(f"\n{total.total()} verdicts ({', '.join(f'{n} {v}' for v, n in total.most_common())}), {len(counts)} groups")


if __name__ == "__main__":
    main()
