"""What decides that a program fails: take it away, and see whether the program passes.

`conditions` is the one table of what may be taken away. What decides of a reduced program (`decided`) and whether another
program fails for the same reason (`without`, opera.triage.distinct.belonging) are both asked of it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeAlias, cast

import msgspec
import numpy as np

from opera import libraries
from opera.libraries import Embedding, Nesting
from opera.oracle import declared, screens
from opera.programs.program import Instance, Program
from opera.programs.values import NO_DEFAULT, Named, RandomTensor, Tensor, Value
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
from opera.triage.conditions import around, dtypes, peculiar, varied
from opera.triage.conditions.arguments import WRITTEN
from opera.triage.conditions.near import alone
from opera.triage.conditions.peculiar import changed
from opera.triage.sentence import EQUAL_TO, GRAPH_INPUT, LIMIT, NO_ATTRIBUTE, NO_CONSTANT, RETURNED, UNNAMED
from opera.triage.shrink import simpler, smaller
from opera.triage.shrink.minimise import Spent
from opera.triage.shrink.smaller import Defaults

Array: TypeAlias = np.ndarray[Any, Any]

PLAINER = ("float32", "int64", "int32")
"""Dtypes that tensors are tried in, to see whether their own decides."""
FLOATS, INTEGERS = ("float32", "float64"), ("int8", "uint8", "int16", "int32", "int64")
SEVERAL = "inputs of two dtypes"
PARAMETER, INPUT, OUTPUT, DTYPE, FORM, OTHER = "parameter", "input", "output", "dtype", "form", "other"
"""Kinds of conditions: a parameter, the presence of an input, that an output is asked for, a dtype, how a program is written
that may be written otherwise, and all else."""
GIVEN, LEFT_OUT, IS_GIVEN = "input ", " left out", " given"
"""How it begins that an input is told that may be left out; how a parameter is told that has no value, and that has one."""
NO_WHOLE, NEGATIVE = " that is no whole number", " with a negative number"
BEYOND = re.compile(rf"=| >=? | <=? |{IS_GIVEN}$| other than |{NO_WHOLE}$|{NEGATIVE}$| naming (?:all|the) ")
UNSET = re.compile(rf" (?:0|empty) or(?={LEFT_OUT})|(?<={LEFT_OUT}) beside .*$")
"""What counts as much as what is left out, and what is given beside it."""
ALTERNATIVES = re.compile(r", | or ")
"""What follows the name of a parameter that needs a value, the first two of which tell numbers; what stands between several
things one of which is so."""
PAIRS = 6
"""Pairs of parameters and inputs that are tried together, where none decides alone."""


DRAWN = "drawn"
"""Detail of an outcome that is about numbers drawn at random (opera.oracle.draws.Broken)."""
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

    def afresh(self, program: Program) -> Outcome:
        """Return what a program shows in a process of its own, asked again each time."""


class Lowers(Look, Protocol):
    """Tells of which operators programs are once they came to the compiler, too."""

    def lowered(self, program: Program) -> list[str]:
        """Return the names of the operators that a program is of once it came to the compiler, where they are known."""


class Condition(NamedTuple):
    """Something that a program has, and what it is without it.

    Attributes:
        says: How it is told: `mode='linear'`, `input B`, `float16 inputs`.
        kind: PARAMETER, INPUT, OUTPUT, DTYPE, FORM or OTHER.
        others: Makes the programs that lack it and are the same else; it decides where one of them passes.
        unless: Makes programs that must not pass: then something narrower decides.
        one_of: Name of a group, of which only the first that decides is told.
    """

    says: str
    kind: str
    others: Callable[[], Iterable[Program | None]]
    unless: Callable[[], Iterable[Program | None]] = tuple
    one_of: str = ""

    @property
    def key(self) -> str:
        """What it is called whatever its value: a parameter by its name."""
        return key(self.says)


def plainly(says: str) -> str:
    """Return how it is told that something is left out, without what counts as much as that, and what is given beside it."""
    return UNSET.sub("", says)


def key(says: str) -> str:
    """Return what a condition that is told so is called whatever its value: `a=1`, `a > 1`, `a given` and
    `a other than 2` are all `a`."""
    return BEYOND.split(plainly(says), 1)[0]


def named(says: str) -> str:
    """Return the name of the parameter that is told to need a value, empty where something else is told."""
    return key(says) if BEYOND.search(says) and not says.startswith(GIVEN) and not is_dtype(says) else ""


def is_of(says: str, told: str) -> bool:
    """Whether a condition is told of so, or as one of several: `float64 inputs` as `float16 or float64 inputs`."""
    if dtypes.members(says):
        return dtypes.members(says) <= dtypes.members(told)
    says, told = map(plainly, map(peculiar.unnamed, (says, told)))
    *others, last = ALTERNATIVES.split(key(told))
    last, space, rest = last.partition(" ")
    return key(says) == key(told) or key(says) in {f"{x}{space}{rest}" for x in (*others, last)}


def is_dtype(says: str) -> bool:
    """Whether this tells of which dtypes inputs are."""
    return says.endswith(" inputs") or says == SEVERAL or bool(dtypes.members(says))


def conditions(program: Program, defaults: Defaults) -> Iterator[Condition]:
    """Yield what a program has that may decide, in the order in which it is asked about.

    Parameters and optional inputs that are given, and outputs that are asked for beside others; inputs that the model is given
    and does not hold or make itself; what is peculiar about values and shapes (`conditions.peculiar`); dtypes. How numbers
    and sizes stand to each other is asked last (`relations`).
    """
    yield from _presence(program, defaults)
    yield from _fed(program)
    yield from _unnamed(program)
    yield from _forms(program)
    yield from _returned(program)
    for says, made in peculiar.values(program):
        yield Condition(says, OTHER, partial(tuple, made), one_of=peculiar.group(program, says))
    yield from _dtypes(program)


def passing(ask: Look, program: Program, defaults: Defaults) -> list[str]:
    """Return conditions without which a program passes, whatever else may be the reason: all but its ranks. Raises Spent."""
    found = [
        x
        for x in conditions(program, defaults)
        if not peculiar.is_rank(x.says) and x.says != RETURNED and not _computed(x)
    ]
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


def _presence(program: Program, defaults: Defaults) -> Iterator[Condition]:
    """Yield parameters that differ from their defaults, those that have no value, and inputs that are given.

    A parameter that has no default and says how large something is decides nothing: without it the program is another.
    """
    for trait in smaller.traits(program, defaults):
        if trait.kind == "param":
            calls = [x for x in program.instances() if x.operator == trait.operator and trait.name in x.params]
            value = calls[0].params[trait.name]
            sized = isinstance(value, int) and smaller.SIZED.search(trait.name.rpartition(".")[2])
            if trait.default != NO_DEFAULT or not sized:
                yield Condition(f"{trait.name}={said(value)}", PARAMETER, partial(_lacking, trait, program))
        elif trait.kind == "input":
            yield Condition(f"{GIVEN}{trait.name}", INPUT, partial(_lacking, trait, program))
        elif trait.kind == "mode":
            yield Condition(f"{trait.name} mode", OTHER, partial(_lacking, trait, program))
    if isinstance(program, Instance):
        for name, made in _given_for(program, defaults.get(program.operator, {})):
            yield Condition(f"{name}{LEFT_OUT}", PARAMETER, partial(tuple, made))
        for name in filter(None, program.outputs):
            if sum(map(bool, program.outputs)) > 1:
                yield Condition(f"output {name}", OUTPUT, partial(_output_left_out, program, name))


def _lacking(trait: smaller.Trait, program: Program) -> list[Program | None]:
    made = [smaller.applied(trait.without, program)]
    if trait.kind != "param":
        return made
    own = program.params.get(trait.name) if isinstance(program, Instance) else None
    if isinstance(program, Instance) and isinstance(own, list | tuple) and not own:  # one that must be given is longer
        ranks = dict.fromkeys((1, *(len(x.shape) for x in smaller.leaves(program)[:1])))
        return [*made, *(smaller.with_param(program, trait.name, type(own)([1] * n)) for n in ranks if n)]
    return [*made, peculiar.every_axis(program, trait.name)]


def _output_left_out(program: Instance, name: str) -> list[Program | None]:
    outputs = ["" if x == name else x for x in program.outputs]
    while not outputs[-1]:
        outputs.pop()
    return [msgspec.structs.replace(program, outputs=tuple(outputs))]


def _given_for(program: Instance, known: Mapping[str, Value]) -> Iterator[tuple[str, list[Program | None]]]:
    """Yield the parameters that have no value, None by default, and programs that give one the value of a number beside it, or
    a length of a tensor, where its name says that it is a size."""
    numbers: list[Value] = [
        x for x in program.params.values() if isinstance(x, int | float) and not isinstance(x, bool)
    ]
    lengths: list[Value] = [*dict.fromkeys(size for x in smaller.leaves(program) for size in x.shape if size)]
    for name, plain in known.items():
        unset = plain is None and program.params.get(name) is None and name != WRITTEN
        if unset and name not in {x.name for x in program.inputs}:
            sized = smaller.SIZED.search(name.rpartition(".")[2])
            yield (
                name,
                [smaller.given(program, name, x) for x in dict.fromkeys((*numbers, *(lengths if sized else ())))],
            )


def _fed(program: Program) -> Iterator[Condition]:
    """Yield the inputs that a model may hold, or make, instead of being given them, if its library knows how."""
    if not isinstance(program, Instance) or not hasattr(libraries.get(program.library), "embedded"):
        return
    library = cast(Embedding, libraries.get(program.library))
    for operand in program.inputs:
        if operand.value is not None:
            held, fed = isinstance(operand.value, Tensor | RandomTensor), f"{operand.name} {GRAPH_INPUT}"
            if around.computable(program, operand.value):
                yield Condition(fed, FORM, partial(around.computed, program, operand.name), one_of=fed)
            says = f"{operand.name} {NO_CONSTANT}" if held else fed
            yield Condition(says, OTHER, partial(library.embedded, program, operand.name), one_of=fed)
            if older := library.attributed(program, operand.name) if held else []:
                yield Condition(f"{operand.name} {NO_ATTRIBUTE}", OTHER, partial(tuple, older))


def is_held(program: Program, of: Program) -> bool:
    """Whether a program is one of which the model holds what another is given."""
    given = {x.name for x in of.inputs} - {x.name for x in program.inputs}
    params = program.params if isinstance(program, Instance) else {}
    return any(isinstance(params.get(x), Tensor) for x in given)


def _unnamed(program: Program) -> Iterator[Condition]:
    """Yield the last inputs of a node that are left out by an empty name, and not by none: both mean the same."""
    if not isinstance(program, Instance) or not any(program.outputs):
        return
    given = [n for n, x in enumerate(program.inputs) if x.value is not None]
    last = given[-1] + 1 if given else 0
    if names := [x.name for x in program.inputs[last:]]:
        made = msgspec.structs.replace(program, inputs=program.inputs[:last])
        yield Condition(f"{UNNAMED}{' and '.join(names)}", FORM, partial(tuple, [made]))


def _returned(program: Program) -> Iterator[Condition]:
    if made := around.negated(program):
        yield Condition(RETURNED, FORM, partial(tuple, made))


def _forms(program: Program) -> Iterator[Condition]:
    """Yield how calls are written, or the programs that they hold, if their library knows other ways to write them."""
    library = libraries.get(program.library)
    for x in cast(Nesting, library).forms(program) if hasattr(library, "forms") else ():
        yield Condition(x.says, FORM, x.others, one_of=x.one_of)


def _dtypes(program: Program) -> Iterator[Condition]:
    """Yield the dtypes of tensors; "integer" decides where every other integer dtype fails as well, and a float passes.

    That there are two of them decides where any third fails as well in place of either, and one alone passes. Booleans are
    numbers only where they are what an operator works on.
    """
    found = smaller.leaves(program)
    if found and found[0].dtype == "bool":  # elsewhere they are conditions and masks
        yield Condition("bool inputs", DTYPE, partial(_as_dtypes, program, "bool", (*PLAINER, "uint8")))
    if any(x.dtype == "string" for x in found):
        yield Condition("string inputs", DTYPE, partial(_as_dtypes, program, "string", PLAINER))
    own = {x.dtype for x in found} - {"string", "bool"}
    two = "dtypes" if len(own) == 2 else ""
    if two:
        one, other = sorted(own)
        each = [partial(_as_dtypes, program, one), partial(_as_dtypes, program, other)]
        alike = each[0]([other]) + each[1]([one])

        def unlike() -> Iterator[Program | None]:
            thirds = [x for x in (*FLOATS, *INTEGERS) if x not in own]
            yield from (x for of in each for x in of(thirds))
            yield from (y for x in alike if x is not None for y in _one_apart(x, found))

        yield Condition(SEVERAL, DTYPE, partial(tuple, alike), unlike, one_of=two)
    for dtype in sorted(own - {"float32"}):
        as_other = partial(_as_dtypes, program, dtype)
        if dtype in INTEGERS:
            yield Condition(
                dtypes.INTEGER, DTYPE, partial(as_other, FLOATS), partial(as_other, INTEGERS), one_of=two or dtype
            )
        yield Condition(f"{dtype} inputs", DTYPE, partial(as_other, PLAINER), one_of=two or dtype)


def _one_apart(program: Program, before: Sequence[Tensor | RandomTensor]) -> Iterator[Program]:
    """Yield a program with one tensor of another dtype than the others, but for the dtype that it had `before`: two dtypes
    are there as well.
    """
    for place, (leaf, old) in enumerate(zip(smaller.leaves(program), before, strict=False)):
        others = [x for x in PLAINER if x not in (leaf.dtype, old.dtype)] if isinstance(leaf, Tensor) else []
        for other in others if leaf.dtype not in ("bool", "string") else ():
            made = smaller.applied(smaller.at(place, partial(_in_dtype, dtype=other)), program)
            if made is not None and dtypes.about_equal(made, program):
                yield made


def _in_dtype(leaf: Tensor | RandomTensor, dtype: str) -> Tensor | RandomTensor:
    return simpler.numbered(simpler.numbers(leaf), dtype) if isinstance(leaf, Tensor) else leaf


def _as_dtypes(program: Program, dtype: str, others: Iterable[str]) -> list[Program | None]:
    """Return the program in other dtypes, if these hold its numbers: of others it would differ in two things."""
    steps = (partial(smaller.as_dtype, dtype=dtype, other=x) for x in others if x != dtype)
    made = (smaller.applied(step, program) for step in steps)
    return [x for x in made if x is not None and dtypes.about_equal(x, program)]


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
        shown, chance = _shown(ask, program, condition), by_chance(ask, program)
        how = chance or ask.look([program])[0].verdict
        passing = [x for x, now in shown if (right(ask, x, now, chance) if chance else _right(x, now, how))]
        given = condition.kind in (FORM, INPUT) or condition.says.endswith(NO_CONSTANT)
        if given and how in (CRASH, REFUSED):  # what runs then, though wrongly, has a second cause
            passing = passing or [x for x, now in shown if now.verdict == INCONSISTENT]
        around_it = condition.says == RETURNED or _computed(condition)
        if around_it and any(now.verdict in FAILURES for _, now in shown):
            return False  # of one other call it is hidden, or shows in another way
        if not passing or any(x.verdict == PASS for x in ask.look(_made(program, condition.unless()))):
            return False
        several = condition.kind in (PARAMETER, FORM) or condition.says.endswith(NO_CONSTANT)
        others = _made(passing[0], varied.varieties(passing[0])) if several else []
        return not any(_wrong_as(ask, program, now) for now in ask.look(others))
    except Spent:
        return False


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

    `how` is DRAWN, or the verdict of what fails: beside a crash wrong numbers are not screened, and drawn ones no failure.
    """
    if shown.verdict == SCREENED and how != UNSTABLE:
        return bool(shown.details.get("screen") == screens.NONDETERMINISTIC)
    other = how == CRASH and shown.verdict == INCONSISTENT and shown.symptom == "value"
    return shown.verdict == PASS or (other and declared.declared(program) is not None)


def _shown(ask: Look, program: Program, condition: Condition) -> list[Shown]:
    """Return what programs show that lack something. Raises Spent.

    Where none of them passes or fails as the program does, they are tried with integers that are 0, if the program itself still
    fails then: an index that a parameter excuses (`ignore_index`) is out of range without it, which libraries reject, or not.
    """
    others = _made(program, condition.others())
    shown = list(zip(others, ask.look(others), strict=True))
    if condition.kind not in (PARAMETER, INPUT) or any(x.verdict == PASS or ask.fails(x) for _, x in shown):
        return shown
    made = [x for x in (changed(varied.zero, x) for x in (program, *others)) if x is not None]
    if made[:1] in ([], [program]) or not ask.fails(ask.look(made[:1])[0]):
        return shown
    return list(zip(made[1:], ask.look(made[1:]), strict=True))


def _telling(ask: Look, program: Program, condition: Condition) -> bool:
    """Whether it tells something that a program passes without this.

    Not, where the wrong output is left out itself; nor where the model holds the only tensor, or the first, and the compiler
    may compute all of it by other means before it makes any code. What it cannot load it does not compute; and integers that
    may say how large a result is are no data.
    """
    if condition.says == RETURNED:
        return _shows_in_result(ask, program)
    if _computed(condition):
        return _is_asked_for(ask, program)
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


def _computed(condition: Condition) -> bool:
    """Whether another call makes an input where this is not so."""
    return condition.kind == FORM and condition.says.endswith(f" {GRAPH_INPUT}")


def _shows_in_result(ask: Look, program: Program) -> bool:
    """Whether the first output is wrong, by no chance, or the model ends before it returns any, also where it should return
    that alone: what another call makes of the result then is right, or fails as well."""
    return _wrong(ask, program, program.outputs[:1])


def _is_asked_for(ask: Look, program: Program) -> bool:
    """Whether the first output is wrong, or one that is asked for by its name, by no chance, or there is none."""
    return _wrong(ask, program, program.outputs)


def _wrong(ask: Look, program: Program, outputs: Sequence[str]) -> bool:
    try:
        [shown] = ask.look([program])
        if shown.verdict in (CRASH, REFUSED, ABORT):  # what is asked about has the first output alone
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


def said(value: Value) -> str:
    match value:
        case Named():
            return value.name
        case {"class_name": str(name)}:  # an object of Keras's, as its configuration states it
            return name
        case Tensor() | RandomTensor():
            return f"{value.dtype}{list(value.shape)}"
        case list() | tuple():
            return "[" + ", ".join(map(said, value)) + "]"
    return repr(value)[:60]
