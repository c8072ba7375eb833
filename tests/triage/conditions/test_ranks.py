"""Ranks, shapes and lengths that are told where something passes that has less of an axis, or another shape."""

from __future__ import annotations

from typing import Any

import numpy as np
from bearing import F32, borne, call, listed, shape

from opera.triage.conditions.deciding import Decided
from opera.triage.sentence import EMPTY


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
