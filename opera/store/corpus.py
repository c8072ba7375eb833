"""Corpus files: operator instances that others can be given (docs/corpus.md).

A corpus file is JSON lines, gzip-compressed where its name ends in `.gz`. The first line is a header, every other line one
instance with where it was seen. It carries instances alone: models and reference outputs are made anew by whoever imports
it. Nothing in it is evaluated or unpickled; operators are looked up in what the library itself declares; a file is taken
whole or not at all.
"""

from __future__ import annotations

import gzip
import math
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import IO, Any, TypeAlias, cast

import msgspec

from opera import __version__, errors, temporary
from opera.errors import CorpusError
from opera.programs import values
from opera.programs.program import Captured, Program, Provenance, parse
from opera.programs.values import Value
from opera.store import relations
from opera.store.rows import unpack
from opera.store.workspace import EQUIPPED, IN_CORPUS, Workspace

FORMAT, VERSION = "opera-corpus", 1
MAX_LINE = 64 << 20
"""A line longer than this many bytes is refused."""
MAX_PROVENANCES = 10_000
Declares: TypeAlias = Callable[[str, str], bool]
"""Tells whether the library declares the operator of an instance; raises CorpusError where there is no such library."""


class Line(msgspec.Struct, frozen=True):
    """One line of a corpus file: an instance, everywhere it was seen, and the compilers whose own suite covers it."""

    instance: dict[str, Any]
    provenances: list[Provenance] = []
    equipped: dict[str, list[Provenance]] = {}


def write(workspace: Workspace, path: Path, library: str = "") -> int:
    """Export the corpus of a workspace, and what a compiler's own suite covers; return how many instances."""
    seen: dict[str, list[Provenance]] = {}
    for name, *at in workspace.stream("SELECT instance, source, file, test FROM provenances ORDER BY rowid"):
        seen.setdefault(name, []).append(Provenance(*at))
    covered: dict[str, dict[str, list[Provenance]]] = {}
    for compiler, name, *at in workspace.stream("SELECT * FROM equipped ORDER BY rowid"):
        covered.setdefault(name, {}).setdefault(compiler, []).append(Provenance(*at))
    rows = cast(
        Generator[Any],
        workspace.stream(
            f"SELECT id, document FROM instances i WHERE ? IN ('', library) AND ({IN_CORPUS} OR {EQUIPPED}) ORDER BY seq",
            (library,),
        ),
    )
    # What cannot be written is not read to its end, and the database is closed before it is collected.
    with closing(rows):
        lines = (
            Line(msgspec.json.decode(unpack(document)), seen.get(name, []), covered.get(name, {}))
            for name, document in rows
        )
        return _write(path, lines)


def read_into(workspace: Workspace, path: Path, declares: Declares) -> tuple[int, int]:
    """Import a corpus file; return (instances in it, new ones). Raises CorpusError and stores nothing if any line is bad."""
    total = new = 0
    with workspace.transaction():  # a bad line undoes those before it; a file may hold more than memory does
        for line, instance, canonical in _read(path, declares):
            total += 1
            new += relations.insert(workspace, [Captured(instance, at) for at in line.provenances], canonical)
            for compiler, seen in line.equipped.items():
                new += workspace.insert((Captured(instance, at) for at in seen), equipped=compiler, canonical=canonical)
    return total, new


def merge(output: Path, inputs: list[Path], declares: Declares) -> int:
    """Write the union of corpus files, provenances joined; return how many instances it holds."""
    with temporary.folder("merge") as folder, Workspace.open(folder, write=True) as union:
        for path in inputs:
            read_into(union, path, declares)
        return write(union, output)


def _write(path: Path, lines: Iterator[Line]) -> int:
    """Write to a temporary file beside `path`, so that an interrupted export leaves no half of a file."""
    opened: Any = gzip.open if path.suffix == ".gz" else open
    try:
        with temporary.beside(path) as part, opened(part, "wb") as file:
            file.write(msgspec.json.encode({"format": FORMAT, "version": VERSION, "opera": __version__}) + b"\n")
            count = 0
            for line in lines:
                file.write(msgspec.json.encode(line, order="sorted") + b"\n")
                count += 1
    except OSError as error:
        raise errors.unwritable(path, error) from None
    return count


def _read(path: Path, declares: Declares) -> Iterator[tuple[Line, Program, bytes]]:
    opened: Any = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rb") as file:
            yield from _lines(path, file, declares)
    except (OSError, EOFError, zlib.error) as error:
        raise CorpusError(
            f"{path} cannot be read: {error}", cause="no such file, or a damaged one", fix="check the path"
        ) from None


def _lines(path: Path, file: IO[bytes], declares: Declares) -> Iterator[tuple[Line, Program, bytes]]:
    """Yield each line with its instance and the canonical form of that."""
    header = _json(path, 1, file.readline(MAX_LINE))
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise CorpusError(f"{path} is no corpus file", fix="`opera corpus export FILE` writes one; see docs/corpus.md")
    if header.get("version") != VERSION:
        raise CorpusError(
            f"{path} has corpus version {str(header.get('version'))[:20]}; this opera reads {VERSION}",
            cause="a newer opera wrote it",
            fix="upgrade opera",
        )
    known: dict[str, bool] = {}
    number = 1
    while data := file.readline(MAX_LINE):
        number += 1
        if len(data) == MAX_LINE:
            raise CorpusError(f"{path}:{number}: the line is longer than {MAX_LINE >> 20} MiB")
        try:
            line = msgspec.convert(_json(path, number, data), Line)
            instance = parse(line.instance)
            canonical = instance.canonical()
            _check(instance, canonical, line, known, declares)
        except (CorpusError, msgspec.ValidationError, RecursionError) as error:
            what = error.what if isinstance(error, CorpusError) else str(error)
            raise CorpusError(
                f"{path}:{number}: {what}",
                cause="a damaged file, or one that was not made by `opera corpus export`",
                fix="nothing was imported; correct or remove that line",
            ) from None
        yield line, instance, canonical


def _json(path: Path, number: int, data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CorpusError(f"{path}:{number}: no JSON: {error}") from None


def _check(program: Program, canonical: bytes, line: Line, known: dict[str, bool], declares: Declares) -> None:
    """Refuse what opera itself would never have written. `known` caches operators, keyed by library and name."""
    if canonical != msgspec.json.encode(line.instance, order="sorted"):
        raise CorpusError("the instance is not in its canonical form")
    for operator in program.operators:
        key = f"{program.library} {operator}"
        if key not in known:
            known[key] = declares(program.library, operator)
        if not known[key]:
            raise CorpusError(f"{program.library} declares no operator {operator[:100]!r}")
    held = [
        *(value for call in program.instances() for value in call.params.values()),
        *(x.value for x in program.inputs),
    ]
    for kind, limit in ((values.Tensor, values.MAX_ELEMENTS), (values.RandomTensor, values.MAX_DESCRIBED)):
        elements = sum(_elements(value, kind) for value in held)
        if elements > limit:
            raise CorpusError(f"the tensors of the instance declare {elements} elements, more than {limit}")
    seen = [*line.provenances, *(at for found in line.equipped.values() for at in found)]
    if not seen or len(seen) > MAX_PROVENANCES:
        raise CorpusError(f"the instance has {len(seen)} provenances; 1 to {MAX_PROVENANCES} are allowed")
    for text in (*line.equipped, *(text for at in seen for text in (at.source, at.file, at.test))):
        if len(text) > 1000 or not text.isprintable():
            raise CorpusError("a provenance is longer than 1000 characters or holds control characters")


def _elements(value: Value, kind: type) -> int:
    """Count the elements of all tensors of one class, Tensor or RandomTensor."""
    match value:
        case values.Tensor() | values.RandomTensor():
            return math.prod(value.shape) if isinstance(value, kind) else 0
        case values.Sequence():
            return sum(_elements(item, kind) for item in value.items)
        case values.Optional():
            return _elements(value.value, kind)
        case list() | tuple():
            return sum(_elements(item, kind) for item in value)
        case dict():
            return sum(_elements(item, kind) for item in value.values())
    return 0
