"""What operators' parameters default to, as a library said it: kept, for asking takes seconds to import the library."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec

from opera.programs import values
from opera.programs.program import identity
from opera.programs.values import Value
from opera.store.rows import pack, unpack
from opera.store.workspace import Workspace

Defaults: TypeAlias = dict[str, Value] | None
"""Parameter → default; None of an operator that the library does not have."""


def version(library: str, exporter: Mapping[str, str]) -> str:
    """Return the id of what decides them: the library's version, and opera's declarations (`Library.exporter`)."""
    return identity(msgspec.json.encode({"library": library, **exporter}, order="sorted"))[:12]


def encode(found: Mapping[str, Value]) -> dict[str, Any]:
    """Return parameter → default as JSON holds it."""
    return {name: values.encode(value) for name, value in found.items()}


def save(workspace: Workspace, library: str, exporter: str, found: Mapping[str, dict[str, Any] | None]) -> None:
    """Store operator → parameter → encoded default, null for one that the library does not have."""
    with workspace.transaction():
        for operator, document in found.items():
            workspace.write(
                "INSERT OR REPLACE INTO defaults (library, exporter, operator, document) VALUES (?, ?, ?, ?)",
                (library, exporter, operator, pack(msgspec.json.encode(document))),
            )


def known(workspace: Workspace, library: str, exporter: str) -> dict[str, Defaults]:
    """Return what is stored: operator → parameter → default."""
    rows = workspace.query(
        "SELECT operator, document FROM defaults WHERE library = ? AND exporter = ?", (library, exporter)
    )
    documents = ((operator, msgspec.json.decode(unpack(document))) for operator, document in rows)
    return {
        operator: None if document is None else {name: values.decode(value) for name, value in document.items()}
        for operator, document in documents
    }
