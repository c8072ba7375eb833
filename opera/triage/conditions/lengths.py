"""What may be told of the lengths of a program's tensors: how many elements, which axis, how they stand to each other."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from opera.programs.program import Instance, Program
from opera.programs.values import Value
from opera.triage.conditions.forms import tensor
from opera.triage.conditions.stated import Feature, Lengths, data, shape_of, value_of
from opera.triage.sentence import EMPTY, listed
from opera.triage.shrink import smaller

BROADCAST = " broadcast to a larger shape"
"""Ends how it is told that a tensor is, where what is computed has that shape."""
LONGER, CHANNELS, OF_LENGTH_0 = " longer than 1", "more than one input channel", " of length 0"
NOT_1 = " of another length than 1"
"""How it is told that an axis is longer, or has no elements."""
PARTS = {"the last two axes": slice(-2, None), "the last three axes": slice(-3, None), "the first two axes": slice(2)}
"""Axes of which one may have length 0, whichever it is."""
FEW, MANY = 3, 1 << 40
"""Tensors whose lengths are compared; and a length that no axis has."""


def sized(program: Program) -> Iterator[Feature]:
    """Yield whether a tensor has one element, or more."""
    for name in _measured(program):
        shape = shape_of(program, name) or ()
        if 0 not in shape:
            several = math.prod(shape) > 1
            words = f"more than one element in {name}" if several else f"one element in {name}"
            yield Feature(words, partial(_has_elements, name=name, several=several))


def _has_elements(program: Program, name: str, several: bool) -> bool:
    shape = shape_of(program, name)
    return shape is not None and (math.prod(shape) > 1 if several else math.prod(shape) == 1)


def _measured(program: Program) -> list[str]:
    """Return the inputs whose lengths say something: not those that state the lengths of others."""
    held = {x.name: leaf for x in program.inputs if (leaf := tensor(program, x.name)) is not None}
    alone = len(smaller.leaves(program)) == 1
    return [name for name, leaf in held.items() if alone or not smaller.states(leaf)]


def channel_axes(program: Program, known: Mapping[str, Value], stated: Mapping[str, int]) -> Mapping[str, int]:
    """Return which axis of the first input is that of channels, by its documentation or as `data_format` says."""
    name = next(iter(data(program)), "")
    if name in stated:
        return {name: stated[name]}
    held = next((x for x in known if x.rpartition(".")[2] == "data_format"), "")
    return {name: 1 if value_of(program, held, known) == "channels_first" else -1} if held and name else {}


def is_longer(says: str) -> bool:
    """Whether it is told that an axis is longer than 1."""
    return says.endswith((LONGER, NOT_1)) or says == CHANNELS


def lengths(program: Program, channels: Mapping[str, int]) -> Iterator[Feature]:
    """Yield that an axis has length 1, or more, counted from either end: a small program has other lengths by chance."""
    for name in _measured(program):
        shape = shape_of(program, name) or ()
        of = partial(tensor, name=name)
        if 1 in shape:
            yield Feature(f"an axis of length 1 of {name}", lambda x, of=of: 1 in getattr(of(x), "shape", ()))  # type: ignore[misc]
        for axis, length in enumerate(shape):
            own = name in channels and channels[name] % len(shape) == axis
            if own and length:
                least, most, words = (2, MANY, CHANNELS) if length > 1 else (1, 1, "one input channel")
                yield Feature(words, partial(_has_length, of=of, at=channels[name], least=least, most=most))
            ends = sorted((axis, axis - len(shape)), key=(-1).__ne__)  # the last axis is the last one of any rank
            for at in ends if not own else ():
                where = axis_at(at)
                if length == 1:
                    yield Feature(f"{where} of {name} of length 1", partial(_has_length, of=of, at=at, least=1, most=1))
                elif length > 1:
                    yield Feature(f"{where} of {name}{LONGER}", partial(_has_length, of=of, at=at, least=2))


def vectors(program: Program) -> Iterator[Feature]:
    """Yield whether an input after the first holds a number or a row of them, in whichever axis: a slope for each channel."""
    for name in _measured(program)[1:]:
        if 0 in (shape_of(program, name) or ()):
            continue
        row = _is_row(program, name, row=True)
        words = f"at most one axis of {name}{LONGER}" if row else f"several axes of {name}{LONGER}"
        yield Feature(words, partial(_is_row, name=name, row=row))


def _is_row(program: Program, name: str, row: bool) -> bool:
    shape = shape_of(program, name)
    return shape is not None and 0 not in shape and (sum(x > 1 for x in shape) < 2) is row


def of_length_0(program: Program) -> Iterator[Feature]:
    """Yield which axis of which input has length 0, counted from the first, and from the last; or that one of the last two or
    three has, which pictures and volumes have beside a batch and channels, or one of the first two."""
    for name in _measured(program):
        shape = shape_of(program, name) or ()
        of = partial(tensor, name=name)
        for axis in (n for n, length in enumerate(shape) if not length):
            for at in sorted((axis, axis - len(shape)), key=(-1).__ne__):
                holds = partial(_has_length, of=of, at=at, least=0, most=0)
                yield Feature(f"{axis_at(at)} of {name}{OF_LENGTH_0}", holds)
        for words, part in PARTS.items():
            if len(shape) > len(shape[part]) > 1 and 0 in shape[part]:
                yield Feature(f"one of {words} of {name}{OF_LENGTH_0}", partial(_has_bare, name=name, part=part))


def _has_bare(program: Program, name: str, part: slice) -> bool:
    return 0 in (shape_of(program, name) or ())[part]


def empty_axis(
    program: Instance,
    known: Mapping[str, Value],
    told: Iterable[Feature],
    found: list[Feature],
    failing: Sequence[Program],
    passing: Sequence[Program],
) -> list[Feature]:
    """Return what is told, of an empty input with the axis that has length 0 in its place, where one passes that is empty
    elsewhere, though it may be because nothing is computed of it."""
    bare = [x for x in passing if smaller.is_empty(x)]
    if not bare or any(x.says.endswith(OF_LENGTH_0) for x in (*told, *found)):
        return found
    every = [*named_axis(program, known, empty=True), *of_length_0(program)]
    fitting = [x for x in every if all(map(x.holds, failing)) and not all(map(x.holds, bare))]
    least = min(fitting, key=lambda x: sum(map(x.holds, bare)), default=None)
    return found if least is None else [*(x for x in found if x.says != EMPTY), least]


def named_axis(program: Instance, known: Mapping[str, Value], *, empty: bool = False) -> Iterator[Feature]:
    """Yield that the one axis that a parameter names, or its default, has length 1, or more; or, of what is `empty`, 0."""
    for name in dict.fromkeys(x for x in (*program.params, *known) if smaller.is_axes(x)):
        length = _length_named(program, name, known)
        if length is None or empty is (length > 0):
            continue
        says, least, most = (
            (OF_LENGTH_0, 0, 0) if empty else (LONGER, 2, MANY) if length > 1 else (" of length 1", 1, 1)
        )
        holds = partial(_is_named_so, name=name, known=known, least=least, most=most)
        yield Feature(f"the axis that {name} names{says}", holds)
        if length > 1:
            yield Feature(f"the axis that {name} names{NOT_1}", partial(_is_named_not_1, name=name, known=known))
        for count, number in program.params.items():
            if type(number) is int and number > 1 and not smaller.is_axes(count) and length % number:
                uneven = partial(_is_uneven, name=name, count=count, known=known)
                yield Feature(f"the axis that {name} names no multiple of {count}", uneven)


def _is_named_so(program: Program, name: str, known: Mapping[str, Value], least: int, most: int) -> bool:
    length = _length_named(program, name, known)
    return length is not None and least <= length <= most


def _is_named_not_1(program: Program, name: str, known: Mapping[str, Value]) -> bool:
    return _length_named(program, name, known) not in (None, 1)


def _is_uneven(program: Program, name: str, count: str, known: Mapping[str, Value]) -> bool:
    length, number = _length_named(program, name, known), value_of(program, count, known)
    return length is not None and type(number) is int and number > 0 and length % number != 0


def _length_named(program: Program, name: str, known: Mapping[str, Value]) -> int | None:
    value, found = value_of(program, name, known), smaller.leaves(program)
    one = value[0] if isinstance(value, list | tuple) and len(value) == 1 else value
    rank = len(found[0].shape) if found else 0
    return found[0].shape[one] if type(one) is int and -rank <= one < rank else None


def axis_at(at: int) -> str:
    """Return how an axis is told, counted from the first or, negative, from the last one."""
    return {-1: "the last axis", 0: "the first axis", -2: "the last axis but one"}.get(at, f"axis {at}")


def _has_length(program: Program, of: Callable[[Program], object], at: int, least: int, most: int = MANY) -> bool:
    shape = getattr(of(program), "shape", ())
    return -len(shape) <= at < len(shape) and least <= shape[at] <= most


def compared(program: Program) -> Iterator[Feature]:
    """Yield how lengths stand to each other: of two axes of one tensor, and of one axis of two tensors."""
    names = data(program)[:FEW]
    for name in names:
        words = (f"the last two axes of {name} equally long", f"the last two axes of {name} of different lengths")
        yield from _of_pair(program, partial(_pair, one=name, other=name, at=(-2, -1)), words)
    for one, other in itertools.combinations(names, 2):
        for at in range(-len(shape_of(program, one) or ()), 0):
            words = (
                f"{axis_at(at)} of {one} as long as that of {other}",
                f"{axis_at(at)} of {one} not as long as that of {other}",
            )
            yield from _of_pair(program, partial(_pair, one=one, other=other, at=(at, at)), words)


def broadcast(program: Program) -> Iterator[Feature]:
    """Yield which tensors are broadcast to the shape of all together, after the rules of NumPy: an importer may broadcast all
    others to that of one. Where several are, each alone and all of them."""
    found = [x.name for x in program.inputs if _is_broadcast(program, [x.name])]
    for names in [*([x] for x in found), *([found] if len(found) > 1 else [])]:
        yield Feature(f"{listed(names)}{BROADCAST}", partial(_is_broadcast, names=names))


def _is_broadcast(program: Program, names: Sequence[str]) -> bool:
    whole = broadcast_shape(program)
    shapes = [shape_of(program, x) for x in names]
    return whole is not None and all(x is not None and x != whole for x in shapes)


def broadcast_shape(program: Program) -> Lengths | None:
    """Return the shape to which all tensors are broadcast together, None where they are not."""
    try:
        return np.broadcast_shapes(*(x.shape for x in smaller.leaves(program)))
    except ValueError:
        return None


def outgrown(program: Instance, known: Mapping[str, Value]) -> Iterator[Feature]:
    """Yield that a tensor has a longer axis than another of its rank, any axis but the one that a parameter names, or any."""
    named = [x for x in dict.fromkeys((*program.params, *known)) if smaller.is_axes(x)]
    for one, other in itertools.permutations(data(program)[:FEW], 2):
        for name in (*named, ""):
            holds = partial(_outgrows, one=one, other=other, name=name, known=known)
            if holds(program):
                yield Feature(
                    f"{f'an axis other than {name}' if name else 'an axis'} of {one} longer than that of {other}", holds
                )


def _outgrows(program: Program, one: str, other: str, name: str, known: Mapping[str, Value]) -> bool:
    first, second = (shape_of(program, x) or () for x in (one, other))
    if len(first) != len(second):
        return False
    value = value_of(program, name, known) if name else None
    left = value % len(first) if type(value) is int and first else None
    return any(x > y for n, (x, y) in enumerate(zip(first, second, strict=True)) if n != left)


def _of_pair(program: Program, pair: Callable[[Program], Lengths | None], words: tuple[str, str]) -> Iterator[Feature]:
    found = pair(program)
    if found is not None:
        same = found[0] == found[1]

        def holds(x: Program) -> bool:
            made = pair(x)
            return made is not None and (made[0] == made[1]) is same

        yield Feature(words[0] if same else words[1], holds)


def _pair(program: Program, one: str, other: str, at: tuple[int, int]) -> Lengths | None:
    shapes = [shape_of(program, x) for x in (one, other)]
    if any(x is None or len(x) < -y for x, y in zip(shapes, at, strict=True)):
        return None
    return tuple(x[y] for x, y in zip(shapes, at, strict=True) if x is not None)
