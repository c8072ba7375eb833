"""Migrated tests, and what they were made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from opera.errors import WorkspaceError
from opera.store import examined
from opera.store.rows import Test, unpack
from opera.store.workspace import IN_CORPUS, Workspace

_NAMED = (
    "COALESCE((SELECT p.test FROM provenances p WHERE p.instance = i.id ORDER BY p.rowid LIMIT 1),"
    f" (SELECT e.document FROM examined e WHERE e.kind = '{examined.MADE}' AND e.test = t.id LIMIT 1))"
)
"""The library's own test that a test `t` of an instance `i` is, or what it was made of."""


class Newest(NamedTuple):
    """The newest test of an instance, for another exporter may judge anew."""

    library: str
    instance: str
    status: str
    reason: str


class OfCorpus(NamedTuple):
    """The instance of the corpus that a test was made of, and its operator."""

    instance: str
    operator: str


class Origin(NamedTuple):
    """What a test was made of: operator, and the library's own test that showed it first, or `TEST without PARAMETER`, where it
    was made of one of these (empty where none is known)."""

    operator: str
    test: str


def test(workspace: Workspace, name: str) -> Test:
    """Return a test by its id. Raises WorkspaceError where there is none."""
    rows = workspace.query("SELECT id, instance, status, reason, seconds FROM tests WHERE id = ?", (name,))
    if not rows and (made := examined.instance_of(workspace, name)):
        return Test(name, made, "valid")
    if not rows:
        raise WorkspaceError(f"there is no test {name}", fix="`opera report` lists what the workspace holds")
    return Test(*rows[0])


def in_corpus(workspace: Workspace, name: str) -> OfCorpus | None:
    """Return what a test was made of, None where that is not in the corpus or there is no such test."""
    rows = workspace.query(
        f"SELECT i.id, i.operator FROM tests t JOIN instances i ON i.id = t.instance WHERE t.id = ? AND {IN_CORPUS}",
        (name,),
    )
    return OfCorpus(*rows[0]) if rows else None


def of_instance(workspace: Workspace, instance: str) -> list[Test]:
    """Return the tests that were made of an instance."""
    rows = workspace.query("SELECT id, instance, status, reason, seconds FROM tests WHERE instance = ?", (instance,))
    return [Test(*row) for row in rows]


def instances(workspace: Workspace, *, status: str = "") -> dict[str, str]:
    """Return test → instance, of all tests or of those of a status."""
    return dict(workspace.query("SELECT id, instance FROM tests WHERE ? = '' OR status = ?", (status, status)))


def rejected(workspace: Workspace, exporter: str) -> set[str]:
    """Return the instances of which an exporter could make no test."""
    rows = workspace.query("SELECT instance FROM tests WHERE exporter = ? AND status != 'valid'", (exporter,))
    return {row[0] for row in rows}


def newest(workspace: Workspace, *, rejected: bool = False) -> list[Newest]:
    """Return the newest test of each instance, in the order in which they were made.

    With `rejected`, of those instances alone that an exporter could make no test of, then or before.
    """
    among = " WHERE t.instance IN (SELECT instance FROM tests WHERE status != 'valid')" if rejected else ""
    rows = workspace.query(
        "SELECT i.library, t.instance, t.status, t.reason, MAX(t.rowid) FROM tests t JOIN instances i ON i.id = t.instance"
        f"{among} GROUP BY t.instance ORDER BY 5"
    )
    return [Newest(*row[:4]) for row in rows]


def operators(workspace: Workspace) -> dict[str, str]:
    """Return test → operator."""
    return dict(workspace.query("SELECT t.id, i.operator FROM tests t JOIN instances i ON i.id = t.instance"))


def operator(workspace: Workspace, name: str) -> str:
    """Return the operator of a test, empty where there is no such test."""
    found = origin(workspace, name)
    return found.operator if found else ""


def origin(workspace: Workspace, name: str) -> Origin | None:
    """Return what a test was made of, None where there is no such test."""
    rows = workspace.query(
        f"SELECT i.operator, {_NAMED} FROM tests t JOIN instances i ON i.id = t.instance WHERE t.id = ?", (name,)
    )
    return Origin(rows[0][0], _text(rows[0][1])) if rows else None


def _text(name: str | bytes | None) -> str:
    """Return a name as text: what a test was made of is a document, which is packed where it is long."""
    return unpack(name).decode() if isinstance(name, bytes) else name or ""


def stated(workspace: Workspace, name: str) -> tuple[str, str, str] | None:
    """Return library, operator and instance of a test that states its expected outputs itself, None for every other."""
    rows = workspace.query(
        "SELECT i.library, i.operator, i.id, e.document FROM tests t JOIN instances i ON i.id = t.instance"
        " JOIN expectations e ON e.instance = i.id WHERE t.id = ?",
        (name,),
    )
    for library, operator, instance, document in rows:
        held = msgspec.json.decode(unpack(document))
        if held["expected"] is not None and not held.get("reference"):
            return library, operator, instance
    return None


def origins(workspace: Workspace, names: Iterable[str] | None = None) -> dict[str, Origin]:
    """Return test → what it was made of, of these tests, or of all."""
    among = "" if names is None else " WHERE t.id IN (SELECT value FROM json_each(?))"
    rows = workspace.stream(
        f"SELECT t.id, i.operator, {_NAMED} FROM tests t JOIN instances i ON i.id = t.instance{among}",
        () if names is None else (msgspec.json.encode(sorted(names)).decode(),),
    )
    return {name: Origin(operator, _text(test)) for name, operator, test in rows}


def documents(workspace: Workspace, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """Yield (test, JSON of its program) of these tests."""
    rows = workspace.stream(
        "SELECT t.id, i.document FROM tests t JOIN instances i ON i.id = t.instance"
        " WHERE t.id IN (SELECT value FROM json_each(?))",
        (msgspec.json.encode(sorted(names)).decode(),),
    )
    return ((name, unpack(document)) for name, document in rows)
