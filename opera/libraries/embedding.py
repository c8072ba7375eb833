"""Calls of which the model holds an argument as a constant, in libraries whose calls may be given tensors as literals."""

from __future__ import annotations

from typing import Any

from opera.programs.program import Argument, Call, Graph, Instance, Operand
from opera.programs.values import Named, Tensor, Value

ONE = ("output_0",)
"""What the result of a call is called whose outputs are not named: the first of them is asked for."""


def embedded(call: Instance, name: str, kind: str) -> list[Graph]:
    """Return the program in which a call is given a tensor of this name as a literal; none where nothing else is an input.

    Args:
        kind: Of the Named that stands for an input inside of a list or an index.
    """
    value = next((x.value for x in call.inputs if x.name == name), None)
    rest = tuple(x for x in call.inputs if x.name != name and x.value is not None)
    how: Any = call.context.get("call")
    if not isinstance(value, Tensor) or not rest or not isinstance(how, dict):
        return []
    params = {key: _filled(x, Named(kind, name), value) for key, x in call.params.items()}
    if any(name in names for names in how.values()):
        params[name] = value
    outputs = call.outputs if any(call.outputs) else ONE
    names = {x.name for x in rest}
    outputs = tuple(f"{x}_" if x in names else x for x in outputs)
    made = Call(call.operator, params, tuple(Argument(x.name, x.name) for x in rest), outputs, call.context)
    return [Graph(call.library, tuple(Operand(x.name, x.value) for x in rest), (made,), tuple(filter(None, outputs)))]


def _filled(value: Value, place: Named, tensor: Tensor) -> Value:
    """Return an argument with a tensor in the place of the input that it refers to."""
    match value:
        case Named():
            return tensor if value == place else value
        case list() | tuple():
            return type(value)(_filled(x, place, tensor) for x in value)
        case dict():
            return {key: _filled(x, place, tensor) for key, x in value.items()}
    return value
