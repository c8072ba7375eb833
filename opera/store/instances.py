"""Operator instances of the corpus, counted and looked up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from opera.programs.program import JOINED
from opera.store import examined
from opera.store.rows import unpack
from opera.store.workspace import Workspace

KINDS = {"finding": "findings", "test": "tests", "instance": "instances"}
"""What has an id → its table."""
CALLS = f"instr('{JOINED}' || i.operator || '{JOINED}', '{JOINED}' || ? || '{JOINED}') > 0"
"""SQL that is true of the instances i, or programs of several calls, that call an operator."""


def by_source(workspace: Workspace, library: str, operator: str) -> dict[str, int]:
    """Return migration source → instances that call an operator, most first; one that two sources hold counts for both."""
    rows = workspace.query(
        "SELECT p.source, COUNT(DISTINCT i.id) FROM instances i JOIN provenances p ON p.instance = i.id"
        f" WHERE i.library = ? AND {CALLS} GROUP BY 1 ORDER BY 2 DESC",
        (library, operator),
    )
    return dict(rows)


class Seen(NamedTuple):
    """An instance of the corpus, and the name of the test that showed it first."""

    instance: str
    operator: str
    test: str


def seen(workspace: Workspace, library: str, source: str = "") -> list[Seen]:
    """Return the corpus of a library in its order, or what one migration source brought to it."""
    rows = workspace.query(
        "SELECT i.id, i.operator, p.test, MIN(p.rowid) FROM instances i JOIN provenances p ON p.instance = i.id"
        " WHERE i.library = ?1 AND ?2 IN ('', p.source) GROUP BY i.id ORDER BY i.seq",
        (library, source),
    )
    return [Seen(*row[:3]) for row in rows]


def equipped(workspace: Workspace) -> dict[str, dict[str, int]]:
    """Return compiler → library → instances that the compiler's own suite covers."""
    found: dict[str, dict[str, int]] = {}
    for compiler, library, count in workspace.query(
        "SELECT e.compiler, i.library, COUNT(DISTINCT i.id) FROM equipped e JOIN instances i ON i.id = e.instance"
        " GROUP BY 1, 2 ORDER BY 1, 2"
    ):
        found.setdefault(compiler, {})[library] = count
    return found


def documents(workspace: Workspace, places: Sequence[int]) -> list[tuple[str, bytes]]:
    """Return (id, document) of the instances at these places of the corpus, in corpus order."""
    marks = ", ".join("?" * len(places))
    rows = workspace.query(f"SELECT id, document FROM instances WHERE seq IN ({marks}) ORDER BY seq", places)
    return [(name, unpack(document)) for name, document in rows]


def of_operator(workspace: Workspace, library: str, operator: str, most: int, longest: int) -> list[bytes]:
    """Return programs (JSON) of the corpus that are one call of an operator, of so many bytes at most as they are stored.

    At most so many, in the order of their ids, which hang on nothing that they hold.
    """
    rows = workspace.query(
        "SELECT document FROM instances i WHERE library = ? AND operator = ? AND length(document) <= ?"
        " AND EXISTS (SELECT 1 FROM provenances p WHERE p.instance = i.id) ORDER BY id LIMIT ?",
        (library, operator, longest, most),
    )
    return [unpack(document) for (document,) in rows]


def matching(workspace: Workspace, beginning: str, most: int = 20) -> list[tuple[str, str]]:
    """Return (kind, id) of the findings, tests and instances whose id begins so, of each kind at most so many."""
    found = []
    for kind, table in KINDS.items():
        rows = workspace.query(
            f"SELECT id FROM {table} WHERE substr(id, 1, ?) = ? LIMIT ?", (len(beginning), beginning, most)
        )
        found += [(kind, row[0]) for row in rows]
    return list(dict.fromkeys([*found, *examined.matching(workspace, beginning, most)]))
