"""What ONNX says of a model by itself, which ONNX Runtime is built with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from opera.compilers.onnxruntime import infer_strictly
from opera.compilers.shared.packing import OF_BODY, Refusal, Unlawful


@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_onnx_reads_constant_axes_of_pad_as_int64(tmp_path: Path, dtype: str) -> None:
    """Its schema admits int32 since opset 18; its shape inference reads none such (onnx 1.23)."""
    held = {"pads": np.int64([1, 1]), "axes": np.array([0], dtype)}
    graph = helper.make_graph(
        [helper.make_node("Pad", ["x", "pads", "", "axes"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(x, name) for name, x in held.items()],
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)]), tmp_path / "pad.onnx")
    with pytest.raises(Unlawful if dtype == "int32" else Refusal) as raised:
        infer_strictly(tmp_path / "pad.onnx")
    wanted = "ParseData type mismatch for tensor: axes. Expected:int64 Actual:int32"
    assert str(raised.value) == (wanted if dtype == "int32" else "ONNX infers it")


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize(("dtype", "says"), [(TensorProto.INT32, True), (TensorProto.INT64, False)])
def test_onnx_s_own_body_of_a_crop_takes_no_int32(tmp_path: Path, dtype: int, says: bool, constant: bool) -> None:
    """Its schema admits an int32 shape; its function body takes the maximum of it and of a Shape (onnx 1.23)."""
    held = helper.make_tensor("shape", dtype, [1], [1])
    fed = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [2]),
        helper.make_tensor_value_info("shape", dtype, [1]),
    ]
    graph = helper.make_graph(
        [helper.make_node("CenterCropPad", ["x", "shape"], ["y"])], "g", fed[: 2 - constant],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], [held] * constant,
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), tmp_path / "crop.onnx")
    with pytest.raises(Unlawful if says else Refusal) as raised:
        infer_strictly(tmp_path / "crop.onnx")
    assert str(raised.value).startswith(OF_BODY + "Max: ") is says
