"""The report as one HTML file that needs nothing else: style, script and charts are in it."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from opera.programs.verdicts import FAILURES
from opera.report.admitted import rows as admitted_rows
from opera.report.summary import FrontendSummary, Report
from opera.report.venn import venn
from opera.report.words import (
    LETTERS,
    MEANINGS,
    clean,
    gist,
    link,
    number,
    severity,
    share,
    shown_verdicts,
    standing,
    where,
    worst_first,
)
from opera.resources import content
from opera.store.workspace import COMBINED

if TYPE_CHECKING:
    import jinja2

MEMBERS = 200
"""Members of a finding that are listed."""
SCRIPT_CHARACTERS = 40_000
"""A longer reproducer is named, not shown."""
WIDTH, HEIGHT = 900, 340
LEFT, RIGHT, TOP, BOTTOM = 46, 660, 24, 290
"""Size of the chart, and the edges of its plot, in its own units."""
DASHES = ("", "7 4", "2 4")


class Line(msgspec.Struct, frozen=True):
    """A frontend's line in the chart; `at` is where its label stands, `short` the label with the count."""

    label: str
    short: str
    points: str
    dash: str
    last: tuple[int, int]
    at: float


class Chart(msgspec.Struct, frozen=True):
    """The chart of findings over tests: lines, and (position, text) of ticks."""

    lines: list[Line]
    x_ticks: list[tuple[float, str]]
    y_ticks: list[tuple[float, str]]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = RIGHT
    bottom: int = BOTTOM


class Cell(msgspec.Struct, frozen=True):
    """An operator on a frontend: worst verdict, how many tests failed (or have that verdict) of how many, all counts."""

    verdict: str
    count: int
    total: int
    told: str


class Row(msgspec.Struct, frozen=True):
    """An operator's row of the matrix; `failing` counts failing tests over all frontends."""

    operator: str
    cells: list[Cell | None]
    failing: int


def render(report: Report) -> str:
    """Return the file."""
    from markupsafe import Markup

    jinja, folder = environment()
    report = msgspec.structs.replace(report, findings=worst_first(report.findings))
    style, script = ((folder / name).read_text(encoding="utf-8") for name in ("style.css", "script.js"))
    return jinja.get_template("report.html.j2").render(
        report=report,
        style=Markup(style),
        script=Markup(script),
        # Only this very script may run: even a string that escaped escaping could not.
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        compilers=list(dict.fromkeys(x.compiler for x in report.frontends)),
        labels={(x.environment, x.name): x.label for x in report.frontends},
        counts=Counter((x.environment, x.frontend) for x in report.findings),
        anchors=_anchors(report),
        shown=shown_verdicts(report.frontends),
        choices=_choices(report),
        chart=chart(report.frontends),
        matrix=matrix(report),
        admitted=[(x, admitted_rows(x)) for x in report.admitted],
        figures=[(x, venn(x)) for x in report.comparisons if len(x.yields) > 1],
        scripts=_scripts(report),
        trouble=any(
            (report.errors, report.extraction_failures, report.library_crashes, report.disputed, report.disagreements)
        ),
        members=MEMBERS,
        letters=LETTERS,
        meanings=MEANINGS,
        share=share,
        where=where,
        gist=gist,
        number=number,
        standing=standing,
        severity=severity,
        link=link,
    )


def environment() -> tuple[jinja2.Environment, Path]:
    """Return what renders the templates of reports, every text cleaned and escaped, and their folder."""
    import jinja2

    folder = content("templates") / "report"
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: clean(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    ), folder


def chart(frontends: list[FrontendSummary]) -> Chart:
    """Lay out the chart of findings over tests run."""
    most_tests = max((x.curve[-1][0] for x in frontends), default=0) or 1
    most_found = max((x.curve[-1][1] for x in frontends), default=0) or 1

    def x_of(tests: float) -> float:
        return round(LEFT + (RIGHT - LEFT) * tests / most_tests, 1)

    def y_of(found: float) -> float:
        return round(BOTTOM - (BOTTOM - TOP) * found / most_found, 1)

    places = _apart([y_of(x.curve[-1][1]) + 4 for x in frontends])
    lines = [
        Line(
            label=x.label,
            short=f"{x.curve[-1][1]}  {x.label if len(x.label) <= 28 else x.label[:27] + '…'}",
            points=" ".join(f"{x_of(tests)},{y_of(found)}" for tests, found in x.curve),
            dash=DASHES[number // 6 % len(DASHES)],
            last=x.curve[-1],
            at=at,
        )
        for number, (x, at) in enumerate(zip(frontends, places, strict=True))
    ]
    return Chart(
        lines,
        [(x_of(tick), str(tick)) for tick in ticks(most_tests)],
        [(y_of(tick), str(tick)) for tick in ticks(most_found)],
    )


def ticks(most: int) -> list[int]:
    """Return about five round numbers from 0 to `most`."""
    step = 1
    for factor in (2, 5, 10) * 12:
        if most / step <= 6:
            break
        step = factor * 10 ** (len(str(step)) - 1)
    return list(range(0, most + 1, step))


def _apart(places: list[float], gap: float = 15.0) -> list[float]:
    """Return the places moved so that no two are nearer than `gap`, in the order given, none below the plot."""
    order = sorted(range(len(places)), key=lambda at: -places[at])
    moved, free = list(places), float(BOTTOM + 4)
    for at in order:
        moved[at] = min(places[at], free)
        free = moved[at] - gap
    return moved


def matrix(report: Report) -> list[Row]:
    """Return the operator × frontend matrix, operators with most failing tests first."""
    rows = []
    for operator, columns in report.matrix.items():
        cells = [_cell(columns.get(x.label, {})) for x in report.frontends]
        rows.append(Row(operator, cells, sum(_failing(counts) for counts in columns.values())))
    return sorted(rows, key=lambda row: (-row.failing, row.operator))


def _cell(counts: dict[str, int]) -> Cell | None:
    if not counts:
        return None
    worst = next(name for name in COMBINED if name in counts)
    total = sum(counts.values())
    told = ", ".join(f"{counts[name]} {name}" for name in COMBINED if name in counts)
    return Cell(worst, _failing(counts) or counts[worst], total, f"{total} tests: {told}")


def _failing(counts: dict[str, int]) -> int:
    return sum(counts.get(name, 0) for name in FAILURES)


def _anchors(report: Report) -> list[str]:
    """Return a name for each finding within the page: one finding may be there for several versions of a compiler."""
    seen: Counter[str] = Counter()
    names = []
    for finding in report.findings:
        seen[finding.id] += 1
        names.append(finding.id if seen[finding.id] == 1 else f"{finding.id}-{seen[finding.id]}")
    return names


def _choices(report: Report) -> dict[str, list[str]]:
    return {
        "frontend": [x.label for x in report.frontends],
        "operator": sorted({name for x in report.findings for name in x.operators}),
        "symptom": sorted({x.symptom for x in report.findings}),
        "stage": [name for name in ("load", "compile", "infer") if any(x.stage == name for x in report.findings)],
    }


def _scripts(report: Report) -> dict[str, str]:
    """Return finding → text of its reproducer, empty where there is none or it is too long."""
    found = {}
    for finding in report.findings:
        text = ""
        if finding.reproducer is not None:
            path = Path(report.root) / finding.reproducer
            try:
                text = path.read_text(encoding="utf-8", errors="replace")
            except OSError:  # deleted meanwhile
                text = ""
        found[finding.id] = text if len(text) <= SCRIPT_CHARACTERS else ""
    return found
