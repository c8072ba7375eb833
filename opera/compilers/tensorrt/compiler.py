"""TensorRT, on an NVIDIA GPU. docs/tensorrt.md tells what of it has never met one.

Nothing here touches CUDA before a worker is forked: a process that has used the GPU cannot be forked and use it again.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from importlib import metadata
from typing import Any

from opera.compilers import Frontend
from opera.compilers.shared import torch_live
from opera.compilers.tensorrt.onnx import Onnx
from opera.compilers.tensorrt.torch import Torch

NAME = "tensorrt"
TITLE = "TensorRT"
PACKAGE = "tensorrt cuda-python onnx torch-tensorrt"
PRELOAD = ("tensorrt", "cuda.bindings.runtime")
FRONTENDS: Mapping[str, Frontend] = {"onnx": Onnx(), "torch": Torch()}

PRECISE = {"typing": "strong", "tf32": "False"}
"""What both frontends set: see docs/tensorrt.md."""


def version() -> str:
    """Return TensorRT's version. Raises ImportError where there is no GPU that CUDA can use."""
    import tensorrt

    _device()
    return str(tensorrt.__version__)


def options() -> dict[str, str]:
    """Return the GPU, of which every engine is made for, what TensorRT is used with, and what decides its precision."""
    import tensorrt

    return {
        **_device(),
        **PRECISE,
        "strict_nans": str(hasattr(tensorrt.BuilderFlag, "STRICT_NANS")),
        **_beside("torch-tensorrt"),
    }


def prepare() -> None:
    warnings.simplefilter("ignore")
    if "torch" in sys.modules:
        torch_live.prepare()


def _device() -> dict[str, str]:
    """Return name, compute capability and driver of the GPU. Raises ImportError where there is none."""
    from cuda.bindings import runtime

    def asked(answer: tuple[Any, ...]) -> Any:
        error, *found = answer
        if error != runtime.cudaError_t.cudaSuccess:
            words = runtime.cudaGetErrorString(error)[1].decode()
            raise ImportError(f"TensorRT needs an NVIDIA GPU and its driver, and CUDA has none: {error.name} ({words})")
        return found[0]

    if not asked(runtime.cudaGetDeviceCount()):
        raise ImportError("TensorRT needs an NVIDIA GPU, and CUDA sees none (CUDA_VISIBLE_DEVICES?)")
    number = asked(runtime.cudaGetDevice())
    found = asked(runtime.cudaGetDeviceProperties(number))
    return {
        "device": "cuda",
        "gpu": found.name.rstrip(b"\0").decode(),
        "compute_capability": f"{found.major}.{found.minor}",
        "cuda_driver": str(asked(runtime.cudaDriverGetVersion())),
        "cuda_runtime": str(asked(runtime.cudaRuntimeGetVersion())),
    }


def _beside(package: str) -> dict[str, str]:
    """Return package → version, empty where it is not installed."""
    try:
        return {package: metadata.version(package)}
    except metadata.PackageNotFoundError:
        return {}
