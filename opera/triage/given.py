"""A program as it is called, in brackets behind its operator: how it is told where no rule is known of when it fails."""

from __future__ import annotations

import math
from collections.abc import Iterator

from opera.programs.program import Instance, Program
from opera.programs.values import RandomTensor, Tensor, Value, named_inputs
from opera.triage.conditions import removable
from opera.triage.sentence import number

FEW = 3
"""Elements of a tensor that are told; of more the shape is."""
MOST, LONG = 4, 90
"""How many inputs and parameters are told, and characters of them together."""


def given(program: Program) -> str:
    """Return what a program is given: `x=float32([-0.5, 2]), y=int64[2, 3], approximate=tanh`, numbers in round brackets and
    shapes without, shortened where it is much; nothing of no inputs.

    Of one call inputs and parameters, of several the inputs.
    """
    calls = program.instances()
    held = ((x.name, _tensor(x.value)) for x in program.inputs if x.value is not None)
    words = [f"{name}={told}" if name.isidentifier() and told else told for name, told in held]
    words += _parameters(calls[0]) if len(calls) == 1 else []
    return ", ".join(_within(list(filter(None, words))))


def _parameters(call: Instance) -> list[str]:
    """Return the parameters of a call; nothing of those that say where inputs stand (`tensors=[tensors.0, tensors.1]`)."""
    return [f"{name}={removable.said(x)}" for name, x in call.params.items() if not any(named_inputs(x))]


def _within(words: list[str]) -> Iterator[str]:
    """Yield as many of them as there is room for, and a mark where there is none for more."""
    length = 0
    for count, x in enumerate(words):
        length += len(x) + 2
        if count >= MOST or length > LONG:
            yield "…"
            return
        yield x


def _tensor(value: Value) -> str:
    match value:
        case Tensor() if 0 < math.prod(value.shape) <= FEW and value.dtype != "string":
            items = value.numbers()
            told = ", ".join(number(x) if isinstance(x, float) else str(x) for x in items.ravel().tolist())
            opened = len(value.shape)
            return f"{value.dtype}({'[' * opened}{told}{']' * opened})" if _flat(value.shape) else _shape(value)
        case Tensor() | RandomTensor():
            return _shape(value)
    return ""


def _flat(shape: tuple[int, ...]) -> bool:
    """Whether all elements lie along the last axis: they are told within as many brackets."""
    return math.prod(shape[:-1]) == 1


def _shape(value: Tensor | RandomTensor) -> str:
    return f"{value.dtype}{list(value.shape)}"
