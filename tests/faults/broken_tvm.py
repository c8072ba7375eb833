"""TVM with a fault in one function that its importers call: converting a ReLU, of whatever library, raises inside TVM."""

from __future__ import annotations

from opera.compilers.tvm import compiler as tvm
from opera.compilers.tvm.compiler import *  # noqa: F403

NAME = "broken-tvm"


def prepare() -> None:
    """Set TVM up, and take `relax.op.nn.relu` away."""
    tvm.prepare()
    from tvm import relax

    relax.op.nn.relu = None
