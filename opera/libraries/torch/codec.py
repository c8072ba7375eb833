"""Between opera's values and PyTorch's own objects. torch is imported inside functions, for the CLI imports this module."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from opera.errors import CorpusError
from opera.libraries.torch import api as torch_api
from opera.programs.values import (
    CONTAINERS,
    DESCRIBED,
    MAX_DESCRIBED,
    MAX_ELEMENTS,
    Named,
    RandomTensor,
    Tensor,
    Value,
)

DTYPES = frozenset(CONTAINERS) - {"string", "float4_e2m1fn", "int4", "uint4", "int2", "uint2"}
"""dtypes of dense tensors, by the names that PyTorch and opera share."""
STORED = 1 << 14
"""Tensors of more elements are described by their range, unless their dtype cannot be."""
MAX_STORED = 1 << 16
"""Tensors of more elements, of a dtype that cannot be described, are not representable."""
MAX_NESTED = 16
"""Containers among arguments may be nested this deep."""
EXACT = float(1 << 53)
"""Integers of a described tensor lie within this, where float64 is exact."""

_DEVICE = re.compile(r"(cpu|meta|cuda)(:\d{1,3})?")
_SLICE = re.compile(r"(-?\d{1,20})?:(-?\d{1,20})?:(-?\d{1,20})?")


class NotRepresentable(Exception):
    """An object has no encoding; the text is the category that reports count."""


def tensor(item: Any) -> Tensor | RandomTensor:
    """Return the value of a torch.Tensor, conjugate and negative views resolved, without its strides.

    Raises NotRepresentable for what is no plain dense CPU tensor, or too large.
    """
    check_plain(item)
    dtype, shape = str(item.dtype).removeprefix("torch."), tuple(item.shape)
    count = math.prod(shape)
    if count > STORED:
        return _described(item.detach(), dtype, shape, count)
    return Tensor(dtype, shape, _array(item).tobytes())


def _array(item: Any) -> Any:
    """Return the elements, in a copy: a tensor that shared its memory with NumPy once can never be resized again."""
    import torch

    item = item.detach().clone(memory_format=torch.contiguous_format).resolve_conj().resolve_neg()
    dtype = str(item.dtype).removeprefix("torch.")
    if CONTAINERS[dtype] != dtype:
        item = item.view(torch.int16 if item.element_size() == 2 else torch.uint8)
    return item.numpy()


def check_plain(item: Any) -> None:
    """Raise NotRepresentable for tensors whose elements cannot be read, or have no dtype of opera's."""
    import torch

    if type(item) is not torch.Tensor and type(item) is not torch.nn.Parameter:
        raise NotRepresentable("tensor subclass")
    if item.layout is not torch.strided or item.is_nested or item.is_mkldnn:
        raise NotRepresentable("tensor that is not dense")
    if item.is_quantized:
        raise NotRepresentable("quantized tensor")
    if item.device.type != "cpu":
        raise NotRepresentable("device other than cpu")
    if torch._C._functorch.is_functorch_wrapped_tensor(item):
        raise NotRepresentable("tensor of a function transform")
    if str(item.dtype).removeprefix("torch.") not in DTYPES:
        raise NotRepresentable(f"dtype {item.dtype}")
    if item.numel() > MAX_DESCRIBED:
        raise NotRepresentable("tensor above the size limit")


def _described(item: Any, dtype: str, shape: tuple[int, ...], count: int) -> Tensor | RandomTensor:
    """Describe a large tensor by the range of its finite elements: indices stay in range, probabilities positive."""
    if dtype not in DESCRIBED:
        if count > MAX_STORED:
            raise NotRepresentable(f"large tensor of dtype {dtype}")
        return Tensor(dtype, shape, _array(item).tobytes())
    if 0 in item.stride():  # of an expanded tensor, one element of each repeated dimension says all
        item = item.as_strided([1 if s == 0 else d for d, s in zip(shape, item.stride(), strict=True)], item.stride())
    low, high = _range(item)
    return RandomTensor(dtype, shape, count, low, high)


def _range(item: Any) -> tuple[float, float]:
    import torch

    if item.dtype in (torch.uint16, torch.uint32, torch.uint64, torch.bool):
        array = _array(item)
        low, high = float(array.min()), float(array.max())
    else:
        least, most = torch.aminmax(item)
        if not (math.isfinite(least) and math.isfinite(most)):
            finite = item[torch.isfinite(item)]
            if not finite.numel():
                return 0.0, 1.0
            least, most = torch.aminmax(finite)
        low, high = float(least), float(most)
    return (low, high) if item.is_floating_point() else (_exact(low), _exact(high))


def _exact(bound: float) -> float:
    return max(-EXACT, min(bound, EXACT))


def to_torch(value: Tensor | RandomTensor, strides: tuple[int, ...] | None = None) -> Any:
    """Return the torch.Tensor of a value, a fresh one on the CPU, laid out with `strides` where they are given.

    Raises CorpusError for dtypes that PyTorch lacks, and for strides that overlap or need too much memory.
    """
    import torch

    value = value.tensor() if isinstance(value, RandomTensor) else value
    if value.dtype not in DTYPES:
        raise CorpusError(f"PyTorch computes with no dtype {value.dtype!r}")
    dtype = getattr(torch, value.dtype)
    if CONTAINERS[value.dtype] == value.dtype:
        made = torch.from_numpy(value.array())
    else:
        bits = value.array()
        made = torch.from_numpy(bits.view("int16") if bits.dtype.itemsize == 2 else bits).view(dtype)
    if strides is None:
        return made.clone()  # what shares memory with NumPy cannot be resized, as `out=` may need
    if len(strides) != made.dim() or overlapping(value.shape, strides) or span(value.shape, strides) > MAX_ELEMENTS:
        raise CorpusError(f"a tensor of shape {list(value.shape)[:8]} cannot have the strides {list(strides)[:8]}")
    return torch.zeros(span(value.shape, strides), dtype=dtype).as_strided(value.shape, strides).copy_(made)


def span(shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """Return how many elements of memory a layout reaches over."""
    return 0 if 0 in shape else 1 + sum((d - 1) * s for d, s in zip(shape, strides, strict=True))


def overlapping(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Return whether two elements of a layout may share memory (True also for some unusual layouts where none do)."""
    if any(not isinstance(stride, int) or stride < 0 for stride in strides):
        return True
    reach = 0
    for stride, dim in sorted((s, d) for d, s in zip(shape, strides, strict=True) if d > 1):
        if stride <= reach:
            return True
        reach += (dim - 1) * stride
    return False


def encode(item: Any) -> Value:
    """Return the value of an argument that is no tensor. Raises NotRepresentable."""
    return _encode(item, 0)


def _encode(item: Any, depth: int) -> Value:
    if depth > MAX_NESTED:
        raise NotRepresentable("container nested too deep, or within itself")
    kind = type(item)
    if item is None or kind in (bool, int, float, str, bytes):
        return item
    if kind is list:
        return [_encode(each, depth + 1) for each in item]
    if isinstance(item, tuple) and (kind is tuple or kind.__module__ in ("torch", "torch.return_types")):
        return tuple(_encode(each, depth + 1) for each in item)  # torch.Size, and the tuples that operators return
    if kind is dict:
        return {_key(key): _encode(each, depth + 1) for key, each in item.items()}
    return _named(item)


def _key(key: Any) -> Value:
    if key is None or type(key) in (bool, int, float, str, bytes):
        return key
    raise NotRepresentable("dictionary with keys that are no plain values")


def _named(item: Any) -> Value:
    import torch

    match item:
        case complex():
            return Named("complex", repr(complex(item)))
        case torch.dtype() | torch.layout() | torch.memory_format():
            return Named(f"torch.{type(item).__name__}", str(item).removeprefix("torch."))
        case torch.device():
            if item.type != "cpu":
                raise NotRepresentable("device other than cpu")
            return Named("torch.device", str(item))
        case slice():
            return Named("slice", ":".join(_bound(x) for x in (item.start, item.stop, item.step)))
        case torch.Generator():
            raise NotRepresentable("generator")
        case torch.nn.Module():
            raise NotRepresentable("module among the arguments")
        case torch.SymInt() | torch.SymFloat() | torch.SymBool():
            raise NotRepresentable("symbolic value")
    if item is Ellipsis:
        return Named("builtins", "Ellipsis")
    if isinstance(item, torch.Tensor):
        raise NotRepresentable("tensor in an unusual place")
    if type(item).__module__ == "numpy" and hasattr(item, "dtype"):
        return _numpy(item)
    if callable(item):
        name = torch_api.public_name(item)
        if name is None:
            raise NotRepresentable("callable that is no operator")
        return Named("torch.callable", name)
    raise NotRepresentable(f"value of type {type(item).__module__}.{type(item).__qualname__}"[:100])


def _bound(item: Any) -> str:
    if item is None or type(item) is int:
        return "" if item is None else str(item)
    raise NotRepresentable("slice bounded by something other than an integer")


def _numpy(item: Any) -> Value:
    """Numbers that NumPy made are numbers; PyTorch takes them as such."""
    if getattr(item, "ndim", 1) == 0 and item.dtype.kind in "bifc":
        return _encode(item.item(), 0)
    raise NotRepresentable("NumPy array")


def decode(value: Value, inputs: Mapping[str, Any] | None = None) -> Any:
    """Return the object of a value; `Named("torch.input", name)` stands for `inputs[name]`. Raises CorpusError."""
    match value:
        case list():
            return [decode(item, inputs) for item in value]
        case tuple():
            return tuple(decode(item, inputs) for item in value)
        case dict():
            return {key: decode(item, inputs) for key, item in value.items()}
        case Tensor() | RandomTensor():
            return to_torch(value)
        case Named(kind="torch.input", name=name) if inputs is not None and name in inputs:
            return inputs[name]
        case Named():
            return _decode_named(value)
        case None | bool() | int() | float() | str() | bytes():
            return value
    raise CorpusError(f"PyTorch has no {type(value).__name__} among its arguments")


def _decode_named(value: Named) -> Any:
    import torch

    match value.kind:
        case "torch.dtype" | "torch.layout" | "torch.memory_format":
            found = vars(torch).get(value.name)
            if isinstance(found, getattr(torch, value.kind.removeprefix("torch."))):
                return found
        case "torch.device" if _DEVICE.fullmatch(value.name):
            return torch.device(value.name)
        case "torch.callable":
            return torch_api.resolve(value.name)
        case "complex" if len(value.name) < 100:
            try:
                return complex(value.name)
            except ValueError:
                pass
        case "slice" if found := _SLICE.fullmatch(value.name):
            return slice(*(None if x is None else int(x) for x in found.groups()))
        case "builtins" if value.name == "Ellipsis":
            return ...
    raise CorpusError(f"PyTorch has no {value.kind[:40]!r} called {value.name[:80]!r}")
