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

from opera.libraries.onnx import codec

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
    for node in nodes:
        domain = "" if node.domain == "ai.onnx" else str(node.domain)
        version = since(node.op_type, versions[domain], domain) if domain in versions else None
        if version is None:
            unknown.add(domain)
        else:
            found[domain] = max(found.get(domain, 0), _alike(node, version, domain, types))
    return {domain: version for domain, version in found.items() if domain not in unknown}


def value_types(model: Any) -> dict[str, str]:
    """Return the name of a value → its type, as schemas write it, for all of a ModelProto's that type inference tells."""
    import onnx

    graph = model.graph
    if len(graph.node) > 1:
        # A test's own word outweighs an inference that finds fault with it: what lies between is not known then.
        with suppress(onnx.shape_inference.InferenceError, ValueError, RuntimeError):
            graph = onnx.shape_inference.infer_shapes(model).graph
    stated = {x.name: codec.schema_type(x.type) for x in (*graph.input, *graph.value_info, *graph.output)}
    constants = {x.name: codec.element_type(x.data_type) for x in graph.initializer}
    return {name: kind for name, kind in {**constants, **stated}.items() if kind}


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
