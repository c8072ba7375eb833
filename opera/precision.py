"""What decides how precisely a CPU computes, where libraries and compilers leave that to the CPU or the environment.

A verdict must not depend on the machine: float32 is computed in float32, nothing is flushed to zero. docs/oracle.md lists
what is set where; each compiler states its own settings in `options()`, and the scripts of findings set the same.
This module needs nothing but the standard library; it runs beside old compilers too.
"""

from __future__ import annotations

ONEDNN = {"ONEDNN_DEFAULT_FPMATH_MODE": "STRICT"}
"""oneDNN, inside PyTorch and OpenVINO: no float32 in bfloat16 or TF32, and it wins over DNNL_DEFAULT_FPMATH_MODE. Read when
the library is loaded: opera.precisely sets it."""
PRELOAD = "opera.precisely"
TENSORFLOW = {"TF_ENABLE_ONEDNN_OPTS": "0"}
"""TensorFlow's oneDNN kernels are chosen by the CPU, and round in other orders from one to the next. Read at its import."""
TORCH = {"float32_matmul_precision": "highest", "flush_denormal": "False", **ONEDNN}
"""What `set_torch` sets, as options of the compilers that run PyTorch."""


def set_torch() -> None:
    """Make PyTorch compute float32 in float32 in this process; a worker has preloaded opera.precisely before PyTorch."""
    import torch

    torch.set_float32_matmul_precision(TORCH["float32_matmul_precision"])
    torch.set_flush_denormal(False)
