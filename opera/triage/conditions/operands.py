"""Of which operand it is told that it is empty, of a dtype, of a rank, or holds a number, where an operator takes several
tensors.

`Compress` dies of an empty `condition`, `OneHot` is not converted with floating-point `indices`: who reads "an empty input"
tries the first one. A program with the other one so passes, and speaks against what is told. Some operands have it together
(`scatter_reduce` of a 0-d `index`, and so `src`, whatever `input` is).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from opera.programs.program import Instance, Program
from opera.programs.values import Tensor
from opera.triage.conditions import dtypes, peculiar
from opera.triage.conditions.arguments import with_input
from opera.triage.conditions.forms import tensor
from opera.triage.conditions.stated import Feature
from opera.triage.sentence import EMPTY, listed
from opera.triage.shrink import simpler, smaller
from opera.triage.shrink.smaller import Leaf

ANY = " in an input"
"""How it is told of any tensor that it holds a number."""
INPUTS = " inputs"
"""How it is told of which dtype tensors are."""
MANY = 4
"""Operands that are named, at most, where they have it together."""
MOST = 4096
"""Elements of a tensor that is made of another dtype, at most."""


def named(told: Feature, program: Instance, failing: Sequence[Program], *, lost: bool = False) -> Feature:
    """Return what is told of the operands that all failing programs have it of, one or some; as it is where that are all or
    none.

    Args:
        lost: Whether others lack it. Then of operands that state sizes or axes nothing is told: they may have no other dtype.
    """
    made = _of_operand(told.says)
    if made is None or sum(tensor(program, x.name) is not None for x in program.inputs) < 2:
        return told
    words, has, most = made
    ranked = peculiar.is_rank(told.says)
    every, held = (program, *failing), _operands(program, every=ranked)
    names = [name for name in held if all(_holds(x, names=[name], has=has) for x in every)]
    exactly = dtypes.members(told.says) or told.says.endswith(ANY) or told.says == EMPTY
    if not names and not lost and exactly:  # of those, too, that state sizes or axes
        held = _operands(program, every=True)
        names = [name for name in held if all(_holds(x, names=[name], has=has) for x in every)]
    some = len(names) == 1 or 0 < len(names) < min(len(held), most + 1)
    return Feature(told.says, partial(_holds, names=names, has=has), words(names)) if some else told


def apart(told: Sequence[Feature], program: Instance) -> Iterator[Program]:
    """Yield the program with one operand alone that has not what is told of its dtype or numbers, of each that others share it
    with."""
    held = _operands(program)
    for says in (x.says for x in told):
        made = _of_operand(says)
        having = [name for name in held if made is not None and _holds(program, names=[name], has=made[1])]
        if len(having) < 2:
            continue
        made_of = (with_input(program, name, x) for name in having for x in _lacking(says, held[name]))
        yield from (x for x in made_of if x is not None)


def _operands(program: Instance, *, every: bool = False) -> dict[str, Leaf]:
    """Return the tensors that a call is given, by name; beside the first one none that may state sizes or axes, if not
    `every` one."""
    held = [(x.name, leaf) for x in program.inputs if (leaf := tensor(program, x.name)) is not None]
    return {name: x for n, (name, x) in enumerate(held) if every or not n or not smaller.states(x)}


def _of_operand(says: str) -> tuple[Callable[[Sequence[str]], str], Callable[[Leaf], bool], int] | None:
    """Return how what is told of inputs is told of some, whether a tensor has it, and of how many at most it is told; None of
    what is told otherwise.

    Of dtypes and ranks each operand was given others alone; nobody knows that all that are empty, or negative, must be.
    """
    if says == EMPTY:
        return partial(_told, "empty"), lambda x: 0 in x.shape, 1
    where = peculiar.TOLD.get(says.removesuffix(ANY))
    if says.endswith(ANY) and where is not None:
        return lambda names: f"{says.removesuffix(ANY)} in {names[0]}", partial(peculiar.has, where=where), 1
    kinds = dtypes.members(says)
    if kinds and says.endswith(INPUTS):
        return lambda names: f"{says.removesuffix(INPUTS)} {listed(names)}", lambda x: x.dtype in kinds, MANY
    if found := re.fullmatch(rf"(?:a (\d)-d input|{peculiar.RANK} (\d+))", says):
        rank = int(found[1] or found[2])
        words = partial(_told, f"{rank}-d") if rank < 2 else lambda names: f"{listed(names)} of rank {rank}"
        return words, lambda x: len(x.shape) == rank, MANY
    return None


def _told(how: str, names: Sequence[str]) -> str:
    """Return how it is told of operands that they are so: `an empty condition`, `0-d index and src`."""
    article = "" if len(names) > 1 else "an " if how[0] in "aeiou" else "a "
    return f"{article}{how} {listed(names)}"


def _holds(program: Program, names: Sequence[str], has: Callable[[Leaf], bool]) -> bool:
    found = [tensor(program, x) for x in names]
    return all(x is not None and has(x) for x in found)


def _lacking(says: str, held: Leaf) -> Iterator[Tensor]:
    """Yield a tensor as this one is that has not what is told of it: of an ordinary dtype, or with 1, 2, 3, ... in it."""
    kinds = dtypes.members(says)
    if says == EMPTY or peculiar.is_rank(says) or math.prod(held.shape) > MOST:
        return
    numbers = simpler.numbered(np.arange(math.prod(held.shape)).reshape(held.shape) % 6 + 1, "int64")
    if not kinds:
        yield from (x for x in (simpler.counted(held),) if isinstance(x, Tensor))
    yield from (simpler.numbered(numbers.array(), x) for x in ("float32", "int64") if kinds and x not in kinds)
