"""Reports: one module a format, each with the same function, behind one Protocol."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from opera import errors, temporary
from opera.errors import UsageError, near

if TYPE_CHECKING:
    from opera.report.summary import Report
    from opera.store.workspace import Workspace
    from opera.triage.findings import Finding

FORMATS = {
    "terminal": "opera.report.terminal",
    "json": "opera.report.json",
    "markdown": "opera.report.markdown",
    "html": "opera.report.html",
}

STREAMED = {"junit": "opera.report.junit", "sarif": "opera.report.sarif"}
"""Formats for other programs: of a workspace with any number of tests, written as it is read."""


class Format(Protocol):
    """A report format."""

    def render(self, report: Report) -> str:
        """Return the whole report as text."""


class Stream(Protocol):
    """A format that is written as it is read."""

    def chunks(self, workspace: Workspace, findings: Sequence[Finding], *, source: Path | None = None) -> Iterator[str]:
        """Yield the text; `findings` are those of the workspace, marked, and `source` is a checkout of the compiler."""


def get(name: str) -> Format:
    """Import a format. Raises UsageError for an unknown name."""
    if name not in FORMATS:
        known = (*FORMATS, *STREAMED, "csv", "parquet")
        raise UsageError(
            f"there is no report format called {name!r}", cause=near(name, known), fix=f"choose from {', '.join(known)}"
        )
    module: Format = import_module(FORMATS[name])
    return module


def check(name: str, output: Path | None) -> None:
    """Raise UsageError where a terminal would be filled with what is no text for people."""
    if name in ("html", "parquet") and output is None and sys.stdout.isatty():
        raise UsageError(f"{name} is not for a terminal", fix=f"opera report --format {name} --output report.{name}")


def stream(name: str) -> Stream:
    """Import a format that is written as it is read."""
    module: Stream = import_module(STREAMED[name])
    return module


def write(format: Format, report: Report, output: Path | None) -> None:
    """Write a report to a file, whole or not at all, or to standard output."""
    text = format.render(report)
    put([text if text.endswith("\n") or output is not None else text + "\n"], output)


def put(chunks: Iterable[str], output: Path | None, what: str = "report") -> None:
    """Write pieces of a text to a file, whole or not at all, and say so, or to standard output."""
    if output is None:
        sys.stdout.writelines(chunks)
        return
    try:
        with temporary.beside(output) as part, part.open("w", encoding="utf-8") as file:
            file.writelines(chunks)
    except OSError as error:
        raise errors.unwritable(output, error) from None
    print(f"{what} written to {output}")
