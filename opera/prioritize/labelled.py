"""Measuring strategies on a labelled corpus: instances, the compiler's own tests, and which instance reveals which bug.

Instances and equipped tests are JSON Lines; a line is an object with `id` (integer or string), `op`, `params` (name → JSON
value), `input_shapes`, `input_dtypes`, `output_shapes` and `output_dtypes`. Labels are one JSON object, bug → list of ids.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from opera import libraries
from opera.errors import CorpusError, UsageError
from opera.prioritize import rank, registered
from opera.prioritize.metrics import all_metrics, first_ranks
from opera.prioritize.subspaces import Defaults, Row

Id = int | str
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
    """A labelled corpus: rows in corpus order, equipped rows, and bug → positions of the rows that reveal it."""

    rows: list[Row]
    equipped: list[Row]
    bugs: dict[str, list[int]]


class Metric(msgspec.Struct, frozen=True):
    """One metric of one strategy.

    Attributes:
        mean, sd: Over the tie-breaking seeds (sd is 0 for one seed).
        interval: Bounds of the middle 95 % of the seeds (2.5th and 97.5th percentile, interpolated).
        corpus_order: With ties broken by corpus order; for `random` it is its default seed.
    """

    mean: float
    sd: float
    interval: tuple[float, float]
    corpus_order: float


def load(instances: Path, equipped: Path | None, labels: Path) -> Labelled:
    """Read a labelled corpus. Raises CorpusError naming file and line."""
    records = _records(instances)
    if not records:
        raise CorpusError(f"{instances}: no instances", fix="give a file with one JSON object a line")
    positions: dict[Id, int] = {}
    for position, (line, record) in enumerate(records):
        if positions.setdefault(record.id, position) != position:
            earlier = records[positions[record.id]][0]
            raise CorpusError(f"{instances}:{line}: id {record.id!r} was given before, in line {earlier}")
    own = [record.row() for _, record in _records(equipped)] if equipped else []
    return Labelled([record.row() for _, record in records], own, _bugs(labels, positions))


def evaluate(
    corpus: Labelled, strategies: Iterable[str], defaults: Defaults, seeds: int = 30
) -> dict[str, dict[str, Metric]]:
    """Return strategy → metric (`apfd`, `rauc25`, ...) → figures over seeds 0 to `seeds` − 1. Raises UsageError."""
    return {name: _measure(corpus, name, defaults, seeds) for name in strategies}


def _measure(corpus: Labelled, strategy: str, defaults: Defaults, seeds: int) -> dict[str, Metric]:
    def measure(seed: int | None) -> dict[str, float]:
        ranking = rank(strategy, corpus.rows, corpus.equipped, defaults, seed)
        return all_metrics(first_ranks(ranking, corpus.bugs), len(corpus.rows))

    corpus_order = measure(None)
    runs = [measure(seed) for seed in range(max(seeds, 1))]
    return {name: _metric([run[name] for run in runs], figure) for name, figure in corpus_order.items()}


def _metric(figures: Sequence[float], corpus_order: float) -> Metric:
    if len(figures) == 1:
        return Metric(figures[0], 0.0, (figures[0], figures[0]), corpus_order)
    cuts = statistics.quantiles(figures, n=40, method="inclusive")
    return Metric(statistics.fmean(figures), statistics.stdev(figures), (cuts[0], cuts[-1]), corpus_order)


def _records(file: Path) -> list[tuple[int, Record]]:
    decoder = msgspec.json.Decoder(Record)
    out = []
    for number, line in enumerate(_read(file).splitlines(), 1):
        if line.strip():
            try:
                out.append((number, decoder.decode(line)))
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise CorpusError(
                    f"{file}:{number}: {error}", fix="see docs/corpus.md for the fields of a line"
                ) from None
    return out


def _bugs(file: Path, positions: dict[Id, int]) -> dict[str, list[int]]:
    try:
        labels = msgspec.json.decode(_read(file), type=dict[str, list[Id]])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CorpusError(f"{file}: {error}", fix="labels are one JSON object: bug → list of instance ids") from None
    if not labels:
        raise CorpusError(f"{file}: no bugs", fix="labels are one JSON object: bug → list of instance ids")
    for bug, ids in labels.items():
        if not ids:
            raise CorpusError(
                f"{file}: bug {bug!r} has no tests", fix="remove it, or name the instances that reveal it"
            )
        for unknown in (x for x in ids if x not in positions):
            raise CorpusError(f"{file}: bug {bug!r} names id {unknown!r}, which is not among the instances")
    return {bug: [positions[x] for x in ids] for bug, ids in labels.items()}


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise CorpusError(f"{file}: {error.strerror or error}", fix="check the path") from None


def show(
    instances: Path, equipped: Path | None, labels: Path, strategies: list[str], *, seeds: int, format: str
) -> None:
    """Score strategies on a labelled corpus of ONNX instances, and print a table or one JSON object."""
    if format not in ("terminal", "json"):
        raise UsageError(f"there is no format called {format!r}", fix="choose terminal or json")
    corpus = load(instances, equipped, labels)
    defaults = libraries.get(LIBRARY).equipped_defaults({row.operator for row in (*corpus.rows, *corpus.equipped)})
    found = evaluate(corpus, strategies or list(registered()), defaults, seeds)
    if format == "json":
        print(msgspec.json.format(msgspec.json.encode(found), indent=1).decode())
        return
    metrics = list(next(iter(found.values())))
    print(f"{len(corpus.rows)} instances, {len(corpus.bugs)} bugs, {seeds} orders of ties (and corpus order)")
    print(" ".join([f"{'strategy':<14}", *(f"{name:>28}" for name in metrics)]))
    for name, figures in found.items():
        cells = (
            f"{x.mean:.3f} [{x.interval[0]:.3f}, {x.interval[1]:.3f}] ({x.corpus_order:.3f})" for x in figures.values()
        )
        print(" ".join([f"{name:<14}", *(f"{cell:>28}" for cell in cells)]))
