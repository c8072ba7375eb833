"""Two wrong answers are one within what is tolerated."""

from __future__ import annotations

from typing import Any

import pytest

from opera.programs.verdicts import ABORT, INCONSISTENT, Outcome
from opera.triage.alike import alike, same_answer


def wrong(actual: Any, **more: Any) -> Outcome:
    details = {"output": "y", "index": "[0]", "differing": 1, "elements": 1, "rtol": 1e-4, "atol": 1e-5, **more}
    return Outcome(INCONSISTENT, "infer", "value", "wrong", details={"actual": actual, **details})


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (wrong(-0.9999998807907104), wrong(-1.0), True),  # LpNormalization, with an epsilon and without
        (wrong(float("nan")), wrong(float("nan")), True),
        (wrong(-0.99), wrong(-1.0), False),
        (wrong(-1.0), wrong(-1.0, index="[1]"), False),
        (wrong("int64"), wrong("int64"), True),
        (wrong("int64"), wrong("int32"), False),
        (wrong(1), wrong(1.0), True),
    ],
)
def test_one_wrong_answer_is_the_same_within_what_is_tolerated(one: Outcome, other: Outcome, same: bool) -> None:
    assert same_answer(one, other) is same


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (("oracle", "SIGABRT", "double free or corruption (out)"), ("oracle", "SIGSEGV", ""), True),
        (("oracle", "SIGABRT", "free(): invalid pointer"), ("infer", "SIGSEGV", ""), True),
        (("infer", "SIGABRT", "terminate called"), ("infer", "SIGSEGV", ""), False),
        (("infer", "SIGFPE", ""), ("infer", "SIGSEGV", ""), False),
        (("load", "SIGSEGV", ""), ("infer", "SIGSEGV", ""), False),  # an importer's stack, and a kernel
    ],
)
def test_memory_that_is_overwritten_is_one_failure_whoever_notices(one: Any, other: Any, same: bool) -> None:
    """OpenVINO's strings: "from the file's bytes it fails otherwise" was another signal for the same."""
    outcomes = [Outcome(ABORT, *x) for x in (one, other)]
    assert alike(*outcomes) is same
