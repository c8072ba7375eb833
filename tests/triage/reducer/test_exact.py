"""What a wrong integer would be without the bounds of its dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest

from opera.programs.program import Instance, Operand
from opera.programs.values import Tensor
from opera.programs.verdicts import CRASH, INCONSISTENT, PASS, Outcome
from opera.triage.reducer import exact

Fails = Callable[[np.ndarray[Any, Any], np.ndarray[Any, Any]], np.ndarray[Any, Any]]


def call(operator: str, one: Any, other: Any) -> Instance:
    held = (Operand("A", Tensor.of(one)), Operand("B", Tensor.of(other)))
    return Instance("onnx", operator, {}, held, ("C",), {"opset": {"": 14}})


class Ask:
    """Knows what NumPy computes, and that a compiler saturates where NumPy wraps around."""

    def __init__(self, compute: Any, compiled: Any) -> None:
        self.compute, self.compiled = compute, compiled
        self.outcomes: dict[str, Outcome] = {}
        self.programs: dict[str, Instance] = {}

    def reference(self, program: Instance) -> list[Any]:
        arrays = [x.value.array() for x in program.inputs]
        with np.errstate(over="ignore"):
            made = self.compute(*arrays)
        return [Tensor.of(np.asarray(made).astype(arrays[0].dtype))]

    def label(self, programs: list[Instance]) -> list[bool | None]:
        return [self.show(x).verdict == INCONSISTENT for x in programs]

    def show(self, program: Instance) -> Outcome:
        [expected] = self.reference(program)
        actual = self.compiled(*(x.value.array() for x in program.inputs))
        wrong = np.argwhere(actual != expected.array())
        details = {}
        if len(wrong):
            at = tuple(wrong[0])
            shown = {
                "index": str([int(x) for x in at]),
                "expected": int(expected.array()[at]),
                "actual": int(actual[at]),
            }
            details = {"output": "C", **shown}
        self.programs[program.id] = program
        self.outcomes[program.id] = Outcome(INCONSISTENT if details else PASS, "infer", "value", details=details)
        return self.outcomes[program.id]


def saturated(compute: Any) -> Any:
    def compiled(one: Any, other: Any) -> Any:
        held = np.iinfo(one.dtype)
        return np.clip(compute(one.astype(int), other.astype(int)), held.min, held.max).astype(one.dtype)

    return compiled


def test_what_a_dtype_does_not_hold_is_told_and_nothing_else_is_found_where_all_such_fail():
    ask = Ask(np.multiply, saturated(np.multiply))
    program = call("Mul", np.uint8([2, 54]), np.uint8([9]))
    assert exact.beyond(ask, program, ask.show(program)) == "486, which uint8 does not hold"
    assert exact.within(ask, program) == []


def test_what_int64_does_not_hold_is_told_though_float64_rounds_it():
    """ONNX Runtime's ReduceProd of 28 fives is the largest integer, NumPy's wraps around: 359414837200037393 is no float64."""
    held = np.iinfo(np.int64)
    ask = Ask(np.multiply, lambda one, other: np.full(one.shape, held.max))
    program = call("Mul", np.int64([5**14 + 1]), np.int64([5**14]))
    [wrapped] = ask.reference(program)
    assert int(float(wrapped.array()[0])) != int(wrapped.array()[0])
    assert exact.beyond(ask, program, ask.show(program)).endswith("which int64 does not hold")


def test_a_crash_where_the_dtype_does_not_hold_what_is_expected_is_told_so():
    ask = Ask(np.multiply, saturated(np.multiply))
    crash = Outcome(CRASH, "compile", "RuntimeError", "out of bounds")
    for numbers, told in (([2, 54], "486, which uint8 does not hold"), ([2, 5], "")):
        assert exact.beyond(ask, call("Mul", np.uint8(numbers), np.uint8([9])), crash) == told


def test_a_program_whose_result_is_held_takes_the_place_of_one_whose_is_not():
    """OpenVINO subtracts by adding what it multiplied by -1: of -128 it makes 127, whatever comes of it then."""

    def compiled(one, other):
        return saturated(np.add)(one, saturated(np.multiply)(other, np.int8([-1])))

    ask = Ask(np.subtract, compiled)
    program = call("Sub", np.int8([1, 2]), np.int8([-128]))
    assert exact.beyond(ask, program, ask.show(program)) == "129, which int8 does not hold"
    [made] = exact.within(ask, program)
    assert made == call("Sub", np.int8([-1, -1]), np.int8([-128]))
    assert exact.beyond(ask, made, ask.outcomes[made.id]) == ""
    assert exact.within(ask, made) == []


@pytest.mark.parametrize(
    ("operator", "wanted"), [("Resize", "2.75, which is no integer"), ("BitShift", ""), ("Div", "")]
)
def test_a_fraction_is_told_of_what_does_not_divide(operator: str, wanted: str):
    def mean(one: Any, other: Any) -> Any:
        found = one * 0.75 + other * 0.25
        return found if one.dtype.kind == "f" else np.round(found)

    ask = Ask(mean, lambda one, other: np.trunc(one * 0.75 + other * 0.25).astype(one.dtype))
    program = call(operator, np.int32([3]), np.int32([2]))
    assert exact.beyond(ask, program, ask.show(program)) == wanted


def test_of_floats_and_crashes_nothing_is_told():
    ask = Ask(np.add, np.add)
    program = call("Add", np.float32([1]), np.float32([2]))
    assert (
        exact.beyond(ask, program, Outcome(INCONSISTENT, "infer", "value", details={"expected": 1.0, "actual": 2.0}))
        == ""
    )
    assert exact.beyond(ask, program, Outcome("crash", "load")) == ""


@pytest.mark.parametrize(
    ("floats", "off", "told"),
    [
        ((0.4, 1.0), 1, True),
        ((0.4, 0.75), 1, False),
        ((0.4, 1.0), 2, False),
        ((3.0, 1.0), 1, False),  # a sum of integers is exact
        ((0.4, np.nan), 1, False),
        ((0.4, np.inf), 1, False),
    ],
)
def test_an_integer_that_is_cut_from_a_float_which_is_right_may_be_rounding(floats: Any, off: int, told: bool) -> None:
    """OpenVINO's Blackman window is 0.99999994 in its middle, which is right, and 0 as uint8."""
    window = Instance("onnx", "BlackmanWindow", {"output_datatype": 2}, (), ("y",), {"opset": {"": 17}})
    as_float = Instance("onnx", "BlackmanWindow", {"output_datatype": 1}, (), ("y",), {"opset": {"": 17}})
    ask = Ask(None, None)
    ask.programs, ask.outcomes = {as_float.id: as_float}, {as_float.id: Outcome(PASS)}
    ask.reference = lambda x: [Tensor.of(np.float32(floats) if x == as_float else np.uint8([0, 1]))]  # type: ignore[method-assign]
    details = {"output": "y", "index": "[1]", "expected": 1, "actual": 1 - off, "max_abs": off}
    found = exact.cut(ask, window, Outcome(INCONSISTENT, "infer", "value", details=details))
    assert bool(found) is told and ("either side of 1" in found) is told
    if off == 1 and not told:  # of another size there are fractions
        other = Instance(
            "onnx", "BlackmanWindow", {"output_datatype": 1, "periodic": 0}, (), ("y",), {"opset": {"": 17}}
        )
        asked = msgspec.structs.replace(other, params={"output_datatype": 2, "periodic": 0})  # of integers, as it was
        ask.programs[asked.id], ask.outcomes[asked.id] = asked, Outcome(INCONSISTENT)
        halves = [Tensor.of(np.float32([0, 0.5]))]
        before, ask.reference = ask.reference, lambda x: halves if x == other else before(x)  # type: ignore[method-assign]
        near = abs(floats[1] - 1) < 1e-3
        assert bool(exact.cut(ask, window, Outcome(INCONSISTENT, "infer", "value", details=details))) is near
    true = {**details, "expected": True, "actual": False}
    assert not exact.cut(ask, window, Outcome(INCONSISTENT, "infer", "value", details=true)), "that is no integer"
