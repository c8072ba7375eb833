"""Whole numbers that stand for something else: the ends of integers, which a call writes for "to the end" or "unknown".

A compiler may compare with just this one, so that its neighbours are right: of such a number beside the first tensor the one
before and the one after it are asked about, the other ends, and numbers that are large and no end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from opera.programs.program import Instance, Program
from opera.programs.values import Tensor
from opera.triage.conditions import dtypes
from opera.triage.conditions.arguments import with_input
from opera.triage.conditions.forms import tensor
from opera.triage.conditions.stated import Feature
from opera.triage.shrink import smaller

ENDS: Mapping[int, str] = {
    2**31 - 1: "INT32_MAX",
    2**63 - 1: "INT64_MAX",
    -(2**31): "INT32_MIN",
    -(2**63): "INT64_MIN",
}
"""Ends of the integers that sizes and indices are of, and how they are told."""
ENDS_OF_INT32 = (2**31 - 1, -(2**31))
NO_END = 1000
"""A number beyond any axis that is no end."""


def beside(program: Program) -> Iterator[Program]:
    """Yield a call with another number in place of one that is an end: its neighbours first, the other ends, and none."""
    for name, place, own in _ends(program):
        others = [own - 1, own + 1, *(x for x in ENDS if (x < 0) is (own < 0)), NO_END if own > 0 else -NO_END]
        others += [x for x in ENDS if (x < 0) is not (own < 0)]
        made = {x: _put(program, name, place, x) for x in dict.fromkeys(others) if x != own}
        narrow = ENDS_OF_INT32[own < 0]
        held = made.get(narrow) if getattr(tensor(program, name), "dtype", "") == "int64" else None
        as_int32 = dtypes.of_other(held, "int64", "int32") if held is not None else None
        yield from (x for x in (*made.values(), as_int32) if x is not None)


def features(program: Program, failing: Sequence[Program]) -> Iterator[Feature]:
    """Yield which ends inputs and parameters hold with which programs fail: `INT32_MAX or INT64_MAX in ends`."""
    for name in dict.fromkeys(name for name, _, _ in _ends(program)):
        own, *others = (ENDS.keys() & _numbers(x, name) for x in (program, *failing))
        alike = {x for of in others for x in of if any((x < 0) is (y < 0) for y in own)}
        for some in (own, own | alike):
            says = f"{' or '.join(ENDS[x] for x in ENDS if x in some)} in {name}"
            yield Feature(says, partial(_holds, name=name, some=frozenset(some)))


def _holds(program: Program, name: str, some: frozenset[int]) -> bool:
    return not some.isdisjoint(_numbers(program, name))


def _ends(program: Program) -> Iterator[tuple[str, int, int]]:
    """Yield the ends that a call is given beside its first tensor: name, place in the list, and number."""
    first = next(iter(smaller.leaves(program)), None)
    if isinstance(program, Instance):
        for name in (*program.params, *(x.name for x in program.inputs)):
            if tensor(program, name) is None or tensor(program, name) is not first:
                yield from ((name, n, x) for n, x in enumerate(_numbers(program, name)) if x in ENDS)


def _numbers(program: Program, name: str) -> list[int]:
    """Return the whole numbers of a parameter, or of an input that may state sizes."""
    if not isinstance(program, Instance):
        return []
    held = tensor(program, name)
    if isinstance(held, Tensor):
        return held.array().ravel().tolist() if smaller.states(held) else []
    return smaller.integers(program.params.get(name))


def _put(program: Program, name: str, place: int, number: int) -> Instance | None:
    """Return a call with another number in one place of a list; None where its dtype has no such number."""
    held = tensor(program, name)
    if not isinstance(program, Instance):
        return None
    if isinstance(held, Tensor):
        array, ends = held.array().copy(), np.iinfo(held.dtype)
        if not ends.min <= number <= ends.max:
            return None
        array.reshape(-1)[place] = number
        return with_input(program, name, Tensor.of(array, held.dtype))
    own = program.params.get(name)
    made = [number if n == place else x for n, x in enumerate(smaller.integers(own))]
    if isinstance(own, list | tuple):
        return smaller.with_param(program, name, type(own)(made)) if len(made) == len(own) else None
    return smaller.with_param(program, name, number)
