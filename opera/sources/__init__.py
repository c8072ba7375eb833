"""Migration sources: where operator instances come from, cut into units of work that the engine runs.

A source says what its units are and what it makes of how they went. The engine has the rest: processes and their limits
(opera.sources.dispatch); what an earlier extraction finished, storage, progress and summary (opera.sources.engine).

Sources other than test suites are named in the entry-point group `opera.sources`: `opera extract --source NAME`.
"""

from __future__ import annotations

import inspect
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, TypeAlias, cast, get_type_hints

import msgspec

from opera import plugins
from opera.capture.child import Job, Needs
from opera.errors import CorpusError, UsageError
from opera.programs.program import Captured, parse_captured
from opera.store.rows import Crash
from opera.store.workspace import Workspace

GROUP = "opera.sources"
DONE, FAILED_IMPORT, FAILED, TIMEOUT, DIED = "done", "failed-import", "failed", "timeout", "died"
"""How a unit can go. Only what is done is passed over by a later extraction."""


class Unit(msgspec.Struct, frozen=True, kw_only=True):
    """What one capture child does in one go: what a fault in it costs, and what an interrupted extraction does again.

    Attributes:
        file: Its name among the files of the extraction.
        title: What progress calls it; `file` by default.
        job: What the child does. The engine fills in where it spools, and for a driver with a plan, what it is asked for.
        plan: Makes what a driver is asked for, when the unit's turn comes: the job's file is then that of these bytes. The
            driver may leave files beside it.
        seconds: What it may take, as of opera.pool.clock.
        alone: Whether it has a process of its own.
        problem: Why it cannot be run at all: it counts as failed to be imported.
        subject: The source's own.
        needs: What a machine must have to run it, the same of all units with these hooks. None of one that is run on the
            driver's machine alone, for it has a plan, or leaves files beside its spool.
    """

    file: str
    title: str = ""
    job: Job
    plan: Callable[[], bytes] | None = None
    seconds: float
    alone: bool = False
    problem: str = ""
    subject: Any = None
    needs: Needs | None = None


class UnitReport(msgspec.Struct, frozen=True, kw_only=True):
    """How a unit went.

    Attributes:
        source: The migration source that provenances name.
        file: The unit's.
        status: `done`; `failed-import`; `timeout`; `died`; `failed` (the runner itself could not work).
        reason: Why, and what else is to be said; empty for an untroubled `done`.
        exit: How the process died, in the pool's words: `SIGSEGV`, `exit 3`; empty where it did not die by itself.
        tests: Tests run; `failed` of them failed (which does not matter to capture).
        calls: Observations, recorded or not.
        left_out: Category → observations that were not recorded.
        seconds: Time that it took.
        spool: JSON lines of the captured records: also those captured before a file failed, died or timed out. It is removed
            when the source was told.
        plan: The file of the unit's plan, likewise.
        captured, new, damaged: Records stored; instances among them that are new; lines that cannot be read.
    """

    source: str
    file: str
    status: str
    reason: str = ""
    exit: str = ""
    tests: int = 0
    failed: int = 0
    calls: int = 0
    left_out: dict[str, int] = {}
    seconds: float = 0.0
    spool: Path = Path()
    plan: Path = Path()
    captured: int = 0
    new: int = 0
    damaged: int = 0

    def records(self, lines: Counter[bool] | None = None) -> Iterator[Captured]:
        """Yield what was captured, without damaged lines (a process that died may leave one).

        `lines` counts what was read: whole lines under True, damaged ones under False.
        """
        if not self.spool.is_file():
            return
        with self.spool.open("rb") as spool:
            for line in spool:
                record = None
                with suppress(CorpusError):
                    record = parse_captured(line) if line.endswith(b"\n") else None
                if lines is not None:
                    lines[record is not None] += 1
                if record is not None:
                    yield record

    def after(self, earlier: UnitReport) -> UnitReport:
        """Return the report of a unit that went on in this one: this one's, with the numbers of both."""
        both = {
            x: getattr(self, x) + getattr(earlier, x)
            for x in ("tests", "failed", "calls", "captured", "new", "damaged")
        }
        left_out = dict(Counter(earlier.left_out) + Counter(self.left_out))
        seconds = round(earlier.seconds + self.seconds, 3)
        return msgspec.structs.replace(self, left_out=left_out, seconds=seconds, **both)


class Finished(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be stored of a unit that is at its end.

    Attributes:
        report: How it went on the whole.
        document: What is stored beside the report's own numbers.
        replaces: Files whose names begin so are not kept; empty for none but the unit's.
        crashes: Calls that killed the library's process, or hung.
        candidates: (source, target, opera.sources.deeprel.plans.Tried) of candidates for a relation.
    """

    report: UnitReport
    document: dict[str, Any] = {}
    replaces: str = ""
    crashes: Sequence[Crash] = ()
    candidates: Sequence[tuple[str, str, object]] = ()


class Totals(msgspec.Struct):
    """What an extraction has come to so far.

    Attributes:
        units: Units that are at their end.
        tests, calls, captured, new, left_out: As of UnitReport, of all.
        trouble: Those that are not done.
        seconds: Since it began.
    """

    units: int = 0
    tests: int = 0
    calls: int = 0
    captured: int = 0
    new: int = 0
    left_out: Counter[str] = msgspec.field(default_factory=Counter)
    trouble: list[UnitReport] = []
    seconds: float = 0.0


class Extraction(Protocol):
    """What is stored under one key: a source at work.

    `units` is asked for the next unit when a child is free for it. So a source that learns from what it was told decides late;
    and where it must know how all went that it has yielded so far, it yields None: units after that are asked for when it was
    told of all before. It is told in the order of its units, whichever ended first.

    Attributes:
        key: Its identity: what is run, against what. The same command goes on where the last one of this key was interrupted.
        about: What the workspace holds of it (`target`, `name`, `version`, `installed`, `equipped`).
        things: What units are called on the terminal: `files`.
    """

    key: str
    about: dict[str, str]
    things: str

    def names(self) -> Collection[str]:
        """Return the files of the units that are known from the start: how many of them were done before is told."""

    def units(self) -> Iterator[Unit | None]:
        """Yield all units, done before or not."""

    def insert(self, workspace: Workspace, records: Iterable[Captured]) -> int:
        """Store what a unit captured, all or none; return how many instances are new."""

    def told(self, unit: Unit, report: UnitReport) -> Unit | Finished:
        """Take in how a unit went, its files still there; return the unit by which it goes on, of the same file, or its end."""

    def progress(self, totals: Totals) -> str:
        """Return what a line says now and then."""

    def tell(self, totals: Totals) -> bool:
        """Print the summary; return whether anything came of it. Raises SourceError where not one unit could be run."""


class Request(msgspec.Struct, frozen=True):
    """What the command line asks of any source.

    Attributes:
        target: A folder to import, or a name; empty for what the source makes itself.
        library: The library whose operators are called; empty where the target says it, or for all that are installed.
        timeout: Seconds that one unit of the source's work may take; None for the source's own limit.
    """

    target: str = ""
    library: str = ""
    timeout: float | None = None


Extractions: TypeAlias = Callable[[Workspace], Iterable[Extraction]]
"""What fulfils a request, one extraction after the other."""


class Source(Protocol):
    """What an entry point names: a function whose keyword-only parameters are the source's own options.

    Each is annotated with a type (bool, int, float, str), `msgspec.Meta(description=...)`, bounds if any, and has a default.
    Its module says as `MAKES` what it makes, in words, if it does not run what people wrote.
    """

    def __call__(self, request: Request, **options: Any) -> Extractions:
        """Check a request before there is a workspace. Raises UsageError, SourceError, NotInstalled."""


class Option(msgspec.Struct, frozen=True):
    """An option of one source: its name, type, default, what help says, bounds of a number; `annotation` is all of that."""

    name: str
    kind: Any
    default: Any
    help: str
    least: float | None
    most: float | None
    annotation: Any


def get(name: str) -> Source:
    """Import a source. Raises UsageError for an unknown name."""
    return cast(Source, plugins.load(GROUP, "migration source", name))


def makes(name: str) -> str:
    """Return what a source makes, in words; empty of what is none here, and of one that does not say."""
    if name not in plugins.registered(GROUP):
        return ""
    return str(getattr(sys.modules[get(name).__module__], "MAKES", ""))


def options(source: Source) -> list[Option]:
    """Return the options of a source's own."""
    hints = get_type_hints(source, include_extras=True)
    return [
        _option(x.name, hints[x.name], x.default)
        for x in inspect.signature(source).parameters.values()
        if x.kind is x.KEYWORD_ONLY
    ]


def _option(name: str, annotation: Any, default: Any) -> Option:
    meta = next((x for x in getattr(annotation, "__metadata__", ()) if isinstance(x, msgspec.Meta)), msgspec.Meta())
    kind = getattr(annotation, "__origin__", annotation)
    return Option(name, kind, default, meta.description or "", meta.ge, meta.le, annotation)


def begin(name: str, request: Request, given: dict[str, Any]) -> Extractions:
    """Check a request to a source, and what is given for its own options. Raises UsageError and what the source raises."""
    source = get(name)
    known = {option.name: option for option in options(source)}
    values = {}
    for option, value in given.items():
        try:
            values[option] = msgspec.convert(value, known[option].annotation)
        except msgspec.ValidationError as error:
            raise UsageError(
                f"--{option} {value}: {error}", fix=f"see `opera extract --source {name} --help`"
            ) from None
    return source(request, **values)
