"""OpenVINO on the CPU. What it does with the models of each library is in the modules beside this one."""

from __future__ import annotations

import os
from collections.abc import Mapping

from opera import precision
from opera.compilers import Frontend
from opera.compilers.openvino.keras import Keras
from opera.compilers.openvino.onnx import Onnx
from opera.compilers.openvino.torch import Torch

NAME = "openvino"
TITLE = "OpenVINO"
PACKAGE = "openvino"
PRELOAD = ("openvino",)
FRONTENDS: Mapping[str, Frontend] = {"onnx": Onnx(), "torch": Torch(), "keras": Keras()}


def version() -> str:
    import openvino

    return str(openvino.__version__).split("-")[0]


def options() -> dict[str, str]:
    from opera.compilers.recipes import openvino as recipe

    return {"device": "CPU", **{name: str(value) for name, value in recipe.SETTINGS.items()}, **precision.ONEDNN}


def prepare() -> None:
    """Start the runtime, with telemetry off: convert_model reports 15 events a model, each from a thread that forks."""
    os.environ["CI"] = "true"  # where openvino_telemetry is told to be silent
    os.environ.update(precision.ONEDNN)
    from opera.compilers.recipes import openvino as recipe  # noqa: F401 - its import does it
