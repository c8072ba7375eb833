"""How two or three numbers that a call is given stand to each other: inputs without axes, and parameters that are numbers.

`Range` has elements only where its limit lies on that side of its start to which its delta leads, which no one of the three
tells. What one number tells is told of it, so these are asked about, and told, only where nothing else explains what fails, or
one of two is told to decide: `low=1.0` may be that it is equal to `high`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from opera.programs.program import Instance, Program
from opera.programs.values import Tensor, Value
from opera.triage.conditions import dtypes, removable
from opera.triage.conditions.arguments import is_flag, with_input
from opera.triage.conditions.forms import tensor
from opera.triage.conditions.stated import NOT_BELOW, Feature, value_of
from opera.triage.shrink import simpler, smaller

TWO = ((1, 3), (3, 1), (2, 2), (-1, 2), (2, -1), (-3, -1))
"""Numbers in the place of two: each above the other, equal, and of both signs."""
THREE = (
    (0, 3, 1), (3, 0, 1), (0, 3, -1), (3, 0, -1), (1, 5, 2), (5, 1, -2), (-2, -5, 1), (-5, -2, -1), (2, 2, 1), (-1, -5, -3),
)  # fmt: skip
"""Numbers in the place of three: each difference of both signs, beside a third of both signs."""
SIGNS: Mapping[str, Callable[[float], bool]] = {"< 0": lambda x: x < 0, "> 0": lambda x: x > 0}
"""How the sign of a number is told."""
ORDER: Mapping[str, Callable[[float], bool]] = {
    "<": SIGNS["< 0"],
    ">": SIGNS["> 0"],
    "equal to": lambda x: x == 0,
    "not above": lambda x: x <= 0,
    NOT_BELOW.strip(): lambda x: x >= 0,
}
"""How the order of two numbers is told, the narrower first, of the sign of their difference."""


def names(program: Instance, known: Mapping[str, Value]) -> list[str]:
    """Return the inputs without axes and the parameters that are numbers, those too that have their default if one number is
    given alone; none where these are not two or three.

    Flags, axes, dtypes and sizes are no such numbers, nor are the numbers of the first of several tensors, if it has axes.
    """

    def plain(name: str, value: Value) -> bool:
        named = (
            is_flag(name, value, known) or smaller.is_axes(name) or simpler.is_type(name) or smaller.SIZED.search(name)
        )
        return type(value) in (int, float) and not named

    fed = [x.name for x in program.inputs if _number(program, x.name, known) is not None]
    found = [*fed, *(x for x, value in program.params.items() if plain(x, value))]
    if len(found) == 1:
        found += [x for x, value in known.items() if x not in program.params and plain(x, value)]
    return found if len(found) in (2, 3) else []


def beside(program: Instance, known: Mapping[str, Value]) -> Iterator[Program]:
    """Yield a call with other numbers in the place of the two or three that it is given, all at once."""
    held = names(program, known)
    for numbers in (TWO if len(held) == 2 else THREE) if held else ():
        made: Instance | None = program
        for name, number in zip(held, numbers, strict=True):
            made = made and _with(made, name, number, known)
        if made is not None and made != program:
            yield made


def features(program: Instance, known: Mapping[str, Value]) -> Iterator[Feature]:
    """Yield how the two or three numbers of a call stand to each other: `end < start`, `high equal to low`,
    `(limit - start) * delta < 0`; and which is no whole one."""
    held = names(program, known)
    for one, other in itertools.combinations(held, 2):
        for says, holds in ORDER.items():
            made = Feature(f"{one} {says} {other}", partial(_difference, of=(one, other), holds=holds, known=known))
            if made.holds(program):
                yield made
    for one, other in itertools.combinations(held, 2):
        for third in (x for x in held if x not in (one, other)):
            for says, holds in SIGNS.items():
                of = (other, one, third)
                made = Feature(
                    f"({other} - {one}) * {third} {says}", partial(_difference, of=of, holds=holds, known=known)
                )
                if made.holds(program):
                    yield made
    for name in held:
        made = Feature(f"{name}{removable.NO_WHOLE}", partial(_is_fraction, name=name, known=known))
        yield from [made] if made.holds(program) else []


def at_zero(program: Instance, known: Mapping[str, Value]) -> Iterator[Instance]:
    """Yield, of a call with a parameter of 0 that has another default, calls with another such parameter of 0 in its place: who
    takes 0 for left out does so of all of them."""
    for name in (x for x in _fractions(known) if program.params.get(x) == 0):
        own = smaller.with_param(program, name, known[name])
        for other in (x for x in _fractions(known) if x != name and own is not None):
            made = smaller.with_param(own, other, 0.0) or smaller.given(own, other, 0.0)  # type: ignore[arg-type]
            yield from [made] if made is not None else []


def of_zero(program: Instance, known: Mapping[str, Value], failing: Sequence[Instance]) -> Iterator[Feature]:
    """Yield that one of several parameters with another default is 0: of those that are in programs that fail."""
    names = [x for x in _fractions(known) if any(y.params.get(x) == 0 for y in (program, *failing))]
    if len(names) > 1:
        held = partial(_is_zero, names=names)
        yield from [Feature(f"0 for {' or '.join(names)}", held)] if held(program) else []


def _fractions(known: Mapping[str, Value]) -> list[str]:
    return [name for name, value in known.items() if type(value) is float and value != 0]


def _is_zero(program: Program, names: Sequence[str]) -> bool:
    return isinstance(program, Instance) and any(program.params.get(x) == 0 for x in names)


def is_fraction(value: Value) -> bool:
    """Whether a value is a finite number, and no whole one."""
    return isinstance(value, float) and math.isfinite(value) and not value.is_integer()


def _is_fraction(program: Program, name: str, known: Mapping[str, Value]) -> bool:
    return is_fraction(_number(program, name, known))


def _difference(
    program: Program, of: tuple[str, ...], holds: Callable[[float], bool], known: Mapping[str, Value]
) -> bool:
    """Whether the difference of two numbers, times a third where there are three, is as is told."""
    one, other, *third = (_number(program, x, known) for x in of)
    if one is None or other is None or None in third:
        return False
    return holds((one - other) * math.prod(x for x in third if x is not None))


def _number(program: Program, name: str, known: Mapping[str, Value]) -> float | None:
    """Return the number that a call is given under a name, None where that is none, or has axes."""
    held = tensor(program, name)
    if isinstance(held, Tensor):
        plain = held.shape == () and (held.dtype in dtypes.INTEGERS or "float" in held.dtype)
        return float(simpler.numbers(held)) if plain else None
    value = value_of(program, name, known)
    return float(value) if type(value) in (int, float) else None


def _with(program: Instance, name: str, number: int, known: Mapping[str, Value]) -> Instance | None:
    """Return a call with this number under a name; None where its dtype has no such number."""
    held = tensor(program, name)
    if isinstance(held, Tensor):
        if number < 0 and held.dtype.startswith("u"):
            return None
        return with_input(program, name, simpler.numbered(np.array(number, "int64"), held.dtype))
    own = program.params.get(name, known.get(name))
    value = float(number) if isinstance(own, float) else number
    made = smaller.with_param(program, name, value) or smaller.given(program, name, value)
    return made if made is not None else program  # it is this number already
