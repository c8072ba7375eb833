"""What the summaries of all sources have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from opera.sources import UnitReport

SHOWN = 12
"""Lines of a list that are shown on the terminal."""


def show_list(head: str, lines: Sequence[str], rest: str = "in the workspace") -> None:
    """Print the first lines of a list, if there are any; `rest` says where the others are."""
    if lines:
        print(f"{len(lines)} {head}:")
        for line in lines[:SHOWN]:
            print(f"  {line[:240]}")
        if len(lines) > SHOWN:
            print(f"  and {len(lines) - SHOWN} more, {rest}")


def show_left_out(left_out: Mapping[str, int]) -> None:
    """Print what was seen and not recorded, most frequent first, if there is any."""
    if left_out:
        print("left out: " + ", ".join(f"{count} {what}" for what, count in Counter(left_out).most_common()))


def in_trouble(report: UnitReport, name: str = "") -> str:
    """Return a line about a unit that is not done, by its file or another name."""
    return f"{name or report.file}: {report.status}: {' '.join(report.reason.split())[:160]}"
