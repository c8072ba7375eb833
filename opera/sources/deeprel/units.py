"""Units that run plans: a call that hangs or kills its process is left out, and the plan goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from opera.capture.child import Hooks, Job
from opera.sources import DIED, Unit, UnitReport
from opera.sources.deeprel import plans as files
from opera.sources.deeprel.plans import Attempt, Plan
from opera.sources.dispatch import how
from opera.sources.suites import suites
from opera.store.rows import Crash

DRIVER = "opera.sources.deeprel.driver"
PATIENCE = 3600.0
"""Seconds that a plan may take; single calls have their own limit, and a signal of their own ends what exceeds it."""
MAX_DEATHS = 6
"""A plan that costs more processes than this is given up."""


class Ended(msgspec.Struct, frozen=True):
    """A plan that is at its end, and the calls that were left out of it."""

    plan: Plan
    crashes: tuple[Crash, ...]


def unit(source: str, file: str, library: str, make: Callable[[], Plan], crashes: tuple[Crash, ...] = ()) -> Unit:
    """Return the unit that runs the plan which `make` makes when its turn comes; `crashes` are the calls left out so far."""
    hooks = Hooks(source, library, suites.points(library))
    return Unit(
        file=file, job=Job(hooks=hooks, kind="driver", file="", spool="", driver=DRIVER),
        plan=lambda: msgspec.msgpack.encode(make()),  # JSON would make None of infinity
        seconds=PATIENCE, subject=crashes,
    )  # fmt: skip


def after(ran: Unit, report: UnitReport) -> Unit | Ended:
    """Return the unit that goes on without the call that has ended the process; what became of the plan where none has."""
    plan = msgspec.msgpack.decode(report.plan.read_bytes(), type=Plan)
    crashes: tuple[Crash, ...] = ran.subject
    blamed = _blamed(report.plan) if report.status == DIED else None
    if blamed is None or len(crashes) >= MAX_DEATHS or (blamed.pair, blamed.document) in plan.skip:
        return Ended(plan, crashes)
    crashes += (Crash(how(report), blamed.operator, {"arguments": f"{blamed.source} {blamed.instance}"}),)
    rest = msgspec.structs.replace(plan, skip=[*plan.skip, (blamed.pair, blamed.document)])
    return unit(report.source, ran.file, plan.library, lambda: rest, crashes)


def told(crash: Crash) -> str:
    """Return a line about a call that hung or killed its process."""
    return f"{crash.operator}, given the arguments of {crash.values['arguments']}: {crash.how}"


def _blamed(plan: Path) -> Attempt | None:
    """Return the call that ran when the process died."""
    try:
        return msgspec.json.decode(files.attempt_file(plan).read_bytes().strip(b"\0 "), type=Attempt)
    except (OSError, msgspec.DecodeError):
        return None
