"""Failures that need earlier tests in the same process: replay them, and find the few predecessors that matter."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from opera import compilers
from opera.pool.pool import Pool
from opera.programs import migrated
from opera.programs.verdicts import Job, Limits
from opera.run.groups import compiler_group
from opera.run.outcomes import outcome_of, reached

SECONDS = 60.0
"""Time after which a reduction ends with what it has."""


class Sequel(msgspec.Struct, frozen=True):
    """A test that fails after others, and how: `name` is its `test/variant`, `python` the interpreter, if not this one."""

    compiler: str
    library: str
    name: str
    verdict: str
    stage: str
    symptom: str
    python: str = ""


def still_fails(tests: Path, sequel: Sequel, before: tuple[str, ...], limits: Limits) -> bool:
    """Run `before` and then the test in one fresh process; tell whether the test fails as it did.

    `tests` is a workspace's folder of tests; `before` are names as that of the sequel. A name without a variant, as earlier
    versions of opera stored them, stands for the first.
    """
    jobs = [_job(tests, sequel, name) for name in (*before, sequel.name)]
    group = compiler_group(sequel.compiler, sequel.library, sequel.python)
    with Pool({"replay": group}, workers=1) as pool:
        call = "opera.run.worker:replay"
        pool.submit("replay", jobs, seconds=limits.seconds * 10, memory=limits.memory, fresh=True, call=call)
        result = next(iter(pool.results()))
    outcome = outcome_of(result)
    same = (outcome.verdict, outcome.stage, outcome.symptom) == (sequel.verdict, sequel.stage, sequel.symptom)
    return same and reached(result, jobs[-1].name)


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


def _job(tests: Path, sequel: Sequel, name: str) -> Job:
    test, _, variant = name.partition("/")
    variants = compilers.frontend(sequel.compiler, sequel.library).VARIANTS
    route = next((x for x in variants if x.name == variant), variants[0])
    directory = migrated.folder(tests, test).absolute()
    return Job(test, sequel.compiler, sequel.library, route.name, route.artefact, str(directory))
