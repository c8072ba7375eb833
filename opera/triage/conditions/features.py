"""What a program of one call has that may be told of it, and another may lack: the language of `conditions.circumstances`.

Ranks, lengths and dtypes of its tensors, how lengths and numbers stand to each other, what is left out, which axes are named,
which numbers are special. All is a function of the program alone, but for `of_outputs`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from opera.programs.program import Instance, Program
from opera.programs.values import NO_DEFAULT, Tensor, Value
from opera.triage.conditions import deciding, dtypes, equal, listing, literals, peculiar, scalars, sizes
from opera.triage.conditions.lengths import (
    channel_axes,
    compared,
    lengths,
    named_axis,
    of_length_0,
    outgrown,
    sized,
)
from opera.triage.conditions.near import is_flag, tensor, unstated
from opera.triage.conditions.ordinary import differing
from opera.triage.conditions.representable import LOW, beyond, inexact, lost
from opera.triage.conditions.stated import NOT_BELOW, Feature, data, left_out, shape_of, value_of
from opera.triage.sentence import EMPTY
from opera.triage.shrink import simpler, smaller
from opera.triage.shrink.smaller import Defaults

PROMOTED, NOT_PROMOTED = "inputs promoted to ", "inputs not promoted to float32"
ALL = ("both inputs of rank ", "all inputs of rank ")


def features(
    program: Program,
    defaults: Defaults,
    failing: Sequence[Program] = (),
    made: Iterable[str] = (),
    channels: Mapping[str, int] | None = None,
    passing: Sequence[Program] = (),
) -> Iterator[Feature]:
    """Yield what a program has that may be told, in the order of preference.

    Args:
        failing, passing: Near programs that fail alike, and that pass; of which dtypes they are is told together.
        made: Dtypes in which something is computed, which may not hold all numbers of inputs.
        channels: Inputs that are documented to have an axis of channels, and which.
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
    names = [x for x in unstated(call, known) if x in known or x in call.params] if call is not None else []
    for several in (1, 2):
        for group in itertools.combinations(names, several):
            if call is not None and _given_alone(group, (call, *failing), passing):
                yield Feature(f"{' or '.join(group)}{deciding.LEFT_OUT}", partial(left_out, names=group))
    if _asks_for_more(program):
        yield Feature("an output beside the first", _asks_for_more)
    alone = [x for x in names if call is not None and _given_alone([x], (call, *failing), passing)]
    yield from itertools.starmap(Feature, listing.empty(call, alone) if call is not None else ())
    yield from itertools.starmap(Feature, listing.negative(program))
    yield from _tensors(call, passing) if call is not None else ()  # a number has no rank that could be lower
    yield from _ranks(program, passing)
    yield from itertools.starmap(Feature, listing.entries(call) if call is not None else ())
    yield from _axes(call, known) if call is not None else ()
    yield from _one_number(call) if call is not None else ()
    yield from _kinds(program, failing, passing)
    yield from _specials(program, made)
    yield from _strings(program)
    yield from equal.features(call, known) if call is not None else ()
    yield from sized(program)
    yield from compared(program)
    yield from outgrown(call, known) if call is not None else ()
    yield from itertools.starmap(Feature, listing.stated(program, next(iter(data(program)), "")))
    yield from named_axis(call, known) if call is not None else ()
    at = channel_axes(program, known, channels or {})
    yield from lengths(program, at)
    yield from _numbers(call, known, at) if call is not None else ()
    yield from _parities(call, failing) if call is not None else ()
    yield from itertools.starmap(Feature, listing.listed(program))
    if call is not None:
        told = (listing.unequal(call), listing.no_powers(call, next(iter(data(program)), "")))
        yield from itertools.starmap(Feature, itertools.chain(*told))
        yield from scalars.features(call, known)
        yield from sizes.border((call, *failing), passing)


def _empty(program: Program) -> Iterator[Feature]:
    """Yield whether something has no elements, whatever it is: that comes before all else."""
    feature = Feature(EMPTY, lambda x: any(0 in y.shape for y in smaller.leaves(x)))
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
    """Yield the parameters without a default that programs pass without: that one is given says less than what its value is."""
    for name in call.params:
        plain = smaller.default(known, name)
        lacking = any(left_out(x, [name]) for x in passing if isinstance(x, Instance))
        if plain in (None, NO_DEFAULT) and lacking and not left_out(call, [name]):
            yield Feature(f"{name}{deciding.IS_GIVEN}", partial(_is_given, name=name))


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
            yield Feature(f"{names[0]}={deciding.said(plain)}", same)
            value = value_of(x, names[0], known)
            other = partial(_has_another, name=names[0], value=value, known=known)
            yield Feature(f"{names[0]} other than {deciding.said(value)}", other)


def _has_value(program: Program, name: str, value: Value, known: Mapping[str, Value]) -> bool:
    return smaller.same(value_of(program, name, known), value)


def _has_another(program: Program, name: str, value: Value, known: Mapping[str, Value]) -> bool:
    return not _has_value(program, name, value, known)


def _asks_for_more(program: Program) -> bool:
    """Whether a program may return something beside its first output: what a library does not name is all returned."""
    return any(program.outputs[1:]) or not any(program.outputs)


# ---------------------------------------------------------------------- ranks, axes, dtypes, numbers


def _ranks(program: Program, passing: Sequence[Program]) -> Iterator[Feature]:
    """Yield the rank of the first tensor, or all of that rank; of several tensors by name."""
    rank, names = _rank(program), data(program)
    if rank is None:
        return
    shapes = [shape_of(program, x) for x in names]
    if len(names) > 1 and all(x is not None and len(x) == rank for x in shapes):
        many = ALL[0] if len(names) == 2 else ALL[1]
        yield Feature(f"{many}{rank}", partial(all_of_rank, names=names, rank=rank))
        every = [x.name for x in program.inputs if shape_of(program, x.name) is not None]
        if len(every) > len(names) and all_of_rank(program, every, rank):  # an index may have the rank of its data
            yield Feature(f"{ALL[1]}{rank}", partial(all_of_rank, names=every, rank=rank))
    named = f"{names[0]} of rank" if len(names) > 1 else peculiar.RANK
    yield Feature(f"{named} {rank}" if len(names) > 1 else peculiar.of_rank(rank), lambda x: _rank(x) == rank)
    if rank > 1:  # without an axis nothing is computed along one
        yield Feature(f"{named} {rank} or more", lambda x: (_rank(x) or 0) >= rank)
        yield Feature(f"{named} {rank} or less", lambda x: (_rank(x) or 0) <= rank)
    for least in range(rank if rank == 1 else rank - 1, 0, -1):
        yield Feature(f"{named} {least} or more", lambda x, least=least: (_rank(x) or 0) >= least)  # type: ignore[misc]
    if rank != 1:
        yield Feature(f"{names[0] if len(names) > 1 else 'an input'} of another rank than 1", lambda x: _rank(x) != 1)
    if len(names) > 1:  # one of them is enough
        for other in sorted({len(x) for x in (shape_of(y, names[0]) for y in passing) if x is not None}):
            made = Feature(f"an input of another rank than {other}", partial(_any_other_rank, names=names, rank=other))
            yield from [made] if made.holds(program) else ()
    yield from _unlike(program)
    for name, shape in zip(names[1:], shapes[1:], strict=True):
        if shape is not None:
            yield Feature(f"{name} of rank {len(shape)}", partial(all_of_rank, names=[name], rank=len(shape)))


def all_of_rank(program: Program, names: Sequence[str], rank: int) -> bool:
    """Whether all of these inputs are given and have so many axes."""
    return all((shape := shape_of(program, x)) is not None and len(shape) == rank for x in names)


def _unlike(program: Program) -> Iterator[Feature]:
    """Yield which tensors have another rank than the first one, or another shape."""
    held = {x.name: shape for x in program.inputs if (shape := shape_of(program, x.name)) is not None}
    first, *others = held or [""]
    for name in (x for x in others if held[x] != held[first]):
        order = (len(held[name]) > len(held[first])) - (len(held[name]) < len(held[first]))
        if order:
            side = f"{name} of {'higher' if order > 0 else 'lower'} rank than {first}"
            yield Feature(side, partial(_rank_order, one=name, other=first, order=order))
            yield Feature(f"{name} of another rank than {first}", partial(_unlike_ranks, one=name, other=first))
        yield Feature(f"{name} of another shape than {first}", partial(_unlike_shapes, one=name, other=first))


def _rank_order(program: Program, one: str, other: str, order: int) -> bool:
    first, second = shape_of(program, one), shape_of(program, other)
    return first is not None and second is not None and (len(first) - len(second)) * order > 0


def _unlike_ranks(program: Program, one: str, other: str) -> bool:
    return any(_rank_order(program, one, other, x) for x in (1, -1))


def _unlike_shapes(program: Program, one: str, other: str) -> bool:
    return shape_of(program, one) != shape_of(program, other)


def _any_other_rank(program: Program, names: Sequence[str], rank: int) -> bool:
    return not all_of_rank(program, names, rank)


def _rank(program: Program) -> int | None:
    found = smaller.leaves(program)
    return len(found[0].shape) if found else None


def _kinds(program: Program, failing: Sequence[Program], passing: Sequence[Program]) -> Iterator[Feature]:
    """Yield of which dtype the first input is: of a kind of those that fail, a float, an integer, one of those that fail; and
    which others are floats or integers.
    """
    own = _first_dtype(program)
    bad, good = ({_first_dtype(x) for x in of} - {""} for of in ((program, *failing), passing))
    of_kind = [dtypes.told(bad, good)] if own else []
    wide = [says for says in (dtypes.FLOATING, dtypes.INTEGER) if own in dtypes.KINDS[says]]
    for says in dict.fromkeys(filter(None, of_kind + wide if len(bad) > 1 else wide + of_kind)):
        yield Feature(says, partial(_has_dtype, says=says))
    yield from _promoted(program, failing, passing)
    if len(program.inputs) > 1 and _none_bool(program):
        yield Feature("no input of bool", _none_bool)
    for name in [x.name for x in program.inputs[1:]]:
        for says, part in ((f"a floating-point {name}", "float"), (f"an integer {name}", "int")):
            if part in getattr(tensor(program, name), "dtype", ""):
                yield Feature(says, partial(_has_kind, name=name, part=part))
        kinds, right = (
            frozenset(held.dtype for x in of if (held := tensor(x, name)) is not None)
            for of in ((program, *failing), passing)
        )
        if kinds and own not in kinds:  # one that is of the first one's dtype shares it
            words = dtypes.told(kinds, right)
            words = words.replace(" inputs", " type") if words.startswith(dtypes.OTHERS) else dtypes.either(kinds)
            words = f"a {words}" if words.startswith("numeric") else words
            yield Feature(f"{name} of {words}", partial(_is_of, name=name, kinds=kinds))


def _promoted(program: Program, failing: Sequence[Program], passing: Sequence[Program]) -> Iterator[Feature]:
    """Yield to which dtype all inputs are promoted, where some have several: float32 and float64 are computed in float64."""
    if all(len({y.dtype for y in smaller.leaves(x)}) < 2 for x in (program, *failing, *passing)):
        return
    names = [x.name for x in program.inputs]
    bad, good = ({_promoted_to(x, names) for x in of} for of in ((program, *failing), passing))
    words = dtypes.told(bad - {""}, good - {""})
    kinds = dtypes.members(words)
    if words and "" not in bad:
        says = f"{PROMOTED}{words.replace(' inputs', '')}" if words != dtypes.NO_FLOAT32 else NOT_PROMOTED
        yield Feature(says, lambda x: _promoted_to(x, names) in kinds)


def _promoted_to(program: Program, names: Sequence[str]) -> str:
    """Return to which dtype inputs are promoted; a float of Python's in the place of one of these makes a float of integers."""
    found = dtypes.promoted(program)
    numbers = [program.params.get(x) for x in names] if isinstance(program, Instance) else []
    whole = found in (*dtypes.INTEGERS, "bool")
    return "float32" if whole and any(isinstance(x, float) for x in numbers) else found


def _none_bool(program: Program) -> bool:
    return all(x.dtype != "bool" for x in smaller.leaves(program))


def _is_of(program: Program, name: str, kinds: frozenset[str]) -> bool:
    held = tensor(program, name)
    return held is None or held.dtype in kinds


def _has_dtype(program: Program, says: str) -> bool:
    return _first_dtype(program) in dtypes.members(says)


def _has_kind(program: Program, name: str, part: str) -> bool:
    held = tensor(program, name)  # what is left out is of no other kind
    return held is None or part in held.dtype


def _first_dtype(program: Program) -> str:
    return next((x.dtype for x in smaller.leaves(program)), "")


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
    call, rank = program.instances()[0], _rank(program) or 0
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


def _holds_special(program: Program, where: Callable[[Any], Any]) -> bool:
    return any(peculiar.has(x, where) for x in smaller.leaves(program))


def _tensors(program: Instance, passing: Sequence[Program]) -> Iterator[Feature]:
    """Yield which inputs are tensors, of which programs pass that have a number in their place: `x ** 2`; or all but such an
    integer."""
    for name in (x.name for x in program.inputs if tensor(program, x.name) is not None):
        numbers = [x.params[name] for x in passing if _is_number(x, name) and isinstance(x, Instance)]
        if numbers:
            yield Feature(f"a tensor for {name}", partial(_is_no_number, name=name, kind=(int, float)))
        if any(isinstance(x, int) for x in numbers):
            yield Feature(f"{name} no integer of Python's", partial(_is_no_number, name=name, kind=(int,)))
    for name in (x for x in program.params if _is_number(program, x)):
        if any(tensor(x, name) is not None for x in passing):
            yield Feature(f"a number for {name}", partial(_is_no_tensor, name=name))


def _is_number(program: Program, name: str, kind: tuple[type, ...] = (int, float)) -> bool:
    return isinstance(program, Instance) and isinstance(program.params.get(name), kind)


def _is_no_number(program: Program, name: str, kind: tuple[type, ...]) -> bool:
    return not _is_number(program, name, kind)


def _is_no_tensor(program: Program, name: str) -> bool:
    return tensor(program, name) is None


def _strings(program: Program) -> Iterator[Feature]:
    """Yield whether an input holds an empty string, or one of nothing but spaces."""
    for name in (x.name for x in program.inputs if getattr(tensor(program, x.name), "dtype", "") == "string"):
        for says, pattern in STRINGS.items():
            feature = Feature(f"{says} in {name}", partial(_holds_string, name=name, pattern=pattern))
            yield from [feature] if feature.holds(program) else []


STRINGS = {"an empty string": re.compile(rb""), "a string of spaces": re.compile(rb" +")}
"""What strings may be that decides."""


def _holds_string(program: Program, name: str, pattern: re.Pattern[bytes]) -> bool:
    held = tensor(program, name)
    strings = isinstance(held, Tensor) and held.dtype == "string"
    return strings and any(pattern.fullmatch(x) for x in held.array().ravel())  # type: ignore[union-attr]


# ---------------------------------------------------------------------- numbers


def _numbers(program: Instance, known: Mapping[str, Value], channels: Mapping[str, int]) -> Iterator[Feature]:
    """Yield how parameters that are whole numbers, or lists of such, stand to each other, and to the last axis, or channels."""
    names = [x for x in program.params if _counts(x, program.params[x]) and not is_flag(x, program.params[x], known)]
    first = next(iter(data(program)), "")
    for name in names:
        value = program.params[name]
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
