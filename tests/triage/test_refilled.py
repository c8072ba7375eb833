"""Programs with other numbers in their tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opera.programs.program import Instance, Operand
from opera.programs.values import RandomTensor, Tensor
from opera.triage import refilled


def call(*arrays: Any, opset: int = 22, **params: Any) -> Instance:
    held = tuple(Operand(f"x{n}", None if x is None else Tensor.of(np.asarray(x))) for n, x in enumerate(arrays))
    return Instance("onnx", "Any", params, held, ("y",), {"opset": {"": opset}})


def test_fractions_of_both_signs_begin_elsewhere_in_each_tensor() -> None:
    """OpenVINO's cdist takes no absolute value, and p=0.5 is right of positive differences, and of none."""
    made = refilled.signed(call(np.float32([1, 2, 3]), np.float32([1, 0, 0]), np.int64([0, 1])))
    assert made is not None
    one, other, integers = (x.value.array() for x in made.inputs)  # type: ignore[union-attr]
    assert {-1.0, 1.0} == set(np.sign(one - other)) and integers.tolist() == [0, 1]


def test_what_is_rounded_is_an_exact_tie_of_its_own_range_and_of_a_scale_of_one() -> None:
    """OpenVINO's DynamicQuantizeLinear divides by a scale of 1.0000001 where that is 1, and rounds 2.5 up."""
    made = refilled.halves(call(np.float32([[9, 8], [7, 6], [5, 4]]), np.float32(0.3), np.uint8(3)))
    assert made is not None
    assert [x.value.array().tolist() for x in made.inputs] == [[[0, 255], [0.5, 1.5], [2.5, 3.5]], 1, 3]  # type: ignore[union-attr]
    assert refilled.halves(made) is None and refilled.halves(call(np.int64([1, 2]))) is None


def test_one_number_is_in_all_tensors_of_floats_described_ones_too() -> None:
    made = refilled.alike(call(np.float16([[9, 8]]), np.float32(0.3), np.int64([1, 2])))
    assert made is not None
    assert [x.value.array().tolist() for x in made.inputs] == [[[1.75, 1.75]], 1.75, [1, 2]]  # type: ignore[union-attr]
    described = Instance("onnx", "Any", {}, (Operand("x", RandomTensor("bfloat16", (2, 3), 0, 0, 1)),), ("y",), {})
    found = refilled.alike(described)
    assert found is not None and found.inputs[0].value.numbers().tolist() == [[1.75] * 3] * 2  # type: ignore[union-attr]
    assert refilled.alike(found) is None


@pytest.mark.parametrize(
    ("own", "other", "expected"),
    [
        (np.uint8([0, 3]), np.int8([0, 3]), [-128, 3]),
        (np.int8([127]), np.float32([127]), [np.finfo("float32").max]),
        (np.int64([0, 3]), np.int32([0, 3]), None),
        (np.float32([1, 2]), np.float16([1, 2]), None),
    ],
)
def test_the_least_number_of_a_dtype_is_that_of_another(
    own: np.ndarray, other: np.ndarray, expected: list | None
) -> None:
    """OpenVINO's MaxPool loses the index of 0 in uint8, and of -128 in int8."""
    made = refilled.ends(call(own), call(own))
    assert made is None, "it is that already"
    made = refilled.ends(call(other), call(own))
    assert (made and made.inputs[0].value.array().tolist()) == expected  # type: ignore[union-attr]


def test_the_ends_of_narrow_floats_are_not_asked_of_numpy() -> None:
    """NumPy knows the name of bfloat16 once a package has registered it, and not its ends."""
    pytest.importorskip("ml_dtypes")
    narrow = Instance("onnx", "Any", {}, (Operand("x0", Tensor.of(np.uint16([1, 2]), "bfloat16")),), ("Y",), {})
    assert refilled.ends(narrow, call(np.float32([1, 2]))) is None
    four = Instance("onnx", "Any", {}, (Operand("x0", Tensor.of(np.uint8([1, 2]), "uint4")),), ("Y",), {})
    assert refilled.ends(four, call(np.uint8([0, 2]))) is None


def test_other_numbers_are_negative_where_its_own_all_are() -> None:
    """A maximum that begins at 0 is right of positive numbers in any dtype."""
    made = refilled.in_sign(call(np.float64([5, 5, 5])), call(np.float32([-1, -2, -1])))
    assert made is not None and made.inputs[0].value.array().tolist() == [-1, -2, -3]  # type: ignore[union-attr]
    made = refilled.in_sign(call(np.float64([5, 5, 5])), call(np.float32([-1, 2, -1])))
    assert made is not None and made.inputs[0].value.array().tolist() == [1, 2, 3]  # type: ignore[union-attr]
    assert refilled.in_sign(call(np.int64([5, 5])), call(np.int64([1, 1]))) is None, "integers may be indices"
