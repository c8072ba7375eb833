"""Measuring strategies on a labelled corpus: instances, the compiler's own tests, and which instance reveals which bug.

Instances and equipped tests are JSON Lines; a line is an object with `id` (integer or string), `op`, `params` (name → JSON
value), `input_shapes`, `input_dtypes`, `output_shapes` and `output_dtypes`. Labels are one JSON object, bug → list of ids.
What opera itself publishes of a workspace (opera.benchmark.publish) names its `library` too, and then values are in opera's
encoding (docs/corpus.md); a program of several calls has `calls`. Files may be compressed by gzip (`.gz`).
"""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from opera.errors import CorpusError
from opera.prioritize.subspaces import Row
from opera.programs import values

Id = int | str
Shapes: TypeAlias = list[list[int | list[Any] | None] | None]
Dtypes: TypeAlias = list[str | list[Any] | None]
"""One a tensor; of a list of tensors, a list."""
FORMS = "docs/benchmark.md shows the files, `opera benchmark --help` an example"
LIBRARY = "onnx"
"""Operators of corpora that name no library are ONNX's; defaults of attributes are those of the installed onnx."""


class Called(msgspec.Struct, frozen=True, omit_defaults=True):
    """What strategies look at in one call."""

    op: str
    params: dict[str, Any] = {}
    input_shapes: Shapes = []
    input_dtypes: Dtypes = []
    output_shapes: Shapes = []
    output_dtypes: Dtypes = []


class Record(Called, frozen=True, omit_defaults=True, kw_only=True):
    """One line of an instances file; other fields are ignored."""

    id: Id
    library: str = ""
    calls: list[Called] = []

    def row(self) -> Row:
        """Return what strategies look at. Raises CorpusError for a value that is none of opera's, where a library is named."""
        if not self.library:
            return _row(self)
        calls = tuple(_own(call) for call in self.calls)
        return Row(self.op, {}, calls=calls) if calls else _own(self)


def record(name: str, library: str, row: Row) -> Record:
    """Return the line of a row: strategies rank what is read of it as they rank the row itself."""
    calls = [_called(call) for call in row.calls]
    return Record(id=name, library=library, calls=calls, **msgspec.structs.asdict(_called(row)))


def _called(row: Row) -> Called:
    params = {name: values.encode(value) for name, value in row.params.items()}
    shapes = [[None if x is None else list(x) for x in held] for held in (row.input_shapes, row.output_shapes)]
    return Called(row.operator, params, shapes[0], row.input_dtypes, shapes[1], row.output_dtypes)


def _row(call: Called) -> Row:
    return Row(call.op, call.params, call.input_shapes, call.input_dtypes, call.output_shapes, call.output_dtypes)


def _own(call: Called) -> Row:
    """As `_row`, of what opera wrote: values and shapes are what they were."""
    row = _row(call)
    return msgspec.structs.replace(
        row,
        params={name: values.decode(form) for name, form in row.params.items()},
        input_shapes=[_shape(x) for x in row.input_shapes],
        output_shapes=[_shape(x) for x in row.output_shapes],
    )


def _shape(form: Any) -> Any:
    """Return a shape, or the shapes of a list of tensors."""
    several = isinstance(form, list) and any(isinstance(x, list) for x in form)
    return form if form is None else [_shape(x) for x in form] if several else tuple(form)


class Labelled(msgspec.Struct, frozen=True):
    """A labelled corpus: rows in corpus order, equipped rows, bug → positions of rows that reveal it, seconds of each row."""

    rows: list[Row]
    equipped: list[Row]
    bugs: dict[str, list[int]]
    costs: list[float] = []
    library: str = LIBRARY


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
    tested = _records(equipped) if equipped else []
    named = [(file, *held) for file, of in ((instances, records), (equipped, tested)) for held in of]
    for file, line, record in named:
        if record.library != records[0][1].library:
            raise CorpusError(
                f"{file}:{line}: an operator of {record.library or LIBRARY!r} among those of"
                f" {records[0][1].library or LIBRARY!r}",
                fix="score one library at a time",
            )
    rows, own = _rows(instances, records), _rows(equipped, tested)
    bugs, seconds = _bugs(labels, positions), _costs(costs, positions) if costs else []
    return Labelled(rows, own, bugs, seconds, records[0][1].library or LIBRARY)


def _rows(file: Path | None, records: list[tuple[int, Record]]) -> list[Row]:
    rows = []
    for line, record in records:
        try:
            rows.append(record.row())
        except CorpusError as error:
            raise CorpusError(f"{file}:{line}: {error.what}", fix=FORMS) from None
    return rows


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
        data = file.read_bytes()
        return gzip.decompress(data) if file.suffix == ".gz" else data
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise CorpusError(f"{file}: {error}", cause="it is damaged, or not compressed by gzip", fix=FORMS) from None
    except OSError as error:
        raise CorpusError(f"{file}: {error.strerror or error}", fix="check the path") from None
