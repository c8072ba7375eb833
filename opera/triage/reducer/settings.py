"""Which settings a reduced program needs to fail: those that opera makes and users need not, and the opset that an exporter
takes where nobody names one.

What decides is asked of one program by ways of its frontend (opera.compilers.Way): one more run for each.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Protocol

from opera import compilers
from opera.compilers import NEWEST, OPSET, UNSET
from opera.programs.program import Program
from opera.programs.verdicts import PASS, UNSUPPORTED, Outcome
from opera.run.probe import Question
from opera.triage.conditions import deciding, dtypes
from opera.triage.conditions.circumstances import Borne
from opera.triage.conditions.deciding import Decided, Look
from opera.triage.sentence import IS_SET
from opera.triage.shrink import smaller
from opera.triage.shrink.minimise import Spent


class Asking(Look, Protocol):
    """Tells what programs show, in other ways, too."""

    question: Question

    def by_way(self, program: Program, way: str) -> Outcome:
        """Return what a program shows in another way to run it. Raises Spent."""

    def go_on(self) -> None:
        """Take some more time for what is asked from now on."""


def needed(ask: Asking, program: Program) -> tuple[str, ...]:
    """Return the settings of opera's without each of which a program passes: one thread, a precision that users leave open."""
    found = list[str]()
    with suppress(Spent):
        [shown] = ask.look([program])
        ways = compilers.ways_of(ask.question.frontend, UNSET)
        asked = [x for x in ways if x.stage == "load" or shown.stage != "load"]
        if asked and not deciding.by_chance(ask, program):
            found += [f"{x.told[0]}{IS_SET}" for x in asked if ask.by_way(program, x.name).verdict == PASS]
    return tuple(found)


def at_newest(ask: Asking, program: Program, borne: Borne) -> tuple[Borne, tuple[str, ...]]:
    """Return what is told, of several dtypes those alone that share a cause with the program's own, and how it is told that an
    exporter writes no invalid file of these at its newest opset: from which one on, where it is not its default alone.

    Of a list of dtypes some may be what an older opset has not, and others what none has, which are two mistakes.
    """
    way = next(iter(compilers.ways_of(ask.question.frontend, (NEWEST,))), None)
    if way is None:
        return borne, ()
    ask.go_on()
    try:
        own = _right(ask, program, way.name)
        says = next((x for x in (*borne.decided.besides, *borne.circumstances) if _listed(program, x)), "")
        alike = {x for x in dtypes.members(says) if x == _own(program) or _as(ask, program, x, way.name) is own}
    except Spent:
        return borne, ()
    if says and alike != dtypes.members(says):
        borne = _told(borne, says, f"{dtypes.either(alike)} inputs")
    return borne, (_bound(ask, program) or way.told[0],) if own else ()


def _bound(ask: Asking, program: Program) -> str:
    """Return below which opset a program fails that is right at the newest; empty where it is right at an older one than the
    default, too, or there is no time to ask."""
    ways = compilers.ways_of(ask.question.frontend, (OPSET,))
    with suppress(Spent):
        first = next((x for x in ways if _right(ask, program, x.name)), ways[0])
        return "" if first is ways[0] else first.told[0]
    return ""


def _right(ask: Asking, program: Program, way: str) -> bool:
    """Whether a file is valid by a way, be it that no runtime takes it."""
    return ask.by_way(program, way).verdict in (PASS, UNSUPPORTED)


def _as(ask: Asking, program: Program, dtype: str, way: str) -> bool | None:
    """Whether a program fails by a way in another dtype, None where it does not fail so as it is run."""
    made = dtypes.of_other(program, _own(program), dtype)
    return _right(ask, made, way) if made is not None and ask.fails(ask.look([made])[0]) else None


def _listed(program: Program, says: str) -> bool:
    """Whether several dtypes are told by name, the program's own among them."""
    named = says not in dtypes.KINDS and not says.startswith((*dtypes.OTHERS,))
    return named and _own(program) in dtypes.members(says) and len(dtypes.members(says)) > 1


def _own(program: Program) -> str:
    return next((x.dtype for x in smaller.leaves(program)), "")


def _told(borne: Borne, before: str, now: str) -> Borne:
    def other(told: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(now if x == before else x for x in told)

    decided = Decided(borne.decided.parameters, other(borne.decided.besides))
    return borne._replace(decided=decided, circumstances=other(borne.circumstances))
