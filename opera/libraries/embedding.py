"""Calls of which the model holds an argument as a constant, in libraries whose calls may be given tensors as literals."""

from __future__ import annotations

from typing import Any

import msgspec

from opera.programs.program import Instance
from opera.programs.values import Named, Tensor, Value


def embedded(call: Instance, name: str, kind: str) -> list[Instance]:
    """Return a call that is given a tensor of this name as a literal; none where nothing else is an input.

    Args:
        kind: Of the Named that stands for an input inside of a list or an index.
    """
    value = next((x.value for x in call.inputs if x.name == name), None)
    rest = tuple(x for x in call.inputs if x.name != name)
    how: Any = call.context.get("call")
    if not isinstance(value, Tensor) or not any(x.value is not None for x in rest) or not isinstance(how, dict):
        return []
    params = {key: _filled(x, Named(kind, name), value) for key, x in call.params.items()}
    if any(name in names for names in how.values()):
        params[name] = value
    return [msgspec.structs.replace(call, params=params, inputs=rest)]


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
