"""Two wrong answers are one within what is tolerated."""

from __future__ import annotations

from typing import Any

import pytest

from opera.programs.verdicts import INCONSISTENT, Outcome
from opera.triage.alike import same_answer


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
