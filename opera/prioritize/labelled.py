"""Measuring strategies on a labelled corpus: instances, the compiler's own tests, and which instance reveals which bug.

Instances and equipped tests are JSON Lines; a line is an object with `id` (integer or string), `op`, `params` (name → JSON
value), `input_shapes`, `input_dtypes`, `output_shapes` and `output_dtypes`. Labels are one JSON object, bug → list of ids.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from opera.errors import CorpusError
from opera.prioritize.subspaces import Row

Id = int | str
FORMS = "docs/benchmark.md shows the files, `opera benchmark --help` an example"
LIBRARY = "onnx"
"""Labelled corpora name ONNX operators; their attributes' defaults are those of the installed onnx."""


class Record(msgspec.Struct, frozen=True):
    """One line of an instances file; other fields are ignored."""

    id: Id
    op: str
    params: dict[str, Any] = {}
    input_shapes: list[list[int | None] | None] = []
    input_dtypes: list[str | None] = []
    output_shapes: list[list[int | None] | None] = []
    output_dtypes: list[str | None] = []

    def row(self) -> Row:
        """Return what strategies look at."""
        return Row(self.op, self.params, self.input_shapes, self.input_dtypes, self.output_shapes, self.output_dtypes)


class Labelled(msgspec.Struct, frozen=True):
    """A labelled corpus: rows in corpus order, equipped rows, bug → positions of rows that reveal it, seconds of each row."""

    rows: list[Row]
    equipped: list[Row]
    bugs: dict[str, list[int]]
    costs: list[float] = []


def load(instances: Path, equipped: Path | None, labels: Path, costs: Path | None = None) -> Labelled:
    """Read a labelled corpus. Raises CorpusError naming file and line."""
    records = _records(instances)
    if not records:
        raise CorpusError(f"{instances}: no instances", fix=f"give a file with one JSON object a line; {FORMS}")
    positions: dict[Id, int] = {}
    for position, (line, record) in enumerate(records):
        if positions.setdefault(record.id, position) != position:
            earlier = records[positions[record.id]][0]
            raise CorpusError(
                f"{instances}:{line}: id {record.id!r} was given before, in line {earlier}",
                fix=f"give each instance an id of its own; {FORMS}",
            )
    own = [record.row() for _, record in _records(equipped)] if equipped else []
    rows = [record.row() for _, record in records]
    return Labelled(rows, own, _bugs(labels, positions), _costs(costs, positions) if costs else [])


def _records(file: Path) -> list[tuple[int, Record]]:
    decoder = msgspec.json.Decoder(Record)
    out = []
    for number, line in enumerate(_read(file).splitlines(), 1):
        if line.strip():
            try:
                out.append((number, decoder.decode(line)))
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise CorpusError(f"{file}:{number}: {error}", fix=f"{FORMS}") from None
    return out


def _bugs(file: Path, positions: dict[Id, int]) -> dict[str, list[int]]:
    data = _read(file)
    labels: dict[str, list[Id]] = _object(
        file, data, dict[str, list[Id]], "labels are one JSON object: bug → list of ids"
    )
    if not labels:
        raise CorpusError(f"{file}: no bugs", fix=f"labels are one JSON object: bug → list of instance ids; {FORMS}")
    for bug, ids in labels.items():
        if not ids:
            raise CorpusError(
                f"{file}:{_line(data, bug)}: bug {bug!r} has no tests",
                fix=f"remove it, or name the instances that reveal it; {FORMS}",
            )
        for unknown in (x for x in ids if x not in positions):
            raise CorpusError(
                f"{file}:{_line(data, bug)}: bug {bug!r} names id {unknown!r}, which is not among the instances",
                cause="labels of another corpus, or ids as text where the instances have numbers",
                fix=f"give the --instances that the labels were made of; {FORMS}",
            )
    return {bug: [positions[x] for x in ids] for bug, ids in labels.items()}


def _costs(file: Path, positions: dict[Id, int]) -> list[float]:
    told = "costs are one JSON object: id → seconds, of every instance"
    found: dict[str, float] = _object(file, _read(file), dict[str, float], told)
    costs = [found.get(str(name), -1.0) for name in positions]
    missing = next((name for name, cost in zip(positions, costs, strict=True) if not cost >= 0), None)
    if missing is not None:
        raise CorpusError(f"{file}: no seconds of instance {missing!r}", fix=f"{told}; {FORMS}")
    return costs


def _object(file: Path, data: bytes, kind: Any, told: str) -> Any:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CorpusError(f"{file}: {error}", fix=f"{told}; {FORMS}") from None


def _line(data: bytes, key: str) -> int:
    """Return the line in which a key first stands."""
    at = data.find(msgspec.json.encode(key))
    return data.count(b"\n", 0, max(at, 0)) + 1


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise CorpusError(f"{file}: {error.strerror or error}", fix="check the path") from None
