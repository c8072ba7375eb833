"""Stored verdicts, asked for by what is wanted of them: whole (`Verdict`), or as rows of a few columns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from opera.programs.verdicts import PASS
from opera.store import examined
from opera.store.instances import CALLS
from opera.store.rows import Verdict, unpack
from opera.store.workspace import COUNTED, Workspace


class Shown(NamedTuple):
    """That a test showed a verdict through one variant of a frontend in an environment."""

    frontend: str
    environment: str
    test: str
    verdict: str


class OfInstance(NamedTuple):
    """As `Shown`, with the instance that the test was made of."""

    frontend: str
    environment: str
    instance: str
    test: str
    verdict: str


class Ran(NamedTuple):
    """How many tests were run on a frontend in an environment."""

    frontend: str
    environment: str
    tests: int


class First(NamedTuple):
    """That a test was run on a frontend in an environment."""

    frontend: str
    environment: str
    test: str


# ---------------------------------------------------------------------- whole


def of_test(workspace: Workspace, test: str) -> Iterator[Verdict]:
    """Yield the verdicts of one test."""
    return workspace.verdicts("test = ?", (test,))


def of_tests(workspace: Workspace, tests: Iterable[str]) -> Iterator[Verdict]:
    """Yield the verdicts of any number of tests."""
    names = msgspec.json.encode(list(tests)).decode()
    return workspace.verdicts("test IN (SELECT value FROM json_each(?))", (names,))


def of_variant(workspace: Workspace, variant: str) -> Iterator[Verdict]:
    """Yield the verdicts that were reached through a variant."""
    return workspace.verdicts("variant = ?", (variant,))


def of_kind(workspace: Workspace, *verdicts: str) -> Iterator[Verdict]:
    """Yield the verdicts that are one of `verdicts`."""
    return workspace.verdicts(f"verdict IN ({_marks(verdicts)})", verdicts)


def pending(workspace: Workspace) -> Iterator[Verdict]:
    """Yield what an interrupted run left to be confirmed, with what was seen."""
    return workspace.verdicts("confirmation = 'pending'", seen=True)


def counted(workspace: Workspace, frontend: str = "", environment: str = "") -> Iterator[Verdict]:
    """Yield the verdicts that make findings, of one frontend and environment where they are given."""
    return workspace.verdicts(
        f"{COUNTED} AND (? = '' OR frontend = ?) AND (? = '' OR environment = ?)",
        (frontend, frontend, environment, environment),
    )


def of_members(workspace: Workspace, frontend: str, environment: str, tests: Iterable[str]) -> Iterator[Verdict]:
    """Yield the verdicts that make findings of these tests on a frontend."""
    names = msgspec.json.encode(list(tests)).decode()
    return workspace.verdicts(
        f"{COUNTED} AND frontend = ? AND environment = ? AND test IN (SELECT value FROM json_each(?))",
        (frontend, environment, names),
    )


def of_findings(workspace: Workspace, findings: Iterable[str]) -> Iterator[Verdict]:
    """Yield the members of any number of findings, in all environments."""
    names = msgspec.json.encode(list(findings)).decode()
    return workspace.verdicts("finding IN (SELECT value FROM json_each(?))", (names,))


def counted_as(workspace: Workspace, findings: Iterable[str], environment: str = "") -> Iterator[Verdict]:
    """Yield the verdicts of these findings' signatures that make findings, in an environment or in all of them."""
    names = msgspec.json.encode(sorted(findings)).decode()
    there = " AND environment = ?" if environment else ""
    return workspace.verdicts(
        f"{COUNTED}{there} AND finding IN (SELECT value FROM json_each(?))", (*filter(None, [environment]), names)
    )


def counted_of(workspace: Workspace, tests: Iterable[str]) -> Iterator[Verdict]:
    """Yield the verdicts that make findings, of these tests."""
    names = msgspec.json.encode(sorted(tests)).decode()
    return workspace.verdicts(f"{COUNTED} AND test IN (SELECT value FROM json_each(?))", (names,))


def of_frontend(workspace: Workspace, frontend: str, environment: str) -> Iterator[Verdict]:
    """Yield all verdicts of a frontend in an environment."""
    return workspace.verdicts("frontend = ? AND environment = ?", (frontend, environment))


def concluded_by(
    workspace: Workspace, frontend: str, environment: str, rules: str, kinds: Collection[str]
) -> Iterator[Verdict]:
    """Yield the verdicts of a frontend, of these kinds, that these rules concluded, with what was seen."""
    return workspace.verdicts(
        f"frontend = ? AND environment = ? AND rules = ? AND verdict IN ({_marks(kinds)})",
        (frontend, environment, rules, *kinds),
        seen=True,
    )


# ---------------------------------------------------------------------- a few columns


def ran(workspace: Workspace) -> list[Ran]:
    """Return every frontend in every environment that it was run in, in the order of their newest runs."""
    rows = workspace.query(
        "SELECT frontend, environment, COUNT(DISTINCT test) FROM verdicts GROUP BY 1, 2 ORDER BY MAX(run), MIN(rowid)"
    )
    return [Ran(*row) for row in rows]


def rules(workspace: Workspace, frontend: str, environment: str) -> list[str]:
    """Return the rules that concluded verdicts of a frontend."""
    rows = workspace.query(
        "SELECT DISTINCT rules FROM verdicts WHERE frontend = ? AND environment = ?", (frontend, environment)
    )
    return [row[0] for row in rows]


def shown(workspace: Workspace) -> Iterator[Shown]:
    """Yield every verdict on the tests of the corpus in brief."""
    rows = workspace.stream(f"SELECT frontend, environment, test, verdict FROM verdicts WHERE {examined.NOT_MADE}")
    return map(Shown._make, rows)


class _Details(msgspec.Struct, frozen=True):
    screen: Any = ""


class Reason(msgspec.Struct, frozen=True):
    """What is said of a verdict beside what it is: the words of the compiler, and the screen that explains it."""

    message: str = ""
    details: _Details = _Details()


class Explained(NamedTuple):
    """A verdict in brief, and the document that says why; see `reason`."""

    frontend: str
    environment: str
    test: str
    verdict: str
    document: bytes

    def reason(self) -> Reason:
        """Return what is said of it."""
        return _reason.decode(unpack(self.document))


_reason = msgspec.json.Decoder(Reason)


def explained(workspace: Workspace, *verdicts: str) -> Iterator[Explained]:
    """Yield the verdicts that are one of `verdicts`, in the order in which they were written."""
    rows = workspace.stream(
        "SELECT frontend, environment, test, verdict, document FROM verdicts"
        f" WHERE verdict IN ({_marks(verdicts)}) ORDER BY rowid",
        verdicts,
    )
    return map(Explained._make, rows)


class Tested(NamedTuple):
    """What a test showed through one variant of a frontend; `rest` is its document, None of a pass or where not asked for."""

    test: str
    variant: str
    verdict: str
    stage: str
    symptom: str
    finding: str
    confirmation: str
    seconds: float
    rest: bytes | None


def by_test(workspace: Workspace, frontend: str, environment: str, *, rest: bool) -> Iterator[Tested]:
    """Yield what a frontend showed, test by test, in the order of their ids; nothing is held but the row."""
    document = "CASE WHEN verdict = 'pass' THEN NULL ELSE document END" if rest else "NULL"
    rows = workspace.stream(
        f"SELECT test, variant, verdict, stage, symptom, finding, confirmation, seconds, {document} FROM verdicts"
        " WHERE frontend = ? AND environment = ? ORDER BY test, rowid",
        (frontend, environment),
    )
    return map(Tested._make, rows)


def frontends(workspace: Workspace) -> list[tuple[str, str]]:
    """Return the (frontend, environment) that tests were run on."""
    rows = workspace.query("SELECT DISTINCT frontend, environment FROM verdicts ORDER BY 1, 2")
    return [(frontend, environment) for frontend, environment in rows]


def of_operator(workspace: Workspace, library: str, operator: str) -> list[Shown]:
    """Return the verdicts of the tests that call an operator."""
    rows = workspace.query(
        "SELECT v.frontend, v.environment, v.test, v.verdict FROM instances i JOIN tests t ON t.instance = i.id"
        f" JOIN verdicts v ON v.test = t.id WHERE i.library = ? AND {CALLS}",
        (library, operator),
    )
    return [Shown(*row) for row in rows]


def passed(workspace: Workspace, verdict: Verdict, library: str, operator: str, most: int) -> list[bytes]:
    """Return the programs (JSON) of the tests of an operator that pass where a verdict is from: on its frontend, by its
    variant, in its environment. At most so many, those that take least to write down first.
    """
    rows = workspace.query(
        "SELECT i.document FROM instances i JOIN tests t ON t.instance = i.id JOIN verdicts v ON v.test = t.id"
        " WHERE i.library = ? AND i.operator = ? AND v.frontend = ? AND v.variant = ? AND v.environment = ? AND v.verdict = ?"
        " ORDER BY length(i.document), i.id LIMIT ?",
        (library, operator, verdict.frontend, verdict.variant, verdict.environment, PASS, most),
    )
    return [unpack(document) for (document,) in rows]


def of_instances(workspace: Workspace) -> Iterator[OfInstance]:
    """Yield every verdict in brief, with the instance of its test."""
    rows = workspace.stream(
        "SELECT v.frontend, v.environment, t.instance, v.test, v.verdict FROM verdicts v JOIN tests t ON t.id = v.test"
    )
    return map(OfInstance._make, rows)


def first(workspace: Workspace) -> Iterator[First]:
    """Yield every test that was run on a frontend, once, in the order in which they were first run."""
    # Sorted, and not read in this order: the rows of the key's index are a tenth as long as those of the table.
    rows = workspace.stream("SELECT frontend, environment, test FROM verdicts ORDER BY +rowid")
    return map(First._make, dict.fromkeys(rows))


def tests(workspace: Workspace, frontend: str, environment: str) -> set[str]:
    """Return the tests that were run on a frontend."""
    rows = workspace.query(
        "SELECT DISTINCT test FROM verdicts WHERE frontend = ? AND environment = ?", (frontend, environment)
    )
    return {row[0] for row in rows}


def seconds(workspace: Workspace, frontend: str, environment: str) -> dict[str, float]:
    """Return test → seconds inside the compiler, over all variants that were tried, of the tests of the corpus."""
    found: dict[str, float] = defaultdict(float)
    for test, spent in workspace.stream(
        f"SELECT test, seconds FROM verdicts WHERE frontend = ? AND environment = ? AND {examined.NOT_MADE}",
        (frontend, environment),
    ):
        found[test] += spent
    return dict(found)


def passed_as_constants(workspace: Workspace) -> set[First]:
    """Return what passes where inputs are constants of the model."""
    rows = workspace.query(
        "SELECT frontend, environment, test FROM verdicts WHERE verdict = ? AND variant = 'constants'", (PASS,)
    )
    return {First(*row) for row in rows}


def members(workspace: Workspace) -> dict[tuple[str, str], int]:
    """Return (finding, environment) → verdicts that are its members."""
    rows = workspace.query(
        f"SELECT finding, environment, COUNT(*) FROM verdicts WHERE {COUNTED} GROUP BY finding, environment"
    )
    return {(finding, environment): count for finding, environment, count in rows}


def confirmed(workspace: Workspace) -> dict[tuple[str, str], int]:
    """Return (finding, environment) → verdicts that were confirmed, or are to be."""
    rows = workspace.query(
        f"SELECT finding, environment, COUNT(*) FROM verdicts WHERE {COUNTED} AND confirmation IN ('confirmed', 'pending')"
        " GROUP BY finding, environment"
    )
    return {(finding, environment): count for finding, environment, count in rows}


def standing(workspace: Workspace, of: Verdict) -> tuple[str, str]:
    """Return finding and confirmation of the stored verdict in whose place one is to be stored; empty where there is none."""
    rows = workspace.query(
        "SELECT finding, confirmation FROM verdicts WHERE test = ? AND frontend = ? AND variant = ? AND environment = ?",
        (of.test, of.frontend, of.variant, of.environment),
    )
    return rows[0] if rows else ("", "")


def signatures(workspace: Workspace) -> dict[str, bytes]:
    """Return finding → its signature as it is stored (JSON), of all findings."""
    return dict(workspace.query("SELECT id, signature FROM findings"))


def created(workspace: Workspace) -> dict[str, float]:
    """Return finding → when it was first found, in Unix seconds, of all findings."""
    return dict(workspace.query("SELECT id, created FROM findings"))


def failing(workspace: Workspace, names: Collection[str]) -> dict[tuple[str, str, str, str], str]:
    """Return (test, frontend, variant, environment) → finding of its signature, of the failing verdicts of these tests."""
    rows = workspace.query(
        f"SELECT test, frontend, variant, environment, finding FROM verdicts WHERE {COUNTED}"
        " AND test IN (SELECT value FROM json_each(?))",
        (msgspec.json.encode(list(names)).decode(),),
    )
    return {(test, frontend, variant, environment): finding for test, frontend, variant, environment, finding in rows}


def _marks(values: Collection[str]) -> str:
    return ", ".join("?" * len(values))
