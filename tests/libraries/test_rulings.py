"""Sentences that settle what is expected, and others that do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opera.libraries import rulings
from opera.libraries.documented import Wrong
from opera.libraries.onnx import library
from opera.programs.program import Instance, Operand
from opera.programs.values import Tensor
from opera.programs.verdicts import INCONSISTENT, Outcome
from opera.triage.doubts import stated

NON_ZERO = "It behaves like numpy, but for scalar input, NonZero produces output shape (0, N) instead of (1, N)."


def call(operator: str, opset: int, output: str, **inputs: Any) -> Instance:
    given = tuple(Operand(name, Tensor.of(x)) for name, x in inputs.items())
    return Instance("onnx", operator, {}, given, (output,), {"opset": {"": opset}})


def wrong(symptom: str, expected: object, actual: object, output: str = "Y", at: str = "") -> Outcome:
    details = {"output": output, "expected": expected, "actual": actual, "index": at}
    return Outcome(INCONSISTENT, "infer", symptom, details=details)


def test_the_shape_that_comes_of_a_scalar_is_settled_by_a_sentence() -> None:
    scalar, several = call("NonZero", 13, "Y", X=np.float32(1)), call("NonZero", 13, "Y", X=np.ones(1, np.float32))
    assert stated(scalar, (), wrong("shape", "(0, 1)", "(1, 1)"))
    [said] = [x for x in library.documented(scalar, [], Wrong("Y", "shape", "(0, 1)", actual="(1, 1)")) if x.settles]
    assert "for scalar input, NonZero produces output shape (0, N)" in said.text
    for of, expected, actual in (
        (several, "(0, 1)", "(1, 1)"),
        (scalar, "(1, 1)", "(0, 1)"),  # then the expectation is what the sentence contradicts
        (scalar, "(0, 1)", "(0, 2)"),  # both are of that form
        (scalar, "(0, 1, 1)", "(1, 1)"),
    ):
        assert not stated(of, (), wrong("shape", expected, actual))


def test_the_type_that_an_output_shares_with_an_input_settles_its_dtype() -> None:
    mean = call("ReduceMean", 13, "reduced", data=np.ones(2, np.int32))
    assert stated(mean, (), wrong("dtype", "int32", "int64", "reduced"))
    assert not stated(mean, (), wrong("dtype", "int64", "int32", "reduced"))
    cast = call("CastLike", 19, "output", input=np.ones(2, np.int32), target_type=np.ones(1, np.float32))
    assert stated(cast, (), wrong("dtype", "float32", "int32", "output"))


def test_what_is_returned_of_each_number_in_this_case_is_settled() -> None:
    of = call("ReduceSumSquare", 18, "reduced", data=np.float32([[2, 3]]))
    of = Instance(of.library, of.operator, {"noop_with_empty_axes": 1}, of.inputs, of.outputs, of.context)
    assert stated(of, (), wrong("value", 9.0, 3.0, "reduced", "[0, 1]"))
    assert not stated(of, (), wrong("value", 8.0, 3.0, "reduced", "[0, 1]"))
    assert "returns the Square" in rulings.settled(library, of, wrong("value", 9.0, 3.0, "reduced", "[0, 1]"))
    assert not rulings.settled(library, of, wrong("value", 3.0, 9.0, "reduced", "[0, 1]"))
    other = Instance(of.library, "ReduceL1", of.params, of.inputs, of.outputs, of.context)
    assert not stated(other, (), wrong("value", 9.0, 3.0, "reduced", "[0, 1]"))  # the sentence is about others


@pytest.mark.parametrize(
    ("text", "symptom", "expected", "settles"),
    [
        ("Returns a tensor with the same size as `input`.", "shape", "(2, 3)", True),
        ("The output has the same dtype as the input.", "dtype", "float32", True),
        ("The output tensor has the same shape and type as X.", "dtype", "float32", False),  # there is no X
        ("If out is given, it must have the same size as `input`.", "shape", "(2, 3)", False),
        ("The weight has the same size as `input`.", "shape", "(2, 3)", False),
        ("Returns a tensor with the same dtype as `input`.", "shape", "(2, 3)", False),
    ],
)
def test_only_what_is_said_of_the_output_settles_it(text: str, symptom: str, expected: str, settles: bool) -> None:
    of = call("Abs", 13, "Y", input=np.ones((2, 3), np.float32))
    told = Wrong("Y", symptom, expected, actual="(3, 2)" if symptom == "shape" else "float64")
    assert bool(rulings.same_as_input(text, of, told)) == settles


@given(st.lists(st.integers(0, 3), max_size=4), st.lists(st.integers(0, 3), max_size=4))
def test_a_sentence_never_settles_both_of_two_shapes(one: list[int], other: list[int]) -> None:
    of = call("NonZero", 13, "Y", X=np.float32(1))
    both = [tuple(one), tuple(other)]
    found = [
        rulings.shape_of_scalar(NON_ZERO, of, Wrong("Y", "shape", str(x), actual=str(y))) for x, y in (both, both[::-1])
    ]
    assert not all(found)
