"""The engine of all sources: what was done before is passed over, what units capture is stored, and progress is told."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import msgspec

from opera.programs.program import Captured
from opera.sources import DONE, Extraction, Finished, Totals, Unit, UnitReport
from opera.sources.dispatch import Dispatcher, Open, local
from opera.store.workspace import Workspace

LINE_SECONDS = 2.0
STATED = ("source", "reason", "tests", "failed", "calls", "left_out", "seconds", "captured", "new", "damaged")
"""What a workspace holds of each report."""


def run(
    workspace: Workspace, extractions: Iterable[Extraction], *, workers: int, rerun: bool = False, open: Open = local
) -> bool:
    """Run extractions one after the other; False where nothing came of any.

    Args:
        workspace: Open for writing.
        extractions: Each is asked for when the one before has ended.
        workers: Child processes at a time.
        rerun: Begin anew; else what an interrupted extraction of the same key finished is passed over.
        open: Opens the pool that the children are workers of.
    """
    came = [extract(workspace, extraction, workers=workers, rerun=rerun, open=open) for extraction in extractions]
    return any(came)


def extract(
    workspace: Workspace, extraction: Extraction, *, workers: int, rerun: bool = False, open: Open = local
) -> bool:
    """Run one extraction and print its summary; False where nothing came of it, now or before."""
    started = last = time.monotonic()
    if rerun:
        workspace.forget_extraction(extraction.key)
    done = workspace.extraction(extraction.key, extraction.about)
    if passed := sum(name in done for name in extraction.names()):
        print(f"{passed} {extraction.things} were done before; --rerun runs them again", file=sys.stderr)
    totals = Totals()
    with Dispatcher(extraction.units(), workers=workers, done=done, open=open) as running:
        earlier: UnitReport | None = None
        for unit, found in running:
            report = store(workspace, found, extraction.insert, running.meanwhile)
            report = report.after(earlier) if earlier is not None else report
            further = extraction.told(unit, report)
            if isinstance(further, Unit):
                earlier = report
                running.go_on(further)
                continue
            earlier = None
            finish(workspace, extraction.key, further)
            _count(totals, further.report)
            if time.monotonic() - last > LINE_SECONDS:
                last = time.monotonic()
                print(f"{extraction.progress(totals)}; {unit.title or unit.file}", file=sys.stderr, flush=True)
    totals.seconds = time.monotonic() - started
    return extraction.tell(totals) or bool(done)


def store(
    workspace: Workspace,
    report: UnitReport,
    insert: Callable[[Workspace, Iterable[Captured]], int],
    meanwhile: Callable[[Iterator[Captured]], Iterator[Captured]] = iter,
) -> UnitReport:
    """Store what a unit captured, and return its report with what that was.

    That the unit is done is stored after it (`finish`): in this order nothing is lost by a kill in between.
    """
    lines = Counter[bool]()
    new = insert(workspace, meanwhile(report.records(lines)))
    return msgspec.structs.replace(report, captured=lines[True], new=new, damaged=lines[False])


def finish(workspace: Workspace, key: str, unit: Finished) -> None:
    """Store how a unit went."""
    report = unit.report
    document = {name: getattr(report, name) for name in STATED} | unit.document
    workspace.save_extraction_file(
        key, report.file, report.status, document,
        instead_of=unit.replaces, crashes=unit.crashes, candidates=unit.candidates,
    )  # fmt: skip


def _count(totals: Totals, report: UnitReport) -> None:
    totals.units += 1
    for name in ("tests", "calls", "captured", "new"):
        setattr(totals, name, getattr(totals, name) + getattr(report, name))
    totals.left_out.update(report.left_out)
    if report.status != DONE:
        totals.trouble.append(report)
