"""Equal elements decide along an axis; what is drawn at random has some of them where they do not matter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from opera.programs.program import Instance, Operand, Program
from opera.programs.values import Tensor
from opera.triage.conditions import equal
from opera.triage.conditions.circumstances import borne_out
from opera.triage.conditions.deciding import Decided
from opera.triage.sentence import EQUAL

ALONG = "equal elements along axis in X"
DEFAULTS: dict[str, Any] = {"axis": -1}


def top(numbers: Any, **params: Any) -> Instance:
    array = numbers if isinstance(numbers, np.ndarray) else np.array(numbers, "float32")
    inputs = (Operand("X", Tensor.of(array)),)
    return Instance("onnx", "TopK", params, inputs, ("y",), {"opset": {"": 11}})


def told(program: Instance) -> list[str]:
    return [x.says for x in equal.features(program, DEFAULTS)]


@pytest.mark.parametrize(
    ("numbers", "params", "wanted"),
    [
        ([[1, 1], [2, 3]], {}, [ALONG, EQUAL]),
        ([[1, 1], [2, 3]], {"axis": 0}, [EQUAL]),
        ([[1, 2], [1, 3]], {"axis": 0}, [ALONG, EQUAL]),
        ([[1, 2], [3, 4]], {}, []),
        (1, {}, []),
    ],
)
def test_equal_elements_are_told_along_the_axis_that_is_named(numbers: Any, params: Any, wanted: list[str]) -> None:
    assert told(top(numbers, **params)) == wanted


def test_ties_that_fail_along_the_last_axis_are_told_so() -> None:
    """OpenVINO returns the later of two equal elements; of which others are equal, below the largest, nobody sees."""

    def wrong(x: Program) -> bool | None:
        [held] = [y.value for y in x.inputs]
        axis = x.instances()[0].params.get("axis", -1)
        if not isinstance(held, Tensor) or not held.shape or not -len(held.shape) <= axis < len(held.shape):
            return None
        lines = np.moveaxis(held.numbers(), axis, -1).reshape(-1, held.shape[axis])
        last = axis % len(held.shape) == len(held.shape) - 1
        return last and bool(held.numbers().size) and any((x == x.max()).sum() > 1 for x in lines)

    def label(programs: Sequence[Program]) -> list[bool | None]:
        return [wrong(x) for x in programs]

    found = borne_out(label, top([[1, 1], [1, 1]], axis=1), {"TopK": DEFAULTS}, Decided(("axis=1",)))
    said = [*found.decided.parameters, *found.circumstances]
    assert ALONG in said and any("axis naming the last axis" in x for x in said)
    assert not found.tried.passing


@pytest.mark.parametrize(
    ("numbers", "says", "wanted"),
    [
        ([1, 1, 2], EQUAL, True),
        ([1, 1, 1], EQUAL, False),  # there it must matter
        ([1, 2, 3], EQUAL, False),
        ([-1, 2], "a negative number in an input", True),
        ([-1, -2], "a negative number in an input", False),
        ([-1, 2], "float32 inputs", False),
        (np.int8([127, 2]), "the largest number of its dtype in an input", True),
        (np.int8([127, 127]), "the largest number of its dtype in an input", False),
    ],
)
def test_a_claim_of_some_elements_is_contradicted_by_those_alone_that_have_it_everywhere(
    numbers: Any, says: str, wanted: bool
) -> None:
    assert equal.in_part(top(numbers), [says]) is wanted


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_that_nothing_is_above_the_least_number_is_told_of_all_integers(dtype: str) -> None:
    """TVM's argmax begins at the least number, and finds none above it: -1 of zeros without a sign, or of -128 alone."""

    def wrong(x: Program) -> bool | None:
        [held] = [y.value for y in x.inputs]
        axis = x.instances()[0].params.get("axis", -1)
        if not isinstance(held, Tensor) or not held.shape or not -len(held.shape) <= axis < len(held.shape):
            return None
        if "int" not in held.dtype or not held.numbers().size:
            return False
        lines = np.moveaxis(held.numbers(), axis, -1).reshape(-1, held.shape[axis])
        return any((x == np.iinfo(held.dtype).min).all() for x in lines)

    def label(programs: Sequence[Program]) -> list[bool | None]:
        return [wrong(x) for x in programs]

    program = top(np.full(1, np.iinfo(dtype).min, dtype))
    told_of = Decided((), ("unsigned inputs",)) if dtype == "uint8" else Decided()
    found = borne_out(label, program, {"TopK": DEFAULTS}, told_of)
    said = {*found.decided.besides, *found.circumstances} - {"integer inputs"}
    assert said == {f"{equal.ONLY_LEAST} along axis in X"}
    assert found.exact
