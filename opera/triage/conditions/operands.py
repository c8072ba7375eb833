"""Of which operand it is told that it is empty, of a dtype, or holds a number, where an operator takes several tensors.

`Compress` dies of an empty `condition`, `OneHot` is not converted with floating-point `indices`: who reads "an empty input"
tries the first one. A program with the other one so passes, and speaks against what is told.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from opera.programs.program import Instance, Program
from opera.programs.values import Tensor
from opera.triage.conditions import dtypes, peculiar
from opera.triage.conditions.near import tensor, with_input
from opera.triage.conditions.stated import Feature
from opera.triage.sentence import EMPTY
from opera.triage.shrink import simpler, smaller
from opera.triage.shrink.smaller import Leaf

ANY = " in an input"
"""How it is told of any tensor that it holds a number."""
INPUTS = " inputs"
"""How it is told of which dtype tensors are."""
MOST = 4096
"""Elements of a tensor that is made of another dtype, at most."""


def named(told: Feature, program: Instance, failing: Sequence[Program]) -> Feature:
    """Return what is told of the one operand of several that all failing programs have it of; as it is where that is none, or
    not one alone, for tensors that share a type have it together.
    """
    made = _of_operand(told.says)
    if made is None or sum(tensor(program, x.name) is not None for x in program.inputs) < 2:
        return told
    words, has = made
    every = (program, *failing)
    names = [name for name in _operands(program) if all(_holds(x, name=name, has=has) for x in every)]
    return Feature(told.says, partial(_holds, name=names[0], has=has), words(names[0])) if len(names) == 1 else told


def apart(told: Sequence[Feature], program: Instance) -> Iterator[Program]:
    """Yield the program with one operand alone that has not what is told of its dtype or numbers, of each that others share it
    with."""
    held = _operands(program)
    for says in (x.says for x in told):
        made = _of_operand(says)
        having = [name for name in held if made is not None and _holds(program, name=name, has=made[1])]
        if len(having) < 2:
            continue
        made_of = (with_input(program, name, x) for name in having for x in _lacking(says, held[name]))
        yield from (x for x in made_of if x is not None)


def _operands(program: Instance) -> dict[str, Leaf]:
    """Return the tensors that a call is given, by name; beside the first one none that may state sizes or axes."""
    every = [(x.name, held) for x in program.inputs if (held := tensor(program, x.name)) is not None]
    return {name: x for n, (name, x) in enumerate(every) if not n or not smaller.states(x)}


def _of_operand(says: str) -> tuple[Callable[[str], str], Callable[[Leaf], bool]] | None:
    """Return how what is told of inputs is told of one, and whether a tensor has it; None of what is told otherwise."""
    if says == EMPTY:
        return "an empty {}".format, lambda x: 0 in x.shape
    where = {**peculiar.SPECIAL, **peculiar.ENDS}.get(says.removesuffix(ANY))
    if says.endswith(ANY) and where is not None:
        return f"{says.removesuffix(ANY)} in {{}}".format, partial(peculiar.has, where=where)
    kinds = dtypes.members(says)
    if kinds and says.endswith(INPUTS):
        return f"{says.removesuffix(INPUTS)} {{}}".format, lambda x: x.dtype in kinds
    return None


def _holds(program: Program, name: str, has: Callable[[Leaf], bool]) -> bool:
    held = tensor(program, name)
    return held is not None and has(held)


def _lacking(says: str, held: Leaf) -> Iterator[Tensor]:
    """Yield a tensor as this one is that has not what is told of it: of an ordinary dtype, or with 1, 2, 3, ... in it."""
    kinds = dtypes.members(says)
    if says == EMPTY or math.prod(held.shape) > MOST:
        return
    numbers = simpler.numbered(np.arange(math.prod(held.shape)).reshape(held.shape) % 6 + 1, "int64")
    if not kinds:
        yield from (x for x in (simpler.counted(held),) if isinstance(x, Tensor))
    yield from (simpler.numbered(numbers.array(), x) for x in ("float32", "int64") if kinds and x not in kinds)
