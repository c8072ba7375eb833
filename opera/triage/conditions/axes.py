"""Axes one at a time: a program in which one axis has another length, and what must be as long as it, and no other.

Of an input without elements that says which axis matters: the one that is summed, or the batch.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TypeAlias

from opera.programs.program import Instance, Program, with_params
from opera.programs.values import NO_DEFAULT, Value
from opera.triage.conditions.forms import TENSORS, shaped
from opera.triage.conditions.labels import Labelled
from opera.triage.conditions.peculiar import changed
from opera.triage.shrink import smaller
from opera.triage.shrink.smaller import Defaults, Leaf

Asked: TypeAlias = Callable[[Iterable[Program]], list[Labelled]]
Axis: TypeAlias = tuple[int, int]
"""Place of a tensor among those of a program, and place of an axis of it."""
ELEMENTS = 2
"""How long an axis is that was empty."""
TRIED = 8
"""Ways in which other axes may be as long that are tried at most, until a library takes one."""


def resized(program: Program, axis: Axis, target: int, defaults: Defaults) -> Iterator[Program]:
    """Yield programs in which an axis has another length: alone, with what else is as long, as few as may be first.

    That is the same axis of other tensors, one axis of another, all, and parameters without a default that state it: which of
    them must be as long only the library knows.
    """
    found = smaller.leaves(program)
    size, every = found[axis[0]].shape[axis[1]], [(n, at) for n, x in enumerate(found) for at in range(len(x.shape))]
    alike = [x for x in every if found[x[0]].shape[x[1]] == size and (x == axis or not _states(found, x[0]))]
    in_line = [x for x in alike if x[1] == axis[1]]
    pairs = [[axis, x] for x in alike if x[0] != axis[0]]
    made = dict[str, Program]()
    for axes in ([axis], in_line, *pairs, alike):
        one = _with_lengths(program, axes, target)
        for x in (_restated(one, size, target, defaults) if one is not None else None, one):
            if x is not None and x.id not in made and x.id != program.id:
                made[x.id] = x
                yield x


def apart(program: Program, asked: Asked, defaults: Defaults) -> list[Labelled]:
    """Return what is said of a program with an axis of length 0 once each such axis has elements, and once another is empty in
    its place; and of the program with an axis more before the others, which may be of a batch. Raises Spent."""
    if not isinstance(program, Instance):  # of several calls no input is told
        return []
    known = _apart(program, asked, defaults)
    rank = len(next((x.shape for x in smaller.leaves(program)), ()))
    batch = changed(lambda x: shaped(x, (ELEMENTS, *x.shape)) if len(x.shape) == rank else x, program)
    for x in asked([batch]) if batch is not None and known else ():
        known += [x, *_apart(x.program, asked, defaults)]
    return known


def _apart(program: Program, asked: Asked, defaults: Defaults) -> list[Labelled]:
    found = smaller.leaves(program)[:TENSORS]
    bare = [(n, at) for n, x in enumerate(found) for at, length in enumerate(x.shape) if not length]
    filled = _answered([resized(program, axis, ELEMENTS, defaults) for axis in bare], asked)
    known = [*filled]
    for x in filled:
        now = smaller.leaves(x.program)[:TENSORS]
        others = [(n, at) for n, leaf in enumerate(now) for at, y in enumerate(leaf.shape) if y and (n, at) not in bare]
        known += _answered(
            [resized(x.program, axis, 0, defaults) for axis in others if not _states(now, axis[0])], asked
        )
    return known


def _answered(rows: Sequence[Iterator[Program]], asked: Asked) -> list[Labelled]:
    """Return the first program of each row of which something is said."""
    known, left = list[Labelled](), list(rows)
    for _ in range(TRIED):
        made = [(row, x) for row in left if (x := next(row, None)) is not None]
        told = {x.program.id: x for x in asked([x for _, x in made])} if made else {}
        known += [x for name, x in told.items() if name not in {y.program.id for y in known}]
        left = [row for row, x in made if x.id not in told]
    return known


def _states(found: Sequence[Leaf], place: int) -> bool:
    return place > 0 and smaller.states(found[place])


def _restated(program: Program, size: int, target: int, defaults: Defaults) -> Program:
    """Return a program whose parameters that must be given, and are a number, are another one."""

    def params(call: Instance) -> dict[str, Value]:
        known = defaults.get(call.operator, {})
        wanted = (x for x, value in call.params.items() if type(value) is int and value == size)
        stating = {x for x in wanted if smaller.default(known, x) == NO_DEFAULT and not smaller.is_axes(x)}
        return {name: target if name in stating else value for name, value in call.params.items()}

    return with_params(program, params)


def _with_lengths(program: Program, axes: Collection[Axis], target: int) -> Program | None:
    """Return a program in which these axes have a length."""
    places = itertools.count()

    def change(leaf: Leaf) -> Leaf:
        place = next(places)
        own = {at for n, at in axes if n == place}
        return shaped(leaf, tuple(target if at in own else x for at, x in enumerate(leaf.shape))) if own else leaf

    return smaller.applied(lambda x: smaller.mapped(x, change), program)
