"""The pytest plugin that tells the recorder which test runs, and remembers what could not be collected."""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Iterator

import pytest

from opera.capture.recorder import Recorder


class Plugin:
    """Handed to `pytest.main`.

    Attributes:
        outcomes: `passed`, `failed`, `skipped` → tests.
        problems: Why the file, or a part of it, was not collected.
    """

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.outcomes: Counter[str] = Counter()
        self.problems: list[str] = []
        recorder.test = "<module>"

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep why a module cannot be imported, or skips itself."""
        if report.failed:
            lines = [line.strip() for line in report.longreprtext.splitlines() if line.strip()]
            errors = [line.removeprefix("E").strip() for line in lines if line.startswith("E ")]
            self.problems.append((errors or lines or ["unknown"])[-1][:500])
        elif report.skipped:
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
            self.problems.append(str(reason)[:500])

    def pytest_collection_finish(self) -> None:
        """Look at what the module built while it was imported."""
        self.recorder.flush()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Name the test, and seed the global generators so that two extractions see the same values."""
        self.recorder.test = item.nodeid.partition("::")[2] or item.name
        random.seed(0)
        if "numpy" in sys.modules:
            sys.modules["numpy"].random.seed(0)
        try:
            return (yield)
        finally:
            self.recorder.flush()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count outcomes; an error in set-up counts as a failure."""
        if report.when == "call" or report.outcome != "passed":
            self.outcomes[report.outcome] += 1
