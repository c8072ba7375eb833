"""What tests of scripts of a user's own share: a module that calls operators, and what came of it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from opera.store.workspace import Workspace

MODEL = """
import numpy as np
from onnx import helper, TensorProto
from onnx.reference import ReferenceEvaluator

def run(op, at=1.0):
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    model = helper.make_model(helper.make_graph([helper.make_node(op, ["x"], ["y"])], "g", [x], [y]))
    return ReferenceEvaluator(model).run(None, {"x": np.array([at, 2], np.float32)})
"""


NO_HANDLERS = (
    "it ended without exit handlers (os._exit, or another program in its place): what was left out is not counted"
)


def seen(place: Path) -> list[tuple[str, str, str]]:
    """Return (operator, file, test) of all that is stored."""
    with Workspace.open(place / "results", write=False) as workspace:
        return [
            (operator, file, test)
            for operator, source, file, test in workspace.query(
                "SELECT operator, source, file, test FROM provenances JOIN instances ON id = instance ORDER BY seq"
            )
            if source == "command"
        ]


def recorded(place: Path) -> list[tuple[str, str]]:
    with Workspace.open(place / "results", write=False) as workspace:
        rows = workspace.query("SELECT status, document FROM extraction_files ORDER BY rowid")
        return [(status, msgspec.json.decode(document)["reason"]) for status, document in rows]
