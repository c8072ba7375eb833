"""Relations between instances of two operators: which agree in the library, as provenances tell and `relations` holds."""

from __future__ import annotations

from collections.abc import Iterable

from opera.programs.program import Captured
from opera.store.workspace import Workspace

SOURCE = "deeprel"
"""The migration source that provenances of exchanged invocations name."""
ARROW = " -> "
"""Between source and target, in the files that provenances of exchanged invocations name."""
TOLD = ": "
"""Between relation and the instance that an exchanged invocation was made of, in the test that its provenance names."""
VALUE, STATUS = "value", "status"
"""Kinds of relations: both return the same, both return."""


def insert(workspace: Workspace, records: Iterable[Captured]) -> int:
    """As `Workspace.insert`, with which other instances these agree, as their provenances tell."""
    new = 0
    for record in records:
        new += workspace.insert([record])
        kind, told, other = record.provenance.test.partition(TOLD)
        exchanged = record.provenance.source == SOURCE and ARROW in record.provenance.file
        if exchanged and told and kind in (VALUE, STATUS):
            workspace.relate(record.instance.id, other, kind)
    return new
