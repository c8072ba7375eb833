"""What is expected of a program may be told: integers that wrap around, and parameters that no integer of an input is."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from opera.programs.program import Instance, Operand, Program
from opera.programs.values import RandomTensor, Tensor, Value
from opera.triage.conditions import varied
from opera.triage.conditions.circumstances import borne_out
from opera.triage.conditions.deciding import Decided
from opera.triage.conditions.expected import BEYOND_FLOAT32, OVERFLOW, of_overflow
from opera.triage.shrink import simpler, smaller


def call(*arrays: Any, **params: Any) -> Instance:
    given = tuple(Operand(f"x{n}", Tensor.of(np.asarray(x))) for n, x in enumerate(arrays))
    return Instance("onnx", "Add", params, given, ("y",), {"opset": {"": 22}})


def added(program: Program) -> list[Value] | None:
    """Return what a sum is, which wraps around; None of one that a library rejects."""
    held = [simpler.numbers(x) for x in smaller.leaves(program)]
    if len(held) != 2 or held[0].dtype != held[1].dtype:
        return None
    try:
        return [Tensor.of(np.asarray(held[0] + held[1], held[0].dtype))]
    except ValueError:
        return None


@pytest.mark.parametrize(
    ("one", "other", "told"),
    [
        (np.int8([100, 1]), np.int8([100, 1]), True),
        (np.int8([100, 1]), np.int8([27, 1]), False),
        (np.uint8([3]), np.uint8([253]), True),
        (np.int64([2**62]), np.int64([2**62]), False),  # nothing is wider
        (np.float32([1e38]), np.float32([3e38]), False),
        (np.int8([100]), np.int16([100]), False),  # nobody says what is expected
    ],
)
def test_a_sum_that_another_dtype_would_hold_overflows(one: Any, other: Any, told: bool) -> None:
    assert [x.says for x in of_overflow(call(one, other), added)] == ([OVERFLOW, BEYOND_FLOAT32] if told else [])


def test_what_a_wider_dtype_makes_otherwise_is_no_overflow() -> None:
    """The largest of no int8 is -128, and of no int64 another end; bits are more in a wider dtype; other numbers are drawn."""
    ends = {"int8": np.int8([-128]), "int64": np.int64([-(2**63)])}
    assert not of_overflow(call(np.int8([])), lambda x: [Tensor.of(ends[smaller.leaves(x)[0].dtype])])
    invert = msgspec.structs.replace(call(np.uint8([1])), operator="BitwiseNot")
    assert not of_overflow(invert, lambda x: [Tensor.of(~simpler.numbers(y)) for y in smaller.leaves(x)])
    drawn = msgspec.structs.replace(call(), inputs=(Operand("x", RandomTensor("int8", (2,), 1, 0, 9)),))
    assert not of_overflow(drawn, lambda x: [Tensor.of(np.array([1], smaller.leaves(x)[0].dtype))])


def test_an_axis_of_length_0_that_stands_where_another_did_is_told() -> None:
    """TVM's `squeeze` of `[1, 0]`: in the shape `[0]` it takes the 0 for the length that was there."""
    program = call(np.zeros((1, 0), "f4"))

    def squeezed(x: Program) -> list[Value]:
        return [Tensor.of(simpler.numbers(y).squeeze()) for y in smaller.leaves(x)]

    def fails(x: Program) -> bool:
        [held], [made] = smaller.leaves(x), squeezed(x)
        return any(now == 0 < before for now, before in zip(made.shape, held.shape, strict=False))  # type: ignore[union-attr]

    found = borne_out(
        lambda programs: [fails(x) for x in programs], program, {"Add": {}}, Decided(), outputs=squeezed, loud=True
    )
    assert found.circumstances == ("an output axis of length 0 where that of x0 is longer",) and found.exact


def test_who_computes_integers_in_float32_is_told_of_what_it_does_not_hold() -> None:
    """OpenVINO multiplies matrices of integers in float32: of int8 what overflows is wrong, and of int32 16777217 is, too."""

    def fails(program: Program) -> bool | None:
        found = added(program)
        if found is None or smaller.leaves(program)[0].dtype not in ("int8", "int32", "uint8"):
            return None if found is None else False
        one, other = (simpler.numbers(x).astype("float64") for x in smaller.leaves(program))
        return bool((np.float32(one + other) != simpler.numbers(found[0])).any())  # type: ignore[arg-type]

    program, told = call(np.int8([-126, -125]), np.int8([-22])), Decided((), ("int8 inputs",))
    found = borne_out(lambda programs: [fails(x) for x in programs], program, {"Add": {}}, told, outputs=added)
    assert (found.circumstances, found.exact) == ((BEYOND_FLOAT32,), True)


def test_who_saturates_is_told_of_what_overflows_in_its_dtype() -> None:
    """OpenVINO's sums of int8 end at -128 and 127, and wrap around in all other dtypes."""

    def fails(program: Program) -> bool | None:
        found = added(program)
        if found is None:
            return None
        wide = [simpler.numbers(x).astype("int64") for x in smaller.leaves(program)]
        [sums] = found
        return sums.dtype == "int8" and bool((wide[0] + wide[1] != simpler.numbers(sums)).any())  # type: ignore[union-attr,arg-type]

    program = call(np.int8([-126, -125]), np.int8([-22]))
    found = borne_out(
        lambda programs: [fails(x) for x in programs], program, {}, Decided((), ("int8 inputs",)), outputs=added
    )
    assert (found.decided.besides, found.circumstances, found.exact) == (("int8 inputs",), (OVERFLOW,), True)


def test_a_number_that_no_integer_of_an_input_is_is_told() -> None:
    """OpenVINO makes a constant of a bias in the dtype of what it is added to."""

    def fails(program: Program) -> bool:
        bias, [x] = program.instances()[0].params.get("bias", 0.0), smaller.leaves(program)
        ends = varied.ends(x.dtype)
        return bool(ends) and not min(ends) <= bias <= max(ends)  # type: ignore[operator]

    program, known = call(np.uint32([1, 2]), bias=-0.5), {"Add": {"bias": 0.0}}
    found = borne_out(lambda programs: [fails(x) for x in programs], program, known, Decided(("bias=-0.5",)), loud=True)
    assert "bias beyond the dtype of x0" in found.circumstances and not found.decided.parameters
