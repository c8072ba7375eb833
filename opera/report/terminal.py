"""The report as tables for a terminal."""

from __future__ import annotations

import io
import shutil
import sys
from collections import Counter

from rich.console import Console, JustifyMethod
from rich.markup import escape
from rich.table import Column, Table

from opera.report.admitted import Admitted, rows
from opera.report.summary import FrontendSummary, Report
from opera.report.words import (
    SOURCE_COLUMNS,
    clean,
    in_list,
    nothing_yet,
    one_line,
    readiness,
    share,
    shown_verdicts,
    source_rows,
    standing,
)
from opera.triage.doubts import UNFINISHED, UNREDUCED
from opera.triage.findings import Finding

TOP = 15
"""Findings that the report lists; `opera findings` lists all."""
NAMES_WIDTH, COLUMN_WIDTH = 17, 20
"""Characters that the table of frontends needs for names, and for each frontend."""
NARROW = 34
"""Characters that a sentence needs beside other columns; with fewer it stands below them."""


def render(report: Report) -> str:
    """Return the report, coloured where standard output is a terminal."""
    out = io.StringIO()
    colour = sys.stdout.isatty()
    console = Console(
        file=out, width=shutil.get_terminal_size((100, 24)).columns, force_terminal=colour, highlight=False
    )
    for library, sources in report.instances.items():
        told = ", ".join(f"{count} from {source}" for source, count in sources.items())
        console.print(f"[bold]{escape(library)}[/bold] instances: {escape(clean(told))}")
    for compiler, libraries in report.equipped.items():
        console.print(f"equipped by {escape(compiler)}: {', '.join(f'{n} {name}' for name, n in libraries.items())}")
    for found in report.admitted:
        _admitted(console, found)
    if report.unfinished:
        console.print("[bold]The newest run has not ended[/bold]: this is what is stored so far")
    if not report.frontends:
        console.print(nothing_yet(report))
    else:
        # As many frontends beside each other as the width holds: squeezed columns cannot be read.
        beside = max(1, (console.width - NAMES_WIDTH) // COLUMN_WIDTH)
        for at in range(0, len(report.frontends), beside):
            _frontends(console, report, report.frontends[at : at + beside])
        _sources(console, report)
        _findings(console, report)
    _trouble(console, report)
    return out.getvalue()


def _admitted(console: Console, found: Admitted) -> None:
    """Show how much of what the schemas admit the instances are at."""
    head, *lines = rows(found)
    table = Table(
        *(Column(escape(clean(x)), justify="right" if x else "left") for x in head),
        box=None,
        pad_edge=False,
        header_style="dim",
    )
    for line in lines:
        table.add_row(*map(escape, line))
    console.print(
        f"\n[bold]What the schemas of {escape(found.library)} admit[/bold] (opera coverage --library {found.library}):"
    )
    console.print(table)


def _frontends(console: Console, report: Report, chosen: list[FrontendSummary]) -> None:
    heads = (f"{escape(x.name)}\n{escape(x.label.removeprefix(x.name).strip())}" for x in chosen)
    table = Table("", *(Column(head, justify="right", overflow="fold") for head in heads), box=None, pad_edge=False)
    table.header_style = "bold"
    table.add_row("tests", *(f"{x.tests}" + (f" of {x.corpus}" if x.tests < x.corpus else "") for x in chosen))
    for name in shown_verdicts(report.frontends):
        table.add_row(name, *(share(x.verdicts.get(name, 0), x.tests) for x in chosen))
    counts = Counter((f.frontend, f.environment) for f in report.findings)
    table.add_row("[bold]findings[/bold]", *(f"[bold]{counts[x.name, x.environment]}[/bold]" for x in chosen))
    table.add_row("seconds inside", *(f"{x.seconds:.1f}" for x in chosen), style="dim")
    table.add_row("wall seconds", *(f"{x.wall_seconds:.1f} × {x.workers}" for x in chosen), style="dim")
    table.add_row("efficiency", *(f"{x.efficiency:.2f}" for x in chosen), style="dim")
    table.add_row("confirmation s", *(f"{x.confirmation_seconds:.1f}" for x in chosen), style="dim")
    table.add_row("tests a second", *(f"{x.tests_per_second:.1f}" for x in chosen), style="dim")
    console.print()
    console.print(table)
    for x in chosen:
        for title in ("screened", "unsupported", "unexported"):
            reasons: dict[str, int] = getattr(x, title)
            told = ", ".join(f"{count} {one_line(reason, 60)}" for reason, count in reasons.items())
            if told:
                console.print(f"[dim]{escape(one_line(f'{x.name} {title}: {told}', console.width))}[/dim]")


def _sources(console: Console, report: Report) -> None:
    """Show what each source found, where there are several to compare."""
    for compared in report.comparisons:
        if len(compared.yields) < 2:
            continue
        table = Table("", *(Column(name, justify="right") for name in SOURCE_COLUMNS), box=None, pad_edge=False)
        for row in source_rows(report, compared):
            table.add_row(*map(escape, row))
        each = f", the best-ranked {compared.tests_each} tests of each" if compared.tests_each else ""
        console.print(f"\n[bold]Sources[/bold] on {escape(compared.frontend)}{each}:")
        console.print(table)
        shared = [f"{len(x.findings)} by {' and '.join(x.sources)}" for x in compared.overlaps if len(x.sources) > 1]
        console.print(f"findings of several: {escape(clean(', '.join(shared) or 'none'))}")


def _findings(console: Console, report: Report) -> None:
    console.print()
    if not report.findings:
        console.print("No findings.")
        return
    listed = sum(not x.new for x in report.findings)
    told = ", ".join(filter(None, (readiness(report.findings), f"{listed} known" if listed else "")))
    told = f" ({told})" if told else ""
    console.print(f"[bold]Findings[/bold], {min(TOP, len(report.findings))} of {len(report.findings)}{told}:")
    console.print(findings_table(report.findings[:TOP], console.width))
    console.print("next: opera findings")
    console.print("      opera show ID; opera repro ID --verify")
    console.print("      opera report --format html --output FILE")
    if left := sum(any(x.startswith((UNREDUCED, UNFINISHED)) for x in of.doubts) for of in report.findings):
        console.print(f"      opera reduce all ({left} not reduced to the end)")


def findings_table(findings: list[Finding], width: int) -> Table:
    """Return a table of findings, one line each, for a terminal of `width` characters: the sentence says the rest."""
    rows = _rows(findings)
    longest = [max(map(len, column)) for column in zip(*rows, strict=True)]
    # Whatever the columns before leave is for the sentence; rich itself would squeeze all alike.
    left = width - sum(longest) - 2 * len(longest)
    narrow = left < NARROW
    said = ["what is wrong", *(in_list(x, width - 4 if narrow else left) for x in findings)]
    rows = [(*row, text) for row, text in zip(rows, said, strict=True)]
    if narrow:
        return _stacked(rows[1:], width)
    table = Table(box=None, header_style="dim", pad_edge=False)
    for title, size in zip(rows[0], [*longest, left], strict=True):
        justify: JustifyMethod = "right" if title == "tests" else "left"
        table.add_column(title, width=size, no_wrap=True, overflow="ellipsis", justify=justify)
    for row in rows[1:]:
        table.add_row(*map(escape, row))
    return table


def findings_lines(findings: list[Finding]) -> list[str]:
    """Return the lines of such a table with whole sentences, for a pipe or a file: what reads them cuts them itself."""
    rows = _rows(findings)
    longest = [max(map(len, column)) for column in zip(*rows, strict=True)]
    kept = ["  ".join(x.ljust(size) for x, size in zip(row, longest, strict=True)) for row in rows]
    said = ["what is wrong", *(in_list(x, sys.maxsize) for x in findings)]
    return [f"{row}  {text}" for row, text in zip(kept, said, strict=True)]


def _rows(findings: list[Finding]) -> list[tuple[str, ...]]:
    """Return what stands before the sentences, column by column, with its head."""
    versions = {(x.frontend, x.compiler_version) for x in findings}
    several = len(versions) > len({frontend for frontend, _ in versions})
    noted = any(x.known for x in findings)
    rows = [("id", "frontend", *(["version"] if several else []), "tests", *(["known"] if noted else []))]
    for x in findings:
        version = [x.compiler_version] if several else []
        count = f"{len(x.members)}{'?' if x.doubts else ''}"
        known = [standing(x.known) if x.known else "new"] if noted else []
        rows.append((x.id, x.frontend, *version, count, *known))
    return rows


def _stacked(rows: list[tuple[str, ...]], width: int) -> Table:
    """Return a table for a narrow terminal: what is wrong stands below the rest, and no id is cut."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(width=width, no_wrap=True, overflow="ellipsis")
    for *rest, count, said in rows:
        table.add_row(escape(f"{'  '.join(rest)}  {count} test{'' if count == '1' else 's'}"))
        table.add_row(escape(f"    {said}"))
    return table


def _trouble(console: Console, report: Report) -> None:
    for library, count in report.invalid.items():
        console.print(f"{count} instances of {escape(library)} are invalid: the library itself rejects them")
    if report.errors:
        console.print(f"[red]opera itself failed {len(report.errors)} times[/red]; the first:")
        first = report.errors[0]
        console.print(f"  {escape(clean(first.where))} ({escape(first.what)}): {escape(one_line(first.reason, 200))}")
    for failure in report.extraction_failures[:5]:
        console.print(
            f"not extracted: {escape(clean(failure.where))}: {failure.what}: {escape(one_line(failure.reason, 120))}"
        )
    if len(report.extraction_failures) > 5:
        console.print(f"  and {len(report.extraction_failures) - 5} more files")
    if report.library_crashes:
        console.print(f"[red]{len(report.library_crashes)} inputs crash a library itself[/red]:")
    for crash in report.library_crashes[:5]:
        console.print(f"  {escape(clean(crash.where))}: {crash.what}: {escape(one_line(crash.reason, 120))}")
    if report.disputed:
        count = len(report.disputed)
        console.print(
            f"[bold]{count} tests of the library[/bold] expect what others contradict: opera findings --disputed"
        )
    if report.disagreements:
        programs, operators = sum(x.count for x in report.disagreements), {x.operator for x in report.disagreements}
        console.print(
            f"[bold]References disagree[/bold] on {programs} generated programs of {len(operators)} operators; the most:"
        )
        for x in sorted(report.disagreements, key=lambda x: -x.count)[:5]:
            told = f"{clean(x.operator)}: {x.what}: {one_line(x.reason, 120)}"
            console.print(f"  {escape(told)}", soft_wrap=True)
        if len(report.disagreements) > 5:
            console.print(f"  and {len(report.disagreements) - 5} more: opera report --format markdown")
