"""No test may fail because the machine does something else meanwhile: none looks at the clock for an upper bound."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

CLOCK = r"time\.(?:monotonic|perf_counter|time)\(\)"
TOO_LATE = re.compile(rf"assert {CLOCK}[^<>]*<|\.(?:wait|communicate)\((?:timeout=)?\d|\btimeout=\d{{2,3}}[,)]")
"""An assertion on how long something took, or a process that is not waited for to its end."""


def test_no_test_looks_at_the_clock_for_an_upper_bound() -> None:
    """CPU time is not the clock's; a lower bound is never too late."""
    here = Path(__file__)
    lines = [
        f"{path.name}: {line.strip()}"
        for path in sorted(here.parent.rglob("*.py"))
        if path != here
        for line in path.read_text().splitlines()
        if TOO_LATE.search(line)
    ]
    assert lines == []


def test_neither_does_hypothesis(request: pytest.FixtureRequest) -> None:
    assert settings().deadline is None and HealthCheck.too_slow in settings().suppress_health_check
    assert float(request.config.getini("timeout")) >= 1200, "the last resort against a test that hangs"
