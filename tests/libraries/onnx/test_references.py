"""Where ONNX's evaluator is too lenient, opera's own is not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from opera.errors import InvalidTest
from opera.programs.values import Tensor

onnx = pytest.importorskip("onnx")

from opera.libraries.onnx import references  # noqa: E402
from opera.triage.shrink import simpler  # noqa: E402


@pytest.mark.parametrize("opset", [19, 21, 23])
@pytest.mark.parametrize(("zero", "lawful"), [(0.0, True), (-0.0, True), (0.75, False), (1.0, False)])
def test_a_zero_point_of_small_floats_that_is_not_subtracted_is_refused(opset: int, zero: float, lawful: bool) -> None:
    """ONNX's evaluator takes 0.75 for 0, and leaves it out."""
    small, helper = "float8_e4m3fn", onnx.helper
    of = {"x": (17, [2]), "s": (1, []), "z": (17, []), "y": (1, [2])}
    told = {name: helper.make_tensor_value_info(name, *x) for name, x in of.items()}
    node = helper.make_node("DequantizeLinear", ["x", "s", "z"], ["y"])
    graph = helper.make_graph([node], "g", [told[x] for x in "xsz"], [told["y"]])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    scale = Tensor.of(np.float32(1.0).reshape(()))
    feeds = {"x": simpler.numbered(np.float64([1, 2]), small), "s": scale, "z": simpler.numbered(np.array(zero), small)}
    if lawful:
        [found] = references.evaluate(model, feeds)
        assert isinstance(found, Tensor) and found.array().tolist() == [1.0, 2.0]
    else:
        with pytest.raises(InvalidTest, match="zero"):
            references.evaluate(model, feeds)


def run(operator: str, opset: int, x: Any, **params: Any) -> Any:
    helper = onnx.helper
    told = [helper.make_tensor_value_info(name, 1, shape) for name, shape in (("x", x.shape), ("y", None))]
    graph = helper.make_graph([helper.make_node(operator, ["x"], ["y"], **params)], "g", told[:1], told[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    [found] = references.evaluate(model, {"x": Tensor.of(x)})
    assert isinstance(found, Tensor)
    return found.array()


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 3), st.integers(1, 6), st.integers(1, 5))
def test_lrn_sums_over_the_channels_beside(pictures: int, channels: int, size: int) -> None:
    """The evaluator went through as many channels as there are pictures."""
    x = np.arange(1, 1 + pictures * channels * 2, dtype=np.float32).reshape(pictures, channels, 1, 2)
    found = run("LRN", 13, x, size=size, alpha=0.5, beta=0.75, bias=1.5)
    for c in range(channels):
        low, high = max(0, c - (size - 1) // 2), min(channels - 1, c + size // 2)
        squares = (x[:, low : high + 1].astype(np.float64) ** 2).sum(axis=1)
        np.testing.assert_allclose(found[:, c], x[:, c] / (1.5 + 0.5 / size * squares) ** 0.75, rtol=1e-5)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_lp_pool_is_the_norm_of_what_a_window_holds(data: Any) -> None:
    """The evaluator's was an average times the window's size: it scaled up windows that hang over."""
    length, kernel = data.draw(st.integers(1, 7)), data.draw(st.integers(1, 3))
    stride, dilation = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 2))
    pads = data.draw(st.lists(st.integers(0, kernel - 1), min_size=2, max_size=2))
    p, ceil = data.draw(st.sampled_from([1, 2, 3])), data.draw(st.sampled_from([0, 1]))
    span = (kernel - 1) * dilation + 1
    assume(length + sum(pads) >= span)
    x = np.arange(1, length + 1, dtype=np.float32).reshape(1, 1, length) - 3
    params = {"kernel_shape": [kernel], "strides": [stride], "dilations": [dilation], "pads": pads, "p": p}
    found = run("LpPool", 18, x, ceil_mode=ceil, **params)[0, 0]
    for n, value in enumerate(found):
        at = range(n * stride - pads[0], n * stride - pads[0] + span, dilation)
        held = [abs(float(x[0, 0, i])) ** p for i in at if 0 <= i < length]
        assert value == pytest.approx(sum(held) ** (1 / p), rel=1e-5, abs=1e-6)
