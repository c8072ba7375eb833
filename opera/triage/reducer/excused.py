"""What a screen excuses is asked about once more where its excuse does not hold, at the end of a run.

A call that was excused as rounding of a sum (opera.oracle.conditioning.rounding) is asked about in float32 where its floats
are narrower, with a longer axis, and by a cast to its floats; one whose result a last bit of its inputs moves as far with
plain numbers; one that draws at random at settings that leave nothing to chance; and one whose result is undefined with numbers
for which it is defined. What is wrong then, and no screen explains,
becomes a test of its own (opera.triage.reducer.hidden.store).
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import NamedTuple

import msgspec
import numpy as np

from opera import libraries
from opera.errors import CorpusError, InvalidTest, NoAnswer, NotInstalled, UsageError
from opera.oracle import domains
from opera.oracle.conditioning import OF_SUMS
from opera.oracle.screens import ILL_CONDITIONED, NONDETERMINISTIC, UNDEFINED
from opera.programs.program import Instance, Operand, Program, parse
from opera.programs.values import RandomTensor, Tensor
from opera.programs.verdicts import INCONSISTENT, SCREENED, UNSTABLE, Outcome
from opera.run.probe import Probe, Question
from opera.store import examined, tests
from opera.store import verdicts as stored
from opera.store.rows import Verdict
from opera.store.workspace import Workspace
from opera.triage import refilled
from opera.triage.reducer import certain, hidden, witness
from opera.triage.reducer.asking import Asker, Budget
from opera.triage.reducer.longer import longer
from opera.triage.shrink import simpler, smaller
from opera.triage.shrink.minimise import Spent

SECONDS = 20.0
"""What one may take."""
NARROW = {"float16": 2.0**-10, "bfloat16": 2.0**-7}
"""Floats in which little tells a wrong formula from rounding → the distance of two of them from 1 on."""
QUARTERS = 64
"""Numbers that are cast, from 1 on, each a quarter of that distance after the other: what is rounded in any other way than to
the nearest, ties to even, differs."""
WIDEST = "int64"
"""The dtype that holds all whole numbers of settings: a range from 2**24 + 1 on, which float32 does not hold."""
WIDE, CERTAIN, LONGER, DEFINED = "in float32", "where nothing is left to chance", "longer", "where it is defined"
CAST, PLAIN = "cast", "of plain numbers"
SAYS: Mapping[str, str] = {
    WIDE: "by more than rounding in float32",
    CERTAIN: CERTAIN,
    LONGER: "by more than rounding with a longer axis",
    DEFINED: DEFINED,
    CAST: "of numbers that are rounded",
    PLAIN: PLAIN,
}
"""What is told of the test that a program becomes, and how it is told where that was looked for, after "is wrong"."""


class Excuse(NamedTuple):
    """A reason for which wrong outputs are set aside, and programs for which it is none.

    Attributes:
        holds: Whether it is the reason of an outcome.
        hows: What is told of the tests that these programs become (`SAYS`).
        beyond: The programs, made of one, each with which of these is told.
        worth: Which outcome is asked about first, of an operator and a frontend: that of which it is greatest.
    """

    holds: Callable[[Outcome], bool]
    hows: tuple[str, ...]
    beyond: Callable[[Program], Iterable[tuple[Program, str]]]
    worth: Callable[[Outcome], float]


def of_many(program: Program) -> Iterator[tuple[Program, str]]:
    """Yield a call in float32, if its floats are narrower: a formula that is wrong by a thousandth is so there, too, where
    rounding is not; then with a longer axis; and a cast to each of such floats, for who computes in float32 does that at last:
    of an operator one program alone is asked about, and it may hold the other."""
    wider = list(_wider(program))
    yield from ((x, WIDE) for x in wider)
    yield from ((x, LONGER) for x in longer(wider[-1] if wider else program))
    yield from ((x, CAST) for dtype in NARROW if wider for x in _casts(program, dtype))


def _wider(program: Program) -> Iterator[Program]:
    """Yield a program in float32 in place of each narrower float that it has."""
    for dtype in sorted({x.dtype for x in smaller.leaves(program)} & NARROW.keys()):
        program = smaller.as_dtype(program, dtype, simpler.FLOAT)
        yield program


def _casts(program: Program, dtype: str) -> Iterator[Instance]:
    """Yield the library's call that casts float32 to a narrow dtype, given numbers that are rounded."""
    library = libraries.get(program.library)
    if not hasattr(library, "simplest") or not hasattr(library, "typed"):
        return
    numbers = Tensor.of(1 + np.arange(QUARTERS, dtype=simpler.FLOAT) * np.float32(NARROW[dtype] / 4))
    for call in library.simplest(program, cast=libraries.Cast(simpler.FLOAT, dtype)):
        if library.typed(dtype) in call.params.values():
            yield msgspec.structs.replace(call, inputs=(Operand(call.inputs[0].name, numbers),))


def certainly(program: Program) -> Iterator[tuple[Program, str]]:
    """Yield a call that draws at random at each setting that leaves nothing to chance, and so with integers of 64 bits."""
    first = next((x.value for x in program.inputs if isinstance(x.value, Tensor | RandomTensor)), None)
    wide = first is not None and "int" in first.dtype and first.dtype != WIDEST
    made = [program, smaller.as_dtype(program, first.dtype, WIDEST)] if first is not None and wide else [program]
    for call in made:
        if isinstance(call, Instance):
            yield from ((x, CERTAIN) for x in certain.forms(call))


def defined(program: Program) -> Iterator[tuple[Program, str]]:
    """Yield a call with numbers within the documented domains of its inputs, the nearest and from end to end, and a program
    with 1, 2, ... for its own: a compiler that is wrong at the end of a domain is so of what lies beyond, too."""
    made = list(domains.within(program)) if isinstance(program, Instance) else []
    plain = refilled.counted(program)
    yield from ((x, DEFINED) for x in (*made, *([plain] if plain is not None else [])))


def plainly(program: Program) -> Iterator[tuple[Program, str]]:
    """Yield a program in float32, if its floats are narrower, and with 1, 2, ..., with fractions of both signs, and with exact
    ties for its own numbers."""
    yield from ((x, WIDE) for x in _wider(program))
    yield from (
        (x, PLAIN) for fill in (refilled.counted, refilled.signed, refilled.halves) if (x := fill(program)) is not None
    )


def _rounded(outcome: Outcome) -> bool:
    return outcome.details.get("screen") == ILL_CONDITIONED and OF_SUMS in outcome.details


def _unsteady(outcome: Outcome) -> bool:
    return outcome.details.get("screen") == ILL_CONDITIONED and OF_SUMS not in outcome.details


def _drawn(outcome: Outcome) -> bool:
    return outcome.details.get("screen") == NONDETERMINISTIC


def _undefined(outcome: Outcome) -> bool:
    return outcome.details.get("screen") == UNDEFINED


def _off(outcome: Outcome) -> float:
    off = outcome.details.get(OF_SUMS)
    return float(off) if isinstance(off, int | float) else 0.0


EXCUSES = (
    Excuse(_rounded, (WIDE, LONGER, CAST), of_many, _off),
    Excuse(_unsteady, (WIDE, PLAIN), plainly, lambda _: 0.0),
    Excuse(_drawn, (CERTAIN,), certainly, lambda _: 0.0),
    Excuse(_undefined, (DEFINED,), defined, lambda _: 0.0),
)
"""What is asked about: a table, each outcome by the first that holds."""


def of(outcome: Outcome) -> Excuse | None:
    """Return why an outcome is excused, if it is asked about once more; else None."""
    return next((x for x in EXCUSES if x.holds(outcome)), None) if outcome.verdict == SCREENED else None


def ask(workspace: Workspace, probe: Probe, seconds: float) -> Iterator[tuple[Verdict, str]]:
    """Yield what is wrong where an excuse does not hold, one for each operator, frontend and excuse: tests of their own, and
    what is told of them. Each is asked about once.

    Args:
        seconds: What all may take.
    """
    last, excused = time.monotonic() + seconds, _excused(workspace)
    programs = dict(tests.documents(workspace, [x.test for x, _ in excused]))
    for verdict, why in excused:
        if time.monotonic() > last:
            return
        found = None
        try:
            with suppress(NotInstalled, UsageError):  # its environment is gone
                found = _wrong(workspace, probe, verdict, why, parse(msgspec.json.decode(programs[verdict.test])))
        except (Spent, NoAnswer):  # nothing is known of it, and the next run asks again
            continue
        made = b"" if found is None else f"{found[0].test} {found[1]}".encode()
        examined.save(workspace, examined.EXCUSED, examined.Examined("", verdict.environment, verdict.test, made))
        if found is not None:
            yield found


def show(workspace: Workspace, seconds: float, workers: int) -> None:
    """Ask, as long as there is time, and print what is found."""
    if seconds > 0 and _excused(workspace):
        with Probe.of(workspace, workers=workers) as probe:
            for found, how in ask(workspace, probe, seconds):
                operator = tests.origins(workspace, [found.test])[found.test].operator
                print(f"{found.finding}: {operator} on {found.frontend} is wrong {SAYS[how]}")


def told(workspace: Workspace, found: Iterable[Verdict], operator: str) -> Iterator[str]:
    """Yield of excused verdicts of an operator where it, or a cast to floats as narrow, is wrong and the excuse does not hold,
    as a finding."""
    at = {(x.frontend, how) for x in found if (why := of(x.outcome)) is not None for how in why.hows}
    known = examined.documents(workspace, examined.EXCUSED) if at else ()
    made = {tuple(x.document.decode().split(" ", 1)) for x in known if x.document}
    origins = tests.origins(workspace, {test for test, _ in made})
    for test, how in sorted(x for x in made if x[1] == CAST or origins[x[0]].operator == operator):
        for x in stored.of_test(workspace, test):
            if x.finding and (x.frontend, how) in at:
                yield f"{origins[test].operator} on {x.frontend} is wrong {SAYS[how]}: {x.finding}"


def _wrong(
    workspace: Workspace, probe: Probe, verdict: Verdict, why: Excuse, program: Program
) -> tuple[Verdict, str] | None:
    """Return what a program fails of for which the excuse does not hold, and what is told of it; None where none does. Raises
    Spent."""
    question = Question(
        frontend=verdict.frontend, variant=verdict.variant, environment=verdict.environment, screened=True
    )
    asker = Asker(probe, question, None, witness.beside(workspace, verdict))
    asker.look([program])  # a compiler that must be started first takes nobody's time
    asker.budget = Budget(SECONDS)
    made = list(_beyond(why, program))
    for (x, how), now in zip(made, asker.look([x for x, _ in made]), strict=True):
        if now.verdict == UNSTABLE or (now.verdict, now.symptom) == (INCONSISTENT, "value"):
            found = hidden.store(workspace, asker, verdict, x, how, excused=how != CAST)
            return (found, how) if found is not None else None
    return None


def _beyond(why: Excuse, program: Program) -> Iterator[tuple[Program, str]]:
    """Yield the programs for which an excuse is none, up to one that cannot be made."""
    with suppress(CorpusError, InvalidTest):
        yield from why.beyond(program)


def _excused(workspace: Workspace) -> list[tuple[Verdict, Excuse]]:
    """Return one verdict of each operator, frontend and excuse, the farthest off; none where one was asked about."""
    gone = workspace.superseded()
    known = [x for x in stored.of_kind(workspace, SCREENED) if x.environment not in gone]
    origins, done = tests.origins(workspace, {x.test for x in known}), examined.documents(workspace, examined.EXCUSED)
    asked = {(x.test, x.environment) for x in done}
    groups = defaultdict[tuple[str, str, str, Excuse], list[Verdict]](list)
    for x in known:
        if (why := of(x.outcome)) is not None:
            groups[x.frontend, x.environment, origins[x.test].operator, why].append(x)
    found = sorted(groups.items(), key=lambda x: x[0][:3])
    new = [(x, key[-1]) for key, x in found if not any((y.test, y.environment) in asked for y in x)]
    return [(max(x, key=partial(_worth, why=why)), why) for x, why in new]


def _worth(verdict: Verdict, why: Excuse) -> tuple[float, str]:
    return why.worth(verdict.outcome), verdict.test
