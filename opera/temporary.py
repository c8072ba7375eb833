"""Temporary folders and files that do not outlive their process for long: what a killed one left, the next one removes."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path

NAME = re.compile(r"opera-[a-z]+-\d+-\w+")
"""opera, the purpose, the pid of the maker (for whoever looks), and random digits."""


@contextmanager
def folder(purpose: str) -> Iterator[Path]:
    """Make an empty temporary folder, which is removed at the end of the `with`; sweep those of processes that were killed.

    The folder is locked as long as its process lives: a pid in its name would be another's one day, or in another container.
    """
    sweep()
    lock = None
    path = _name(purpose)
    try:  # a Ctrl-C at any moment from here on leaves nothing: the name is known before the folder is there
        while (lock := _made(path)) is None:
            path = _name(purpose)
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        if lock is not None:
            os.close(lock)


@contextmanager
def beside(path: Path) -> Iterator[Path]:
    """Give a file to write, which takes the place of `path` at the end of the `with`, whole or not at all.

    It is `path` with a dot before it and the pid behind; those of processes that are gone are removed.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}")
    for old in path.parent.glob(f".{escape(path.name)}.*"):
        pid = old.suffix[1:]
        if pid.isdecimal() and old != part and not Path("/proc", pid).exists():
            old.unlink(missing_ok=True)
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def sweep() -> list[Path]:
    """Remove the folders whose makers are gone, and return them."""
    removed = []
    for path in Path(tempfile.gettempdir()).glob("opera-*"):
        if NAME.fullmatch(path.name):
            with suppress(OSError):  # another's, in use, or gone meanwhile
                lock = _lock(path)
                shutil.rmtree(path, ignore_errors=True)
                os.close(lock)
                removed.append(path)
    return removed


def _name(purpose: str) -> Path:
    return Path(tempfile.gettempdir(), f"opera-{purpose}-{os.getpid()}-{secrets.token_hex(8)}")


def _made(path: Path) -> int | None:
    """Make a folder and lock it; None where a sweeper came in between."""
    path.mkdir(mode=0o700)
    try:
        lock = _lock(path)
    except OSError:
        if path.is_dir():
            raise
        return None
    if path.is_dir():
        return lock
    os.close(lock)
    return None


def _lock(path: Path) -> int:
    """Return a descriptor that holds the lock of a folder; OSError where it is locked, gone, or another user's."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(descriptor).st_uid != os.geteuid():
            raise PermissionError(f"{path} belongs to another user")
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
