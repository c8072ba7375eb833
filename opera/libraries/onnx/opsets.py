"""Which opset a model needs, and the same model stamped with it.

An operator keeps its version until its schema changes: Cast is of version 25 in the opsets 25, 26 and 27. A model whose opset
is newer than the versions of all its operators means the same with the oldest opset that has these versions, and a compiler
that knows no newer one can be asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from opera.libraries.onnx import codec

MIN_IR_VERSION = 4
"""Since then an initializer need not be a graph input as well, so that compilers see a constant (ONNX, docs/IR.md)."""
OLDEST = "onnx-oldest-opset"
"""The artefact: the model with the oldest opset that has its operators' versions."""


def needed(nodes: Iterable[Any], versions: Mapping[str, int]) -> dict[str, int]:
    """Return domain → the newest version among a model's operators of it, of the domains whose operators are all known.

    Args:
        nodes: NodeProtos, those of subgraphs among them.
        versions: Domain → version that the model states.
    """
    found: dict[str, int] = {}
    unknown: set[str] = set()
    for node in nodes:
        domain = "" if node.domain == "ai.onnx" else str(node.domain)
        version = since(node.op_type, versions[domain], domain) if domain in versions else None
        if version is None:
            unknown.add(domain)
        else:
            found[domain] = max(found.get(domain, 0), version)
    return {domain: version for domain, version in found.items() if domain not in unknown}


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

    proto = onnx.load(model)
    for item in proto.opset_import:
        item.version = versions.get("" if item.domain == "ai.onnx" else item.domain, item.version)
    released = int(onnx.helper.find_min_ir_version_for(proto.opset_import, ignore_unknown=True))
    needed = max((codec.ir_version(name) for name in _dtypes(proto)), default=0)
    proto.ir_version = min(proto.ir_version, max(MIN_IR_VERSION, released, needed))
    onnx.checker.check_model(proto)
    data: bytes = proto.SerializeToString(deterministic=True)
    return data
