"""Python source that builds a model with onnx.helper, for reproducers: every name and value in it is a literal."""

from __future__ import annotations

import re
from keyword import iskeyword
from pathlib import Path
from typing import Any

from opera.libraries.onnx import codec as onnx_values
from opera.libraries.onnx import wrap as onnx_model
from opera.programs import migrated
from opera.programs.literals import fold, literal, source
from opera.programs.migrated import Manifest, read_values
from opera.programs.program import Program

RESERVED = {"op_type", "inputs", "outputs", "name", "doc_string", "domain", "overload", "self"}
"""Parameters of onnx.helper.make_node: an attribute of such a name cannot be a keyword argument."""
PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")


def reproducer(manifest: Manifest, directory: Path, program: Program, variant: str) -> dict[str, object]:
    """See `opera.libraries.onnx.library.reproducer`.

    Returns `model` and `feeds` (name → expression, as source), `fed` (the values), `opset` and `spec` (a link or "").
    """
    import onnx

    artefact = migrated.artefact(manifest, directory, variant) or manifest.artefacts["onnx"]
    model = onnx.load(directory / artefact.file)
    values = dict(zip(manifest.inputs, read_values(directory, "inputs"), strict=True))
    fed = {name: values[name] for name in artefact.feeds}
    items = [f"{literal(name)}: {source(value)}" for name, value in fed.items()]
    return {
        "model": model_source(model),
        "feeds": fold("{", items, "}"),
        "fed": list(fed.values()),
        "opset": ", ".join(f"{item.domain or 'ai.onnx'} {item.version}" for item in model.opset_import),
        "spec": ", ".join(filter(None, dict.fromkeys(map(specification, program.operators)))),
    }


def specification(operator: str) -> str:
    """Return the address of an operator's documentation, or nothing for one that ONNX does not document."""
    domain, op_type = onnx_model.split(operator)
    plain = domain.replace(".", "")
    if not PLAIN.fullmatch(op_type) or not re.fullmatch("[a-z]{0,40}", plain):
        return ""
    return f"https://onnx.ai/onnx/operators/onnx_{plain}_{op_type}.html"


def model_source(model: Any) -> str:
    """Return an expression that builds a ModelProto."""
    imports = [f"helper.make_opsetid({literal(x.domain)}, {literal(x.version)})" for x in model.opset_import]
    return fold(
        "helper.make_model(",
        [
            graph_source(model.graph),
            fold("opset_imports=[", imports, "]"),
            f"ir_version={literal(model.ir_version)}",
        ],
        ")",
    )


def graph_source(graph: Any) -> str:
    """Return an expression that builds a GraphProto, subgraphs and all."""
    parts = [
        fold("[", [node_source(node) for node in graph.node], "]"),
        literal(graph.name),
        fold("[", [_value_info(item) for item in graph.input], "]"),
        fold("[", [_value_info(item) for item in graph.output], "]"),
    ]
    if graph.initializer:
        parts.append(fold("[", [_tensor(item) for item in graph.initializer], "]"))
    if graph.sparse_initializer:
        parts.append(fold("sparse_initializer=[", [_sparse(item) for item in graph.sparse_initializer], "]"))
    if graph.value_info:
        parts.append(fold("value_info=[", [_value_info(item) for item in graph.value_info], "]"))
    return fold("helper.make_graph(", parts, ")")


def node_source(node: Any) -> str:
    parts = [literal(node.op_type), literal(list(node.input)), literal(list(node.output))]
    parts += [f"{key}={literal(getattr(node, key))}" for key in ("name", "domain") if getattr(node, key)]
    loose = []
    for attr in node.attribute:
        value, plain = _attribute_value(attr)
        if not plain:
            loose.append(f"helper.make_attribute({literal(attr.name)}, {value}, attr_type={literal(attr.type)})")
        elif PLAIN.fullmatch(attr.name) and attr.name not in RESERVED and not iskeyword(attr.name):
            parts.append(f"{attr.name}={value}")
        else:
            loose.append(f"helper.make_attribute({literal(attr.name)}, {value})")
    text = fold("helper.make_node(", parts, ")")
    return fold("with_attributes(", [text, *loose], ")") if loose else text


def _attribute_value(attr: Any) -> tuple[str, bool]:
    """Return the source of an attribute's value, and whether onnx.helper can tell its type from that alone."""
    from onnx import AttributeProto as Attribute

    match attr.type:
        case Attribute.FLOAT:
            return literal(_short(attr.f)), True
        case Attribute.INT:
            return literal(attr.i), True
        case Attribute.STRING:
            return literal(_text(attr.s)), True
        case Attribute.TENSOR:
            return _tensor(attr.t), True
        case Attribute.GRAPH:
            return graph_source(attr.g), True
        case Attribute.SPARSE_TENSOR:
            return _sparse(attr.sparse_tensor), True
        case Attribute.TYPE_PROTO:
            return type_source(attr.tp), True
        case Attribute.FLOATS:
            items = [literal(_short(item)) for item in attr.floats]
        case Attribute.INTS:
            items = [literal(item) for item in attr.ints]
        case Attribute.STRINGS:
            items = [literal(_text(item)) for item in attr.strings]
        case Attribute.TENSORS:
            items = [_tensor(item) for item in attr.tensors]
        case Attribute.GRAPHS:
            items = [graph_source(item) for item in attr.graphs]
        case Attribute.SPARSE_TENSORS:
            items = [_sparse(item) for item in attr.sparse_tensors]
        case _:
            items = [type_source(item) for item in attr.type_protos]
    return fold("[", items, "]"), bool(items)


def _short(number: float) -> float:
    """The shortest decimal that is the same float32."""
    import numpy as np

    return float(str(np.float32(number)))


def _text(data: bytes) -> str | bytes:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _tensor(proto: Any) -> str:
    text = source(onnx_values.from_tensor_proto(proto))
    return fold("numpy_helper.from_array(", [text, *([literal(proto.name)] if proto.name else [])], ")")


def _sparse(proto: Any) -> str:
    parts = [_tensor(proto.values), _tensor(proto.indices), literal(list(proto.dims))]
    return fold("helper.make_sparse_tensor(", parts, ")")


def _value_info(item: Any) -> str:
    kind = item.type
    if kind.WhichOneof("value") == "tensor_type":
        parts = [literal(item.name), _element(kind.tensor_type), _shape(kind.tensor_type)]
        return fold("helper.make_tensor_value_info(", parts, ")")
    if kind.WhichOneof("value") is None:
        return f"helper.make_empty_tensor_value_info({literal(item.name)})"
    return fold("helper.make_value_info(", [literal(item.name), type_source(kind)], ")")


def type_source(proto: Any) -> str:
    match proto.WhichOneof("value"):
        case "tensor_type":
            return f"helper.make_tensor_type_proto({_element(proto.tensor_type)}, {_shape(proto.tensor_type)})"
        case "sparse_tensor_type":
            inner = proto.sparse_tensor_type
            return f"helper.make_sparse_tensor_type_proto({_element(inner)}, {_shape(inner)})"
        case "sequence_type":
            return f"helper.make_sequence_type_proto({type_source(proto.sequence_type.elem_type)})"
        case "optional_type":
            return f"helper.make_optional_type_proto({type_source(proto.optional_type.elem_type)})"
    return "onnx.TypeProto()"


def _element(tensor_type: Any) -> str:
    from onnx import TensorProto

    names = {number: name for name, number in TensorProto.DataType.items()}
    return f"TensorProto.{names[tensor_type.elem_type]}"


def _shape(tensor_type: Any) -> str:
    if not tensor_type.HasField("shape"):
        return "None"
    dims: list[Any] = []
    for dim in tensor_type.shape.dim:
        dims.append(getattr(dim, dim.WhichOneof("value")) if dim.WhichOneof("value") else None)
    return literal(dims)
