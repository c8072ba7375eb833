"""Reports: one module a format, each with the same function, behind one Protocol."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from opera import temporary
from opera.errors import UsageError

if TYPE_CHECKING:
    from opera.report.summary import Report

FORMATS = {
    "terminal": "opera.report.terminal",
    "json": "opera.report.json",
    "markdown": "opera.report.markdown",
    "html": "opera.report.html",
}


class Format(Protocol):
    """A report format."""

    def render(self, report: Report) -> str:
        """Return the whole report as text."""


def get(name: str) -> Format:
    """Import a format. Raises UsageError for an unknown name."""
    if name not in FORMATS:
        raise UsageError(f"there is no report format called {name!r}", fix=f"choose from {', '.join(FORMATS)}")
    module: Format = import_module(FORMATS[name])
    return module


def write(format: Format, report: Report, output: Path | None) -> None:
    """Write a report to a file, whole or not at all, or to standard output."""
    write_text(format.render(report), output, "report")


def write_text(text: str, output: Path | None, what: str) -> None:
    """Write a text to a file, whole or not at all, and say so, or to standard output."""
    if output is None:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        return
    try:
        with temporary.beside(output) as part:
            part.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"{output} cannot be written: {error.strerror}", fix="free some room, or choose another file"
        ) from None
    print(f"{what} written to {output}")
