"""What a run looks like while it goes: a live bar on a terminal, plain lines where output is piped."""

from __future__ import annotations

import sys
import time
from collections import Counter
from types import TracebackType
from typing import Any

LINE_SECONDS = 5.0
"""Seconds between two plain lines."""
WIDE = 100
"""Columns of a terminal that a bar fits into beside the rest."""


class Plain:
    """A line every few seconds, on standard error, so that standard output stays for results."""

    def __init__(self) -> None:
        self._total, self._done = 0, 0
        self._started = self._last = time.monotonic()

    def __enter__(self) -> Plain:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def say(self, text: str) -> None:
        """Print a line."""
        print(text, file=sys.stderr, flush=True)

    def begin(self, total: int) -> None:
        """Take the number of (test, frontend) pairs."""
        self._total = total
        self._started = time.monotonic()
        self.say(f"{total} tests to go through (test × frontend)")

    def step(self, counts: Counter[str], done: int, efficiency: float) -> None:
        """Print a line if the last one is old enough."""
        now = time.monotonic()
        if now - self._last >= LINE_SECONDS or (done == self._total and done != self._done):
            self._last, self._done = now, done
            rate = done / max(now - self._started, 1e-9)
            self.say(f"{done}/{self._total}  {rate:.0f}/s  {_counts(counts)}  efficiency {efficiency:.2f}")


class Live:
    """A bar with rate, verdicts, efficiency and time left."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            ProgressColumn,
            TextColumn,
            TimeRemainingColumn,
        )
        from rich.table import Column

        console = Console(stderr=True)

        def kept() -> Column:
            return Column(no_wrap=True)

        # Total, rate and time left first, and never cut; then what they came to; a bar where there is room for it.
        columns: list[ProgressColumn] = [
            MofNCompleteColumn(table_column=kept()), TextColumn("{task.fields[rate]}", table_column=kept()),
            TimeRemainingColumn(compact=True, table_column=kept()),
        ]  # fmt: skip
        if console.width >= WIDE:
            columns.append(BarColumn(bar_width=24))
        rest = Column(ratio=1, no_wrap=True, overflow="ellipsis")
        columns.append(TextColumn("{task.description}", table_column=rest))
        self._bar = Progress(*columns, console=console, transient=False, expand=True)
        self._task: Any = None
        self._started = time.monotonic()

    def __enter__(self) -> Live:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def say(self, text: str) -> None:
        """Print a line above the bar."""
        self._bar.console.print(text, markup=False, highlight=False)

    def begin(self, total: int) -> None:
        """Start the bar."""
        self._started = time.monotonic()
        self._task = self._bar.add_task("", total=total, rate="")

    def step(self, counts: Counter[str], done: int, efficiency: float) -> None:
        """Move the bar."""
        rate = done / max(time.monotonic() - self._started, 1e-9)
        text = f"{_counts(counts)}  [dim]efficiency {efficiency:.2f}[/dim]"
        self._bar.update(self._task, completed=done, description=text, rate=f"{rate:.0f}/s")


def reporter() -> Plain | Live:
    """Return what fits standard error."""
    return Live() if sys.stderr.isatty() else Plain()


def _counts(counts: Counter[str]) -> str:
    return "  ".join(f"{name} {count}" for name, count in counts.most_common() if count)
