"""Failures that need earlier tests in the same process: replay them, and find the few predecessors that matter."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from opera import compilers
from opera.programs.verdicts import Limits, Outcome
from opera.run.aftermath import fails_alike
from opera.run.probe import Probe, Question

SECONDS = 60.0
"""Time after which a reduction ends with what it has."""


class Sequel(msgspec.Struct, frozen=True):
    """A test that fails after others, and how: `name` is its `test/variant`, `python` the interpreter, if not this one.

    `chosen` are (name, value) of the compiler's settings.
    """

    compiler: str
    library: str
    name: str
    verdict: str
    stage: str
    symptom: str
    python: str = ""
    chosen: tuple[tuple[str, str], ...] = ()


def still_fails(tests: Path, sequel: Sequel, before: tuple[str, ...], limits: Limits) -> bool:
    """As `fails`, of a script that knows its workspace's folder of tests alone."""
    given = dict(sequel.chosen)
    with Probe(
        tests.parent, interpreter=lambda _: sequel.python, chosen=lambda _: given, limits=limits, workers=1
    ) as probe:
        return fails(probe, sequel, before)


def fails(probe: Probe, sequel: Sequel, before: tuple[str, ...], environment: str = "") -> bool:
    """Run `before` and then the test in one fresh process; tell whether the test fails as it did.

    `before` are names as that of the sequel. A name without a variant, as earlier versions of opera stored them, stands for
    the first.
    """
    test, _, variant = sequel.name.partition("/")
    asked = Question(
        frontend=compilers.frontend_name(sequel.compiler, sequel.library), test=test, variant=variant,
        environment=environment, after=before,
    )  # fmt: skip
    as_it_did = Outcome(sequel.verdict, sequel.stage, sequel.symptom)
    return any(x.reached and fails_alike(x.outcome, as_it_did) for x in probe.ask([asked]))


def reduce(
    before: tuple[str, ...], fails: Callable[[tuple[str, ...]], bool], seconds: float = SECONDS
) -> tuple[str, ...]:
    """Return a part of `before` after which the test still fails, by delta debugging within `seconds`.

    ddmin of Zeller and Hildebrandt, Simplifying and Isolating Failure-Inducing Input (TSE 2002), complements only.
    """
    end, parts = time.monotonic() + seconds, 2
    while len(before) > 1:
        size = -(-len(before) // parts)
        for start in range(0, len(before), size):
            rest = before[:start] + before[start + size :]
            if time.monotonic() > end:
                return before
            if fails(rest):
                before, parts = rest, max(parts - 1, 2)
                break
        else:
            if size == 1:
                return before
            parts = min(parts * 2, len(before))
    return before
