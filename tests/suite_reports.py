"""Run the suites of a target without a workspace: how each file went, what it captured still unread."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

from opera.sources import UnitReport
from opera.sources.dispatch import Dispatcher
from opera.sources.suites.extract import SuiteExtraction
from opera.sources.suites.suites import Target


def reports(
    target: Target, *, workers: int = 2, done: Collection[str] = (), timeout: float | None = None
) -> Iterator[UnitReport]:
    """Yield reports in order; their spools are removed when the iteration goes on."""
    extraction = SuiteExtraction(target, timeout=timeout)
    with Dispatcher(extraction.units(), workers=workers, done=done) as running:
        for _, report in running:
            yield report


def damaged(report: UnitReport) -> int:
    """Return how many lines of a spool cannot be read."""
    lines = Counter[bool]()
    for _ in report.records(lines):
        pass
    return lines[False]
