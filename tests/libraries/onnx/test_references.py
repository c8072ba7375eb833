"""Where ONNX's evaluator is too lenient, opera's own is not."""

from __future__ import annotations

import numpy as np
import pytest

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
