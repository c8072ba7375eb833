"""The report as tables for a terminal."""

from __future__ import annotations

import io
import shutil
import sys

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from opera.report.summary import Report
from opera.report.words import NOTHING_YET, gist, one_line, share, shown_verdicts, where
from opera.triage.findings import Finding

TOP = 15
"""Findings that the report lists; `opera findings` lists all."""


def render(report: Report) -> str:
    """Return the report, coloured where standard output is a terminal."""
    out = io.StringIO()
    colour = sys.stdout.isatty()
    console = Console(
        file=out, width=shutil.get_terminal_size((100, 24)).columns, force_terminal=colour, highlight=False
    )
    for library, sources in report.instances.items():
        told = ", ".join(f"{count} from {source}" for source, count in sources.items())
        console.print(f"[bold]{escape(library)}[/bold] instances: {escape(told)}")
    for compiler, libraries in report.equipped.items():
        console.print(f"equipped by {escape(compiler)}: {', '.join(f'{n} {name}' for name, n in libraries.items())}")
    if not report.frontends:
        console.print(NOTHING_YET)
    else:
        _frontends(console, report)
        _findings(console, report)
    _trouble(console, report)
    return out.getvalue()


def _frontends(console: Console, report: Report) -> None:
    table = Table("", *(f"{x.name}\n{x.compiler_version}" for x in report.frontends), box=None, header_style="bold")
    table.add_row("tests", *(str(x.tests) for x in report.frontends))
    for name in shown_verdicts(report.frontends):
        table.add_row(name, *(share(x.verdicts.get(name, 0), x.tests) for x in report.frontends))
    counts = [sum(1 for f in report.findings if f.environment == x.environment) for x in report.frontends]
    table.add_row("[bold]findings[/bold]", *(f"[bold]{count}[/bold]" for count in counts))
    table.add_row("seconds inside", *(f"{x.seconds:.1f}" for x in report.frontends), style="dim")
    table.add_row("wall seconds", *(f"{x.wall_seconds:.1f} × {x.workers}" for x in report.frontends), style="dim")
    table.add_row("efficiency", *(f"{x.efficiency:.2f}" for x in report.frontends), style="dim")
    table.add_row("confirmation s", *(f"{x.confirmation_seconds:.1f}" for x in report.frontends), style="dim")
    console.print()
    console.print(table)
    for x in report.frontends:
        if x.screened:
            told = ", ".join(f"{count} {reason}" for reason, count in x.screened.items())
            console.print(f"{x.name} screened: {escape(told)}")


def _findings(console: Console, report: Report) -> None:
    console.print()
    if not report.findings:
        console.print("No findings.")
        return
    console.print(f"[bold]Findings[/bold], {min(TOP, len(report.findings))} of {len(report.findings)}:")
    console.print(findings_table(report.findings[:TOP]))
    console.print(
        "next: opera findings; opera show ID; opera repro ID --verify; opera report --format html --output FILE"
    )


def findings_table(findings: list[Finding]) -> Table:
    """Return a table of findings."""
    table = Table(box=None, header_style="dim", pad_edge=False)
    for title in ("id", "frontend", "stage", "symptom", "tests", "where", "says"):
        table.add_column(
            title, no_wrap=title not in ("where", "says"), overflow="fold" if title == "where" else "ellipsis"
        )
    for x in findings:
        where_at = escape(where(x).replace("onnx_frontend:", ""))
        told = escape(gist(x.message, 70))
        state = "" if x.confirmed else "?"
        table.add_row(x.id, x.frontend, x.stage, escape(x.symptom), f"{len(x.members)}{state}", where_at, told)
    return table


def _trouble(console: Console, report: Report) -> None:
    for library, count in report.invalid.items():
        console.print(f"{count} instances of {escape(library)} are invalid: the library itself rejects them")
    if report.errors:
        console.print(f"[red]opera itself failed {len(report.errors)} times[/red]; the first:")
        first = report.errors[0]
        console.print(f"  {escape(first.where)} ({escape(first.what)}): {escape(one_line(first.reason, 200))}")
    for failure in report.extraction_failures[:5]:
        console.print(
            f"not extracted: {escape(failure.where)}: {failure.what}: {escape(one_line(failure.reason, 120))}"
        )
    if len(report.extraction_failures) > 5:
        console.print(f"  and {len(report.extraction_failures) - 5} more files")
