"""Stored facts in bulk, for tables that people analyse: rows of plain columns, narrowed by what is wanted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

import msgspec

from opera.store.rows import unpack
from opera.store.workspace import COUNTED, Workspace


class Place(NamedTuple):
    """A frontend in an environment that verdicts, or coverage, were stored of."""

    frontend: str
    environment: str


VerdictRow: TypeAlias = tuple[str, str, str, str, str, str, str, str | None, str, float, int, bytes]
"""Of a verdict: test, frontend, environment, variant, verdict, stage, symptom, finding (None where it makes none),
confirmation, seconds, run, document. A plain tuple, for there are hundreds of thousands."""


class InstanceRow(NamedTuple):
    """An instance of the corpus; `sources` is a JSON list, `status` and `reason` are of its newest test.

    `document` is its canonical JSON, None where that was not asked for.
    """

    place: int
    instance: str
    library: str
    operator: str
    sources: str
    file: str
    test: str
    status: str | None
    reason: str | None
    document: bytes | None


class RankRow(NamedTuple):
    """The place of an instance in the ranking of its library for a compiler; 0 is run first."""

    library: str
    compiler: str
    strategy: str
    position: int
    instance: str
    operator: str


class CoverageRow(NamedTuple):
    """What the test of an instance covers of a frontend: MessagePack, file → bitmap of lines."""

    frontend: str
    environment: str
    instance: str
    operator: str | None
    document: bytes


def places(workspace: Workspace, table: str = "verdicts") -> list[Place]:
    """Return the frontends and environments of which `verdicts`, or `coverage`, holds anything."""
    rows = workspace.query(f"SELECT DISTINCT frontend, environment FROM {table} ORDER BY 1, 2")
    return [Place(*row) for row in rows]


def operators(workspace: Workspace) -> list[tuple[str, str]]:
    """Return (library, operator) of all instances."""
    return workspace.query("SELECT DISTINCT library, operator FROM instances")


def rankings(workspace: Workspace) -> list[tuple[str, str]]:
    """Return (library, compiler) of the rankings there are."""
    return workspace.query("SELECT library, compiler FROM rankings ORDER BY id")


def made_of(workspace: Workspace) -> dict[str, tuple[str, str]]:
    """Return test → the instance that it was made of, and its operator, of all tests."""
    rows = workspace.stream("SELECT t.id, i.id, i.operator FROM tests t JOIN instances i ON i.id = t.instance")
    return {test: (instance, operator) for test, instance, operator in rows}


def verdicts(
    workspace: Workspace, at: Sequence[Place], operators: Sequence[str] | None, statuses: Sequence[str] | None
) -> Iterator[VerdictRow]:
    """Yield the verdicts of frontends in environments, in the order in which tests were first run.

    `operators` and `statuses` (verdicts) narrow them where they are not None.
    """
    called = "SELECT t.id FROM tests t JOIN instances i ON i.id = t.instance WHERE i.operator IN"
    return workspace.stream(
        "SELECT test, frontend, environment, variant, verdict, stage, symptom,"
        f" CASE WHEN {COUNTED} THEN finding END, confirmation, seconds, run, document FROM verdicts v WHERE {_AT}"
        f" AND (? IS NULL OR test IN ({called} (SELECT value FROM json_each(?)))) AND {_among('verdict')} ORDER BY rowid",
        (*_at(at), *_given(operators), *_given(statuses)),
    )


def instances(
    workspace: Workspace,
    libraries: Sequence[str] | None,
    operators: Sequence[str] | None,
    statuses: Sequence[str] | None,
    *,
    whole: bool,
) -> Iterator[InstanceRow]:
    """Yield the corpus in its order; with `whole`, what the instances are too."""
    rows = workspace.stream(
        "SELECT i.seq, i.id, i.library, i.operator, p.sources, p.file, p.test, t.status, t.reason,"
        f" {'i.document' if whole else 'NULL'} FROM instances i"
        " JOIN (SELECT instance, json_group_array(DISTINCT source) sources, file, test, MIN(rowid) FROM provenances"
        " GROUP BY instance) p ON p.instance = i.id"
        " LEFT JOIN (SELECT instance, status, reason, MAX(rowid) FROM tests GROUP BY instance) t ON t.instance = i.id"
        f" WHERE {_among('i.library')} AND {_among('i.operator')} AND {_among('t.status')} ORDER BY i.seq",
        (*_given(libraries), *_given(operators), *_given(statuses)),
    )
    return (InstanceRow._make((*row[:-1], row[-1] and unpack(row[-1]))) for row in rows)


def ranks(workspace: Workspace, of: Sequence[tuple[str, str]], operators: Sequence[str] | None) -> Iterator[RankRow]:
    """Yield the rankings of these (library, compiler), best first."""
    rows = workspace.stream(
        "SELECT r.library, r.compiler, r.strategy, k.position, i.id, i.operator FROM rankings r"
        " JOIN ranks k ON k.ranking = r.id JOIN instances i ON i.seq = k.instance"
        " WHERE r.library || char(10) || r.compiler IN (SELECT value FROM json_each(?))"
        f" AND {_among('i.operator')} ORDER BY r.id, k.position",
        (_json([f"{library}\n{compiler}" for library, compiler in of]), *_given(operators)),
    )
    return map(RankRow._make, rows)


def coverage(workspace: Workspace, at: Sequence[Place], operators: Sequence[str] | None) -> Iterator[CoverageRow]:
    """Yield what tests cover of frontends in environments."""
    rows = workspace.stream(
        "SELECT v.frontend, v.environment, v.instance, i.operator, v.document FROM coverage v"
        f" LEFT JOIN instances i ON i.id = v.instance WHERE {_AT} AND {_among('i.operator')}"
        " ORDER BY v.frontend, v.environment, i.seq",
        (*_at(at), *_given(operators)),
    )
    return (CoverageRow._make((*row[:-1], unpack(row[-1]))) for row in rows)


_AT = "+v.environment IN (SELECT value FROM json_each(?)) AND +v.frontend IN (SELECT value FROM json_each(?))"
"""SQL of the rows of some places: an environment is of one frontend. With the plus signs no index is used, and rows are read in
their order: that is faster unless few are wanted, and then it is fast too."""


def _at(places: Sequence[Place]) -> tuple[str, str]:
    return _json([x.environment for x in places]), _json([x.frontend for x in places])


def _among(column: str) -> str:
    """Return SQL that is true where a column is one of a JSON list, or the list is null; it takes the list twice."""
    return f"(? IS NULL OR {column} IN (SELECT value FROM json_each(?)))"


def _given(values: Sequence[str] | None) -> tuple[str | None, str | None]:
    found = None if values is None else _json(values)
    return found, found


def _json(values: Sequence[str]) -> str:
    return msgspec.json.encode(values).decode()
