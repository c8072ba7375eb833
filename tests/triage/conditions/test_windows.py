"""A window that begins behind the input is none, though the number of windows is rounded up."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from bearing import borne, call
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from opera.triage.conditions import windows
from opera.triage.conditions.deciding import Decided


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 9), st.integers(1, 4), st.integers(1, 5), st.integers(0, 2), st.integers(1, 3))
def test_pytorch_has_one_window_less_where_the_last_one_begins_behind_the_input(
    length: int, kernel: int, stride: int, padding: int, dilation: int
) -> None:
    torch = pytest.importorskip("torch")
    assume(2 * padding <= kernel and length + 2 * padding >= dilation * (kernel - 1) + 1)
    made = torch.nn.functional.max_pool1d(torch.ones(1, 1, length), kernel, stride, padding, dilation, ceil_mode=True)
    rounded_up = -(-(length + 2 * padding - dilation * (kernel - 1) - 1) // stride) + 1
    window = windows.Window(length, kernel, stride, dilation, padding, padding)
    assert window.begins_behind is (made.shape[-1] < rounded_up)


DEFAULTS = {"kernel_size": None, "stride": None, "padding": 0, "dilation": 1, "ceil_mode": False}


def pool(shape: tuple[int, ...], operator: str = "max_pool2d", **params: Any) -> Any:
    return msgspec.structs.replace(call(np.ones(shape, "f4"), **params), operator=operator)


@pytest.mark.parametrize(
    ("program", "behind"),
    [
        (pool((1, 2, 2), kernel_size=3, padding=1, ceil_mode=True), True),
        (pool((1, 2, 2), kernel_size=3, padding=1, ceil_mode=False), False),
        (pool((1, 2, 2), kernel_size=3, padding=1), False),
        (pool((1, 2, 3), kernel_size=[2, 3], padding=(0, 1), ceil_mode=True), False),
        (pool((1, 2, 2), kernel_size=3, stride=[], padding=1, ceil_mode=True), True),
        (pool((1, 2, 2), kernel_size=3, stride=1, padding=1, ceil_mode=True), False),
        (pool((1, 1, 3), "MaxPool", kernel_shape=[1], strides=[4], ceil_mode=1), True),
        (pool((1, 1, 2), "MaxPool", kernel_shape=[3], strides=[3], pads=[1, 1], ceil_mode=1), True),
        (pool((1, 1, 2), "MaxPool", kernel_shape=[3], strides=[3], pads=[2, 0], ceil_mode=1), False),
        (pool((2,), kernel_size=3, padding=1, ceil_mode=True), False),  # there are no two axes
        (pool((1, 2, 2), kernel_size=3, stride=0, padding=1, ceil_mode=True), False),  # nor any windows
    ],
)
def test_the_windows_of_a_call_are_those_of_each_axis(program: Any, behind: bool) -> None:
    known = {} if program.operator == "MaxPool" else DEFAULTS
    assert [x.says for x in windows.features(program, known)] == [windows.BEHIND] * behind


def test_it_is_told_in_the_place_of_the_parameters_of_windows() -> None:
    """PyTorch's exporter of `max_pool3d` below opset 22, whose shapes have that window."""
    program = pool((1, 2, 2), kernel_size=3, padding=1, ceil_mode=True, other=1)

    def fails(x: Any) -> bool | None:
        if len(x.inputs[0].value.shape) != 3 or not isinstance(x.params.get("kernel_size"), int):
            return None
        return any(True for _ in windows.features(x, DEFAULTS)) and x.params.get("other") == 1

    told = Decided(("padding=1", "ceil_mode=True", "other=1"))
    found = borne(program, fails, told, DEFAULTS | {"other": 0}, loud=True)
    assert (found.decided.parameters, found.circumstances) == (("other=1",), (windows.BEHIND,)) and found.exact
