"""What was found out about findings beside their verdicts: documents by kind, and which findings are another one."""

from __future__ import annotations

from typing import NamedTuple

from opera.store.rows import pack, unpack
from opera.store.workspace import Workspace

REDUCTION, BLAME = "reduction", "blame"
"""Kinds of documents: opera.triage.reduction.Reduction, opera.triage.blame.Blame, as JSON."""


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
    rows = workspace.query(
        "SELECT finding, environment, test, document FROM examined WHERE kind = ? AND (? = '' OR finding = ?)"
        " ORDER BY finding, environment, test",
        (kind, finding, finding),
    )
    return [Examined(finding, environment, test, unpack(document)) for finding, environment, test, document in rows]


def forget(workspace: Workspace, kind: str, finding: str, environment: str) -> None:
    """Delete the documents of a kind about a finding."""
    with workspace.transaction():
        workspace.write(
            "DELETE FROM examined WHERE kind = ? AND finding = ? AND environment = ?", (kind, finding, environment)
        )


def aliases(workspace: Workspace) -> dict[str, str]:
    """Return finding → what it is called since another version of the signature sorted its verdicts, which may be one again."""
    return dict(workspace.query("SELECT finding, kept FROM aliases"))
