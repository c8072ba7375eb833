"""In which circumstances a program fails: programs near it are asked, and what is told contradicts none of them.

What decides of one small program (`opera.triage.deciding`) may hold of it alone, and need not be all. So programs near it are
labelled: they fail as it does, or pass; all else says nothing. Of what decides, what another failing program lacks is told no
more, or told more widely (`depth_multiplier > 1` for `=6`). Where programs that have all of it pass, the simplest thing is
added that all failing ones have and these lack: a rank, an input or a parameter left out, a length of an axis of an input or
an output, which axis is named. After Kampmann et al., When to Cry Wolf: Learning Circumstances of Program Behavior (Alhazen),
ESEC/FSE 2020, and Gopinath et al., Abstracting Failure-Inducing Inputs (DDSet), ISSTA 2020.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, NamedTuple, Protocol, TypeAlias, cast

from opera.programs.program import Instance, Program
from opera.programs.values import NO_DEFAULT, Tensor, Value
from opera.programs.verdicts import INCONSISTENT, PASS, UNSTABLE
from opera.triage import deciding, peculiar, simpler, smaller
from opera.triage.alike import same_values
from opera.triage.deciding import Decided
from opera.triage.labels import Label, Labelled, labelled
from opera.triage.minimise import Spent
from opera.triage.near import tensor, unstated
from opera.triage.ordinary import differing, given_names
from opera.triage.sentence import EQUAL, LENGTH_ONE, LIMIT, is_relation
from opera.triage.smaller import Defaults

Shapes: TypeAlias = Callable[[Program], "list[tuple[int, ...]] | None"]
"""Returns the shapes of the outputs that a library computes, None where it computes none. Raises Spent."""
LONGER = " longer than 1"
OUTPUTS, MOOT = 24, 8
"""Near programs of which outputs are asked for, and passing ones of which it is asked whether what decides does anything."""


class Feature(NamedTuple):
    """Something that a program has or has not, and how it is told."""

    says: str
    holds: Callable[[Program], bool]


class Borne(NamedTuple):
    """What is told of a program, once near ones were asked.

    Attributes:
        decided: What decided before, without what a near program contradicts.
        circumstances: What else all near programs that fail have, and of those that have what decided none that passes.
        failing, passing: Near programs that fail alike, and that pass.
        exact: Whether all that have all that is told fail, and all others pass.
    """

    decided: Decided
    circumstances: tuple[str, ...] = ()
    failing: int = 0
    passing: int = 0
    exact: bool = True


class Asking(deciding.Look, Protocol):
    """Tells what programs show, and whether they fail alike."""

    def label(self, programs: Sequence[Program]) -> list[bool | None]:
        """Return of each whether it fails alike, None where it neither does so nor passes. Raises Spent."""

    def seen(self) -> list[Labelled]:
        """Return what is known of programs already: the member that was reduced, and what a search has asked about."""

    def shapes(self, program: Program) -> list[tuple[int, ...]] | None:
        """Return the shapes of the expected outputs. Raises Spent."""

    def reference(self, program: Program) -> list[Value] | None:
        """Return what the library computes for a program, None where it rejects it. Raises Spent."""


def of(ask: Asking, program: Program, defaults: Defaults, decided: Decided) -> Borne:
    """Return what near programs leave of what decides, and what else must be so.

    What is drawn, or varies, passes where it does so in several processes, and by the law that is declared of it. That a
    program passes which does not ask for the wrong output tells nothing.
    """
    try:
        chance = deciding.by_chance(ask, program)
        [shown] = ask.look([program])
    except Spent:
        return Borne(decided)

    def label(programs: Sequence[Program]) -> list[bool | None]:
        found = ask.label(programs)
        if chance:  # what draws nothing (a rate of 1) is right anyway
            pairs = zip(programs, ask.look(programs), found, strict=True)
            drawn = [(x, now, fails, chance == UNSTABLE or now.verdict != PASS) for x, now, fails in pairs]
            found = [
                fails or (False if of and deciding.right(ask, x, now, chance) else None) for x, now, fails, of in drawn
            ]
        return [None if fails is False and not tells(x) else fails for x, fails in zip(programs, found, strict=True)]

    def tells(x: Program) -> bool:
        wrong = shown.details.get("output") if shown.verdict == INCONSISTENT else None
        return wrong is None or x.outputs in ((), program.outputs) or wrong in x.outputs

    seen = [x for x in ask.seen() if x.fails or (tells(x.program) and not chance)]
    known = defaults.get(program.operator, {})
    inputs = dict.fromkeys(given_names(x.program for x in seen if not x.fails))
    defaults = {**defaults, program.operator: {**inputs, **known}}
    moot = partial(_moot, ask, decided.parameters, defaults)
    return borne_out(label, program, defaults, decided, seen, ask.shapes, moot)


def _moot(ask: Asking, parameters: Sequence[str], defaults: Defaults, program: Program) -> bool | None:
    """Whether a library computes the same of a program without the parameters that decide: whether a compiler reads them does
    not show there. None where there is no time left to ask.
    """
    made = deciding.lacking(program, parameters, defaults) if parameters else []
    try:
        return bool(made) and same_values(ask.reference(program), ask.reference(made[0]))
    except Spent:
        return None


def borne_out(
    label: Label, program: Program, defaults: Defaults, decided: Decided, seen: Iterable[Labelled] = (),
    shapes: Shapes | None = None, moot: Callable[[Program], bool | None] = lambda _: False,
) -> Borne:  # fmt: skip
    """Return what near programs leave of what decides, and what else must be so.

    Args:
        seen: What is known of programs already: the member that was reduced, and what a search has asked about.
        shapes: Tells of the outputs that are expected.
        moot: Whether a program is right by itself without what decides, None where nobody has time to tell; asked of a few,
            and wherever an axis has length 1.
    """
    known = labelled(label, program, defaults, seen)
    failing, passing = ([cast(Instance, x.program) for x in known if x.fails is fails] for fails in (True, False))
    of_call = cast(Instance, program)  # of several calls, what decides is of one of them
    parameters = _kept(decided.parameters, of_call, defaults, failing, passing)
    besides = _kept(decided.besides, of_call, defaults, failing, passing)
    told = [*parameters, *besides]
    related = any(map(is_relation, [x.says for x in told]))  # of numbers, which decide together
    having = [] if related else [x for x in passing if all(of.holds(x) for of in told)]
    asked = [x for n, x in enumerate(having) if n < MOOT or _short(x, program)]
    idle = {x.id for x in asked if (says := moot(x)) or (says is None and _short(x, program))}
    having = [x for x in having if x.id not in idle]
    have = chain(features(program, defaults), _as_left(of_call, defaults, passing))
    candidates = [x for x in have if all(map(x.holds, failing))] if having else []
    elsewhere = [
        x for x in having if not _all_one(x, program)
    ]  # where another axis is longer: it is this one that matters
    candidates = [x for x in candidates if not x.says.endswith(LONGER) or not all(map(x.holds, elsewhere))]
    found = _simplest(candidates, having)
    having = [x for x in having if not _short(x, program)] if not found else having
    candidates = [x for x in candidates if not x.says.endswith(LONGER)]
    found = found or _simplest(candidates, having) or _two(candidates, having)
    if having and not found and shapes is not None:
        candidates += _of_outputs(program, failing, having, shapes)
        found = _simplest(candidates, having) or _two(candidates, having)
    left = Decided(tuple(x.says for x in parameters), tuple(x.says for x in besides))
    more = tuple(x.says for x in found if x.says not in left.besides)
    return Borne(left, more, len(failing), len(passing), exact=bool(found) or not having)


def _simplest(candidates: Sequence[Feature], passing: Sequence[Program]) -> list[Feature]:
    """Return the first feature that no passing program has, if there are such programs."""
    return next(([x] for x in candidates if passing and not any(map(x.holds, passing))), [])


def _two(candidates: Sequence[Feature], passing: Sequence[Program]) -> list[Feature]:
    """Return the first two features that no passing program has both of, if there are such programs."""
    pairs = itertools.combinations(candidates, 2) if passing else ()
    return next(([x, y] for x, y in pairs if not any(x.holds(of) and y.holds(of) for of in passing)), [])


def _all_one(other: Program, program: Program) -> bool:
    """Whether all axes have length 1 of an input that has a longer one in a program."""
    pairs = [(x.shape, y.shape) for x, y in zip(smaller.leaves(other), smaller.leaves(program), strict=False)]
    return any(max(one, default=1) == 1 < max(two, default=1) for one, two in pairs)


def _short(other: Program, program: Program) -> bool:
    """Whether an axis has length 1 that is longer in a program, or there is no axis at all: most mistakes do not show there."""
    pairs = [(x.shape, y.shape) for x, y in zip(smaller.leaves(other), smaller.leaves(program), strict=False)]
    return any((two and not one) or any(x == 1 < y for x, y in zip(one, two, strict=False)) for one, two in pairs)


# ---------------------------------------------------------------------- what programs have


def features(program: Program, defaults: Defaults) -> Iterator[Feature]:
    """Yield what a program has that may be told, in the order of preference."""
    known = defaults.get(program.operator, {})
    names = (
        [x for x in unstated(program, known) if x in known or x in program.params]
        if isinstance(program, Instance)
        else []
    )
    for several in (1, 2):
        for group in itertools.combinations(names, several):
            yield Feature(f"{' or '.join(group)} left out", partial(_left_out, names=group))
    if _asks_for_more(program):
        yield Feature("an output beside the first", _asks_for_more)
    yield from _ranks(program)
    yield from _axes(program) if isinstance(program, Instance) else ()
    yield from _kinds(program)
    yield from _lengths(program)


def _as_left(program: Instance, defaults: Defaults, passing: Sequence[Program]) -> Iterator[Feature]:
    """Yield the defaults of parameters of which another value alone makes a program pass: floats are refused with `fmod=0`."""
    known = defaults.get(program.operator, {})
    for x in passing:
        alike = [y.shape for y in smaller.leaves(x)] == [y.shape for y in smaller.leaves(program)]
        names = differing(program, x) if alike and isinstance(x, Instance) else []
        plain = smaller.default(known, names[0]) if len(names) == 1 else NO_DEFAULT
        if plain not in (None, NO_DEFAULT) and smaller.same(_value(program, names[0], known), plain):
            same = partial(_has_value, name=names[0], value=plain, known=known)
            yield Feature(f"{names[0]}={deciding.said(plain)}", same)


def _has_value(program: Program, name: str, value: Value, known: Mapping[str, Value]) -> bool:
    return smaller.same(_value(program, name, known), value)


def _asks_for_more(program: Program) -> bool:
    """Whether a program may return something beside its first output: what a library does not name is all returned."""
    return any(program.outputs[1:]) or not any(program.outputs)


def _left_out(program: Program, names: Iterable[str]) -> bool:
    call = program.instances()[0]
    given = {x.name for x in call.inputs if x.value is not None}
    return any(x not in given and call.params.get(x) is None for x in names)


def _ranks(program: Program) -> Iterator[Feature]:
    rank = _rank(program)
    if rank is None:
        return
    yield Feature(peculiar.of_rank(rank), lambda x: _rank(x) == rank)
    if rank > 1:  # without an axis nothing is computed along one
        yield Feature(f"{peculiar.RANK} {rank} or more", lambda x: (_rank(x) or 0) >= rank)
        yield Feature(f"{peculiar.RANK} {rank} or less", lambda x: (_rank(x) or 0) <= rank)


def _rank(program: Program) -> int | None:
    found = smaller.leaves(program)
    return len(found[0].shape) if found else None


def _kinds(program: Program) -> Iterator[Feature]:
    """Yield of which dtype the first input is: a float, an integer, this one; and which others are floats or integers."""
    own = _first_dtype(program)
    for says, part in (("floating-point inputs", "float"), (deciding.INTEGER, "int")):
        if part in own:
            yield Feature(says, lambda x, part=part: part in _first_dtype(x))  # type: ignore[misc]
    if own:
        yield Feature(f"{own} inputs", lambda x: _first_dtype(x) == own)
    for name in [x.name for x in program.inputs[1:]]:
        for says, part in ((f"a floating-point {name}", "float"), (f"an integer {name}", "int")):
            if part in getattr(tensor(program, name), "dtype", ""):
                yield Feature(says, partial(_has_kind, name=name, part=part))


def _has_kind(program: Program, name: str, part: str) -> bool:
    return part in getattr(tensor(program, name), "dtype", "")


def _first_dtype(program: Program) -> str:
    return next((x.dtype for x in smaller.leaves(program)), "")


def _axes(program: Instance) -> Iterator[Feature]:
    for name in dict.fromkeys(_axes_named(program)):
        for says, holds in NAMED.items():
            feature = Feature(f"{name} {says}", partial(_names, name=name, holds=holds))
            if feature.holds(program):
                yield feature


NAMED: Mapping[str, Callable[[set[int], int], bool]] = {
    "naming all axes": lambda axes, rank: axes == set(range(rank)),
    "naming the first axis": lambda axes, _: axes == {0},
    "naming the last axis": lambda axes, rank: axes == {rank - 1},
}
"""Which axes a parameter names."""


def _axes_named(program: Instance) -> list[str]:
    return [x for x in program.params if smaller.is_axes(x)] + [x.name for x in program.inputs if smaller.axes_input(x)]


def _names(program: Program, name: str, holds: Callable[[set[int], int], bool]) -> bool:
    call, rank = program.instances()[0], _rank(program) or 0
    held = next((listed for x in call.inputs if x.name == name and (listed := smaller.axes_input(x))), None)
    axes = held.array().tolist() if held is not None else smaller.integers(call.params.get(name))
    return rank > 0 and bool(axes) and holds({x % rank for x in axes}, rank)


def _lengths(program: Program) -> Iterator[Feature]:
    """Yield that an axis has length 1, or more, counted from either end: a small program has other lengths by chance."""
    for operand in program.inputs:
        held = tensor(program, operand.name)
        if held is None or (smaller.states(held) and len(smaller.leaves(program)) > 1):
            continue
        name, of = operand.name, partial(tensor, name=operand.name)
        if 0 in held.shape:
            yield Feature(peculiar.EMPTY, lambda x: any(0 in y.shape for y in smaller.leaves(x)))
        if 1 in held.shape:
            yield Feature(f"an axis of length 1 of {name}", lambda x, of=of: 1 in getattr(of(x), "shape", ()))  # type: ignore[misc]
        for axis in range(len(held.shape)):
            for at in (axis, axis - len(held.shape)):
                size, where = held.shape[axis], _axis(at)
                if size == 1:
                    yield Feature(f"{where} of {name} of length 1", partial(_has_length, of=of, at=at, least=1, most=1))
                elif size > 1:
                    yield Feature(f"{where} of {name}{LONGER}", partial(_has_length, of=of, at=at, least=2))


def _axis(at: int) -> str:
    return {-1: "the last axis", 0: "the first axis", -2: "the last axis but one"}.get(at, f"axis {at}")


def _has_length(program: Program, of: Callable[[Program], object], at: int, least: int, most: int = 1 << 40) -> bool:
    shape = getattr(of(program), "shape", ())
    return -len(shape) <= at < len(shape) and least <= shape[at] <= most


def _one_at(shape: tuple[int, ...], at: int) -> bool:
    return shape[at : at + 1] == (1,)


def _of_outputs(
    program: Program, failing: Sequence[Program], passing: Sequence[Program], shapes: Shapes
) -> list[Feature]:
    """Return what the outputs have that are expected of a program and of all that fail: no elements, an axis of length 1."""
    known: dict[str, list[tuple[int, ...]]] = {}
    try:
        for x in (program, *failing[:OUTPUTS], *passing[:OUTPUTS]):
            if (found := shapes(x)) is not None:
                known[x.id] = found
    except Spent:
        return []

    def has(of: Callable[[tuple[int, ...]], bool]) -> Callable[[Program], bool]:
        return lambda x: x.id not in known or any(map(of, known[x.id][:1]))

    first = known.get(program.id, [()])[0]
    told = [Feature("an output without elements", has(lambda x: 0 in x)), Feature("a 0-d output", has(lambda x: not x))]
    told += [
        Feature("an output axis of length 1", has(lambda x: 1 in x)),
        Feature("an output axis of length 1 after the first two", has(lambda x: 1 in x[2:])),
    ]
    for axis in range(len(first)):
        told.append(Feature(f"axis {axis} of the output of length 1", has(partial(_one_at, at=axis))))
    return [x for x in told if x.holds(program) and all(map(x.holds, failing))]


# ---------------------------------------------------------------------- what decided before


def _kept(
    told: Iterable[str], program: Instance, defaults: Defaults, failing: Sequence[Instance], passing: Sequence[Instance]
) -> list[Feature]:
    """Return what of it all failing programs have, told more widely where they differ in it."""
    found = []
    for says in told:
        made = _feature(says, program, defaults, failing, passing)
        if made is not None and made.holds(program) and all(map(made.holds, failing)):
            found.append(made)
    limits = any(
        x.says.endswith(LIMIT) for x in found
    )  # a number that differs from an equal one changes what comes of them
    return [x for x in found if not (limits and x.says == EQUAL)]


def _feature(
    says: str, program: Instance, defaults: Defaults, failing: Sequence[Instance], passing: Sequence[Instance]
) -> Feature | None:
    name = deciding.key(says)
    known = defaults.get(program.operator, {})
    if says.startswith(LENGTH_ONE):
        return None  # it is told of an input, if at all (`features`)
    if says == EQUAL:
        names = [x.name for x in program.inputs if _equal(program, x.name)]
        return Feature(says, lambda x: any(_equal(x, y) for y in names))
    if says.endswith(LIMIT):
        name = says.removesuffix(LIMIT).strip()
        return Feature(says, partial(_at_limit, program=program, name=name, known=known))
    if "=" in says:
        return _parameter(says, name, program, known, failing, passing)
    if says == deciding.SEVERAL:
        return Feature(says, lambda x: len({y.dtype for y in smaller.leaves(x)} - {"string", "bool"}) > 1)
    if deciding.is_dtype(says):
        return _dtype(says, program, failing, passing)
    if says.endswith(deciding.LEFT_OUT):
        unset = says.removesuffix(deciding.LEFT_OUT)
        others = [x for x in (x for x, y in known.items() if y is None) if x != unset]
        for unstated_ones in ((unset,), *((unset, x) for x in others)):
            feature = Feature(
                f"{' or '.join(unstated_ones)}{deciding.LEFT_OUT}", partial(_left_out, names=unstated_ones)
            )
            if all(map(feature.holds, failing)):
                return feature
        return None
    return Feature(says, lambda x: name in {y.key for y in deciding.conditions(x, defaults)})


def _parameter(
    says: str,
    name: str,
    program: Instance,
    known: Mapping[str, Value],
    failing: Sequence[Instance],
    passing: Sequence[Instance],
) -> Feature | None:
    """Return the narrowest words for the values of a parameter with which near programs fail: its own, or beyond a number."""
    default, own = smaller.default(known, name), _value(program, name, known)
    bad, good = ([_value(x, name, known) for x in of] for of in (failing, passing))
    if all(smaller.same(x, own) for x in bad):
        return Feature(says, lambda x: smaller.same(_value(x, name, known), own))
    if any(smaller.same(x, default) for x in bad):
        return None
    numbers, others = (list(filter(_number, x)) for x in ((own, *bad), (default, *good)))
    least: Any = max(others, default=None)
    if len(numbers) > len(bad) and all(x in (default, 1) for x in others) and others and min(numbers) > least:
        return Feature(f"{name} > {least}", partial(_beyond, name=name, known=known, least=least))
    stated = default is not None and default != NO_DEFAULT
    words = f"{name} other than {deciding.said(default)}" if stated else f"{name} given"
    return Feature(words, lambda x: not smaller.same(_value(x, name, known), default))


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _beyond(program: Program, name: str, known: Mapping[str, Value], least: float) -> bool:
    value: Any = _value(program, name, known)
    return _number(value) and value > least


def _at_limit(other: Program, program: Instance, name: str, known: Mapping[str, Value]) -> bool:
    """Whether a program may have a number at a limit, as another has: not, if nothing but this number differs."""
    left = [[x for x in of.instances()[0].inputs if x.name != name] for of in (other, program)]
    return _value(other, name, known) == _value(program, name, known) or left[0] != left[1]


def _value(program: Program, name: str, known: Mapping[str, Value]) -> Value:
    """Return the value of a parameter or input, of the first call that has such; of what is left out its default."""
    calls = program.instances()
    call = next((x for x in calls if name in x.params or name in {y.name for y in x.inputs}), calls[0])
    held = next((x.value for x in call.inputs if x.name == name), None)
    return held if held is not None else call.params.get(name, smaller.default(known, name))


def _dtype(says: str, program: Instance, failing: Sequence[Instance], passing: Sequence[Instance]) -> Feature | None:
    """Return how it is told with which dtypes of inputs near programs fail."""
    own = says.partition(" ")[0]
    ours = deciding.INTEGERS if own == "integer" else (own,)
    place = next((n for n, x in enumerate(smaller.leaves(program)) if x.dtype in ours), None)
    if place is None:
        return None

    def of(x: Program) -> str:
        found = smaller.leaves(x)
        return found[place].dtype if place < len(found) else ""

    bad, good = ({of(x) for x in (program, *failing)} - {""}, {of(x) for x in passing} - {""})
    good -= bad  # it passes with one of them for another reason
    if own == "integer" and all("int" in x for x in bad):
        return Feature(says, lambda x: "int" in of(x))
    if len(bad) > 3 or (bad >= {"float32"}):
        return Feature("non-float32 inputs", lambda x: of(x) != "float32") if good == {"float32"} else None
    *some, last = sorted(bad, key=lambda x: (x.rstrip("0123456789"), len(x), x))
    return Feature(f"{', '.join(some)} or {last} inputs" if some else f"{last} inputs", lambda x: of(x) in bad)


def _equal(program: Program, name: str) -> bool:
    """Whether an input holds a number twice."""
    held = tensor(program, name)
    if held is None or not isinstance(held, Tensor):
        return False
    numbers = simpler.numbers(held).ravel().tolist()
    return len(set(numbers)) < len(numbers)
