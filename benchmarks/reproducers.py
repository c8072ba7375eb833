"""Draw findings of a workspace with a seed, run each reproducer alone in a fresh process, and print what each showed.

`python benchmarks/reproducers.py WORKSPACE [--seed 1] [--count 20]` prints the table of docs/reproducers.md.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

from opera.store.workspace import Workspace
from opera.triage.reproducers import scripts


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("workspace", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20)
    options = parser.parse_args()
    with Workspace.open(options.workspace, write=True) as opened:
        found = scripts.members(opened)
        drawn = random.Random(options.seed).sample(sorted(found), min(options.count, len(found)))
        print(f"{len(drawn)} of {len(found)} findings, seed {options.seed}\n")
        print("| finding | frontend | stage | symptom | operator or converter | members | outcome | said |")
        print("|---|---|---|---|---|---|---|---|")
        held = 0
        for name in drawn:
            verdicts = found[name]
            first = verdicts[0]
            path = scripts.write(opened, name, verdicts)
            trial = scripts.verify(path, name) if path else None
            shown = trial is not None and trial.shown
            held += shown
            outcome = "fails, as found" if shown else f"exit {trial.code}" if trial else "no script"
            told = trial.text.strip().splitlines() if trial else []
            said = next((line for line in told if "failure is there" in line), told[-1] if told else "")
            print(
                f"| {name} | {first.frontend} | {first.stage} | {first.symptom} | {first.conversion_function}"
                f" | {len(verdicts)} | {outcome} | {said[:90].replace('|', '/')} |",
                flush=True,
            )
    print(f"\n{held} of {len(drawn)} fail alone in a fresh process.")


if __name__ == "__main__":
    main()
