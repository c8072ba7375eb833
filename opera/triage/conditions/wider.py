"""What decides, told as widely as near programs fail with it: of `multiplier=6` that it is beyond 1, of float16 float64, too.

What a program that fails lacks is told no more (opera.triage.conditions.circumstances).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from opera.programs.program import Instance, Program
from opera.programs.values import NO_DEFAULT, Tensor, Value
from opera.triage.conditions import dtypes, equal, kinds, listing, peculiar, ranks, removable, scalars
from opera.triage.conditions.arguments import WRITTEN
from opera.triage.conditions.features import naming
from opera.triage.conditions.forms import tensor
from opera.triage.conditions.ranks import all_of_rank
from opera.triage.conditions.removable import GIVEN
from opera.triage.conditions.stated import Feature, left_out, value_of
from opera.triage.sentence import EQUAL, EQUAL_TO, LENGTH_ONE, LIMIT, RETURNED, at_limit
from opera.triage.shrink import simpler, smaller
from opera.triage.shrink.smaller import Defaults

Holds: TypeAlias = "Callable[[Any], bool]"
IN_ORDER = " other than all axes in order"
LISTED, SEVERAL = 3, 4
"""Values of a parameter that are told one by one, at most; so many others than its own must fail, at least, for all to be told
to fail but the default."""


def kept(
    told: Iterable[str],
    program: Instance,
    defaults: Defaults,
    failing: Sequence[Instance],
    passing: Sequence[Instance],
    odd: Iterable[Program] = (),
) -> list[Feature]:
    """Return what of it all failing programs have, told more widely where they differ in it.

    Args:
        odd: Programs that fail in another respect: the integers of a kind of dtype are none of those that fail alike then.
    """
    few = bool(kinds.otherwise(odd, (program, *failing)) & dtypes.INTEGERS)
    found: list[Feature] = []
    for says in told:
        made = _feature(says, program, defaults, failing, passing)
        if few and made is not None and says == made.says == dtypes.INTEGER:
            made = _dtype(says, program, failing, passing, alone=False)
        if made is not None and made.holds(program) and all(map(made.holds, failing)):
            found.append(made)
    limits = any(at_limit(x.says) for x in found)  # a number that differs from an equal one changes what comes of them
    return [x for x in found if not (limits and x.says == EQUAL)]


def given(
    program: Instance, defaults: Defaults, failing: Sequence[Instance], passing: Sequence[Instance], told: Iterable[str]
) -> list[Feature]:
    """Return of what else is given that all failing programs have it: without it alone the library may reject the program."""
    kinds, known = (removable.PARAMETER, removable.INPUT), set(map(removable.key, told))
    says = (x.says for x in removable.conditions(program, defaults) if x.kind in kinds and x.key not in known)
    return kept(says, program, defaults, failing, passing)


def _feature(
    says: str, program: Instance, defaults: Defaults, failing: Sequence[Instance], passing: Sequence[Instance]
) -> Feature | None:
    name = removable.key(says)
    known = defaults.get(program.operator, {})
    if says.startswith(LENGTH_ONE):
        return None  # it is told of an input, if at all (`features`)
    if says == EQUAL:
        names = [x.name for x in program.inputs if equal.has(program, x.name)]
        return Feature(says, lambda x: any(equal.has(x, y) for y in names))
    if at_limit(says):
        name = says.removesuffix(LIMIT).removeprefix(EQUAL_TO).strip()
        return Feature(says, partial(_at_limit, program=program, name=name, known=known))
    if "=" in says:
        return _parameter(says, name, program, known, failing, passing)
    if says == removable.SEVERAL:
        truths = any(len(held := {y.dtype for y in smaller.leaves(x)}) > 1 and "bool" in held for x in passing)
        words = f"{says}, none of them bool" if truths else ""
        return Feature(says, lambda x: len({y.dtype for y in smaller.leaves(x)} - {"string", "bool"}) > 1, words)
    if removable.is_dtype(says):
        return _dtype(says, program, failing, passing)
    if says == peculiar.NEGATIVE_INPUT and (named := _negative(program, failing)) is not None:
        return named
    if peculiar.is_rank(says) and (made := _rank(says, program, failing, passing)) is not None:
        return made
    if says.endswith(removable.LEFT_OUT):
        unset = says.removesuffix(removable.LEFT_OUT)
        others = [x for x in (x for x, y in known.items() if y is None) if x not in (unset, WRITTEN)]
        for unstated_ones in ((unset,), *((unset, x) for x in others)):
            feature = Feature(
                f"{' or '.join(unstated_ones)}{removable.LEFT_OUT}", partial(left_out, names=unstated_ones)
            )
            borne = len(unstated_ones) == 1 or not all(map(feature.holds, passing))  # one of these that is given passes
            if borne and all(map(feature.holds, failing)):
                return feature
        return None
    if says == RETURNED:
        return Feature(says, lambda x: isinstance(x, Instance))
    if says == name and re.fullmatch(rf"{GIVEN}\S+", name):  # not what is told of an operand called `input`
        return Feature(says, lambda x: any(f"{GIVEN}{y.name}" == name for y in x.inputs if y.value is not None))
    return Feature(says, lambda x: name in {y.key for y in removable.conditions(x, defaults)})


def _negative(program: Instance, failing: Sequence[Instance]) -> Feature | None:
    """Return which input of integers beside the first holds a negative number, where no other does, and so it is of all."""
    first = next((x.value for x in program.inputs if tensor(program, x.name) is not None), None)
    told = [Feature(*x) for x in listing.negative(program)]
    alone = (
        len(told) == 1 and isinstance(first, Tensor) and not peculiar.has(first, peculiar.SPECIAL[peculiar.NEGATIVE])
    )
    return told[0] if alone and all(map(told[0].holds, failing)) else None


def _rank(says: str, program: Instance, failing: Sequence[Instance], passing: Sequence[Instance]) -> Feature | None:
    """Return of which input a rank is told, where the first tensor has another: of that which the fewest have that pass."""
    held = [(x.name, y.shape) for x in program.inputs if (y := tensor(program, x.name)) is not None]
    if not held or peculiar.of_rank(len(held[0][1])) == says:
        return None
    names = [(name, len(shape)) for name, shape in held if peculiar.of_rank(len(shape)) == says]
    made = [Feature(f"{x} of rank {y}", partial(all_of_rank, names=[x], rank=y)) for x, y in names]
    found = [x for x in made if all(map(x.holds, failing))]
    return min(found, key=lambda x: sum(map(x.holds, passing)), default=None)


def _parameter(
    says: str,
    name: str,
    program: Instance,
    known: Mapping[str, Value],
    failing: Sequence[Instance],
    passing: Sequence[Instance],
) -> Feature | None:
    """Return the narrowest words for the values of a parameter with which near programs fail: its own, or beyond a number."""
    default, own = smaller.default(known, name), value_of(program, name, known)
    bad, good = ([value_of(x, name, known) for x in of] for of in (failing, passing))
    unset = default in (None, NO_DEFAULT)
    if all(smaller.same(x, own) for x in bad):
        if unset and _varies(own) and all(x in (None, NO_DEFAULT) for x in good):  # given otherwise it says nothing
            return Feature(f"{name}{removable.IS_GIVEN}", lambda x: not left_out(x, [name]))
        if smaller.is_axes(name) and _from_the_front(program, name, own, passing):
            return Feature(f"{name} < 0", lambda x: _number(y := value_of(x, name, known)) and y < 0)
        return Feature(says, lambda x: smaller.same(value_of(x, name, known), own))
    if any(smaller.same(x, default) for x in bad):
        return None
    alone = _others(
        [value_of(x, name, known) for x in passing if differs_alone(x, program, name)], (*bad, own, default)
    )
    good = alone or _others(good, (*bad, own, default))
    values = list[Value]()
    for x in (own, *bad):
        values += [] if any(smaller.same(x, y) for y in values) else [x]
    if (made := _out_of_order(name, known, (program, *failing), passing)) is not None:
        return made
    if len(values) > 1 and smaller.is_axes(name):  # the same axis counted from the other end is the same
        for x in naming(name, known):
            if all(map(x.holds, (program, *failing))) and not any(map(x.holds, passing)):
                return x
    alike = not smaller.is_axes(name) and all(map(_number, map(_of_each, (*values, *good))))
    read = _of_each if alike else _as_it_is  # `strides > 1` of strides=[3] and [2]
    for words, holds in _told(name, read(default), [*map(read, values)], [*map(read, good)]):
        if all(map(holds, map(read, values))) and not any(map(holds, map(read, good))) and not holds(read(default)):
            return Feature(words, lambda x, holds=holds: holds(read(value_of(x, name, known))))  # type: ignore[misc]
    stated = default is not None and default != NO_DEFAULT
    if simpler.is_type(name) and (right := [x for x in alone if x not in (None, NO_DEFAULT)]):
        if len(values) > len(right):  # of a dozen dtypes
            words = f"{name} other than {_either(right).replace(' or ', ' and ')}"
            return Feature(words, partial(_given_other, name=name, than=right))
        return Feature(
            f"{name}={_either(values)}", lambda x: any(smaller.same(y, value_of(x, name, known)) for y in values)
        )
    if len(values) > 1 and smaller.is_axes(name) and type(default) is int and default in BY_DEFAULT:
        made = Feature(
            f"{name} other than the {BY_DEFAULT[default]} axis", partial(_names_other, name=name, than=default)
        )
        if all(map(made.holds, (program, *failing))):
            return made
    if len(values) <= LISTED and (alone or (stated and _number(own) and not smaller.is_axes(name))):
        return Feature(
            f"{name}={_either(values)}", lambda x: any(smaller.same(y, value_of(x, name, known)) for y in values)
        )
    words = f"{name} other than {removable.said(default)}" if stated else f"{name} given"
    return Feature(words, lambda x: not smaller.same(value_of(x, name, known), default))


BY_DEFAULT: Mapping[Value, str] = {0: "first", -1: "last"}
"""Axes that a parameter may name by default, and how they are told: counted from the other end they are another number."""


def _names_other(program: Program, name: str, than: int) -> bool:
    value, rank = value_of(program, name, {name: than}), ranks.rank_of(program) or 0
    return type(value) is int and rank > 0 and value % rank != than % rank


def _of_each(value: Value) -> Value:
    """Return the number that a list holds for each of its entries, which are one at least; else what it is."""
    listed = isinstance(value, list | tuple) and len(value) > 0 and all(_number(x) and x == value[0] for x in value)
    return value[0] if listed else value


def _as_it_is(value: Value) -> Value:
    return value


def _given_other(program: Program, name: str, than: Sequence[Value]) -> bool:
    """Whether a parameter is given, and another value than these."""
    value = value_of(program, name, {})
    return value not in (None, NO_DEFAULT) and not any(smaller.same(value, x) for x in than)


def _others(values: Iterable[Value], of: Sequence[Value]) -> list[Value]:
    """Return the values that are none of these: with one of those that fail a program passes for another reason."""
    return [x for x in values if not any(smaller.same(x, y) for y in of)]


def _out_of_order(
    name: str, known: Mapping[str, Value], failing: Sequence[Instance], passing: Sequence[Instance]
) -> Feature | None:
    """Return that a list of axes is another than all of them in order, where that passes and none that fails is."""

    def whole(x: Program) -> bool:
        held, rank = value_of(x, name, known), max((len(y.shape) for y in smaller.leaves(x)[:1]), default=0)
        return isinstance(held, list | tuple) and [y % rank for y in smaller.integers(held) if rank] == [*range(rank)]

    listed = smaller.is_axes(name) and all(isinstance(value_of(x, name, known), list | tuple) for x in failing)
    if not listed or any(map(whole, failing)) or not any(map(whole, passing)):
        return None
    words = f"{name}{IN_ORDER}"
    return Feature(words, lambda x: isinstance(value_of(x, name, known), list | tuple) and not whole(x))


def differs_alone(one: Program, other: Program, name: str) -> bool:
    """Whether two calls of equal inputs differ in one parameter alone."""
    if not isinstance(one, Instance) or not isinstance(other, Instance):
        return False
    left = [{key: value for key, value in x.params.items() if key != name} for x in (one, other)]
    return one.inputs == other.inputs and one.outputs == other.outputs and left[0] == left[1]


def _told(name: str, default: Value, bad: Sequence[Value], good: Sequence[Value]) -> Iterator[tuple[str, Holds]]:
    """Yield how values of a parameter with which programs fail may be told, the first that none has with which they pass.

    A number is told as beyond the default or 1, as negative, as none that is whole, as beyond all that pass; that it is another
    than the default where numbers on both sides of it fail, and several. Of lists that they hold a negative number.
    """
    numbers = [x for x in bad if isinstance(x, int | float) and not isinstance(x, bool)]
    others = [x for x in (default, *good) if isinstance(x, int | float) and not isinstance(x, bool)]
    if len(numbers) == len(bad) and others:
        least, most = max(others), min(others)
        if min(numbers) > least and least in (default, 1):
            yield f"{name} > {least}", lambda x: _number(x) and x > least
        if max(numbers) < 0 <= most:
            yield f"{name} < 0", lambda x: _number(x) and x < 0
        if len(others) > 2:
            yield f"{name}{removable.NO_WHOLE}", scalars.is_fraction
        if max(numbers) < most and most == default:
            yield f"{name} < {most}", lambda x: _number(x) and x < most
        first, last = min(numbers), max(numbers)  # of fractions as close as that the whole number is the edge
        if first > least > first - 1 and float(first).is_integer() and isinstance(least, float):
            yield f"{name} >= {int(first)}", lambda x: _number(x) and x >= first
        if last < most < last + 1 and float(last).is_integer() and isinstance(most, float):
            yield f"{name} <= {int(last)}", lambda x: _number(x) and x <= last
        if len(others) > 1:
            yield f"{name} > {least:.4g}", lambda x: _number(x) and x > least
            yield f"{name} < {most:.4g}", lambda x: _number(x) and x < most
        if _number(default) and len(numbers) > SEVERAL and min(numbers) < default < max(numbers):
            yield f"{name} other than {removable.said(default)}", lambda x: not smaller.same(x, default)
    if all(isinstance(x, list | tuple) for x in bad) and any(map(smaller.integers, good)):
        yield f"{name}{removable.NEGATIVE}", lambda x: min(smaller.integers(x), default=0) < 0


def _either(values: Sequence[Value]) -> str:
    *some, last = dict.fromkeys(map(removable.said, values))
    return f"{', '.join(some)} or {last}" if some else last


def by_value(
    says: str, program: Instance, defaults: Defaults, plain: Sequence[Instance], failing: Sequence[Instance]
) -> Feature | None:
    """Return how it is told that the value of what is given decides, and not that it is: `strides other than [1, 1]`, `dtype
    other than that of the input`; None where it is not told that something is given, or values do not tell that.

    Args:
        plain: Programs that pass, and are given the value that what is left out has.
        failing: Programs that fail alike.
    """
    name, known = removable.key(says), defaults.get(program.operator, {})
    own = name.removeprefix(GIVEN)
    if not plain or says.endswith(IN_ORDER):
        return None
    if own == name and (says == name or smaller.default(known, name) not in (None, NO_DEFAULT)):
        return None
    if own != name:
        made = Feature(f"{says} other than 0", lambda x: not _zero(tensor(x, own)) and tensor(x, own) is not None)
        return made if all(_zero(tensor(x, own)) for x in plain) and all(map(made.holds, failing)) else None
    of_type = simpler.is_type(name)

    def value(x: Program) -> tuple[Value, str]:
        first = next((y.dtype for y in smaller.leaves(x)), "") if of_type else ""
        held = value_of(x, name, known)
        even = isinstance(held, list | tuple) and held and all(smaller.same(y, held[0]) for y in held)
        return [held[0]] if even else held, first  # as many as there are axes

    given = [value(x) for x in plain]
    usual = [x for x in given if x[0] not in ([], ())] or given  # a list of nothing is as good as none
    if not of_type and any(not smaller.same(x, usual[0][0]) for x, _ in usual):
        return None
    long = max((value_of(x, name, known) for x in plain), key=lambda x: len(x) if isinstance(x, list | tuple) else 0)
    words = f"{name} other than {'that of the input' if of_type else removable.said(long)}"
    made = Feature(
        words, lambda x: value(x)[0] not in (None, NO_DEFAULT) and not any(smaller.same(y, value(x)) for y in given)
    )
    return made if all(map(made.holds, (program, *failing))) else None


def _from_the_front(program: Instance, name: str, own: Value, passing: Sequence[Instance]) -> bool:
    """Whether an axis is counted from the last, and the same one, counted from the first, passes, while none such passes."""
    found, values = smaller.leaves(program), [x.params.get(name) for x in passing if differs_alone(x, program, name)]
    if type(own) is not int or own >= 0 or not found:
        return False
    return own + len(found[0].shape) in values and not any(type(x) is int and x < 0 for x in values)


def _varies(value: Value) -> bool:
    """Whether other values were tried in place of one (opera.triage.conditions.varied)."""
    return _number(value) or (isinstance(value, list | tuple) and all(type(x) is int for x in value))


def _zero(leaf: object) -> bool:
    return isinstance(leaf, Tensor) and leaf.dtype != "string" and not simpler.numbers(leaf).any()


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _at_limit(other: Program, program: Instance, name: str, known: Mapping[str, Value]) -> bool:
    """Whether a program may have a number at a limit, as another has: not, if nothing but this number differs."""
    left = [[x for x in of.instances()[0].inputs if x.name != name] for of in (other, program)]
    return value_of(other, name, known) == value_of(program, name, known) or left[0] != left[1]


def _dtype(
    says: str, program: Instance, failing: Sequence[Instance], passing: Sequence[Instance], *, alone: bool = True
) -> Feature | None:
    """Return how it is told with which dtypes of inputs near programs fail; `alone`: one integer dtype may stand for all."""
    ours = dtypes.members(says)
    place = next((n for n, x in enumerate(smaller.leaves(program)) if x.dtype in ours), None)
    if place is None:
        return None
    named = next((x.name for x in program.inputs if getattr(tensor(program, x.name), "dtype", "") in ours), "")

    def of(x: Program) -> str:
        if named:
            return getattr(tensor(x, named), "dtype", "")
        found = smaller.leaves(x)
        return found[place].dtype if place < len(found) else ""

    bad, good = ({of(x) for x in (program, *failing)} - {""}, {of(x) for x in passing} - {""})
    good -= bad  # it passes with one of them for another reason
    if not good and ("float32" in bad or len(bad) > 1):
        return None  # it passes with none
    alone = alone and says == dtypes.INTEGER and len(bad) == 1  # no other integer passes
    words = says if alone else dtypes.told(bad, good)
    return Feature(words, lambda x: of(x) in dtypes.members(words)) if words else None
