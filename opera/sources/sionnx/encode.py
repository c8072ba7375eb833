"""From a generated call to an operator instance, exactly as the hooks capture it of a node test: an equal call is one instance.

The opset that an instance states is the operator's own version, as ONNX's node tests state it: the oldest one in which the
call means this, which the most compilers know. Every newer opset up to the operator's next version means the same.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import onnx
from onnx import AttributeProto

from opera.libraries.onnx import codec, nodes, wrap
from opera.programs.program import Instance, Operand
from opera.programs.values import DESCRIBED, Message, Optional, RandomTensor, Sequence, Tensor, Value
from opera.sources.sionnx.case import Case, Given

MESSAGES = {"graph": "onnx.GraphProto", "type_proto": "onnx.TypeProto", "sparse_tensor": "onnx.SparseTensorProto"}
"""Kinds of attributes whose values are messages of ONNX's."""


def instance(case: Case) -> Instance:
    """Return the operator instance. Raises LeftOut, OperaError, ValueError or TypeError for what no ONNX model can hold."""
    node = onnx.NodeProto(op_type=case.operator, domain=case.domain)
    node.attribute.extend(_attribute(name, given) for name, given in case.attributes.items())
    edges: dict[str, Value] = {}
    outer = set(nodes.outer_names(node))
    for place, item in enumerate(case.inputs):
        if item is not None and item.name in outer:
            edges[item.name] = value(item.type, item.value)
            continue
        node.input.append(f"{place}" if item is not None else "")
        if item is not None:
            edges[f"{place}"] = value(item.type, item.value)
    node.output.extend(f"y{place}" if name else "" for place, name in enumerate(case.outputs))
    return nodes.instance(node, edges, {case.domain: case.since})


def value(kind: str, item: Any) -> Value:
    """Return a value of a type (`float32`, `sequence(float32)`, `optional(float32)`)."""
    outer, _, rest = kind.partition("(")
    inner = rest.removesuffix(")")
    if outer == "optional":
        return Optional(inner, None if item is None else value(inner, item))
    if outer == "sequence":
        return Sequence(inner, tuple(value(inner, x) for x in item))
    return codec.from_array(np.asarray(item), kind)


def described(instance: Instance) -> Instance:
    """Return the instance with its large inputs kept by seed and range, where none of their elements matters."""
    inputs = tuple(Operand(x.name, _described(x.value)) for x in instance.inputs)
    return msgspec.structs.replace(instance, inputs=inputs)


def _described(item: Value) -> Value:
    if not isinstance(item, Tensor) or item.dtype not in DESCRIBED:
        return item
    array = item.numbers()
    if array.size <= nodes.EXACT_ELEMENTS:
        return item
    return RandomTensor(item.dtype, item.shape, array.size, float(array.min()), float(array.max()))


def _attribute(name: str, given: Given) -> Any:
    kind, many = given.kind.removesuffix("s"), given.kind.endswith("s")
    held = given.value
    if kind == "tensor":
        held = [codec.from_array(x) for x in held] if many else codec.from_array(held)
    elif kind in MESSAGES:
        held = [Message(MESSAGES[kind], x) for x in held] if many else Message(MESSAGES[kind], held)
    return wrap.attribute(name, held, int(AttributeProto.AttributeType.Value(given.kind.upper())))


def signature(case: Case) -> str:
    """Return the operator as instances name it."""
    return f"{case.domain}::{case.operator}" if case.domain else case.operator
