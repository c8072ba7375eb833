"""The elements of tensors: usual ones, and those on boundaries."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from opera.sources.sionnx.parse import DTYPES
from opera.sources.sionnx.spec import Node

Array = np.ndarray[Any, Any]
RANGE = 10.0
"""Floats on no boundary lie between -RANGE and RANGE, whole numbers between -128 and 127 where the dtype holds them."""
WORDS = ("a", "B", "ab", "cat", "Dog", "zebra", "x y", "ONNX", "straße", "Æon", "1", "3.5", "-7", "the", "é", "日本")
SHARE = 0.3
"""Share of the elements that are on a boundary which would make a whole tensor meaningless (the largest number, NaN)."""


@cache
def dtype_of(name: str) -> np.dtype[Any]:
    """Return numpy's dtype, one of ml_dtypes where numpy has none; objects for strings."""
    if name == "string":
        return np.dtype(object)
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes

        found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return found


def is_float(name: str) -> bool:
    return "float" in name


def is_integer(name: str) -> bool:
    return name.removeprefix("u").startswith("int")


def bits(name: str) -> int:
    """Return the width of a dtype's elements in ONNX, where those of four and two bits are packed."""
    return {"bool": 8, "int4": 4, "uint4": 4, "float4_e2m1fn": 4, "int2": 2, "uint2": 2}.get(
        name, 8 * dtype_of(name).itemsize
    )


@cache
def limits(name: str) -> tuple[float, float]:
    """Return the least and greatest finite number of a dtype."""
    if name == "bool":
        return 0, 1
    dtype = dtype_of("float32" if name == "complex64" else "float64" if name == "complex128" else name)
    if is_float(name) or name.startswith("complex"):
        import ml_dtypes

        info = ml_dtypes.finfo(dtype)
        return float(info.min), float(info.max)
    if name.endswith(("int2", "int4")):
        import ml_dtypes

        return int(ml_dtypes.iinfo(dtype).min), int(ml_dtypes.iinfo(dtype).max)
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


@cache
def tiny(name: str) -> float:
    """Return the smallest positive number of a float dtype, a subnormal one where it has such."""
    import ml_dtypes

    info = ml_dtypes.finfo(dtype_of(name))
    return float(info.smallest_subnormal) if name != "float8_e8m0fnu" else limits(name)[0]


@cache
def has(name: str, what: str) -> bool:
    """Whether a float dtype has `nan`, `inf`, or `-0.0`."""
    with np.errstate(all="ignore"):
        made = np.array([{"nan": np.nan, "inf": np.inf, "-0.0": -0.0}[what]], np.float32).astype(dtype_of(name))
        back = float(made.astype(np.float32)[0])
    if what == "nan":
        return bool(np.isnan(back))
    return bool(np.isinf(back)) if what == "inf" else bool(back == 0 and np.signbit(back))


@cache
def options(dtype: str, special: bool) -> tuple[str, ...]:
    """Return the boundaries of a tensor's elements that say no range of their own."""
    if dtype == "string":
        return ("empty string",)
    if dtype == "bool":
        return "0", "1"
    low, _ = limits(dtype)
    found = (
        ["0", "1", *(["-1"] if low <= -1 else []), "min", "max"] if dtype != "float8_e8m0fnu" else ["1", "min", "max"]
    )
    if is_float(dtype):
        found += [*(["-0.0"] if has(dtype, "-0.0") else []), *(["tiny"] if dtype != "float8_e8m0fnu" else [])]
        found += [x for x in ("nan", "inf") if special and has(dtype, x)] + (
            ["-inf"] if special and has(dtype, "inf") else []
        )
    return tuple(found)


def admits(dtype: str, option: str) -> bool:
    """Whether elements of a dtype can be on a boundary; what is no dtype, and no boundary of elements, can be anything."""
    if option in ("-0.0", "tiny", "nan", "inf", "-inf") and dtype in DTYPES:
        return is_float(dtype) and (
            option == "tiny" or has(dtype, option.removeprefix("-") if option == "-inf" else option)
        )
    return not (option == "-1" and dtype.startswith(("u", "bool")))


def ranged(dtype: str, low: Any, high: Any) -> list[str]:
    """Return the boundaries of elements between two numbers."""
    if dtype == "string" or low == high:
        return []
    found = ["min", "max", *(x for x in ("0", "1", "-1") if low < int(x) < high)]
    return [*found, "-0.0"] if is_float(dtype) and low <= 0 <= high and has(dtype, "-0.0") else found


def array(generator: np.random.Generator, dtype: str, shape: list[int], span: Any, what: str, distinct: bool) -> Array:
    """Return elements.

    Args:
        generator: Of all that is random.
        dtype: As opera names it.
        shape: Of the array.
        span: (low, high), a list of values to choose from, or None for any.
        what: The boundary; "" for none.
        distinct: No two elements are equal (of a list of values, or a range of whole numbers).
    """
    if isinstance(span, list):
        return _chosen(generator, dtype, shape, span, distinct)
    if dtype == "string":
        return _strings(generator, shape, what)
    kind = dtype_of(dtype)
    if dtype == "bool":
        return np.full(shape, what == "1") if what else np.asarray(generator.random(tuple(shape)) < 0.5)
    if dtype.startswith("complex"):
        parts = "float32" if dtype == "complex64" else "float64"
        real = array(generator, parts, shape, span, what, distinct)
        return np.asarray(real + 1j * array(generator, parts, shape, span, "", distinct), kind)
    low, high = span or usual(dtype)
    if distinct:
        return _distinct(generator, shape, low, high).astype(kind)
    with np.errstate(all="ignore"):
        values = _numbers(generator, dtype, shape, low, high)
        if what:
            values = _at_boundary(generator, values, dtype, span, what)
        return _cast(values, kind)


def _cast(values: Array, kind: np.dtype[Any]) -> Array:
    if values.dtype == kind:
        return values
    if kind.kind == "V" and values.dtype.kind in "iu":  # ml_dtypes' whole numbers are made of int8 only
        return values.astype(np.int8).astype(kind)
    return values.astype(kind)


@cache
def usual(dtype: str) -> tuple[float, float]:
    """Return the range of elements that are on no boundary."""
    least, most = limits(dtype)
    if is_float(dtype):
        return max(least, -RANGE), min(most, RANGE)
    return max(int(least), -128), min(int(most), 127)


def _numbers(generator: np.random.Generator, dtype: str, shape: list[int], low: Any, high: Any) -> Array:
    if is_float(dtype):
        return (
            low + (high - low) * generator.random(tuple(shape))
            if shape
            else np.asarray(low + (high - low) * generator.random())
        )
    least, most = limits(dtype)
    bounds = max(int(np.ceil(low)), int(least)), min(int(np.floor(high)), int(most))
    wide = np.uint64 if bounds[1] > 2**63 - 1 else np.int64
    return np.asarray(generator.integers(bounds[0], bounds[1], tuple(shape), wide, endpoint=True))


def _at_boundary(generator: np.random.Generator, values: Array, dtype: str, span: Any, what: str) -> Array:
    """Put elements on a boundary: all of them, or some where all would make the tensor meaningless."""
    low, high = span or limits(dtype)
    special = {"nan": np.nan, "inf": np.inf, "-inf": -np.inf, "tiny": tiny(dtype) if is_float(dtype) else 1}
    number = {"min": low, "max": high, "-0.0": -0.0}.get(what, special.get(what))
    number = int(what) if number is None else number
    if not is_float(dtype) and what in ("min", "max"):
        number = int(np.ceil(low)) if what == "min" else int(np.floor(high))
    if values.dtype.kind in "iu" and not -(2**63) <= number < 2**63:
        values = values.astype(np.uint64)
    if what in ("0", "1", "-1", "-0.0") or (span is not None and what in ("min", "max")):
        return np.full_like(values, number)
    out = values.copy()
    if out.size:
        chosen = generator.random(out.size) < SHARE
        chosen[int(generator.integers(out.size))] = True
        out.reshape(-1)[chosen] = number
    return out


def _chosen(generator: np.random.Generator, dtype: str, shape: list[int], span: list[Any], distinct: bool) -> Array:
    count = int(np.prod(shape, dtype=np.int64))
    if dtype != "string" and not dtype.startswith("complex"):
        least, most = limits(dtype)
        span = [x for x in span if least <= x <= most]
    places = generator.permutation(len(span)) if distinct else generator.integers(0, max(len(span), 1), count)
    out = np.empty(count, dtype_of(dtype))
    out[:] = [span[int(x)] for x in places[:count]]
    return out.reshape(shape)


def _distinct(generator: np.random.Generator, shape: list[int], low: Any, high: Any) -> Array:
    count = int(np.prod(shape, dtype=np.int64))
    return (int(low) + generator.permutation(int(high) - int(low) + 1)[:count]).reshape(shape)


def _strings(generator: np.random.Generator, shape: list[int], what: str) -> Array:
    count = int(np.prod(shape, dtype=np.int64))
    out = np.empty(count, object)
    out[:] = [WORDS[int(x)] for x in generator.integers(0, len(WORDS), count)]
    if what == "empty string" and count:
        out[int(generator.integers(count))] = ""
    return out.reshape(shape)


def exact(value: Any, dtype: str) -> Array:
    """Return a tensor that holds exactly these values."""
    kind = dtype_of(dtype)
    if dtype == "string":
        out = np.empty(np.shape(value), object)
        out[...] = value
        return out
    with np.errstate(all="ignore"):
        return _cast(np.asarray(value, None if np.size(value) else kind), kind)


def is_literal(node: Node) -> bool:
    return node.kind in ("int", "float", "string", "none", "true", "false")
