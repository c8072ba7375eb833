"""Values and programs as text for people: short, and never code that is meant to run."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import msgspec

from opera import libraries
from opera.programs.program import Graph, Instance, Program, Result, names_of
from opera.programs.values import Message, Named, Optional, RandomTensor, Sequence, Tensor, Value, named_inputs

SHORT = 12
"""Elements of a tensor that are shown."""
LONG = 300
"""Characters of a value that are shown."""
BODY = 12
"""Lines of a body of a call that are shown: what is longer, the script shows."""


def drawn(value: Value, may: str = "") -> str:
    """Return what can be said of a value that was drawn at random; `may` is what it may hold, in words."""
    form = f"{value.dtype}{list(value.shape)}, random" if isinstance(value, Tensor) else short(value)
    return f"{form}: {may}" if may else form


def short(value: Value) -> str:
    """Return a value in a few words."""
    match value:
        case None:
            return "left out"
        case Result(name=name):
            return name
        case Tensor():
            items = value.array().ravel()[:SHORT] if value.dtype == "string" else value.numbers().ravel()[:SHORT]
            more = ", …" if len(items) < math.prod(value.shape) else ""
            told = [x.decode(errors="replace") if isinstance(x, bytes) else x for x in items.tolist()]
            return f"{value.dtype}{list(value.shape)}: {', '.join(map(_number, told)) or 'no elements'}{more}"
        case RandomTensor():
            return f"{value.dtype}{list(value.shape)} random in [{value.low}, {value.high}), seed {value.seed}"
        case Sequence():
            return f"sequence of {len(value.items)} {value.type}: " + "; ".join(map(short, value.items[:3]))
        case Optional():
            return f"optional {value.type}: {short(value.value) if value.value is not None else 'empty'}"
        case Message():
            return f"{value.type}, {len(value.data)} bytes"
        case list() | tuple() if any(isinstance(x, msgspec.Struct) for x in value):
            return f"{len(value)} values: " + "; ".join(map(short, value[:3]))
    text = repr(value)
    return text if len(text) <= LONG else text[: LONG - 1] + "…"


def given(value: Value) -> str:
    """Return a parameter's value as it would stand in a call."""
    match value:
        case Named(kind=kind, name=name):
            return name if kind.endswith(".input") else f"{kind.partition('.')[0]}.{name}" if "." in kind else name
        case Message():
            return value.told
        case list() | tuple():
            inner = ", ".join(map(given, value))
            return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' if len(value) == 1 else ''})"
        case Tensor() | RandomTensor() | Sequence() | Optional() | Result():
            return f"<{short(value)}>"
    return short(value) if value is not None else "None"


def lines(program: Program) -> Iterator[str]:
    """Yield a program as a developer would write it: an input a line, then a call a line."""
    for operand in program.inputs:
        if operand.value is not None:
            yield f"{operand.name} = {short(operand.value)}"
    for call, names in zip(program.instances(), names_of(program), strict=True):
        stand = set(named_inputs(call.params))  # a list of tensors is a parameter that names them
        own = (x for x in call.inputs if x.name not in stand)
        arguments = [names.get(x.name, "None") if x.value is not None else "None" for x in own]
        while arguments and arguments[-1] == "None" and "opset" not in call.context:  # a node may name nothing
            arguments.pop()
        places = {x: place for place, x in enumerate(_order(call))}
        named = sorted(call.params.items(), key=lambda x: places.get(x[0], len(places)))
        params = [f"{key}={given(value)}" for key, value in named]
        returned = [x or "_" for x in call.outputs]
        while returned and returned[-1] == "_" and ("opset" not in call.context or not any(call.outputs)):
            returned.pop()
        results = ", ".join(returned)
        note = "".join(f"  # {x}" for x in (_notes(call),) if x)
        yield f"{f'{results} = ' if results else ''}{call.operator}({', '.join([*arguments, *params])}){note}"
        for key, value in named:
            yield from _body(call.library, key, value)
    if isinstance(program, Graph):
        yield f"return {', '.join(program.outputs)}"


def _body(library: str, name: str, value: Value) -> Iterator[str]:
    """Yield a program that a call holds as a parameter, as its library writes it, where that is short."""
    told = libraries.body(library, value).splitlines()
    if 0 < len(told) <= BODY and max(map(len, told)) <= LONG:
        yield f"  {name}:"
        yield from (f"    {line}" for line in told)


def _order(call: Instance) -> Iterator[str]:
    """Yield the names of a call's arguments as it was written, where that is known."""
    for how in call.context.values():
        if isinstance(how, dict) and {"args", "kwargs"} <= how.keys():
            yield from (x for x in (*how["args"], *how["kwargs"]) if isinstance(x, str))


def _notes(call: Instance) -> str:
    """Return what else decides the meaning of a call."""
    opset: Any = call.context.get("opset", {})
    opsets = opset.items() if isinstance(opset, dict) else ()
    notes = [f"opset {version}{f' of {domain}' if domain else ''}" for domain, version in opsets]
    notes += ["expanded to its function body"] if "body" in call.context else []
    return ", ".join([*notes, *(["in training mode"] if call.context.get("training") is True else [])])


def _number(item: object) -> str:
    return f"{item:.6g}" if isinstance(item, float) else repr(item)
