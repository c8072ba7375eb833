"""Ordinary programs beside the smallest one: numbers that differ, and axes longer than 1, plain to read and no corner.

A program whose axes are all 1 and whose numbers are all the same may fail as another one would not, and hides what is mixed up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial, reduce

import msgspec
import numpy as np

from opera.programs.program import Instance, Program, with_values
from opera.programs.values import Tensor, Value
from opera.triage.conditions import forms
from opera.triage.conditions.peculiar import SCALES
from opera.triage.shrink import simpler, smaller
from opera.triage.shrink.smaller import Leaf

MOST = 16
"""Elements of a tensor of an ordinary program; all tensors of it together have no more than twice as many."""
FEW = 4
"""Elements of a tensor that is ordinary enough."""
TRIED = 10
"""Programs of other sizes that are tried."""


def counted(program: Program) -> Iterator[Program]:
    """Yield the program with 1, 2, 3, ... in its tensors of floats, each from another number on; and in the first alone.

    Scales of axes are no data: those of a batch and of channels must often be 1.
    """
    found = smaller.leaves(program)
    if max((math.prod(x.shape) for x in found), default=0) > MOST:
        return
    each = [smaller.at(x, partial(_counted, first=x + 1)) for x, leaf in enumerate(found) if "float" in leaf.dtype]
    for changes in (each, each[:1] if len(each) > 1 else []):
        made = reduce(lambda x, change: smaller.applied(change, x) or x, changes, program)
        pairs = zip(program.inputs, made.inputs, strict=True)
        made = with_values(made, [(old if SCALES.search(old.name) else new).value for old, new in pairs])
        if made != program:
            yield made


def _counted(leaf: Leaf, first: int) -> Leaf:
    if leaf.dtype not in ("float16", "float32", "float64"):
        return simpler.counted(leaf, first)
    return simpler.numbered(np.arange(math.prod(leaf.shape)).reshape(leaf.shape) + float(first), leaf.dtype)


def scaled(program: Program, first: Program) -> Iterator[Program]:
    """Yield the program with the scales of another one, as many as it has itself: those that a person wrote down."""
    given = {x.name: x.value for x in first.inputs if SCALES.search(x.name) and isinstance(x.value, Tensor)}
    pairs = [(x, given.get(x.name)) for x in program.inputs]
    held = [y if y and isinstance(x.value, Tensor) and y.shape == x.value.shape else x.value for x, y in pairs]
    if held != [x.value for x in program.inputs]:
        yield with_values(program, held)


def filled(program: Program, *, level: bool = True) -> Iterator[Program]:
    """Yield the program whose first tensor is 0-d or empty as one whose tensors are not: 0-d ones of floats, or the first
    alone, with an axis; 1, 2, 3 or 5 elements along axes that have none, and two that are infinite. Flags that are 0-d are no
    corner. Of several tensors that are all 0-d all have an axis then (but for flags), if they are to be `level`: operators such
    as `scatter_reduce` want one rank of all, and do not check it.

    What begins a maximum at the lowest float is wrong of nothing, and of a row of -inf, as a mask makes it. Where the first has
    elements, others of its dtype that have none get some.
    """
    found = smaller.leaves(program)
    if found and found[0].shape and 0 not in found[0].shape:
        yield from _beside(program, found[0].dtype)
        return
    level = level and len(found) > 1 and not any(x.shape for x in found)
    if not found or found[0].dtype == "bool":
        return

    def change(leaf: Leaf, size: int, floats: bool) -> Leaf:
        if not leaf.shape:
            return (
                forms.shaped(leaf, (1,))
                if (level and leaf.dtype != "bool") or floats == ("float" in leaf.dtype)
                else leaf
            )
        return forms.shaped(leaf, tuple(x or size for x in leaf.shape))

    made: dict[str, Program] = {}
    for size in (2, 1, 3, 5):
        to = partial(change, size=size, floats="float" in found[0].dtype)
        every = smaller.applied(partial(smaller.mapped, change=to), program)
        for x in (every, None if level else smaller.applied(smaller.at(0, to), program)):
            if x is not None and x != program:
                made[x.id] = x
    yield from made.values()
    first = next(iter(made.values()), None)
    if first is not None and 0 in found[0].shape and "float" in found[0].dtype:
        made_ = [smaller.at(0, partial(_full, number=x))(first) for x in (-np.inf, np.inf)]
        yield from (x for x in made_ if not simpler.finite(smaller.leaves(x)))  # some floats hold none


def _beside(program: Program, dtype: str) -> Iterator[Program]:
    """Yield the program with 2, 1, 3 or 5 elements along axes of tensors of a dtype that have none, and state no sizes."""

    def change(leaf: Leaf, size: int) -> Leaf:
        given = leaf.dtype == dtype and 0 in leaf.shape and not smaller.states(leaf)
        return forms.shaped(leaf, tuple(x or size for x in leaf.shape)) if given else leaf

    for size in (2, 1, 3, 5):
        made = smaller.applied(partial(smaller.mapped, change=partial(change, size=size)), program)
        yield from [made] if made is not None and made != program else []


def _full(leaf: Leaf, number: float) -> Leaf:
    return simpler.numbered(np.full(leaf.shape, number), leaf.dtype)


def occupied(program: Program) -> Iterator[Program]:
    """Yield the program with 2, 3, 4, ..., or 2 in place of each 0, in a tensor of integers that may state sizes and holds a 0;
    and a call with 1 or 2 in place of the 0 of parameters that may.

    For what computes nothing for it: that a shape has a 0 is a corner, which a compiler may get right alone.
    """
    for place, leaf in enumerate(smaller.leaves(program)):
        if isinstance(leaf, Tensor) and smaller.states(leaf) and not leaf.array().all():
            lengths = np.arange(2, 2 + math.prod(leaf.shape)).reshape(leaf.shape)
            for numbers in (lengths, np.where(leaf.array() == 0, 2, leaf.array())):
                made = simpler.numbered(numbers, leaf.dtype)
                yield smaller.at(place, partial(_other, made=made))(program)
    if isinstance(program, Instance):
        named = {x for x in program.params if not smaller.is_axes(x) and not simpler.is_type(x)}
        for number in (1, 2):
            params = {x: _without_0(y, number) if x in named else y for x, y in program.params.items()}
            if params != program.params:
                yield msgspec.structs.replace(program, params=params)


def _without_0(value: Value, number: int) -> Value:
    if isinstance(value, list | tuple) and all(type(x) is int for x in value):
        return type(value)(x or number for x in value)
    return number if type(value) is int and value == 0 else value


def _other(_: Leaf, made: Leaf) -> Leaf:
    return made


def sized(program: Program) -> list[Program]:
    """Return the program with axes of 1 made longer: of all tensors, of those of the first one's rank, and of the first alone;
    all axes, all but the first, the last ones, or all but the last. Of integers only the first tensor is: others may be
    indices.

    What was one number x, or x, x + 1, ..., goes on so. What has several elements already is no corner.
    """
    found = smaller.leaves(program)
    rank = len(found[0].shape) if found else 0
    if not found or max(math.prod(x.shape) for x in found if len(x.shape) == rank) >= FEW:
        return []

    def change(leaf: Leaf, sizes: tuple[int, ...], alone: bool) -> Leaf:
        if alone and len(leaf.shape) != rank:
            return leaf
        least = ((1,) * len(leaf.shape) + sizes)[len(sizes) :]
        shape = tuple(max(old, new) if old == 1 else old for old, new in zip(leaf.shape, least, strict=True))
        if leaf.dtype == "string":
            return lettered(shape)
        if "float" not in leaf.dtype and leaf is not found[0]:  # more indices, lengths, ... may be the same one twice
            return leaf
        if isinstance(leaf, Tensor) and leaf.dtype not in ("bool", "string"):
            numbers = simpler.numbers(leaf).ravel()
            if numbers.size and np.array_equal(numbers, numbers[:1] + np.arange(numbers.size), equal_nan=True):
                return simpler.numbered(numbers[0] + np.arange(math.prod(shape)).reshape(shape), leaf.dtype)
        return forms.shaped(leaf, shape)

    made: dict[str, Program] = {}
    for sizes in _sizes(rank):
        for alone in (False, True):
            all_of = smaller.applied(partial(smaller.mapped, change=partial(change, sizes=sizes, alone=alone)), program)
            first = smaller.applied(smaller.at(0, partial(change, sizes=sizes, alone=alone)), program)
            made.update((x.id, x) for x in (all_of, first) if x is not None and x != program and _few(x))
    return list(made.values())[:TRIED]


def lettered(shape: tuple[int, ...]) -> Tensor:
    """Return strings that differ, `a`, `b`, `c`, ...: where all are the same, whatever moves them is right."""
    letters = [chr(ord("a") + x % 26).encode() * (1 + x // 26) for x in range(math.prod(shape))]
    held = np.empty(len(letters), dtype=object)
    held[:] = letters
    return Tensor.of(held.reshape(shape), "string")


def _sizes(rank: int) -> Iterator[tuple[int, ...]]:
    """Yield lengths of axes, of all, of all but the first, of the last ones, or of all but the last: that may hold channels, or
    the parts of a number."""
    if rank > 3:
        yield (1, *(2,) * (rank - 1))
    yield from ((2, 3), (3, 2)) if rank > 1 else ()
    for count in (rank, min(rank, 2), 1):
        yield (2,) * count
    yield from [(*(2,) * (rank - 2), 3, 1)] if rank > 1 else ()


def _few(program: Program) -> bool:
    sizes = [math.prod(x.shape) for x in smaller.leaves(program)]
    return max(sizes) <= MOST and sum(sizes) <= 2 * MOST
