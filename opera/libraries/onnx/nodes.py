"""From a NodeProto and the values on its edges to an operator instance."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
import numpy as np
import onnx
from onnx import AttributeProto

from opera.capture.recorder import LeftOut
from opera.libraries.onnx.codec import DTYPES, from_array, from_tensor_proto, type_name
from opera.libraries.onnx.walk import all_nodes, graphs
from opera.programs.program import Instance, Operand
from opera.programs.values import Message, Optional, RandomTensor, Sequence, Tensor, Value

EXACT_ELEMENTS = 1 << 14
"""Floats of a tensor larger than this are kept by seed and range where no expected output depends on them."""


def domain(name: str) -> str:
    """Return a domain in its short form: `ai.onnx` is the default one."""
    return "" if name == "ai.onnx" else name


def opset_of(model: Any) -> dict[str, int]:
    """Return domain → version that a model (or a function) imports."""
    return {domain(item.domain): item.version for item in model.opset_import}


def instance(
    node: Any,
    edges: Mapping[str, Value],
    opset: Mapping[str, int],
    *,
    body: Message | None = None,
    nested: Iterable[Any] = (),
) -> Instance:
    """Return the operator instance of a node.

    Args:
        node: NodeProto; names of the node and of its edges are replaced by the formal ones.
        edges: Values by edge name.
        opset: Domain → version in force.
        body: The graph that stands for the operator in an expanded test case.
        nested: The nodes of that graph.

    Raises LeftOut for what is no operator of ONNX, or whose inputs are not known.
    """
    schema = _schema(node, opset)
    inputs = []
    formals = formal_names(schema.inputs, len(node.input))
    for formal, edge in zip(formals, node.input, strict=True):
        if edge and edge not in edges:
            raise LeftOut("input of unknown value or type")
        inputs.append(Operand(formal, edges[edge] if edge else None))
    captured = outer_names(node)
    for name in captured:
        if name not in edges:
            raise LeftOut("outer-scope value of unknown value or type")
        if name in formals:
            raise LeftOut("outer-scope name is also a formal name")
        inputs.append(Operand(name, edges[name]))
    outputs = formal_names(schema.outputs, len(node.output))
    used = {domain(item.domain) for item in (*all_nodes([node]), *all_nodes(nested))}
    context: dict[str, Value] = {"opset": {name: opset[name] for name in sorted(used) if name in opset}}
    if captured:
        context["captured"] = captured
    if body is not None:
        context["body"] = body
    return Instance(
        "onnx",
        f"{domain(node.domain)}::{node.op_type}" if domain(node.domain) else node.op_type,
        {attr.name: plain(attr) for attr in node.attribute},
        tuple(inputs),
        tuple(formal if edge else "" for formal, edge in zip(outputs, node.output, strict=True)),
        context,
    )


def _schema(node: Any, opset: Mapping[str, int]) -> Any:
    place = domain(node.domain)
    if place not in opset:
        raise LeftOut("operator of a domain that the model does not import")
    try:
        return onnx.defs.get_schema(node.op_type, opset[place], place)
    except onnx.defs.SchemaError:
        raise LeftOut("operator without a schema (custom domain or model-local function)") from None


def formal_inputs(node: Any, opset: Mapping[str, int]) -> dict[str, str]:
    """Return edge → formal name of a node's inputs. Raises LeftOut for an operator without a schema."""
    formals = formal_names(_schema(node, opset).inputs, len(node.input))
    return dict(zip(node.input, formals, strict=False))


def formal_names(formals: Any, count: int) -> list[str]:
    """Return `count` formal names; a variadic one goes on as `name_1`, `name_2`, ..."""
    names = [formal.name for formal in formals[:count]]
    if count > len(formals):
        if not formals or formals[-1].option != onnx.defs.OpSchema.FormalParameterOption.Variadic:
            raise LeftOut("more inputs or outputs than the schema has")
        names += [f"{formals[-1].name}_{index}" for index in range(1, count - len(formals) + 1)]
    return names


def plain(attr: Any) -> Value:
    """Return an attribute's value. float32 becomes the double of equal value, UTF-8 bytes become str."""
    if attr.ref_attr_name:
        raise LeftOut("attribute bound by a function")
    many: dict[int, tuple[str, Callable[[Any], Value]]] = {
        AttributeProto.FLOATS: ("floats", float),
        AttributeProto.INTS: ("ints", int),
        AttributeProto.STRINGS: ("strings", _text),
        AttributeProto.TENSORS: ("tensors", from_tensor_proto),
        AttributeProto.GRAPHS: ("graphs", _message),
        AttributeProto.SPARSE_TENSORS: ("sparse_tensors", _message),
        AttributeProto.TYPE_PROTOS: ("type_protos", _message),
    }
    one: dict[int, tuple[str, Callable[[Any], Value]]] = {
        AttributeProto.FLOAT: ("f", float),
        AttributeProto.INT: ("i", int),
        AttributeProto.STRING: ("s", _text),
        AttributeProto.TENSOR: ("t", from_tensor_proto),
        AttributeProto.GRAPH: ("g", _message),
        AttributeProto.SPARSE_TENSOR: ("sparse_tensor", _message),
        AttributeProto.TYPE_PROTO: ("tp", _message),
    }
    if attr.type in many:
        field, convert = many[attr.type]
        return [convert(item) for item in getattr(attr, field)]
    if attr.type in one:
        field, convert = one[attr.type]
        return convert(getattr(attr, field))
    raise LeftOut("attribute without a type")


def _text(data: bytes) -> Value:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _message(proto: Any) -> Message:
    return Message(f"onnx.{proto.DESCRIPTOR.name}", proto.SerializeToString(deterministic=True))


def value(item: Any, kind: Any) -> Value:
    """Return a value that a test states, whose declared type is the TypeProto `kind`."""
    match kind.WhichOneof("value"):
        case "optional_type":
            held = kind.optional_type.elem_type
            return Optional(type_name(held), None if item is None else value(item, held))
        case "sequence_type":
            held = kind.sequence_type.elem_type
            return Sequence(type_name(held), tuple(value(x, held) for x in item))
        case "tensor_type":
            if isinstance(item, onnx.TensorProto):
                return from_tensor_proto(item)
            return from_array(item, DTYPES[kind.tensor_type.elem_type])
    raise LeftOut(f"value of a {kind.WhichOneof('value')}")


def evaluated(item: Any) -> Value:
    """Return a value that the reference evaluator works on."""
    if isinstance(item, np.ndarray | np.generic):
        return from_array(item)
    if isinstance(item, list):
        if not item:
            raise LeftOut("empty sequence of unknown type")
        items = tuple(evaluated(x) for x in item)
        first = items[0]
        return Sequence(first.dtype if isinstance(first, Tensor) else f"sequence({first.type})", items)
    raise LeftOut(f"value of type {type(item).__name__}")


def sketch(item: Any) -> Any:
    """Return a cheap key of a value that an evaluator's node is run on: integers exactly, floats by dtype and shape."""
    if isinstance(item, list):
        return tuple(sketch(x) for x in item)
    if isinstance(item, np.ndarray | np.generic):
        exact = item.dtype.kind in "iub" and item.size <= 4096
        return item.dtype.str, item.shape, item.tobytes() if exact else None
    return type(item)


def outer_names(node: Any) -> list[str]:
    """Return the names of an outer scope that the subgraphs of a node refer to, sorted."""
    found: set[str] = set()
    for graph in graphs(node):
        found |= _free_names(graph)
    return sorted(found)


def _free_names(graph: Any) -> set[str]:
    known = {item.name for item in (*graph.input, *graph.initializer)}
    known.update(item.values.name for item in graph.sparse_initializer)
    free: set[str] = set()
    for node in graph.node:
        free |= ({name for name in node.input if name} | set(outer_names(node))) - known
        known.update(node.output)
    return free | ({item.name for item in graph.output} - known)


def anonymous(graph: Any, name: str) -> Any:
    """Return a copy of an expanded body without the test's name, which node tests prefix to every inner name."""
    outside = {item.name for item in (*graph.input, *graph.output)}
    copy = onnx.GraphProto()
    copy.CopyFrom(graph)
    inner: dict[str, str] = {}

    def named(old: str) -> str:
        return old if not old or old in outside else inner.setdefault(old, f"inner_{len(inner)}")

    rename(copy, named)
    copy.name = name
    copy.ClearField("doc_string")
    return copy


def rename(graph: Any, named: Callable[[str], str]) -> None:
    """Give every edge of a graph, and of its subgraphs, another name; drop names of nodes."""
    tensors = [*graph.initializer, *(part for item in graph.sparse_initializer for part in (item.values, item.indices))]
    for item in (*graph.input, *tensors, *graph.value_info, *graph.output):
        item.name = named(item.name)
    for node in graph.node:
        node.ClearField("name")
        node.ClearField("doc_string")
        node.input[:] = [named(name) for name in node.input]
        node.output[:] = [named(name) for name in node.output]
        for subgraph in graphs(node):
            rename(subgraph, named)


def compact(instance: Instance) -> Instance:
    """Return the instance with large float inputs kept by seed and range instead of element by element."""
    inputs = tuple(Operand(x.name, _compact(x.value)) for x in instance.inputs)
    return msgspec.structs.replace(instance, inputs=inputs)


def _compact(item: Value) -> Value:
    if not isinstance(item, Tensor) or item.dtype not in ("float16", "float32", "float64"):
        return item
    array = item.array()
    if array.size <= EXACT_ELEMENTS or not np.isfinite(array).all():
        return item
    return RandomTensor(item.dtype, item.shape, array.size, float(array.min()), float(array.max()))


def specification(instance: Instance, *, values: bool = False) -> bytes:
    """Return a key of what an instance is apart from the values of its inputs.

    With `values`, integers, booleans and strings count with their values (they are axes, shapes, indices), floats by whether
    they hold infinities, NaN or nothing but zeros.
    """
    inputs = tuple(Operand(x.name, _outline(x.value, values)) for x in instance.inputs)
    return hashlib.sha256(msgspec.structs.replace(instance, inputs=inputs).canonical()).digest()


def _outline(item: Value, exact: bool) -> Value:
    match item:
        case Sequence(type=kind, items=items):
            return Sequence(kind, tuple(_outline(x, exact) for x in items))
        case Optional(type=kind, value=held):
            return Optional(kind, _outline(held, exact))
        case Tensor() if exact and item.dtype not in ("float16", "float32", "float64"):
            return item
        case Tensor() if exact:
            array = item.array()
            facts = [bool(np.isnan(array).any()), bool(np.isinf(array).any()), not array.any()]
            return [item.dtype, list(item.shape), facts]
        case Tensor() | RandomTensor():
            return [item.dtype, list(item.shape), [False, False, False] if exact else []]
    return item
