"""What the schemas of ONNX's operators admit, point by point, and which points a call is at.

Points are those of the newest version of an operator: each type that a type variable admits; each attribute left out, given as
its default, and given otherwise, by classes of values; each optional input given and left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from opera.errors import InvalidTest
from opera.libraries import INPUT, TYPE, VALUE, Point
from opera.libraries.onnx import codec, schemas
from opera.libraries.onnx import wrap as onnx_model
from opera.programs.program import Instance
from opera.programs.values import RandomTensor, Tensor, Value

LEFT_OUT, DEFAULT, GIVEN = "left out", "default", "given"
WHOLE = ("negative", "0", "1", "larger")
FLAGS = ("0", "1")
REAL = ("negative", "0", "positive")


@cache
def admitted() -> dict[str, frozenset[Point]]:
    """Return operator → the points that its newest schema admits, of every operator that is not deprecated."""
    return {name: frozenset(_points(name, schema)) for name, schema in newest().items()}


@cache
def newest() -> dict[str, Any]:
    """Return operator → its newest schema, of every operator that is not deprecated."""
    from onnx import defs

    found: dict[str, Any] = {}
    for schema in defs.get_all_schemas_with_history():
        name = f"{schema.domain}::{schema.name}" if schema.domain else schema.name
        if name not in found or schema.since_version > found[name].since_version:
            found[name] = schema
    return {name: found[name] for name in sorted(found) if not found[name].deprecated}


def _points(operator: str, schema: Any) -> Iterator[Point]:
    for constraint in schema.type_constraints:
        for kind in constraint.allowed_type_strs:
            yield Point(TYPE, operator, constraint.type_param_str, kind)
    for attribute in schema.attributes.values():
        for value in classes(attribute):
            yield Point(VALUE, operator, attribute.name, value)
    for formal in schema.inputs:
        if formal.option.name == "Optional":
            yield from (Point(INPUT, operator, formal.name, value) for value in (GIVEN, LEFT_OUT))


def classes(attribute: Any) -> tuple[str, ...]:
    """Return the classes of an attribute's values that a schema tells apart; LEFT_OUT is one where it may be left out."""
    stated = default(attribute)
    found = [] if attribute.required else [LEFT_OUT]
    found += [] if stated is None else [DEFAULT]
    match attribute.type.name:
        case "INT":
            whole = FLAGS if schemas.is_flag(attribute) else WHOLE
            more: tuple[str, ...] = tuple(x for x in whole if x != str(stated))
        case "FLOAT":
            more = tuple(x for x in REAL if x != "0" or stated != 0)
        case "STRING":
            more = tuple(x for x in schemas.words(attribute.description, stated) if x != stated)
        case _:
            more = (GIVEN,)
    return (*found, *more)


def default(attribute: Any) -> Any:
    """Return the default of an attribute as instances hold it, None where it has none."""
    from onnx import helper

    if not attribute.default_value.type:
        return None
    value = helper.get_attribute_value(attribute.default_value)
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def class_of(attribute: Any, value: Value) -> str:
    """Return the class that a given value belongs to; one that `classes` does not name is no point."""
    stated = default(attribute)
    if stated is not None and value == stated:
        return DEFAULT
    if attribute.type.name == "STRING":
        return str(value)
    if attribute.type.name in ("INT", "FLOAT") and isinstance(value, int | float):
        if value < 0:
            return "negative"
        if attribute.type.name == "FLOAT":
            return "positive" if value > 0 else "0"
        return str(value) if value <= 1 else "larger"
    return GIVEN


def reached(call: Instance) -> frozenset[Point]:
    """Return the points that a call is at, of those that its operator's newest schema admits; of inputs, types alone count."""
    whole = admitted().get(call.operator)
    if whole is None or "body" in call.context:
        return frozenset()
    domain, name = onnx_model.split(call.operator)
    try:
        found = _reached(call, domain, name)
    except InvalidTest:
        return frozenset()
    return whole & frozenset(found)


def _reached(call: Instance, domain: str, name: str) -> Iterator[Point]:
    from onnx import defs

    try:
        schema = defs.get_schema(name, onnx_model.opset(call).get(domain, 0), domain)
    except defs.SchemaError:
        return
    given = {x.name: x.value for x in call.inputs if x.value is not None}
    for formal in schema.inputs:
        if formal.option.name == "Optional":
            yield Point(INPUT, call.operator, formal.name, GIVEN if formal.name in given else LEFT_OUT)
    for attribute in newest()[call.operator].attributes.values():
        if attribute.name not in call.params:
            yield Point(VALUE, call.operator, attribute.name, LEFT_OUT)
        else:
            value = class_of(attribute, call.params[attribute.name])
            yield Point(VALUE, call.operator, attribute.name, value)
    types = {name: _type(value) for name, value in given.items()}
    types |= _outputs(call, schema, given)
    for formal, actual in formals(schema, [*call.inputs], [*call.outputs]):
        if actual in types:
            yield Point(TYPE, call.operator, formal.type_str, types[actual])


def _type(value: Value) -> str:
    """Return the type of a value as schemas write it."""
    if isinstance(value, Tensor | RandomTensor):
        return _element_type(value.dtype)
    return codec.schema_type(codec.type_proto(value))


@cache
def _element_type(dtype: str) -> str:
    return codec.element_type(codec.ELEMENT_TYPES[dtype])


def formals(schema: Any, inputs: list[Any], outputs: list[str]) -> Iterator[tuple[Any, str]]:
    """Yield each formal parameter of a schema with the name of an input or output of the call; variadic ones several times."""
    captured = [x.name for x in inputs]
    for formals, names in ((schema.inputs, captured), (schema.outputs, outputs)):
        known = {formal.name: formal for formal in formals}
        for name in names:
            formal = known.get(name) or known.get(re.sub(r"_\d+$", "", name))
            if formal is not None:
                yield formal, name


def _outputs(call: Instance, schema: Any, given: dict[str, Value]) -> dict[str, str]:
    """Return output → its type as ONNX infers it, of those whose types do not follow from type variables of inputs."""
    import onnx

    named = {formal.type_str for formal in schema.inputs}
    if all(x.type_str in named or "(" in x.type_str for x in schema.outputs):
        return {}
    made = onnx_model.parts(call)
    blank = [onnx.TypeProto() for _ in made.outputs]
    data = onnx_model.model(call, made, blank, check=False)
    try:
        graph = onnx.shape_inference.infer_shapes(onnx.load_model_from_string(data)).graph
    except (onnx.shape_inference.InferenceError, ValueError, RuntimeError):
        return {}
    names = [name for name in call.outputs if name]
    return {name: kind for name, x in zip(names, graph.output, strict=True) if (kind := codec.schema_type(x.type))}
