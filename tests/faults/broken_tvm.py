"""TVM with a fault in two functions that its importers call: converting a ReLU or an exponential raises inside TVM."""

from __future__ import annotations

from opera.compilers.tvm import compiler as tvm
from opera.compilers.tvm.compiler import FRONTENDS, PACKAGE, PRELOAD, options, version

__all__ = ["FRONTENDS", "NAME", "PACKAGE", "PRELOAD", "options", "prepare", "version"]

NAME = "broken-tvm"


def prepare() -> None:
    """Set TVM up, and take `relax.op.nn.relu` and `relax.op.exp` away."""
    tvm.prepare()
    from tvm import relax

    relax.op.nn.relu = relax.op.exp = None
