"""The dispatcher of all sources: units of work go to capture children, workers of one opera.pool, and come back as reports."""

from __future__ import annotations

import re
import shutil
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack
from importlib.metadata import entry_points
from pathlib import Path
from typing import TypeAlias, TypeVar

import msgspec

from opera import capture, temporary
from opera.capture.child import Hooks, Needs, Ran
from opera.pool.interface import JobPool
from opera.pool.pool import Pool
from opera.pool.workers import ABORT, OUT_OF_MEMORY, STARVED, UNAVAILABLE, Group, Identity, Result
from opera.pool.workers import DONE as ANSWERED
from opera.pool.workers import TIMEOUT as TOO_LONG
from opera.sources import DIED, FAILED, FAILED_IMPORT, TIMEOUT, Unit, UnitReport
from opera.store.folders import Folders

CHILD = "opera.capture.child"
MEMORY = 12 << 30
"""Bytes that a child may grow by."""
ENVIRONMENT: dict[str, str | None] = {
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    "PYTHONDONTWRITEBYTECODE": "1",  # never write into somebody's checkout
    "PYTHONHASHSEED": "0",  # two extractions see the same order of sets
    "PYTEST_ADDOPTS": None,
    "PYTEST_PLUGINS": None,
    "PYTEST_CURRENT_TEST": None,
    "PYTHONPATH": None,
    "PYTHONWARNINGS": None,
    "COVERAGE_PROCESS_START": None,
}
AHEAD = 2
"""Units for each child, the one that it runs among them, that are taken from the source at a time."""
MOMENT = 0.001
"""Seconds after which children are looked after again while something else is done."""
T = TypeVar("T")
Open: TypeAlias = Callable[[Folders, int], JobPool]
"""Opens the pool of an extraction, given the driver's folder that spools come to, and child processes at a time."""


def local(files: Folders, workers: int) -> JobPool:
    """Open the pool of this machine."""
    return Pool({}, workers=workers)


class Dispatcher:
    """Runs units and yields how each went, in their order. Use it in a `with` statement: at its end nothing is left.

    What it yields was not read yet: its spool and other files are removed when the iteration goes on.
    """

    def __init__(
        self, units: Iterator[Unit | None], *, workers: int, done: Collection[str] = (), open: Open = local
    ) -> None:
        self._units, self._workers, self._done, self._open = units, workers, frozenset(done), open
        self._places: deque[_Place] = deque()
        self._groups: dict[bytes, str] = {}
        self._running: Counter[str] = Counter()
        self._taken, self._waits, self._ended = 0, False, False
        self._further: Unit | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Dispatcher:
        with ExitStack() as stack:
            self._folder = stack.enter_context(temporary.folder("extract"))
            self._files = Folders.of(self._folder)
            self._pool = stack.enter_context(self._open(self._files, self._workers))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def __iter__(self) -> Iterator[tuple[Unit, UnitReport]]:
        while True:
            self._fill()
            if not self._places:
                return
            place = self._places[0]
            while place.report is None:
                self._take(next(self._pool.results()))
                self._fill()
            yield place.unit, place.report
            if self._further is None:
                self._places.popleft()
                shutil.rmtree(place.folder, ignore_errors=True)
            else:
                place.unit, place.report, self._further = self._further, None, None
                place.spool.unlink(missing_ok=True)
                self._submit(place)

    def go_on(self, unit: Unit) -> None:
        """Run this next in place of the unit that was yielded last: the files beside its plan are still there."""
        self._further = unit

    def meanwhile(self, things: Iterable[T]) -> Iterator[T]:
        """Yield things that take their time to be worked on, and keep the children busy in between."""
        last = time.monotonic()
        for thing in things:
            yield thing
            if time.monotonic() - last > MOMENT:
                for result in self._pool.poll():
                    self._take(result)
                self._fill()
                last = time.monotonic()

    def _fill(self) -> None:
        """Take units from the source while there are fewer than the workers can soon begin."""
        while self._running.total() < AHEAD * self._pool.room and not self._ended:
            if self._waits and self._places:
                return
            self._waits = False
            try:
                unit = next(self._units)
            except StopIteration:
                self._ended = True
                return
            if unit is None:
                self._waits = True
            elif unit.file not in self._done:
                self._taken += 1
                place = _Place(unit, self._folder / str(self._taken))
                self._places.append(place)
                self._submit(place)

    def _submit(self, place: _Place) -> None:
        unit = place.unit
        if unit.problem:
            place.report = UnitReport(
                source=unit.job.hooks.source, file=unit.file, status=FAILED_IMPORT, reason=unit.problem
            )
            return
        place.folder.mkdir(exist_ok=True)
        file = unit.job.file
        if unit.plan is not None:
            place.plan.write_bytes(unit.plan())
            file = str(place.plan)
        # Where the unit may be run elsewhere, the spool has a name there: here that is its path.
        spool = str(place.spool.relative_to(self._folder) if unit.needs is not None else place.spool)
        job = msgspec.structs.replace(unit.job, file=file, spool=spool)
        group = self._group(job.hooks, unit.needs)
        self._running[group] += 1
        self._pool.submit(group, job, seconds=unit.seconds, memory=MEMORY, tag=place, fresh=unit.alone, twice=False)

    def _group(self, hooks: Hooks, needs: Needs | None) -> str:
        """Return the pool's group of children with these hooks; others that have nothing to do give back their memory."""
        group = self._groups.setdefault(msgspec.json.encode(hooks), f"{hooks.source} {len(self._groups)}".strip())
        if group not in self._pool.groups:
            # The library is imported once, and children are forked; hooks are installed in each.
            modules = [point.module for point in entry_points(group=capture.GROUP, name=hooks.library)]
            made = Group(
                call=f"{CHILD}:run", bare=True, preload=(CHILD, *modules), growth=MEMORY // 2,
                env={**ENVIRONMENT, **self._files.environment()},
                identity=None if needs is None else Identity(f"{CHILD}:has", needs, True),
            )  # fmt: skip
            self._pool.add(group, made)
        for other in self._groups.values():
            if other != group and not self._running[other]:
                self._pool.release(other)
        return group

    def _take(self, result: Result) -> None:
        self._running[result.group] -= 1
        place: _Place = result.tag
        place.report = _report(place, result)


class _Place:
    """A unit that was taken, with its folder."""

    def __init__(self, unit: Unit, folder: Path) -> None:
        self.unit, self.folder = unit, folder
        self.spool, self.plan = folder / "spool", folder / "plan"
        self.report: UnitReport | None = None


def _report(place: _Place, result: Result) -> UnitReport:
    unit = place.unit
    report = UnitReport(
        source=unit.job.hooks.source, file=unit.file, status=FAILED, seconds=round(result.seconds, 3),
        spool=place.spool, plan=place.plan,
    )  # fmt: skip
    if result.status == ANSWERED:
        ran: Ran = result.decode(Ran)
        return msgspec.structs.replace(
            report, status=ran.status, reason=ran.reason, tests=ran.tests, failed=ran.failed, calls=ran.calls,
            left_out=ran.left_out, seconds=ran.seconds,
        )  # fmt: skip
    said = (result.message.strip().splitlines() or [""])[-1].strip()[:500]
    status, reason = {
        TOO_LONG: (TIMEOUT, f"still running after {unit.seconds:g} s"),
        STARVED: (TIMEOUT, said or "the machine did not serve it in time"),
        ABORT: (DIED, _ending(result.exit)),
        OUT_OF_MEMORY: (DIED, f"it needed more than {MEMORY >> 30} GiB"),
        UNAVAILABLE: (FAILED, f"its process could not be started: {said}"),
    }.get(
        result.status, (DIED, f"the process was to end: {said}")
    )  # what is no Exception: SystemExit, KeyboardInterrupt
    exit = result.exit if result.status == ABORT else ""
    return msgspec.structs.replace(report, status=status, reason=reason + _tail(result.log), exit=exit)


def _ending(exit: str) -> str:
    if exit.startswith("exit "):
        return f"the process ended with exit code {exit.removeprefix('exit ')} in the middle of the file"
    return (
        f"killed by {exit}" if exit.startswith(("SIG", "signal ")) else f"it {exit.replace('its parent', 'its server')}"
    )


def _tail(log: str) -> str:
    """Return the last line that was printed, before what the interpreter prints of a fatal signal."""
    printed = re.split(r"^Fatal Python error: ", log, maxsplit=1, flags=re.MULTILINE)[0]
    lines = [line for line in printed.splitlines() if line.strip()]
    return f"; last output: {lines[-1].strip()[:300]}" if lines else ""


def how(report: UnitReport) -> str:
    """Return in few words how a call ended its process, given the report of a unit that died; SIGALRM ends what hangs."""
    if report.exit == "SIGALRM":
        return "does not end in time"
    return f"killed by {report.exit}" if report.exit.startswith(("SIG", "signal ")) else "ends the process"
