"""What may be told of a program: a claim, and what claims read of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from opera.programs.program import Instance, Program
from opera.programs.values import Value
from opera.triage.conditions.forms import tensor
from opera.triage.shrink import smaller

Lengths = tuple[int, ...]
NOT_BELOW = " not below "
"""How it is told that a number is another one, or more."""
BEYOND_DTYPE = " beyond the dtype of "
"""How it is told that a number is none of another's dtype."""
WHOLE = "an integer "
"""How it begins that this is told of integers alone."""


class Feature(NamedTuple):
    """Something that a program has or has not, and how it is told.

    Attributes:
        says: How it is told, and known again in other reductions.
        holds: Whether a program has it.
        words: How readers are told, where that is more than `says`: of which operand it is.
    """

    says: str
    holds: Callable[[Program], bool]
    words: str = ""


def value_of(program: Program, name: str, known: Mapping[str, Value]) -> Value:
    """Return the value of a parameter or input, of the first call that has such; of what is left out its default."""
    calls = taking(program)
    call = next((x for x in calls if name in x.params or name in {y.name for y in x.inputs}), calls[0])
    held = next((x.value for x in call.inputs if x.name == name), None)
    return held if held is not None else call.params.get(name, smaller.default(known, name))


def differ_in_one(one: Program, other: Program) -> bool:
    """Whether two programs are the same calls, of several each of the same, and differ in one parameter of one at most."""
    if _wired(one) != _wired(other):
        return False
    pairs = zip(one.instances(), other.instances(), strict=True)
    unlike = [name for x, y in pairs for name in x.params.keys() | y.params if x.params.get(name) != y.params.get(name)]
    return len(unlike) <= 1


def _wired(program: Program) -> object:
    """Return what a program calls, and what each of several calls takes and returns."""
    if isinstance(program, Instance):
        return program.operator
    return [(x.operator, x.inputs, x.outputs) for x in program.calls]


def left_out(program: Program, names: Iterable[str]) -> bool:
    """Whether one of these parameters and inputs has no value."""
    call = taking(program)[0]
    given = {x.name for x in call.inputs if x.value is not None}
    return any(x not in given and call.params.get(x) is None for x in names)


def taking(program: Program) -> Sequence[Instance]:
    """Return the calls that take something, if there are such: constants have a `value`, too."""
    calls = program.instances()
    return [x for x in calls if x.inputs] or calls


def shape_of(program: Program, name: str) -> Lengths | None:
    return getattr(tensor(program, name), "shape", None)


def data(program: Program) -> list[str]:
    """Return the inputs that are data: the first tensor, and others that do not state sizes."""
    held = [(x.name, tensor(program, x.name)) for x in program.inputs]
    given = [(name, x) for name, x in held if x is not None]
    return [name for n, (name, x) in enumerate(given) if not n or not smaller.states(x)]
