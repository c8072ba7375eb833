"""Ranks, shapes and lengths that are told where something passes that has less of an axis, or another shape."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from bearing import F32, borne, call, listed, shape

from opera.programs.program import Instance, Operand, Program
from opera.programs.values import Tensor
from opera.triage.conditions import varied
from opera.triage.conditions.circumstances import borne_out
from opera.triage.conditions.deciding import Decided
from opera.triage.sentence import EMPTY
from opera.triage.shrink import smaller


def test_a_crash_that_needs_an_axis_is_told_so_where_a_0_d_input_passes() -> None:
    """ONNX's exporter of `vector_norm(keepdim=True)` of all axes: of none there is nothing to keep."""
    program, told = call(F32([1, 2]), keepdim=True), Decided(("keepdim=True",))
    found = borne(
        program, lambda x: bool(x.params.get("keepdim")) and len(shape(x)) > 0, told, {"keepdim": False}, loud=True
    )
    assert (*found.decided.parameters, *found.circumstances) == ("keepdim=True", "an input of rank 1 or more")
    assert found.exact


def test_that_the_named_axis_is_not_1_is_told_where_it_fails_without_elements_as_well() -> None:
    """`torch.squeeze` of an axis that is none of 1, which an exporter squeezes all the same."""

    def fails(x: Any) -> bool | None:
        axis, own = x.params.get("axis"), shape(x)
        if axis is None or not isinstance(axis, int) or not -len(own) <= axis < len(own):
            return False if axis is None else None
        return own[axis] != 1

    def moot(x: Any) -> bool:  # all axes of 1 are squeezed where none is named
        return 1 in shape(x)

    found = borne(call(F32([1, 2]), axis=0), fails, Decided(("axis=0",)), {"axis": None}, moot=moot, loud=True)
    assert (*found.decided.parameters, *found.circumstances) == ("the axis that axis names of another length than 1",)


def test_a_shape_that_must_be_broadcast_is_told_where_the_same_one_passes() -> None:
    program = listed(np.ones((2, 3), "float32"), np.ones(1, "bool"))
    found = borne(program, lambda x: shape(x) != shape(x, 1) if len(x.inputs) == 2 else None)
    assert found.circumstances == ("x1 of another shape than x0",) and found.exact


def test_where_nothing_with_elements_fails_an_empty_input_is_told() -> None:
    """`log_softmax` of integers: PyTorch takes no others than empty ones."""

    def fails(x: Any) -> bool | None:
        whole = "int" in str(x.inputs[0].value.dtype)
        return None if whole and 0 not in shape(x) else whole

    found = borne(call(np.zeros((0, 2), "int64")), fails, loud=True)
    assert set(found.circumstances) == {"integer inputs", EMPTY}


def test_two_tensors_are_given_each_rank_with_each_where_one_is_told() -> None:
    """Keras's `inner` fails unless the lower rank is 2: "an input of another rank than 2" is no condition."""
    given = tuple(Operand(x, Tensor.of(np.float32([1, 2]))) for x in ("a", "b"))
    program = Instance("onnx", "Inner", {}, given, ("y",), {"opset": {"": 22}})
    made = [[len(y.shape) for y in smaller.leaves(x)] for x in varied.ranks(program)]
    assert len(made) == 15 and [2, 3] in made and [4, 2] in made and [1, 1] not in made
    assert not list(varied.ranks(msgspec.structs.replace(program, inputs=given[:1])))

    def fails(x: Program) -> bool:
        return min(len(y.shape) for y in smaller.leaves(x)) != 2

    found = borne_out(lambda xs: [fails(x) for x in xs], program, {"Inner": {}}, Decided(), loud=True)
    assert found.exact and found.circumstances == ("the lower rank of a and b other than 2",)


def test_a_rank_at_most_is_told_of_either_of_two() -> None:
    program = listed(F32([1, 2]), F32([[2, 3]]))
    found = borne(program, lambda x: min(len(shape(x)), len(shape(x, 1))) <= 1 if len(x.inputs) == 2 else None)
    assert found.circumstances == ("x0 or x1 of rank 1 or less",) and found.exact


def test_that_all_axes_are_named_is_told_of_whatever_rank() -> None:
    """MNN's mean along all axes has no shape, not that of a vector alone."""
    program, told = call(F32([1, 2]), axes=[0]), Decided((), ("a 1-d input",))

    def fails(x: Any) -> bool | None:
        axes = x.params.get("axes")
        if not isinstance(axes, list) or not all(-len(shape(x)) <= y < len(shape(x)) for y in axes):
            return None
        return bool(shape(x)) and {y % len(shape(x)) for y in axes} == set(range(len(shape(x))))

    found = borne(program, fails, told)
    assert (found.decided.besides, found.circumstances) == ((), ("axes naming all axes",)) and found.exact
