"""A live run as a labelled corpus: rows, labels and costs as files that anybody can score without the workspace."""

from __future__ import annotations

import gzip
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from opera import errors
from opera.benchmark.subjects import Subject
from opera.prioritize.labelled import record
from opera.prioritize.subspaces import Row


def publish(subject: Subject, folder: Path) -> Iterator[str]:
    """Write a subject of a workspace to a folder that is there, and yield the commands that score it, one a granularity.

    `NAME.instances.jsonl.gz` and `NAME.equipped.jsonl.gz` have a row a line (opera.prioritize.labelled), of which the id is the
    test's; `NAME.GRANULARITY.json` are labels, `NAME.costs.json.gz` seconds. What the coverage of a test is, is not among it.
    Raises UsageError where a file cannot be written.
    """
    name = "".join(x if x.isalnum() or x in ".-" else "-" for x in subject.name)
    rows, equipped, costs = (folder / f"{name}.{x}.gz" for x in ("instances.jsonl", "equipped.jsonl", "costs.json"))
    try:
        _write(rows, _lines(zip(subject.tests, subject.rows, strict=True), subject.library))
        given: list[object] = ["opera", "benchmark", "--instances", rows]
        if subject.equipped:
            named = ((str(number), row) for number, row in enumerate(subject.equipped))
            _write(equipped, _lines(named, subject.library))
            given += ["--equipped", equipped]
        _write(costs, msgspec.json.encode(dict(zip(subject.tests, subject.costs, strict=True))))
        for granularity, faults in subject.faults.items():
            labels = folder / f"{name}.{granularity}.json"
            told = {fault: [subject.tests[at] for at in places] for fault, places in faults.items()}
            labels.write_bytes(msgspec.json.format(msgspec.json.encode(told), indent=1) + b"\n")
            yield shlex.join(map(str, [*given, "--labels", labels, "--costs", costs]))
    except OSError as error:
        raise errors.unwritable(error.filename, error) from None


def _lines(rows: Iterable[tuple[str, Row]], library: str) -> bytes:
    encoder = msgspec.json.Encoder()
    return b"".join(encoder.encode(record(name, library, row)) + b"\n" for name, row in rows)


def _write(file: Path, data: bytes) -> None:
    file.write_bytes(gzip.compress(data, mtime=0))  # the same data are the same file
