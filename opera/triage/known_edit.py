"""Changing the file of known issues: what people wrote stays where it belongs; a kill leaves the old file or the new one.

The file is text that people review. So an entry that is not changed stays as it is to the last blank, with the comment lines
right above it; entries are put in the order of their signatures.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import tomlkit

from opera import temporary
from opera.errors import UsageError
from opera.triage.known import HEAD, KEY, LISTS, Entry, parse, read

HEADING = """\
# Known issues of opera: findings that somebody has looked at. `opera findings`, reports and `opera run --fail-on-new` read it.
# Edit it by hand or with `opera known add`, which keeps the order of signatures; `opera known check` tells what is gone.
"""
WRITTEN = (
    "findings", "signature", "frontend", "operator", "message", "versions", "status", "fixed_in", "reason", "issue", "note",
    "tests",
)  # fmt: skip
"""Fields in the order in which new entries have them."""

COMMENTED = re.compile(r"""\s*["'](\w+)["']\s*,?\s*#\s*(.*)""")
"""A line of an array: a value, and what is said of it."""


class Block(msgspec.Struct, frozen=True):
    """An entry and its text: the comment lines right above its head, the head, and what follows up to the next one."""

    entry: Entry
    text: str


class Document:
    """The text of a file, entry by entry."""

    def __init__(self, heading: str, blocks: Iterable[Block]) -> None:
        self.heading = heading
        self.blocks = list(blocks)

    @classmethod
    def of(cls, text: str, name: str) -> Document:
        """Take a text apart. Raises UsageError where it is not understood (opera.triage.known), or cannot be taken apart."""
        entries = parse(text, name)
        lines = [f"{line}\n" for line in text.split("\n")]  # other ends of lines are no ends in TOML
        starts = [_with_comments(lines, at) for at, line in enumerate(lines) if HEAD.match(line.rstrip("\r\n"))]
        texts = ["".join(lines[start:end]) for start, end in pairwise([*starts, len(lines)])]
        if len(texts) != len(entries) or not all(_is(part, x) for part, x in zip(texts, entries, strict=True)):
            raise UsageError(
                f"{name} can be read, but not edited",
                cause=f"an entry is written inline, or a text of several lines holds a line [[{KEY}]]",
                fix=f"write each entry as a table that begins with the line [[{KEY}]]",
            )
        heading = "".join(lines[: starts[0]]) if starts else text
        return cls(heading, map(Block, entries, texts))

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The entries in the order of the text."""
        return tuple(x.entry for x in self.blocks)

    def add(self, entry: Entry, comment: str = "", names: Mapping[str, str] | None = None) -> None:
        """Add an entry, under a comment; `names` are comments on its tests."""
        said = _plain(comment)
        self.blocks.append(Block(entry, (f"# {said}\n" if said else "") + _table(entry, names or {})))

    def replace(self, place: int, entry: Entry, names: Mapping[str, str] | None = None) -> None:
        """Put another entry in the place of one: of its text, only the fields that differ change."""
        old = self.blocks[place]
        document = tomlkit.parse(old.text)
        table: Any = document[KEY]
        table = table[0]
        last = table.pop("tests", None)  # the longest field stays the last one
        for name in WRITTEN:
            value, before = getattr(entry, name), getattr(old.entry, name)
            if name == "tests" and value:
                table[name] = last if last is not None and value == before else _array(value, _comments(last, names))
            elif value == before:
                continue
            elif value in ((), ""):
                table.pop(name, None)
            else:
                table[name] = _array(value, {}) if name in LISTS else value
        self.blocks[place] = Block(entry, tomlkit.dumps(document))

    def remove(self, place: int) -> None:
        """Remove an entry with its comments."""
        del self.blocks[place]

    def text(self) -> str:
        """Return the text, entries in the order of their signatures."""
        blocks = sorted(self.blocks, key=lambda x: x.entry.order)
        parts = [self.heading, *(x.text for x in blocks)]
        text = "\n".join(part.strip("\r\n") + "\n" for part in parts if part.strip())
        if parse(text) != tuple(x.entry for x in blocks):
            raise AssertionError("an entry that was written is read as another one")  # before the file is touched
        return text


@contextmanager
def editing(path: Path, *, make: bool = False) -> Iterator[Document]:
    """Give the file to be changed, and write it at the end of the `with`; where that raises, it stays as it was.

    Others that edit the file wait. With `make`, a file that is not there is begun. Raises UsageError.
    """
    path = path.resolve()  # a link stays one
    try:
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise _unwritable(path, error) from None
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        before = HEADING if make and not path.exists() else _text(path)
        windows = "\r\n" in before
        document = Document.of(before.replace("\r\n", "\n"), str(path))
        yield document
        after = document.text()
        if after != before or not path.exists():
            _write(path, after.replace("\n", "\r\n") if windows else after)
    finally:
        os.close(folder)


def _text(path: Path) -> str:
    read(path)  # which says what is wrong with it
    return path.read_bytes().decode()


def _write(path: Path, text: str) -> None:
    try:
        with temporary.beside(path) as part:
            with part.open("wb") as file:
                file.write(text.encode())
                file.flush()
                os.fsync(file.fileno())
            if path.exists():
                shutil.copymode(path, part)
    except OSError as error:
        raise _unwritable(path, error) from None


def _unwritable(path: Path, error: OSError) -> UsageError:
    cause = "a folder that is not there or may not be written, or a full disk"
    fix = "mend that, or give another file by --known; what was there is as it was"
    return UsageError(f"{path} cannot be written: {error.strerror}", cause=cause, fix=fix)


def _with_comments(lines: Sequence[str], head: int) -> int:
    """Return where the comment lines begin that stand right above a head."""
    while head and lines[head - 1].lstrip().startswith("#"):
        head -= 1
    return head


def _is(text: str, entry: Entry) -> bool:
    """Whether a piece of a text is one entry by itself."""
    try:
        return parse(text) == (entry,)
    except UsageError:
        return False


def _plain(text: str) -> str:
    """Return a text on one line, without what may not stand in a comment."""
    return "".join(c for c in " ".join(text.split()) if c.isprintable())


def _comments(array: Any, names: Mapping[str, str] | None) -> dict[str, str]:
    """Return value → what is said of it in an array, a value a line, and what `names` say."""
    lines = (COMMENTED.match(line) for line in ("" if array is None else array.as_string()).split("\n"))
    return {found[1]: found[2] for found in lines if found} | dict(names or {})


def _table(entry: Entry, names: Mapping[str, str]) -> str:
    """Return the text of a new entry."""
    table = tomlkit.table()
    for name in WRITTEN:
        value = getattr(entry, name)
        if value not in ((), "") or name == "status":
            table[name] = _array(value, names if name == "tests" else {}) if name in LISTS else value
    array = tomlkit.aot()
    array.append(table)
    document = tomlkit.document()
    document[KEY] = array
    return tomlkit.dumps(document)


def _array(values: Sequence[str], comments: Mapping[str, str]) -> Any:
    """Return an array, of one line unless there is something to be said of what is in it."""
    array = tomlkit.array()
    if not any(comments.get(x) for x in values):
        array.extend(values)
        return array
    for value in values:
        array.add_line(value, comment=_plain(comments.get(value, "")) or None)
    array.add_line(indent="")
    return array
