"""Calls with a longer axis."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from opera.programs.program import Instance, Operand
from opera.programs.values import RandomTensor, Tensor
from opera.triage.reducer import longer


def call(*shapes: tuple[int, ...], dtype: str = "f4") -> Instance:
    made = (np.arange(math.prod(x), dtype=dtype).reshape(x) for x in shapes)
    return Instance("onnx", "Any", {}, tuple(Operand(f"X{n}", Tensor.of(x)) for n, x in enumerate(made)), ("Y",), {})


@given(st.lists(st.integers(0, 5), max_size=3).map(tuple), st.sampled_from(["f2", "f4", "f8", "i8"]))
def test_one_axis_of_floats_becomes_long_and_nothing_else_is_changed(shape: tuple[int, ...], dtype: str) -> None:
    program = call(shape, (2,), dtype=dtype)
    found = list(longer.longer(program))
    assert len({x.id for x in found}) == len(found) and program.id not in {x.id for x in found}
    assert bool(found) is (dtype != "i8" and any(x > 1 for x in shape) and 0 not in shape)
    for x in found:
        value = x.inputs[0].value
        assert isinstance(value, RandomTensor) and value.dtype == program.inputs[0].value.dtype  # type: ignore[union-attr]
        assert {a for a, b in zip(value.shape, shape, strict=True) if a != b} == {longer.LONG}
        assert math.prod(value.shape) <= longer.MOST


def test_both_operands_of_a_product_become_long_together() -> None:
    found = [tuple(y.value.shape for y in x.inputs) for x in longer.longer(call((2, 3), (3, 4)))]  # type: ignore[union-attr]
    assert ((2, 1000), (1000, 4)) in found and ((2, 1000), (3, 4)) in found and ((1000, 3), (3, 4)) in found


def test_a_tensor_that_would_be_too_large_for_any_ends_nothing() -> None:
    """A weight of 2 x 3 x 3 x 3 would have two billion numbers: nothing at all was asked of such a convolution."""
    found = [tuple(y.value.shape for y in x.inputs) for x in longer.longer(call((1, 3, 3), (2, 3, 3, 3)))]  # type: ignore[union-attr]
    assert {first for first, _ in found} == {(1, 1000, 3), (1, 3, 1000)}
    assert {x for _, x in found} == {(2, 3, 3, 3), (2, 1000, 3, 3), (2, 3, 1000, 3)}, "one of them is as long"


def test_an_axis_becomes_as_long_as_a_tensor_may_be() -> None:
    """Six images of 180 numbers have room for 185 channels, and not for a thousand."""
    found = [tuple(y.value.shape for y in x.inputs) for x in longer.longer(call((6, 3, 6, 5, 6), (2, 3, 1, 3, 2)))]  # type: ignore[union-attr]
    assert ((6, 185, 6, 5, 6), (2, 185, 1, 3, 2)) in found, "the channels alone, though the kernel is as wide"
    assert ((370, 3, 6, 5, 6), (2, 3, 1, 3, 2)) in found
    assert not list(longer.longer(call((100, 50, 40)))), "a little longer is not long enough"


def test_what_says_how_long_a_frame_is_grows_with_the_signal() -> None:
    """An STFT of a longer signal has more frames, each as long as before: nothing of what is summed up grows."""
    signal, window = (
        Operand(name, Tensor.of(np.ones(shape, "f4"))) for name, shape in (("s", (1, 128, 1)), ("w", (16,)))
    )
    step, length = (Operand(name, Tensor.of(np.array(n))) for name, n in (("step", 8), ("length", 16)))
    stft = Instance("onnx", "STFT", {"onesided": 1}, (signal, step, window, length), ("y",), {})
    last = list(longer.longer(stft))[-1]
    shapes = [x.value.shape for x in last.inputs]  # type: ignore[union-attr]
    assert shapes == [(1, 3200, 1), (), (400,), ()] and last.params == {"onesided": 1}  # type: ignore[union-attr]
    assert [int(x.value.numbers()) for x in (last.inputs[1], last.inputs[3])] == [200, 400]  # type: ignore[union-attr]
    slice_ = tuple(
        Operand(n, Tensor.of(np.array(v, t))) for n, v, t in (("a", 2**31 - 1, "i4"), ("b", 2**63 - 1, "i8"))
    )
    without = Instance("onnx", "Any", {"k": 2**40}, (signal, *slice_), ("y",), {})
    assert all(x.inputs[1:] == slice_ and x.params == {"k": 2**40} for x in longer.longer(without)), "no sizes"  # type: ignore[union-attr]
    of_parameters = Instance("torch", "stft", {"n_fft": 16, "center": True}, (signal,), ("y",), {})
    assert list(longer.longer(of_parameters))[-1].params == {"n_fft": 400, "center": True}  # type: ignore[union-attr]
