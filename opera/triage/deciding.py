"""What decides that a program fails: take it away, and see whether the program passes.

`conditions` is the one table of what may be taken away. What decides of a reduced program (`decided`) and whether another
program fails for the same reason (`without`, opera.triage.belonging) are both asked of it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeAlias, cast

import msgspec
import numpy as np

from opera import libraries
from opera.libraries import Embedding
from opera.programs.program import Instance, Program
from opera.programs.values import CONTAINERS, NO_DEFAULT, Named, RandomTensor, Tensor, Value
from opera.programs.verdicts import CRASH, INVALID, PASS, REFUSED, UNSUPPORTED, Outcome
from opera.triage import simpler, smaller
from opera.triage.minimise import Spent
from opera.triage.sentence import EQUAL, GRAPH_INPUT, LENGTH_ONE, LIMIT, NO_CONSTANT
from opera.triage.smaller import Defaults, Leaf

Array: TypeAlias = np.ndarray[Any, Any]

PLAINER = ("float32", "int64", "int32")
"""Dtypes that tensors are tried in, to see whether their own decides."""
FLOATS, INTEGERS = ("float32", "float64"), ("int8", "uint8", "int16", "int32", "int64")
INTEGER, EMPTY, SCALAR, RANK = "integer inputs", "an empty input", "a 0-d input", "an input of rank"
NUDGE = 2.0**-10
"""What is added to a number, relatively, to see whether it decides that it is just this one."""
SPECIAL: dict[str, Callable[[Array], Array]] = {
    "NaN": np.isnan,
    "infinity": np.isinf,
    "a negative number": lambda numbers: np.isfinite(numbers) & (numbers < 0),
}
"""What elements may be that decides → which of them are so; 1 takes their place."""
PARAMETER, INPUT, OUTPUT, DTYPE, OTHER = "parameter", "input", "output", "dtype", "other"
"""Kinds of conditions: a parameter, the presence of an input, that an output is asked for, a dtype, and all else."""
PAIRS = 6
"""Pairs of parameters and inputs that are tried together, where none decides alone."""


TOGETHER = 4
"""Programs that are asked about where several things are taken away at once."""
Shown: TypeAlias = tuple[Program, Outcome]


class Look(Protocol):
    """Tells what programs show. Raises Spent."""

    def look(self, programs: Sequence[Program]) -> list[Outcome]:
        """Return what they show."""

    def fails(self, outcome: Outcome) -> bool:
        """Whether an outcome is the failure that is looked into."""


class Condition(NamedTuple):
    """Something that a program has, and what it is without it.

    Attributes:
        says: How it is told: `mode='linear'`, `input B`, `float16 inputs`.
        kind: PARAMETER, INPUT, OUTPUT, DTYPE or OTHER.
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


def key(says: str) -> str:
    """Return what a condition that is told so is called whatever its value."""
    return says.partition("=")[0]


def conditions(program: Program, defaults: Defaults) -> Iterator[Condition]:
    """Yield what a program has that may decide, in the order in which it is asked about.

    Parameters and optional inputs that are given, and outputs that are asked for beside others; inputs that the model is given
    and does not hold or make itself; dtypes; special numbers and emptiness; ranks. How numbers and sizes stand to each other is
    asked last (`relations`).
    """
    yield from _presence(program, defaults)
    yield from _fed(program)
    yield from _dtypes(program)
    found = smaller.leaves(program)
    for says, where in SPECIAL.items():
        if any(_has(x, where) for x in found):
            yield Condition(f"{says} in an input", OTHER, partial(_one, partial(_plain, where=where), program))
    if any(0 in x.shape for x in found):
        yield Condition(EMPTY, OTHER, partial(_one, _filled, program))
    for rank in sorted({len(x.shape) for x in found}):
        says = SCALAR if rank == 0 else f"{RANK} {rank}"
        changes = [partial(change, rank=rank) for change in (_one_axis_more, _one_axis_less)]
        yield Condition(says, OTHER, partial(_each, changes, program))


def without(ask: Look, program: Program, says: str, defaults: Defaults) -> list[Shown] | None:
    """Return what programs show that lack a condition which was told so of another; None where this one lacks it, too.

    Raises Spent.
    """
    known = [x for x in conditions(program, defaults) if x.key == key(says)]
    return [shown for x in known for shown in _shown(ask, program, x)] if known else None


def without_all(ask: Look, program: Program, told: Iterable[str], defaults: Defaults) -> list[Shown]:
    """Return what programs show that lack all of these conditions. Raises Spent."""
    made = [program]
    for says in told:
        found = ((x, y) for x in made for y in conditions(x, defaults) if y.key == key(says))
        made = [z for x, y in found for z in _made(x, y.others())][:TOGETHER]
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
                yield Condition(f"{trait.name}={_said(value)}", PARAMETER, partial(_lacking, trait, program))
        elif trait.kind == "input":
            yield Condition(f"input {trait.name}", INPUT, partial(_lacking, trait, program))
        elif trait.kind == "mode":
            yield Condition(f"{trait.name} mode", OTHER, partial(_lacking, trait, program))
    if isinstance(program, Instance):
        for name, made in _given_for(program, defaults.get(program.operator, {})):
            yield Condition(f"{name} left out", PARAMETER, partial(tuple, made))
        for name in filter(None, program.outputs):
            if sum(map(bool, program.outputs)) > 1:
                yield Condition(f"output {name}", OUTPUT, partial(_output_left_out, program, name))


def _lacking(trait: smaller.Trait, program: Program) -> list[Program | None]:
    return [smaller.applied(trait.without, program)]


def _output_left_out(program: Instance, name: str) -> list[Program | None]:
    outputs = ["" if x == name else x for x in program.outputs]
    while not outputs[-1]:
        outputs.pop()
    return [msgspec.structs.replace(program, outputs=tuple(outputs))]


def _given_for(program: Instance, known: Mapping[str, Value]) -> Iterator[tuple[str, list[Program | None]]]:
    """Yield the parameters that have no value, None by default, and programs that give one the value of a number beside it."""
    numbers = [x for x in program.params.values() if isinstance(x, int | float) and not isinstance(x, bool)]
    for name, plain in known.items():
        if plain is None and program.params.get(name) is None and name not in {x.name for x in program.inputs}:
            yield name, [smaller.given(program, name, x) for x in numbers]


def _fed(program: Program) -> Iterator[Condition]:
    """Yield the inputs that a model may hold, or make, instead of being given them, if its library knows how."""
    if not isinstance(program, Instance) or not hasattr(libraries.get(program.library), "embedded"):
        return
    library = cast(Embedding, libraries.get(program.library))
    for operand in program.inputs:
        if operand.value is not None:
            held = isinstance(operand.value, Tensor | RandomTensor)
            says = f"{operand.name} {NO_CONSTANT if held else GRAPH_INPUT}"
            yield Condition(says, OTHER, partial(library.embedded, program, operand.name))


def _dtypes(program: Program) -> Iterator[Condition]:
    """Yield the dtypes of tensors; "integer" decides where every other integer dtype fails as well, and a float passes."""
    for dtype in sorted({x.dtype for x in smaller.leaves(program)} - {"float32", "string", "bool"}):
        as_other = partial(_as_dtypes, program, dtype)
        if dtype in INTEGERS:
            yield Condition(INTEGER, DTYPE, partial(as_other, FLOATS), partial(as_other, INTEGERS), dtype)
        yield Condition(f"{dtype} inputs", DTYPE, partial(as_other, PLAINER), one_of=dtype)


def _as_dtypes(program: Program, dtype: str, others: Iterable[str]) -> list[Program | None]:
    steps = (partial(smaller.as_dtype, dtype=dtype, other=x) for x in others if x != dtype)
    return [smaller.applied(step, program) for step in steps]


# ---------------------------------------------------------------------- what decides


class Decided(NamedTuple):
    """What decides that a program fails: parameters, and what else; of the latter relations, where nothing else is known."""

    parameters: tuple[str, ...] = ()
    besides: tuple[str, ...] = ()


def decided(ask: Look, program: Program, defaults: Defaults) -> Decided:
    """Return that without which a program passes. Of each, another program is asked about that differs in it alone; nothing is
    said where its library rejects that, nor where it then fails in another way.

    A parameter does not decide if the program fails without it as well once its tensors are larger or hold other numbers: then
    it passed by chance (linear interpolation shows a wrong scale better than that of the nearest). Where no parameter and no
    input decides alone, two are left out together. Of a crash that something else decides, `besides` also names those without
    which the program is not supported: they lead to the crash, but not to what would be right.
    """
    found = list[Condition]()
    for x in conditions(program, defaults):
        if not (x.one_of and x.one_of in {y.one_of for y in found}) and _telling(ask, program, x):
            found += [x] if _decides(ask, program, x) else []
    if not any(x.kind in (PARAMETER, INPUT) for x in found):
        found = [*_together(ask, program, defaults), *found]
    of = tuple(x.says for x in found if x.kind == PARAMETER)
    besides = tuple(x.says for x in found if x.kind != PARAMETER)
    besides += tuple(x.says for x in _refused(ask, program, defaults) if found and x.says not in (*of, *besides))
    return Decided(of, besides or (() if of else tuple(relations(ask, program))))


def _decides(ask: Look, program: Program, condition: Condition) -> bool:
    """Whether a program passes without something; not, where there is no time left to ask."""
    try:
        passing = [x for x, now in _shown(ask, program, condition) if now.verdict == PASS]
        if not passing or any(x.verdict == PASS for x in ask.look(_made(program, condition.unless()))):
            return False
        varied = _made(passing[0], varieties(passing[0])) if condition.kind == PARAMETER else []
        return not any(ask.fails(now) for now in ask.look(varied))
    except Spent:
        return False


def _shown(ask: Look, program: Program, condition: Condition) -> list[Shown]:
    """Return what programs show that lack something. Raises Spent.

    Where none of them passes or fails as the program does, they are tried with integers that are 0, if the program itself still
    fails then: an index that a parameter excuses (`ignore_index`) is out of range without it, which libraries reject, or not.
    """
    others = _made(program, condition.others())
    shown = list(zip(others, ask.look(others), strict=True))
    if condition.kind not in (PARAMETER, INPUT) or any(x.verdict == PASS or ask.fails(x) for _, x in shown):
        return shown
    made = [x for x in (_mapped(_zero, x) for x in (program, *others)) if x is not None]
    if made[:1] in ([], [program]) or not ask.fails(ask.look(made[:1])[0]):
        return shown
    return list(zip(made[1:], ask.look(made[1:]), strict=True))


def _telling(ask: Look, program: Program, condition: Condition) -> bool:
    """Whether it tells something that a program passes without this.

    Not, where the wrong output is left out itself; nor where the model holds the only tensor, or the first, and the compiler
    may compute all of it by other means before it makes any code. What it cannot load it does not compute; and integers that
    may say how large a result is are no data.
    """
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


def _together(ask: Look, program: Program, defaults: Defaults) -> list[Condition]:
    """Return the first pair of parameters and inputs without which a program passes; nothing where there is no time left.

    What the library needs is none of them, nor what it passes without by chance.
    """
    try:
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
    for says, others in _related(program):
        if _passes(ask, _made(program, others)):
            yield says


def _related(program: Program) -> Iterator[tuple[str, list[Program | None]]]:
    found = smaller.leaves(program)
    if any(1 in x.shape for x in found):
        for axis in range(max(len(x.shape) for x in found)):
            yield f"{LENGTH_ONE} {axis}", [_mapped(partial(_longer, axis=axis), program)]
    yield EQUAL, [_mapped(_distinct, program)]
    for name, made in _nudged(program):
        yield f"{name} {LIMIT}", made


# ---------------------------------------------------------------------- changed tensors


def varieties(program: Program) -> list[Program | None]:
    """Return the program with other numbers, and with dimensions that are one more, and one more than two and three times as
    many: those of its first tensor and of all that have several axes.
    """
    made: list[Program | None] = [_mapped(_counted, program)]
    first = next((x for x in smaller.leaves(program)), None)
    if first is not None and any(x > 1 for x in first.shape):
        for factor in (1, 2, 3):
            made.append(smaller.applied(partial(_grown, factor=factor), program))
    return made


def _counted(leaf: Leaf) -> Leaf:
    return simpler.counted(leaf) if "float" in leaf.dtype else leaf


def _grown(program: Program, factor: int) -> Program:
    places = iter(range(1 << 30))

    def change(leaf: Leaf) -> Leaf:
        if next(places) and len(leaf.shape) < 2:
            return leaf
        shape = tuple(x * factor + 1 if x > 1 else x for x in leaf.shape)
        if not isinstance(leaf, Tensor):
            return _shaped(leaf, shape)
        return _counted(Tensor.of(np.resize(leaf.array(), shape), leaf.dtype))

    return smaller.mapped(program, change)


def _one(change: Callable[[Leaf], Leaf], program: Program) -> list[Program | None]:
    return [_mapped(change, program)]


def _each(changes: Iterable[Callable[[Leaf], Leaf]], program: Program) -> list[Program | None]:
    return [_mapped(change, program) for change in changes]


def _mapped(change: Callable[[Leaf], Leaf], program: Program) -> Program | None:
    """Return the program with all inputs changed: tensors in parameters stay."""
    return smaller.applied(lambda x: smaller.mapped(x, change), program)


def _zero(leaf: Leaf) -> Leaf:
    if not isinstance(leaf, Tensor) or leaf.dtype not in INTEGERS:
        return leaf
    return Tensor.of(np.zeros(leaf.shape, leaf.dtype), leaf.dtype)


def _one_axis_more(leaf: Leaf, rank: int) -> Leaf:
    return _shaped(leaf, (1, *leaf.shape)) if len(leaf.shape) == rank else leaf


def _one_axis_less(leaf: Leaf, rank: int) -> Leaf:
    if len(leaf.shape) != rank or 1 not in leaf.shape:
        return leaf
    place = leaf.shape.index(1)
    return _shaped(leaf, leaf.shape[:place] + leaf.shape[place + 1 :])


def _shaped(leaf: Leaf, shape: tuple[int, ...]) -> Leaf:
    return msgspec.structs.replace(leaf, shape=shape)


def _longer(leaf: Leaf, axis: int) -> Leaf:
    """Repeat what has one element along an axis."""
    if axis >= len(leaf.shape) or leaf.shape[axis] != 1:
        return leaf
    if not isinstance(leaf, Tensor):
        return _shaped(leaf, (*leaf.shape[:axis], 2, *leaf.shape[axis + 1 :]))
    return Tensor.of(np.repeat(leaf.array(), 2, axis), leaf.dtype)


def _distinct(leaf: Leaf) -> Leaf:
    """Let the elements of floats differ, each a little more than the one before, where some are equal."""
    if not isinstance(leaf, Tensor) or leaf.dtype not in ("float32", "float64") or leaf.array().size < 2:
        return leaf
    numbers = simpler.numbers(leaf)
    if not np.isfinite(numbers).all() or len(np.unique(numbers)) == numbers.size:
        return leaf
    more = np.arange(numbers.size).reshape(numbers.shape) * NUDGE
    return simpler.numbered(numbers + more, leaf.dtype)


def _nudged(program: Program) -> Iterator[tuple[str, list[Program | None]]]:
    """Yield floating-point parameters and inputs of one element, and the program with a little more, and less, of each."""
    if not isinstance(program, Instance):
        return
    for name, value in program.params.items():
        if isinstance(value, float) and np.isfinite(value):
            yield name, [smaller.with_param(program, name, value + x) for x in _steps(value)]
    for operand in program.inputs:
        held = operand.value
        if isinstance(held, Tensor) and held.dtype in ("float32", "float64") and held.array().size == 1:
            number = float(held.array().ravel()[0])
            if len(program.inputs) > 1 and np.isfinite(number):
                made = [simpler.numbered(np.full(held.shape, number + x), held.dtype) for x in _steps(number)]
                yield operand.name, [_with_input(program, operand.name, x) for x in made]


def _steps(number: float) -> tuple[float, float]:
    size = NUDGE * (abs(number) or 1.0)
    return size, -size


def _with_input(program: Instance, name: str, value: Value) -> Program:
    inputs = (msgspec.structs.replace(x, value=value) if x.name == name else x for x in program.inputs)
    return msgspec.structs.replace(program, inputs=tuple(inputs))


def _filled(leaf: Leaf) -> Leaf:
    if 0 not in leaf.shape or leaf.dtype not in CONTAINERS:
        return leaf
    return simpler.numbered(np.ones([x or 1 for x in leaf.shape]), leaf.dtype)


def _plain(leaf: Leaf, where: Callable[[Array], Array]) -> Leaf:
    if not isinstance(leaf, Tensor) or leaf.dtype == "string":
        return leaf
    numbers = simpler.numbers(leaf)
    if numbers.dtype.kind not in "fi" or not (found := where(numbers)).any():
        return leaf
    one = simpler.numbered(np.ones(1), leaf.dtype).array()[0]
    return Tensor.of(np.where(found, one, leaf.array()), leaf.dtype)


def _has(leaf: Leaf, where: Callable[[Array], Array]) -> bool:
    return _plain(leaf, where) != leaf


def _said(value: Value) -> str:
    match value:
        case Named():
            return value.name
        case {"class_name": str(name)}:  # an object of Keras's, as its configuration states it
            return name
        case Tensor() | RandomTensor():
            return f"{value.dtype}{list(value.shape)}"
        case list() | tuple():
            return "[" + ", ".join(map(_said, value)) + "]"
    return repr(value)[:60]
