"""Programs with other numbers in their tensors: wrong whatever those are, or right by a program's own alone?"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from opera.programs.program import Program
from opera.programs.values import CONTAINERS, Tensor
from opera.triage.conditions import varied
from opera.triage.shrink import simpler, smaller

PRIME = 7
"""Numbers after which 1, 2, ... begin again: along few axes all are equal then."""
SIGNED = (1.25, -0.75, 2.5, -1.625, 0.375, -2.125, 3.5)
"""Fractions of both signs, which repeat along few axes: whole numbers, and such as are positive alone, may be right whatever is
computed of them."""
BYTE = 255
"""What the numbers of a byte span: numbers that do, and are as far apart as its own, are quantised by a scale of exactly 1."""
SHARED = 1.75
"""A number whose products and sums need more digits than it has."""
FLOATS = ("float16", "bfloat16", "float32", "float64")
"""Dtypes that hold these."""

Fill: TypeAlias = Callable[[Tensor, Tensor], smaller.Leaf]


def tiled(program: Program, own: Program) -> Program | None:
    """Return a program of other shapes with the numbers of its own, again and again; be they sizes, the library will say."""

    def fill(leaf: Tensor, held: Tensor) -> smaller.Leaf:
        if "string" in (held.dtype, leaf.dtype) or not math.prod(held.shape) or held.shape == leaf.shape:
            return leaf
        return Tensor.of(np.resize(held.array(), leaf.shape), held.dtype)

    return _refilled(program, own, fill)


def counted(program: Program) -> Program | None:
    """Return a program with 1, 2, ..., PRIME in tensors of several numbers, again and again; None where there is none."""
    leaves = [x for x in smaller.leaves(program) if isinstance(x, Tensor) and x.dtype != "string"]
    if not any(math.prod(x.shape) > 1 for x in leaves):
        return None

    def fill(leaf: Tensor, _: Tensor) -> smaller.Leaf:
        if smaller.states(leaf) or leaf.dtype in ("string", "bool"):
            return leaf
        return simpler.numbered(np.arange(math.prod(leaf.shape)).reshape(leaf.shape) % PRIME + 1.0, leaf.dtype)

    return _refilled(program, program, fill)


def signed(program: Program) -> Program | None:
    """Return a program with fractions of both signs in its tensors of floats, which begin elsewhere in each: what is the
    difference of two equal ones is right by any formula. None where it has no such, or these already."""
    begins = itertools.count()

    def fill(leaf: Tensor, _: Tensor) -> smaller.Leaf:
        if not _is_free(leaf):
            return leaf
        return simpler.numbered(np.resize(np.roll(SIGNED, -next(begins)), leaf.shape), leaf.dtype)

    return _refilled(program, program, fill)


def halves(program: Program) -> Program | None:
    """Return a program with 0, 255, and the numbers in the middle of two integers from 1/2 on in its tensors of several floats,
    and 1 in those of one: what is rounded to integers is an exact tie, be it divided by a scale that is given or by that of
    its own range. None where there are none."""

    def fill(leaf: Tensor, _: Tensor) -> smaller.Leaf:
        if not _is_free(leaf):
            return leaf
        count = math.prod(leaf.shape)
        numbers = np.concatenate([[0.0, BYTE], np.arange(count) % BYTE + 0.5])[:count]
        return simpler.numbered((numbers if count > 1 else np.ones(count)).reshape(leaf.shape), leaf.dtype)

    return _refilled(program, program, fill)


def alike(program: Program) -> Program | None:
    """Return a program with SHARED in all its tensors of floats: who rounds every sum of two adds less and less of it, and
    nothing at last. None where nothing changes."""

    def fill(leaf: smaller.Leaf) -> smaller.Leaf:
        return simpler.numbered(np.full(leaf.shape, SHARED), leaf.dtype) if leaf.dtype in FLOATS else leaf

    made = smaller.applied(lambda x: smaller.mapped(x, fill), program)
    return made if made != program else None


def in_sign(program: Program, own: Program) -> Program | None:
    """Return a program with 1, 2, ... in its tensors of floats, below 0 where its own has negative numbers alone: a maximum
    that begins at 0 is right of all others. None where it is that already."""

    def fill(leaf: Tensor, held: Tensor) -> smaller.Leaf:
        if not _is_free(leaf):
            return leaf
        below = held.dtype in FLOATS and bool((simpler.numbers(held) < 0).all())
        made = simpler.counted(leaf)
        return simpler.numbered(-simpler.numbers(made), leaf.dtype) if below and isinstance(made, Tensor) else made

    return _refilled(program, own, fill)


def ends(program: Program, own: Program) -> Program | None:
    """Return a program of other dtypes with their least and greatest numbers where its own has those of its dtypes: what takes
    the least number for none at all is wrong of 0 in uint8, and of 0 in no other. None where its own has no such."""

    def fill(leaf: Tensor, held: Tensor) -> smaller.Leaf:
        if leaf.shape != held.shape or leaf.dtype == held.dtype or smaller.states(held):
            return leaf
        if not _limits(leaf.dtype) or not _limits(held.dtype):
            return leaf
        array, was = leaf.array(), held.array()
        for end, other in zip(_limits(held.dtype), _limits(leaf.dtype), strict=True):
            array[was == end] = other
        return Tensor.of(array, leaf.dtype)

    return _refilled(program, own, fill)


def _refilled(program: Program, own: Program, fill: Fill) -> Program | None:
    """Return a program with each tensor as it is filled, told what its own has in that place; None where nothing changes."""
    before = iter(smaller.leaves(own))

    def filled(leaf: smaller.Leaf) -> smaller.Leaf:
        held = next(before, leaf)
        return fill(leaf, held) if isinstance(leaf, Tensor) and isinstance(held, Tensor) else leaf

    made = smaller.applied(lambda x: smaller.mapped(x, filled), program)
    return made if made != program else None


def _is_free(leaf: Tensor) -> bool:
    """Whether a tensor may hold any fractions."""
    return leaf.dtype in FLOATS and not smaller.states(leaf)


def _limits(dtype: str) -> tuple[Any, ...]:
    """Return the least and the greatest number of a dtype of NumPy's own, nothing of others."""
    if dtype not in FLOATS or dtype != CONTAINERS[dtype]:
        return varied.ends(dtype)
    return np.finfo(dtype).min, np.finfo(dtype).max
