"""An operator fails as such only where an ordinary call does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pytest

from opera.programs.program import Instance, Operand, Program
from opera.programs.values import NO_DEFAULT, Tensor
from opera.triage.conditions import dtypes, usual
from opera.triage.conditions.circumstances import borne_out
from opera.triage.conditions.deciding import Decided
from opera.triage.shrink import smaller

F32 = np.float32
KNOWN = {"Any": {"keepdims": 1}}


def call(*arrays: Any, **params: Any) -> Instance:
    given = tuple(Operand(f"x{n}", Tensor.of(np.asarray(x))) for n, x in enumerate(arrays))
    return Instance("onnx", "Any", params, given, ("y",), {"opset": {"": 22}})


@pytest.mark.parametrize(
    ("program", "wanted"),
    [
        (call(F32([[1, 2]])), True),
        (call(F32([[1, 2]]), keepdims=1, axis=2), True),
        (call(F32([[1, 2]]), keepdims=0), False),
        (call(F32(1)), False),
        (call(F32([[1]])), False),
        (call(F32([[1, 2]]), F32([])), False),
        (call(F32([1, np.inf])), False),
        (call(np.int64([1, 2**40])), False),
        (call(), True),
    ],
)
def test_what_is_ordinary_has_defaults_and_several_plain_numbers(program, wanted):
    assert usual.is_usual(program, KNOWN) is wanted


def test_of_the_dtypes_that_an_operator_takes_the_most_ordinary_one_must_fail():
    floats, integers, bytes_ = (call(np.ones(2, x)) for x in ("float32", "int64", "uint8"))
    assert usual.fails([(integers, True), (bytes_, True)], {}, lambda x: True, loud=True)
    assert not usual.fails([(floats, False), (integers, True)], {}, lambda x: True, loud=True)
    one = call(np.ones(1, "int64"))  # nothing passes in the more ordinary dtype, and of it nothing ordinary is known
    for passes in (False, True):
        known = [(one, not passes), (call(np.ones(2, "int32")), True)]
        assert usual.fails(known, {}, lambda x: True, loud=True) is not passes
    assert not usual.fails([(bytes_, True)], {}, lambda x: True, loud=True), "the dtype may be what decides"
    fraction = Instance("torch", "normal", {"mean": 1.0, "std": 0.0}, (), ("y",), {})
    assert not usual.is_usual(fraction, {}) and usual.is_usual(
        msgspec.structs.replace(fraction, params={"std": 1.0}), {}
    )


@pytest.mark.parametrize(("most", "wanted"), [(9, True), (0, False)])
def test_the_simplest_call_is_asked_about(most, wanted):
    """What is reduced is a corner: an ordinary call fails alike, or nothing is said of it."""
    asked = list[Program]()

    def label(programs: Sequence[Program]) -> list[bool | None]:
        asked.extend(programs)
        return [True if len(x.inputs[0].value.shape) <= most else None for x in programs]  # type: ignore[union-attr]

    found = borne_out(label, call(np.int8(1), keepdims=0), KNOWN, Decided())
    assert (found.usual, found.exact, found.passing) == (wanted, True, 0)
    simple = [x for x in asked if smaller.leaves(x)[0].dtype == "float32" and not x.instances()[0].params]
    assert {smaller.leaves(x)[0].shape for x in simple} >= {(3,), (2, 3)}


def test_what_is_left_out_is_given_before_all_else_where_nothing_is_known_to_decide():
    """Without a seed wrong numbers are drawn; what has no default, and is not given, need not be."""
    known = {"Any": {"mean": 0.0, "seed": NO_DEFAULT, "dtype": NO_DEFAULT}}

    def label(programs: Sequence[Program]) -> list[bool | None]:
        return ["seed" not in x.instances()[0].params for x in programs]

    found = borne_out(label, call(F32([[1, 2]]), dtype=1), known, Decided())
    assert (found.circumstances, found.exact) == (("seed left out",), True)


@pytest.mark.parametrize(
    "array", [np.array(["a", ""]), np.complex64([1j, 2]), np.array([True, False]), np.uint8([3, 1])]
)
def test_of_every_dtype_ordinary_calls_are_made_of_floats_and_integers(array):
    made = [smaller.leaves(x)[0].dtype for x in usual.calls(call(array), {})]
    assert {"float32", "int64"} == set(made)
    assert all(x.dtype for row in dtypes.others(call(array)) for y in row.values() for x in smaller.leaves(y))


@pytest.mark.parametrize("loud", [True, False])
def test_a_call_that_asks_for_another_output_alone_is_not_ordinary_where_a_crash_hangs_on_it(loud):
    """A converter that cannot tell indices: the pooling itself is no failure."""
    program = msgspec.structs.replace(call(F32([[1, 2]])), outputs=("", "Indices"))

    def label(programs: Sequence[Program]) -> list[bool | None]:
        return [not x.outputs[0] for x in programs]

    found = borne_out(label, program, KNOWN, Decided(), loud=loud)
    assert (found.circumstances, found.usual) == (("an output beside the first",), not loud)


def test_a_call_whose_outputs_are_empty_is_no_ordinary_one():
    """TFLite hands out no tensor without elements: that says nothing of `istft`."""
    program = call(np.ones((2, 3), "f4"))
    for computes in (True, False):
        assert usual.fails([(program, True)], {}, lambda x, answer=computes: answer, loud=True) is computes


def test_a_call_of_many_tensors_is_no_ordinary_one():
    """Some of them are optional: what all that fail are given may decide."""
    for count, ordinary in ((usual.TENSORS, True), (usual.TENSORS + 1, False)):
        held = tuple(Operand(f"x{n}", Tensor.of(np.ones((2, 3), "f4"))) for n in range(count))
        assert usual.is_usual(Instance("onnx", "Any", {}, held, ("y",), {}), {}) is ordinary
