"""Simpler values: elements of tensors and values of parameters that say less, and are quicker to read."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from opera.programs.values import CONTAINERS, DESCRIBED, RandomTensor, Tensor, Value, widen

Leaf: TypeAlias = Tensor | RandomTensor
Array: TypeAlias = np.ndarray[Any, Any]

FLOAT, WIDE = "float32", "float64"
"""The dtype that everybody has, and the one that holds all numbers of the narrower floats."""
ORDINARY = frozenset({FLOAT, "int64", "int32", "bool"})
"""Dtypes that everybody has, which strings are not; all others become one of these where the failure stays."""
PLAIN = 64
"""A random tensor of at most so many elements is written out."""
FEW = 24
"""Elements of a tensor that are looked at one by one."""
MANY = 4096
"""The elements of larger tensors are not read to tell how much there is to read."""


def ordinary(dtype: str) -> tuple[str, ...]:
    """Return the dtypes that may take the place of an exotic one, the first first; nothing of what is ordinary itself."""
    if dtype in ORDINARY:
        return ()
    return ("float32",) if "int" not in dtype else ("int64", "int32", "float32")


def cost(value: Value) -> int:
    """Return how much there is to read in a value: 0 and 1 cost nothing, all else its characters and more; floats that are
    all 0 cost 1, for they hide more than others.

    So what is 1 never becomes 0: as a scale, a size or a divisor 0 is another case, and 1 is tried first.
    """
    match value:
        case Tensor():
            return _of_tensor(value)
        case RandomTensor():
            return 100 * math.prod(value.shape)
        case None | bool():
            return int(value is True)
        case int() | float():
            return _of_number(value)
        case str() | bytes():
            return 1 + len(value)
        case list() | tuple():
            return len(value) + sum(map(cost, value))
        case dict():
            return len(value) + sum(cost(x) for pair in value.items() for x in pair)
    return 5


def _of_number(number: float) -> int:
    if not math.isfinite(number):
        return 4
    if number in (0, 1):
        return int(math.copysign(1, number) < 0)
    return 1 + len(f"{int(number)}" if float(number).is_integer() and abs(number) < 2**53 else f"{number!r}")


def _of_tensor(tensor: Tensor) -> int:
    if math.prod(tensor.shape) > MANY:
        return 30 * math.prod(tensor.shape)
    if tensor.dtype == "string":
        return sum(len(x) for x in tensor.array().ravel())
    items = numbers(tensor).ravel()
    if items.dtype.kind == "c":
        items = np.concatenate([items.real, items.imag])
    if items.dtype.kind != "f":
        return sum(_of_number(int(x)) for x in items)
    return int(items.size > 0 and not items.any()) + sum(
        _of_number(x if x.dtype.itemsize == 8 else _shortest(x)) for x in items
    )


def _shortest(number: Any) -> float:
    """Return the float whose text is the shortest that reads as this narrower one."""
    return float(str(number))


def integers(tensor: Tensor, other: Callable[[int], int]) -> Array:
    """Return the elements of an integer tensor, each changed by a function."""
    array = tensor.array()
    for place, item in enumerate(array.ravel().tolist()):
        array.reshape(-1)[place] = other(item)
    return array


def numbered(array: Array, dtype: str) -> Tensor:
    """Return a tensor of any dtype whose elements are the nearest to these numbers that it holds: finite ones, of few bits."""
    if array.dtype.kind == "c" and not dtype.startswith("complex"):
        array = array.real
    if dtype.startswith("float") and CONTAINERS[dtype] == "uint8":
        codes = np.arange(16 if "float4" in dtype else 256, dtype=np.uint8)
        codes = codes[np.isfinite(widen(codes, dtype))]
        table = widen(codes, dtype).astype(np.float64)
        given = np.clip(np.nan_to_num(array.ravel().astype(np.float64)), table.min(), table.max())
        nearest = np.abs(table[:, None] - given[None]).argmin(axis=0)
        return Tensor.of(codes[nearest].reshape(array.shape), dtype)
    with np.errstate(invalid="ignore", over="ignore"):  # of what the dtype does not hold any number will do
        if dtype == "bfloat16":
            bits = array.astype("float32").view("uint32") >> 16
            return Tensor.of(bits.astype("uint16").reshape(array.shape), dtype)
        return Tensor.of(array.astype(CONTAINERS[dtype]).reshape(array.shape), dtype)


def numbers(tensor: Tensor) -> Array:
    """Return the elements as numbers; of a float4, the bits beyond its four are none of it."""
    if tensor.dtype == "float4_e2m1fn":
        return widen(tensor.array() & 15, tensor.dtype)
    return tensor.numbers()


def finite(leaves: Iterable[Leaf]) -> bool:
    """Whether no tensor holds NaN or an infinity; what is drawn does not."""
    held = (x for x in leaves if isinstance(x, Tensor) and x.dtype not in ("string", "bool"))
    return all(bool(np.isfinite(numbers(x)).all()) for x in held)


def _numeric(leaf: Leaf) -> bool:
    return isinstance(leaf, Tensor) and leaf.dtype not in ("string", "float8_e8m0fnu")


def as_dtype(leaf: Leaf, dtype: str, other: str) -> Leaf:
    """Return a tensor of one dtype in another; complex numbers lose their imaginary part, fractions may go, strings count."""
    if leaf.dtype != dtype:
        return leaf
    if isinstance(leaf, RandomTensor):
        return _drawn(leaf, other)
    if dtype == "string":
        return counted(numbered(np.zeros(leaf.shape), other))
    found = numbers(leaf)
    found = found.real if found.dtype.kind == "c" else found
    if "int" in other and not np.isfinite(found).all():
        return leaf
    with np.errstate(over="ignore", invalid="ignore"):
        return (
            numbered(found, other) if CONTAINERS.get(other, other) != other else Tensor.of(found.astype(other), other)
        )


def _drawn(leaf: RandomTensor, other: str) -> RandomTensor:
    """Return a random tensor in another dtype, of the numbers of its range that this holds; itself where it holds none."""
    low, high = leaf.low, leaf.high
    if "float" not in other and other in DESCRIBED:
        least, most = (0, 1) if other == "bool" else (np.iinfo(other).min, np.iinfo(other).max)
        low = float(max(math.ceil(low), least, -(2**53)))
        high = float(min(math.floor(high), most, 2**53))
    return RandomTensor(other, leaf.shape, leaf.seed, low, high) if other in DESCRIBED and low <= high else leaf


def positive(leaf: Leaf) -> bool:
    """Whether all of a few floating-point numbers are positive."""
    few = "float" in leaf.dtype and 0 < math.prod(leaf.shape) <= MANY
    return isinstance(leaf, Tensor) and few and bool((numbers(leaf) > 0).all())


def _degenerate(leaf: Leaf, number: float) -> bool:
    """Whether this would be the first 0 of an integer tensor: as a size, a count or a repeat it is another case."""
    return number == 0 and "int" in leaf.dtype and isinstance(leaf, Tensor) and bool(numbers(leaf).all())


def _constant(leaf: Leaf, number: float) -> Leaf:
    if _degenerate(leaf, number):
        return leaf
    if math.prod(leaf.shape) > MANY or not (_numeric(leaf) or isinstance(leaf, RandomTensor)):
        return leaf
    return numbered(np.full(leaf.shape, number, dtype=np.float64), leaf.dtype)


def counted(leaf: Leaf, first: int = 1) -> Leaf:
    """1, 2, 3, ... and again from 1 after what every dtype holds; `first` is where to begin."""
    if not _numeric(leaf) or leaf.dtype == "bool":
        return leaf
    most = 1 if leaf.dtype in ("int2", "uint2") else 6
    return numbered((np.arange(math.prod(leaf.shape)).reshape(leaf.shape) + first - 1) % most + 1.0, leaf.dtype)


def _rounded(leaf: Leaf, digits: int) -> Leaf:
    """Return a float tensor whose elements have so many digits after the point; what is not finite stays."""
    if not isinstance(leaf, Tensor) or leaf.dtype not in ("float16", "float32", "float64"):
        return leaf
    with np.errstate(over="ignore", invalid="ignore"):
        return Tensor.of(np.round(leaf.array().astype("float64"), digits).astype(leaf.dtype), leaf.dtype)


def _written_out(leaf: Leaf) -> Leaf:
    return leaf.tensor() if isinstance(leaf, RandomTensor) and math.prod(leaf.shape) <= PLAIN else leaf


def _floats(change: Callable[[Leaf], Leaf]) -> Callable[[Leaf], Leaf]:
    """Return a change of float tensors alone: integers often are indices and sizes."""
    return lambda leaf: change(leaf) if "float" in leaf.dtype or leaf.dtype.startswith("complex") else leaf


ZERO, ONE = partial(_constant, number=0.0), partial(_constant, number=1.0)
WHOLE: tuple[Callable[[Leaf], Leaf], ...] = (
    _written_out,
    ONE, ZERO, _floats(ONE), _floats(ZERO), _floats(counted),
    partial(_rounded, digits=0), partial(_rounded, digits=1), partial(_rounded, digits=2),
)  # fmt: skip
"""Changes of all tensors of a program."""


def of_leaf(leaf: Leaf) -> Iterator[Callable[[Leaf], Leaf]]:
    """Yield changes of one tensor: of all its elements, of half of them, of each where they are few."""
    yield from [ONE, ZERO]
    yield counted
    yield from [partial(_rounded, digits=digits) for digits in (0, 1, 2)]
    if leaf.dtype == "string":
        yield _shorter
        return
    total = math.prod(leaf.shape)
    if total > 3:
        for half in (slice(total // 2), slice(total // 2, None)):
            for number in (1.0, 0.0):
                yield partial(_some, where=half, number=number)
    if total <= FEW:
        for place in range(total):
            here = slice(place, place + 1)
            for number in (1.0, 0.0):
                yield partial(_some, where=here, number=number)
            yield partial(_element, place=place)


def _shorter(leaf: Leaf) -> Leaf:
    if not isinstance(leaf, Tensor):
        return leaf
    array = leaf.array()
    for place, item in enumerate(array.ravel()):
        array.reshape(-1)[place] = item[: len(item) // 2]
    return Tensor.of(array)


def _some(leaf: Leaf, where: slice, number: float) -> Leaf:
    if not isinstance(leaf, Tensor) or not _numeric(leaf) or _degenerate(leaf, number):
        return leaf
    array = leaf.array().reshape(-1)
    array[where] = numbered(np.full(1, number), leaf.dtype).array()[0]
    return Tensor.of(array.reshape(leaf.shape), leaf.dtype)


def _element(leaf: Leaf, place: int) -> Leaf:
    """Make one element a smaller number: half of it, without what is after the point."""
    if not isinstance(leaf, Tensor) or not _numeric(leaf) or place >= math.prod(leaf.shape):
        return leaf
    items = numbers(leaf).reshape(-1)
    if items.dtype.kind not in "fiu" or not np.isfinite(items[place]):
        return leaf
    found = float(items[place])
    small = math.copysign(min(abs(math.trunc(found / 2)), 100), found)
    return _some(leaf, slice(place, place + 1), small)


def is_type(name: str) -> bool:
    """Whether a parameter of this name holds a type, which may be told by a number."""
    return name.rpartition(".")[2] in ("to", "dtype") or name.endswith("type")


def of_param(name: str, value: Value) -> Iterator[Value]:
    """Yield simpler values of a parameter; what names a type by a number (`to`, `dtype`) has none.

    What is positive stays so: a stride, a size or an epsilon of 0 is another case, if it is one, as is a list of nothing.
    """
    if is_type(name):
        return
    match value:
        case bool():
            if value:
                yield False
        case int():
            least = min(value, 1)
            yield from (x for x in dict.fromkeys((0, 1, 2, value // 2)) if cost(x) < cost(value) and x >= least)
        case float():
            found = dict.fromkeys((0.0, 1.0, float(f"{value:.1g}")))
            yield from (x for x in found if cost(x) < cost(value) and (x > 0 or not value > 0))
        case list() | tuple():
            for place, item in enumerate(value):
                for other in of_param("", item):
                    yield type(value)([*value[:place], other, *value[place + 1 :]])
            if value and all(isinstance(x, int) and not isinstance(x, bool) for x in value):
                for other in (0, 1):
                    if other >= min(1, *value):
                        yield type(value)([other] * len(value))
            for place in range(len(value)) if len(value) > 1 else ():
                yield type(value)([*value[:place], *value[place + 1 :]])
