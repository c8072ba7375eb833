"""What may be told of a program holds of it, and can be asked of any other."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opera.programs.program import Instance, Operand
from opera.programs.values import Tensor
from opera.triage.conditions import expected, features, forms, lengths, representable
from opera.triage.conditions.near import near
from opera.triage.shrink import simpler, smaller

KINDS = ["float16", "float32", "int4", "int8", "uint8", "uint64", "float8_e4m3fn", "float4_e2m1fn"]


@settings(max_examples=40)
@given(
    st.lists(st.lists(st.integers(0, 3), max_size=3), min_size=1, max_size=3),
    st.sampled_from(["float32", "float64", "int64", "bool"]),
    st.sampled_from(
        [[], ["float8_e4m3fn", "float8_e8m0fnu"], ["int8", "float16", "bfloat16"], ["bool", "string", "int4"]]
    ),
    st.integers(0, 3),
)
def test_all_that_may_be_told_of_a_program_holds_of_it_and_can_be_asked_of_any_other(sizes, of, made, count):
    given = tuple(Operand(f"x{n}", Tensor.of(np.ones(x, of))) for n, x in enumerate(sizes))
    program = Instance("onnx", "Any", {"axis": count, "stride": [1, count]}, given, ("y",), {})
    found = list(features.features(program, {"Any": {"axis": 0, "stride": [1, 1], "bias": None}}, (), made))
    assert all(x.holds(program) for x in found)
    assert all(x.says for x in found)
    rows = near(program, {})
    for other in (x for row in rows for x in itertools.islice(row, 3) if x is not None):
        assert {x.holds(other) for x in found} <= {True, False}


@given(st.sampled_from(KINDS), st.floats(-1e9, 1e9, width=32))
def test_a_number_that_a_dtype_holds_comes_back_from_it(to, value):
    numbers = np.array([value])
    beyond, odd = (bool(of(numbers, to)[0]) for of in (representable.beyond, representable.inexact))
    assert odd or not beyond
    if not beyond:
        [back] = simpler.numbers(simpler.numbered(numbers, to))
        assert (float(back) == value) is not odd


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("to", [*KINDS, "bfloat16", "complex64"])
@pytest.mark.parametrize("value", [1 + 2j, 1e300, np.nan, -1.0])
def test_numbers_that_a_dtype_does_not_hold_are_taken_without_a_warning(to, value):
    assert simpler.numbered(np.array([value]), to).shape == (1,)


def test_what_is_no_number_is_lost_in_every_dtype_and_beyond_none():
    numbers = np.array([np.nan, np.inf, 1.0])
    for to in KINDS:
        assert representable.beyond(numbers, to).tolist() == [False, True, False]
        assert (
            representable.lost(numbers, to).tolist()
            == representable.inexact(numbers, to).tolist()
            == [True, True, False]
        )


def test_of_an_output_that_is_no_tensor_nothing_is_told():
    """An optional or a sequence has no shape: it is not empty for that."""
    program, empty = (Instance("onnx", x, {}, (), ("y",), {}) for x in ("If", "Split"))
    shapes = {"If": None, "Split": (0, 2), "Abs": (2, 3)}
    assert expected.of_outputs(program, lambda x: shapes[x.operator]) == []
    told = {x.says: x for x in expected.of_outputs(empty, lambda x: shapes[x.operator])}
    assert told["an output without elements"].holds(program) and not told["an output without elements"].holds(
        Instance("onnx", "Abs", {}, (), ("y",), {})
    )


def test_that_something_is_left_out_is_told_where_a_program_passes_that_is_given_it_alone():
    """A test that passes is given a constraint, and is another call besides: its constraint says nothing."""

    def call(size: int, **params: object) -> Instance:
        return Instance("keras", "Any", params, (Operand("x", Tensor.of(np.ones(size, "float32"))),), ("y",), {})

    def told(*passing: Instance) -> set[str]:
        found = features.features(call(2), {"Any": {"bias_constraint": None}}, (call(3),), (), None, passing)
        return {x.says for x in found if x.says.endswith("left out")}

    assert told(call(4, bias_constraint="MaxNorm")) == set()
    assert "bias_constraint left out" in told(call(4, bias_constraint="MaxNorm"), call(3, bias_constraint="MaxNorm"))


def test_a_slope_for_each_channel_is_told_from_one_for_each_element():
    """TVM has a kernel for the one, which takes no bfloat16, and writes the other as a choice between two, which does."""

    def prelu(x, slope):
        given = (Operand("X", Tensor.of(np.ones(x, "f4"))), Operand("slope", Tensor.of(np.ones(slope, "f4"))))
        return Instance("onnx", "PRelu", {}, given, ("Y",), {"opset": {"": 16}})

    kernel = [prelu((2,), ()), prelu((2, 3), (1, 3)), prelu((2, 2, 2), (2, 1, 1)), prelu((1, 2), (1, 1))]
    written = [prelu((2, 3), (2, 3)), prelu((2, 2, 2), (2, 1, 2)), prelu((2, 2, 2), (2, 2))]
    [row] = lengths.vectors(kernel[0])
    assert row.says == "at most one axis of slope longer than 1"
    assert all(map(row.holds, kernel)) and not any(map(row.holds, written))
    [several] = lengths.vectors(written[0])
    assert several.says == "several axes of slope longer than 1"
    assert all(map(several.holds, written)) and not any(map(several.holds, kernel))
    shapes = [tuple(y.shape for y in smaller.leaves(x)) for x in forms.ordinary(kernel[0]) if x is not None]
    assert ((2, 3), (2, 3)) in shapes, "nothing else gives all as many axes"
