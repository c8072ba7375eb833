"""A program as it is called, in brackets behind its operator: how it is told where no rule is known of when it fails."""

from __future__ import annotations

import math
import re
from collections import abc

from opera import libraries
from opera.programs.program import Program
from opera.programs.values import RandomTensor, Sequence, Tensor, Value, named_inputs
from opera.triage.conditions import removable
from opera.triage.sentence import number

FEW = 3
"""Elements of a tensor that are told; of more the shape is."""
CAPTURED, OUTER = "captured", "of the outer scope"
"""The context of a call whose body reads values that are no arguments of it, and how such a value is told (ONNX, "Outer-scope
access")."""
CALLED, NODES = re.compile(r"(?m)^\s+\S[^=\n]* = ([\w.]+)(?: <| \((?![^()]*\) =>))"), 4
"""How ONNX's textual syntax has an operator that is called, and how many of a body are told."""
MOST, LONG = 4, 90
"""How many inputs and parameters are told, and characters of them together."""


def given(program: Program, first: abc.Sequence[str] = (), room: int = LONG) -> str:
    """Return what a program is given: `x=float32([-0.5, 2]), y=int64[2, 3], approximate=tanh`, numbers in round brackets and
    shapes without, in the order of the call, shortened where it is much; nothing of no inputs.

    Of one call inputs and parameters, of several the inputs.

    Args:
        first: Inputs and parameters that matter, those that do most first: where there is too little room for all, others are
            left out.
        room: Characters that there are for them.
    """
    calls = program.instances()
    held = [(x.name, _tensor(x.value)) for x in program.inputs if x.value is not None]
    told = [(name, f"{name}={text}" if name.isidentifier() else text) for name, text in held if text]
    outer = (calls[0].context.get(CAPTURED) or ()) if len(calls) == 1 else ()
    told = [(name, f"{text} {OUTER}" if name in outer else text) for name, text in told]
    matters = {
        name: (1, n) for n, name in enumerate(dict.fromkeys(first))
    }  # then other inputs, parameters, what is None
    ranks = {name: (0, 0) if n == 0 else matters.get(name, (2, 0)) for n, (name, _) in enumerate(told)}
    for name, value in calls[0].params.items() if len(calls) == 1 else ():
        if not any(named_inputs(value)):  # such says where inputs stand (`tensors=[tensors.0, tensors.1]`)
            told.append((name, f"{name}={_body(program.library, value) or removable.said(value)}"))
            ranks[name] = matters.get(name, (4 if value is None else 3, 0))
    kept, length = dict[str, str](), 0
    for name, text in sorted(told, key=lambda x: ranks[x[0]]):
        short = name if name in matters and name.isidentifier() else text  # that it is given is worth telling
        for form in (text, short):
            if name not in kept and len(kept) < MOST and length + len(form) + 2 <= room:
                length += len(form) + 2
                kept[name] = form
    words = [kept[name] for name, _ in told if name in kept]
    return ", ".join([*words, "…"] if len(kept) < len(told) else words)


def _body(library: str, value: Value) -> str:
    """Return the operators of a program that a call holds as a parameter, `<Constant, Optional>`; nothing of what is none."""
    found = list(dict.fromkeys(CALLED.findall(libraries.body(library, value))))
    return f"<{', '.join(found[:NODES])}{', …' if len(found) > NODES else ''}>" if found else ""


def _tensor(value: Value) -> str:
    match value:
        case Tensor() if 0 < math.prod(value.shape) <= FEW and value.dtype != "string":
            items = value.numbers()
            told = ", ".join(number(x) if isinstance(x, float) else str(x) for x in items.ravel().tolist())
            opened = len(value.shape)
            return f"{value.dtype}({'[' * opened}{told}{']' * opened})" if _flat(value.shape) else _shape(value)
        case Tensor() | RandomTensor():
            return _shape(value)
        case Sequence() if value.type:
            return f"sequence of {len(value.items)} {value.type}"
    return ""


def _flat(shape: tuple[int, ...]) -> bool:
    """Whether all elements lie along the last axis: they are told within as many brackets."""
    return math.prod(shape[:-1]) == 1


def _shape(value: Tensor | RandomTensor) -> str:
    return f"{value.dtype}{list(value.shape)}"
