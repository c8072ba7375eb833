"""Known issues in other forms: JSON and CSV, which hold all of them, and the names of tests that are expected to fail."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from opera.errors import UsageError
from opera.triage.findings import Finding
from opera.triage.known import LISTS, Entry, Known, entry, parse

TOML, JSON, CSV, TESTS = "toml", "json", "csv", "tests"
FORMATS = (JSON, CSV, TESTS)
"""What is written."""
READ = (TOML, *FORMATS)
"""What is read: TOML is another file of known issues."""
SUFFIXES = {".toml": TOML, ".json": JSON, ".csv": CSV, ".txt": TESTS}
FIELDS = Entry.__struct_fields__


def dump(entries: Iterable[Entry], form: str) -> str:
    """Return the entries as JSON or CSV; in a cell of CSV, ids have blanks between them."""
    if form == JSON:
        return msgspec.json.format(msgspec.json.encode(list(entries)), indent=1).decode() + "\n"
    out = io.StringIO()
    writer = csv.DictWriter(out, FIELDS, lineterminator="\n")
    writer.writeheader()
    for x in entries:
        writer.writerow({name: " ".join(getattr(x, name)) if name in LISTS else getattr(x, name) for name in FIELDS})
    return out.getvalue()


def load(text: str, form: str, name: str) -> list[Entry]:
    """Inverse of `dump`, of a TOML file too. Raises UsageError, with the place, for what is not understood."""
    if form == TOML:
        return list(parse(text, name))
    if form == JSON:
        try:
            tables: Any = json.loads(text)
        except ValueError as error:
            raise _wrong(f"{name} is no JSON: {error}", "another format", "give --format") from None
        if not isinstance(tables, list) or not all(isinstance(x, dict) for x in tables):
            raise _wrong(f"{name} is no list of objects", "another JSON file", "`opera known export` shows the form")
        return [entry(table, f"{name}: entry {number}") for number, table in enumerate(tables, 1)]
    reader = csv.DictReader(io.StringIO(text), strict=True)
    found = []
    try:
        for row in reader:
            place = f"{name}:{reader.line_num}"
            if None in row or None in row.values():
                raise _wrong(
                    f"{place}: it has not as many cells as the head", "a comma without quotes", "mend the line"
                )
            filled = {key: value.split() if key in LISTS else value for key, value in row.items() if value}
            found.append(entry(filled, place))
    except csv.Error as error:
        raise _wrong(f"{name} is no CSV: {error}", "another format", "give --format") from None
    return found


def expected(known: Known, findings: Iterable[Finding]) -> str:
    """Return the library's tests of known findings that are no regressions, a line each: those expected to fail."""
    told: dict[str, dict[str, str]] = {}
    for x in findings:
        found = known.of(x)
        if found is None or x.known is None or x.known.regression:
            continue
        why = " ".join(filter(None, (x.id, x.frontend, found.status, found.issue)))
        for name in filter(None, x.origins):
            told.setdefault(name, {})[why] = ""
    return "".join(f"{' '.join(name.split())}  # {'; '.join(told[name])}\n" for name in sorted(told))


def failing(text: str, findings: Sequence[Finding]) -> tuple[list[Finding], list[str]]:
    """Return the findings all of whose tests are expected to fail, in all environments, and the names that no finding has.

    A line names a test of the library; what stands behind ` #` is a comment.
    """
    names = dict.fromkeys(name for line in text.splitlines() if (name := line.partition(" #")[0].strip()))
    names = {name: None for name in names if not name.startswith("#")}
    other = {x.id for x in findings if not all(" ".join(name.split()) in names for name in x.origins)}
    found = [x for x in findings if x.id not in other]
    held = {" ".join(name.split()) for x in findings for name in x.origins}
    return found, [name for name in names if name not in held]


def form_of(path: Path, form: str, known: Sequence[str]) -> str:
    """Return the format that is asked for, or that a file's name says. Raises UsageError for none of the `known`."""
    chosen = form or SUFFIXES.get(path.suffix.lower(), "")
    if chosen not in known:
        what = f"there is no format {form!r} for known issues" if form else f"{path} does not say what format it has"
        raise _wrong(what, "" if form else "its name ends otherwise", f"give --format: {', '.join(known)}")
    return chosen


def _wrong(what: str, cause: str, fix: str) -> UsageError:
    return UsageError(what, cause=cause, fix=fix)
