"""Extract a target into a workspace, file by file, and say how it went."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Mapping

from opera.sources.suites import suites
from opera.sources.suites.suites import FileReport, Target
from opera.store.workspace import Workspace

DONE = "done"
SHOWN = 12
"""Files in trouble that are listed on the terminal; the report lists all."""
LINE_SECONDS = 2.0


def recognised(target: str, equipped: str) -> Target:
    """Return what the target is; SourceError where it cannot be extracted from, or not in that role."""
    found = suites.recognise(target)
    suites.check_role(found, equipped or None)
    return found


def extract(
    workspace: Workspace, target: Target, *, equipped: str, workers: int, timeout: float | None, rerun: bool
) -> bool:
    """Run the target's suites, store what they yield, and print a summary; False if no file could be run.

    Files that an interrupted extraction of the same target finished are passed over.
    """
    started = time.monotonic()
    key = f"{target.key} equipped {equipped}" if equipped else target.key
    if rerun:
        workspace.forget_extraction(key)
    told = {"target": str(target.root), "name": target.name, "version": target.version, "installed": target.installed}
    done = workspace.extraction(key, told | {"equipped": equipped})
    where = f"checkout {target.version}, " if target.checkout else ""
    print(f"{target.name}: {where}tests run against the installed {target.installed}", file=sys.stderr)
    if target.version != "unknown" and _series(target.version) != _series(target.installed):
        hint = "names that one of the two lacks cost whole files; a checkout of the installed version loses fewest"
        print(f"{target.version} on {target.installed}: {hint}", file=sys.stderr)
    if done:
        print(f"{len(done)} files were done before; --rerun runs them again", file=sys.stderr)
    totals: Counter[str] = Counter()
    left_out: Counter[str] = Counter()
    trouble: list[FileReport] = []
    progress = _Progress()
    for report in suites.extract(target, workers=workers, equipped=equipped or None, done=done, timeout=timeout):
        new, captured = store(workspace, key, report, equipped)
        totals.update(files=1, tests=report.tests, calls=report.calls, captured=captured, new=new)
        left_out.update(report.left_out)
        if report.status != DONE:
            trouble.append(report)
        progress.step(report, totals)
    _tell(totals, left_out, trouble, equipped, time.monotonic() - started)
    return bool(done) or not totals["files"] or len(trouble) < totals["files"]


def _series(version: str) -> str:
    """The release that a version belongs to: 2.13 of 2.13.0+cpu."""
    return ".".join(version.split("+")[0].split(".")[:2])


def store(workspace: Workspace, key: str, report: FileReport, equipped: str) -> tuple[int, int]:
    """Store one file's instances, then that the file is done: in this order nothing is lost by a kill in between.

    Returns how many are new, and how many there are.
    """
    lines = Counter[bool]()
    new = workspace.add_captured(report.records(lines), equipped=equipped)
    document = {
        name: getattr(report, name) for name in ("source", "reason", "tests", "failed", "calls", "left_out", "seconds")
    }
    counts = {"captured": lines[True], "new": new, "damaged": lines[False]}
    workspace.save_extraction_file(key, report.file, report.status, document | counts)
    return new, lines[True]


class _Progress:
    """A line now and then on standard error."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def step(self, report: FileReport, totals: Counter[str]) -> None:
        now = time.monotonic()
        if now - self._last < LINE_SECONDS:
            return
        self._last = now
        print(f"{totals['files']} files, {totals['captured']} instances; {report.file}", file=sys.stderr, flush=True)


def _tell(
    totals: Counter[str], left_out: Counter[str], trouble: list[FileReport], equipped: str, seconds: float
) -> None:
    what = f"equipped instances of {equipped}" if equipped else "instances"
    print(
        f"{totals['files']} files, {totals['tests']} tests, {totals['captured']} captured:"
        f" {totals['new']} new {what}, {seconds:.0f} s"
    )
    if left_out:
        print(left_out_line(left_out))
    if trouble:
        print(f"{len(trouble)} files did not run to their end:")
        for report in trouble[:SHOWN]:
            print(f"  {report.file}: {report.status}: {' '.join(report.reason.split())[:160]}")
        if len(trouble) > SHOWN:
            print(f"  and {len(trouble) - SHOWN} more; `opera report` lists them all")


def left_out_line(left_out: Mapping[str, int]) -> str:
    """Return what was seen and not recorded, most frequent first."""
    return "left out: " + ", ".join(f"{count} {category}" for category, count in Counter(left_out).most_common())
