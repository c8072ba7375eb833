"""How lists that a call is given may be told: empty, for how many axes they have numbers, which sizes they state, indices."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from opera.programs.program import Instance, Program
from opera.programs.values import NO_DEFAULT, Tensor, Value
from opera.triage.conditions import peculiar
from opera.triage.conditions.forms import tensor
from opera.triage.conditions.stated import left_out
from opera.triage.shrink import simpler, smaller

Told: TypeAlias = tuple[str, Callable[[Program], bool]]
"""How something is told, and whether a program has it."""
NO_POWER = " no power of 2"
"""How it is told that a length is none."""
OF_SEVERAL = re.compile(r"(?:several|\d+ or more) (?:axes|numbers) in (.+)")
"""How it is told that a list, which is named, has several entries."""
BUT = ("", " but one", " but two")
"""Of how many axes a list has no numbers."""


def entries(program: Instance) -> Iterator[Told]:
    """Yield for how many axes of the first tensor lists have a number, or two: pads of an input without a batch are of all axes
    but one, whatever its rank."""
    for name in [*program.params, *(x.name for x in program.inputs[1:])]:
        for each, words in ((2, "two numbers"), (1, "a number")):
            for but, said in enumerate(BUT) if not smaller.is_axes(name) else ():
                holds = partial(_has_entries, name=name, each=each, but=but)
                if holds(program):
                    yield f"{words} in {name} for each axis{said}", holds


def fewer(program: Program, first: str) -> Iterator[Told]:
    """Yield which inputs state fewer sizes than the first tensor has axes: the others are as long as they are."""
    for name in [x.name for x in program.inputs if x.name != first and peculiar.SIZES.search(x.name)]:
        holds = partial(_has_fewer, name=name, first=first)
        if holds(program):
            yield f"fewer numbers in {name} than axes of {first}", holds


def _has_fewer(program: Program, name: str, first: str) -> bool:
    own, held = _length(program, name), tensor(program, first)
    return own is not None and held is not None and own < len(held.shape)


def _has_entries(program: Program, name: str, each: int, but: int) -> bool:
    own, found = _length(program, name), smaller.leaves(program)
    return bool(own) and bool(found) and own == each * (len(found[0].shape) - but)


def several(program: Instance, failing: Sequence[Program]) -> Iterator[Told]:
    """Yield lists that have two entries or more, wherever it fails: of several axes the first may be reduced alone."""
    for name in [*program.params, *(x.name for x in program.inputs[1:])]:
        least = min(_length(x, name) or 0 for x in (program, *failing))
        if least > 1:
            count = "several" if least == 2 else f"{least} or more"
            words = "axes" if smaller.is_axes(name) else "numbers"
            yield f"{count} {words} in {name}", partial(_has_more, name=name, least=least)


def _has_more(program: Program, name: str, least: int) -> bool:
    return (_length(program, name) or 0) >= least


def empty(program: Instance, names: Sequence[str], required: Collection[str] = ()) -> Iterator[Told]:
    """Yield lists that are empty, or left out if they are not required: of these names, and of what is given and has no
    elements."""
    bare = [x for x in (*program.params, *(y.name for y in program.inputs)) if _length(program, x) == 0]
    for name in dict.fromkeys((*bare, *names)):
        yield f"{name} empty{'' if name in required else ' or left out'}", partial(_is_empty, name=name)


def zero(names: Sequence[str], failing: Sequence[Instance]) -> Iterator[Told]:
    """Yield parameters without a number: of these names, which a program leaves out, where others that fail are given 0."""
    for name in names:
        given = [x.params[name] for x in failing if x.params.get(name) is not None]
        if given and all(type(x) in (int, float) and x == 0 for x in given):
            yield f"{name} 0 or left out", partial(_is_zero, name=name)


def _is_zero(program: Program, name: str) -> bool:
    own = program.instances()[0].params.get(name)
    return left_out(program, [name]) or (type(own) in (int, float) and own == 0)


def beside_later(
    program: Instance, names: Sequence[str], known: Mapping[str, Value], failing: Iterable[Instance]
) -> Iterator[Told]:
    """Yield parameters of these names that are left out, or empty, beside one that comes after them and is not its default:
    something else must stand in their place then, where values are given by position (attributes of a node are not). Those
    after it are named of which one alone does so in a program that fails.

    Args:
        known: The parameters of the operator, in their order, and their defaults.
    """
    order, every = list(known), [program, *failing]
    for name in names if not any(program.outputs) else ():
        later = [x for x in order[order.index(name) + 1 :] if known[x] != NO_DEFAULT] if name in known else []
        others = [[x for x in later if _is_other(of, x, known)] for of in every]
        alone = [x for x in later if [x] in others]
        if len(alone) > 1:
            words = f"{', '.join(alone[:-1])} or {alone[-1]}"
            yield f"{name} left out beside {words}", partial(_is_beside, name=name, later=alone, known=known)


def _is_other(program: Program, name: str, known: Mapping[str, Value]) -> bool:
    value = program.instances()[0].params.get(name)
    return value is not None and not smaller.same(value, smaller.default(known, name))


def _is_beside(program: Program, name: str, later: Sequence[str], known: Mapping[str, Value]) -> bool:
    return _is_empty(program, name) and any(_is_other(program, x, known) for x in later)


def _is_empty(program: Program, name: str) -> bool:
    call = program.instances()[0]
    given = {x.name for x in call.inputs if x.value is not None}
    return (name not in given and call.params.get(name) is None) or _length(program, name) == 0


def _length(program: Program, name: str) -> int | None:
    """Return how many integers a parameter or an input lists, None where it is no list of such."""
    call = program.instances()[0]
    own: Value = call.params.get(name)
    if isinstance(own, list | tuple):
        return len(own) if all(type(x) is int for x in own) else None
    held = tensor(program, name)
    return math.prod(held.shape) if held is not None and smaller.states(held) and len(held.shape) == 1 else None


def negative(program: Program) -> Iterator[Told]:
    """Yield the inputs of integers beside the first that hold negative ones: indices that count from the other end."""
    for name in [x.name for x in program.inputs[1:] if "int" in getattr(x.value, "dtype", "")]:
        holds = partial(_has_negative, name=name)
        if holds(program):
            yield f"a negative number in {name}", holds


def _has_negative(program: Program, name: str) -> bool:
    held = tensor(program, name)
    return isinstance(held, Tensor) and "int" in held.dtype and bool((simpler.numbers(held) < 0).any())


def unequal(program: Instance) -> Iterator[Told]:
    """Yield the lists that hold different numbers, and name no axes: parts, pads or strides of one size may be right alone."""
    for name in [*program.params, *(x.name for x in program.inputs[1:])]:
        holds = partial(_has_unequal, name=name)
        if not smaller.is_axes(name) and holds(program):
            yield f"unequal numbers in {name}", holds


def _has_unequal(program: Program, name: str) -> bool:
    own = smaller.integers(program.instances()[0].params.get(name))
    held = tensor(program, name)
    if not own and held is not None and (not smaller.states(held) or len(held.shape) != 1):
        return False
    return len({*own, *(_numbers(program, name) if not own else [])}) > 1


def no_powers(program: Instance, first: str) -> Iterator[Told]:
    """Yield the lengths that are no power of 2: of the last axis of the first tensor, and parameters that are whole numbers."""
    if _is_odd_axis(program, first):
        yield f"the last axis of {first}{NO_POWER}", partial(_is_odd_axis, first=first)
    for name, value in program.params.items():
        if type(value) is int and _odd(value) and not smaller.is_axes(name) and not simpler.is_type(name):
            yield f"{name}{NO_POWER}", partial(_is_odd, name=name)


def _odd(number: Value) -> bool:
    """Whether it is a whole number beyond 2, and no power of 2."""
    return type(number) is int and number > 2 and number & (number - 1) != 0


def _is_odd(program: Program, name: str) -> bool:
    return _odd(program.instances()[0].params.get(name))


def _is_odd_axis(program: Program, first: str) -> bool:
    return any(_odd(x) for x in getattr(tensor(program, first), "shape", ())[-1:])


def stated(program: Program, first: str) -> Iterator[Told]:
    """Yield how the sizes that an input states stand to the lengths of the first tensor, counted from the last axis."""
    for name in [x.name for x in program.inputs if x.name != first and peculiar.SIZES.search(x.name)]:
        for below in (True, False):
            holds = partial(_states_other, name=name, first=first, below=below)
            if holds(program):
                yield f"a size in {name} {'below' if below else 'beyond'} that of {first}", holds


def _states_other(program: Program, name: str, first: str, below: bool) -> bool:
    lengths = getattr(tensor(program, first), "shape", ())
    pairs = zip(reversed(_numbers(program, name)), reversed(lengths), strict=False)
    return any(size < length if below else size > length for size, length in pairs)


def zeros(program: Instance, first: str) -> Iterator[Told]:
    """Yield which lists of lengths have a 0 in the place of another length of the first tensor, or of none: who reads 0 as
    "as long as it is" makes something else of it (ONNX's Reshape, unless `allowzero`)."""
    for name in (x for x in program.params if smaller.SIZED.search(x) or peculiar.SIZES.search(x)):
        holds = partial(_has_zero, name=name, first=first)
        if holds(program):
            yield f"a 0 in {name} where {first} has another length", holds


def _has_zero(program: Program, name: str, first: str) -> bool:
    lengths = getattr(tensor(program, first), "shape", ())
    held = program.instances()[0].params.get(name)
    own = smaller.integers(held) if isinstance(held, list | tuple) else []
    return any(x == 0 and lengths[at : at + 1] != (0,) for at, x in enumerate(own))


def listed(program: Program) -> Iterator[Told]:
    """Yield how many numbers an input lists that may state sizes, and that none of them is 1, which changes nothing."""
    for name in [x.name for x in program.inputs[1:] if not smaller.is_axes(x.name)]:
        held = tensor(program, name)
        if held is not None and smaller.states(held) and math.prod(held.shape) > 1:
            least = math.prod(held.shape)
            yield f"{least} or more elements in {name}", partial(_lists, name=name, least=least)
            if 1 not in _numbers(program, name):
                yield f"no 1 in {name}", partial(_has_no_1, name=name)


def _has_no_1(program: Program, name: str) -> bool:
    return 1 not in _numbers(program, name)


def _lists(program: Program, name: str, least: int) -> bool:
    held = tensor(program, name)
    return held is not None and math.prod(held.shape) >= least


def _numbers(program: Program, name: str) -> list[float]:
    held = tensor(program, name)
    plain = isinstance(held, Tensor) and held.dtype != "string" and not held.dtype.startswith("complex")
    return simpler.numbers(held).ravel().tolist() if isinstance(held, Tensor) and plain else []
