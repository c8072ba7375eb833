"""What DeepREL publishes or leaves behind: recorded invocations (BSON), candidate lists, and the scripts of its runs.

A record is a mapping, as in its database: `parameter:I` or a parameter's name → value; `input_signature`, what the object is
called with where the API is a class; a tensor is `{"shape", "dtype"}`. Scripts are turned into records by reading them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from opera.errors import CorpusError, SourceError
from opera.sources.deeprel import bson, scripts

MAX_SIZE = 64 << 20
"""Bytes of one file."""
MAX_FILES = 20_000
SPECIAL = ("signature", "similarity", "argVS", "api_args", "api_def")
"""Collections that hold no records."""
OUTPUTS = ("neq", "fail", "success", "err", "bug")
"""Folders of scripts, by what they showed."""
LIBRARIES = {"torch": "torch", "tf": "keras"}
"""How the name of an API begins → the library that opera runs it on."""


class Records(msgspec.Struct, frozen=True):
    """The recorded invocations of one API, as a record each; `file` and `names` say where they come from."""

    library: str
    title: str
    file: str
    names: list[str]
    records: list[dict[str, Any]]


class Unread(msgspec.Struct, frozen=True):
    """A file that is not used, and why."""

    file: str
    reason: str


class Published(msgspec.Struct):
    """What a folder holds: candidates are library → API → its candidates, best first."""

    records: list[Records] = []
    candidates: dict[str, dict[str, list[str]]] = {}
    unread: list[Unread] = []


def read_folder(folder: Path) -> Published:
    """Read what a folder, or the folders below it, hold of DeepREL. Raises SourceError where that is nothing."""
    if not folder.is_dir():
        raise SourceError(
            f"{folder} is neither a library that opera infers relations of nor a folder of DeepREL's files",
            cause="a spelling mistake",
            fix="name torch or keras, or the folder of DeepREL's dump, candidate lists or output",
        )
    found = Published()
    paths = [path for path in sorted(folder.rglob("*")) if path.suffix in READERS and path.is_file()]
    found.unread += [Unread(str(path), f"more than {MAX_FILES} files") for path in paths[MAX_FILES:]]
    for path in paths[:MAX_FILES]:
        try:
            if path.stat().st_size > MAX_SIZE:
                raise CorpusError(f"larger than {MAX_SIZE >> 20} MiB")
            READERS[path.suffix](found, path, path.relative_to(folder).as_posix())
        except CorpusError as error:
            found.unread.append(Unread(path.relative_to(folder).as_posix(), error.what))
        except OSError as error:
            found.unread.append(Unread(path.relative_to(folder).as_posix(), f"cannot be read: {error.strerror}"))
    if not found.records and not found.candidates:
        first = f"; the first of {len(found.unread)} files: {found.unread[0].reason}" if found.unread else ""
        raise SourceError(
            f"{folder} holds nothing of DeepREL's",
            cause=f"no records (API.bson), candidate lists (API.json) or scripts (A+B+1/success/N.py){first}",
            fix="name a checkout of DeepREL, or its dump/torch, torch-candidate or output folder",
        )
    return found


def library_of(title: str) -> str:
    """Return the library of an API; empty where opera has none for it. Of TensorFlow, Keras alone is run."""
    if title.startswith("tf.") and not title.startswith("tf.keras."):
        return ""
    return LIBRARIES.get(title.partition(".")[0], "")


def _read_records(found: Published, path: Path, file: str) -> None:
    title = path.stem
    if title in SPECIAL:
        return
    library = library_of(title)
    if not library:
        found.unread.append(Unread(file, "an API of TensorFlow that Keras does not have"))
        return
    records = [
        {key: value for key, value in document.items() if key not in ("_id", "output_signature")}
        for document in bson.documents(path.read_bytes())
    ]
    names = [f"record {place}" for place in range(len(records))]
    if records:
        found.records.append(Records(library, title, file, names, records))


def _read_candidates(found: Published, path: Path, file: str) -> None:
    """Read lines of `["API", score]`; other JSON files are none of ours."""
    library = library_of(path.stem)
    if not library or path.stem.endswith(".metadata"):
        return
    names = []
    for line in path.read_bytes().splitlines():
        try:
            name, _ = msgspec.json.decode(line, type=tuple[str, float])
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise CorpusError(f'a line is no ["API", score]: {str(error)[:100]}') from None
        if name != path.stem and len(name) <= 300:
            names.append(name)
    found.candidates.setdefault(library, {})[path.stem] = names


def _read_script(found: Published, path: Path, file: str) -> None:
    if path.parent.name not in OUTPUTS:
        return
    for title, record in scripts.records(path.read_bytes()):
        library = library_of(title)
        if library:
            found.records.append(Records(library, title, file, [path.stem], [record]))


READERS = {".bson": _read_records, ".json": _read_candidates, ".py": _read_script}


def unread_lines(unread: list[Unread]) -> Iterator[str]:
    """Yield why files are not used, each reason with a count and an example."""
    reasons = Counter(x.reason for x in unread)
    first = {x.reason: x.file for x in reversed(unread)}
    for reason, count in reasons.most_common():
        yield f"{count}: {reason} ({first[reason]})"
