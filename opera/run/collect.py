"""`opera coverage`: load every test of a frontend written in Python, in a pass of its own, and store what each covers."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from itertools import islice

import msgspec

from opera import compilers
from opera.errors import NotInstalled, UsageError
from opera.pool.pool import Pool
from opera.pool.workers import DONE, UNAVAILABLE, Result
from opera.programs.migrated import Artefact
from opera.programs.verdicts import Job, Limits
from opera.run import plan
from opera.run.groups import compiler_group, library_group
from opera.run.plan import InstalledFrontend, Item, Selection
from opera.run.prepare import VALID, Preparation
from opera.run.tasks import Export, Wrap
from opera.run.tracing import Traced, TraceJob
from opera.store import verdicts
from opera.store.rows import Covered
from opera.store.workspace import Workspace

LOOKAHEAD = 96
SAVE_SECONDS = 2.0
SAY_SECONDS = 5.0


class Summary(msgspec.Struct, frozen=True):
    """What a pass did: tests covered by it, those that were covered before, those without coverage, statements, seconds."""

    covered: int
    before: int
    failed: int
    statements: int
    seconds: float


def traceable(name: str) -> tuple[str, str, tuple[str, ...]]:
    """Return compiler, library and packages of a frontend. Raises UsageError for unknown and for compiled ones."""
    pairs = [
        (compiler, library) for compiler in compilers.registered() for library in compilers.get(compiler).FRONTENDS
    ]
    found = next((pair for pair in pairs if compilers.frontend_name(*pair) == name), None)
    if found is None:
        known = ", ".join(compilers.frontend_name(*pair) for pair in pairs)
        raise UsageError(f"there is no frontend called {name!r}", fix=f"choose from {known}")
    packages = _packages(*found)
    if not packages:
        python = [compilers.frontend_name(*pair) for pair in pairs if _packages(*pair)]
        raise UsageError(
            f"{name} is not written in Python: its statements cannot be traced",
            cause="a compiled frontend (`total` and `additional` are not to be had for it)",
            fix=f"frontends that can be traced: {', '.join(python)}",
        )
    return *found, packages


def _packages(compiler: str, library: str) -> tuple[str, ...]:
    """Return the packages of an importer that is written in Python, none where it is compiled."""
    return tuple(getattr(compilers.frontend(compiler, library), "PYTHON", ()))


def collect(
    workspace: Workspace, name: str, *, workers: int, limits: Limits, rerun: bool = False, only_run: bool = False
) -> Summary:
    """Store the coverage of the tests that have none, with `only_run` of those that this frontend was run on.

    Raises UsageError or NotInstalled where nothing can be traced.
    """
    compiler, library, packages = traceable(name)
    if library not in workspace.libraries():
        raise UsageError(f"the workspace holds no instances of {library}", fix=f"run `opera extract {library}` first")
    files = workspace.files
    groups = {name: compiler_group(compiler, library, files), f"library {library}": library_group(library, files)}
    with Pool(groups, workers=workers) as pool:
        pool.submit(name, compiler, seconds=300, call="opera.run.worker:describe")
        described = next(iter(pool.results()))
        if described.status != DONE or described.payload["error"]:
            why = described.message or (described.payload or {}).get("error", "") or described.log
            raise NotInstalled(
                f"the compiler {compiler} cannot be used: {why.strip()[-300:]}",
                fix=f"pip install {compilers.get(compiler).PACKAGE}",
            )
        description = {key: value for key, value in described.payload.items() if key != "error"}
        target = plan.installed(workspace, compiler, library, description)
        return _Pass(workspace, pool, target, packages, limits, rerun).go(_chosen(workspace, target, only_run=only_run))


def _chosen(workspace: Workspace, target: InstalledFrontend, *, only_run: bool) -> Iterator[Item]:
    found, _ = plan.queues(workspace, [target], Selection())
    items = plan.merged(queue.items() for queue in found)
    if not only_run:
        return items
    ran = verdicts.tests(workspace, target.name, target.environment)
    if not ran:
        raise UsageError(
            f"{target.name} was not run yet in this environment",
            fix=f"run `opera run --compiler {target.compiler}` first, or leave out --only-run",
        )
    return (item for item in items if item.test in ran)


class Trace(msgspec.Struct, frozen=True):
    """Trace an item's variant."""

    item: Item


class _Pass:
    def __init__(
        self,
        workspace: Workspace,
        pool: Pool,
        target: InstalledFrontend,
        packages: tuple[str, ...],
        limits: Limits,
        rerun: bool,
    ) -> None:
        self.workspace, self.pool, self.target, self.packages, self.limits = workspace, pool, target, packages, limits
        self.prepare: Preparation[Item] = Preparation(workspace, workspace.files, pool, limits)
        self.before = set() if rerun else set(workspace.coverage(target.name, target.environment))
        self.gathered: dict[str, Traced] = {}  # instance → what its variants covered so far
        self.unsaved: list[Covered] = []
        self.active = self.covered = self.failed = 0
        self.seen: dict[str, bytes] = {}  # file → union of bitmaps
        self.saved = self.said = self.started = time.monotonic()

    def go(self, items: Iterator[Item]) -> Summary:
        upcoming = (item for item in items if item.instance not in self.before)
        try:
            self._feed(upcoming)
            for result in self.pool.results():
                self._handle(result)
                self._feed(upcoming)
                self._save(force=False)
        finally:
            self._save(force=True)
        statements = sum(int.from_bytes(bits).bit_count() for bits in self.seen.values())
        seconds = time.monotonic() - self.started
        return Summary(self.covered, len(self.before), self.failed, statements, seconds)

    def _feed(self, upcoming: Iterator[Item]) -> None:
        for item in islice(upcoming, LOOKAHEAD - self.active):
            known = self.prepare.known(item.frontend.exporter, item.instance)
            if known is not None and known.status != VALID:
                continue
            self.active += 1
            if known is None:
                self.prepare.wrap(item.frontend.library, item.frontend.exporter, item.instance, item)
            else:
                self._advance(item)
        self.prepare.submit()

    def _handle(self, result: Result) -> None:
        if result.status == UNAVAILABLE:
            raise NotInstalled(f"{result.group} stopped working: {result.message.strip()[-500:]}")
        match result.tag:
            case Wrap() as task:
                for item, test in self.prepare.wrapped(task, result):
                    self._go_on(item, test is not None and test.status == VALID)
            case Export() as task:
                export, items = self.prepare.exported(task, result)
                for item in items:
                    self._go_on(item, export is not None)
            case Trace(item=item):
                self._traced(result, item)
            case other:
                raise TypeError(f"no task of a pass: {other}")

    def _go_on(self, item: Item, there: bool) -> None:
        """Trace an item that could be prepared; one that could not is left."""
        if there:
            self._advance(item)
        else:
            self.active -= 1

    def _advance(self, item: Item) -> None:
        """Trace the next variant whose artefact is there or can be made."""
        for place in range(item.variant, len(self.target.variants)):
            variant, here = self.target.variants[place], msgspec.structs.replace(item, variant=place)
            artefact = self.prepare.artefact(item.test, variant.artefact)
            if isinstance(artefact, Artefact):
                job = Job(item.test, self.target.compiler, self.target.library, variant.name, variant.artefact)
                self.pool.submit(
                    self.target.name,
                    TraceJob(job, self.packages),
                    seconds=self.limits.seconds,
                    memory=self.limits.memory,
                    tag=Trace(here),
                    call="opera.run.tracing:trace",
                )
                return
            if artefact is not None and not artefact.symptom:
                self.prepare.export(item.frontend.library, item.test, variant.artefact, here)
                return
        self._finish(item)

    def _traced(self, result: Result, item: Item) -> None:
        """Take in a trace; where the model was not loaded, the next variant covers more, as in `opera run`."""
        loaded = False
        if result.status == DONE:
            found = result.decode(Traced)
            loaded, known = found.loaded, self.gathered.get(item.instance)
            self.gathered[item.instance] = found if known is None else _joined(known, found)
        if loaded:
            self._finish(item)
        else:
            self._advance(msgspec.structs.replace(item, variant=item.variant + 1))

    def _finish(self, item: Item) -> None:
        self.active -= 1
        found = self.gathered.pop(item.instance, Traced({}, False, 0.0))
        self.failed += not found.files
        self.covered += bool(found.files)
        self.unsaved.append(Covered(item.instance, found.files, found.seconds))
        self.seen = union(self.seen, found.files)

    def _save(self, *, force: bool) -> None:
        now = time.monotonic()
        if self.unsaved and (force or now - self.saved >= SAVE_SECONDS):
            self.workspace.save_coverage(self.target.name, self.target.environment, self.unsaved)
            self.unsaved, self.saved = [], now
        if now - self.said >= SAY_SECONDS:
            self.said = now
            print(
                f"{self.covered} tests traced, {self.covered / (now - self.started):.0f}/s", file=sys.stderr, flush=True
            )


def _joined(first: Traced, second: Traced) -> Traced:
    return Traced(union(first.files, second.files), second.loaded, first.seconds + second.seconds)


def union(first: dict[str, bytes], second: dict[str, bytes]) -> dict[str, bytes]:
    """Return file → bitmap of the lines that either has."""
    from coverage.numbits import numbits_union

    return first | {file: numbits_union(first.get(file, b""), bits) for file, bits in second.items()}


def show(workspace: Workspace, name: str, *, workers: int, limits: Limits, rerun: bool, only_run: bool) -> None:
    """Collect, and say in a line what came of it."""
    done = collect(workspace, name, workers=workers, limits=limits, rerun=rerun, only_run=only_run)
    print(
        f"{name}: {done.covered} tests traced ({done.before} were before, {done.failed} cover nothing),"
        f" {done.statements} statements, {done.seconds:.0f} s"
    )
    print("next: opera prioritize --strategy additional, or opera benchmark")
