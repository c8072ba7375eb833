"""What the first output that is expected of a program has, and another's may lack: lengths, special numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from opera.programs.program import Program
from opera.triage.conditions.peculiar import Array
from opera.triage.conditions.stated import Feature, Lengths

NO_ELEMENTS = "an output without elements"


def of_outputs(program: Program, shape: Callable[[Program], Lengths | None]) -> list[Feature]:
    """Return what the first output of a program has: no elements, one, an axis of length 1.

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
    for axis in range(len(shape(program) or ())):
        told.append(Feature(f"axis {axis} of the output of length 1", has(partial(_one_at, at=axis))))
    return [x for x in told if x.holds(program)] if shape(program) is not None else []


def of_expected(program: Program, numbers: Callable[[Program], Array | None]) -> list[Feature]:
    """Return which special numbers are expected in the first output of a program; `numbers` returns it, None where it is not
    known, or is no tensor of numbers: as `of_outputs`."""
    if numbers(program) is None:
        return []

    def has(where: Callable[[Array], Array]) -> Callable[[Program], bool]:
        return lambda x: (held := numbers(x)) is None or bool(where(held).any())

    found = [Feature(f"{says} in the expected output", has(where)) for says, where in EXPECTED.items()]
    return [x for x in found if x.holds(program)]


EXPECTED: Mapping[str, Callable[[Array], Array]] = {
    "NaN": np.isnan,
    "infinity": np.isposinf,
    "minus infinity": np.isneginf,
}
"""Special numbers of an output."""


def _one_at(shape: Lengths, at: int) -> bool:
    return shape[at : at + 1] == (1,)
