"""The report as one self-contained HTML file: no request leaves the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jinja2

from opera import resources
from opera.execute.records import FAILURES
from opera.report import words
from opera.report.summary import Frontend, Report, label

WIDTH, HEIGHT, LEFT, BOTTOM = 760, 280, 46, 34
"""Size of the chart and its margins, in SVG units."""
COLOURS = ("#2f6fde", "#d9662b", "#2a9d63", "#a349a4", "#b8860b", "#0f8b8d")
SCRIPT_LIMIT = 24_000
"""Characters of a reproducer that the page shows; a longer one is named by its path."""


def render(report: Report) -> str:
    """Return the page."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(resources.content("templates") / "report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {"gist": words.gist, "one_line": words.one_line}
    return environment.get_template("report.html.j2").render(
        report=report,
        label=label,
        verdicts=words.shown_verdicts(report.frontends),
        letters=words.LETTERS,
        share=words.share,
        status=words.status,
        where=words.where,
        nothing_yet=words.NOTHING_YET,
        failures=FAILURES,
        counts=_findings_by_frontend(report),
        worst=_worst,
        chart=_chart(report.frontends),
        scripts=_scripts(report),
    )


def _findings_by_frontend(report: Report) -> dict[str, int]:
    counts: dict[str, int] = {}
    for finding in report.findings:
        counts[finding.environment] = counts.get(finding.environment, 0) + 1
    return counts


def _worst(cell: dict[str, int]) -> str:
    """Return the verdict that a cell of the matrix shows: the worst that is there."""
    return next(name for name in reversed(words.ORDER) if name in cell)


def _scripts(report: Report) -> dict[str, str]:
    """Return finding → its reproducer, where it is short enough to be shown."""
    found = {}
    for finding in report.findings:
        if finding.reproducer:
            try:
                text = (Path(report.root) / finding.reproducer).read_text(encoding="utf-8")
            except OSError:
                continue
            if len(text) <= SCRIPT_LIMIT:
                found[finding.id] = text
    return found


def _chart(frontends: list[Frontend]) -> dict[str, Any]:
    """Return the geometry of the chart of findings over tests run."""
    most_tests = max((x.tests for x in frontends), default=0) or 1
    most_found = max((x.curve[-1][1] for x in frontends), default=0) or 1
    right, top = WIDTH - 12, 12

    def at(tests: float, found: float) -> tuple[float, float]:
        x = LEFT + (right - LEFT) * tests / most_tests
        y = HEIGHT - BOTTOM - (HEIGHT - BOTTOM - top) * found / most_found
        return round(x, 1), round(y, 1)

    lines = [
        {
            "name": label(x),
            "colour": COLOURS[number % len(COLOURS)],
            "points": " ".join(f"{a},{b}" for a, b in (at(*point) for point in x.curve)),
        }
        for number, x in enumerate(frontends)
    ]
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "left": LEFT,
        "base": HEIGHT - BOTTOM,
        "right": right,
        "top": top,
        "lines": lines,
        "x": [(at(value, 0)[0], value) for value in _ticks(most_tests)],
        "y": [(at(0, value)[1], value) for value in _ticks(most_found)],
    }


def _ticks(most: int) -> list[int]:
    """Return about five round numbers from 0 to `most`."""
    step = 1
    while most / step > 6:
        digit = int(str(step)[0])
        step = step * 2 if digit in (1, 5) else step * 5 // 2
    return list(range(0, most + 1, step))
