"""How values go into TVM's virtual machine and come out of it."""

from __future__ import annotations

from typing import Any

from opera.compilers.shared.packing import BITS, CannotCarry, of_numpy
from opera.programs.values import Optional, Sequence, Tensor, Value


def feed(value: Value) -> Any:
    """Return TVM's form of an input; raises CannotCarry for what TVM's runtime cannot hold."""
    import ml_dtypes

    if isinstance(value, Optional) and value.value is not None:
        value = value.value
    if isinstance(value, Sequence):
        if any(isinstance(item, Tensor) and item.dtype in BITS for item in value.items):
            raise CannotCarry("opera cannot feed sequences of elements of less than a byte to TVM")
        return [feed(item) for item in value.items]
    if not isinstance(value, Tensor) or value.dtype == "string":
        called = "strings" if isinstance(value, Tensor) else "an empty optional"
        raise CannotCarry(f"opera cannot feed {called} to TVM, which has no such type")
    if value.dtype.startswith("complex"):
        raise CannotCarry(f"opera cannot feed {value.dtype} to TVM, which has no such type")
    low = getattr(ml_dtypes, value.dtype, None)
    return handed(value.array() if low is None else value.array().view(low))


def handed(numbers: Any) -> Any:
    """Return TVM's form of an array, whose elements may be those of ml_dtypes."""
    from opera.compilers.recipes.tvm_packed import feed_packed

    return feed_packed(numbers)


def array(tensor: Any) -> Any:
    """Inverse of `handed`."""
    from opera.compilers.recipes.tvm_packed import read_packed

    return read_packed(tensor)


def read(item: Any) -> Value:
    """Return an output of the virtual machine."""
    from opera.compilers.recipes import tvm as recipe

    if str(getattr(item, "dtype", "")) in BITS:
        return of_numpy(array(item))
    return _value(recipe.read_lists(item))


def _value(item: Any) -> Value:
    if item is None:
        return Optional("", None)
    if not isinstance(item, list):
        return of_numpy(item)
    parts = tuple(_value(part) for part in item)
    return Sequence(parts[0].dtype if parts and isinstance(parts[0], Tensor) else "", parts)
