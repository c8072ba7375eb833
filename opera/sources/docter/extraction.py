"""Inputs from constraints at work: one unit an API, which goes on with the next input where one has killed its process."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from opera.capture.child import Hooks, Job
from opera.programs.program import Captured
from opera.sources import DIED, DONE, Finished, Totals, Unit, UnitReport
from opera.sources.dispatch import how
from opera.sources.docter import driver, files
from opera.sources.docter.constraints import Api
from opera.sources.docter.driver import Attempt, Plan, Result
from opera.sources.docter.files import Unread
from opera.sources.docter.tell import Summary
from opera.sources.suites import suites
from opera.store.rows import Crash
from opera.store.workspace import Workspace

SOURCE = "docter"
"""The migration source that provenances name."""
DRIVER = "opera.sources.docter.driver"
INPUTS = 40
"""Inputs for each API, unless --count says otherwise."""
DEATHS = 3
"""An API that killed its process so often is left at that."""
PATIENCE = 300.0
"""Seconds that one API may take beyond what its inputs may."""
T = TypeVar("T")


class Work(msgspec.Struct, frozen=True):
    """What is to be done: one API of one library, with inputs that were made elsewhere if there are any."""

    library: str
    api: Api
    given: list[dict[str, object]] | None = None

    @property
    def digest(self) -> str:
        """What makes an API worth doing again: other constraints, or other inputs."""
        form = msgspec.json.encode([files.document(self.api), self.given], order="sorted", enc_hook=repr)
        return hashlib.sha256(form).hexdigest()[:8]


class Settings(msgspec.Struct, frozen=True):
    """How inputs are made: see opera.sources.docter.driver.Plan; `timeout` is for one input, None for the driver's own."""

    count: int
    seed: int
    violating: bool
    timeout: float | None


class Tries(msgspec.Struct):
    """What has become of one API so far."""

    plan: Plan
    result: Result
    crashes: list[Crash]


class Inputs:
    """See opera.sources.Extraction."""

    things = "APIs"

    def __init__(self, works: list[Work], unread: list[Unread], origin: str, settings: Settings) -> None:
        self.settings = settings
        self.works = {f"{work.api.file}@{work.digest}": work for work in works}
        libraries = sorted({work.library for work in works})
        installed = ", ".join(f"{name} {suites.version_of(name)}" for name in libraries)
        inputs = f"{settings.count} inputs, seed {settings.seed}" + (", violating" if settings.violating else "")
        self.key = f"{SOURCE} {origin} on {installed}: {inputs}"
        self.about = {
            "target": origin, "name": SOURCE, "version": installed, "installed": installed, "equipped": ""
        }  # fmt: skip
        self.summary = Summary(settings.violating, unread)

    def names(self) -> Collection[str]:
        return self.works

    def units(self) -> Iterator[Unit]:
        """Yield the APIs in order; libraries one after the other, so that a child needs only one."""
        for file, work in self.works.items():
            settings = self.settings
            plan = Plan(
                work.library, work.api, settings.seed, settings.count, 0, settings.violating, work.given,
                settings.timeout or driver.SECONDS,
            )  # fmt: skip
            yield self._unit(file, Tries(plan, Result(), []))

    def _unit(self, file: str, tries: Tries) -> Unit:
        plan = tries.plan
        hooks = Hooks(SOURCE, plan.library, suites.points(plan.library))
        inputs = plan.count if plan.given is None else len(plan.given)
        return Unit(
            file=file, title=plan.api.file, job=Job(hooks=hooks, kind="driver", file="", spool="", driver=DRIVER),
            plan=lambda: msgspec.msgpack.encode(plan),
            seconds=PATIENCE + inputs * plan.seconds,  # an input that hangs ends its process by a signal of its own
            subject=tries,
        )  # fmt: skip

    def insert(self, workspace: Workspace, records: Iterable[Captured]) -> int:
        """Inputs that violate constraints are no tests of compilers."""
        return 0 if self.settings.violating else workspace.add_captured(records)

    def told(self, unit: Unit, report: UnitReport) -> Unit | Finished:
        """After an input that killed its process, go on with the next one."""
        tries: Tries = unit.subject
        attempt, result = _left(report.plan)
        tries.result.join(result)
        tries.result.operator = tries.result.operator or (attempt.operator if attempt else "")
        if report.status == DIED and attempt is not None:
            tries.crashes.append(Crash(how(report), attempt.operator, attempt.values, attempt.violates))
            tries.plan = msgspec.structs.replace(tries.plan, start=attempt.number + 1)
            if len(tries.crashes) < DEATHS:
                return self._unit(unit.file, tries)
            reason = f"{len(tries.crashes)} inputs ended the process; the rest was not tried"
            report = msgspec.structs.replace(report, status=DONE, reason=reason)
        total = tries.result
        report = msgspec.structs.replace(report, tests=total.taken + total.refused, failed=total.refused)
        self.summary.add(unit.title, total, tries.crashes, report)
        return Finished(
            report=report, document={"result": msgspec.to_builtins(total)},
            replaces=f"{unit.title}@", crashes=tries.crashes,
        )  # fmt: skip

    def progress(self, totals: Totals) -> str:
        return f"{totals.units} APIs, {self.summary.inputs} inputs, {totals.new} instances"

    def tell(self, totals: Totals) -> bool:
        self.summary.show(totals)
        return bool(self.summary.taken or (self.settings.violating and self.summary.inputs))


def _left(plan: Path) -> tuple[Attempt | None, Result]:
    """Return the input that ran last, and what became of this plan; their files are removed, for a plan that goes on."""
    attempt = _read(driver.attempt_file(plan), Attempt)
    result = _read(driver.result_file(plan), Result) or (attempt.so_far if attempt else Result())
    for file in (driver.attempt_file(plan), driver.result_file(plan)):
        file.unlink(missing_ok=True)
    return attempt, result


def _read(path: Path, kind: type[T]) -> T | None:
    with suppress(OSError, msgspec.DecodeError):
        return msgspec.json.decode(path.read_bytes(), type=kind)
    return None
