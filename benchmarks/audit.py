"""Draw findings, screened and unsupported verdicts of a workspace with a seed, and lay them out to be judged by a person.

`python benchmarks/audit.py WORKSPACE OUT [--library onnx] [--findings 50] [--screened 40] [--unsupported 40] [--seed 1]`
writes a numbered file for each: what `opera show` says; of a finding its script too, and what that did in a fresh process
(not with `--unrun`). `table.md` has a line for each, whose last two columns are to be filled in, as docs/audit.md says.
"""

from __future__ import annotations

import argparse
import io
import random
from collections.abc import Iterable
from contextlib import redirect_stdout
from pathlib import Path

from opera.programs.verdicts import SCREENED, UNSUPPORTED
from opera.report import show
from opera.report.words import clean, one_line
from opera.store import tests, verdicts
from opera.store.rows import Verdict
from opera.store.workspace import Workspace
from opera.triage.findings import findings
from opera.triage.reproducers import scripts

Row = tuple[str, ...]


def main() -> None:
    """Write the files and the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("workspace", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--library", default="onnx")
    parser.add_argument("--findings", type=int, default=50)
    parser.add_argument("--screened", type=int, default=40)
    parser.add_argument("--unsupported", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--unrun", action="store_true", help="write scripts, but do not run them")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    with Workspace.open(options.workspace, write=False) as opened:
        of_library = {x.id for x in findings(opened) if x.frontend.endswith(f"-{options.library}")}
        chosen = random.Random(options.seed).sample(sorted(of_library), min(options.findings, len(of_library)))
        rows = [
            _finding(opened, options.out, place, name, run=not options.unrun) for place, name in enumerate(chosen, 1)
        ]
        for kind, count in ((SCREENED, options.screened), (UNSUPPORTED, options.unsupported)):
            known = _of_library(verdicts.of_kind(opened, kind), options.library)
            drawn = random.Random(options.seed).sample(known, min(count, len(known)))
            rows += [_verdict(opened, options.out, place, kind, x) for place, x in enumerate(drawn, 1)]
    heads = ("file", "id", "frontend", "operator", "what", "class", "reason")
    lines = [heads, tuple("---" for _ in heads), *((*row, "", "") for row in rows)]
    (options.out / "table.md").write_text("".join(f"| {' | '.join(line)} |\n" for line in lines), encoding="utf-8")
    print(f"{len(rows)} to be judged: {options.out / 'table.md'}")


def _of_library(found: Iterable[Verdict], library: str) -> list[Verdict]:
    told = [x for x in found if x.frontend.endswith(f"-{library}")]
    return sorted(told, key=lambda x: (x.test, x.frontend, x.variant))


def _finding(workspace: Workspace, out: Path, place: int, name: str, *, run: bool) -> Row:
    members = scripts.members(workspace, [name])[name]
    script = scripts.write(workspace, name, members, out / f"finding-{place:02}.py")
    trial = scripts.verify(script, name) if script and run else None
    text = _shown(workspace, name)
    told = (
        f"\n\n# the script: exit {trial.code}\n{trial.text}\n"
        if trial
        else f"\n\n# {'not run' if script else 'no script'}\n"
    )
    (out / f"finding-{place:02}.txt").write_text(text + told, encoding="utf-8")
    first = members[0]
    operator = workspace.instance(_instance(workspace, first.test)).operator
    return f"finding-{place:02}", name, first.frontend, clean(operator), _cell(first)


def _verdict(workspace: Workspace, out: Path, place: int, kind: str, x: Verdict) -> Row:
    (out / f"{kind}-{place:02}.txt").write_text(_shown(workspace, x.test), encoding="utf-8")
    operator = workspace.instance(_instance(workspace, x.test)).operator
    return f"{kind}-{place:02}", x.test, f"{x.frontend} {x.variant}", clean(operator), _cell(x)


def _instance(workspace: Workspace, test: str) -> str:
    return tests.test(workspace, test).instance


def _cell(x: Verdict) -> str:
    reason = x.outcome.details.get("screen", "")
    return one_line(f"{x.outcome.verdict} {reason} {x.outcome.message}", 120).replace("|", "/")


def _shown(workspace: Workspace, name: str) -> str:
    with redirect_stdout(io.StringIO()) as text:
        show.show(workspace, name, details=True)
    return text.getvalue()


if __name__ == "__main__":
    main()
