"""Which opset a model needs, and the same model stamped with it.

An operator keeps its version until its schema changes: Cast is of version 25 in the opsets 25, 26 and 27. Many a change only
admits further dtypes: Cast 28 has two more, and not a word of it reads otherwise. So a model means the same with the oldest
opset whose schemas say of its operators what those of its own opset say, and admit their types; and a compiler that knows no
newer one can be asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from opera.libraries.onnx import codec
from opera.programs.program import Graph, Instance, Program
from opera.programs.values import Message, RandomTensor, Tensor

MIN_IR_VERSION = 4
"""Since then an initializer need not be a graph input as well, so that compilers see a constant (ONNX, docs/IR.md)."""
FIRST = 7
"""The oldest opset that is looked for by what schemas say: what is older than ONNX 1.2 (2018) nobody exports."""
OLDEST = "onnx-oldest-opset"
"""The artefact: the model with the oldest opset that it means the same with."""


def needed(nodes: Iterable[Any], versions: Mapping[str, int], types: Mapping[str, str]) -> dict[str, int]:
    """Return domain → the oldest version of it that a model means the same with, of the domains whose operators are all known.

    Args:
        nodes: NodeProtos, those of subgraphs among them.
        versions: Domain → version that the model states.
        types: Name of a value → its type as schemas write it; an operator of whose values one is missing is not looked for in
            an older version than its own.
    """
    found: dict[str, int] = {}
    unknown: set[str] = set()
    for _, domain, version in _each(nodes, versions, types):
        if version is None:
            unknown.add(domain)
        else:
            found[domain] = max(found.get(domain, 0), version)
    return {domain: version for domain, version in found.items() if domain not in unknown}


def of_operators(nodes: Iterable[Any], versions: Mapping[str, int], types: Mapping[str, str]) -> dict[str, int]:
    """Return operator → the oldest version of it that a model means the same with, of those that onnx knows.

    Of several nodes that call one, the newest of these. See `needed` for the arguments.
    """
    found: dict[str, int] = {}
    for name, domain, version in _each(nodes, versions, types):
        if version is not None and (own := since(name, version, domain)) is not None:
            operator = f"{domain}::{name}" if domain else name
            found[operator] = max(found.get(operator, 0), own)
    return found


def _each(
    nodes: Iterable[Any], versions: Mapping[str, int], types: Mapping[str, str]
) -> Iterator[tuple[str, str, int | None]]:
    """Yield the operator of each node, its domain, and the oldest opset that says the same of it, None for an unknown one."""
    for node in nodes:
        domain = "" if node.domain == "ai.onnx" else str(node.domain)
        version = since(node.op_type, versions[domain], domain) if domain in versions else None
        yield node.op_type, domain, None if version is None else _alike(node, version, domain, types)


def admitting(nodes: Iterable[Any], versions: Mapping[str, int], types: Mapping[str, str]) -> list[int]:
    """Return older versions of ONNX's own domain whose schemas admit the attributes, inputs, outputs and types of a model.

    The newest comes first; of those in which each operator is of one version, only the oldest. See `needed` for the arguments.
    """
    found: dict[tuple[int | None, ...], int] = {}
    own = [node for node in nodes if node.domain in ("", "ai.onnx")]
    newest = versions.get("", 0)
    for version in range(newest, FIRST - 1, -1):
        each = tuple(since(node.op_type, version, "") for node in own)
        if version == newest or all(_takes(node, x, types) for node, x in zip(own, each, strict=True)):
            found[each] = version
    return [version for version in found.values() if version < newest]


def _takes(node: Any, version: int | None, types: Mapping[str, str]) -> bool:
    """Whether a version of an operator has all that a node of it states."""
    from onnx import defs

    if version is None:
        return False
    schema = defs.get_schema(node.op_type, version, "")
    names = [name for name in (*node.input, *node.output) if name]
    stated = {x.name for x in node.attribute}
    return (
        not schema.deprecated
        and stated <= schema.attributes.keys()
        and {name for name, x in schema.attributes.items() if x.required} <= stated
        and schema.min_input <= len(node.input) <= schema.max_input
        and schema.min_output <= len(node.output) <= schema.max_output
        and all(name in types for name in names)
        and _admits(node, version, "", types)
        and not _forbids(node, version, types)
    )


def _forbids(node: Any, version: int, types: Mapping[str, str]) -> bool:
    """Whether a version forbids in words what its schema admits: before 28, Mod of floats is that of C's fmod alone."""
    fmod = any(x.name == "fmod" and x.i == 1 for x in node.attribute)
    return node.op_type == "Mod" and version < 28 and not fmod and "int" not in types[node.input[0]]


def written_for(program: Program, version: int) -> Program:
    """Return a program for another version of ONNX's own operators."""

    def context(of: Mapping[str, Any]) -> dict[str, Any]:
        return {**of, "opset": {**of.get("opset", {}), "": version}}

    if isinstance(program, Instance):
        return msgspec.structs.replace(program, context=context(program.context))
    calls = tuple(msgspec.structs.replace(x, context=context(x.context)) for x in program.calls)
    return msgspec.structs.replace(program, calls=calls)


def value_types(model: Any) -> dict[str, str]:
    """Return the name of a value → its type, as schemas write it, for all of a ModelProto's that type inference tells.

    Those of subgraphs as well; a name that is of two types in two of them is left out.
    """
    import onnx

    graph = model.graph
    if len(graph.node) > 1 or any(_subgraphs(node) for node in graph.node):
        # A test's own word outweighs an inference that finds fault with it: what lies between is not known then.
        with suppress(onnx.shape_inference.InferenceError, ValueError, RuntimeError):
            graph = onnx.shape_inference.infer_shapes(model).graph
    found: dict[str, set[str]] = {}
    graphs = [graph]
    for each in graphs:
        graphs += [inner for node in each.node for inner in _subgraphs(node)]
        for x in each.initializer:
            found.setdefault(x.name, set()).add(codec.element_type(x.data_type))
        for x in (*each.input, *each.value_info, *each.output):
            found.setdefault(x.name, set()).add(codec.schema_type(x.type))
    kinds = {name: {kind for kind in of if kind} for name, of in found.items()}
    return {name: min(of) for name, of in kinds.items() if len(of) == 1}


def _subgraphs(node: Any) -> list[Any]:
    return [graph for x in node.attribute for graph in (*x.graphs, *([x.g] if x.HasField("g") else []))]


def _alike(node: Any, version: int, domain: str, types: Mapping[str, str]) -> int:
    """Return the oldest opset in which a node's operator says the same, word for word, and admits the types of its values."""
    names = [name for name in (*node.input, *node.output) if name]
    while version > FIRST and all(name in types for name in names):
        older = since(node.op_type, version - 1, domain)
        if older is None or _says(node.op_type, older, domain) != _says(node.op_type, version, domain):
            break
        if not _admits(node, older, domain, types):
            break
        version = max(older, FIRST)
    return version


@cache
def _says(operator: str, version: int, domain: str) -> tuple[Any, ...]:
    """Return all that a schema says of an operator beside the types that it admits."""
    from onnx import defs

    schema = defs.get_schema(operator, version, domain)
    attributes = sorted(
        (x.name, x.type.value, x.required, _words(x.description), x.default_value.SerializeToString(deterministic=True))
        for x in schema.attributes.values()
    )
    formals = [
        [(x.name, x.option.value, x.type_str, x.is_homogeneous, x.min_arity, _words(x.description)) for x in side]
        for side in (schema.inputs, schema.outputs)
    ]
    return schema.deprecated, _words(schema.doc), attributes, formals


def _words(text: str | None) -> str:
    return " ".join((text or "").split())


def _admits(node: Any, version: int, domain: str, types: Mapping[str, str]) -> bool:
    """Whether a version of an operator admits the types of all values of a node of it."""
    from onnx import defs

    schema = defs.get_schema(node.op_type, version, domain)
    for names, formals in ((node.input, schema.inputs), (node.output, schema.outputs)):
        for place, name in enumerate(names):
            if not formals or (name and types[name] not in formals[min(place, len(formals) - 1)].types):
                return False
    return True


def _dtypes(message: Any) -> Iterator[str]:
    """Yield the dtypes of all tensors, and types of tensors, in a message of ONNX's."""
    for field, value in message.ListFields():
        if field.name in ("elem_type", "data_type") and isinstance(value, int):
            yield codec.DTYPES.get(value, "")
        elif field.message_type is not None:
            for part in [value] if hasattr(value, "ListFields") else value:
                yield from _dtypes(part)


@cache
def since(operator: str, version: int, domain: str) -> int | None:
    """Return the version of an operator in an opset, None where onnx does not know the operator."""
    from onnx import defs

    try:
        return int(defs.get_schema(operator, version, domain).since_version)
    except defs.SchemaError:
        return None


def with_attribute(operator: str, name: str, version: int) -> int | None:
    """Return the newest opset before this one in which an operator has an attribute of a name; None where there is none."""
    from onnx import defs

    for older in range(version - 1, FIRST - 1, -1):
        if since(operator, older, "") and name in defs.get_schema(operator, older, "").attributes:
            return older
    return None


def with_constants(program: Graph) -> Graph:
    """Return a program as of the oldest opset from its own on in which its operators are the same, and `Constant` may be of the
    dtypes that it is of there: before 9 it is of floats alone. The program itself, where there is none, a call holds others, or
    onnx is not here.
    """
    try:
        from onnx import defs
    except ImportError:
        return program
    stated: Any = program.calls[-1].context.get("opset") or {}
    names = {codec.element_type(codec.ELEMENT_TYPES[x.dtype]) for x in _constants(program)}
    own = [x.operator for x in program.calls if x.operator != "Constant" and "::" not in x.operator]
    version = stated.get("", 0)
    nested = any(isinstance(y, Message) for x in program.calls for y in x.params.values())
    for newer in () if nested or not version else range(max(version, FIRST), defs.onnx_opset_version() + 1):
        if any(since(x, newer, "") != since(x, version, "") for x in own):
            break
        if names <= {y for x in defs.get_schema("Constant", newer, "").type_constraints for y in x.allowed_type_strs}:
            made = written_for(program, newer)
            return made if isinstance(made, Graph) and newer != version else program
    return program


def _constants(program: Graph) -> Iterator[Tensor | RandomTensor]:
    held = (x.params.get("value") for x in program.calls if x.operator == "Constant")
    return (x for x in held if isinstance(x, Tensor | RandomTensor))


def stamped(model: Path, versions: Mapping[str, int]) -> bytes:
    """Return a model with these opsets in place of its own, and the IR version that was released with them.

    A runtime of their time refuses a newer IR version, too. Raises what onnx's checker raises where that is no model.
    """
    import onnx

    return restamped(onnx.load(model), versions)


def restamped(proto: Any, versions: Mapping[str, int]) -> bytes:
    """As `stamped`, of a ModelProto, which is changed."""
    import onnx

    for item in proto.opset_import:
        item.version = versions.get("" if item.domain == "ai.onnx" else item.domain, item.version)
    released = int(onnx.helper.find_min_ir_version_for(proto.opset_import, ignore_unknown=True))
    needed = max((codec.ir_version(name) for name in _dtypes(proto)), default=0)
    proto.ir_version = min(proto.ir_version, max(MIN_IR_VERSION, released, needed))
    onnx.checker.check_model(proto)
    data: bytes = proto.SerializeToString(deterministic=True)
    return data
