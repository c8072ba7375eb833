"""What the pool's result of a job says of the test that it ran."""

from __future__ import annotations

import re

from opera.pool.workers import ABORT, DONE, OUT_OF_MEMORY, STARVED, TIMEOUT, Result
from opera.programs.verdicts import AGAIN, ERROR, Outcome

WARNING = re.compile(r"^\S[^\n:]*:\d+: \w*Warning: .*(?:\n|\Z)(?:[ \t]+(?![@#]|File )\S.*(?:\n|\Z))?", re.MULTILINE)
"""What Python warns of, and the line of source that it shows with that: of what ended a process it tells nothing."""


def outcome_of(result: Result) -> Outcome:
    """Return what a result shows of a test: the worker's own word, or what became of the worker."""
    if result.status == DONE:
        outcome: Outcome = result.decode(Outcome)
        return outcome
    stage = result.note or "load"
    seconds = {stage: result.seconds}
    if result.status == ABORT:
        return Outcome(ABORT, stage, result.exit, WARNING.sub("", result.log), seconds=seconds)
    if result.status in (TIMEOUT, OUT_OF_MEMORY):
        return Outcome(result.status, stage, result.status, result.log, seconds=seconds)
    if result.status == STARVED:
        text = f"the machine did not serve it: given up after {result.seconds:.0f} s; the next run tries again"
        return Outcome(ERROR, stage, STARVED, text, seconds=seconds, details={AGAIN: True})
    return Outcome(ERROR, stage, "opera", result.message[-4000:], seconds=seconds)


def reached(result: Result, name: str) -> bool:
    """Whether a replay came to the job of that name, or a predecessor ended it before."""
    return result.status == DONE or result.mark == name
