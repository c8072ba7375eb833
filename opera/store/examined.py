"""What was found out about findings beside their verdicts: documents by kind, and which findings are another one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from opera.programs.program import Program, identity
from opera.store.rows import pack, unpack
from opera.store.workspace import Workspace

REDUCTION, PLAIN, MEMBER, KIN, BLAME, SINCE = "reduction", "plain", "member", "kin", "blame", "since"
"""Kinds of documents: triage.reduction.Reduction (of its plain form, too, or null), triage.distinct.belonging.Membership,
triage.distinct.kinship.Kin,
opera.triage.blame.Blame, opera.triage.versions.since.Since, as JSON."""
NUMBERS = "numbers"
"""Kind of documents that say, as text, which numbers go wrong in a member (triage.distinct.numbers)."""
SHOWN = "shown"
"""Kind of documents that say in how many runs the script of what ends its process, or varies, showed it, and how often it was
run: `[2, 3]`. `test` is the one that the script is of."""
GONE = "gone"
"""Kind of documents that say, as text, what a member showed when it was to be reduced, where it failed no more as it did."""
EXCUSED = "excused"
"""Kind of documents that say, as text, which test a program became that fails where what excuses the test does not hold, and
by which excuse: `TEST longer`; empty where none fails (triage.reducer.excused)."""
TEST, INSTANCE = "test", "instance"
"""Kinds of documents that stand for rows of `tests` and `instances`: a test that was made of a finding and is no part of
the corpus, so that no plan, ranking or count knows it. The one holds the id of its instance, the other a canonical form."""


MADE = "made"
"""Kind of documents that say, as text, what a test was made of that is one of `tests` with its verdicts, and yet not of the
corpus: another test without what decides that it fails."""
NOT_MADE = f"test NOT IN (SELECT test FROM examined WHERE kind = '{MADE}')"
"""SQL that is true of the tests of the corpus."""


class Examined(NamedTuple):
    """A document about a finding in an environment; `test` is the member that was looked at."""

    finding: str
    environment: str
    test: str
    document: bytes


def save(workspace: Workspace, kind: str, found: Examined) -> None:
    """Store a document, in place of an earlier one about the same member."""
    with workspace.transaction():
        workspace.write(
            "INSERT OR REPLACE INTO examined (finding, environment, kind, test, document) VALUES (?, ?, ?, ?, ?)",
            (found.finding, found.environment, kind, found.test, pack(found.document)),
        )


def documents(workspace: Workspace, kind: str, finding: str = "") -> list[Examined]:
    """Return the documents of a kind, of one finding where it is given."""
    rows = workspace.query(  # of one it is looked up
        "SELECT finding, environment, test, document FROM examined WHERE kind = ?"
        f"{' AND finding = ?' if finding else ''} ORDER BY finding, environment, test",
        (kind, *([finding] if finding else [])),
    )
    return [Examined(finding, environment, test, unpack(document)) for finding, environment, test, document in rows]


def save_test(workspace: Workspace, found: Examined, program: Program) -> None:
    """Store that a test was made of a finding (its id is `found.test`), and of which program."""
    canonical = program.canonical()
    instance = identity(canonical)
    save(workspace, TEST, found._replace(document=instance.encode()))
    save(workspace, INSTANCE, found._replace(test=instance, document=canonical))


def save_made(workspace: Workspace, found: Examined, program: Program) -> None:
    """Store the program of a test that was made of a member, and what it was made of; the test is saved as others are."""
    canonical = program.canonical()
    save(workspace, MADE, found)
    with workspace.transaction():
        workspace.write(
            "INSERT OR IGNORE INTO instances (id, library, operator, document) VALUES (?, ?, ?, ?)",
            (identity(canonical), program.library, program.operator, pack(canonical)),
        )


def made(workspace: Workspace) -> set[str]:
    """Return the tests that have verdicts and are not of the corpus."""
    return {test for (test,) in workspace.query("SELECT test FROM examined WHERE kind = ?", (MADE,))}


def instance_of(workspace: Workspace, test: str) -> str:
    """Return the instance of a test that was made of a finding, empty where there is no such test."""
    rows = workspace.query("SELECT document FROM examined WHERE kind = ? AND test = ?", (TEST, test))
    return unpack(rows[0][0]).decode() if rows else ""


def matching(workspace: Workspace, beginning: str, most: int) -> list[tuple[str, str]]:
    """Return (kind, id) of the tests and instances made of findings whose id begins so, of each kind at most so many."""
    return workspace.query(
        "SELECT DISTINCT kind, test FROM examined WHERE kind IN (?, ?) AND substr(test, 1, ?) = ? LIMIT ?",
        (TEST, INSTANCE, len(beginning), beginning, most),
    )


def of_tests(workspace: Workspace, kind: str, tests: Iterable[str]) -> list[Examined]:
    """Return the documents of a kind about these members."""
    rows = workspace.query(
        "SELECT finding, environment, test, document FROM examined WHERE kind = ?"
        " AND test IN (SELECT value FROM json_each(?)) ORDER BY finding, environment, test",
        (kind, msgspec.json.encode(sorted(tests)).decode()),
    )
    return [Examined(finding, environment, test, unpack(document)) for finding, environment, test, document in rows]


def forget(workspace: Workspace, kind: str, finding: str = "", environment: str = "") -> None:
    """Delete the documents of a kind: about a finding, about all where none is given."""
    with workspace.transaction():
        workspace.write(
            "DELETE FROM examined WHERE kind = ? AND (? = '' OR finding = ?) AND (? = '' OR environment = ?)",
            (kind, finding, finding, environment, environment),
        )


def aliases(workspace: Workspace) -> dict[str, str]:
    """Return finding → what it is called since another version of the signature sorted its verdicts, or since reductions tell
    that it is no part of its own; it may be one again.
    """
    return dict(workspace.query("SELECT finding, kept FROM aliases"))


def rename(workspace: Workspace, renamed: Mapping[str, str]) -> None:
    """Store what findings are called from now on."""
    with workspace.transaction():
        for finding, kept in renamed.items():
            workspace.write("INSERT OR REPLACE INTO aliases (finding, kept) VALUES (?, ?)", (finding, kept))
