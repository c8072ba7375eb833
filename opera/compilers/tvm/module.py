"""What TVM's importers hand to its compiler, and how values go into the virtual machine and come out of it."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from opera.compilers import Case
from opera.compilers.shared.packing import BITS, CannotCarry, of_numpy
from opera.programs.values import Optional, Sequence, Tensor, Value


class Imported(msgspec.Struct):
    """A Relax module.

    Attributes:
        module: The tvm.IRModule; what is run is its function `main`.
        params: Constants that `main` takes after its inputs.
        inputs: Names of the inputs, empty where it takes all feeds in their order.
        outputs: Of ONNX the outputs' onnx.TypeProto, by which a tuple of outputs is told from a sequence; else empty.
        in_tuple: Whether `main` returns a tuple even of one output.
    """

    module: Any
    params: list[Any] = []
    inputs: tuple[str, ...] = ()
    outputs: tuple[Any, ...] = ()
    in_tuple: bool = False

    def feeds(self, case: Case) -> list[Any]:
        """Return what `main` is called with."""
        names = [name for name in self.inputs if name in case.feeds] if self.inputs else list(case.feeds)
        return [feed(case.feeds[name]) for name in names] + self.params

    def results(self, result: Any) -> list[Value]:
        """Return the outputs of `main`."""
        if not self.in_tuple and len(self.outputs) == 1:
            return [read(result)]
        return [read(item) for item in result if not (self.in_tuple and item is None)]


def feed(value: Value) -> Any:
    """Return TVM's form of an input; raises CannotCarry for what TVM's runtime cannot hold."""
    import ml_dtypes
    import tvm

    if isinstance(value, Optional) and value.value is not None:
        value = value.value
    if isinstance(value, Sequence):
        return [feed(item) for item in value.items]
    if not isinstance(value, Tensor) or value.dtype == "string":
        called = "strings" if isinstance(value, Tensor) else "an empty optional"
        raise CannotCarry(f"opera cannot feed {called} to TVM, which has no such type")
    if value.dtype.startswith("complex"):
        raise CannotCarry(f"opera cannot feed {value.dtype} to TVM, which has no such type")
    if value.dtype in BITS:  # TVM's copies pack such elements, and its generated code reads them unpacked
        raise CannotCarry(f"opera cannot feed {value.dtype}: TVM's runtime has no settled layout for it")
    low = getattr(ml_dtypes, value.dtype, None)
    return tvm.runtime.tensor(value.array() if low is None else value.array().view(low))


def read(item: Any) -> Value:
    """Return an output of the virtual machine."""
    import tvm
    import tvm_ffi

    if isinstance(item, tvm.runtime.Tensor):
        return of_numpy(item.numpy())
    if isinstance(item, tvm_ffi.Shape):  # TVM keeps shapes as shapes; ONNX has them as tensors of int64
        return of_numpy(np.array([int(x) for x in item], dtype=np.int64))
    if isinstance(item, bool | int | float):
        return of_numpy(np.asarray(item))
    if item is None:
        return Optional("", None)
    parts = tuple(read(part) for part in item)
    return Sequence(parts[0].dtype if parts and isinstance(parts[0], Tensor) else "", parts)
