"""What the first output that is expected of a program has, and another's may lack: lengths, special numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from opera.programs.program import Program
from opera.programs.values import RandomTensor, Tensor, Value
from opera.triage.conditions.dtypes import INTEGERS
from opera.triage.conditions.peculiar import Array
from opera.triage.conditions.representable import inexact
from opera.triage.conditions.stated import Feature, Lengths
from opera.triage.shrink import simpler, smaller

NO_ELEMENTS = "an output without elements"
OVERFLOW = "an integer overflow"
BEYOND_FLOAT32 = f"{OVERFLOW} or a result that float32 does not hold"
"""How it is told of integers that are computed in float32: those beyond their own dtype do not wrap around there."""
BITWISE = re.compile(r"bit|invert|not|xor|shift", re.IGNORECASE)
"""Operators on bits, of which there are more in a wider dtype."""
WIDE, NARROW = "int64", frozenset(("int8", "int16", "int32", "uint8", "uint16", "uint32"))
"""An integer dtype that holds what sums and products of small numbers of these give."""


def of_outputs(program: Program, shape: Callable[[Program], Lengths | None]) -> list[Feature]:
    """Return what the first output of a program has: no elements, one, an axis of length 1; one of length 0 where the first
    input has a longer one, for who takes a 0 in a shape for the length that was there (TVM's `squeeze` of `[1, 0]`).

    `shape` returns that of the first output that is expected; None where it is not known, or is
    no tensor: another program may have all of these then, and of this one none is told.
    """
    if shape(program) is None:
        return []

    def has(of: Callable[[Lengths], bool]) -> Callable[[Program], bool]:
        return lambda x: (held := shape(x)) is None or of(held)

    told = [Feature(NO_ELEMENTS, has(lambda x: 0 in x)), Feature("a 0-d output", has(lambda x: not x))]
    told += [
        Feature("an output axis of length 1", has(lambda x: 1 in x)),
        Feature("an output axis of length 1 after the first two", has(lambda x: 1 in x[2:])),
        Feature("an output of one element", has(lambda x: math.prod(x) == 1)),
    ]
    if name := next((x.name for x in program.inputs if _shape_of(x.value) is not None), ""):
        told.append(Feature(f"an output axis of length 0 where that of {name} is longer", partial(_moved, shape=shape)))
    for axis in range(len(shape(program) or ())):
        told.append(Feature(f"axis {axis} of the output of length 1", has(partial(_one_at, at=axis))))
    return [x for x in told if x.holds(program)] if shape(program) is not None else []


def _shape_of(value: Value) -> Lengths | None:
    return value.shape if isinstance(value, Tensor | RandomTensor) else None


def _moved(program: Program, shape: Callable[[Program], Lengths | None]) -> bool:
    made, given = shape(program), next((x for y in program.inputs if (x := _shape_of(y.value)) is not None), ())
    return made is None or any(now == 0 < before for now, before in zip(made, given, strict=False))


def of_expected(program: Program, numbers: Callable[[Program], Array | None]) -> list[Feature]:
    """Return which special numbers are expected in the first output of a program; `numbers` returns it, None where it is not
    known, or is no tensor of numbers: as `of_outputs`."""
    if numbers(program) is None:
        return []

    def has(where: Callable[[Array], Array]) -> Callable[[Program], bool]:
        return lambda x: (held := numbers(x)) is None or bool(where(held).any())

    found = [Feature(f"{says} in the expected output", has(where)) for says, where in EXPECTED.items()]
    return [x for x in found if x.holds(program)]


def of_overflow(program: Program, outputs: Callable[[Program], Sequence[Value] | None]) -> list[Feature]:
    """Return that what a program computes is beyond the dtype of its integers, which wrap around then, where that is so; and
    that it is, or is one of the integers that float32 does not hold.

    `outputs` returns what is expected; None where nothing is, or nobody asks any more: what overflows is what is another number
    in int64.
    """

    def overflows(x: Program) -> bool | None:
        held, wide = {y.dtype for y in smaller.leaves(x)} & NARROW, x
        drawn = any(isinstance(y, RandomTensor) for y in smaller.leaves(x))  # other numbers in another dtype
        held = set() if drawn or any(map(BITWISE.search, x.operators)) else held
        for dtype in held:
            wide = smaller.applied(partial(smaller.as_dtype, dtype=dtype, other=WIDE), wide) or x
        found = [] if wide == x else [outputs(y) for y in (x, wide)]
        if None in found:
            return None
        pairs = zip(*found, strict=False) if found else ()
        return any(isinstance(a, Tensor) and isinstance(b, Tensor) and _unlike(a, b) for a, b in pairs)

    def beyond(x: Program) -> bool:
        made = outputs(x)
        held = [simpler.numbers(y) for y in made or () if isinstance(y, Tensor) and y.dtype in INTEGERS]
        return made is None or overflows(x) is not False or any(inexact(y, "float32").any() for y in held)

    if not overflows(program):
        return []
    return [Feature(OVERFLOW, lambda x: overflows(x) is not False), Feature(BEYOND_FLOAT32, beyond)]


def _unlike(one: Tensor, wide: Tensor) -> bool:
    """Whether numbers of a narrow dtype are what is left of other ones in a wide one, which it does not hold."""
    if one.dtype not in NARROW or wide.dtype != WIDE or one.shape != wide.shape:
        return False
    whole = simpler.numbers(wide)
    beyond = whole.astype(one.dtype).astype(WIDE) != whole
    return bool((beyond & (whole.astype(one.dtype) == simpler.numbers(one))).any())


EXPECTED: Mapping[str, Callable[[Array], Array]] = {
    "NaN": np.isnan,
    "infinity": np.isposinf,
    "minus infinity": np.isneginf,
}
"""Special numbers of an output."""


def _one_at(shape: Lengths, at: int) -> bool:
    return shape[at : at + 1] == (1,)
