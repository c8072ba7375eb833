"""What operators of Relax mean that are more than one function of numpy's, by their documentation."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np


def meant(name: str, attrs: Any, given: list[Any]) -> Any:
    """Return what an operator computes, None for one that is not here. Raises ValueError for what is not documented."""
    known = MEANINGS.get(name)
    return None if known is None else known(attrs, *given)


def from_front(name: str, attrs: Any, given: list[Any]) -> list[Any]:
    """Return the arguments of an operator, its indices that count from the end counted from the front; the same where it has
    none, or takes none.
    """
    axis = getattr(attrs, "axis", None)
    match name:
        case "take" | "gather_elements" | "scatter_elements":
            sizes: Any = given[0].size if axis is None else given[0].shape[int(axis)]
        case "gather_nd" | "scatter_nd":
            begin = int(getattr(attrs, "batch_dims", 0))
            sizes = np.array(given[0].shape[begin : begin + given[1].shape[-1]])
        case _:
            return given
    indices = np.asarray(given[1])
    if not (indices < 0).any():
        return given
    return [given[0], np.where(indices < 0, indices + sizes, indices).astype(indices.dtype), *given[2:]]


def _inside(indices: Any, size: int) -> Any:
    """Return indices that all count from the front. Raises ValueError for others, of which nothing is said."""
    if ((indices < 0) | (indices >= size)).any():
        raise ValueError("an index does not count from the front")
    return indices


def _scatter_elements(attrs: Any, x: Any, indices: Any, updates: Any) -> Any:
    axis = int(attrs.axis)
    places = list(np.indices(indices.shape))
    places[axis] = _inside(indices, x.shape[axis])
    return _written(attrs, x, tuple(places), updates)


def _scatter_nd(attrs: Any, x: Any, indices: Any, updates: Any) -> Any:
    places = tuple(_inside(indices[..., k], x.shape[k]) for k in range(indices.shape[-1]))
    return _written(attrs, x, places, updates)


def _written(attrs: Any, x: Any, places: tuple[Any, ...], updates: Any) -> Any:
    if str(attrs.reduction) != "update":
        raise ValueError("a reduction")
    count = np.zeros(x.shape, int)
    np.add.at(count, places, 1)
    if (count > 1).any():
        raise ValueError("an element that is written twice")
    found = x.copy()
    found[places] = updates
    return found


def _take(attrs: Any, x: Any, indices: Any) -> Any:
    axis = None if attrs.axis is None else int(attrs.axis)
    return np.take(x, _inside(np.asarray(indices), x.size if axis is None else x.shape[axis]), axis)


def _gather_nd(attrs: Any, x: Any, indices: Any) -> Any:
    if int(attrs.batch_dims):
        raise ValueError("batches")
    return x[tuple(_inside(indices[..., k], x.shape[k]) for k in range(indices.shape[-1]))]


def _one_hot(attrs: Any, indices: Any, on: Any, off: Any) -> Any:
    axis, rank = int(attrs.axis), indices.ndim + 1
    if (indices < 0).any():
        raise ValueError("a negative index")
    places = np.arange(int(attrs.depth)).reshape([-1 if x == axis % rank else 1 for x in range(rank)])
    return np.where(np.expand_dims(indices, axis) == places, on, off)


def _non_zero(_: Any, x: Any) -> Any:
    if x.ndim == 0:
        raise ValueError("of a scalar nothing is documented")
    return np.argwhere(x).T


def _split(attrs: Any, x: Any) -> Any:
    at = attrs.indices_or_sections
    axis = int(attrs.axis)
    return tuple(np.split(x, [int(n) for n in at] if hasattr(at, "__len__") else int(at), axis))


def _pad(attrs: Any, x: Any, value: Any = None) -> Any:
    widths = [int(n) for n in attrs.pad_width]
    around = list(zip(widths[::2], widths[1::2], strict=True))
    mode = str(attrs.pad_mode)
    if mode != "constant" or min(widths, default=0) < 0:
        raise ValueError("another padding than that of constants")
    return np.pad(x, around, constant_values=attrs.pad_value if value is None else value)


def _sliced(_: Any, x: Any, axes: Any, begin: Any, end: Any, strides: Any = None) -> Any:
    at = [slice(None)] * x.ndim
    for place, axis in enumerate(axes):
        at[int(axis)] = slice(int(begin[place]), int(end[place]), 1 if strides is None else int(strides[place]))
    return x[tuple(at)]


_erf = np.vectorize(math.erf, otypes=[float])

MEANINGS: dict[str, Callable[..., Any]] = {
    "erf": lambda _, x: _erf(x),
    "gather_elements": lambda a, x, i: np.take_along_axis(x, _inside(i, x.shape[int(a.axis)]), int(a.axis)),
    "gather_nd": _gather_nd,
    "nn.gelu": lambda _, x: 0.5 * x * (1 + _erf(x / math.sqrt(2))),
    "nn.leakyrelu": lambda a, x: np.where(x > 0, x, a.alpha * x),
    "nn.pad": _pad,
    "nn.silu": lambda _, x: x / (1 + np.exp(-x)),
    "nonzero": _non_zero,
    "one_hot": _one_hot,
    "repeat": lambda a, x: np.repeat(x, int(a.repeats), None if a.axis is None else int(a.axis)),
    "round": lambda _, x: np.round(x),
    "scatter_elements": _scatter_elements,
    "scatter_nd": _scatter_nd,
    "sort": lambda a, x: np.flip(np.sort(x, int(a.axis)), int(a.axis)) if a.descending else np.sort(x, int(a.axis)),
    "split": _split,
    "stack": lambda a, x: np.stack(x, 0 if a.axis is None else int(a.axis)),
    "strided_slice": _sliced,
    "take": _take,
    "tril": lambda _, x, k: np.tril(x, int(k)),
    "triu": lambda _, x, k: np.triu(x, int(k)),
}
"""Operator → its meaning, of its attributes and arguments; a tuple where it has several outputs."""
