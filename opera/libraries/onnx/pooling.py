"""MaxPool with indices, as ONNX's documentation has it: the reference evaluator tells no channel of a place, nor its order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def window(
    length: int, kernel: int, stride: int, dilation: int, pads: tuple[int, int], auto: str, *, ceil: bool
) -> tuple[int, int]:
    """Return how long an output axis is, and how many elements stand before the input's first one (ONNX, MaxPool-22)."""
    reach = (kernel - 1) * dilation + 1
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        count = -(-length // stride)
        more = max((count - 1) * stride + reach - length, 0)
        return count, more // 2 if auto == "SAME_UPPER" else more - more // 2
    before, after = (0, 0) if auto == "VALID" else pads
    room = length + before + after - reach
    count = (-(-room // stride) if ceil else room // stride) + 1
    if ceil and (count - 1) * stride >= length + before:  # a window that begins behind the input is none
        count -= 1
    return count, before


def max_pool(
    x: Array,
    kernel_shape: Sequence[int],
    *,
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    auto_pad: str | None = None,
    ceil_mode: int | None = None,
    storage_order: int | None = None,
) -> tuple[Array, Array]:
    """Return the greatest of each window, and where the first such stands in the whole input of shape (N, C, D1, ..., Dn).

    With `storage_order` 1 the places within a channel are counted in column-major order.
    """
    rank, spatial = len(kernel_shape), x.shape[2:]
    strides, dilations = list(strides or [1] * rank), list(dilations or [1] * rank)
    padded = list(pads or [0] * 2 * rank)
    auto, ceil = auto_pad or "NOTSET", bool(ceil_mode)
    axes = [
        window(spatial[n], kernel_shape[n], strides[n], dilations[n], (padded[n], padded[n + rank]), auto, ceil=ceil)
        for n in range(rank)
    ]
    least = np.iinfo(x.dtype).min if x.dtype.kind in "iu" else -np.inf  # bfloat16 is of no kind that NumPy knows
    order = np.arange(math.prod(spatial)).reshape(spatial, order="F" if storage_order else "C")
    planes = np.arange(math.prod(x.shape[:2])).reshape(*x.shape[:2], *[1] * rank) * math.prod(spatial)
    numbers, places = (np.empty((*x.shape[:2], *(count for count, _ in axes)), dtype) for dtype in (x.dtype, np.int64))
    for at in np.ndindex(*(count for count, _ in axes)):
        held = [
            [
                y
                for k in range(kernel_shape[n])
                if 0 <= (y := at[n] * strides[n] - axes[n][1] + k * dilations[n]) < spatial[n]
            ]
            for n in range(rank)
        ]
        whole = (slice(None), slice(None), *at)
        if not all(held):
            numbers[whole], places[whole] = least, -1
            continue
        found = x[:, :, *np.ix_(*held)].reshape(*x.shape[:2], -1)
        first = found.argmax(axis=-1)
        numbers[whole] = np.take_along_axis(found, first[..., None], axis=-1)[..., 0]
        places[whole] = order[np.ix_(*held)].ravel()[first]
    return numbers, np.where(places < 0, places, places + planes)
