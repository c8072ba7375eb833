"""Which numbers are representable in a dtype."""

from __future__ import annotations

from functools import cache

import numpy as np

from opera.programs.values import CONTAINERS, LOW_PRECISION, widen
from opera.triage.shrink.simpler import Array

LOW = frozenset({*LOW_PRECISION, "float8_e8m0fnu"})
"""Dtypes of floating-point numbers that numpy does not have."""


def beyond(numbers: Array, dtype: str) -> Array:
    """Return which numbers are infinite, or more or less than all finite ones of a dtype."""
    held = _finite(dtype)
    with np.errstate(invalid="ignore"):
        return np.asarray((numbers > held[-1]) | (numbers < held[0]))


def lost(numbers: Array, dtype: str) -> Array:
    """Return which numbers are NaN, infinite, or more or less than all finite ones of a dtype."""
    return beyond(numbers, dtype) | np.isnan(numbers)


def inexact(numbers: Array, dtype: str) -> Array:
    """Return which numbers are none of a dtype: between two of them, beyond all, NaN."""
    fits = np.where(lost(numbers, dtype), np.nan, numbers.astype("float64"))
    if dtype in LOW:
        return ~np.isin(fits, _finite(dtype))
    return np.asarray((fits.astype(dtype).astype("float64") if "float" in dtype else np.trunc(fits)) != fits)


@cache
def _finite(dtype: str) -> Array:
    """Return the finite numbers of a dtype in order, of those that numpy has the least and the largest alone."""
    if dtype in LOW:
        kind = np.dtype(CONTAINERS[dtype])
        codes = np.arange(16 if "float4" in dtype else 2 ** (8 * kind.itemsize))
        with np.errstate(invalid="ignore"):
            held = widen(codes.astype(f"uint{8 * kind.itemsize}"), dtype).astype("float64")
        return np.unique(held[np.isfinite(held)])
    if "float" in dtype:
        return np.array([np.finfo(dtype).min, np.finfo(dtype).max], "float64")
    bits = int(dtype.lstrip("uint"))
    return np.array([0.0, 2.0**bits - 1] if dtype.startswith("u") else [-(2.0 ** (bits - 1)), 2.0 ** (bits - 1) - 1])
