"""Smaller tensors: sizes that become smaller wherever they occur, and axes that are dropped, with what states them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import msgspec
import numpy as np

from opera.programs.program import Instance, Operand, Program, with_params, with_values
from opera.programs.values import RandomTensor, Tensor, Value
from opera.triage.shrink import simpler
from opera.triage.shrink.smaller import (
    SIZED,
    Defaults,
    Leaf,
    Step,
    at,
    axes_input,
    axes_kept,
    integers,
    is_axes,
    leaves,
    mapped,
    states,
    within,
)


def sizes(program: Program, _: Defaults) -> Iterator[Step]:
    """Yield what makes dimensions smaller: wherever a size occurs, then axis by axis of each tensor. None becomes 0."""
    found = sorted({size for x in leaves(program) for size in x.shape if size > 1}, reverse=True)
    for target in (1, 2):
        for last in (False, True):
            yield partial(_all_sizes, most=target, last=last)
    stated = {x for call in program.instances() for value in call.params.values() for x in integers(value) if x > 1}
    bound = _bound(program)
    for size in (*found, *sorted(stated - set(found), reverse=True)):
        for target in smaller_sizes(size):
            for multiples in (False, True):
                for stating in (True,) if size in bound else (True, False):
                    yield partial(resized, size=size, target=target, multiples=multiples, stating=stating)
            yield partial(resized, size=size, target=target, stating=size in bound, begin=size - target)
        for begin in range(1, size - 1 if size <= simpler.FEW else 0):
            yield partial(resized, size=size, target=1, stating=size in bound, begin=begin)
    for axis in range(max((len(x.shape) for x in leaves(program)), default=0)):
        for place in (axis, -1 - axis):
            for last in (False, True):
                yield partial(mapped, change=partial(_in_line, axis=place, last=last))
    for place, leaf in enumerate(leaves(program)):
        for axis, size in enumerate(leaf.shape):
            for target in smaller_sizes(size):
                for begin in (0, size - target):
                    if target > 0 and size not in bound:
                        yield at(place, partial(_axis_cut, axis=axis, target=target, begin=begin))


def restated(program: Program) -> Iterator[Program]:
    """Yield the program with a smaller size wherever parameters state it, and no other tensors."""
    for size in sorted({x for call in program.instances() for y in call.params.values() for x in integers(y) if x > 1}):
        for target in smaller_sizes(size):

            def other(number: int, size: int = size, target: int = target) -> int:
                return target if number == size else number

            yield with_params(program, partial(_restated, other=other))


def _restated(call: Instance, other: Callable[[int], int]) -> dict[str, Value]:
    return {name: held if is_axes(name) else _replaced(held, other) for name, held in call.params.items()}


def fitted(program: Program) -> Iterator[Program]:
    """Yield the program with fewer elements along one axis of one tensor, as another value of a parameter may ask for."""
    for place, leaf in enumerate(leaves(program)):
        for axis, size in enumerate(leaf.shape):
            for target in range(1, min(size, simpler.FEW)):
                yield at(place, partial(_axis_cut, axis=axis, target=target, begin=0))(program)


def smaller_sizes(size: int) -> list[int]:
    """Return sizes to be tried for one: 1, 2, half, three quarters, ... one less, so that a limit in between is soon found."""
    parts = [size - (size >> n) for n in range(2, size.bit_length())]
    return [x for x in dict.fromkeys((1, 2, size // 2, *parts, size - 1)) if x < size]


def _bound(program: Program) -> set[int]:
    """Return the sizes that parameters state."""
    return {
        x
        for call in program.instances()
        for name, value in call.params.items()
        if SIZED.search(name.rpartition(".")[2])
        for x in integers(value)
        if x > 1
    }


def _all_sizes(program: Program, most: int, last: bool) -> Program:
    def change(leaf: Leaf) -> Leaf:
        return cut(leaf, [min(x, most) for x in leaf.shape], [max(0, x - most) * last for x in leaf.shape])

    return mapped(program, change)


def resized(
    program: Program, size: int, target: int, multiples: bool = False, stating: bool = False, begin: int = 0
) -> Program:
    """Return a program in which a size is another one wherever it is a dimension, or a `multiple` of it is.

    With `stating`, integers of parameters and of small integer inputs that are this size change as well, but no numbers of
    axes. What is kept of such a dimension begins at `begin`.
    """

    def other(number: int) -> int:
        if number == size:
            return target
        return number // size * target if multiples and number > size and number % size == 0 else number

    def change(leaf: Leaf) -> Leaf:
        found = cut(leaf, [other(x) for x in leaf.shape], [begin if x == size else 0 for x in leaf.shape])
        if stating and isinstance(found, Tensor) and states(found):
            return Tensor.of(simpler.integers(found, other), found.dtype)
        return found

    made = mapped(program, change)
    if not stating:
        return made
    made = axes_kept(program, made)
    return with_params(made, partial(_restated, other=other))


def _replaced(value: Value, other: Callable[[int], int]) -> Value:
    if isinstance(value, list | tuple):
        return type(value)(_replaced(x, other) for x in value)
    return other(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _in_line(leaf: Leaf, axis: int, last: bool) -> Leaf:
    """Leave the first or last entry of an axis, counted from either end, so that it is in line with those of other tensors."""
    if not -len(leaf.shape) <= axis < len(leaf.shape) or leaf.shape[axis] < 2:
        return leaf
    place = axis % len(leaf.shape)
    shape = [1 if x == place else size for x, size in enumerate(leaf.shape)]
    return cut(leaf, shape, [(size - 1) * last for size in leaf.shape])


def _axis_cut(leaf: Leaf, axis: int, target: int, begin: int) -> Leaf:
    if axis >= len(leaf.shape):
        return leaf
    shape = [min(x, target) if place == axis else x for place, x in enumerate(leaf.shape)]
    return cut(leaf, shape, [begin if place == axis else 0 for place in range(len(shape))])


def cut(leaf: Leaf, shape: Sequence[int], begins: Sequence[int]) -> Leaf:
    """Return so many elements of a tensor along each axis, from where they begin; no dimension becomes larger."""
    least = tuple(min(have, want) for have, want in zip(leaf.shape, shape, strict=True))
    if least == leaf.shape:
        return leaf
    if isinstance(leaf, RandomTensor):
        return msgspec.structs.replace(leaf, shape=least)
    first = [min(begin, have - want) for begin, have, want in zip(begins, leaf.shape, least, strict=True)]
    window = tuple(slice(begin, begin + want) for begin, want in zip(first, least, strict=True))
    return Tensor.of(leaf.array()[window], leaf.dtype)


def corners(program: Program) -> dict[tuple[str, str], bool]:
    """Return operator and name of each input and parameter that holds tensors, and whether one of these is 0-d or empty.

    Compilers often have a rule of their own for such, or none.
    """
    found: dict[tuple[str, str], bool] = {}
    for call in program.instances():
        for name, value in (*call.params.items(), *((x.name, x.value) for x in call.inputs)):
            if held := within(value):
                odd = any(not x.shape or 0 in x.shape for x in held)
                found[call.operator, name] = odd or found.get((call.operator, name), False)
    return found


def ranks(program: Program, _: Defaults) -> Iterator[Step]:
    """Yield what drops axes of size 1: of all tensors of a rank together, with what states an entry for each axis; and the
    last, first, ... axis of all that have several, whatever their ranks (classes have an axis that labels have not).

    Never of one tensor alone: many operators want one rank of all, and not every library checks that.
    """
    for rank in sorted({len(x.shape) for x in leaves(program)}, reverse=True):
        for axis in range(rank):
            for spatial in (0, 2):
                yield partial(_dropped, rank=rank, axis=axis, spatial=spatial)
    for axis in (-1, -2, 0, 1):
        yield partial(_dropped_in_line, axis=axis)


def _dropped_in_line(program: Program, axis: int) -> Program | None:
    """Drop an axis, counted from either end, of all tensors of two axes or more, if these differ in rank and have 1 there."""
    several = [x.shape for x in leaves(program) if len(x.shape) > 1]
    if len(set(map(len, several))) < 2 or any(not -len(x) <= axis < len(x) or x[axis] != 1 for x in several):
        return None
    return mapped(program, lambda leaf: _squeezed(leaf, axis % len(leaf.shape)) if len(leaf.shape) > 1 else leaf)


def _squeezed(leaf: Leaf, axis: int) -> Leaf:
    if axis >= len(leaf.shape) or leaf.shape[axis] != 1:
        return leaf
    return msgspec.structs.replace(leaf, shape=leaf.shape[:axis] + leaf.shape[axis + 1 :])


def _dropped(program: Program, rank: int, axis: int, spatial: int) -> Program | None:
    """Drop an axis of all tensors of a rank, and its entries in lists of as many numbers, or of one for each spatial axis.

    Where a list tells which axes there are entries for (`axes`), they are those of this axis, if it is one of them.
    """
    if rank - spatial < 1 or axis < spatial:
        return None
    count, place = rank - spatial, axis - spatial
    told = {tuple(x % rank for x in axes) for axes in _axes_told(program)}
    if told:
        axes = told.pop()
        count, place = len(axes), axes.index(axis) if axis in axes else -1
        if told or spatial or axes == (axis,):
            return None
    lengths = {count: (place,), 2 * count: (place, place + count)} if count > 1 and place >= 0 else {}

    def numbers(items: Sequence[Any]) -> list[Any]:
        gone = lengths.get(len(items), ())
        return [x for place, x in enumerate(items) if place not in gone]

    def moved(number: int) -> int:
        at = number % rank
        return at - (at > axis) - (rank - 1 if number < 0 else 0)

    def change(leaf: Leaf) -> Leaf:
        if len(leaf.shape) == rank:
            return _squeezed(leaf, axis)
        if isinstance(leaf, Tensor) and len(leaf.shape) == 1 and leaf.shape[0] in lengths:
            return Tensor.of(leaf.array()[numbers(range(leaf.shape[0]))], leaf.dtype)
        return leaf

    def lists(name: str, value: Value) -> Value:
        if isinstance(value, list | tuple) and len(value) == len(integers(value)):
            left = numbers(value) if len(value) in lengths else value
            return type(value)(map(moved, left) if is_axes(name) else left)
        if isinstance(value, int) and not isinstance(value, bool) and is_axes(name) and value > axis:
            return value - 1
        return value

    def renumbered(operand: Operand) -> Value:
        held = axes_input(operand)
        return Tensor.of(simpler.integers(held, moved), held.dtype) if held else operand.value

    program = mapped(program, change)
    program = with_values(program, list(map(renumbered, program.inputs)))
    return with_params(program, lambda call: {name: lists(name, x) for name, x in call.params.items()})


def _axes_told(program: Program) -> Iterator[list[int]]:
    """Yield the lists of axes that a program has as parameters and inputs."""
    for call in program.instances():
        yield from (
            integers(x) for name, x in call.params.items() if is_axes(name) and isinstance(x, list | tuple) and x
        )
    yield from (held.array().tolist() for operand in program.inputs if (held := axes_input(operand)))


def other_axes(program: Program, name: str) -> Iterator[Program]:
    """Yield a call along each other axis than the one that a parameter or an input of it names, its tensors turned with it."""
    if not isinstance(program, Instance) or not is_axes(name):
        return
    rank = len(next((x.shape for x in leaves(program)), ()))
    held = next((x.value for x in program.inputs if x.name == name), None)
    one = isinstance(held, Tensor) and states(held) and math.prod(held.shape) == 1
    named = int(held.array().item()) if isinstance(held, Tensor) and one else program.params.get(name)
    if type(named) is not int or not -rank <= named < rank:
        return
    for axis in (x for x in range(rank) if x != named % rank):
        turned = mapped(program, partial(_turned, rank=rank, axes=(named, axis)))
        if isinstance(held, Tensor):
            given = Tensor.of(np.full_like(held.array(), axis), held.dtype)
            yield with_values(turned, [given if x.name == name else x.value for x in turned.inputs])
        else:
            yield with_params(turned, lambda call, axis=axis: {**call.params, name: axis})  # type: ignore[misc]


def _turned(leaf: Leaf, rank: int, axes: tuple[int, int]) -> Leaf:
    """Return a tensor of a rank with two of its axes in each other's place; of a random one, its shape."""
    if len(leaf.shape) != rank:
        return leaf
    if isinstance(leaf, RandomTensor):
        order = np.arange(rank)
        order[list(axes)] = order[list(axes[::-1])]
        return msgspec.structs.replace(leaf, shape=tuple(leaf.shape[x] for x in order))
    return Tensor.of(np.ascontiguousarray(leaf.array().swapaxes(*axes)), leaf.dtype)
