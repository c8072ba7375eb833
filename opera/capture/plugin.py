"""The pytest plugin that tells the recorder which test runs, and remembers what could not be collected."""

from __future__ import annotations

import functools
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any
from unittest.mock import MagicMock

import pytest
from _pytest.outcomes import Skipped

from opera.capture.recorder import Recorder, replace


class Stop(Skipped):
    """What comes next is of no interest to capture: the test goes on where its suite declares so, or ends as skipped."""


class Plugin:
    """Handed to `pytest.main`.

    Attributes:
        resume: Functions of test modules that return something harmless where anything in them stops.
        outcomes: `passed`, `failed`, `skipped` → tests.
        problems: Why the file, or a part of it, was not collected.
    """

    def __init__(
        self, recorder: Recorder, stop: Iterable[str] = (), resume: Iterable[str] = (), inert: Iterable[str] = ()
    ) -> None:
        self.recorder, self.resume = recorder, tuple(resume)
        for points, make in ((stop, _stopping), (inert, _inert)):
            for point in points:
                with suppress(ImportError, AttributeError):  # other versions have other names: then it is run
                    replace(point, make)
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

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Look at what the module built while it was imported, and make its helpers go on after a stop."""
        for module in {item.module for item in session.items if isinstance(item, pytest.Function)}:
            for name in self.resume:
                if hasattr(module, name):
                    setattr(module, name, _resuming(getattr(module, name)))
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

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Iterator[None]:
        """Watch the test itself, not its fixtures."""
        with self.recorder.watching():
            return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count outcomes; an error in set-up counts as a failure."""
        if report.when == "call" or report.outcome != "passed":
            self.outcomes[report.outcome] += 1


def _stopping(original: Callable[..., Any]) -> Callable[..., Any]:
    def stop(*args: Any, **kwargs: Any) -> Any:
        raise Stop(f"opera does not run {original.__name__}")

    return stop


def _inert(original: Callable[..., Any]) -> Callable[..., Any]:
    return MagicMock()


def _resuming(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def resume(*args: Any, **kwargs: Any) -> Any:
        try:
            return original(*args, **kwargs)
        except Stop:
            return MagicMock()

    return resume
