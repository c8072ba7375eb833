"""Exact ties: what is rounded is told exactly."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from screened import Answers, asked_of, f32, made

from opera.oracle import ties
from opera.programs.program import Instance, Operand
from opera.programs.values import Tensor
from opera.programs.verdicts import DISPUTED


def test_ties_are_found_along_an_axis_and_in_blocks():
    def of(x, scale, **params):
        operands = (Operand("x", Tensor.of(np.float32(x))), Operand("y_scale", Tensor.of(np.float32(scale))))
        program = Instance("onnx", "QuantizeLinear", params, operands, ("y",), {"opset": {"": 21}})
        return ties.exact(program, np.shape(x)).tolist()

    assert of([[1, 3], [1, 3]], [2, 6], axis=0) == [[True, True], [False, True]]
    assert of([[1, 3], [1, 3]], [2, 6]) == [[True, True], [True, True]]
    assert of([[1, 3, 5, 1]], [[2, 10]], axis=1, block_size=2) == [[True, True, True, False]]
    assert of([0.5, 1.5, np.inf, np.nan, 0.25], 1.0) == [True, True, False, False, False]
    assert of([0.1], 0.2) == [True], "0.1 and 0.2 are the same but for a power of two"
    assert of([0.3], 0.2) == [False], "in float32 the quotient is no tie, though it rounds to one"


@given(
    arrays.arrays(
        np.float32, st.sampled_from([(), (0,), (2, 3)]), elements=st.sampled_from([0, 0.25, 0.5, 1.5, 3, -2.5, np.inf])
    ),
    st.sampled_from([1, 2, 0.5]),
)
def test_what_is_untied_has_no_ties_and_is_else_what_it_was(x, scale):
    def program(x):
        operands = (Operand("x", Tensor.of(x)), Operand("y_scale", Tensor.of(np.float32(scale))))
        return Instance("onnx", "QuantizeLinear", {}, operands, ("y",), {"opset": {"": 21}})

    tied = ties.exact(program(x), x.shape)
    found = ties.untied(program(x))
    assert (found is None) == (not tied.any())
    if found is not None:
        name, numbers = found
        assert name == "x" and (numbers[~tied] == x[~tied]).all()
        assert not ties.exact(program(numbers.astype(np.float32)), x.shape).any()


def test_ties_of_an_own_range_are_those_of_a_scale_that_is_not_rounded():
    def of(*numbers):
        operands = (Operand("x", Tensor.of(np.float32(numbers))),)
        return ties.exact(Instance("onnx", "DynamicQuantizeLinear", {}, operands, ("y",), {}), np.shape(numbers))

    assert of(0, 255, 0.5, 1.5, 2).tolist() == [False, False, True, True, False]
    assert of(255, 0.5).tolist() == [False, True], "0 is of the range whatever the numbers are"
    assert of(-1.5, 253.5, 3).tolist() == [True, True, False]
    assert of(0, 2, -3, -2.5) is None, "5/255 is rounded first"
    assert of(0, 0) is None and of(np.inf, 1) is None and of() is None


@pytest.mark.parametrize(
    ("got", "reason"), [([1, 3, 1], ""), ([0, 3, 1], ""), ([0, 2, 2], DISPUTED), ([1, 2, 2], DISPUTED)]
)
def test_two_that_round_ties_otherwise_dispute_nothing(tmp_path, got, reason):
    """ONNX Runtime and OpenVINO cast 0.5 and 2.5 to 1 and 3 of four bits, where the documentation has 0 and 2."""
    manifest, call = made(tmp_path, "Cast", {"input": f32(0.5, 2.5, 1)}, params={"to": 22}, opset=24)
    actual = np.array(got, dtype=ml_dtypes.int4)
    found = asked_of(Answers(actual, actual), manifest, tmp_path, call, [Tensor.of(actual)])
    assert found.reason == reason
    other = Instance("onnx", "Cast", {"to": 6}, call.inputs, ("y",), {})
    assert ties.exact(other, (3,)) is None, "other casts cut off"


def test_a_program_without_a_declaration_has_no_ties():
    operands = (Operand("X", Tensor.of(np.float32([0.5]))),)
    other = Instance("onnx", "Exp", {}, operands, ("y",), {})
    assert ties.exact(other, (1,)) is None and ties.untied(other) is None
