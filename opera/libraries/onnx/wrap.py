"""From a program to a ModelProto: a node a call, or an operator's expanded function body."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec

from opera.errors import InvalidTest
from opera.libraries.onnx import codec as onnx_values
from opera.libraries.onnx.opsets import MIN_IR_VERSION
from opera.programs.program import Graph, Instance, Program
from opera.programs.values import Message, Optional, RandomTensor, Sequence, Tensor, Value

MAX_IR_VERSION = 13
"""No model states a newer IR version unless its dtypes need it: runtimes refuse one that they do not know, even where
the model uses nothing of it (ONNX Runtime 1.31 knows 13, and opset 28 was released with 14)."""


class Parts(msgspec.Struct):
    """What a model is made of.

    Attributes:
        nodes: NodeProtos.
        inputs, values: Graph inputs and their values.
        formals: For each input, the formal names that the calls know it by: (operator, name).
        outputs: Graph outputs.
        initializers: TensorProtos that an expanded body brings along.
    """

    nodes: list[Any]
    inputs: list[str]
    values: list[Value]
    formals: list[tuple[tuple[str, str], ...]]
    outputs: list[str]
    initializers: list[Any] = []


def split(operator: str) -> tuple[str, str]:
    """Return domain and op_type of an operator signature."""
    domain, separator, op_type = operator.rpartition("::")
    return (domain, op_type) if separator else ("", operator)


def opset(program: Program) -> dict[str, int]:
    """Return domain → version that a program was written for. Raises InvalidTest where its calls differ in that."""
    found: dict[str, int] = {}
    for call in program.instances():
        for domain, number in _opset(call).items():
            if found.setdefault(domain, number) != number:
                raise InvalidTest(f"its calls are written for two versions of the domain {domain!r}")
    return found


def _opset(instance: Instance) -> dict[str, int]:
    versions = instance.context.get("opset")
    if not isinstance(versions, dict) or not all(
        isinstance(domain, str) and isinstance(version, int) and not isinstance(version, bool)
        for domain, version in versions.items()
    ):
        raise InvalidTest("the instance does not say which opset it is written for")
    return versions


def parts(program: Program) -> Parts:
    """Take a program apart. Raises InvalidTest for what no ONNX model can hold."""
    try:
        if isinstance(program, Graph):
            return _parts_of_graph(program)
        body = program.context.get("body")
        return _parts_of_body(program, body) if isinstance(body, Message) else _parts_of_node(program)
    except (ValueError, TypeError, KeyError, OverflowError) as error:
        raise InvalidTest(f"no ONNX model can hold the instance: {type(error).__name__}: {error}") from None


def _parts_of_body(instance: Instance, body: Message) -> Parts:
    graph = onnx_values.parse(body)
    if graph.DESCRIPTOR.name != "GraphProto":
        raise InvalidTest(f"the expanded body is a {graph.DESCRIPTOR.name}, not a graph")
    operands = [operand for operand in instance.inputs if operand.value is not None]
    if len(operands) != len(graph.input):
        raise InvalidTest(f"the expanded body has {len(graph.input)} inputs, the instance {len(operands)}")
    return Parts(
        list(graph.node),
        [item.name for item in graph.input],
        [onnx_values.materialise(operand.value) for operand in operands],
        [((instance.operator, operand.name),) for operand in operands],
        [item.name for item in graph.output],
        list(graph.initializer),
    )


def _parts_of_node(instance: Instance) -> Parts:
    node = _node(instance)
    captured = instance.context.get("captured") or []
    taken = defined_names(node) | set(captured)
    result = Parts([node], [], [], [], [])
    for operand in instance.inputs:
        actual = operand.name
        if operand.name not in captured:
            actual = "" if operand.value is None else _unique(operand.name or "x", taken)
            node.input.append(actual)
        if operand.value is not None:
            result.inputs.append(actual)
            result.formals.append(((instance.operator, operand.name),))
            result.values.append(onnx_values.materialise(operand.value))
    optional = _optional_outputs(node, _opset(instance).get(node.domain, 0))
    for place, output in enumerate(instance.outputs):
        node.output.append(_unique(output or "unread", taken) if output or not optional(place) else "")
        result.outputs += [node.output[-1]] if output else []
    return result


def _optional_outputs(node: Any, version: int) -> Callable[[int], bool]:
    """Return which outputs of a node may be left without a name, by their place: those of a loop or a split may not, though the
    ONNX checker lets them.
    """
    from onnx import defs

    try:
        options = [x.option for x in defs.get_schema(node.op_type, version, node.domain).outputs]
    except defs.SchemaError:
        options = []
    return lambda place: (
        not options or options[min(place, len(options) - 1)] == defs.OpSchema.FormalParameterOption.Optional
    )


def _parts_of_graph(graph: Graph) -> Parts:
    """Names are the program's own: ONNX and it have the same rules for them, but for what a subgraph defines."""
    result = Parts([], [], [], [], [])
    formals: dict[str, list[tuple[str, str]]] = {operand.name: [] for operand in graph.inputs}
    defined = {*formals, *(name for call in graph.calls for name in call.outputs)}
    for call, instance in zip(graph.calls, graph.instances(), strict=True):
        if isinstance(instance.context.get("body"), Message):
            raise InvalidTest(f"the expanded body of {call.operator} cannot be one of several calls")
        node = _node(instance)
        if shadowed := defined_names(node) & defined:
            raise InvalidTest(f"a subgraph of {call.operator} defines {min(shadowed)!r}, which the program defines too")
        captured = instance.context.get("captured") or []
        for argument in call.inputs:
            if argument.name in captured:
                if argument.of != argument.name:
                    raise InvalidTest(f"a subgraph of {call.operator} reads {argument.name!r}, not {argument.of!r}")
            else:
                node.input.append(argument.of)
            if argument.of in formals:
                formals[argument.of].append((call.operator, argument.name))
        node.output.extend(call.outputs)
        result.nodes.append(node)
    for operand in graph.inputs:
        result.inputs.append(operand.name)
        result.formals.append(tuple(formals[operand.name]))
        result.values.append(onnx_values.materialise(operand.value))
    result.outputs = list(graph.outputs)
    return result


def _node(instance: Instance) -> Any:
    """Return the NodeProto of a call, without inputs and outputs."""
    from onnx import NodeProto

    domain, op_type = split(instance.operator)
    node = NodeProto(op_type=op_type)
    if domain:
        node.domain = domain
    kinds = attribute_kinds(op_type, _opset(instance).get(domain, 0), domain)
    for name in sorted(instance.params):
        node.attribute.append(attribute(name, instance.params[name], kinds.get(name)))
    return node


def _unique(name: str, taken: set[str]) -> str:
    """ONNX wants each name once, also across subgraphs; formal names of inputs, outputs and bodies do meet."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def defined_names(node: Any) -> set[str]:
    """Return every name that the subgraphs of a node define."""
    names: set[str] = set()
    for attr in node.attribute:
        for graph in (*attr.graphs, *([attr.g] if attr.HasField("g") else [])):
            names.update(item.name for item in (*graph.input, *graph.initializer))
            for inner in graph.node:
                names.update(inner.output)
                names |= defined_names(inner)
    return names


@cache
def attribute_kinds(op_type: str, version: int, domain: str) -> dict[str, int]:
    """Return attribute name → AttributeProto.AttributeType of an operator's schema; empty for an unknown operator."""
    from onnx import defs

    try:
        schema = defs.get_schema(op_type, version, domain)
    except defs.SchemaError:
        return {}
    return {name: int(attr.type.value) for name, attr in schema.attributes.items()}


def attribute(name: str, value: Value, kind: int | None = None) -> Any:
    """Return the AttributeProto of a plain value; `kind` is the schema's type: it settles empty lists and 1 for 1.0."""
    from onnx import AttributeProto as Attribute

    attr = Attribute(name=name)
    if isinstance(value, list | tuple):
        attr.type = kind if kind is not None and (kind > 5 or not value) else _list_kind(name, value)
        if attr.type == Attribute.INTS:
            attr.ints.extend(value)
        elif attr.type == Attribute.FLOATS:
            attr.floats.extend(value)
        elif attr.type == Attribute.STRINGS:
            attr.strings.extend(_bytes(item) for item in value)
        elif attr.type == Attribute.TENSORS:
            attr.tensors.extend(onnx_values.tensor_proto(onnx_values.materialise(item)) for item in value)
        else:
            field = {Attribute.GRAPHS: "graphs", Attribute.TYPE_PROTOS: "type_protos"}.get(attr.type, "sparse_tensors")
            getattr(attr, field).extend(onnx_values.parse(item) for item in value)
        return attr
    if isinstance(value, float) or (kind == Attribute.FLOAT and isinstance(value, int)):
        attr.type, attr.f = Attribute.FLOAT, value
    elif isinstance(value, int):
        attr.type, attr.i = Attribute.INT, value
    elif isinstance(value, str | bytes):
        attr.type, attr.s = Attribute.STRING, _bytes(value)
    elif isinstance(value, Tensor | RandomTensor):
        attr.type = Attribute.TENSOR
        attr.t.CopyFrom(onnx_values.tensor_proto(onnx_values.materialise(value)))
    elif isinstance(value, Message):
        field, attr.type = {
            "GraphProto": ("g", Attribute.GRAPH),
            "TypeProto": ("tp", Attribute.TYPE_PROTO),
            "SparseTensorProto": ("sparse_tensor", Attribute.SPARSE_TENSOR),
            "TensorProto": ("t", Attribute.TENSOR),
        }[value.type.removeprefix("onnx.")]
        getattr(attr, field).CopyFrom(onnx_values.parse(value))
    else:
        raise InvalidTest(f"attribute {name!r} cannot be a {type(value).__name__}")
    return attr


def _list_kind(name: str, items: list[Value] | tuple[Value, ...]) -> int:
    from onnx import AttributeProto as Attribute

    if all(isinstance(item, int) for item in items):
        return int(Attribute.INTS)  # also for an empty list of an attribute that no schema knows
    if all(isinstance(item, int | float) for item in items):
        return int(Attribute.FLOATS)
    if all(isinstance(item, str | bytes) for item in items):
        return int(Attribute.STRINGS)
    if all(isinstance(item, Tensor | RandomTensor) for item in items):
        return int(Attribute.TENSORS)
    kinds = {item.type.removeprefix("onnx.") if isinstance(item, Message) else "" for item in items}
    known = {"GraphProto": Attribute.GRAPHS, "TypeProto": Attribute.TYPE_PROTOS}
    known["SparseTensorProto"] = Attribute.SPARSE_TENSORS
    if len(kinds) != 1 or not kinds <= set(known):
        raise InvalidTest(f"the items of attribute {name!r} are of different kinds")
    return int(known[kinds.pop()])


def _bytes(text: str | bytes) -> bytes:
    return text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text


def model(
    program: Program, made: Parts, types: list[Any], constants: frozenset[str] = frozenset(), check: bool = True
) -> bytes:
    """Return the serialized model; graph inputs named in `constants` become initializers.

    `types` are the TypeProtos of the outputs (empty messages where they are not known yet).
    Raises InvalidTest where the model is rejected by the ONNX checker (only asked where `check` is true).
    """
    from onnx import ModelProto

    versions = opset(program)
    proto = ModelProto(producer_name="opera", ir_version=_ir_version(versions, made.values))
    for domain, version in sorted(versions.items()):
        proto.opset_import.add(domain=domain, version=version)
    graph = proto.graph
    graph.name = "program" if isinstance(program, Graph) else split(program.operator)[1]
    graph.node.extend(made.nodes)
    graph.initializer.extend(made.initializers)
    for name, value in zip(made.inputs, made.values, strict=True):
        if name in constants:
            graph.initializer.append(onnx_values.tensor_proto(value, name))
        else:
            graph.input.add(name=name, type=onnx_values.type_proto(value))
    for name, kind in zip(made.outputs, types, strict=True):
        graph.output.add(name=name, type=kind)
    data: bytes = proto.SerializeToString(deterministic=True)
    if check:
        checked(data)
    return data


def inferred(program: Program, made: Parts) -> Any:
    """Return the model as a ModelProto, with the types that ONNX infers. Raises InvalidTest where inference rejects it."""
    import onnx

    proto = onnx.load_model_from_string(model(program, made, [onnx.TypeProto() for _ in made.outputs], check=False))
    try:
        return onnx.shape_inference.infer_shapes(proto, check_type=True, strict_mode=True, data_prop=True)
    except (onnx.shape_inference.InferenceError, ValueError, RuntimeError) as error:
        raise InvalidTest(f"ONNX's type inference rejects it: {' '.join(str(error).split())[:600]}") from None


def output_types(proto: Any, computed: list[Value]) -> list[Any]:
    """Return the types of a model's outputs: exact ones of the tensors that were computed, else those that are inferred."""
    types = []
    for output, value in zip(proto.graph.output, computed, strict=True):
        exact = isinstance(value, Tensor) or not output.type.WhichOneof("value")
        types.append(onnx_values.type_proto(value) if exact else output.type)
    return types


def checked(data: bytes, *, inference: bool = False) -> None:
    """Raise InvalidTest where the ONNX checker rejects a model; `inference` adds strict type and shape inference."""
    from onnx import checker, shape_inference

    try:
        checker.check_model(data, full_check=inference)
    except (checker.ValidationError, shape_inference.InferenceError, ValueError, RuntimeError) as error:
        raise InvalidTest(f"the ONNX checker rejects the model: {' '.join(str(error).split())[:600]}") from None


def _ir_version(versions: dict[str, int], inputs: list[Value]) -> int:
    needed = max((onnx_values.ir_version(name) for name in onnx_values.dtypes(inputs)), default=0)
    return max(MIN_IR_VERSION, needed, min(_released_with(tuple(sorted(versions.items()))), MAX_IR_VERSION))


@cache
def _released_with(versions: tuple[tuple[str, int], ...]) -> int:
    from onnx import helper

    imports = [helper.make_opsetid(domain, version) for domain, version in versions]
    return int(helper.find_min_ir_version_for(imports, ignore_unknown=True))


def feedable(value: Value) -> bool:
    """Tell whether a value can be an initializer: sequences and optionals cannot."""
    return not isinstance(value, Sequence | Optional)
