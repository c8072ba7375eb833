"""What was done to a workspace: extractions that did not end well, rankings, runs."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from opera.store.workspace import Workspace


class Unfinished(NamedTuple):
    """A file of a suite that did not run to its end: how, and why."""

    file: str
    status: str
    reason: str


def unfinished(workspace: Workspace) -> list[Unfinished]:
    """Return the files of suites that did not run to their end."""
    rows = workspace.query("SELECT file, status, document FROM extraction_files WHERE status != 'done' ORDER BY file")
    return [Unfinished(file, status, str(msgspec.json.decode(told).get("reason", ""))) for file, status, told in rows]


def extractions(workspace: Workspace, beginning: str) -> list[str]:
    """Return the extractions whose key begins so, in the order in which they were started."""
    rows = workspace.query(
        "SELECT key FROM extractions WHERE substr(key, 1, ?) = ? ORDER BY started", (len(beginning), beginning)
    )
    return [row[0] for row in rows]


def strategies(workspace: Workspace) -> dict[tuple[str, str], str]:
    """Return (library, compiler) → the strategy that ranked it."""
    rows = workspace.query("SELECT library, compiler, strategy FROM rankings")
    return {(library, compiler): strategy for library, compiler, strategy in rows}


def going_on(workspace: Workspace) -> bool:
    """Whether the newest run has not ended: it is going on, or was interrupted."""
    return workspace.query("SELECT finished FROM runs ORDER BY id DESC LIMIT 1") == [(None,)]


def newest(workspace: Workspace) -> dict[str, Any]:
    """Return what the newest run was asked for (`options`, `workers`), empty where nothing was run."""
    rows = workspace.query("SELECT document FROM runs ORDER BY id DESC LIMIT 1")
    document: dict[str, Any] = msgspec.json.decode(rows[0][0]) if rows else {}
    return document


def environments(workspace: Workspace, run: int) -> dict[str, str]:
    """Return frontend → the environment that a run ran it in."""
    return dict(workspace.query("SELECT frontend, environment FROM run_frontends WHERE run = ?", (run,)))


def newest_frontends(workspace: Workspace) -> set[tuple[str, str]]:
    """Return the (frontend, environment) of the newest run."""
    rows = workspace.query("SELECT frontend, environment FROM run_frontends WHERE run = (SELECT MAX(id) FROM runs)")
    return {(frontend, environment) for frontend, environment in rows}
