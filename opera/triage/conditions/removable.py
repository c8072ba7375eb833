"""What a program has that may be taken away, to see whether that decides.

`conditions` is the one table of it: parameters, inputs, outputs, dtypes, values, and how a program is written. What says that
something of it decides is asked of opera.triage.conditions.deciding.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple, cast

import msgspec

from opera import libraries
from opera.libraries import Embedding, Nesting
from opera.programs import values
from opera.programs.program import Instance, Program
from opera.programs.values import NO_DEFAULT, Message, Named, RandomTensor, Tensor, Value
from opera.triage.conditions import around, dtypes, peculiar
from opera.triage.conditions.arguments import WRITTEN
from opera.triage.sentence import GRAPH_INPUT, NO_ATTRIBUTE, NO_CONSTANT, RETURNED, UNNAMED
from opera.triage.shrink import simpler, smaller
from opera.triage.shrink.smaller import Defaults

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


class Condition(NamedTuple):
    """Something that a program has, and what it is without it.

    Attributes:
        says: How it is told: `mode='linear'`, `input B`, `float16 inputs`.
        kind: PARAMETER, INPUT, OUTPUT, DTYPE, FORM or OTHER.
        others: Makes the programs that lack it and are the same else; it decides where one of them passes.
        unless: Makes programs that must not pass: then something narrower decides.
        one_of: Name of a group, of which only the first that decides is told.
        around: Whether it is what stands around the call that the others have otherwise (opera.triage.conditions.around).
    """

    says: str
    kind: str
    others: Callable[[], Iterable[Program | None]]
    unless: Callable[[], Iterable[Program | None]] = tuple
    one_of: str = ""
    around: bool = False

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
    name = key(says) if BEYOND.search(says) and not says.startswith(GIVEN) and not is_dtype(says) else ""
    return "" if " " in name else name  # "the lower rank of x and y other than 2" names none


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
    and sizes stand to each other is asked last (`deciding.relations`).
    """
    yield from _presence(program, defaults)
    yield from _fed(program)
    yield from _unnamed(program)
    yield from _forms(program)
    yield from _returned(program)
    for says, made in peculiar.values(program):
        yield Condition(says, OTHER, partial(tuple, made), one_of=peculiar.group(program, says))
    yield from _dtypes(program)


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
                yield Condition(fed, FORM, partial(around.computed, program, operand.name), one_of=fed, around=True)
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
        yield Condition(RETURNED, FORM, partial(tuple, made), around=True)


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


def said(value: Value) -> str:
    """Return how the value of a parameter is told, shortened."""
    match value:
        case Named():
            return value.name
        case {"class_name": str(name)}:  # an object of Keras's, as its configuration states it
            return name
        case Tensor() | RandomTensor():
            return f"{value.dtype}{list(value.shape)}"
        case values.Sequence():
            return f"a sequence of {len(value.items)} {value.type}"
        case values.Optional():
            return f"an optional that holds {said(value.value) if value.value is not None else f'no {value.type}'}"
        case Message():
            return value.told
        case list() | tuple():
            return "[" + ", ".join(map(said, value)) + "]"
    return repr(value)[:60]
