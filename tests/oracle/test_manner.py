"""What is said of wrong outputs, and what a smaller program keeps of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opera.oracle import manner
from opera.programs.values import Tensor


def words(want: Any, got: Any, *inputs: Any, dtype: str = "f4") -> list[str]:
    expected, actual = (Tensor.of(np.array(x, dtype)) for x in (want, got))
    given = [Tensor.of(np.array(x, dtype)) for x in inputs]
    return manner.manner(("y",), [expected], [actual], given, None, None)["y"]


@pytest.mark.parametrize(
    ("want", "got", "said"),
    [
        ([1, 2], [1, 2], ["right"]),
        ([1, 1], [1, 1], ["right", "uniform"]),
        ([1, 2, 3, 4], [1, 7, 3, 9], ["wrong", "some", "finite>finite", "permuted?", "offset?"]),
        ([1, 2, 3, 4], [0, 0, 0, 0], ["wrong", "all", "finite>zero", "zero", "constant"]),
        ([1, 2, 3, 5], [2, 3, 4, 6], ["wrong", "all", "finite>finite", "offset"]),
        ([1, 2, 4, 8], [2, 8, 1, 4], ["wrong", "all", "finite>finite", "permuted"]),
        ([-np.inf, 2], [-3.4028234663852886e38, 2], ["wrong", "some", "-inf>largest", "permuted?", "offset?"]),
        ([5, 6], [1e-45, 7], ["wrong", "all", "finite>denormal", "finite>finite"]),
        ([5], [np.nan], ["wrong", "all", "finite>nan", "constant?"]),
        ([1, 2], [1, 2, 3], ["form"]),
    ],
)
def test_the_manner_is_told_in_words(want: Any, got: Any, said: list[str]) -> None:
    found = words(want, got)
    assert [x for x in found if x not in ("permuted?", "offset?")] == [
        x for x in said if x not in ("permuted?", "offset?")
    ]


def test_an_input_that_comes_back_is_told() -> None:
    assert "input" in words([2, 4, 6], [1, 2, 3], [1, 2, 3]) and "input" not in words([2, 4, 6], [1, 2, 3], [1, 2, 4])
    assert "zero>finite" in words([0, 1], [1, 1]) and "finite>finite" in words([0, 1], [1, 1], dtype="i8")


@pytest.mark.parametrize(
    ("one", "other", "kept"),
    [
        (words([1, 2, 3], [0, 0, 0]), words([5], [0]), True),
        (words([1, 2, 3], [0, 0, 0]), words([5], [4]), False),
        (words([1, 2, 3, 5], [2, 3, 4, 6]), words([5], [6]), True),
        (words([1, 2, 3], [4, 5, 7]), words([1, 2], [1, 5]), False),  # all were wrong
        (words([1, 2, 3], [1, 5, 7]), words([1, 2], [4, 5]), True),
        (words([1, 2, 3], [1, 5, 7]), words([2, 2], [2, 5]), False),  # one number alone is expected
        (words([1, 2, 3], [1, 5, 7]), words([1, 0], [1, 5]), False),  # nothing is expected
        (words([1, -np.inf], [1, -3.4028234663852886e38]), words([-np.inf], [2]), False),
    ],
)
def test_fewer_numbers_are_wrong_in_the_same_manner(one: list[str], other: list[str], kept: bool) -> None:
    assert manner.keeps({"y": one}, {"y": other}, "y") is kept
    assert manner.keeps({}, {"y": other}, "y") and manner.keeps({"y": one}, {}, "y"), "nothing is known"


def test_equal_numbers_hide_nothing_where_a_form_is_wrong() -> None:
    assert manner.keeps({"y": ["right"], "z": ["form"]}, {"y": ["right", "uniform"], "z": ["form"]}, "z")
    assert not manner.keeps(
        {"y": ["right"], "z": ["wrong", "some"]}, {"y": ["right", "uniform"], "z": ["wrong", "some"]}, "z"
    )


def test_nan_is_no_finite_expectation() -> None:
    assert not manner.odd([Tensor.of(np.float32([1, 2])), Tensor.of(np.int64([1]))])
    assert manner.odd([Tensor.of(np.float32([1, np.inf]))]) == {"not_finite": True}
    assert manner.odd([Tensor.of(np.ones((0, 2), "f4"))]) == {"nothing": True}


def test_a_special_number_for_another_is_told_apart_from_others() -> None:
    found = {
        "y": ["wrong", "some", "-inf>largest", "finite>finite", "zero>finite", "offset?"],
        "z": ["wrong", "nan>zero"],
    }
    assert manner.special(found) == {"-inf>largest", "nan>zero"}
    assert not manner.special({"y": ["right", "uniform"]}) and not manner.special({})
