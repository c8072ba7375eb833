"""Near programs of other shapes: ordinary ones, an axis more or less, lengths that are longer or shorter."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import msgspec
import numpy as np

from opera.programs.program import Instance, Program
from opera.programs.values import RandomTensor, Tensor
from opera.triage.conditions.peculiar import changed
from opera.triage.shrink import simpler, smaller
from opera.triage.shrink.smaller import Leaf

PLAIN = (2, 3, 4, 4)
"""Lengths that nobody thinks of as special: a batch of 2, 3 channels, a square picture."""


TENSORS = 3
"""Inputs of which each axis is changed."""


def counted(program: Program) -> Program:
    """Return a program with 1, 2, 3, ... in the floats of its first tensor, and of all of that rank: scales are no data."""
    rank = len(next((x.shape for x in smaller.leaves(program)), ()))
    return smaller.mapped(program, lambda leaf: counted_leaf(leaf) if len(leaf.shape) == rank else leaf)


def plain(program: Program) -> list[Program]:
    """Return programs as anybody writes them first: of one to three axes, or as many as there are, 2, 3, 4 long, or 3."""
    found = smaller.leaves(program)
    rank = len(found[0].shape) if found else 0
    own = [PLAIN[:rank], (3,) * rank] if 0 < rank <= len(PLAIN) else []

    def change(leaf: Leaf, shape: tuple[int, ...]) -> Leaf:
        data = len(leaf.shape) == rank and (leaf is found[0] or not smaller.states(leaf))
        return shaped(leaf, shape) if data else leaf

    shapes_of = dict.fromkeys((*own, (3,), PLAIN[:2], (3, 3), PLAIN[:3])) if found else ()
    made = (changed(partial(change, shape=x), program) for x in shapes_of)
    return [x for x in made if x is not None and x.id != program.id]


def ordinary(program: Program) -> Iterator[Program | None]:
    """Yield programs whose dimensions are 2 to 5 and differ, those of axes in line the same: from the front, and from the back;
    of all tensors, of those of the first one's rank, and of the first alone; and with all data of one such shape: who
    broadcasts one tensor may take another way where none is to be (a slope for each element)."""
    found = smaller.leaves(program)
    if not found:
        return
    rank = len(found[0].shape)

    def alike(leaf: Leaf) -> Leaf:
        shape = PLAIN[: max(2, rank)] if rank <= len(PLAIN) else found[0].shape
        return shaped(leaf, shape) if leaf is found[0] or not smaller.states(leaf) else leaf

    def change(leaf: Leaf, last: bool, most: int, alone: bool) -> Leaf:
        if (smaller.states(leaf) and leaf is not found[0]) or (alone and len(leaf.shape) != rank):
            return leaf
        order = range(len(leaf.shape))
        sizes = (2 + (len(leaf.shape) - 1 - x if last else x) for x in order)
        return shaped(leaf, tuple(max(old, min(new, most)) for old, new in zip(leaf.shape, sizes, strict=True)))

    for most in (5, 2):
        for alone in (False, True):
            for last in (False, True):
                yield changed(partial(change, last=last, most=most, alone=alone), program)
        yield smaller.applied(smaller.at(0, partial(change, last=False, most=most, alone=False)), program)
    if any(len(x.shape) != rank for x in found[1:]):
        yield changed(alike, program)


def ranks(program: Program) -> Iterator[Program | None]:
    """Yield programs with an axis of length 1 or 2 more before or after the others, or the first one less: of all tensors, of
    those of the first one's rank, and of the first alone."""
    found = smaller.leaves(program)
    if not found:
        return
    rank = len(found[0].shape)
    changes: list[Callable[[tuple[int, ...]], tuple[int, ...]]] = [
        lambda x: (2, *x), lambda x: (*x, 2), lambda x: (1, *x), lambda x: (*x, 1), lambda x: x[1:], lambda x: x[:-1],
    ]  # fmt: skip
    for change in changes:

        def all_of(leaf: Leaf, change: Callable[[tuple[int, ...]], tuple[int, ...]] = change) -> Leaf:
            return (
                leaf
                if smaller.states(leaf) and leaf is not found[0] and leaf.shape
                else shaped(leaf, change(leaf.shape))
            )

        def of_rank(leaf: Leaf, all_of: Callable[[Leaf], Leaf] = all_of) -> Leaf:
            return all_of(leaf) if len(leaf.shape) == rank else leaf

        yield changed(all_of, program)
        yield changed(of_rank, program)
        for place in range(min(len(found), TENSORS)):
            yield smaller.applied(smaller.at(place, all_of), program)


def emptied(program: Program) -> list[Program]:
    """Return the program without elements: the first axis of all tensors that have the most axes is of length 0, or all are."""
    found = [x for x in smaller.leaves(program) if not smaller.states(x)]
    rank = max((len(x.shape) for x in found), default=0)

    def change(leaf: Leaf, kept: int) -> Leaf:
        data = leaf.shape and len(leaf.shape) == rank and not smaller.states(leaf)
        return shaped(leaf, (0, *(kept and x for x in leaf.shape[1:]))) if data else leaf

    made = (changed(partial(change, kept=x), program) for x in (1, 0))
    return [x for x in made if x is not None and x.id != program.id]


def sizes(program: Program) -> Iterator[Program | None]:
    """Yield programs with an axis longer or shorter: of one tensor, of all where it is as long, and all axes that are."""
    found = smaller.leaves(program)[:TENSORS]
    for turn in range(4):
        for place, leaf in enumerate(found):
            for axis, size in enumerate(leaf.shape):
                targets = {0: (1, 2, 3, 4), 1: (2, 3, 4, 0)}.get(size, (1, size + 1, 2 * size, size + 2))

                def one(leaf: Leaf, axis: int = axis, size: int = size, target: int = targets[turn]) -> Leaf:
                    if axis >= len(leaf.shape) or leaf.shape[axis] != size or (smaller.states(leaf) and size):
                        return leaf
                    return shaped(leaf, (*leaf.shape[:axis], target, *leaf.shape[axis + 1 :]))

                def every(leaf: Leaf, size: int = size, target: int = targets[turn]) -> Leaf:
                    if size not in leaf.shape or smaller.states(leaf):
                        return leaf
                    return shaped(leaf, tuple(target if x == size else x for x in leaf.shape))

                yield changed(one, program)
                yield smaller.applied(smaller.at(place, one), program)
                yield changed(every, program)


def each_counted(program: Program) -> Iterator[Program | None]:
    for place in range(len(smaller.leaves(program))):
        yield smaller.applied(smaller.at(place, counted_leaf), program)


def counted_leaf(leaf: Leaf) -> Leaf:
    return simpler.counted(leaf) if "float" in leaf.dtype else leaf


def shaped(leaf: Leaf, shape: tuple[int, ...]) -> Leaf:
    """Return a tensor of another shape: elements go on as they begin (1, 2, 3, ...), or are repeated."""
    if not isinstance(leaf, Tensor):
        return msgspec.structs.replace(leaf, shape=shape)
    held = leaf.array()
    if leaf.dtype == "string" or shape == leaf.shape:
        return leaf
    if not held.size:
        return counted_leaf(simpler.numbered(np.ones(shape), leaf.dtype))
    made = Tensor.of(np.resize(held, shape), leaf.dtype)
    return counted_leaf(made) if counted_leaf(leaf) == leaf else made


def tensor(program: Program, name: str) -> Leaf | None:
    """Return the tensor that an input of a call is, None where it is none; what several calls name tells nobody."""
    if not isinstance(program, Instance):
        return None
    value = next((x.value for x in program.inputs if x.name == name), None)
    return value if isinstance(value, Tensor | RandomTensor) else None
