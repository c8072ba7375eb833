"""What a wrong integer would be without bounds: past those of its dtype, and between two integers, specifications are silent.

486 is no uint8: the library makes 230 of it, as it wraps around, a compiler 255 or nothing at all, and ONNX states neither.
Between 2 and 3 one rounds 2.75 and the other cuts it. Each may be closed as undefined, so another program is looked for that
is none of them.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

import msgspec
import numpy as np

from opera.programs.program import Instance, Program
from opera.programs.values import Tensor, Value
from opera.programs.verdicts import CRASH, INCONSISTENT, PASS, Outcome
from opera.triage.conditions import dtypes
from opera.triage.conditions.expected import BITWISE
from opera.triage.shrink import simpler, smaller
from opera.triage.shrink.minimise import Spent
from opera.triage.shrink.smaller import Leaf

WIDE = ("float64", "int64")
"""Dtypes in which a program is computed without bounds, the first that its library takes."""
DIVIDES = re.compile(r"div|mod|remainder|floor", re.IGNORECASE)
"""Operators of integers that are others of floats, as those on bits are."""
NUMBERS = (-1, 1, 2, -2, 3)
"""What is tried in the place of a tensor's numbers."""
STEP = 1e-5
"""How far from an integer, relatively, a float32 may be by rounding alone."""
TRIED = 16
"""Failing programs that are looked at, at most."""


class Asking(Protocol):
    """Tells what programs show, and what their library computes; both raise Spent."""

    outcomes: dict[str, Outcome]
    programs: dict[str, Program]

    def label(self, programs: Sequence[Program]) -> list[bool | None]: ...

    def reference(self, program: Program) -> list[Value] | None: ...


def beyond(ask: Asking, program: Program, shown: Outcome) -> str:
    """Return what the first wrong integer of an output would be without bounds, in words, where its dtype does not hold it; of
    a crash, the first such integer that is expected; nothing where there is none, or nobody knows.
    """
    with suppress(Spent):
        return _beyond(ask, program, shown)
    return ""


def cut(ask: Asking, program: Program, shown: Outcome) -> str:
    """Return the float that the first wrong integer is cut from, in words, where it is one off, the same call that names a
    dtype of floats is right, and that float is an integer but for rounding: `BlackmanWindow` of uint8 cuts 0.99999994 to 0.
    Nothing where all floats are integers, which are exact, unless the operator makes fractions of integers alone.
    """
    with suppress(Spent):
        return _cut(ask, program, shown)
    return ""


def within(ask: Asking, program: Program) -> list[Program]:
    """Return a program of other numbers that fails so, and whose result its dtype holds, where the result of this one it does
    not; nothing where there is none."""
    own = ask.outcomes[program.id]
    if not _beyond(ask, program, own):
        return []
    made = [x for x in _others(program) if x.id != program.id]
    failing = [x for x, fails in zip(made, ask.label(made), strict=True) if fails]
    known = [x for name, x in ask.programs.items() if name in ask.outcomes and x.operators == program.operators]
    small = sorted((x for x in known if x.id != program.id), key=smaller.elements)[: 4 * TRIED]
    failing += [x for x, fails in zip(small, ask.label(small), strict=True) if fails]
    for x in failing[:TRIED]:
        shown = ask.outcomes[x.id]
        if shown.verdict == own.verdict and not _beyond(ask, x, shown):
            return [x]
    return []


def _beyond(ask: Asking, program: Program, shown: Outcome) -> str:
    if shown.verdict == CRASH:
        return _of_crash(ask, program)
    found = _exact(ask, program, shown)
    if found is None:
        return ""
    value, dtype = found
    held = np.iinfo(dtype)
    if value != round(value):
        return f"{value:.6g}, which is no integer"
    return f"{value:.0f}, which {dtype} does not hold" if not held.min <= value <= held.max else ""


def _of_crash(ask: Asking, program: Program) -> str:
    """Return the first integer that is expected of a crash, without bounds, which its dtype does not hold."""
    if not isinstance(program, Instance) or any(x.search(program.operator) for x in (DIVIDES, BITWISE)):
        return ""
    for place, own in enumerate(ask.reference(program) or ()):
        if not isinstance(own, Tensor) or own.dtype not in dtypes.INTEGERS:
            continue
        held = np.iinfo(own.dtype)
        for wide in WIDE:
            made = dtypes.of_other(program, own.dtype, wide)
            found = ask.reference(made) if made is not None and made != program else None
            value = found[place] if found is not None and place < len(found) else None
            if not isinstance(value, Tensor) or (value.dtype, value.shape) != (wide, own.shape):
                continue
            numbers = value.array().ravel()
            odd = numbers[np.isfinite(numbers) & ((numbers < held.min) | (numbers > held.max))]
            return f"{odd[0]:.0f}, which {own.dtype} does not hold" if odd.size else ""
    return ""


def _exact(ask: Asking, program: Program, shown: Outcome) -> tuple[float, str] | None:
    """Return what the first wrong integer is without bounds, and its dtype; None where it is no integer, or nobody knows."""
    seen = shown.details
    numbers = [seen.get(x) for x in ("expected", "actual")]
    if not _of_integers(shown):
        return None
    if not isinstance(program, Instance) or any(x.search(program.operator) for x in (DIVIDES, BITWISE)):
        return None
    place, index = _where(program, seen)
    own = _at(ask.reference(program), place, index)
    same = (
        own is not None and isinstance(numbers[0], int) and own[0] == float(numbers[0])
    )  # float64 does not hold all of int64
    if own is None or own[1] not in dtypes.INTEGERS or not same:
        return None
    for wide in WIDE:
        made = dtypes.of_other(program, own[1], wide)
        found = _at(ask.reference(made), place, index) if made is not None and made != program else None
        if found is not None and found[1] == wide and np.isfinite(found[0]):
            return found[0], own[1]
    return None


def _of_integers(shown: Outcome) -> bool:
    """Whether an integer was expected, and another one returned."""
    numbers = [shown.details.get(x) for x in ("expected", "actual")]
    return shown.verdict == INCONSISTENT and all(isinstance(x, int) and not isinstance(x, bool) for x in numbers)


def _cut(ask: Asking, program: Program, shown: Outcome) -> str:
    if not isinstance(program, Instance) or not _of_integers(shown) or shown.details.get("max_abs") != 1:
        return ""
    place, index = _where(program, shown.details)
    for name, x in ask.programs.items():
        right = name in ask.outcomes and ask.outcomes[name].verdict == PASS
        if not right or not isinstance(x, Instance) or not _of_another_type(x, program):
            continue
        outputs = ask.reference(x)
        found = _at(outputs, place, index)
        if found is None or "float" not in found[1] or not np.isfinite(found[0]):
            continue
        held = outputs[place] if outputs else None
        near = abs(found[0] - round(found[0])) <= STEP * max(1, abs(found[0]))
        if near and (_has_fractions(held) or _makes_fractions(ask, x)):
            return f"{found[0]:.9g}, from which rounding leads to either side of {round(found[0])}"
    return ""


def _has_fractions(value: Value) -> bool:
    numbers = simpler.numbers(value) if isinstance(value, Tensor) and "float" in value.dtype else np.zeros(0)
    return bool(np.any(np.isfinite(numbers) & (numbers != np.round(numbers))))


def _makes_fractions(ask: Asking, program: Instance) -> bool:
    """Whether an operator of integers alone gives floats that are none, of what others that were asked about are given: a
    Blackman window of two is 0 and 1 by chance. Raises Spent."""
    known = (x for name, x in ask.programs.items() if name in ask.outcomes and x.operators == program.operators)
    others = [x for x in known if isinstance(x, Instance) and _is_whole(x)]
    named = {x: y for x, y in program.params.items() if simpler.is_type(x)}
    made = {x.id: x for x in (*others, *(_of_type(x, named) for x in others))}
    return _is_whole(program) and any(
        _has_fractions(y) for x in itertools.islice(made.values(), 2 * TRIED) for y in ask.reference(x) or ()
    )


def _of_type(program: Instance, named: Mapping[str, Value]) -> Instance:
    """Return a call with these parameters in place of those that name a dtype."""
    kept = {x: y for x, y in program.params.items() if not simpler.is_type(x)}
    return msgspec.structs.replace(program, params={**kept, **named})


def _is_whole(program: Instance) -> bool:
    """Whether a call is given no float."""
    return not any("float" in x.dtype for x in smaller.leaves(program)) and not any(
        isinstance(x, float) and x != round(x) for x in program.params.values()
    )


def _of_another_type(one: Instance, other: Instance) -> bool:
    """Whether two calls differ in parameters alone that name a dtype."""
    names = {*one.params, *other.params}
    differing = {x for x in names if not smaller.same(one.params.get(x), other.params.get(x))}
    alike = (one.operator, one.inputs, one.outputs) == (other.operator, other.inputs, other.outputs)
    return alike and differing != set() and all(map(simpler.is_type, differing))


def _where(program: Instance, seen: Mapping[str, Any]) -> tuple[int, tuple[int, ...]]:
    """Return of which output the first wrong element is, -1 where that is not known, and its index."""
    name, index = str(seen.get("output", "")), tuple(map(int, re.findall(r"\d+", str(seen.get("index", "")))))
    counted = re.fullmatch(r"output_(\d+)", name)
    return program.outputs.index(name) if name in program.outputs else int(counted[1]) if counted else -1, index


def _at(outputs: Sequence[Value] | None, place: int, index: tuple[int, ...]) -> tuple[float, str] | None:
    """Return an element of an output, and the output's dtype; None where there is none."""
    held = outputs[place] if outputs is not None and 0 <= place < len(outputs) else None
    if not isinstance(held, Tensor) or len(held.shape) != len(index) or held.dtype in ("string", "bool"):
        return None
    if any(n >= length for n, length in zip(index, held.shape, strict=True)):
        return None
    return float(simpler.numbers(held)[index]), held.dtype


def _others(program: Program) -> Iterator[Program]:
    """Yield a program with one number in the place of all of a tensor of integers that states no sizes."""

    def filled(leaf: Leaf, number: int) -> Leaf:
        small = isinstance(leaf, Tensor) and leaf.dtype in dtypes.INTEGERS and np.iinfo(leaf.dtype).min <= number
        return simpler.numbered(np.full(leaf.shape, number), leaf.dtype) if small else leaf

    for place, leaf in enumerate(smaller.leaves(program)):
        if leaf.dtype in dtypes.INTEGERS and not (place and smaller.states(leaf)):
            made = (smaller.applied(smaller.at(place, partial(filled, number=x)), program) for x in NUMBERS)
            yield from (x for x in made if x is not None)
