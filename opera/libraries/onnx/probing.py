"""Which points of what schemas admit a reference runs at all: calls are changed until one is at a point, and it is asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

from opera import resources
from opera.errors import InvalidTest
from opera.libraries import INPUT, TYPE, Point
from opera.libraries.onnx import admitted, codec, references
from opera.libraries.onnx import wrap as onnx_model
from opera.programs.program import Instance, Operand
from opera.programs.values import Optional, RandomTensor, Sequence, Tensor, Value

TRIES = 4
"""Changed calls that the references are asked about for one point."""
DTYPES = {codec.element_type(number): name for number, name in codec.DTYPES.items()}
"""Type of a tensor as schemas write it → dtype."""


def probe(points: list[Point], calls: list[Instance]) -> list[Point]:
    """Return those of the points, of one operator, at which a reference runs one of the calls when it is changed so."""
    found = []
    for point in points:
        tried = 0
        for call in _changed(point, calls):
            if tried == TRIES:
                break
            if point not in admitted.reached(call):
                continue
            tried += 1
            if runs(call):
                found.append(point)
                break
    return found


def runs(call: Instance) -> bool:
    """Whether the evaluator, or one of the compilers that are asked where it alone knows, computes a call."""
    try:
        made = onnx_model.parts(call)
        model = onnx_model.inferred(call, made)
        feeds = dict(zip(made.inputs, made.values, strict=True))
        onnx_model.checked(model.SerializeToString())
    except InvalidTest:
        return False
    try:
        references.evaluate(model, feeds)
        return True
    except InvalidTest:
        pass  # another one may know it
    asked = resources.declaration("instrumentation", "onnx").get("independent", {}).get("test", ())
    return any(references.computed_by(name, model, call.operator, feeds) is not None for name in asked)


def _changed(point: Point, calls: list[Instance]) -> Iterator[Instance]:
    """Yield the calls changed so that they may be at a point, the smallest first."""
    schema = admitted.newest()[point.operator]
    for call in calls:
        if point.kind == TYPE:
            yield from _of_type(call, schema, point)
        elif point.kind == INPUT:
            yield from _without(call, point) if point.value == admitted.LEFT_OUT else ()
        else:
            yield from _with_value(call, schema.attributes[point.name], point)


def _of_type(call: Instance, schema: Any, point: Point) -> Iterator[Instance]:
    """Yield a call with the inputs of a type variable cast, alone and with those of all that admit the type; and with `to`s."""
    admitting = {x.type_param_str for x in schema.type_constraints if point.value in x.allowed_type_strs}
    element = point.value[point.value.rfind("tensor(") :].rstrip(")") + ")"
    if (dtype := DTYPES.get(element)) is None:
        return
    formals = {actual: formal.type_str for formal, actual in admitted.formals(schema, [*call.inputs], [])}
    for variables in ({point.name}, admitting):
        if any(formals.get(x.name) in variables for x in call.inputs):
            cast = [_cast(x.value, dtype) if formals.get(x.name) in variables else x.value for x in call.inputs]
            pairs = zip(call.inputs, cast, strict=True)
            changed = msgspec.structs.replace(call, inputs=tuple(Operand(x.name, value) for x, value in pairs))
            yield changed
            yield from _numbered(changed, schema, dtype)
    yield from _numbered(call, schema, dtype)


def _numbered(call: Instance, schema: Any, dtype: str) -> Iterator[Instance]:
    """Yield a call with each attribute that may be the number of a dtype set to it."""
    for name, attribute in schema.attributes.items():
        if attribute.type.name == "INT" and "type" in attribute.description.lower():
            yield _with(call, name, codec.ELEMENT_TYPES[dtype])


def _without(call: Instance, point: Point) -> Iterator[Instance]:
    if any(x.name == point.name and x.value is not None for x in call.inputs):
        inputs = [Operand(x.name, None if x.name == point.name else x.value) for x in call.inputs]
        while inputs and inputs[-1].value is None:
            inputs.pop()
        yield msgspec.structs.replace(call, inputs=tuple(inputs))


def _with_value(call: Instance, attribute: Any, point: Point) -> Iterator[Instance]:
    name = attribute.name
    if point.value == admitted.LEFT_OUT:
        if name in call.params:
            yield msgspec.structs.replace(call, params={x: value for x, value in call.params.items() if x != name})
        return
    stated = admitted.default(attribute)
    values: dict[str, tuple[Value, ...]] = {
        admitted.DEFAULT: (stated,),
        "negative": (-1, -2) if attribute.type.name == "INT" else (-0.5, -1.5),
        "0": (0,) if attribute.type.name == "INT" else (0.0,),
        "1": (1,),
        "larger": (2, 3, 7, 11),
        "positive": (0.5, 1.5, 2.0),
    }
    if attribute.type.name == "STRING":
        values = {point.value: (point.value,), admitted.DEFAULT: (stated,)}
    for value in values.get(point.value, ()):
        yield _with(call, name, value)


def _with(call: Instance, name: str, value: Value) -> Instance:
    return msgspec.structs.replace(call, params={**call.params, name: value})


def _cast(value: Value, dtype: str) -> Value:
    match value:
        case RandomTensor():
            return _cast(value.tensor(), dtype)
        case Tensor(dtype="string") if dtype != "string":
            return _numbers(value.shape, dtype)
        case Tensor() if dtype == "string":
            texts = [str(x) for x in value.array().ravel()]
            return Tensor.of(np.array(texts, dtype=object).reshape(value.shape))
        case Tensor():
            array = np.asarray(codec.to_evaluator(value))
            with np.errstate(all="ignore"):
                plain = (
                    array if array.dtype.kind in "biufc" else array.astype(np.float32)
                )  # those of ml_dtypes go by float32
                return codec.from_array(plain.astype(codec.numpy_dtype(dtype)), dtype)
        case Sequence(items=items):
            return Sequence(dtype, tuple(_cast(x, dtype) for x in items))
        case Optional(type=kind, value=inner):
            inside = _cast(inner, dtype)
            return Optional(f"sequence({dtype})" if kind.startswith("sequence") else dtype, inside)
    return value


def _numbers(shape: tuple[int, ...], dtype: str) -> Value:
    numbers = np.arange(int(np.prod(shape))).reshape(shape)
    return codec.from_array(numbers.astype(codec.numpy_dtype(dtype)), dtype)
