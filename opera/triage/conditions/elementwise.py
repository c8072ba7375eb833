"""How numbers of two operands at one place stand to each other: of different signs, both negative, no multiple, equal.

What one operand holds says little of a quotient, a difference or a comparison: `-8 // -5` is right where `-8 // 5` is not, and
floats whose bits are compared as integers are in order but where both are negative.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import NamedTuple, cast

import numpy as np

from opera.programs.program import Instance, Program
from opera.programs.values import NO_DEFAULT, Tensor, Value
from opera.triage.conditions import dtypes
from opera.triage.conditions.peculiar import NEGATIVE, Array
from opera.triage.conditions.stated import Feature, value_of
from opera.triage.conditions.varied import filled
from opera.triage.shrink import simpler, smaller

OPERANDS = 3
"""Operands of which each two are compared, at most."""
MOST, LARGE = 4096, 2**53
"""Elements at which is looked, at most; and a number of Python's that is none of most dtypes."""
NUMBERS = ((7, 2), (-7, 2), (7, -2), (-7, -2), (-6, 2), (2, 7), (-2, -7), (3, 3), (-3, -3))
"""Numbers of two operands: both signs of each, multiples and not, each the larger one, equal ones."""


class Relation(NamedTuple):
    """How numbers of two operands stand to each other.

    Attributes:
        says: How it is told, of `{one}` and `{other}`.
        holds: Where it is so of two arrays of one shape.
        implies: What is told of one operand, and is so wherever this is.
    """

    says: str
    holds: Callable[[Array, Array], Array]
    implies: str = ""


def _unlike(one: Array, other: Array) -> Array:
    return np.asarray(np.sign(one) * np.sign(other) < 0)


def _negative(one: Array, other: Array) -> Array:
    return np.asarray(np.maximum(one, other) < 0)


def _inexact(one: Array, other: Array) -> Array:
    with np.errstate(all="ignore"):
        left = np.fmod(one, other)  # NaN of what has none
    return np.asarray((left == left) & (left != 0))


def _unequal_negative(one: Array, other: Array) -> Array:
    return np.asarray(_negative(one, other) & (one != other))


def _unlike_and_inexact(one: Array, other: Array) -> Array:
    return np.asarray(_unlike(one, other) & _inexact(one, other))


RELATIONS = (
    Relation("numbers of different signs in {one} and {other}", _unlike, NEGATIVE),
    Relation("negative numbers in both {one} and {other}", _negative, NEGATIVE),
    Relation("unequal negative numbers in {one} and {other}", _unequal_negative, NEGATIVE),
    Relation("a number in {one} that is no multiple of that in {other}", _inexact),
    Relation("a number in {one} that is no multiple of that in {other}, and has the other sign", _unlike_and_inexact, NEGATIVE),
    Relation("equal numbers in {one} and {other}", lambda x, y: np.asarray(x == y)),
)  # fmt: skip
"""What may be told of two operands, the simplest first."""


def features(program: Instance, known: Mapping[str, Value]) -> Iterator[Feature]:
    """Yield how numbers of two operands stand to each other."""
    for one, other in itertools.combinations(_operands(program, known), 2):
        for relation in RELATIONS:
            made = Feature(
                relation.says.format(one=one, other=other),
                partial(_somewhere, of=(one, other), holds=relation.holds, known=known),
            )
            if made.holds(program):
                yield made


def beside(program: Program, known: Mapping[str, Value]) -> Iterator[Program]:
    """Yield a call with one number each in all of two operands: of both signs, multiples and not, each the larger one."""
    if not isinstance(program, Instance):
        return
    for one, other in itertools.combinations(_operands(program, known), 2):
        for numbers in NUMBERS:
            made = _with(program, one, numbers[0])
            yield from filter(None, (made and _with(made, other, numbers[1]),))


def implied(says: str) -> str:
    """Return how begins what is told of one operand, and is so wherever this is told of two; empty where nothing is."""
    held = (x.implies for x in RELATIONS if re.fullmatch(re.sub(r"\\{\w+\\}", r"\\S+", re.escape(x.says)), says))
    return next(held, "")


def _operands(program: Instance, known: Mapping[str, Value]) -> list[str]:
    """Return the inputs that are numbers of the first one's dtype, and numbers of Python without a default beside one alone."""
    held = [(x.name, x.value) for x in program.inputs if isinstance(x.value, Tensor) and _counts(x.value)]
    dtype = held[0][1].dtype if held else ""
    names = [name for name, x in held if x.dtype == dtype]
    given = [x for x, value in program.params.items() if type(value) in (int, float) and not smaller.is_axes(x)]
    numbers = [x for x in given if smaller.default(known, x) == NO_DEFAULT] if len(held) == 1 else []
    return [*names, *numbers][:OPERANDS]


def _counts(held: Tensor) -> bool:
    plain = held.dtype in dtypes.INTEGERS or "float" in held.dtype
    return plain and not held.dtype.endswith("int2") and 0 < math.prod(held.shape) <= MOST


def _numbers(program: Program, name: str, known: Mapping[str, Value]) -> Array | None:
    value = value_of(program, name, known)
    if isinstance(value, Tensor):
        return simpler.numbers(value) if _counts(value) else None
    return np.array(value) if type(value) in (int, float) and abs(cast(float, value)) < LARGE else None


def _somewhere(
    program: Program, of: tuple[str, str], holds: Callable[[Array, Array], Array], known: Mapping[str, Value]
) -> bool:
    """Whether it is so of the numbers of two operands at some place, of the shape to which both are broadcast."""
    one, other = (_numbers(program, x, known) for x in of)
    if one is None or other is None:
        return False
    try:
        pair = np.broadcast_arrays(one, other)
    except ValueError:  # their shapes are not those of one element each
        return False
    return pair[0].size <= MOST and bool(holds(*pair).any())


def _with(program: Instance, name: str, number: int) -> Instance | None:
    """Return a call with this number in all elements of an operand; None where its dtype has none such."""
    if isinstance(own := program.params.get(name), int | float):
        return smaller.with_param(program, name, float(number) if isinstance(own, float) else number) or program
    return filled(program, name, number)
