"""Opening the workspace's SQLite file: its lock, its schema, and what SQLite's errors mean to a user."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from opera.errors import WorkspaceError
from opera.store.schema import APPLICATION_ID, MIGRATIONS, SCHEMA, SCHEMA_VERSION, VIEWS

CACHE = 256 << 10
"""KiB of pages that a writer holds at most. Ids come in no order: of a million instances, the indexes are some 200 MB, and with
fewer pages each row that is added in one transaction would be written several times."""


def connect(path: Path, *, write: bool) -> sqlite3.Connection:
    """Open the file; for writing it is made, or brought up to date. Raises WorkspaceError, and then leaves it as it is."""
    with explained(path.parent):
        connection = sqlite3.connect(path, isolation_level=None, timeout=10) if write else _read_only(path)
    try:
        with explained(path.parent):
            version = _version(connection, path)
            if not version and not write:
                raise WorkspaceError(
                    f"the workspace {path.parent} is empty",
                    cause="the first command that wrote it was interrupted, or has just begun",
                    fix="run `opera extract onnx` first, or give --workspace",
                )
            if write:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = NORMAL")
                connection.execute("PRAGMA foreign_keys = ON")
                connection.execute(f"PRAGMA cache_size = -{CACHE}")
            if write and not version:
                _make(connection)
            elif 0 < version < SCHEMA_VERSION:
                _update(connection, version, write=write)
    except BaseException:
        connection.close()
        raise
    return connection


def _version(connection: sqlite3.Connection, path: Path) -> int:
    """Return the schema's version, 0 where nothing is there yet. Raises WorkspaceError for what opera cannot use."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    if not connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
        return 0
    if application != APPLICATION_ID or version < 1:
        raise WorkspaceError(
            f"{path} is no opera workspace", cause="another program's database", fix="give --workspace another folder"
        )
    if version > SCHEMA_VERSION:
        raise WorkspaceError(
            f"the workspace {path.parent} has schema {version}; this opera knows {SCHEMA_VERSION}",
            cause="a newer opera wrote it",
            fix="upgrade opera, or give --workspace another folder",
        )
    return version


def _make(connection: sqlite3.Connection) -> None:
    connection.executescript(
        f"BEGIN; {SCHEMA} PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;"
    )


def _update(connection: sqlite3.Connection, version: int, *, write: bool) -> None:
    """Bring an older workspace up to date, wholly or not at all; for who only reads, make it look so."""
    texts = MIGRATIONS if write else VIEWS
    steps = "".join(texts[step] for step in range(version, SCHEMA_VERSION))
    if write:
        connection.executescript(f"BEGIN IMMEDIATE; {steps} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;")
    else:
        connection.execute("PRAGMA temp_store = MEMORY")  # the file system may be read-only
        connection.executescript(steps)


def _read_only(path: Path) -> sqlite3.Connection:
    """WAL needs a writable folder even to read; on a read-only one the file is taken as it stands."""
    uri = path.resolve().as_uri()
    if os.access(path.parent, os.W_OK):
        return sqlite3.connect(f"{uri}?mode=ro", uri=True, isolation_level=None, timeout=10)
    return sqlite3.connect(f"{uri}?immutable=1", uri=True, isolation_level=None)


def lock(root: Path) -> int:
    """Take the workspace for this process; the lock goes with the process, however it ends."""
    handle = os.open(root / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.read(handle, 20).decode(errors="replace").strip()
        os.close(handle)
        raise WorkspaceError(
            f"the workspace {root} is in use by another opera process (pid {holder or 'unknown'})",
            cause="an extract, prioritize or run that has not ended",
            fix="wait for it, or give --workspace another folder; `opera report` works meanwhile",
        ) from None
    os.ftruncate(handle, 0)
    os.write(handle, f"{os.getpid()}\n".encode())
    return handle


@contextmanager
def explained(root: Path) -> Iterator[None]:
    """Turn what SQLite says into an error that a user can act on."""
    try:
        yield
    except sqlite3.Error as error:
        text = str(error)
        if "full" in text or "disk I/O" in text:
            cause, fix = "the disk is full", "free some room and run the same command again: nothing stored was lost"
        elif "malformed" in text or "not a database" in text:
            cause = "the file was truncated or overwritten"
            fix = "restore it from a copy, or give --workspace another folder and extract again"
        elif "readonly" in text or "unable to open" in text:
            cause, fix = "a read-only folder or missing rights", "give --workspace a folder that you may write"
        elif "locked" in text:
            cause, fix = "another process holds it", "wait for it, then run the same command again"
        else:
            cause, fix = "a file that opera did not write, or an error of opera", "see docs/errors.md"
        raise WorkspaceError(f"the workspace {root} failed: {text}", cause=cause, fix=fix) from None
