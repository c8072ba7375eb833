"""Tables as CSV and Parquet files, written as rows are read: a few thousand rows are held at a time."""

from __future__ import annotations

import csv
import datetime
import sys
from collections.abc import Iterable, Sequence
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TextIO

from opera import errors, temporary
from opera.data.query import Query
from opera.data.tables import (
    BYTES,
    CATEGORY,
    COUNT,
    NUMBER,
    TABLES,
    TEXT,
    TIME,
    VERDICT,
    Column,
    Values,
    batches,
    columns,
)
from opera.errors import NotInstalled, UsageError
from opera.store.workspace import Workspace

CSV, PARQUET = FORMATS = "csv", "parquet"
WRITTEN = ("verdicts", "findings", "instances", "rankings")
"""Tables that files can hold: those of which every cell is text, a number or a time."""


def check(format: str, table: str, output: Path | None) -> None:
    """Raise UsageError or NotInstalled for what cannot be written, before anything is read."""
    if table not in WRITTEN:
        raise UsageError(f"there is no table called {table!r}", fix=f"choose from {', '.join(WRITTEN)}")
    if format == PARQUET and output is None:
        raise UsageError("Parquet is binary, and goes to a file", fix=f"add --output {table}.parquet")
    if format == PARQUET and find_spec("pyarrow") is None:
        raise NotInstalled(
            "pyarrow is not installed",
            cause="only Parquet needs it, so that it is an extra",
            fix='pip install "opera[parquet]", or take --format csv',
        )


def show(root: Path, table: str, format: str, output: Path | None) -> None:
    """Write a table of a workspace, and say where."""
    check(format, table, output)
    with Workspace.open(root, write=False) as workspace:
        number = write(workspace, table, Query(), format, output)
    if output is not None:
        print(f"{number} rows of {table} written to {output}")


def write(workspace: Workspace, table: str, query: Query, format: str, output: Path | None) -> int:
    """Write the rows of a table that a query asks for to a file, whole or not at all, or CSV to standard output.

    Returns how many there are. Raises UsageError where the file cannot be written.
    """
    check(format, table, output)
    chosen = TABLES[table]
    wanted = columns(chosen, query)
    with workspace.snapshot(), closing(chosen.rows(workspace, query)) as rows:
        if output is None:
            return _csv(sys.stdout, wanted, rows)
        try:
            with temporary.beside(output) as part:
                if format == PARQUET:
                    return _parquet(part, wanted, rows)
                with part.open("w", encoding="utf-8", newline="") as stream:
                    return _csv(stream, wanted, rows)
        except OSError as error:
            raise errors.unwritable(output, error) from None


def _csv(stream: TextIO, columns: Sequence[Column], rows: Iterable[Values]) -> int:
    """Write a header and the rows, quoted where they must be; what is missing is empty."""
    writer, number = csv.writer(stream, lineterminator="\n"), 0
    writer.writerow(x.name for x in columns)
    times = [place for place, x in enumerate(columns) if x.kind == TIME]
    for row in rows:
        writer.writerow(_timed(row, times) if times else row)
        number += 1
    return number


def _timed(row: Values, times: Sequence[int]) -> list[Any]:
    cells = list(row)
    for place in times:
        if isinstance(cells[place], datetime.datetime):
            cells[place] = cells[place].isoformat()
    return cells


def _parquet(file: Path, columns: Sequence[Column], rows: Iterable[Values]) -> int:
    import pyarrow
    from pyarrow import parquet

    words = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    kinds = {
        TEXT: pyarrow.string(), CATEGORY: words, VERDICT: words, COUNT: pyarrow.int64(), NUMBER: pyarrow.float64(),
        TIME: pyarrow.timestamp("us", tz="UTC"), BYTES: pyarrow.binary(),
    }  # fmt: skip
    schema, number = pyarrow.schema([(x.name, kinds[x.kind]) for x in columns]), 0
    with parquet.ParquetWriter(file, schema, compression="zstd") as writer:
        for batch in batches(rows):
            cells = zip(*batch, strict=True)
            arrays = [pyarrow.array(held, type=kinds[x.kind]) for held, x in zip(cells, columns, strict=True)]
            writer.write_table(pyarrow.Table.from_arrays(arrays, schema=schema))
            number += len(batch)
    return number
