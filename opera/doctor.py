"""`opera doctor`: what is there, what is missing, and whether each compiler is judged rightly.

The canaries are two tests of each library: one that must pass, and one with a planted wrong expectation that must be
caught. They go through the same wrapping, workers, oracle and storage as every test, in a workspace of their own.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import msgspec

from opera import __version__, compilers, libraries
from opera.errors import OperaError
from opera.execute import run as stage
from opera.execute.records import INCONSISTENT, PASS, SCREENED
from opera.migrate import suites
from opera.workspace import Workspace


class Check(msgspec.Struct, frozen=True):
    """One line of the report: `ok` is None where something optional is missing."""

    kind: str
    name: str
    version: str
    ok: bool | None
    note: str


class _Silent:
    def __init__(self) -> None:
        self.notes: list[str] = []

    def say(self, text: str) -> None:
        self.notes.append(text)

    def begin(self, total: int) -> None:
        return

    def step(self, counts: Counter[str], done: int, efficiency: float) -> None:
        return


def examine(workers: int) -> list[Check]:
    """Return what was found: libraries, compilers with their canaries, sources."""
    checks = [_library(name) for name in libraries.registered()]
    there = [check.name for check in checks if check.ok]
    for name in compilers.registered():
        checks.extend(_compiler(name, there, workers))
    for name, source in suites.sources().items():
        held = ", ".join(suite.name for suite in source.suites)
        checks.append(Check("source", name, "", True, f"{'equipped tests' if source.compiler else 'suites'}: {held}"))
    return checks


def show(workspace: Path, workers: int) -> bool:
    """Print the report; False if a compiler that is installed is judged wrongly or cannot be run."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    with console.status("running the canaries"):
        checks = examine(workers)
    table = Table("", "what", "version", "", box=None, pad_edge=False, header_style="dim")
    mark = {True: "[green]ok[/green]", False: "[red]wrong[/red]", None: "[yellow]missing[/yellow]"}
    for check in checks:
        table.add_row(mark[check.ok], f"{check.kind} [bold]{check.name}[/bold]", check.version, check.note)
    console.print(table)
    held = workspace / "opera.sqlite"
    console.print(
        f"opera {__version__}; workspace {workspace}: {'there' if held.is_file() else 'none yet'}", style="dim"
    )
    if not any(check.kind == "compiler" and check.ok for check in checks):
        console.print('No compiler can be used. Try: pip install "opera[onnxruntime]"')
        return False
    return not any(check.ok is False for check in checks)


def _library(name: str) -> Check:
    module = libraries.get(name)
    try:
        return Check("library", name, module.version(), True, "")
    except ImportError:
        return Check("library", name, "", None, f"pip install {module.PACKAGE}")


def _compiler(name: str, there: list[str], workers: int) -> list[Check]:
    module = compilers.get(name)
    checks = []
    for library in module.FRONTENDS:
        frontend = compilers.frontend_name(name, library)
        if library not in there:
            checks.append(Check("compiler", frontend, "", None, f"needs the library {library}"))
            continue
        try:
            checks.append(_canaries(name, library, workers))
        except OperaError as error:
            missing = error.slug == "not-installed"
            note = f"pip install {module.PACKAGE}" if missing else error.what
            checks.append(Check("compiler", frontend, "", None if missing else False, note))
    return checks


def _canaries(name: str, library: str, workers: int) -> Check:
    right, wrong = libraries.get(library).canaries()
    with tempfile.TemporaryDirectory(prefix="opera-doctor-") as folder, Workspace.open(Path(folder), write=True) as own:
        own.add_captured([right, wrong])
        stage.run(own, stage.Options(compilers=(name,), libraries=(library,), workers=workers), _Silent())
        instances = {row[0]: row[1] for row in own.query("SELECT id, instance FROM tests WHERE status = 'valid'")}
        found = {instances[x.test]: x for x in own.verdicts("variant = ?", (_first_variant(name, library),))}
        version = next(iter(own.environments().values()))["version"]
    frontend = compilers.frontend_name(name, library)
    passed, caught = found.get(right.instance.id), found.get(wrong.instance.id)
    if passed is None or passed.verdict != PASS:
        seen = f"{passed.verdict} {passed.message}"[:200] if passed else "no verdict"
        return Check("compiler", frontend, version, False, f"the canary that must pass: {seen}")
    if caught is None or caught.verdict not in (INCONSISTENT, SCREENED):
        return Check("compiler", frontend, version, False, "the planted wrong answer was not caught")
    return Check("compiler", frontend, version, True, "canaries: right answer passes, planted wrong answer is caught")


def _first_variant(name: str, library: str) -> str:
    return compilers.get(name).FRONTENDS[library][0].name
