"""What a library leaves undefined of a result: why, and of which elements. What is wrong elsewhere is wrong all the same.

Rules are each library's own (opera/libraries/<library>/undefined.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from opera.oracle import comparison as oracle
from opera.programs.migrated import Manifest
from opera.programs.values import Tensor, Value

Array: TypeAlias = np.ndarray[Any, Any]


class Undefined(str):
    """Why a result is undefined, in words.

    Attributes:
        where: For each output, in order, which of its elements are: booleans of its shape, or of one that repeats to it.
            All of an output that none is given for.
        holds: Whether outputs keep to what is defined of them all the same, as factors do whose product is defined; nothing
            of others is excused.
    """

    where: tuple[Array, ...]
    holds: Callable[[Sequence[Value]], bool]

    def __new__(
        cls, why: str, *where: Array | bool, holds: Callable[[Sequence[Value]], bool] = lambda _: True
    ) -> Undefined:
        """Make it of the words and of where; True and False stand for all of an output and nothing of it."""
        made = super().__new__(cls, why)
        made.where, made.holds = tuple(map(np.asarray, where)), holds
        return made


def mended(why: str, expected: list[Value], actual: list[Value]) -> list[Value]:
    """Return outputs with what is expected in place of what is undefined: an Undefined knows of which elements, else all are,
    and where nothing is excused.

    `expected` and `actual` are of one form.
    """
    where = why.where if isinstance(why, Undefined) else ()
    if isinstance(why, Undefined) and not why.holds(actual):
        return actual
    found = list(expected)
    for place, (want, got, mask) in enumerate(zip(expected, actual, where, strict=False)):
        if isinstance(want, Tensor) and isinstance(got, Tensor) and (want.dtype, want.shape) == (got.dtype, got.shape):
            try:
                found[place] = Tensor.of(
                    np.where(np.broadcast_to(mask, want.shape), want.array(), got.array()), want.dtype
                )
            except ValueError:  # where is of another shape: then it is not known which elements they are
                continue
        else:
            found[place] = got
    return found


def wrong(manifest: Manifest, expected: list[Value], actual: list[Value], details: Mapping[str, Any]) -> bool:
    """Whether any output is wrong that was found to be, once what is undefined is mended.

    `details` are those of the outcome: the outputs that were `wrong`, and the tolerance that the first of them was granted.
    """
    for name, want, got in zip(manifest.outputs, expected, actual, strict=False):
        told = details if details.get("output") == name else {}
        rtol, atol = told.get("rtol", manifest.rtol), told.get("atol", manifest.atol)
        exact = isinstance(want, Tensor) and (rtol, atol) == oracle.UNROUNDED.get(want.dtype)
        suspect = name in (details.get("wrong") or manifest.outputs)
        if suspect and oracle.compare([want], [got], (name,), rtol, atol, exact).symptom:
            return True
    return False


def twice(operator: str, rows: Array, mask: Array) -> Undefined | None:
    """Return that elements are written more than once, in no order that is defined; None where none is.

    Args:
        operator: Its name.
        rows: Where each value is written, an index of `mask` a row.
        mask: False for each element of the output; a view of what is, where indices are those of another arrangement.
    """
    places, counts = np.unique(rows, axis=0, return_counts=True)
    mask[tuple(places[counts > 1].T)] = True
    doubled = len(rows) - len(places)
    why = f"{operator} writes {doubled} elements more than once, in no order that is defined"
    return Undefined(why, mask if mask.base is None else mask.base) if doubled else None
