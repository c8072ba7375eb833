"""Which interpreter runs which compiler: the one that runs opera, one that was named, or an environment that a workspace keeps.

A compiler that does not go with the others into one environment has one of its own: what a worker needs beside the compiler
is numpy and msgspec. Environments that `opera env create` made are noted in the workspace's `environments.toml`, a table of
compiler → interpreter, which may be edited; it holds for the workspaces in folders below, too, as those of `opera check`.
"""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Iterable
from pathlib import Path

import tomlkit

from opera import compilers
from opera.errors import UsageError, WorkspaceError

FILE = "environments.toml"
"""The file of a workspace that says with which interpreter a compiler is run."""


def chosen(words: Iterable[str], python: str, root: Path) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the compilers that words name, and compiler → interpreter of those that have one of their own.

    A word is a compiler, or `compiler=interpreter`. An interpreter that `root` keeps for a compiler counts where none is named
    for it; `python`, which is named for all that have none, comes before that, too. Raises UsageError for a compiler or an
    interpreter that there is not.
    """
    named: dict[str, str] = {}
    for word in words:
        name, _, path = word.partition("=")
        compilers.get(name)
        named[name] = interpreter(path) if path else named.get(name, "")
    own = {name: path for name, path in named.items() if path}
    kept = {} if python else {k: v for k, v in remembered(root).items() if k not in own and (not named or k in named)}
    return tuple(named), own | {name: interpreter(path, FILE) for name, path in kept.items()}


def interpreter(path: str, said: str = "") -> str:
    """Return an interpreter's absolute path. Raises UsageError where there is none; `said` is the file that names it."""
    found = shutil.which(path) or path
    if not Path(found).is_file():
        raise UsageError(
            f"there is no interpreter {path}" + (f", which {said} names" if said else ""),
            cause="its environment was removed" if said else "a wrong path",
            fix="`opera env create COMPILER` makes it anew, `opera env remove COMPILER` forgets it"
            if said
            else "name the python of an environment that holds opera and a compiler, as ../old/bin/python",
        )
    return str(Path(found).absolute())  # resolving links would lose the virtual environment


def remembered(root: Path) -> dict[str, str]:
    """Return compiler → interpreter, as the workspace in `root`, or the nearest one above it that has such a file, keeps them.

    Raises WorkspaceError for a file that is no such table.
    """
    folder = Path(root).absolute()
    file = next((x / FILE for x in (folder, *folder.parents) if (x / FILE).is_file()), None)
    return {} if file is None else _read(file)


def remember(root: Path, compiler: str, path: str) -> None:
    """Note in the workspace's file that a compiler is run with an interpreter."""
    _write(root, {**_read(root / FILE), compiler: path})


def forget(root: Path, folder: Path) -> list[str]:
    """Take the interpreters inside a folder out of the workspace's file; return the compilers that it named with them."""
    held = _read(root / FILE)
    gone = [name for name, path in held.items() if Path(path).is_relative_to(folder)]
    if gone:
        _write(root, {name: path for name, path in held.items() if name not in gone})
    return gone


def _read(file: Path) -> dict[str, str]:
    if not file.is_file():
        return {}
    try:
        found = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise WorkspaceError(f"{file} cannot be read: {error}", fix="mend the file, or delete it") from None
    if not all(isinstance(path, str) for path in found.values()):
        raise WorkspaceError(f"{file} is no table of compilers and interpreters", fix="mend the file, or delete it")
    return found


def _write(root: Path, table: dict[str, str]) -> None:
    try:
        root.mkdir(parents=True, exist_ok=True)
        (root / FILE).write_text(tomlkit.dumps(table), encoding="utf-8")
    except OSError as error:
        raise WorkspaceError(
            f"{root / FILE} cannot be written: {error.strerror}", fix="give --workspace a folder that you may write"
        ) from None
