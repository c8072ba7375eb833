"""Which opset a model needs, and the same model stamped with it.

An operator keeps its version until its schema changes: Cast is of version 25 in the opsets 25, 26 and 27. A model whose opset
is newer than the versions of all its operators means the same with the oldest opset that has these versions, and a compiler
that knows no newer one can be asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

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


@cache
def since(operator: str, version: int, domain: str) -> int | None:
    """Return the version of an operator in an opset, None where onnx does not know the operator."""
    from onnx import defs

    try:
        return int(defs.get_schema(operator, version, domain).since_version)
    except defs.SchemaError:
        return None


def stamped(model: Path, versions: Mapping[str, int]) -> bytes:
    """Return a model with these opsets in place of its own. Raises what onnx's checker raises where that is no model."""
    import onnx

    proto = onnx.load(model)
    for item in proto.opset_import:
        item.version = versions.get("" if item.domain == "ai.onnx" else item.domain, item.version)
    onnx.checker.check_model(proto)
    data: bytes = proto.SerializeToString(deterministic=True)
    return data
