"""Keras through the engine: whose fault is what, exports made once, and a terminal without TensorFlow's messages."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from commands import opera
from keras_instance import instance

pytest.importorskip("keras")
pytest.importorskip("tensorflow")
pytest.importorskip("tf2onnx")
pytest.importorskip("tflite")

from opera.programs.program import Captured, Provenance
from opera.run.transitions import drawn as drawn_tests
from opera.store.workspace import Workspace

X = np.array([[1.0, 2.0], [3.0, 5.0]], "float32")
INSTANCES = [
    instance("keras.ops.subtract", {}, x1=X, x2=X[:, ::-1]),
    instance("keras.ops.diagonal", {}, x=X),
    instance("keras.ops.svd", {}, x=X),
]
VERDICTS = {
    ("subtract", "tvm", "tflite"): "pass",
    ("subtract", "openvino", "live"): "pass",
    ("subtract", "tflite", "live"): "pass",
    ("diagonal", "tvm", "tflite"): "unexported",
    ("diagonal", "tvm", "onnx"): "unsupported",  # of Reshape to a shape that is known at run time only
    ("diagonal", "openvino", "saved-model"): "unsupported",
    ("diagonal", "openvino", "live"): "unsupported",
    ("diagonal", "openvino", "onnx"): "pass",
    ("diagonal", "tflite", "live"): "unsupported",
    ("svd", "tvm", "tflite"): "unexported",
    ("svd", "tvm", "onnx"): "unexported",
    ("svd", "openvino", "saved-model"): "unsupported",
    ("svd", "openvino", "live"): "unsupported",
    ("svd", "openvino", "onnx"): "unexported",
    ("svd", "tflite", "live"): "unsupported",
    ("svd", "onnxexport", "live"): "unsupported",  # asked because its file was wrong
}


def test_every_failure_is_charged_to_who_made_it(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    with Workspace.open(root, write=True) as workspace:
        workspace.add_captured([Captured(made, Provenance("by-hand", "test.py", "here")) for made in INSTANCES])
    command = [
        "run",
        "--no-reduce",
        "--compiler",
        "tvm",
        "--compiler",
        "openvino",
        "--compiler",
        "tflite",
        "--workspace",
        root,
    ]
    done = opera(*command)
    assert done.returncode == 0, done.stderr
    assert not re.search(r"tensorflow|[IWE]0000|warning|oneDNN|telemetry", done.stdout + done.stderr, re.IGNORECASE)
    assert "0 new findings" in done.stdout
    with Workspace.open(root, write=False) as workspace:
        rows = workspace.query(
            "SELECT i.operator, v.frontend, v.variant, v.verdict, v.test FROM verdicts v JOIN tests t ON t.id = v.test"
            " JOIN instances i ON i.id = t.instance"
        )
    found = {(row[0].rpartition(".")[2], row[1].partition("-")[0], row[2]): row[3] for row in rows}
    of_subtract = {row[4] for row in rows if row[0] == "keras.ops.subtract"}
    drawn = drawn_tests(of_subtract.pop())  # its saved model is then tried, though the live one passes
    assert found == VERDICTS | ({("subtract", "openvino", "saved-model"): "pass"} if drawn else {})
    exports = list(root.glob("tests/*/*/export-*.json"))
    assert len(exports) == 3 + 2 + drawn + 2  # tflite of all, saved_model and onnx where another route did not do
