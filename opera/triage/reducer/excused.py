"""What a screen excuses is asked about once more where its excuse does not hold, at the end of a run.

A call that was excused as rounding of a sum (opera.oracle.conditioning.rounding) is asked about in wider floats, with a
longer axis, and by a cast to its floats; one whose result a last bit of its inputs moves as far in wider floats and with plain
numbers; one that draws at random at settings that leave nothing to chance; and one whose result is undefined with numbers for
which it is defined. What is wrong then, and no screen explains, becomes a test of its own
(opera.triage.reducer.hidden.store).
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
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
from opera.triage.conditions import dtypes
from opera.triage.conditions.learner import renumbered
from opera.triage.findings import findings
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
SIGNED = ("int32", WIDEST)
"""Signed integers that most compilers take."""
WIDER = "float64"
"""Floats in which a number that was rounded to float32 shows."""
WIDE, CERTAIN, LONGER, DEFINED = "in float32", "where nothing is left to chance", "longer", "where it is defined"
CAST, PLAIN, DOUBLE, KEPT = "cast", "of plain numbers", "in float64", "of one number"
SAYS: Mapping[str, str] = {
    WIDE: "by more than rounding in float32",
    DOUBLE: "by more than rounding in float64",
    CERTAIN: CERTAIN,
    LONGER: "by more than rounding with a longer axis",
    DEFINED: DEFINED,
    CAST: "of numbers that are rounded",
    PLAIN: PLAIN,
    KEPT: "by more than rounding of a sum of one number",
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
    """Yield a call in wider floats; then with a longer axis; and, if it has narrow ones, in these with one number all over, as
    it is and with a longer axis, for who keeps a sum in them adds less and less of it; and a cast to each, for who computes in
    float32 does that at last: of an operator one program alone is asked about, and it may hold the other."""
    wide = program
    for x, how in _wider(program):
        wide = x if how == WIDE else wide
        yield x, how
    yield from ((x, LONGER) for x in longer(wide))
    if wide is not program:
        kept = (refilled.alike(x) for x in (program, *longer(program)))
        yield from ((x, KEPT) for x in {x.id: x for x in kept if x is not None}.values())
    yield from ((x, CAST) for dtype in NARROW if wide is not program for x in _casts(program, dtype))


def _wider(program: Program) -> Iterator[tuple[Program, str]]:
    """Yield a program in float32 in place of each narrower float that it has, and in float64 in place of that: a formula that
    is wrong by a thousandth, or a billionth, is so there, too, where rounding is not."""
    for dtype in sorted({x.dtype for x in smaller.leaves(program)} & NARROW.keys()):
        program = smaller.as_dtype(program, dtype, simpler.FLOAT)
        yield program, WIDE
    if any(x.dtype == simpler.FLOAT for x in smaller.leaves(program)):
        yield smaller.as_dtype(program, simpler.FLOAT, WIDER), DOUBLE


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
    """Yield a call with numbers within the documented domains of its inputs, the nearest and from end to end, a program with
    1, 2, ... for its own, and this with integers of both signs, of 32 and 64 bits, too: a compiler that is wrong at the end of
    a domain is so of what lies beyond, too, and one that shifts by a product is so of no small number."""
    made = list[Program](domains.within(program)) if isinstance(program, Instance) else []
    if (plain := refilled.counted(program)) is not None:
        made += [plain, *_of_signs(plain)]
    yield from ((x, DEFINED) for x in made)


def _of_signs(program: Program) -> Iterator[Program]:
    """Yield a program with integers of both signs in its first tensor, in signed dtypes, if it holds integers."""
    own = next((x.dtype for x in smaller.leaves(program)), "")
    for dtype in dict.fromkeys((own, *SIGNED)) if own in dtypes.INTEGERS else ():
        if not dtype.startswith("u"):
            yield renumbered(smaller.as_dtype(program, own, dtype))


def plainly(program: Program) -> Iterator[tuple[Program, str]]:
    """Yield a program in wider floats, and with 1, 2, ..., with fractions of both signs, and with exact ties for its own
    numbers."""
    yield from _wider(program)
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
    Excuse(_rounded, (WIDE, DOUBLE, LONGER, KEPT, CAST), of_many, _off),
    Excuse(_unsteady, (WIDE, DOUBLE, PLAIN), plainly, lambda _: 0.0),
    Excuse(_drawn, (CERTAIN,), certainly, lambda _: 0.0),
    Excuse(_undefined, (DEFINED,), defined, lambda _: 0.0),
)
"""What is asked about: a table, each outcome by the first that holds."""


def of(outcome: Outcome) -> Excuse | None:
    """Return why an outcome is excused, if it is asked about once more; else None."""
    return next((x for x in EXCUSES if x.holds(outcome)), None) if outcome.verdict == SCREENED else None


def ask(workspace: Workspace, probe: Probe, seconds: float) -> Iterator[tuple[Verdict, str]]:
    """Yield what is wrong where an excuse does not hold, of one call for each operator, its parameters, frontend and excuse:
    tests of their own, and what is told of them. Each is asked about once.

    Args:
        seconds: What all may take.
    """
    last, excused, known = time.monotonic() + seconds, _excused(workspace), defaultdict[tuple[str, str], set[str]](set)
    for verdict, why, program in excused:
        if time.monotonic() > last:
            return
        found, told = [], known[verdict.frontend, program.operator]
        try:
            with suppress(NotInstalled, UsageError):  # its environment is gone
                found += _wrong(workspace, probe, verdict, why, program, told)
        except (Spent, NoAnswer):  # nothing is known of it, and the next run asks again
            continue
        made = "\n".join(f"{x.test} {how}" for x, how in found).encode()
        examined.save(workspace, examined.EXCUSED, examined.Examined("", verdict.environment, verdict.test, made))
        told |= {how for _, how in found}
        yield from found


def show(workspace: Workspace, seconds: float, workers: int) -> list[str]:
    """Ask, as long as there is time, print what is found, and return which findings of it are new."""
    if seconds <= 0 or not _excused(workspace):
        return []
    before, new = {x.id for x in findings(workspace)}, list[str]()
    with Probe.of(workspace, workers=workers) as probe:
        for found, how in ask(workspace, probe, seconds):
            operator = tests.origins(workspace, [found.test])[found.test].operator
            print(f"{found.finding}: {operator} on {found.frontend} is wrong {SAYS[how]}")
            new += [found.finding] if found.finding not in before else []
    return new


def told(workspace: Workspace, found: Iterable[Verdict], operator: str) -> Iterator[str]:
    """Yield of excused verdicts of an operator where it, or a cast to floats as narrow, is wrong and the excuse does not hold,
    as a finding."""
    at = {(x.frontend, how) for x in found if (why := of(x.outcome)) is not None for how in why.hows}
    known = examined.documents(workspace, examined.EXCUSED) if at else ()
    made = {tuple(line.split(" ", 1)) for x in known for line in x.document.decode().splitlines()}
    origins = tests.origins(workspace, {test for test, _ in made})
    for test, how in sorted(x for x in made if x[1] == CAST or origins[x[0]].operator == operator):
        for x in stored.of_test(workspace, test):
            if x.finding and (x.frontend, how) in at:
                yield f"{origins[test].operator} on {x.frontend} is wrong {SAYS[how]}: {x.finding}"


def _wrong(
    workspace: Workspace, probe: Probe, verdict: Verdict, why: Excuse, program: Program, told: Set[str]
) -> list[tuple[Verdict, str]]:
    """Return what a program fails of for which the excuse does not hold, the first of each kind that is not told of its
    operator yet, and what is told of it. Raises Spent."""
    question = Question(
        frontend=verdict.frontend, variant=verdict.variant, environment=verdict.environment, screened=True
    )
    asker = Asker(probe, question, None, witness.beside(workspace, verdict))
    asker.look([program])  # a compiler that must be started first takes nobody's time
    asker.budget = Budget(SECONDS)
    made, wrong = [x for x in _beyond(why, program) if x[1] not in told], dict[str, Program]()
    for (x, how), now in zip(made, asker.look([x for x, _ in made]), strict=True):
        at_odds = now.verdict == UNSTABLE or (now.verdict, now.symptom) == (INCONSISTENT, "value")
        if at_odds and how not in wrong and (how != KEPT or asker.agreed(x)):  # a reference may keep its sums so, too
            wrong[how] = x
    if WIDE in wrong:
        wrong.pop(DOUBLE, None)  # it is the same formula
    found = ((hidden.store(workspace, asker, verdict, x, how, excused=how != CAST), how) for how, x in wrong.items())
    return [(x, how) for x, how in found if x is not None]


def _beyond(why: Excuse, program: Program) -> Iterator[tuple[Program, str]]:
    """Yield the programs for which an excuse is none, up to one that cannot be made."""
    with suppress(CorpusError, InvalidTest):
        yield from why.beyond(program)


def _excused(workspace: Workspace) -> list[tuple[Verdict, Excuse, Program]]:
    """Return one verdict of each operator, its parameters, frontend and excuse, the farthest off, and its program; none where
    one was asked about."""
    gone = workspace.superseded()
    known = [x for x in stored.of_kind(workspace, SCREENED) if x.environment not in gone]
    done = examined.documents(workspace, examined.EXCUSED)
    asked = {(x.test, x.environment) for x in done}
    programs = {name: parse(msgspec.json.decode(x)) for name, x in tests.documents(workspace, {x.test for x in known})}
    groups = defaultdict[tuple[str, str, str, Excuse], list[Verdict]](list)
    for x in known:
        if (why := of(x.outcome)) is not None:
            groups[x.frontend, x.environment, _called(programs[x.test]), why].append(x)
    found = sorted(groups.items(), key=lambda x: x[0][:3])
    new = [(x, key[-1]) for key, x in found if not any((y.test, y.environment) in asked for y in x)]
    chosen = ((max(x, key=partial(_worth, why=why)), why) for x, why in new)
    return [(x, why, programs[x.test]) for x, why in chosen]


def _called(program: Program) -> str:
    """Return what a program calls, and with which parameters: a bug of one setting is none of another."""
    return f"{program.operator} {sorted(program.params.items())}" if isinstance(program, Instance) else program.operator


def _worth(verdict: Verdict, why: Excuse) -> tuple[float, str]:
    return why.worth(verdict.outcome), verdict.test
