"""The report as Markdown, to paste into an issue or a pull request."""

from __future__ import annotations

from opera.report.admitted import rows as admitted_rows
from opera.report.sources import Comparison
from opera.report.summary import Failure, Report
from opera.report.words import (
    SOURCE_COLUMNS,
    clean,
    nothing_yet,
    one_line,
    share,
    shown_verdicts,
    source_rows,
    status,
    where,
)
from opera.triage.disagreeing import Disagreeing
from opera.triage.disputed import Disputed


def render(report: Report) -> str:
    """Return the report."""
    lines = ["# opera report", "", f"opera {report.opera_version}, {report.generated}", ""]
    for library, sources in report.instances.items():
        lines.append(
            f"- {library} instances: " + ", ".join(f"{count} from {_cell(name)}" for name, count in sources.items())
        )
    for library, count in report.invalid.items():
        lines.append(f"- {count} instances of {library} are invalid (the library itself rejects them)")
    for found in report.admitted:
        head, *rest = admitted_rows(found)
        lines += [
            "",
            f"## What the schemas of {found.library} admit",
            "",
            row(*head),
            row("---", *["---:"] * (len(head) - 1)),
        ]
        lines += [row(*cells) for cells in rest]
    lines.append("")
    if not report.frontends:
        return "\n".join([*lines, nothing_yet(report), *_listed(report), ""])
    columns = [x.label for x in report.frontends]
    lines += row("", *columns), row("---", *["---:"] * len(columns))
    lines.append(row("tests", *(str(x.tests) for x in report.frontends)))
    for name in shown_verdicts(report.frontends):
        lines.append(row(name, *(share(x.verdicts.get(name, 0), x.tests) for x in report.frontends)))
    lines.append(row("seconds inside", *(f"{x.seconds:.1f}" for x in report.frontends)))
    lines.append(row("wall seconds × workers", *(f"{x.wall_seconds:.1f} × {x.workers}" for x in report.frontends)))
    lines.append(row("efficiency", *(f"{x.efficiency:.2f}" for x in report.frontends)))
    lines.append(row("confirmation seconds", *(f"{x.confirmation_seconds:.1f}" for x in report.frontends)))
    for compared in report.comparisons:
        if len(compared.yields) > 1:
            lines += _sources(report, compared)
    count = sum(not x.new for x in report.findings)
    lines += ["", f"## {len(report.findings)} findings" + (f", {count} of them known" if count else ""), ""]
    lines += row("id", "frontend", "stage", "symptom", "tests", "where", "what is wrong", "status"), row(*["---"] * 8)
    for x in report.findings:
        told = (
            x.id,
            f"{x.frontend} {x.compiler_version}",
            x.stage,
            x.symptom,
            str(len(x.members)),
            where(x),
            one_line(x.sentence, 240),
            status(x),
        )
        lines.append(row(*told))
    return "\n".join([*lines, *_listed(report), ""])


def _listed(report: Report) -> list[str]:
    """Return the lines of what went wrong elsewhere than in a compiler."""
    lines: list[str] = []
    listed: tuple[tuple[str, list[Failure] | list[Disputed] | list[Disagreeing]], ...] = (
        ("opera's own failures", report.errors),
        ("Not extracted", report.extraction_failures),
        ("Crashes of the library itself", report.library_crashes),
        ("Tests of the library whose expectation others contradict", report.disputed),
        ("References that disagree", report.disagreements),
    )
    for title, failures in listed:
        if failures:
            lines += ["", f"## {title}", ""]
            lines += [f"- {_cell(x.where)}: {_cell(x.what)}: {_cell(one_line(x.reason, 160))}" for x in failures]
    return lines


def _sources(report: Report, compared: Comparison) -> list[str]:
    each = f", the best-ranked {compared.tests_each} tests of each" if compared.tests_each else ""
    lines = ["", f"## Sources on {_cell(compared.frontend)}{each}", ""]
    lines += row("source", *SOURCE_COLUMNS), row("---", *["---:"] * len(SOURCE_COLUMNS))
    lines += [row(*cells) for cells in source_rows(report, compared)]
    lines += ["", row("findings of", "count"), row("---", "---:")]
    return lines + [row(" and ".join(x.sources), str(len(x.findings))) for x in compared.overlaps]


def row(*cells: str) -> str:
    """Return a line of a table."""
    return "| " + " | ".join(map(_cell, cells)) + " |"


def _cell(text: str) -> str:
    """Return a text that Markdown shows as it is, whatever it holds."""
    text = clean(text)
    for character in "\\`*_[]<>|#":
        text = text.replace(character, "\\" + character) if character != "<" else text.replace("<", "&lt;")
    return " ".join(text.split())
