"""Specifications at work: one unit a version of an operator, which goes on behind a case that has ended its process."""

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
from opera.sources.sionnx import driver
from opera.sources.sionnx.driver import Attempt, Plan, Result
from opera.sources.sionnx.files import Unread, Work
from opera.sources.sionnx.tell import Summary
from opera.store.disagreements import NAME as DISAGREEMENTS
from opera.store.rows import Crash, Disagreement
from opera.store.workspace import Workspace

SOURCE = "sionnx"
"""The migration source that provenances name."""
LIBRARY = "onnx"
DRIVER = "opera.sources.sionnx.driver"
DEATHS = 8
"""A specification whose cases ended the process so often is left at that."""
PATIENCE = 120.0
"""Seconds that one specification may take beyond ..."""
EACH = 4.0
"""... so many for each case."""
T = TypeVar("T")


class Settings(msgspec.Struct, frozen=True):
    """How cases are made: see opera.sources.sionnx.driver.Plan; `timeout` is for one case, None for the driver's own."""

    mode: str
    count: int
    seed: int
    zero: bool
    nonfinite: bool
    timeout: float | None = None

    def __str__(self) -> str:
        more = [name for name in ("zero", "nonfinite") if getattr(self, name)]
        return ", ".join([self.mode, f"{self.count} cases", f"seed {self.seed}", *more])


class Tries(msgspec.Struct):
    """What has become of one specification so far."""

    work: Work
    plan: Plan
    result: Result
    crashes: list[Crash]
    deaths: list[str]
    disagreements: list[Disagreement]


class Cases:
    """See opera.sources.Extraction."""

    things = "specifications"

    def __init__(
        self, works: list[Work], unread: list[Unread], origin: str, installed: str, settings: Settings, each: bool
    ) -> None:
        self.settings = settings
        self.works = {f"{_title(work)}@{_digest(work)}": work for work in works}
        algorithms = ", with algorithms" if any(work.algorithm for work in works) else ""
        self.key = f"{SOURCE} {origin} on {installed}: {settings}{algorithms}"
        self.about = {
            "target": origin, "name": SOURCE, "version": installed, "installed": installed, "equipped": ""
        }  # fmt: skip
        self.summary = Summary(unread, each)

    def names(self) -> Collection[str]:
        return self.works

    def units(self) -> Iterator[Unit]:
        """Yield the specifications in order."""
        for file, work in self.works.items():
            settings = self.settings
            plan = Plan(
                text=work.text, file=work.file, name=work.name, operator=work.operator, since=work.since,
                mode=settings.mode, count=settings.count, seed=settings.seed, zero=settings.zero,
                nonfinite=settings.nonfinite, algorithm=work.algorithm, rest=work.rest,
                seconds=settings.timeout or driver.SECONDS,
            )  # fmt: skip
            yield self._unit(file, Tries(work, plan, Result(), [], [], []))

    def _unit(self, file: str, tries: Tries) -> Unit:
        plan = tries.plan
        hooks = Hooks(SOURCE, LIBRARY, {})
        return Unit(
            file=file, title=_title(tries.work),
            job=Job(hooks=hooks, kind="driver", file="", spool="", driver=DRIVER),
            plan=lambda: msgspec.msgpack.encode(plan),
            seconds=PATIENCE + EACH * plan.count,
            subject=tries,
        )  # fmt: skip

    def insert(self, workspace: Workspace, records: Iterable[Captured]) -> int:
        return workspace.add_captured(records)

    def told(self, unit: Unit, report: UnitReport) -> Unit | Finished:
        """After a case that ended its process, try it once more without ONNX Runtime, then go on with the next one."""
        tries: Tries = unit.subject
        attempt, result, disagreements = _left(report.plan)
        tries.result.join(result)
        tries.disagreements += disagreements
        if report.status == DIED and attempt is not None:
            by = "ONNX Runtime" if attempt.asked else "the checker or the evaluator"
            tries.deaths.append(f"{attempt.test}: {by}: {how(report)}")
            tries.crashes.append(Crash(f"{how(report)} in {by}", attempt.operator, {"arguments": attempt.test}))
            if attempt.asked:
                again = {"start": attempt.number, "unasked": (*tries.plan.unasked, attempt.number)}
            else:
                again = {"start": attempt.number + 1}
            tries.plan = msgspec.structs.replace(tries.plan, **again)
            if len(tries.deaths) < DEATHS:
                return self._unit(unit.file, tries)
            reason = f"{len(tries.deaths)} cases ended the process; the rest was not tried"
            report = msgspec.structs.replace(report, status=DONE, reason=reason)
        title = _title(tries.work)
        self.summary.add(title, tries.work.operator, tries.result, tries.deaths, report)
        document = {
            "result": msgspec.to_builtins(tries.result),
            DISAGREEMENTS: msgspec.to_builtins(tries.disagreements),
        }
        return Finished(report=report, document=document, replaces=f"{title}@", crashes=tries.crashes)

    def progress(self, totals: Totals) -> str:
        return f"{totals.units} of {len(self.works)} specifications, {totals.captured} tests, {totals.new} new"

    def tell(self, totals: Totals) -> bool:
        self.summary.show(totals)
        return totals.captured > 0


def _title(work: Work) -> str:
    return f"{work.operator}-{work.since} of {work.file}"


def _digest(work: Work) -> str:
    """Return what makes a specification worth doing again: another text."""
    parts = (work.name, work.text, work.algorithm, work.rest[0])
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:8]


def _left(plan: Path) -> tuple[Attempt | None, Result, list[Disagreement]]:
    """Return the case that was tried last, and what became of this plan; their files are removed, for a plan that goes on."""
    attempt = _read(driver.attempt_file(plan), Attempt)
    result = _read(driver.result_file(plan), Result) or (attempt.so_far if attempt else Result())
    disagreements: list[Disagreement] = []
    with suppress(OSError):
        for line in driver.disagreements_file(plan).read_bytes().splitlines():
            with suppress(msgspec.DecodeError):  # the process died while it wrote
                disagreements.append(msgspec.json.decode(line, type=Disagreement))
    for file in (driver.attempt_file(plan), driver.result_file(plan), driver.disagreements_file(plan)):
        file.unlink(missing_ok=True)
    return attempt, result, disagreements


def _read(path: Path, kind: type[T]) -> T | None:
    with suppress(OSError, msgspec.DecodeError):
        return msgspec.json.decode(path.read_bytes(), type=kind)
    return None
