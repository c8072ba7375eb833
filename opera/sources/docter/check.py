"""Does an input satisfy the constraints of its API? Written apart from the generator, so that each checks the other."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from opera.programs.values import Named, Tensor, Value
from opera.sources.docter.constraints import Api, Parameter, Rest, Shape, Variable
from opera.sources.docter.terms import Unbound, Values, inside, tensor_dtypes

_CONTAINERS: dict[type, str] = {list: "list", tuple: "tuple", dict: "dict"}
DTYPE, STRUCTURE, SHAPE, VALUE = "dtype", "structure", "shape", "value"
_WORDS = {
    bool: ("bool",),
    int: ("int", "numeric", "scalar", "number", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    float: ("float", "numeric", "scalar", "number", "float16", "float32", "float64", "bfloat16"),
    str: ("string",),
}  # fmt: skip


def broken(api: Api, values: Mapping[str, Value]) -> set[tuple[str, str]]:
    """Return (parameter, category) of every constraint that an input breaks; what a constraint cannot say of a value holds.

    A parameter that is None is as good as left out.
    """
    scope = Values(values, _bindings(api, values))
    found = set()
    for name, value in values.items():
        if value is not None and name in api.parameters:
            found |= {(name, category) for category in _broken(api.parameters[name], value, scope)}
    return found


def _bindings(api: Api, values: Mapping[str, Value]) -> dict[str, int]:
    """Give free variables the first size that they stand for."""
    bound: dict[str, int] = {}
    for name, value in values.items():
        parameter = api.parameters.get(name)
        for item in _items(value):
            shape = _shape(item)
            for stated in parameter.shapes if parameter and shape is not None else ():
                if shape is not None and len(stated.terms) == len(shape):
                    for term, size in zip(stated.terms, shape, strict=True):
                        if isinstance(term, Variable):
                            bound.setdefault(term.name, size)
    return bound


def _broken(parameter: Parameter, value: Value, scope: Values) -> Iterator[str]:
    if (parameter.structures or parameter.tensors) and not _structured(parameter, value):
        yield STRUCTURE
    if parameter.dtypes and not all(_typed(parameter, item, scope) for item in _items(value)):
        yield DTYPE
    if (parameter.ndims or parameter.shapes) and not _shaped(parameter, value, scope):
        yield SHAPE
    if not all(_valued(parameter, item, scope) for item in _items(value)):
        yield VALUE


def _items(value: Value) -> list[Value]:
    """Return the elements of a container, or the value itself."""
    if isinstance(value, list | tuple):
        return [x for item in value for x in _items(item)]
    return list(value.values()) if isinstance(value, dict) else [value]


def _structured(parameter: Parameter, value: Value) -> bool:
    word = _CONTAINERS.get(type(value))
    if word:
        return word in parameter.structures
    if isinstance(value, Tensor):
        return bool(parameter.tensors)
    scalar = any(x.sign == "=" and getattr(x.term, "value", None) == 0 for x in parameter.ndims)
    return scalar or bool(parameter.enum) or isinstance(value, Named)


def _typed(parameter: Parameter, item: Value, scope: Values) -> bool:
    names = set()
    for dtype in parameter.dtypes:
        if not dtype.of:
            names.add(dtype.name)
            continue
        other = next((x for x in _items(scope.values.get(dtype.of)) if isinstance(x, Tensor)), None)
        if other is None:
            return True  # it follows something that has no dtype
        names.add(other.dtype)
    if isinstance(item, Tensor):
        return item.dtype in (*tensor_dtypes(tuple(names)), "string" if "string" in names else "")
    if isinstance(item, Named):
        return item.kind != "dtype" or "dtype" in names
    if isinstance(item, str) and (parameter.enum or "dtype" in names):
        return True
    return item is None or bool(names & set(_WORDS.get(type(item), names)))


def _shape(item: Value) -> tuple[int, ...] | None:
    if isinstance(item, Tensor):
        return item.shape
    if isinstance(item, list | tuple):
        return (len(item),)
    return () if isinstance(item, bool | int | float | str) else None


def _shaped(parameter: Parameter, value: Value, scope: Values) -> bool:
    """A list of tensors is looked at tensor by tensor."""
    several = isinstance(value, list | tuple) and any(isinstance(x, Tensor) for x in value)
    items = list(value) if isinstance(value, list | tuple) and several else [value]
    return all(_fits(parameter, _shape(item), scope) for item in items)


def _fits(parameter: Parameter, shape: tuple[int, ...] | None, scope: Values) -> bool:
    if shape is None:
        return True
    try:
        allowed = scope.ndims(parameter)
        if allowed is not None and len(shape) not in allowed:
            return False
        # Where a number of dimensions is stated that no shape has, the shapes speak of the other cases.
        stated = [x for x in parameter.shapes if _matches_length(x, len(shape))]
        if not stated:
            return bool(parameter.ndims) or not parameter.shapes
        return any(_equal(scope.sizes(x), shape) for x in stated)
    except Unbound:
        return True


def _matches_length(shape: Shape, length: int) -> bool:
    if any(isinstance(term, Rest) for term in shape.terms):
        return length >= len(shape.terms) - 1
    return len(shape.terms) == length or any(getattr(x, "fact", "") == "shape" for x in shape.terms)


def _equal(stated: tuple[int | None, ...], shape: tuple[int, ...]) -> bool:
    if None not in stated:
        return stated == shape
    place = stated.index(None)
    tail = len(stated) - place - 1
    if len(shape) < len(stated) - 1:
        return False
    return stated[:place] == shape[:place] and (not tail or stated[place + 1 :] == shape[-tail:])


def _valued(parameter: Parameter, item: Value, scope: Values) -> bool:
    if isinstance(item, str):
        return not parameter.enum or item in parameter.enum
    if not parameter.ranges or isinstance(item, bool):
        return True
    if isinstance(item, int | float):
        numbers = [float(item)]
    elif (
        isinstance(item, Tensor)
        and not item.dtype.startswith("complex")
        and item.dtype not in ("bool", "string")
        and math.prod(item.shape) > 0
    ):
        array = item.numbers()
        numbers = [float(np.min(array)), float(np.max(array))]
    else:
        return True
    try:
        return any(all(inside(x, *scope.bounds(made), made) for x in numbers) for made in parameter.ranges)
    except Unbound:
        return True
