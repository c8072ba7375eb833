"""`opera findings` and `opera show`: what is known of one thing, for a terminal."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

import msgspec
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from opera import libraries
from opera.errors import UsageError, WorkspaceError, near
from opera.programs import migrated
from opera.programs.program import Program
from opera.programs.values import Value
from opera.programs.verdicts import PASS
from opera.report.chosen import Wanted, choose
from opera.report.operators import Operator, operators
from opera.report.page import Output, page
from opera.report.programs import lines
from opera.report.snippet import snippet
from opera.report.terminal import findings_lines, findings_table
from opera.report.words import clean, gist, in_words, near_path, one_line, readiness, status
from opera.store import defaults, instances, sites, tests, verdicts
from opera.store.rows import Test as TestRow
from opera.store.rows import Verdict
from opera.store.workspace import Workspace
from opera.triage import across
from opera.triage.disputed import disputed as all_disputed
from opera.triage.distinct import causes
from opera.triage.evidence import Evidence
from opera.triage.findings import Finding
from opera.triage.findings import findings as all_findings
from opera.triage.known import NONE, Known
from opera.triage.reducer import excused

MEMBERS = 10
MODULES = 4
"""Modules that are named of a line."""
OMISSION = "omission"
"""Detail of a refusal that names the rule of a table: `claimed` tells it in words."""
SAYS = 160
"""Characters of what a verdict says, where it is one of several."""
WIDE = 100
"""Columns that the table of causes needs; where there are fewer, each is two lines."""


def findings(workspace: Workspace, wanted: Wanted, known: Known = NONE, *, as_json: bool = False) -> None:
    """Print a line for each finding that is wanted, new ones first; with `as_json`, an array of all that is known of each."""
    everything = known.within_workspace(workspace).marked(all_findings(workspace))
    found = choose(everything, wanted, dict.fromkeys(name for name, _ in verdicts.frontends(workspace)))
    if as_json:
        print(msgspec.json.format(msgspec.json.encode(found), indent=1).decode())
        return
    console = _console()
    if not found:
        console.print(f"None of the {len(everything)} findings is so." if everything else "No findings.")
        return
    if os.isatty(1):
        console.print(findings_table(found, console.width))
    else:
        console.print(escape("\n".join(findings_lines(found))), soft_wrap=True)
    listed = sum(not x.new for x in found)
    told = "".join(f", {x}" for x in (readiness(found), f"{listed} known" if listed else "") if x)
    count = f"{len(found)} of {len(everything)}" if len(found) < len(everything) else str(len(found))
    what = "finding" if len(everything) == 1 else "findings"
    console.print(
        f"{count} {what}{told}. opera show ID tells all of one; opera repro ID writes its script", soft_wrap=True
    )


def by_cause(workspace: Workspace, frontend: str) -> None:
    """Print a line for each cause that findings of several frontends share."""
    console = _console()
    found = [x for x in across.across(workspace, all_findings(workspace)) if frontend in ("", *x.frontends)]
    if not found:
        console.print("No cause that several frontends share, as far as is known.")
        return
    if console.width < WIDE:
        for x in found:
            console.print(f"{x.id}  {escape(clean(x.operator))} on {escape(', '.join(x.frontends))}", soft_wrap=True)
            console.print(f"    findings {', '.join(x.findings)}", soft_wrap=True)
            console.print(f"    {escape(gist(x.sentence, 160))}")
        console.print(f"{len(found)} causes of several frontends: look for them in the library, or in its test, first")
        return
    table = Table(box=None, header_style="dim", pad_edge=False)
    for title in ("cause", "frontends", "findings", "operator", "says"):
        table.add_column(title, no_wrap=title != "says", overflow="fold")
    for x in found:
        cells = ("\n".join(x.frontends), "\n".join(x.findings), x.operator, gist(x.sentence, 160))
        table.add_row(x.id, *(escape(clean(cell)) for cell in cells))
    console.print(table)
    console.print(f"{len(found)} causes of several frontends: look for them in the library, or in its test, first")


def disputed(workspace: Workspace, frontend: str) -> None:
    """Print the library's own tests whose expected outputs independent implementations contradict, with who says what."""
    console = _console()
    compiler, _, library = frontend.rpartition("-")
    found = [x for x in all_disputed(workspace) if not frontend or (x.library == library and compiler in x.compilers)]
    for x in found:
        names = ", ".join(x.names[:3]) + (f" and {len(x.names) - 3} more" if len(x.names) > 3 else "")
        console.print(
            f"[bold]{escape(clean(x.operator))}[/bold]  {escape(x.library)}, test {x.test}: {escape(clean(names))}"
        )
        _pairs(
            console,
            ("agree against it", ", ".join(x.compilers)),
            ("they say", one_line(x.message, 300)),
            *((f"{name} refuses", one_line(why, 200)) for name, why in x.refused.items()),
        )
    told = "tests state what no implementation that could be asked agrees with, and two or more agree to contradict"
    console.print(f"{len(found)} {told}" if found else "No test's expectation is disputed.")


def show(workspace: Workspace, name: str, known: Known = NONE, *, details: bool = False) -> None:
    """Print what is known of the operator of that name, or of the finding, test or instance whose id begins so.

    Args:
        details: Of a test or an instance, all that was measured of each verdict as well.
    """
    console = _console()
    known = known.within_workspace(workspace)
    if called := operators(workspace, name):
        for operator in called:
            _operator(console, workspace, operator, known)
        return
    matches = _matches(workspace, name)
    if len(matches) != 1:
        raise _unclear(workspace, name, matches)
    kind, found = matches[0]
    if kind == "finding":
        _finding(console, workspace, found, known)
    else:
        {"test": _test, "instance": _instance}[kind](console, workspace, found, details=details)


def _console() -> Console:
    width = None if os.isatty(1) else 120
    return Console(highlight=False, width=width)


def _matches(workspace: Workspace, name: str) -> list[tuple[str, str]]:
    others = [(kind, found) for kind, found in instances.matching(workspace, name) if kind != "finding"] if name else []
    return [*(("finding", found) for found in causes.resolve(workspace, name)), *others] if name else []


def _unclear(workspace: Workspace, name: str, matches: list[tuple[str, str]]) -> UsageError:
    if matches:
        listed = ", ".join(f"{kind} {found}" for kind, found in matches[:5])
        return UsageError(
            f"{len(matches)} things have an id that begins with {name!r}: {listed}{', …' if len(matches) > 5 else ''}",
            fix="give more of the id",
        )
    names = {operator for library in workspace.libraries() for operator in workspace.operators(library)}
    return UsageError(
        f"nothing in {workspace.root} is called {name!r}: no operator, and no finding, test or instance",
        cause=near(name, names) or "another --workspace holds it, or its failures are gone",
        fix="`opera findings` and `opera operators` list what there is",
    )


def _operator(console: Console, workspace: Workspace, x: Operator, known: Known) -> None:
    console.print(f"[bold]{escape(clean(x.name))}[/bold]  {escape(x.library)}")
    related: dict[str, list[str]] = {"value": [], "status": []}
    for other in x.related:
        related[other.kind].append(f"{other.operator} ({other.agreed} of {other.tried})")
    _pairs(
        console,
        ("instances", ", ".join(f"{count} from {source}" for source, count in x.instances.items())),
        ("returns the same as", ", ".join(related["value"])),
        ("accepts the same as", ", ".join(name.partition(" ")[0] for name in related["status"])),
        *((frontend, ", ".join(f"{count} {name}" for name, count in told.items())) for frontend, told in x.tests),
    )
    found = [finding for finding in all_findings(workspace) if x.name in finding.operators]
    found = [finding for finding in found if finding.frontend.rpartition("-")[2] == x.library]
    if found:
        console.print(findings_table(known.marked(found), console.width))


def _finding(console: Console, workspace: Workspace, name: str, known: Known) -> None:
    found = known.marked(all_findings(workspace, only=name))
    if not found:
        console.print(f"{name}: its failures are gone (flaky, or run again with another outcome)")
        return
    for x in found:
        _finding_in(console, workspace, x)


def _finding_in(console: Console, workspace: Workspace, x: Finding) -> None:
    told = page(workspace, x)
    console.print(f"[bold]{escape(clean(told.sentence))}[/bold]")
    console.print(
        f"{x.id}  {escape(x.frontend)} {x.compiler_version}, {x.verdict} in {x.stage}: {escape(clean(x.symptom))}"
        f"  ({escape(status(x))})",
        style="dim",
    )
    _section(console, "Not to be filed as it stands", x.doubts)
    left = "" if told.finished else ", not to the end"
    within = f"called by {told.caller}, " if told.caller else ""
    source = f" from {told.origin}" if told.origin else ""  # of what is recorded of a script there is none
    shown = f"{within}reduced{source}{left}" if told.reduced else told.origin
    _section(console, f"The model ({shown or told.test})", told.model)
    _called(console, workspace, (tests.test(workspace, name).instance for name in x.members))
    marked = tuple(f"{p.name}={p.value}  ({p.mark})" for p in told.parameters)
    _section(console, "Parameters that decide, or are not the default", marked)
    _section(console, "One thing changed, all else as it is (of another shape with other numbers)", told.contrasts)
    _section(console, "Programs near it", told.around)
    _section(console, "This passes", told.passing)
    _section(console, "The exported file", told.written)
    for output in told.outputs:
        _section(console, f"Output {output.name}", _answers(output))
    _section(console, "It says", (told.says,) if told.says else ())
    _section(console, "Who agrees with whom", told.agreement)
    console.print()
    whole = ", not reduced" if told.reduced else ""
    _pairs(console, *((f"by variant {name}{whole}", verdict) for name, verdict in told.variants.items()))
    _pairs(console, *((f"on {name}", verdict) for name, verdict in told.elsewhere.items()))
    if told.blame is not None:
        console.print(f"\n[bold]Blame: {escape(told.blame.verdict)}[/bold]: {escape(clean(told.blame.because))}")
        came = told.blame.evidence
        _pairs(console, *((f"  {y.way}", _came(y, came[0] if n else None)) for n, y in enumerate(came)))
    console.print()
    _pairs(
        console,
        ("since when", told.since),
        ("known", in_words(x.known) if x.known else ""),
        ("also called", ", ".join(x.aliases)),
        ("behind it", ", ".join(f"{name} ({how})" for name, how in causes.behind(workspace, x.id, x.origins))),
        ("the same in", ", ".join(f"{name} ({operator})" for name, operator in told.twins)),
        ("converter", told.converter),
        ("specification", ", ".join(told.specification)),
        ("search first", told.search),
        ("script", str(workspace.root / x.reproducer) if x.reproducer else f"none yet: opera repro {x.id}"),
    )
    _members(console, workspace, x, told.test)


def _came(of: Evidence, first: Evidence | None = None) -> str:
    """Say what came of a question of blame; that it is what was found, where it is."""
    if first is not None and of.shows == first.shows:
        return of.remark or "the same"
    return f"{of.shows} ({of.remark})" if of.remark else of.shows


def _answers(output: Output) -> tuple[str, ...]:
    return (f"expected  {output.expected}", *((f"actual    {output.actual}",) if output.actual else ()))


def _called(console: Console, workspace: Workspace, instances: Iterable[str]) -> None:
    """Print the lines of programs that call these instances, each with the modules that do."""
    places: dict[tuple[str, int, str], dict[str, None]] = {}
    for x in sites.of_instances(workspace, instances):
        if x.file:
            places.setdefault((x.file, x.line, x.text), {})[x.module] = None
    told = []
    for (file, line, text), modules in places.items():
        names = [name for name in modules if name]
        more = f" and {len(names) - MODULES} more" if len(names) > MODULES else ""
        told.append(f"{near_path(file)}:{line}  {text}" + (f"  in {', '.join(names[:MODULES])}{more}" if names else ""))
    _section(console, "Called by", tuple(told[:MEMBERS]))


def _defaults(workspace: Workspace, program: Program) -> Mapping[str, Value]:
    """Return what parameters default to, as far as it is stored: asking would import the library."""
    module = libraries.get(program.library) if program.library in libraries.registered() else None
    if module is None:
        return {}
    try:
        known = defaults.known(workspace, program.library, defaults.version(program.library, module.exporter()))
    except ImportError:  # the library is not installed here
        return {}
    return known.get(program.operator) or {}


def _section(console: Console, title: str, lines: tuple[str, ...]) -> None:
    if lines:
        console.print(f"\n[bold]{escape(clean(title))}[/bold]")
    for line in lines:
        console.print(f"  {escape(clean(line))}", soft_wrap=True)


OF_ANOTHER = "without what decides it fails in another way: of another cause, it seems"
"""What is said of a member that the finding's cause does not explain."""


def _members(console: Console, workspace: Workspace, x: Finding, first: str) -> None:
    """Print the tests that fail so, the one that is shown first."""
    called = escape(clean(", ".join(x.operators[:8])))
    console.print(f"\n[bold]{len(x.members)} test{'' if len(x.members) == 1 else 's'}[/bold], of {called}:")
    listed = sorted(zip(x.members, x.origins, strict=True), key=lambda y: y[0] != first)
    members = list(causes.members(workspace, x.id, x.environment))
    apart = causes.apart(workspace, members) - {first}
    for test, origin in listed[:MEMBERS]:
        remark = f"  ({OF_ANOTHER})" if test in apart else ""
        console.print(f"  {test}  {escape(clean(origin))}{remark}")
    if len(x.members) > MEMBERS:
        console.print(f"  and {len(x.members) - MEMBERS} more (opera report --format json)")
    for verdict in members:
        details = verdict.outcome.details
        if details.get("predecessors"):
            console.print(f"{verdict.test} fails only after: {', '.join(details['predecessors'])}")
        if "victim" in details:
            harmed = ", ".join(details["victims"][:MEMBERS]) or details["victim"]
            console.print(f"{verdict.test} makes others fail in the same process: {harmed}")


def _test(console: Console, workspace: Workspace, name: str, *, details: bool) -> None:
    test = tests.test(workspace, name)
    _instance(console, workspace, test.instance, [test], details=details)


def _instance(
    console: Console, workspace: Workspace, name: str, of: Sequence[TestRow] | None = None, *, details: bool
) -> None:
    """Print an operator instance, and the verdicts on these tests of it, or on all; with `details`, all that was measured."""
    program = workspace.instance(name)
    told, origins = list(of or tests.of_instance(workspace, name)), workspace.provenances(name)
    title = f"test {told[0].id}" if of else f"instance {name}"
    console.print(f"[bold]{title}[/bold]  {escape(program.library)} {escape(clean(program.operator))}")
    for at in origins[:MEMBERS]:
        console.print(f"  from {escape(clean(f'{at.source}: {at.test} ({at.file})'))}", soft_wrap=True)
    if len(origins) > MEMBERS:
        console.print(f"  and {len(origins) - MEMBERS} more")
    _section(console, "The model", tuple(lines(program)))
    _called(console, workspace, [name])
    versions = {key: document["version"] for key, document in workspace.environments().items()}
    for test in told:
        console.print(f"\n[bold]Test {test.id}[/bold] {escape(clean(f'{test.status} {test.reason}'.strip()))}")
        found = list(verdicts.of_test(workspace, test.id))
        if details:
            for verdict in found:
                _measured(console, verdict, versions)
        elif found:
            console.print(_verdicts(found, versions))
        for line in excused.told(workspace, found, program.operator):
            console.print(escape(clean(line)), soft_wrap=True)
        if details or found:
            console.print()
        _made(console, workspace, test)
    if text := snippet(program, _defaults(workspace, program)):
        _section(console, "To paste", tuple(text.splitlines()))
    if not details:
        console.print(f"\nopera show {told[0].id if of else name} --details: all that was measured", style="dim")


def _verdicts(found: Iterable[Verdict], versions: Mapping[str, str]) -> Table:
    """Return a table of verdicts: on which frontend, by which variant, and and what it says, or why it is no fault."""
    table = Table(box=None, header_style="dim", pad_edge=False)
    for title in ("frontend", "variant", "verdict", "says"):
        table.add_column(title, no_wrap=title != "says", overflow="fold")
    for x in found:
        seen = x.outcome
        screened = [str(seen.details[key]) for key in ("screen", "by", "why") if seen.details.get(key)]
        says = "" if seen.verdict == PASS else ": ".join(screened) or gist(seen.message, SAYS)
        verdict = f"{seen.verdict} in {seen.stage}" if seen.stage and seen.verdict != PASS else seen.verdict
        on = f"{x.frontend} {versions.get(x.environment, '?').partition(',')[0]}"
        told = " ".join(filter(None, (x.finding, says)))
        table.add_row(*(escape(clean(cell)) for cell in (on, x.variant, verdict, told)))
    return table


def _made(console: Console, workspace: Workspace, test: TestRow) -> None:
    """Print what a test is made of: where it is, what is expected, and by whom."""
    if test.status != "valid":
        return
    directory = migrated.folder(workspace.tests_folder, test.id)
    try:
        manifest = migrated.read_manifest(directory)
    except WorkspaceError as error:
        console.print(escape(str(error)))
        return
    tolerance = f"; rtol {manifest.rtol}, atol {manifest.atol}" if manifest.rtol is not None else ""
    _pairs(
        console,
        ("expected", f"by the {manifest.reference}{tolerance}"),
        ("tags", ", ".join(manifest.tags)),
        ("folder", near_path(str(directory))),
        ("artefacts", ", ".join(f"{key} ({x.file})" for key, x in manifest.artefacts.items())),
        ("made by", ", ".join(f"{key} {version}" for key, version in manifest.exporter.items())),
    )


def _measured(console: Console, x: Verdict, versions: Mapping[str, str]) -> None:
    seen = x.outcome
    stage = f" in {seen.stage}" if seen.stage else ""
    spent = ", ".join(f"{stage} {seconds:.3f} s" for stage, seconds in seen.seconds.items())
    title = f"{x.frontend} {versions.get(x.environment, '?')}, {x.variant}: {seen.verdict}{stage} {seen.symptom}"
    console.print(f"\n[bold]{escape(clean(title))}[/bold]  [dim]{escape(spent)}[/dim]")
    told = [("finding", f"{x.finding} {x.confirmation}" if x.finding else ""), ("converter", seen.conversion_function)]
    told += [("at", seen.location), ("says", seen.message.strip())]
    kept = {key: x for key, x in seen.details.items() if key != OMISSION}
    told += [(key, str(value)) for key, value in kept.items() if value not in ("", None, [])]
    _pairs(console, *told)


def _pairs(console: Console, *pairs: tuple[str, str]) -> None:
    table = Table(box=None, show_header=False, pad_edge=False)
    half = console.width // 2  # what is told of long keys has as much room as they
    table.add_column(style="dim", no_wrap=all(len(key) <= half for key, _ in pairs), max_width=half)
    table.add_column(overflow="fold")
    for key, value in pairs:
        if value:
            indent = len(key) - len(key.lstrip())  # of lines that are folded, too
            table.add_row(Padding(escape(clean(key.lstrip())), (0, 0, 0, indent)), escape(clean(value)))
    console.print(table)
