"""Exact ties: elements that an operator rounds half to even, where what is rounded lies exactly between two integers.

Nothing was rounded before such an element, so that its result is told by the documentation alone: no perturbation excuses
another. Which operators round, and what, is declared in instrumentation/<library>.toml, `[ties]`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from opera import resources
from opera.programs.program import Instance, Program
from opera.programs.values import RandomTensor, Tensor

Array = np.ndarray[Any, Any]
LARGEST = 1 << 16
"""Elements beyond which no tie is looked for."""


def exact(program: Program, shape: tuple[int, ...]) -> Array | None:
    """Return which elements of the result of a program of one call are exact ties; None where that is not told.

    An operator is declared with the input that it rounds, and the one that it divides it by first, if it does, or the number of
    `steps` into which the range of the input, and 0, is divided. A divisor of one dimension stands along `axis`, one of more is
    repeated along it (blocks).
    """
    found = _rounded(program, shape)
    return None if found is None else _ties(*found[1:])


def untied(program: Instance) -> tuple[str, Array] | None:
    """Return the input that a program of one call rounds, and numbers for it without exact ties: a quarter of what they are
    divided by is added to these. None where there are none."""
    declared = _declared(program)
    held = _input(program, declared["of"]) if declared else None
    found = None if held is None else _rounded(program, held.shape)
    if found is None or not (tied := _ties(*found[1:])).any():
        return None
    name, numerator, divisor = found
    return name, np.where(tied, numerator + divisor / 4, numerator)


def _declared(program: Instance) -> dict[str, Any] | None:
    declared = resources.declaration("instrumentation", program.library).get("ties", {}).get(program.operator)
    if declared is None or any(program.params.get(name) for name in declared.get("unless", ())):
        return None
    told = declared.get("when", {}).items()
    return declared if all(program.params.get(name) in values for name, values in told) else None


def _rounded(program: Program, shape: tuple[int, ...]) -> tuple[str, Array, Array] | None:
    """Return which input is rounded, its numbers, and what each is divided by first."""
    if not isinstance(program, Instance) or int(np.prod(shape)) > LARGEST:
        return None
    declared = _declared(program)
    if declared is None:
        return None
    numerator, divisor = _input(program, declared["of"]), _input(program, declared.get("by", ""))
    if numerator is None or numerator.shape != shape or (declared.get("by") and divisor is None):
        return None
    if steps := declared.get("steps"):
        divisor = _step(numerator, steps)
        if divisor is None:
            return None
    spread = None if divisor is None else _along(divisor, shape, program.params.get("axis", 1))
    if divisor is not None and spread is None:
        return None
    return declared["of"], numerator, np.ones(shape) if spread is None else spread


def _input(program: Instance, name: str) -> Array | None:
    for operand in program.inputs:
        if operand.name == name and isinstance(operand.value, Tensor | RandomTensor):
            value = operand.value.tensor() if isinstance(operand.value, RandomTensor) else operand.value
            return value.numbers().astype(np.float64)
    return None


def _step(numbers: Array, steps: int) -> Array | None:
    """Return the range of numbers, and 0, over so many steps, where float32 holds it: else it is rounded before any of them."""
    ends = [Fraction(float(of(numbers, initial=0.0))) for of in (np.max, np.min) if np.isfinite(numbers).all()]
    step = (ends[0] - ends[1]) / steps if ends else Fraction(0)
    return np.array(float(step)) if step and Fraction(float(np.float32(float(step)))) == step else None


def _along(divisor: Array, shape: tuple[int, ...], axis: object) -> Array | None:
    """Return the divisor of each element, None where the shapes do not go together."""
    if divisor.size == 1:
        return np.full(shape, divisor.ravel()[0])
    if not isinstance(axis, int) or not -len(shape) <= axis < len(shape):
        return None
    if divisor.ndim == 1:
        wanted = [1] * len(shape)
        wanted[axis] = divisor.size
        divisor = divisor.reshape(wanted)
    if divisor.ndim == len(shape) and divisor.shape[axis] and 1 < divisor.shape[axis] < shape[axis]:
        divisor = np.repeat(divisor, -(-shape[axis] // divisor.shape[axis]), axis).take(range(shape[axis]), axis)
    try:
        return np.broadcast_to(divisor, shape)
    except ValueError:
        return None


def _ties(numerator: Array, divisor: Array) -> Array:
    """Return where numerator / divisor is an integer and a half, exactly."""
    found = np.zeros(numerator.shape, dtype=bool)
    with np.errstate(all="ignore"):
        twice = 2 * numerator / divisor
        near = np.isfinite(twice) & (np.abs(twice) < 2.0**53)
        near &= np.abs(np.rint(np.where(near, twice, 0.0))) % 2 == 1
    for place in map(tuple, np.argwhere(near)):
        odd = int(np.rint(twice[place]))
        found[place] = 2 * Fraction(float(numerator[place])) == odd * Fraction(float(divisor[place]))
    return found
