"""`opera operators`: which operators each frontend passes, fails and does not support, by the tests that were run."""

from __future__ import annotations

import csv
import io
import shutil
from collections import Counter, defaultdict
from collections.abc import Sequence
from fnmatch import fnmatchcase

import msgspec
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from opera.errors import UsageError, near
from opera.programs.program import operators_of
from opera.programs.verdicts import FAILURES, PASS, SCREENED, UNEXPORTED, UNSUPPORTED
from opera.report.words import clean
from opera.store import verdicts
from opera.store.workspace import COMBINED, Workspace
from opera.triage.findings import version_key

FORMATS = ("terminal", "markdown", "csv", "json")
FAILS, PARTLY, REFUSED, PASSES, UNCLEAR, NOT_RUN = "fails", "partly", "unsupported", "passes", "unclear", "not run"
SHOWS = (FAILS, PARTLY, REFUSED, PASSES, UNCLEAR, NOT_RUN)
"""What an operator shows on a frontend: some test fails; some pass and the rest is unsupported; all are; all pass; only
verdicts that say nothing of the compiler (flaky, error); no test was run."""
STYLES = {FAILS: "red", PARTLY: "yellow", REFUSED: "yellow", PASSES: "green", UNCLEAR: "dim", NOT_RUN: "dim"}


class Frontend(msgspec.Struct, frozen=True):
    """A column: a frontend with the version of its compiler, in one environment."""

    name: str
    version: str
    environment: str


class Cell(msgspec.Struct, frozen=True):
    """How an operator fares on a frontend: tests by what they show, each by the worst over its variants."""

    shows: str
    tests: int = 0
    passes: int = 0
    fails: int = 0
    unsupported: int = 0
    other: int = 0

    @property
    def text(self) -> str:
        """Return `fails 3 of 12`."""
        part = {FAILS: self.fails, PARTLY: self.passes}.get(self.shows)
        if part is not None:
            return f"{self.shows} {part} of {self.tests}" if self.shows == FAILS else f"{part} of {self.tests} pass"
        return f"{self.shows} {self.tests}" if self.tests else "–"


class Operator(msgspec.Struct, frozen=True):
    """A row: an operator, its instances in the corpus, and how it fares on each frontend of its library."""

    library: str
    name: str
    instances: int
    cells: dict[str, Cell]


class Support(msgspec.Struct, frozen=True):
    """The table; cells are by `Frontend.environment` and name, joined by `@` (`tvm-onnx@1f…`)."""

    frontends: tuple[Frontend, ...]
    operators: tuple[Operator, ...]


def support(
    workspace: Workspace, libraries: Sequence[str], frontends: Sequence[str], operator: str, shows: str
) -> Support:
    """Return the table of a workspace. Raises UsageError where nothing in it is what is asked for."""
    held = workspace.libraries()
    _check(libraries, held, "library")
    if shows and shows not in SHOWS:
        raise UsageError(
            f"operators do not show {shows!r}", cause=near(shows, SHOWS), fix=f"choose from {', '.join(SHOWS)}"
        )
    environments, superseded = workspace.environments(), workspace.superseded()
    worst = _worst(workspace, superseded)
    ran = {key: str(environments[key[1]]["version"]) for key in worst}
    _check(frontends, sorted({name for name, _ in ran}), "frontend")
    chosen = [name for name in held if name in (libraries or held)]
    columns = [
        Frontend(name, version, environment)
        for (name, environment), version in sorted(ran.items(), key=lambda x: (x[0][0], version_key(x[1]), x[0][1]))
        if name in (frontends or [name]) and environments[environment]["library"] in chosen
    ]
    if frontends and not columns:
        raise UsageError(f"{', '.join(frontends)} is no frontend of {', '.join(chosen)}", fix="leave out --library")
    rows = [
        row
        for library in chosen
        for row in _rows(
            workspace, library, [x for x in columns if environments[x.environment]["library"] == library], worst
        )
        if fnmatchcase(row.name, operator) and shows in ("", *(cell.shows for cell in row.cells.values()))
    ]
    if not rows and operator != "*" and not shows:
        names = {name for library in chosen for name in workspace.operators(library)}
        raise UsageError(
            f"no operator in the workspace matches {operator!r}",
            cause=near(operator, names),
            fix="give a glob of whole names, as 'Conv*' or '*.conv2d'",
        )
    return Support(tuple(columns), tuple(rows))


def _check(wanted: Sequence[str], held: Sequence[str], kind: str) -> None:
    for name in wanted:
        if name not in held:
            raise UsageError(
                f"the workspace holds nothing of the {kind} {name!r}",
                cause=near(name, held),
                fix=f"choose from {', '.join(held)}" if held else "run `opera extract onnx` and `opera run` first",
            )


def _worst(workspace: Workspace, superseded: set[str]) -> dict[tuple[str, str], dict[str, dict[str, str]]]:
    """Return (frontend, environment) → instance → test → the worst verdict over its variants."""
    rank = {verdict: place for place, verdict in enumerate(COMBINED)}
    found: dict[tuple[str, str], dict[str, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    for x in verdicts.of_instances(workspace):
        if x.environment not in superseded:
            mine = found[x.frontend, x.environment][x.instance]
            mine[x.test] = min(mine.get(x.test, x.verdict), x.verdict, key=lambda verdict: rank[verdict])
    return found


def _rows(
    workspace: Workspace,
    library: str,
    columns: list[Frontend],
    worst: dict[tuple[str, str], dict[str, dict[str, str]]],
) -> list[Operator]:
    instances: Counter[str] = Counter()
    counts: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: {key(x): Counter() for x in columns})
    for name, called in workspace.corpus(library).values():
        for operator in set(operators_of(called)):
            instances[operator] += 1
            mine = counts[operator]
            for x in columns:
                mine[key(x)].update(worst[x.name, x.environment].get(name, {}).values())
    return [
        Operator(library, name, instances[name], {at: _cell(found) for at, found in counts[name].items()})
        for name in sorted(counts)
    ]


def key(frontend: Frontend) -> str:
    """Return what cells of a column are found by."""
    return f"{frontend.name}@{frontend.environment}"


def _cell(found: Counter[str]) -> Cell:
    fails = sum(found[verdict] for verdict in FAILURES)
    passes, unsupported = found[PASS] + found[SCREENED], found[UNSUPPORTED] + found[UNEXPORTED]
    other = found.total() - fails - passes - unsupported
    if fails:
        shows = FAILS
    elif passes:
        shows = PARTLY if unsupported else PASSES
    elif unsupported:
        shows = REFUSED
    else:
        shows = UNCLEAR if other else NOT_RUN
    return Cell(shows, found.total(), passes, fails, unsupported, other)


# ---------------------------------------------------------------------- formats


def render(found: Support, format: str, *, colour: bool = False) -> str:
    """Return the table as text. Raises UsageError for an unknown format."""
    if format not in FORMATS:
        raise UsageError(
            f"there is no format {format!r}", cause=near(format, FORMATS), fix=f"choose from {', '.join(FORMATS)}"
        )
    return {"terminal": lambda x: _terminal(x, colour), "markdown": _markdown, "csv": _csv, "json": _json}[format](
        found
    )


def _terminal(found: Support, colour: bool) -> str:
    """Return tables of as many frontends as the terminal's width holds."""
    out = io.StringIO()
    width = shutil.get_terminal_size((120, 24)).columns
    console = Console(file=out, width=width, force_terminal=colour, highlight=False)
    names = max((len(x.name) for x in found.operators), default=8)
    texts = {
        key(x): max([len(x.name), len(x.version), *(len(_text(y, x)) for y in found.operators)])
        for x in found.frontends
    }
    left = list(found.frontends)
    while left or not found.frontends:
        group, used = left[:1], names + sum(texts[key(x)] + 2 for x in left[:1])
        while len(group) < len(left) and used + texts[key(left[len(group)])] + 2 <= width:
            used += texts[key(left[len(group)])] + 2
            group.append(left[len(group)])
        left = left[len(group) :]
        heads = (Column(f"{x.name}\n{escape(x.version)}", no_wrap=True) for x in group)
        table = Table(Column("operator", overflow="fold"), *heads, box=None, pad_edge=False, header_style="bold")
        for row in found.operators:
            if cells := [row.cells.get(key(x)) for x in group]:
                shown = (f"[{STYLES[c.shows]}]{c.text}[/]" if c is not None else "" for c in cells)
                if any(c is not None for c in cells):
                    table.add_row(escape(clean(row.name)), *shown)
        console.print(table)
        if not found.frontends:
            for row in found.operators:
                console.print(f"{escape(clean(row.name))}  {row.instances} instances", soft_wrap=True)
            break
        if left:
            console.print()
    for x in found.frontends:
        counts = Counter(row.cells[key(x)].shows for row in found.operators if key(x) in row.cells)
        told = ", ".join(f"{counts[shows]} {shows}" for shows in SHOWS if counts[shows])
        console.print(f"{x.name} {escape(x.version)}: {counts.total()} operators: {told}", soft_wrap=True)
    if not found.frontends:
        console.print(f"{len(found.operators)} operators; nothing was run yet: opera prioritize && opera run")
    return out.getvalue()


def _text(row: Operator, frontend: Frontend) -> str:
    cell = row.cells.get(key(frontend))
    return cell.text if cell is not None else ""


def _markdown(found: Support) -> str:
    lines = [["operator", *(f"{x.name} {x.version}" for x in found.frontends)], ["---"] * (len(found.frontends) + 1)]
    lines += [[f"`{clean(row.name)}`", *(_text(row, x) for x in found.frontends)] for row in found.operators]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


RECORD = (
    "library", "operator", "instances", "frontend", "version", "environment", "shows", "tests", "passes", "fails",
    "unsupported", "other",
)  # fmt: skip
"""Columns of CSV, keys of JSON."""


def _records(found: Support) -> list[dict[str, str | int]]:
    """Return a record for each operator and frontend of its library."""
    return [
        dict(
            zip(
                RECORD,
                (
                    row.library, row.name, row.instances, x.name, x.version, x.environment, cell.shows, cell.tests,
                    cell.passes, cell.fails, cell.unsupported, cell.other,
                ),
                strict=True,
            )
        )
        for row in found.operators
        for x in found.frontends
        if (cell := row.cells.get(key(x))) is not None
    ]  # fmt: skip


def _csv(found: Support) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, RECORD, lineterminator="\n")
    writer.writeheader()
    writer.writerows(_records(found))
    return out.getvalue()


def _json(found: Support) -> str:
    return msgspec.json.format(msgspec.json.encode(_records(found)), indent=1).decode() + "\n"
