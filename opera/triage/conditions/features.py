"""What a program of one call has that may be told of it, and another may lack: the language of `conditions.circumstances`.

Ranks, lengths and dtypes of its tensors, how lengths and numbers stand to each other, what is left out, which axes are named,
which numbers are special. All is a function of the program alone, but for `of_outputs`.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from opera.programs.program import Instance, Program
from opera.programs.values import NO_DEFAULT, Tensor, Value
from opera.triage.conditions import (
    elementwise,
    equal,
    kinds,
    listing,
    literals,
    peculiar,
    ranks,
    removable,
    scalars,
    sizes,
    varied,
    windows,
)
from opera.triage.conditions.arguments import is_flag, unstated
from opera.triage.conditions.edges import PLAIN, Edge
from opera.triage.conditions.forms import tensor
from opera.triage.conditions.lengths import (
    broadcast,
    channel_axes,
    compared,
    lengths,
    named_axis,
    of_length_0,
    outgrown,
    sized,
    vectors,
)
from opera.triage.conditions.ordinary import differing
from opera.triage.conditions.representable import LOW, beyond, inexact, lost
from opera.triage.conditions.stated import BEYOND_DTYPE, NOT_BELOW, WHOLE, Feature, data, left_out, shape_of, value_of
from opera.triage.sentence import EMPTY
from opera.triage.shrink import simpler, smaller
from opera.triage.shrink.smaller import Defaults

BESIDE_FIRST, PLACES = "an output beside the first", ("first", "second", "third", "fourth", "fifth", "sixth")
"""How it is told which outputs are asked for."""


def features(
    program: Program,
    defaults: Defaults,
    failing: Sequence[Program] = (),
    made: Iterable[str] = (),
    channels: Mapping[str, int] | None = None,
    passing: Sequence[Program] = (),
    odd: Iterable[Program] = (),
) -> Iterator[Feature]:
    """Yield what a program has that may be told, in the order of preference.

    Args:
        failing, passing: Near programs that fail alike, and that pass; of which dtypes they are is told together.
        made: Dtypes in which something is computed, which may not hold all numbers of inputs.
        channels: Inputs that are documented to have an axis of channels, and which.
        odd: Near programs that fail in another respect: no kind of dtype is told that has theirs.
    """
    known = defaults.get(program.operator, {})
    call = program if isinstance(program, Instance) else None
    if call is not None and not call.inputs:
        yield Feature("no tensor given", lambda x: not x.inputs)
    yield from literals.features(program, failing)
    yield from _empty(program)
    yield from named_axis(call, known, empty=True) if call is not None else ()
    yield from of_length_0(program)
    yield from _given(call, known, passing) if call is not None else ()
    yield from _unnamed(call) if call is not None else ()
    names = [x for x in unstated(call, known) if x in known or x in call.params] if call is not None else []
    for several in (1, 2):
        for group in itertools.combinations(names, several):
            if call is not None and _given_alone(group, (call, *failing), passing):
                yield Feature(f"{' or '.join(group)}{removable.LEFT_OUT}", partial(left_out, names=group))
    if _asks_for_more(program):
        yield Feature(BESIDE_FIRST, _asks_for_more)
        yield from _outputs(program, failing)
    alone = [x for x in names if call is not None and _given_alone([x], (call, *failing), passing)]
    calls = [x for x in failing if isinstance(x, Instance)]
    yield from itertools.starmap(Feature, listing.zero(alone, calls))
    yield from itertools.starmap(Feature, listing.beside_later(call, alone, known, calls) if call is not None else ())
    yield from itertools.starmap(
        Feature,
        listing.empty(call, alone, [x for x, y in known.items() if y == NO_DEFAULT]) if call is not None else (),
    )
    yield from itertools.starmap(Feature, listing.several(call, failing) if call is not None else ())
    yield from itertools.starmap(Feature, listing.negative(program))
    yield from kinds.of_python(call, passing) if call is not None else ()  # a number has no rank that could be lower
    yield from ranks.features(program, passing)
    yield from itertools.starmap(Feature, listing.entries(call) if call is not None else ())
    yield from _axes(call, known) if call is not None else ()
    yield from _one_number(call) if call is not None else ()
    yield from kinds.features(program, failing, passing, odd)
    yield from _specials(program, made)
    yield from _out_of_range(call, known, failing, passing) if call is not None else ()
    yield from kinds.strings(program)
    yield from elementwise.features(call, known) if call is not None else ()
    yield from equal.features(call, known) if call is not None else ()
    yield from broadcast(program)
    yield from vectors(program)
    yield from sized(program)
    yield from compared(program)
    yield from outgrown(call, known) if call is not None else ()
    yield from windows.features(call, known) if call is not None else ()
    yield from itertools.starmap(Feature, listing.fewer(program, next(iter(data(program)), "")))
    yield from itertools.starmap(Feature, listing.stated(program, next(iter(data(program)), "")))
    yield from named_axis(call, known) if call is not None else ()
    at = channel_axes(program, known, channels or {})
    yield from lengths(program, at)
    yield from _numbers(call, known, at) if call is not None else ()
    yield from _parities(call, failing) if call is not None else ()
    yield from itertools.starmap(Feature, listing.listed(program))
    if call is not None:
        yield from itertools.starmap(Feature, listing.zeros(call, next(iter(data(program)), "")))
        told = (listing.unequal(call), listing.no_powers(call, next(iter(data(program)), "")))
        yield from itertools.starmap(Feature, itertools.chain(*told))
        yield from scalars.features(call, known)
        yield from scalars.of_zero(call, known, [x for x in failing if isinstance(x, Instance)])
        yield from sizes.border((call, *failing), passing)
    zero = Feature("0 in an input", partial(_holds_special, where=peculiar.TOLD["0"]))
    yield from [zero] if zero.holds(program) else []  # which most programs hold


def _empty(program: Program) -> Iterator[Feature]:
    """Yield whether something has no elements, whatever it is: that comes before all else."""
    feature = Feature(EMPTY, smaller.is_empty)
    if feature.holds(program):
        yield feature


def _given_alone(names: Sequence[str], failing: Sequence[Program], passing: Sequence[Program]) -> bool:
    """Whether one of the programs that pass differs from one that fails in what is given of these names alone: else whoever
    gives it differs in something that may be what decides.
    """

    def rest(x: Instance) -> object:
        given = [(y.name, y.value) for y in x.inputs if y.name not in names and y.value is not None]
        return (
            given,
            {key: value for key, value in x.params.items() if key not in names and value is not None},
            x.outputs,
        )

    kept = [rest(x) for x in failing if isinstance(x, Instance)]
    return any(rest(x) in kept for x in passing if isinstance(x, Instance) and not left_out(x, names))


def _given(call: Instance, known: Mapping[str, Value], passing: Sequence[Program]) -> Iterator[Feature]:
    """Yield the parameters without a default that programs pass without: that one is given says less than what its value is;
    and those that are given at their default, by which a library may choose another overload: `any(x, keepdim=False)`."""
    for name, value in call.params.items():
        plain = smaller.default(known, name)
        lacking = any(left_out(x, [name]) for x in passing if isinstance(x, Instance))
        if plain in (None, NO_DEFAULT) and lacking and not left_out(call, [name]):
            yield Feature(f"{name}{removable.IS_GIVEN}", partial(_is_given, name=name))
        if (
            plain not in (None, NO_DEFAULT)
            and smaller.same(value, plain)
            and not all(_is_written(x, name) for x in passing)
        ):
            yield Feature(f"{name}{removable.IS_GIVEN}", partial(_is_written, name=name))


def _is_written(program: Program, name: str) -> bool:
    return isinstance(program, Instance) and name in program.params


def _unnamed(call: Instance) -> Iterator[Feature]:
    """Yield the inputs that an empty name leaves out, as ONNX has it where others follow: an importer may make a node of it."""
    for name in [x.name for x in call.inputs if x.value is None and call.outputs]:
        yield Feature(f"{name} left out by an empty name", partial(_is_unnamed, name=name))


def _is_unnamed(program: Program, name: str) -> bool:
    return any(x.name == name and x.value is None for x in program.inputs)


def _is_given(program: Program, name: str) -> bool:
    return not left_out(program, [name])


def as_left(program: Instance, defaults: Defaults, passing: Sequence[Program]) -> Iterator[Feature]:
    """Yield the defaults of parameters of which another value alone makes a program pass: floats are refused with `fmod=0`."""
    known = defaults.get(program.operator, {})
    for x in passing:
        alike = [y.shape for y in smaller.leaves(x)] == [y.shape for y in smaller.leaves(program)]
        names = differing(program, x) if alike and isinstance(x, Instance) else []
        plain = smaller.default(known, names[0]) if len(names) == 1 else NO_DEFAULT
        if plain not in (None, NO_DEFAULT) and smaller.same(value_of(program, names[0], known), plain):
            same = partial(_has_value, name=names[0], value=plain, known=known)
            yield Feature(f"{names[0]}={removable.said(plain)}", same)
            value = value_of(x, names[0], known)
            yield from _on_its_side(names[0], plain, value, known)
            other = partial(_has_another, name=names[0], value=value, known=known)
            yield Feature(f"{names[0]} other than {removable.said(value)}", other)


def _on_its_side(name: str, plain: Value, passes: Value, known: Mapping[str, Value]) -> Iterator[Feature]:
    """Yield that a number is less, or more, than one that passes, of whose other side its default is; nothing of axes, types
    and flags."""
    named = smaller.is_axes(name) or simpler.is_type(name) or is_flag(name, plain, known)
    if type(plain) is type(passes) is int and plain != passes and not named:
        says, holds = (f"{name} > {passes}", int.__gt__) if plain > passes else (f"{name} < {passes}", int.__lt__)
        yield Feature(says, partial(_compares, name=name, number=passes, holds=holds, known=known))
    if isinstance(plain, float) and isinstance(passes, float) and plain != passes:
        below, above = (passes, np.inf) if passes < plain else (-np.inf, passes)
        made = Edge(PLAIN, below, plain, plain, above).of(name, partial(value_of, name=name, known=known))
        yield from [made] if made is not None else []


def _compares(
    program: Program, name: str, number: int, holds: Callable[[int, int], bool], known: Mapping[str, Value]
) -> bool:
    value = value_of(program, name, known)
    return type(value) is int and holds(value, number)


def _has_value(program: Program, name: str, value: Value, known: Mapping[str, Value]) -> bool:
    return smaller.same(value_of(program, name, known), value)


def _has_another(program: Program, name: str, value: Value, known: Mapping[str, Value]) -> bool:
    return not _has_value(program, name, value, known)


def _asks_for_more(program: Program) -> bool:
    """Whether a program may return something beside its first output: what a library does not name is all returned."""
    return any(program.outputs[1:]) or not any(program.outputs)


def _outputs(program: Program, failing: Sequence[Program]) -> Iterator[Feature]:
    """Yield which outputs beside the first are asked for, by their places: one of them, or one of two. A call that names none
    returns all."""
    most = max(len(x.outputs) for x in (program, *failing))
    for several in (1, 2):
        for places in itertools.combinations(range(1, min(most, len(PLACES))), several):
            says = f"a {' or '.join(PLACES[x] for x in places)} output"
            feature = Feature(says, partial(_asks_for_one, places=places))
            yield from [feature] if feature.holds(program) else []


def _asks_for_one(program: Program, places: Sequence[int]) -> bool:
    return not any(program.outputs) or any(any(program.outputs[x : x + 1]) for x in places)


# ---------------------------------------------------------------------- axes and special numbers


def _one_number(program: Instance) -> Iterator[Feature]:
    """Yield which parameters that name axes name one, by a number and not by a list: it may be another overload."""
    for name in (x for x, value in program.params.items() if smaller.is_axes(x) and type(value) is int):
        yield Feature(f"an integer {name}", partial(_names_one, name=name))


def _names_one(program: Program, name: str) -> bool:
    return isinstance(program, Instance) and type(program.params.get(name)) is int


def _axes(program: Instance, known: Mapping[str, Value]) -> Iterator[Feature]:
    for name in dict.fromkeys(_axes_named(program)):
        yield from (x for x in naming(name, known) if x.holds(program))
        behind = Feature(f"{name} < 0", partial(_is_negative, name=name))
        if behind.holds(program):
            yield behind


def _is_negative(program: Program, name: str) -> bool:
    """Whether a parameter names one axis, counted from the last."""
    value = program.instances()[0].params.get(name)
    return type(value) is int and value < 0


def naming(name: str, known: Mapping[str, Value]) -> Iterator[Feature]:
    """Yield which axes a parameter names, or its default, from whichever end they are counted."""
    for says, holds in NAMED.items():
        yield Feature(f"{name} {says}", partial(_names, name=name, holds=holds, known=known))


NAMED: Mapping[str, Callable[[set[int], int], bool]] = {
    "naming all axes": lambda axes, rank: axes == set(range(rank)),
    "naming the first axis": lambda axes, _: axes == {0},
    "naming the last axis": lambda axes, rank: axes == {rank - 1},
}
"""Which axes a parameter names."""


def _axes_named(program: Instance) -> list[str]:
    return [x for x in program.params if smaller.is_axes(x)] + [x.name for x in program.inputs if smaller.axes_input(x)]


def _names(program: Program, name: str, holds: Callable[[set[int], int], bool], known: Mapping[str, Value]) -> bool:
    call, rank = program.instances()[0], ranks.rank_of(program) or 0
    held = next((listed for x in call.inputs if x.name == name and (listed := smaller.axes_input(x))), None)
    plain = smaller.default(known, name)
    axes = held.array().tolist() if held is not None else smaller.integers(call.params.get(name, plain))
    return rank > 0 and bool(axes) and holds({x % rank for x in axes}, rank)


def _specials(program: Program, made: Iterable[str]) -> Iterator[Feature]:
    """Yield which special numbers an input holds, and which a dtype in which something is computed does not hold."""
    kinds = {f"{says} in an input": where for says, where in (peculiar.SPECIAL | peculiar.ENDS).items()}
    for dtype in (x for x in made if x in LOW or re.fullmatch(r"u?int\d+|float\d+", x)):
        kinds[f"a number beyond {dtype} in an input"] = partial(beyond, dtype=dtype)
        kinds[f"NaN or a number beyond {dtype} in an input"] = partial(lost, dtype=dtype)
        kinds[f"a number that {dtype} does not hold in an input"] = partial(inexact, dtype=dtype)
    for says, where in kinds.items():
        feature = Feature(says, partial(_holds_special, where=where))
        if feature.holds(program):
            yield feature


def _out_of_range(
    program: Instance, known: Mapping[str, Value], failing: Sequence[Program], passing: Sequence[Program]
) -> Iterator[Feature]:
    """Yield which parameters are numbers less or more than all integers of the first tensor's dtype, or integers that are so.

    A negative integer may count from the end, unless one is too little in a program that fails; and a fraction is cut off where
    a program passes with one that is too much by less than 1.
    """
    first = next(iter(data(program)), "")
    for name in (x for x in program.params if not smaller.is_axes(x) and not simpler.is_type(x)):
        side = partial(_side, name=name, first=first, known=known)
        cut = any(side(x) and not side(x, cut=True) for x in passing)
        counts = not any(type(value_of(x, name, known)) is int and side(x) < 0 for x in (program, *failing))
        for says, of in ((name, (int, float)), (f"{WHOLE}{name}", (int,))):
            holds = partial(_is_beyond, side=partial(side, cut=cut), name=name, known=known, counts=counts, of=of)
            feature = Feature(f"{says}{BEYOND_DTYPE}{first}", holds)
            yield from [feature] if feature.holds(program) else []


def _is_beyond(
    program: Program,
    side: Callable[[Program], int],
    name: str,
    known: Mapping[str, Value],
    counts: bool,
    of: tuple[type, ...],
) -> bool:
    kind, at = type(value_of(program, name, known)), side(program)
    return kind in of and (at > 0 or (at < 0 and not (counts and kind is int)))


def _side(program: Program, name: str, first: str, known: Mapping[str, Value], cut: bool = False) -> int:
    """Return whether a number is less (-1) or more (1) than all integers of the first tensor's dtype, perhaps with its fraction
    cut off."""
    value, ends = value_of(program, name, known), varied.ends(getattr(tensor(program, first), "dtype", ""))
    if not ends or isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    whole = math.trunc(value) if cut and isinstance(value, float) and math.isfinite(value) else value
    return int(whole > max(ends)) - int(whole < min(ends))


def _holds_special(program: Program, where: Callable[[Any], Any]) -> bool:
    return any(peculiar.has(x, where) for x in smaller.leaves(program))


# ---------------------------------------------------------------------- numbers


def _numbers(program: Instance, known: Mapping[str, Value], channels: Mapping[str, int]) -> Iterator[Feature]:
    """Yield how parameters that are whole numbers, or lists of such, stand to each other, and to the last axis, or channels."""
    names = [x for x in program.params if _counts(x, program.params[x]) and not is_flag(x, program.params[x], known)]
    first = next(iter(data(program)), "")
    for name in names:
        value = program.params[name]
        if value == 0 and smaller.default(known, name) != 0:
            yield Feature(f"{name}=0", partial(_has_value, name=name, value=0, known=known))
        required = smaller.default(known, name) == NO_DEFAULT or smaller.SIZED.search(name)
        if type(value) is int and required and shape_of(program, first):
            yield from _as_long(program, name, first, known, channels.get(first))
    others = [x for x, y in known.items() if x not in names and _counts(x, y) and x not in program.params]
    for one, other in itertools.permutations([*names, *others], 2):
        feature = Feature(f"{one}{NOT_BELOW}{other}", partial(_not_below, one=one, other=other, known=known))
        if one in names and feature.holds(program):
            yield feature


def _counts(name: str, value: Value) -> bool:
    """Whether a value is a whole number that counts something, or some of them."""
    given = value if isinstance(value, list | tuple) else [value]
    states = smaller.is_axes(name) or simpler.is_type(name)
    return bool(given) and not states and all(type(x) is int and x >= 0 for x in given)


def _as_long(
    program: Instance, name: str, first: str, known: Mapping[str, Value], channels: int | None
) -> Iterator[Feature]:
    at = -1 if channels is None else channels

    def same(x: Program) -> bool | None:
        value, shape = value_of(x, name, known), shape_of(x, first) or ()
        return value == shape[at] if isinstance(value, int) and -len(shape) <= at < len(shape) else None

    own = same(program)
    if own is None:
        return
    words = f"{name} {'' if own else 'not '}the length of the last axis of {first}"
    if channels is not None:
        words = f"{'' if own else 'not '}as many input channels as {name}"
    yield Feature(words, lambda x: same(x) is own)


def _parities(program: Instance, failing: Sequence[Program]) -> Iterator[Feature]:
    """Yield that an integer of an input beside the first is odd, or even, where several such fail alike; not of int64, which
    sizes, axes and indices have: these are counted, not added."""
    for name in [x.name for x in program.inputs[1:] if re.fullmatch("u?int(8|16|32)", getattr(x.value, "dtype", ""))]:
        for odd, says in ((1, f"an odd {name}"), (0, f"an even {name}")):
            feature = Feature(says, partial(_has_odd, name=name, odd=odd))
            seen = {y for x in (program, *failing) for y in _numbers_of(x, name) if y % 2 == odd}
            if feature.holds(program) and len(seen) > 1:
                yield feature


def _numbers_of(program: Program, name: str) -> list[float]:
    held = tensor(program, name)
    known = isinstance(held, Tensor) and re.fullmatch(r"u?int\d+|b?float(16|32|64)", held.dtype)
    return simpler.numbers(held).ravel().tolist() if isinstance(held, Tensor) and known else []


def _has_odd(program: Program, name: str, odd: int) -> bool:
    return any(x % 2 == odd for x in _numbers_of(program, name))


def _not_below(program: Program, one: str, other: str, known: Mapping[str, Value]) -> bool:
    held = [smaller.integers(value_of(program, x, known)) for x in (one, other)]
    if not all(held):
        return False
    pairs = itertools.zip_longest(*held, fillvalue=None)
    ends = [x[-1] for x in held]  # a number stands for a list of it
    return any((x if x is not None else ends[0]) >= (y if y is not None else ends[1]) for x, y in pairs)
