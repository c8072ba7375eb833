"""Failures that need earlier tests in the same process: replay them, and find the few predecessors that matter."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from opera import migrated
from opera.execute.pool import DONE, Pool, Result
from opera.execute.records import MARK, Job, Limits
from opera.execute.run import compiler_group, outcome_of

SECONDS = 60.0
"""Time after which a reduction ends with what it has."""


class Sequel(msgspec.Struct, frozen=True):
    """A test that fails after others, and how. The others run through the frontend's first variant (`first_artefact`)."""

    compiler: str
    library: str
    variant: str
    artefact: str
    first_artefact: str
    test: str
    verdict: str
    stage: str
    symptom: str


def still_fails(tests: Path, sequel: Sequel, before: tuple[str, ...], limits: Limits) -> bool:
    """Run `before` and then the test in one fresh process; tell whether the test fails as it did.

    `tests` is a workspace's folder of tests.
    """
    jobs = [_job(tests, sequel, test, sequel.first_artefact) for test in before]
    jobs.append(_job(tests, sequel, sequel.test, sequel.artefact))
    group = compiler_group(sequel.compiler, sequel.library)
    with Pool({"replay": group}, workers=1) as pool:
        call = "opera.execute.worker:replay"
        pool.submit("replay", jobs, seconds=limits.seconds * 10, memory=limits.memory, fresh=True, call=call)
        result = next(iter(pool.results()))
    outcome = outcome_of(result)
    same = (outcome.verdict, outcome.stage, outcome.symptom) == (sequel.verdict, sequel.stage, sequel.symptom)
    return same and (result.status == DONE or _last_mark(result) == sequel.test)


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


def _job(tests: Path, sequel: Sequel, test: str, artefact: str) -> Job:
    directory = migrated.folder(tests, test).absolute()
    return Job(test, sequel.compiler, sequel.library, sequel.variant, artefact, str(directory))


def _last_mark(result: Result) -> str:
    marks = [line for line in result.log.splitlines() if line.startswith(MARK)]
    return marks[-1].removeprefix(MARK) if marks else ""
