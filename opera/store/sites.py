"""Which lines of the user's programs call an instance, as `opera record` saw them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from opera.store.workspace import Workspace


class Seen(NamedTuple):
    """A line of a program that calls an instance: absolute path, line from 1, its text, path of the module or layer."""

    instance: str
    file: str
    line: int
    module: str
    text: str


def replace(workspace: Workspace, extraction: str, seen: Iterable[Seen]) -> None:
    """Store what a program called where, in place of what it called when it was run before."""
    with workspace.transaction():
        workspace.write("DELETE FROM sites WHERE extraction = ?", (extraction,))
        for x in seen:
            workspace.write(
                "INSERT OR IGNORE INTO sites (instance, extraction, file, line, module, text)"
                " SELECT ?, ?, ?, ?, ?, ? WHERE EXISTS (SELECT 1 FROM instances WHERE id = ?)",
                (x.instance, extraction, x.file, x.line, x.module, x.text, x.instance),
            )


def of_instances(workspace: Workspace, instances: Iterable[str]) -> list[Seen]:
    """Return the lines that call these instances, by file and line, whichever program they are of."""
    found: set[Seen] = set()
    for name in dict.fromkeys(instances):
        rows = workspace.query("SELECT instance, file, line, module, text FROM sites WHERE instance = ?", (name,))
        found |= {Seen(*row) for row in rows}
    return sorted(found, key=lambda x: (x.file, x.line, x.module))


def of_extraction(workspace: Workspace, extraction: str) -> list[Seen]:
    """Return all that a program called, by file and line."""
    rows = workspace.query(
        "SELECT instance, file, line, module, text FROM sites WHERE extraction = ? ORDER BY file, line, module, instance",
        (extraction,),
    )
    return [Seen(*row) for row in rows]
