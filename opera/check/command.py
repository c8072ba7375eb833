"""`opera check`: record a program, rank what it calls, run that, and say which lines fail."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from rich.console import Console
from rich.markup import escape

from opera import compilers, temporary
from opera.capture.script import Command
from opera.check import lines, program
from opera.check.lines import NOT_RUN, Call, Line
from opera.compilers import settings
from opera.errors import UsageError
from opera.prioritize import order
from opera.programs.verdicts import Limits
from opera.report.words import clean, near_path, one_line
from opera.run import driver, environments
from opera.run.driver import Options
from opera.run.plan import Selection
from opera.run.progress import reporter
from opera.sources import record
from opera.store import runs, sites
from opera.store.workspace import Workspace
from opera.triage.reproducers import scripts

FOLDER = Path("results/check")
"""Where checks are kept, each in a folder named after its file."""
MODULES = 4
"""Modules that are named of a call."""
FORMATS = ("terminal", "json")


class Wanted(msgspec.Struct, frozen=True):
    """What the user asked for: no `compilers` means all that are installed, no `workspace` one that is named after the file.

    A compiler is given as `NAME` or `NAME=PYTHON`; `pythons` is then compiler → interpreter, and `compilers` names alone.
    `settings` of compilers are given as `NAME=VALUE`; `chosen` is then name → value.
    """

    library: str
    words: tuple[str, ...]
    compilers: tuple[str, ...] = ()
    pythons: dict[str, str] = {}
    workspace: Path | None = None
    temporary: bool = False
    workers: int = 2
    time_budget: float | None = None
    timeout: float = 30.0
    format: str = "terminal"
    settings: tuple[str, ...] = ()
    chosen: dict[str, str] = {}


class Check(msgspec.Struct, frozen=True):
    """What came of a check.

    Attributes:
        ending: How the program ended.
        frontends: Frontend → the compiler's version.
        workspace: The folder that it is kept in; empty where it was temporary.
        stopped: Why not all was run, empty where it was.
    """

    library: str
    ending: str
    frontends: dict[str, str]
    lines: tuple[Line, ...]
    workspace: str = ""
    stopped: str = ""

    @property
    def ended(self) -> bool:
        """Whether the program came to its end: one that failed would have called more."""
        return self.ending.endswith("exit code 0")

    @property
    def fails(self) -> bool:
        """Whether some call fails, or was not run; or the program failed."""
        return not self.ended or any(
            line.bad or any(call.verdict == NOT_RUN for call in line.calls) for line in self.lines
        )


def check(wanted: Wanted) -> bool:
    """Check a program and print what came of it; True if something fails. Raises UsageError for what cannot be checked."""
    if wanted.format not in FORMATS:
        raise UsageError(f"there is no format {wanted.format!r}", fix=f"choose from {', '.join(FORMATS)}")
    command = program.parse(wanted.library, wanted.words)
    names, pythons = environments.chosen(wanted.compilers, "", wanted.workspace or FOLDER)
    program.check_compilers(names, command.hooks.library)
    chosen = settings.parsed(wanted.settings, names or compilers.registered()) if wanted.settings else {}
    wanted = msgspec.structs.replace(wanted, compilers=names, pythons=pythons, chosen=chosen)
    with _folder(wanted, command) as folder, Workspace.open(folder, write=True) as workspace:
        found = _check(workspace, wanted, command)
        if not wanted.temporary:
            found = msgspec.structs.replace(found, workspace=str(folder))
    if wanted.format == "json":
        print(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
    else:
        show(found)
    return found.fails


@contextmanager
def _folder(wanted: Wanted, command: Command) -> Iterator[Path]:
    if wanted.temporary:
        with temporary.folder("check") as folder:
            yield folder
    else:
        yield wanted.workspace or FOLDER / program.title(command)


def _check(workspace: Workspace, wanted: Wanted, command: Command) -> Check:
    library = command.hooks.library
    say = reporter()  # its lines go to standard error, where those of the program may stand as well
    with say:
        say.say(
            f"recording what {command.arguments[0] if command.kind == 'module' else command.file} calls of {library}"
        )
    _, ending = record.recorded(workspace, command, timeout=None)
    instances = frozenset(x.instance for x in sites.of_extraction(workspace, record.key_of(command)))
    if not instances:
        call = "run it without opera; call the model once with example inputs, as `model(torch.randn(1, 3, 224, 224))`"
        model = command.kind == "module" and command.file in {module for _, module in program.MODELS.values()}
        raise UsageError(
            f"the program ({ending}) called no operator of {library} that can be recorded",
            cause="it failed before its model ran, it uses another library, or it computes in another process",
            fix="see above why the model does not run, and mend it" if model else call,
        )
    for _ in order.prioritize(
        workspace, "opera-wide", chosen=[library], compilers=_compilers(wanted, library), seed=None
    ):
        pass
    options = Options(
        compilers=wanted.compilers, libraries=(library,), pythons=wanted.pythons, workers=wanted.workers,
        time_budget=wanted.time_budget, selection=Selection(instances=instances), limits=Limits(wanted.timeout),
        chosen=wanted.chosen,
    )  # fmt: skip
    with reporter() as progress:
        progress.say(f"{ending}; {len(instances)} different call{'s' * (len(instances) != 1)} to be run")
        summary = driver.run(workspace, options, progress)
    scripts.write_all(workspace)
    environments = runs.environments(workspace, summary.run)
    versions = workspace.environments()
    stopped = "; ".join([summary.stopped, *(f"{name}: {why}" for name, why in sorted(summary.lost.items()))]).strip(
        "; "
    )
    return Check(
        library, ending, {name: str(versions[x]["version"]) for name, x in sorted(environments.items())},
        tuple(lines.of(workspace, record.key_of(command), environments)), stopped=stopped,
    )  # fmt: skip


def _compilers(wanted: Wanted, library: str) -> list[str]:
    return list(wanted.compilers) or [x for x in compilers.registered() if library in compilers.get(x).FRONTENDS]


# ---------------------------------------------------------------------- what is printed


def show(found: Check) -> None:
    """Print the lines that fail, each with what fails in it, then how many do."""
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    bad = [line for line in found.lines if line.bad]
    for line in bad:
        console.print(
            f"\n[bold]{escape(where(line))}[/bold]  {escape(one_line(line.text, 200))}".rstrip(), soft_wrap=True
        )
        for call in line.calls:
            if call.bad:
                _call(console, call)
    console.print()
    for name, version in found.frontends.items():
        console.print(escape(_summary(found, name, version)), soft_wrap=True)
    if found.stopped:
        console.print(f"stopped: {escape(found.stopped)}; the same command goes on from there", soft_wrap=True)
    if not found.ended:
        console.print(
            f"the program itself failed ({escape(found.ending)}): what it would have called then is not known",
            soft_wrap=True,
        )
    findings = dict.fromkeys(call.finding for line in bad for call in line.calls if call.finding)
    if not found.workspace:
        console.print("kept nothing (--temporary)")
        return
    console.print(f"kept in {escape(found.workspace)}: the same command runs only what has changed", soft_wrap=True)
    if findings:
        first = next(iter(findings))
        option = f"--workspace {found.workspace}"
        console.print(f"next: opera show {first} {option}", soft_wrap=True)
        console.print(f"      opera repro {first} --verify {option}", soft_wrap=True)


def where(line: Line) -> str:
    """Return `model.py:23`, the path as seen from the working directory where it is below it."""
    if not line.file:
        return "(no line of the program)"
    return f"{near_path(line.file)}:{line.line}"


def _call(console: Console, call: Call) -> None:
    several = f", {len(call.instances)} parameter settings" if len(call.instances) > 1 else ""
    several += ", in training mode" if call.training else ""
    finding = f"  {call.finding}" if call.finding else ""
    console.print(
        f"  [red]{call.verdict}[/red]  {escape(clean(call.operator))} on {escape(call.frontend)}{several}{finding}",
        soft_wrap=True,
    )
    if call.sentence:
        console.print(f"    {escape(clean(call.sentence))}", soft_wrap=True)
    if call.modules:
        named, more = call.modules[:MODULES], len(call.modules) - MODULES
        console.print(
            f"    [dim]in {escape(', '.join(named))}{f' and {more} more' if more > 0 else ''}[/dim]", soft_wrap=True
        )


def _summary(found: Check, name: str, version: str) -> str:
    """Say of a frontend how many lines fail, and what the others show."""
    calls = [[call for call in line.calls if call.frontend == name] for line in found.lines]
    fail = sum(any(call.bad for call in line) for line in calls)
    shown = {name: call.verdict for line in calls for call in line for name in call.instances}
    counts = Counter(shown.values())
    told = ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
    many = len(calls) != 1
    passing = (f"all {len(calls)} lines pass" if many else "its line passes") + (
        "" if found.ended else ", of those that the program came to"
    )
    lines = f"{fail} of {len(calls)} line{'s' * many} fail{'s' * (fail == 1)}" if fail else passing
    if not fail and counts.get(NOT_RUN):
        lines = f"no line fails of those that were run, of {len(calls)}"
    return f"{name} {version}: {lines} ({len(shown)} different call{'s' * (len(shown) != 1)}: {told})"
