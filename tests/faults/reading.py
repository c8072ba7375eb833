"""ONNX Runtime as a compiler of what PyTorch exports, and of nothing else; `compilers.get("faults.reading")` finds it."""

from __future__ import annotations

from opera.compilers import Variant, onnxruntime
from opera.compilers.onnxruntime import PACKAGE, PRELOAD, options, prepare, version

__all__ = ["FRONTENDS", "NAME", "PACKAGE", "PRELOAD", "options", "prepare", "version"]

NAME = "faults.reading"


class Torch(onnxruntime.Onnx):
    VARIANTS = (Variant("onnx", "onnx"),)


FRONTENDS = {"torch": Torch()}
