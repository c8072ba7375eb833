"""What decides that a program fails: take it away, and see whether the program passes.

What may be taken away stands in one table (opera.triage.conditions.removable). What decides of a reduced program (`decided`)
and whether another program fails for the same reason (`without`, opera.triage.distinct.belonging) are both asked of it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from opera.oracle import declared, randomness, screens
from opera.programs.program import Graph, Instance, Operand, Program
from opera.programs.values import Tensor, Value
from opera.programs.verdicts import (
    ABORT,
    CRASH,
    FAILURES,
    INCONSISTENT,
    INVALID,
    PASS,
    REFUSED,
    SCREENED,
    UNSTABLE,
    UNSUPPORTED,
    Outcome,
)
from opera.triage.conditions import peculiar, varied
from opera.triage.conditions.near import alone
from opera.triage.conditions.peculiar import changed
from opera.triage.conditions.removable import FORM, INPUT, OUTPUT, PARAMETER, Condition, conditions, is_of
from opera.triage.sentence import EQUAL_TO, LIMIT, NO_CONSTANT, RETURNED
from opera.triage.shrink import smaller
from opera.triage.shrink.minimise import Spent
from opera.triage.shrink.smaller import Defaults

PAIRS = 6
"""Pairs of parameters and inputs that are tried together, where none decides alone."""
DRAWN = "drawn"
"""Detail of an outcome that is about numbers drawn at random (opera.oracle.draws.Broken)."""
ANOTHER = "another form"
"""How a program fails whose outputs are of another form: other shapes, dtypes, or another number of them."""
PROCESSES = 3
"""Processes in which it must be right what is drawn, or varies: in one of them it may be so by chance."""
TOGETHER = 4
"""Programs that are asked about where several things are taken away at once."""
Shown: TypeAlias = tuple[Program, Outcome]


class Look(Protocol):
    """Tells what programs show. Raises Spent."""

    def look(self, programs: Sequence[Program]) -> list[Outcome]:
        """Return what they show."""

    def fails(self, outcome: Outcome) -> bool:
        """Whether an outcome is the failure that is looked into."""

    def reference(self, program: Program) -> list[Value] | None:
        """Return what the library computes for a program, None where it rejects it."""

    def afresh(self, program: Program) -> Outcome:
        """Return what a program shows in a process of its own, asked again each time."""


class Lowers(Look, Protocol):
    """Tells of which operators programs are once they came to the compiler, too."""

    def lowered(self, program: Program) -> list[str]:
        """Return the names of the operators that a program is of once it came to the compiler, where they are known."""


def passing(ask: Look, program: Program, defaults: Defaults) -> list[str]:
    """Return conditions without which a program passes, whatever else may be the reason: all but its ranks. Raises Spent."""
    found = [x for x in conditions(program, defaults) if not peculiar.is_rank(x.says) and not x.around]
    made = [_made(program, x.others()) for x in found]
    ask.look([x for others in made for x in others])  # all at a time
    told = zip(found, map(ask.look, made), strict=True)
    return [x.says for x, shown in told if any(y.verdict == PASS for y in shown) and _telling(ask, program, x)]


def without(ask: Look, program: Program, says: str, defaults: Defaults) -> list[Shown] | None:
    """Return what programs show that lack a condition which was told so of another; None where this one lacks it, too.

    Raises Spent.
    """
    known = [x for x in conditions(program, defaults) if is_of(x.says, says)]
    return [shown for x in known for shown in _shown(ask, program, x)] if known else None


def lacking(program: Program, told: Iterable[str], defaults: Defaults) -> list[Program]:
    """Return programs that lack all of these conditions, a few."""
    made = [program]
    for says in told:
        found = ((x, y) for x in made for y in conditions(x, defaults) if is_of(y.says, says))
        made = [z for x, y in found for z in _made(x, y.others())][:TOGETHER]
    return made


def without_all(ask: Look, program: Program, told: Iterable[str], defaults: Defaults) -> list[Shown]:
    """Return what programs show that lack all of these conditions. Raises Spent."""
    made = lacking(program, told, defaults)
    return list(zip(made, ask.look(made), strict=True))


def _made(program: Program, others: Iterable[Program | None]) -> list[Program]:
    return [x for x in others if x is not None and x != program]


# ---------------------------------------------------------------------- what decides


class Decided(NamedTuple):
    """What decides that a program fails: parameters, and what else; of the latter relations, where nothing else is known."""

    parameters: tuple[str, ...] = ()
    besides: tuple[str, ...] = ()


def decided(ask: Look, program: Program, defaults: Defaults) -> Decided:
    """Return that without which a program passes. Of each, another program is asked about that differs in it alone; nothing is
    said where its library rejects that, nor where it then fails in another way.

    A parameter does not decide if the program fails without it as well once its tensors are larger or hold other numbers: then
    it passed by chance (linear interpolation shows a wrong scale better than that of the nearest). A rank other than 0 is told
    where nothing else decides, for an axis less may mean that less is computed. Where no parameter and no input decides alone,
    two are left out together. Of a crash that something else decides, `besides` also names those without which the program is
    not supported: they lead to the crash, but not to what would be right.
    """
    found = list[Condition]()
    for x in conditions(program, defaults):
        if not (x.one_of and x.one_of in {y.one_of for y in found}) and _telling(ask, program, x):
            found += [x] if _decides(ask, program, x) else []
    found = [x for x in found if not any(peculiar.makes(x.key, y.says) for y in found)]
    found = [x for x in found if x.says == peculiar.SCALAR or not peculiar.is_rank(x.says)] or found
    if not any(x.kind in (PARAMETER, INPUT) for x in found):
        found = [*_together(ask, program, defaults), *found]
    of = tuple(x.says for x in found if x.kind == PARAMETER)
    besides = tuple(x.says for x in found if x.kind != PARAMETER and not _says_its_dtype(program, x.says, of))
    besides += tuple(x.says for x in _refused(ask, program, defaults) if found and x.says not in (*of, *besides))
    return Decided(of, besides or (() if of else tuple(relations(ask, program))))


def _says_its_dtype(program: Program, says: str, parameters: Sequence[str]) -> bool:
    """Whether what decides is a dtype of no input, but of a parameter that is told by it: `value=float16[1]`."""
    dtype = says.removesuffix(" inputs")
    fed = {leaf.dtype for x in program.inputs for leaf in smaller.within(x.value)}
    return dtype not in fed and any(f"={dtype}[" in x for x in parameters)


def _decides(ask: Look, program: Program, condition: Condition) -> bool:
    """Whether a program passes without something; not, where there is no time left to ask.

    A constant must do so with other numbers, too, and what chance has a part in, in several processes.
    """
    try:
        shown, chance, [seen] = _shown(ask, program, condition), by_chance(ask, program), ask.look([program])
        how = chance or (ANOTHER if seen.symptom in randomness.FORMS else seen.verdict)
        passing = [x for x, now in shown if (right(ask, x, now, chance) if chance else _right(x, now, how))]
        given = condition.kind in (FORM, INPUT) or condition.says.endswith(NO_CONSTANT)
        if given and how in (CRASH, REFUSED):  # what runs then, though wrongly, has a second cause
            passing = passing or [x for x, now in shown if now.verdict == INCONSISTENT]
        failing = [x for x, now in shown if now.verdict in FAILURES] if condition.around else []
        behind = _behind(ask, program, failing) if condition.says == RETURNED and failing else []
        if len(failing) > sum(now.verdict in FAILURES for now in ask.look(behind)):
            return False  # of one other call it is hidden, or shows in another way
        if not passing or any(x.verdict == PASS for x in ask.look(_made(program, condition.unless()))):
            return False
        several = condition.kind in (PARAMETER, FORM) or condition.says.endswith(NO_CONSTANT)
        others = _made(passing[0], varied.varieties(passing[0])) if several else []
        return not any(_wrong_as(ask, program, now) for now in ask.look(others))
    except Spent:
        return False


def _behind(ask: Look, program: Program, programs: Iterable[Program]) -> list[Instance]:
    """Return the calls behind a program, given what it should return: what fails of one alone tells nothing of the program (no
    Neg of ONNX's takes uint8). None where that is not known."""
    result = next(iter(ask.reference(program) or ()), None)
    if result is None:
        return []
    last = [x.calls[-1] for x in programs if isinstance(x, Graph)]
    named = any(program.outputs)  # else its library names none
    return [
        Instance(
            program.library,
            x.operator,
            x.params,
            (Operand(x.inputs[0].name, result),),
            x.outputs if named else (),
            x.context,
        )
        for x in last
    ]


def _wrong_as(ask: Look, program: Program, now: Outcome) -> bool:
    """Whether an outcome is the failure of a program, or has the symptom of its wrong outputs, whatever of them is wrong."""
    [before] = ask.look([program])
    alike = before.verdict == INCONSISTENT and (now.verdict, now.symptom) == (before.verdict, before.symptom)
    return alike or ask.fails(now)


def by_chance(ask: Look, program: Program) -> str:
    """Return what chance has a part in where a program fails: DRAWN numbers or UNSTABLE ones; else nothing. Raises Spent."""
    [shown] = ask.look([program])
    return UNSTABLE if shown.verdict == UNSTABLE else DRAWN if DRAWN in shown.details else ""


def right(ask: Look, program: Program, shown: Outcome, chance: str) -> bool:
    """Whether a program that chance has a part in passes, and does so in several processes. Raises Spent."""
    return _right(program, shown, chance) and _surely(ask, program, chance)


def _surely(ask: Look, program: Program, chance: str) -> bool:
    """Whether a program passes in several processes, of drawn numbers with several seeds. Raises Spent.

    Drawn numbers do so as the screens judge them: one that happens to be the expected one says nothing, nor does a program of
    which nothing is declared.
    """
    draw, asked = declared.declared(program), [program] * PROCESSES
    if chance == DRAWN and draw is None:
        return False
    seed = program.params.get(draw.seed) if draw is not None and isinstance(program, Instance) else None
    if draw is not None and isinstance(program, Instance) and isinstance(seed, int | float):
        asked = [smaller.with_param(program, draw.seed, seed + x) or program for x in range(PROCESSES)]
    return all(_right(x, ask.afresh(x), chance) for x in asked)


def _right(program: Program, shown: Outcome, how: str) -> bool:
    """Whether a program passes; one that draws numbers does so with other ones, too, against which nothing is said.

    `how` is DRAWN, ANOTHER, or the verdict of what fails: beside a crash, or another form, wrong numbers are not screened, and
    drawn ones no failure.
    """
    if shown.verdict == SCREENED and how != UNSTABLE:
        return bool(shown.details.get("screen") == screens.NONDETERMINISTIC)
    other = how in (CRASH, ANOTHER) and shown.verdict == INCONSISTENT and shown.symptom == "value"
    return shown.verdict == PASS or (other and declared.declared(program) is not None)


def _shown(ask: Look, program: Program, condition: Condition) -> list[Shown]:
    """Return what programs show that lack something. Raises Spent.

    Where none of them passes or fails as the program does, they are tried with integers that are 0, all or but those that may
    state sizes, if the program itself still fails then: an index that a parameter excuses (`ignore_index`), or a size that is
    given (MaxUnpool's `output_shape`), is out of range without it, which libraries reject, or not.
    """
    others = _made(program, condition.others())
    shown = list(zip(others, ask.look(others), strict=True))
    if condition.kind not in (PARAMETER, INPUT) or any(x.verdict == PASS or ask.fails(x) for _, x in shown):
        return shown
    for change in (varied.zero, varied.zero_unless_size):
        made = [x for x in (changed(change, x) for x in (program, *others)) if x is not None]
        if made[:1] not in ([], [program]) and ask.fails(ask.look(made[:1])[0]):
            return list(zip(made[1:], ask.look(made[1:]), strict=True))
    return shown


def _telling(ask: Look, program: Program, condition: Condition) -> bool:
    """Whether it tells something that a program passes without this.

    Not, where the wrong output is left out itself; nor where the model holds the only tensor, or the first, and the compiler
    may compute all of it by other means before it makes any code. What it cannot load it does not compute; and integers that
    may say how large a result is are no data.
    """
    if condition.around:
        return _is_of_outputs(ask, program, program.outputs[:1] if condition.says == RETURNED else program.outputs)
    first = next((x for x in program.inputs if x.value is not None), None)
    if condition.kind != OUTPUT and (first is None or condition.says != f"{first.name} {NO_CONSTANT}"):
        return True
    try:
        [shown] = ask.look([program])
    except Spent:
        return False
    sizes = first is not None and isinstance(first.value, Tensor) and first.value.dtype in ("int32", "int64")
    early = shown.stage == "load" or (shown.stage == "compile" and sizes)
    return shown.verdict in (CRASH, REFUSED) and (condition.kind == OUTPUT or early)


def _is_of_outputs(ask: Look, program: Program, outputs: Sequence[str]) -> bool:
    """Whether one of these outputs, or the first, is wrong, by no chance; or the model ends before it returns any, also
    where it should return the first alone: with another call before or behind it the program has no other outputs."""
    try:
        [shown] = ask.look([program])
        if shown.verdict in (CRASH, REFUSED, ABORT):
            one = [] if (first := alone(program)) is None else ask.look([first])
            return all(x.verdict == INVALID or ask.fails(x) for x in one)
        of = shown.details.get("output")
        return shown.verdict == INCONSISTENT and of in (*outputs, "output_0") and not by_chance(ask, program)
    except Spent:
        return False


def _together(ask: Look, program: Program, defaults: Defaults) -> list[Condition]:
    """Return the first pair of parameters and inputs without which a program passes; nothing where there is no time left.

    What the library needs is none of them, nor what it passes without by chance.
    """
    try:
        if by_chance(ask, program):
            return []
        found = [x for x in conditions(program, defaults) if x.kind in (PARAMETER, INPUT)]
        seen = [{now.verdict for _, now in _shown(ask, program, x)} for x in found]
        left = [x for x, verdicts in zip(found, seen, strict=True) if verdicts - {INVALID} and PASS not in verdicts]
        for pair in itertools.islice(itertools.combinations(left, 2), PAIRS):
            if any(now.verdict == PASS for _, now in without_all(ask, program, [x.says for x in pair], defaults)):
                return list(pair)
    except Spent:
        pass  # a pair that was not asked about decides nothing
    return []


def _refused(ask: Look, program: Program, defaults: Defaults) -> Iterator[Condition]:
    """Yield the parameters and inputs without which a compiler says that it does not support the program, where it crashes."""
    try:
        [shown] = ask.look([program])
        for x in conditions(program, defaults) if shown.verdict == CRASH else ():
            if x.kind in (PARAMETER, INPUT):
                verdicts = {now.verdict for _, now in _shown(ask, program, x)} - {INVALID}
                if verdicts == {UNSUPPORTED}:
                    yield x
    except Spent:
        return


def _passes(ask: Look, programs: Sequence[Program]) -> bool:
    """Whether one of the programs passes; not, where there is no time left to ask."""
    try:
        return any(shown.verdict == PASS for shown in ask.look(programs))
    except Spent:
        return False


def relations(ask: Look, program: Program) -> Iterator[str]:
    """Yield how numbers and sizes must stand to each other: an axis of length 1, equal elements, a number just at a limit.

    It is asked only where nothing else is known to decide: a small program has many of these by chance.
    """
    try:
        if by_chance(ask, program):
            return
    except Spent:
        return
    for says, others in peculiar.relations(program):
        made = _made(program, others)
        if _passes(ask, made):
            both = (
                says.endswith(LIMIT) and len(made) > 1 and all(_passes(ask, [x]) for x in made)
            )  # a little more, and less
            yield f"{EQUAL_TO}{says.removesuffix(LIMIT).strip()}" if both else says
