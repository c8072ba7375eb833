"""Calls with a longer axis: what rounding explains of few numbers, it does not of many.

A transform whose angles are wrong by a rounding of their own (pi n² / N in float32, never reduced) is off by three epsilons
for ten numbers, as any sum may be, and by a thousand for a thousand.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

import msgspec
import numpy as np

from opera.programs.program import Instance, Operand, Program
from opera.programs.values import RandomTensor, Tensor, Value
from opera.triage.refilled import FLOATS
from opera.triage.shrink import smaller

LONG, MOST = 1000, 200_000
"""How long an axis becomes, or as long as the elements that a tensor may have then let it."""
FACTOR = 25
"""How many times as large all sizes become: a frame of 16 samples is one of 400 then; and how many times as long an axis is at
least that does not become LONG."""
ALONE, ALL, THERE = range(3)
"""Which axes become long: one of the first tensor, all of its length (both operands of a product), and those of its length that
are at its place in the others (the channels of a weight, and not its kernel, too)."""
SIZES = ("int32", "int64")
"""Dtypes of numbers that may say how long something is."""


def longer(program: Program) -> Iterator[Program]:
    """Yield a call with a longer axis of its first tensor of floats, the longest axis first: alone, then with others of floats
    that are as long; and with all sizes larger, where numbers say what is summed up (the length of a frame). Numbers are drawn
    between its least and its greatest, and of those that have one sign, between -1 and 1 as well."""
    floats = [x for x in program.inputs if isinstance(x.value, Tensor | RandomTensor) and x.value.dtype in FLOATS]
    if not isinstance(program, Instance) or not floats:
        return
    first = floats[0].value
    if not isinstance(first, Tensor | RandomTensor) or 0 in first.shape:
        return
    low, high = _range(first)
    ranges = [(low, high), *([(-1.0, 1.0)] if low * high >= 0 else [])]
    steps = [
        partial(_with_axis, axis=axis, long=long, which=which, span=span)
        for axis in sorted(range(len(first.shape)), key=lambda n: -first.shape[n])
        if (long := _long(first.shape, axis))
        for which in (ALONE, ALL, THERE)
        for span in ranges
    ]
    seen = {program.id}
    for step in (*steps, *(partial(_enlarged, span=span) for span in ranges)):
        made = smaller.applied(partial(step, first=floats[0]), program)  # nothing where no tensor may be as large
        if isinstance(made, Instance) and made.id not in seen and _most(made) <= MOST:
            seen.add(made.id)
            yield made


def _long(shape: tuple[int, ...], axis: int) -> int:
    """Return how long an axis may become; 0 where that is not long enough, or it is as long already."""
    length = shape[axis]
    most = min(LONG, MOST * length // math.prod(shape))
    return most if 1 < length < LONG and most >= min(LONG, FACTOR * length) else 0


def _with_axis(
    program: Program, first: Operand, axis: int, long: int, which: int, span: tuple[float, float]
) -> Instance | None:
    """Return a call with a longer axis of its first tensor of floats, alone or with others that are as long."""
    if not isinstance(program, Instance) or not isinstance(first.value, Tensor | RandomTensor):
        return None
    length = first.value.shape[axis]
    inputs = tuple(_stretched(x, length, long, axis, which, x is first, span) for x in program.inputs)
    return msgspec.structs.replace(program, inputs=inputs)


def _most(program: Instance) -> int:
    """Return how many elements the largest tensor has."""
    return max(math.prod(x.value.shape) for x in program.inputs if isinstance(x.value, Tensor | RandomTensor))


def _enlarged(program: Program, first: Operand, span: tuple[float, float]) -> Instance | None:
    """Return a call with FACTOR times as many numbers along the first tensor's longest axis and in other lists of floats, and
    FACTOR times each whole number that is more than 1; None where there is no such number."""
    if not isinstance(program, Instance):
        return None
    params = {name: _larger(value) for name, value in program.params.items()}
    inputs, said = list[Operand](), params != program.params
    for x in program.inputs:
        held = x.value
        if isinstance(held, Tensor) and held.dtype in SIZES and held.shape == ():
            held = Tensor.of(np.array(_larger(int(held.numbers())), held.dtype))
            said = said or held != x.value
        elif (
            isinstance(held, Tensor | RandomTensor)
            and held.dtype in FLOATS
            and held.shape
            and (x is first or len(held.shape) == 1)
        ):
            longest = max(range(len(held.shape)), key=lambda n: held.shape[n])
            shape = tuple(length * FACTOR if n == longest else length for n, length in enumerate(held.shape))
            held = RandomTensor(held.dtype, shape, 0, *(span if x is first else _range(held)))
        inputs.append(msgspec.structs.replace(x, value=held))
    return msgspec.structs.replace(program, params=params, inputs=tuple(inputs)) if said else None


def _larger(value: Value) -> Value:
    """Return a whole number FACTOR times as large, where it may be the size of a tensor then (the end of a Slice is none)."""
    size = isinstance(value, int) and not isinstance(value, bool) and 1 < value <= MOST // FACTOR
    return value * FACTOR if size and isinstance(value, int) else value


def _range(tensor: Tensor | RandomTensor) -> tuple[float, float]:
    """Return the least and the greatest finite number of a tensor, 0 and 1 where there is none, or but one."""
    if isinstance(tensor, RandomTensor):
        return tensor.low, tensor.high
    found = [float(x) for x in tensor.numbers().ravel().tolist() if math.isfinite(x)]
    return (min(found), max(found)) if found and min(found) < max(found) else (0.0, 1.0)


def _stretched(
    given: Operand, length: int, long: int, axis: int, which: int, is_first: bool, span: tuple[float, float]
) -> Operand:
    """Return an input with each axis that is to be longer so; the first one, with numbers between two."""
    held = given.value
    if not isinstance(held, Tensor | RandomTensor) or held.dtype not in FLOATS or not (is_first or which):
        return given
    with_it = {n for n, x in enumerate(held.shape) if x == length and (which == ALL or (which == THERE and n == axis))}
    shape = tuple(long if n in with_it or (is_first and n == axis) else x for n, x in enumerate(held.shape))
    if shape == held.shape and not is_first:
        return given
    low, high = span if is_first else _range(held)
    return msgspec.structs.replace(given, value=RandomTensor(held.dtype, shape, 0, low, high))
