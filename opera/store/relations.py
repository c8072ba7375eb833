"""Relations between instances of two operators: which agree in the library, as provenances tell and `relations` holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from opera.programs.program import Captured
from opera.store.rows import unpack
from opera.store.workspace import Workspace

SOURCE = "deeprel"
"""The migration source that provenances of exchanged invocations name."""
ARROW = " -> "
"""Between source and target, in the files that provenances of exchanged invocations name."""
TOLD = ": "
"""Between relation and the instance that an exchanged invocation was made of, in the test that its provenance names."""
VALUE, STATUS = "value", "status"
"""Kinds of relations: both return the same, both return."""


def insert(workspace: Workspace, records: Iterable[Captured], canonical: bytes | None = None) -> int:
    """As `Workspace.insert`, with which other instances these agree, as their provenances tell."""
    new = 0
    for record in records:
        new += workspace.insert([record], canonical=canonical)
        kind, told, other = record.provenance.test.partition(TOLD)
        exchanged = record.provenance.source == SOURCE and ARROW in record.provenance.file
        if exchanged and told and kind in (VALUE, STATUS):
            workspace.relate(record.program.id, other, kind)
    return new


def agreeing(workspace: Workspace) -> list[tuple[str, str]]:
    """Return pairs of instances whose operators return the same in the library."""
    rows = workspace.query("SELECT one, other FROM relations WHERE kind = ?", (VALUE,))
    return [(one, other) for one, other in rows]


def candidates(workspace: Workspace, extraction: str, operator: str = "") -> Iterator[bytes]:
    """Yield what an extraction stored of candidates (JSON): of all, or of those of an operator and where it is one."""
    concerned, operators = (" AND (source = ? OR target = ?)", (operator, operator)) if operator else ("", ())
    rows = workspace.stream(
        f"SELECT document FROM candidates WHERE extraction = ?{concerned} ORDER BY source, target",
        (extraction, *operators),
    )
    return (unpack(document) for (document,) in rows)


def originals(workspace: Workspace, library: str) -> dict[str, list[int]]:
    """Return operator → places in the corpus of what other sources captured of it: what was not exchanged."""
    rows = workspace.query(
        "SELECT operator, seq FROM instances WHERE library = ? AND id IN"
        " (SELECT instance FROM provenances WHERE source != ? OR file NOT LIKE ?) ORDER BY 1, 2",
        (library, SOURCE, f"%{ARROW}%"),
    )
    found: dict[str, list[int]] = {}
    for operator, seq in rows:
        found.setdefault(operator, []).append(seq)
    return found
