"""Which values of what is told were tried alone, and whether the program fails with each."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from opera.programs.program import Instance, Operand
from opera.programs.values import Tensor
from opera.triage.conditions.labels import Labelled
from opera.triage.conditions.values import SHOWN, tried


def call(*arrays: Any, **params: Any) -> Instance:
    held = tuple(Operand(f"x{n}", Tensor.of(np.asarray(x))) for n, x in enumerate(arrays))
    return Instance("onnx", "Any", params, held, ("y",), {"opset": {"": 22}})


DATA = np.ones((2, 3), np.float32)
OWN = call(DATA, bias=0.8)


def test_its_own_value_comes_first_then_those_that_fail_and_pass_in_turn() -> None:
    labelled = [Labelled(call(DATA, bias=x), x % 1 != 0) for x in (1.0, 2.0, 1.5, 0.5, 0.0)]
    assert tried(OWN, ["bias other than 1.0"], labelled) == (
        ("bias=0.8", True), ("bias=0.5", True), ("bias=0.0", False), ("bias=1.5", True), ("bias=1.0", False),
        ("bias=2.0", False),
    )  # fmt: skip


def test_what_differs_in_more_is_none_of_them_but_numbers_of_data_are_none_of_it() -> None:
    labelled = [
        Labelled(call(DATA, bias=2.0, mode=1), fails=False),
        Labelled(call(DATA[:1], bias=3.0), fails=False),
        Labelled(call(DATA * 7, bias=4.0), fails=True),
        Labelled(call(DATA), fails=False),
    ]
    assert tried(OWN, ["bias=0.8"], labelled) == (("bias=0.8", True), ("bias=4.0", True), ("bias left out", False))


def test_numbers_of_an_input_dtypes_and_ranks_are_told() -> None:
    own = call(np.full(2, -3, np.int32), np.array([1], np.int64))
    other = [Labelled(call(np.full(2, 3, np.int32), np.array([1], np.int64)), fails=False)]
    assert tried(own, ["a negative number in an input"], other) == (("x0=-3", True), ("x0=3", False))
    listed = [Labelled(call(np.full(2, -3, np.int32), np.array([1, 1], np.int64)), fails=False)]
    assert tried(own, ["input x1"], listed) == (("x1=[1]", True), ("x1=[1, 1]", False))
    assert tried(call(DATA), ["float32 inputs"], [Labelled(call(DATA.astype("int8")), fails=False)]) == (
        ("float32", True),
        ("int8", False),
    )
    assert tried(call(DATA), ["an input of rank 2"], [Labelled(call(DATA[0]), fails=True)]) == (
        ("2x3", True),
        ("3", True),
    )
    assert tried(own, ["something else"], other) == tried(own, [], other) == ()


@given(st.lists(st.tuples(st.floats(-5, 5), st.booleans())))
def test_what_is_shown_was_said_and_is_short_enough_to_be_stored(pairs: list[tuple[float, bool]]) -> None:
    labelled = [Labelled(call(DATA, bias=x), fails) for x, fails in pairs]
    found = tried(OWN, ["bias=0.8"], labelled)
    said = {(f"bias={x!r}", fails) for x, fails in pairs}
    assert len(found) <= SHOWN and found[:1] in ((), (("bias=0.8", True),)) and set(found[1:]) <= said
    assert msgspec.json.decode(msgspec.json.encode(found), type=tuple[tuple[str, bool | None], ...]) == found


def test_a_dtype_that_is_wrong_in_another_respect_is_not_right() -> None:
    """TVM's `any` of uint8 has the right dtype, and is a maximum: right of 1 alone."""
    own, held = call(np.ones(2, np.int8)), [call(np.full(2, x, np.uint8)) for x in (1, 2)]
    right = [Labelled(held[0], fails=False), Labelled(call(np.ones(2, np.bool_)), fails=False)]
    told = ["int8 inputs"]
    assert tried(own, told, right) == (("int8", True), ("bool", False), ("uint8", False))
    assert tried(own, told, right, held[1:]) == (("int8", True), ("bool", False), ("uint8", None))


def test_right_is_a_number_that_stands_where_the_odd_one_does_beside_all_that_the_program_has() -> None:
    """`ne(1, NaN)` is wrong on TVM: that `ne(2, 3)` is right says nothing of 2 beside NaN."""
    one, nan = np.float32([1]), np.float32([np.nan])
    own = call(one, nan)
    labelled = [Labelled(call(one * 2, one * 3), False), Labelled(call(one, one * 3), False)]
    labelled += [Labelled(call(one * 5, nan), True)]
    assert tried(own, ["NaN in an input"], labelled) == (("x1=nan", True), ("x1=3", False))


def test_of_the_dtype_of_one_operand_no_other_is_shown() -> None:
    """`Pad` with int32 axes: who reads `(float32, int64, int32)` must count."""
    axes = np.array([0], np.int32)
    own = call(DATA, axes)
    labelled = [Labelled(call(DATA, axes.astype(np.int64)), False), Labelled(call(DATA.astype("int8"), axes), True)]
    told = {"int32 inputs": "int32 x1"}
    assert tried(own, ["int32 inputs"], labelled, words=told) == (("int32 x1", True), ("int64 x1", False))
    assert tried(own, ["int32 inputs"], labelled)[0] == ("(float32, int32)", True)
    shared = [Labelled(call(DATA.astype("int8"), axes.astype("int8")), False)]  # no program has another there alone
    assert tried(own, ["int32 inputs"], shared, words=told) == (("(float32, int32)", True), ("int8", False))
