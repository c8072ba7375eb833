"""What operators of OpenVINO mean that are more than one function of numpy's, by its operation specification."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from statistics import NormalDist
from typing import Any

import numpy as np

MOVES = (
    "Broadcast", "Concat", "DepthToSpace", "Gather", "Identity", "NonZero", "Pad", "Reshape", "ShapeOf", "Slice",
    "SpaceToDepth", "Split", "Squeeze", "StridedSlice", "Tile", "Transpose", "Unsqueeze", "VariadicSplit",
)  # fmt: skip
"""Operators that look at no element: strings have the same meaning as numbers there."""


def meant(kind: str, attributes: Mapping[str, Any], given: list[Any]) -> list[Any] | None:
    """Return the outputs of an operator, None for one that is not here. Raises ValueError for what is not documented."""
    known = MEANINGS.get(kind)
    found = None if known is None else known(attributes, *given)
    return found if found is None or isinstance(found, list) else [found]


def _inside(indices: Any, size: int) -> Any:
    """Return indices that all count from the front. Raises ValueError for others: versions of an operator differ in these."""
    if ((indices < 0) | (indices >= size)).any():
        raise ValueError("an index does not count from the front")
    return indices


def _lrn(attributes: Mapping[str, Any], x: Any, axes: Any) -> Any:
    size, axes = int(attributes["size"]), [int(axis) for axis in np.ravel(axes)]
    if not axes or size % 2 == 0:
        raise ValueError("a window of no axes or of even size")
    sums = x.astype(np.float64) ** 2
    for axis in axes:
        around = [(size // 2,) * 2 if place == axis % x.ndim else (0, 0) for place in range(x.ndim)]
        sums = np.lib.stride_tricks.sliding_window_view(np.pad(sums, around), size, axis=axis).sum(axis=-1)
    scale = attributes["alpha"] / size ** len(axes)
    return x / (attributes["bias"] + scale * sums) ** attributes["beta"]


def _blocks(attributes: Mapping[str, Any], x: Any) -> tuple[int, int, bool]:
    """Return the size of blocks, how many spatial axes there are, and whether blocks come first."""
    return int(attributes["block_size"]), x.ndim - 2, attributes["mode"] == "blocks_first"


def _depth_to_space(attributes: Mapping[str, Any], x: Any) -> Any:
    size, rank, first = _blocks(attributes, x)
    depth = x.shape[1] // size**rank
    parts = [size] * rank
    shape = [x.shape[0], *(parts if first else ()), depth, *(() if first else parts), *x.shape[2:]]
    begin = 1 if first else 2
    order = [0, rank + 1 if first else 1]
    for place in range(rank):
        order += [rank + 2 + place, begin + place]
    return x.reshape(shape).transpose(order).reshape(x.shape[0], depth, *(n * size for n in x.shape[2:]))


def _space_to_depth(attributes: Mapping[str, Any], x: Any) -> Any:
    size, rank, first = _blocks(attributes, x)
    shape = [*x.shape[:2], *(n for length in x.shape[2:] for n in (length // size, size))]
    within, outer = [3 + 2 * k for k in range(rank)], [2 + 2 * k for k in range(rank)]
    order = [0, *within, 1, *outer] if first else [0, 1, *within, *outer]
    return x.reshape(shape).transpose(order).reshape(x.shape[0], -1, *(n // size for n in x.shape[2:]))


def _one_hot(attributes: Mapping[str, Any], indices: Any, depth: Any, on: Any, off: Any) -> Any:
    axis = int(attributes["axis"])
    if (indices < 0).any():
        raise ValueError("a negative index")
    places = np.arange(int(depth)).reshape(
        [-1 if x == axis % (indices.ndim + 1) else 1 for x in range(indices.ndim + 1)]
    )
    return np.where(np.expand_dims(indices, axis) == places, on, off)


def _gather(attributes: Mapping[str, Any], x: Any, indices: Any, axis: Any) -> Any:
    if attributes.get("batch_dims"):
        raise ValueError("batches")
    return np.take(x, _inside(indices, x.shape[int(axis)]), int(axis))


def _scatter_elements(attributes: Mapping[str, Any], x: Any, indices: Any, updates: Any, axis: Any) -> Any:
    axis = int(np.ravel(axis)[0])
    if attributes.get("reduction", "none") not in ("none", "NONE"):
        raise ValueError("a reduction")
    places = list(np.indices(indices.shape))
    places[axis] = _inside(indices, x.shape[axis])
    if len(np.unique(np.reshape(places, (x.ndim, -1)), axis=1).T) < indices.size:
        raise ValueError("an element that is written twice")
    found = x.copy()
    found[tuple(places)] = updates
    return found


def _pad(attributes: Mapping[str, Any], x: Any, begins: Any, ends: Any, value: Any = 0) -> Any:
    around = [(int(a), int(b)) for a, b in zip(begins, ends, strict=True)]
    if any(x < 0 for pair in around for x in pair):
        raise ValueError("a negative padding")
    mode = str(attributes["pad_mode"]).lower()
    return np.pad(x, around, mode, **({"constant_values": value} if mode == "constant" else {}))  # type: ignore[call-overload]


def _slice(_: Mapping[str, Any], x: Any, start: Any, stop: Any, step: Any, axes: Any = None) -> Any:
    at = [slice(None)] * x.ndim
    for place, axis in enumerate(range(len(start)) if axes is None else axes):
        at[int(axis)] = slice(int(start[place]), int(stop[place]), int(step[place]))
    return x[tuple(at)]


def _strided(attributes: Mapping[str, Any], x: Any, begin: Any, end: Any, strides: Any = None) -> Any:
    masks = {
        key: [bool(bit) for bit in attributes.get(f"{key}_mask", ())]
        for key in ("begin", "end", "new_axis", "shrink_axis", "ellipsis")
    }

    def masked(key: str, place: int) -> bool:
        return place < len(masks[key]) and masks[key][place]

    if any(masks["ellipsis"]):
        raise ValueError("an ellipsis")
    at: list[Any] = []
    for place in range(len(begin)):
        if masked("new_axis", place):
            at.append(None)
        elif masked("shrink_axis", place):
            at.append(int(begin[place]))
        else:
            first = None if masked("begin", place) else int(begin[place])
            last = None if masked("end", place) else int(end[place])
            at.append(slice(first, last, 1 if strides is None else int(strides[place])))
    return x[tuple(at)]


def _cumulated(attributes: Mapping[str, Any], x: Any, axis: Any) -> Any:
    axis = int(axis)
    turned = np.flip(x, axis) if attributes["reverse"] else x
    found = np.cumsum(turned, axis).reshape(np.shape(x))  # numpy makes an axis for one number
    found = found - turned if attributes["exclusive"] else found
    return np.flip(found, axis) if attributes["reverse"] else found


def _softmax(attributes: Mapping[str, Any], x: Any) -> Any:
    raised = np.exp(x - np.max(x, int(attributes["axis"]), keepdims=True))
    return raised / np.sum(raised, int(attributes["axis"]), keepdims=True)


def _parts(_: Mapping[str, Any], x: Any, axis: Any, lengths: Any) -> list[Any]:
    lengths, whole = [int(n) for n in lengths], x.shape[int(axis)]
    lengths = [whole - sum(n for n in lengths if n >= 0) if n < 0 else n for n in lengths]
    return list(np.split(x, np.cumsum(lengths)[:-1], int(axis)))


def _divided(_: Mapping[str, Any], x: Any, y: Any) -> Any:
    if np.asarray(x).dtype.kind == "f":
        return np.divide(x, y)
    if (np.asarray(y) == 0).any() or ((np.sign(x) * np.sign(y) < 0) & (np.mod(x, y) != 0)).any():
        raise ValueError("a division by 0, or a negative quotient that is rounded")
    return np.floor_divide(x, y)


def _non_zero(_: Mapping[str, Any], x: Any) -> Any:
    if x.ndim == 0:
        raise ValueError("of a scalar nothing is documented")
    return np.argwhere(x).T


def _reduced(norm: int) -> Callable[..., Any]:
    def run(attributes: Mapping[str, Any], x: Any, axes: Any) -> Any:
        along = tuple(int(axis) for axis in np.ravel(axes))
        return np.sum(np.abs(x) ** norm, axis=along, keepdims=bool(attributes["keep_dims"])) ** (1 / norm)

    return run


_erf = np.vectorize(math.erf, otypes=[float])


def _erf_inv(_: Mapping[str, Any], x: Any) -> Any:
    def one(number: float) -> float:
        if not abs(number) < 1:
            return math.copysign(math.inf, number) if abs(number) == 1 else math.nan
        return math.copysign(NormalDist().inv_cdf((1 - abs(number)) / 2) / math.sqrt(2), number)

    return np.vectorize(one, otypes=[float])(x)


def _gelu(attributes: Mapping[str, Any], x: Any) -> Any:
    if str(attributes["approximation_mode"]).lower() == "tanh":
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * (1 + _erf(x / math.sqrt(2)))


MEANINGS: dict[str, Callable[..., Any]] = {
    "CumSum": _cumulated,
    "DepthToSpace": _depth_to_space,
    "Divide": _divided,
    "Einsum": lambda a, *given: np.einsum(a["equation"], *given),
    "Elu": lambda a, x: np.where(x < 0, a["alpha"] * np.expm1(np.minimum(x, 0)), x),
    "Erf": lambda _, x: _erf(x),
    "ErfInv": _erf_inv,
    "Gather": _gather,
    "GatherElements": lambda a, x, i: np.take_along_axis(x, _inside(i, x.shape[int(a["axis"])]), int(a["axis"])),
    "Gelu": _gelu,
    "HardSigmoid": lambda _, x, alpha, beta: np.clip(alpha * x + beta, 0, 1),
    "HSwish": lambda _, x: x * np.clip(x + 3, 0, 6) / 6,
    "Identity": lambda _, x: x,
    "LogSoftmax": lambda a, x: np.log(_softmax(a, x)),
    "LRN": _lrn,
    "NonZero": _non_zero,
    "OneHot": _one_hot,
    "Pad": _pad,
    "ReduceL1": _reduced(1),
    "ReduceL2": _reduced(2),
    "Roll": lambda _, x, by, axes: np.roll(x, tuple(np.ravel(by).tolist()), tuple(np.ravel(axes).tolist())),
    "ScatterElementsUpdate": _scatter_elements,
    "Selu": lambda _, x, alpha, by: by * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0))),
    "Slice": _slice,
    "SoftPlus": lambda _, x: np.logaddexp(0, x),
    "SoftSign": lambda _, x: x / (1 + np.abs(x)),
    "Softmax": _softmax,
    "SpaceToDepth": _space_to_depth,
    "Split": lambda a, x, axis: list(np.split(x, int(a["num_splits"]), int(axis))),
    "SquaredDifference": lambda _, x, y: (x - y) ** 2,
    "StridedSlice": _strided,
    "Swish": lambda _, x, beta=1: x / (1 + np.exp(-beta * x)),
    "Tile": lambda _, x, repeats: np.tile(x, tuple(int(n) for n in repeats)),
    "VariadicSplit": _parts,
}
"""Operator → its meaning, of its attributes and inputs; a list where it has several outputs."""
