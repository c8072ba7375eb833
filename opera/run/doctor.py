"""`opera doctor`: what is there, what is missing, and whether each compiler is judged rightly.

The canaries are two tests of each library: one that must pass, and one with a planted wrong expectation that must be
caught; and what a frontend declares that it must not get through (opera.compilers.Canary). They go through the same wrapping,
workers, oracle and storage as every test, in a workspace of their own.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from opera import __version__, compilers, libraries, temporary
from opera.compilers import Canary
from opera.errors import NoAnswer, NotInstalled, OperaError
from opera.pool.pool import Pool
from opera.programs.verdicts import INCONSISTENT, PASS, SCREENED, TIMEOUT, UNSUPPORTED, Limits, Outcome
from opera.run import driver as stage
from opera.run.groups import NOTHING, groups
from opera.run.probe import Probe, Question
from opera.sources.suites import suites
from opera.store import tests, verdicts
from opera.store.rows import Verdict
from opera.store.workspace import Workspace

OK, MISSING, WRONG, SILENT = "ok", "missing", "wrong", "silent"
"""How a check went: SILENT is a compiler that is there and gave no answer, which mostly is the machine's doing."""
COLOURS = {OK: "green", MISSING: "yellow", WRONG: "red", SILENT: "red"}


Interpreter = Callable[[str], str]
"""Compiler → the interpreter that runs it, empty for the one that runs opera."""


def _here(compiler: str) -> str:
    return ""


class Check(msgspec.Struct, frozen=True):
    """One line of the report."""

    mark: str
    kind: str
    name: str
    version: str
    note: str


class _Silent:
    def say(self, text: str) -> None:
        return

    def begin(self, total: int) -> None:
        return

    def step(self, counts: Counter[str], done: int, efficiency: float) -> None:
        return


def show(
    workspace: Path,
    workers: int,
    wanted: Sequence[str] = (),
    *,
    quick: bool = False,
    interpreter: Interpreter = _here,
    chosen: Mapping[str, str] = NOTHING,
) -> bool:
    """Print a line for each check as it comes; False if a compiler that is installed is judged wrongly or cannot be run.

    `interpreter` says with which one a compiler is tried, where it is not the one that runs opera; `chosen` are values of their
    settings.
    """
    from rich.console import Console
    from rich.markup import escape

    console = Console(highlight=False, soft_wrap=True)
    seen = []
    names = list(dict.fromkeys(wanted)) or list(compilers.registered())
    for name in names:
        compilers.get(name)
    with console.status("looking") as status:
        for check in (
            _quickly(names, interpreter) if quick else _examined(names, workers, status.update, interpreter, chosen)
        ):
            seen.append(check)
            text = f"{check.kind:<9} {check.name:<18} {check.version:<14} {check.note}".rstrip()
            console.print(f"[{COLOURS[check.mark]}]{check.mark:<8}[/]{escape(text)}")
    held = workspace / "opera.sqlite"
    console.print(
        f"opera {__version__}; workspace {workspace}: {'there' if held.is_file() else 'none yet'}", style="dim"
    )
    if not any(check.kind == "compiler" and check.mark == OK for check in seen):
        console.print(f"{'None of these compilers' if wanted else 'No compiler'} can be used.", end=" ")
        console.print(escape('Try: pip install "opera[onnxruntime]"') if not wanted else "")
        return False
    return not any(check.mark in (WRONG, SILENT) for check in seen)


def examine(compiler: str, library: str, python: str) -> Check:
    """Run the canaries of one frontend with an interpreter."""
    with (
        temporary.folder("doctor") as folder,
        Workspace.open(folder, write=True) as own,
        Pool(groups([(compiler, library)], [library], lambda _: python, own.files), workers=1) as pool,
    ):
        return _compiler(compiler, library, own, 1, pool, python)


def _examined(
    names: Sequence[str],
    workers: int,
    tell: Callable[[str], None],
    interpreter: Interpreter,
    chosen: Mapping[str, str],
) -> Iterator[Check]:
    """Yield what is found: libraries, sources, and compilers with their canaries, which take the time."""
    found = [_library(name) for name in libraries.registered()]
    yield from found
    yield from _sources()
    there = [check.name for check in found if check.mark == OK]
    pairs = [(name, library) for name in names for library in compilers.get(name).FRONTENDS]
    for name, library in pairs:
        if library not in there:
            frontend = compilers.frontend_name(name, library)
            yield Check(MISSING, "compiler", frontend, "", f"needs the library {library}")
    pairs = [pair for pair in pairs if pair[1] in there]
    with (
        temporary.folder("doctor") as folder,
        Workspace.open(folder, write=True) as own,
        Pool(
            groups(pairs, there, interpreter, own.files, chosen), workers=workers
        ) as pool,  # each library once for all
    ):
        for place, (name, library) in enumerate(pairs):
            frontend = compilers.frontend_name(name, library)
            tell(f"running the canaries of {frontend}")
            for following in pairs[place + 1 : place + workers]:
                pool.warm(compilers.frontend_name(*following))
            yield _compiler(name, library, own, workers, pool, interpreter(name), chosen)
            pool.release(frontend)


def _quickly(names: Sequence[str], interpreter: Interpreter) -> Iterator[Check]:
    """Yield what is installed as far as files tell: nothing is imported."""
    yield from (_library(name) for name in libraries.registered())
    yield from _sources()
    distributions = importlib.metadata.packages_distributions()
    for name in names:
        module = compilers.get(name)
        if own := interpreter(name):
            yield Check(OK, "compiler", name, "", f"in an environment of its own, not tried: {own}")
            continue
        needed = dict.fromkeys(x.partition(".")[0] for x in module.PRELOAD if not x.startswith("opera."))
        if any(importlib.util.find_spec(package) is None for package in needed):
            yield Check(MISSING, "compiler", name, "", compilers.cure(name))
            continue
        versions = [importlib.metadata.version(x[0]) for x in map(distributions.get, needed) if x]
        note = f"installed, not tried: {', '.join(compilers.frontend_name(name, x) for x in module.FRONTENDS)}"
        yield Check(OK, "compiler", name, versions[-1] if versions else "", note)


def _library(name: str) -> Check:
    module = libraries.get(name)
    try:
        return Check(OK, "library", name, module.version(), "")
    except ImportError:
        return Check(MISSING, "library", name, "", f"pip install {module.PACKAGE}")


def _sources() -> Iterator[Check]:
    for name, source in suites.sources().items():
        held = ", ".join(suite.name for suite in source.suites)
        yield Check(OK, "source", name, "", f"{'equipped tests' if source.compiler else 'suites'}: {held}")


def _compiler(
    name: str,
    library: str,
    own: Workspace,
    workers: int,
    pool: Pool,
    python: str,
    chosen: Mapping[str, str] = NOTHING,
) -> Check:
    frontend = compilers.frontend_name(name, library)
    started = time.monotonic()
    try:
        mark, version, note = _canaries(name, library, own, workers, pool, python, chosen)
        return Check(mark, "compiler", frontend, version, f"{note} ({time.monotonic() - started:.0f} s)")
    except NotInstalled as error:
        fix = compilers.cure(name)
        absent = "ModuleNotFoundError" in error.what and not python
        lacks = error.what.partition(" ImportError: ")[2]  # in its adapter's own words
        return Check(MISSING, "compiler", frontend, "", fix if absent else lacks or f"{fix} ({error.what})")
    except NoAnswer as error:
        return Check(SILENT, "compiler", frontend, "", f"{error.what} ({error.cause or 'the machine is busy'})")
    except OperaError as error:
        return Check(WRONG, "compiler", frontend, "", error.what)


def _canaries(
    name: str,
    library: str,
    own: Workspace,
    workers: int,
    pool: Pool,
    python: str,
    chosen: Mapping[str, str] = NOTHING,
) -> tuple[str, str, str]:
    """Run the two tests, and the frontend's own; return a mark, the compiler's version, and what is to be said."""
    right, wrong = libraries.get(library).canaries()
    more: Sequence[Canary] = getattr(compilers.frontend(name, library), "canaries", tuple)()
    limits = Limits()
    frontend = compilers.frontend_name(name, library)
    own.add_captured([right, wrong, *(x.program for x in more if x.program is not None)])
    options = stage.Options(
        compilers=(name,), libraries=(library,), python=python, workers=workers, limits=limits, chosen=dict(chosen)
    )
    stage.run(own, options, _Silent(), pool)
    instances = tests.instances(own, status="valid")
    found: dict[str, Verdict] = {}
    for variant in compilers.frontend(name, library).VARIANTS[::-1]:
        for x in verdicts.of_variant(own, variant.name):
            if x.frontend == frontend and (instances[x.test] not in found or x.outcome.verdict != UNSUPPORTED):
                found[instances[x.test]] = x  # of the first route that the release supports at all
    version = next((str(x["version"]) for x in own.environments().values() if x["compiler"] == name), "")
    passed, caught = found.get(right.program.id), found.get(wrong.program.id)
    if any(x is not None and x.outcome.verdict == TIMEOUT for x in (passed, caught)):
        return SILENT, version, f"did not answer in {limits.seconds:g} s: the machine is busy, or the compiler hangs"
    if passed is None or passed.outcome.verdict != PASS:
        return WRONG, version, f"the canary that must pass: {_seen(passed.outcome if passed else None)}"
    if caught is None or caught.outcome.verdict not in (INCONSISTENT, SCREENED):
        return WRONG, version, f"the planted wrong answer was not caught: {_seen(caught.outcome if caught else None)}"
    for canary in more:
        program = right if canary.program is None else canary.program
        outcome = found[program.program.id].outcome if program.program.id in found else None
        if canary.way and outcome is not None:
            probe = Probe(own.root, interpreter=lambda _: python, chosen=lambda _: chosen, limits=limits, pool=pool)
            outcome = probe(Question(frontend=frontend, test=found[program.program.id].test, way=canary.way))
        if outcome is None or outcome.verdict != canary.verdict or canary.symptom not in ("", outcome.symptom):
            return WRONG, version, f"{canary.about}: {_seen(outcome)}"
    told = "".join(f", {canary.about}" for canary in more)
    return OK, version, f"canaries: right answer passes, planted wrong answer is caught{told}"


def _seen(outcome: Outcome | None) -> str:
    return " ".join(f"{outcome.verdict} {outcome.message}".split())[:200] if outcome else "no verdict"
