"""Graphs with values of another dtype: bodies of `If`, `Loop` and `Scan`, for what a loop carries is of the type that its body
states, and whole models."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from opera.libraries.onnx import codec
from opera.programs.values import Message, Tensor

BODY = "onnx.GraphProto"
NAMED = ("to", "dtype")
"""Attributes that name a dtype by its number."""


def retyped(message: Message, dtype: str, other: str, of: Callable[[Tensor], Tensor]) -> Message:
    """Return a body in which all that is of one dtype is of another: inputs, outputs, constants, and what attributes name.

    Args:
        of: Returns a tensor of the one dtype in the other.
    """
    if message.type != BODY or not {dtype, other} <= codec.ELEMENT_TYPES.keys():
        return message
    graph = codec.parse(message)
    retype(graph, dtype, other, of)
    return Message(BODY, graph.SerializeToString(deterministic=True))


def retype(graph: Any, dtype: str, other: str, of: Callable[[Tensor], Tensor]) -> None:
    """As `retyped`, of a GraphProto, which is changed."""
    before, now = codec.ELEMENT_TYPES[dtype], codec.ELEMENT_TYPES[other]
    for inner in _graphs(graph):
        for value in (*inner.input, *inner.output, *inner.value_info):
            for kind in _types(value.type):
                kind.elem_type = now if kind.elem_type == before else kind.elem_type
        attributes = [x for node in inner.node for x in node.attribute]
        for x in attributes:
            if x.name in NAMED and x.i == before:
                x.i = now
        for held in (*inner.initializer, *(x.t for x in attributes if x.HasField("t"))):
            if held.data_type == before:
                held.CopyFrom(codec.tensor_proto(of(codec.from_tensor_proto(held)), held.name))


def _graphs(graph: Any) -> Iterator[Any]:
    """Yield a body, and those that its nodes hold."""
    yield graph
    for node in graph.node:
        for x in node.attribute:
            for inner in (*x.graphs, *([x.g] if x.HasField("g") else [])):
                yield from _graphs(inner)


def _types(proto: Any) -> Iterator[Any]:
    """Yield the tensor types that a type is, or holds."""
    if proto.HasField("tensor_type"):
        yield proto.tensor_type
    for name in ("sequence_type", "optional_type"):
        if proto.HasField(name):
            yield from _types(getattr(proto, name).elem_type)
