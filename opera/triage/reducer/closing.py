"""What is asked once findings are reduced: which of them are one cause, and whose fault each is."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

import msgspec

from opera.errors import OperaError
from opera.programs import values
from opera.programs.verdicts import ABORT, UNSTABLE
from opera.run.probe import Probe
from opera.store import examined
from opera.store.workspace import Workspace
from opera.triage import blame
from opera.triage.distinct import causes, kinship
from opera.triage.reducer.asking import Budget
from opera.triage.reducer.reduce import about
from opera.triage.reduction import Reduction
from opera.triage.reproducers import scripts
from opera.triage.reproducers.choice import choose
from opera.triage.shrink.minimise import Spent

WAITED = 120.0
"""Seconds that a script is waited for."""


def ask_rest(workspace: Workspace, seconds: float, tell: Callable[[str], None], workers: int = 2) -> None:
    """Ask whether findings are one cause, and whose fault they are, of which nobody asked yet, as far as `seconds` go."""
    last = time.monotonic() + seconds
    if seconds > 0:
        with Probe.of(workspace, workers=workers) as probe:
            if _unasked(workspace):
                ask_kin(workspace, probe, seconds)
            ask_blame(workspace, probe, scripts.members(workspace), last - time.monotonic(), tell)


class _Unasked(NamedTuple):
    """What is known of a reduction beside others, those that it was not asked about, and whether to ask what is not read."""

    known: kinship.Kin
    of: Reduction
    others: list[Reduction]
    unread: bool


def _unasked(workspace: Workspace, at: Collection[tuple[str, str]] | None = None) -> list[_Unasked]:
    """Return the reductions of which it is to be asked whether they are one cause with others.

    Args:
        at: Frontends and environments; None: all.
    """
    called = causes.causes(workspace)
    known = {(x.frontend, x.environment, x.of): x for x in kinship.stored(workspace)}
    of = [(called.of(finding, x.test), x) for finding, x in causes.reduced(workspace) if kinship.telling(x)]
    found = []
    for x, others, deciding in kinship.candidates(
        [(name, x) for name, x in of if at is None or (x.frontend, x.environment) in at]
    ):
        before = known.get((x.frontend, x.environment, x.stored)) or kinship.Kin(
            x.finding, x.environment, x.frontend, x.variant, x.test, x.stored
        )
        seen = {y.of for y in before.asked}
        left = [y for y in others if y.stored not in seen]
        new = deciding and before.names != kinship.readable(x)
        if left or new:
            found.append(_Unasked(before, x, left, new))
    return found


def ask_kin(workspace: Workspace, probe: Probe, seconds: float, at: Collection[tuple[str, str]] | None = None) -> None:
    """Ask whether findings are one cause, of each two reductions once. Store it.

    Args:
        seconds: What asking may take in all.
        at: Frontends and environments; None: all.
    """
    budget = Budget(seconds)
    for x in _unasked(workspace, at):
        try:
            made = _kin_of(probe, x.known, x.of, x.others, budget, unread=x.unread)
        except Spent:
            return
        except OperaError:  # a test's folder is gone
            continue
        if made != x.known:
            kinship.save(workspace, made)


def _kin_of(
    probe: Probe, before: kinship.Kin, x: Reduction, others: Sequence[Reduction], budget: Budget, *, unread: bool
) -> kinship.Kin:
    """Return what is known of a reduction once it was asked about beside others. Raises Spent."""
    ask = about(probe, x, budget)
    asked = [kinship.Asked(y.stored, kinship.answer((ask, x), (about(probe, y, budget), y))) for y in others]
    made = msgspec.structs.replace(before, asked=(*before.asked, *asked))
    if not unread:
        return made
    program = x.program().program
    defaults = {
        name: {key: values.decode(y) for key, y in of.items()}
        for name, of in probe.known(program.library, program).defaults.items()
    }
    parameters = tuple(sorted(defaults.get(program.operator, {})))
    return msgspec.structs.replace(
        made, unread=kinship.unread(ask, x, defaults), names=kinship.readable(x), parameters=parameters
    )


def ask_blame(
    workspace: Workspace, probe: Probe, names: Iterable[str], seconds: float, tell: Callable[[str], None]
) -> None:
    """Ask of reduced findings whose fault they are, one after the other, and so what other routes and compilers make of them.

    What was laid of the very program that a finding shows stands.
    """
    last = time.monotonic() + seconds
    wanted = done(workspace).intersection(names)
    for name, verdicts in sorted(scripts.members(workspace, wanted).items()) if wanted else ():
        if time.monotonic() > last:
            break
        with suppress(OperaError):  # a test's folder is gone
            for x in blame.examine(workspace, {name: verdicts}, probe):
                tell(f"{x.finding} blame: {x.verdict}: {x.because}")


def show(workspace: Workspace, probe: Probe, names: Iterable[str], seconds: float) -> None:
    """Run the scripts of reduced findings that end their process, or vary, and store in how many runs each shows it: what
    the workers see, whose fresh memory is filled, a process of its own may not.
    """
    last = time.monotonic() + seconds
    wanted = done(workspace).intersection(names)
    for name, verdicts in sorted(scripts.members(workspace, wanted).items()) if wanted else ():
        chosen = choose(workspace, verdicts)
        if chosen is None or chosen.verdict.outcome.verdict not in (ABORT, UNSTABLE):
            continue
        if time.monotonic() > last:
            break
        with suppress(OperaError):  # a test's folder is gone
            at, path, shown = chosen.verdict, scripts.write(workspace, name, verdicts), list[bool]()
            python = probe.interpreter(at.environment)
            for _ in range(scripts.times(at.outcome.verdict) if path is not None else 0):
                left = min(WAITED, last - time.monotonic())
                if path is not None and left > 0:
                    trial = scripts.verify(path, name, python=python, seconds=left)
                    shown += [trial.shown] if trial.code != scripts.ENDLESS else []  # else it says nothing
            document = msgspec.json.encode((sum(shown), len(shown)))
            examined.save(workspace, examined.SHOWN, examined.Examined(name, at.environment, at.test, document))


def done(workspace: Workspace, seconds: float = 0.0) -> set[str]:
    """Return the findings of which a member is reduced, as they are called now: to the end, or for so many seconds."""
    called = causes.causes(workspace)
    found = [x for x in causes.reduced(workspace) if x.reduction.finished or x.reduction.seconds >= seconds]
    return {called.of(finding, x.test) for finding, x in found}
