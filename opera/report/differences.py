"""What `opera diff` found, in each of its formats: findings first, tests where they are asked for."""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from opera.report.html import environment
from opera.report.markdown import row
from opera.report.words import clean, one_line, standing
from opera.triage.versions.diff import FIXED, KINDS, MEANINGS, REGRESSIONS, SAME, STILL, Between, Diff, Move

LISTED = 20
"""Findings of a kind, and operators, that the terminal lists; other formats list all."""
HEAD = ("finding", "operator", "tests", "before → after", "what is wrong")


def render(format: str, diff: Diff, *, tests: bool) -> str:
    """Return the diff in one of FORMATS, with its tests where they are wanted (in HTML always, folded)."""
    if not tests and format != "html":
        diff = msgspec.structs.replace(diff, frontends=[msgspec.structs.replace(x, tests=()) for x in diff.frontends])
    return FORMATS[format](diff)


def write(text: str, output: Path | None) -> None:
    """Write a diff to a file, whole or not at all, or to standard output."""
    from opera.report import put

    put([text if text.endswith("\n") else text + "\n"], output, "diff")


def title(x: Between) -> str:
    """Return what was compared: `openvino-onnx 2025.0.0 → 2026.4.1`."""
    return f"{x.frontend} {x.before} → {x.after}"


def compared(x: Between) -> str:
    """Say how many tests were compared, and which were not."""
    alone = [f"{n} only {x}" for n, x in ((x.only_before, "before"), (x.only_after, "after")) if n]
    return f"{x.compared} tests with a verdict on both sides" + (f"; not compared: {', '.join(alone)}" if alone else "")


def verdict(diff: Diff) -> str:
    """Say whether there are regressions."""
    if not diff.regressions:
        return "no regressions"
    several = "s" if diff.regressions > 1 else ""
    return f"{diff.regressions} regression{several} (new, newly reached or grown and not known, or no longer supported)"


def moves(x: Move) -> str:
    """Return what a finding's tests showed before and after: `3 pass → crash in load`."""
    return ", ".join(f"{count} {move}" for move, count in x.moves.items())


def says(x: Move) -> str:
    """Return what is wrong, and what was before where that is another thing."""
    return known(x) + x.sentence + (f" (before: {x.was})" if x.was else "")


def known(x: Move) -> str:
    """Return what the file of known issues says of a finding, before what is wrong; nothing of one that it does not know."""
    if x.known is None:
        return ""
    return f"[{' '.join(filter(None, (standing(x.known), x.known.issue)))}] "


# ---------------------------------------------------------------------- terminal


def terminal(diff: Diff) -> str:
    """Return tables for a terminal, coloured where standard output is one."""
    out = io.StringIO()
    colour = sys.stdout.isatty()
    width = shutil.get_terminal_size((120, 24)).columns
    console = Console(file=out, width=width, force_terminal=colour, highlight=False)
    for x in diff.frontends:
        console.print(f"[bold]{escape(title(x))}[/bold]: {escape(compared(x))}", soft_wrap=True)
        for note in (*x.differs, *x.notes):
            console.print(f"  [dim]{escape(clean(note))}[/dim]", soft_wrap=True)
        if not x.compared:
            continue
        _counts(console, x)
        for kind in KINDS:
            if (found := x.of(kind)) and kind != STILL:
                console.print(f"\n[bold]{kind}[/bold] [dim]({MEANINGS[kind]})[/dim]")
                _findings(console, found, kind == FIXED)
            _support(console, x, kind)
        _operators(console, x)
        _tests(console, x)
        console.print()
    for note in diff.notes:
        console.print(f"not compared: {escape(clean(note))}", soft_wrap=True)
    console.print(
        f"[bold]{verdict(diff)}[/bold]. opera show FINDING tells all of one; --tests lists tests; --format html"
    )
    return out.getvalue()


def _counts(console: Console, x: Between) -> None:
    table = Table("", Column("findings", justify="right"), Column("tests", justify="right"), box=None, pad_edge=False)
    table.header_style = "dim"
    for kind, (found, tests) in x.counts.items():
        style = "red" if kind in REGRESSIONS else ""
        table.add_row(kind, str(found or "-"), str(tests), style=style)
    console.print(table)
    agree = sum(count for move, count in x.verdicts.items() if len(set(move.split(" → "))) == 1)
    console.print(f"  [dim]{agree} tests have the same verdict on both sides[/dim]")


def _findings(console: Console, found: Sequence[Move], gone: bool) -> None:
    rows = [(x.finding + ("?" if x.unsure else ""), str(x.tests), one_line(says(x), 300)) for x in found[:LISTED]]
    left = max(30, console.width - 11 - 6 - 4)
    table = Table(box=None, show_header=False, pad_edge=False)
    for size, justify in ((11, "left"), (4, "right"), (left, "left")):
        table.add_column(width=size, no_wrap=True, overflow="ellipsis", justify=justify)  # type: ignore[arg-type]
    for x, cells in zip(found, rows, strict=False):
        table.add_row(*(escape(clean(cell)) for cell in cells))
        if not gone:
            table.add_row("", "", f"[dim]{escape(one_line(moves(x), 300))}[/dim]")
    console.print(table)
    if len(found) > LISTED:
        console.print(f"  and {len(found) - LISTED} more (--format markdown)")


def _support(console: Console, x: Between, kind: str) -> None:
    found = [y for y in x.support if y.kind == kind]
    if found:
        console.print(f"\n[bold]{kind}[/bold] [dim]({MEANINGS[kind]})[/dim]")
    for y in found[:LISTED]:
        console.print(
            f"  {len(y.tests):>4}  {escape(clean(y.operator))}: {escape(one_line(y.reason, 100))}", soft_wrap=True
        )
    if len(found) > LISTED:
        console.print(f"  and {len(found) - LISTED} more (--format markdown)")


def _operators(console: Console, x: Between) -> None:
    """Show the operators with most regressions, then with most of anything, as tests."""
    kinds = [kind for kind in KINDS if any(kind in told for told in x.operators.values())]
    if not kinds:
        return
    table = Table("operator", *(Column(kind, justify="right") for kind in kinds), box=None, pad_edge=False)
    table.header_style = "dim"
    for name in ordered(x)[:LISTED]:
        table.add_row(escape(clean(name)), *(str(x.operators[name].get(kind, "")) for kind in kinds))
    console.print(f"\n[bold]By operator[/bold], tests; {min(LISTED, len(x.operators))} of {len(x.operators)}")
    console.print(table)


def ordered(x: Between) -> list[str]:
    """Return the operators, those with most regressions first, then those with most tests that differ at all."""

    def worst(name: str) -> tuple[int, int, str]:
        told = x.operators[name]
        differ = sum(count for kind, count in told.items() if kind != STILL)
        return -sum(told.get(kind, 0) for kind in REGRESSIONS), -differ, name

    return sorted(x.operators, key=worst)


def _tests(console: Console, x: Between) -> None:
    listed = sorted((y for y in x.tests if y.kind != SAME), key=lambda y: (KINDS.index(y.kind), y.operator, y.test))
    if listed:
        console.print("\n[bold]Tests[/bold]")
    for y in listed:
        of = " ".join(dict.fromkeys(filter(None, (y.finding_before, y.finding_after))))
        console.print(
            escape(clean(f"{y.kind:<19} {y.test}  {y.operator}  {y.before} → {y.after}  {of}  {y.origin}")),
            soft_wrap=True,
        )


# ---------------------------------------------------------------------- files


def markdown(diff: Diff) -> str:
    """Return tables to paste into an issue or a page."""
    lines = ["# opera diff", "", f"{verdict(diff)}; opera {diff.opera_version}", ""]
    for x in diff.frontends:
        lines += [f"## {title(x)}", "", f"{compared(x)}.", ""]
        lines += [f"- {clean(note)}" for note in (*x.differs, *x.notes)]
        if not x.compared:
            continue
        lines += ["", row("", "findings", "tests", "meaning"), row("---", "---:", "---:", "---")]
        lines += [row(kind, str(n or "-"), str(tests), MEANINGS[kind]) for kind, (n, tests) in x.counts.items()]
        lines += ["", row("before → after", "tests"), row("---", "---:")]
        lines += [row(move, str(n)) for move, n in sorted(x.verdicts.items(), key=lambda y: -y[1])]
        for kind in KINDS:
            if found := x.of(kind):
                lines += ["", f"### {kind}", "", row(*HEAD), row("---", "---", "---:", "---", "---")]
                lines += [row(y.finding, y.operator, str(y.tests), moves(y), one_line(says(y), 300)) for y in found]
            if support := [y for y in x.support if y.kind == kind]:
                lines += [
                    "",
                    f"### {kind}, by operator",
                    "",
                    row("operator", "tests", "reason"),
                    row("---", "---:", "---"),
                ]
                lines += [row(y.operator, str(len(y.tests)), one_line(y.reason, 160)) for y in support]
        kinds = [kind for kind in KINDS if any(kind in told for told in x.operators.values())]
        if kinds:
            lines += ["", "### By operator, tests", "", row("operator", *kinds), row("---", *["---:"] * len(kinds))]
            lines += [row(n, *(str(x.operators[n].get(kind, "")) for kind in kinds)) for n in ordered(x)]
        if listed := [y for y in x.tests if y.kind != SAME]:
            lines += [
                "",
                "### Tests",
                "",
                row("kind", "test", "operator", "before", "after", "findings", "made of"),
                row(*["---"] * 7),
            ]
            for y in sorted(listed, key=lambda y: (KINDS.index(y.kind), y.operator, y.test)):
                of = " ".join(dict.fromkeys(filter(None, (y.finding_before, y.finding_after))))
                lines.append(row(y.kind, y.test, y.operator, y.before, y.after, of, y.origin))
        lines.append("")
    lines += [f"- not compared: {clean(note)}" for note in diff.notes]
    return "\n".join([*lines, ""])


def html(diff: Diff) -> str:
    """Return one file that needs nothing else."""
    from markupsafe import Markup

    jinja, folder = environment()
    return jinja.get_template("diff.html.j2").render(
        diff=diff, style=Markup((folder / "style.css").read_text(encoding="utf-8")), kinds=KINDS, meanings=MEANINGS,
        regressions=REGRESSIONS, same=SAME, title=title, compared=compared, verdict=verdict(diff), moves=moves, says=says,
        ordered=ordered,
    )  # fmt: skip


def json(diff: Diff) -> str:
    """Return one object, which docs/diff.schema.json describes."""
    return msgspec.json.format(msgspec.json.encode(diff), indent=1).decode()


def schema_text() -> str:
    """Return the text of docs/diff.schema.json."""
    schema: dict[str, Any] = msgspec.json.schema(Diff)
    return msgspec.json.format(msgspec.json.encode(schema), indent=1).decode()


FORMATS: dict[str, Callable[[Diff], str]] = {"terminal": terminal, "json": json, "markdown": markdown, "html": html}
