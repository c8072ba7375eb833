"""How values go into TVM's virtual machine and come out of it."""

from __future__ import annotations

from typing import Any

from opera.compilers.shared.packing import BITS, CannotCarry, of_numpy
from opera.programs.values import Optional, Sequence, Tensor, Value


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
    from opera.compilers.recipes import tvm as recipe

    return _value(recipe.read_lists(item))


def _value(item: Any) -> Value:
    if item is None:
        return Optional("", None)
    if not isinstance(item, list):
        return of_numpy(item)
    parts = tuple(_value(part) for part in item)
    return Sequence(parts[0].dtype if parts and isinstance(parts[0], Tensor) else "", parts)
