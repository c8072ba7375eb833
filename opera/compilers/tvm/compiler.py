"""TVM (Relax) on the CPU, as its tutorials use it. Its importers are in the modules beside this one."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

from opera.compilers import Frontend
from opera.compilers.tvm.keras import Keras
from opera.compilers.tvm.onnx import Onnx
from opera.compilers.tvm.torch import Torch

NAME = "tvm"
TITLE = "TVM"
PACKAGE = "apache-tvm onnx"
PRELOAD = ("tvm.relax",)
FRONTENDS: Mapping[str, Frontend] = {"onnx": Onnx(), "torch": Torch(), "keras": Keras()}


def version() -> str:
    import tvm

    return str(tvm.__version__)


def options() -> dict[str, str]:
    trial = "LLVM at opt-level 0; a tenth of what passes, and all else, as stated"
    return {"target": "llvm", "opt_level": "3", "pipeline": "default", "trial": trial}


def prepare() -> None:
    """Make the target, which the compiler asks LLVM about once."""
    import tvm

    warnings.simplefilter("ignore")
    tvm.target.Target("llvm")
