"""Numbers at which it shows that something is computed in a narrower dtype than it must be.

A number of float64 that is as far off as float32 rounds may be anything to who reads it; that the sum of 3e38 and 3e38 is
infinite is not. So where a wrong number is that near, numbers are tried that overflow, vanish or cancel in the narrower dtype.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from opera.oracle.manner import kind
from opera.programs.program import Program
from opera.programs.values import Tensor
from opera.programs.verdicts import INCONSISTENT, Outcome
from opera.triage.failure import GROSS, rounded, severity
from opera.triage.reducer.asking import Asker
from opera.triage.shrink import simpler, smaller
from opera.triage.shrink.smaller import Leaf

NUMBERS: dict[str, tuple[tuple[float, ...], ...]] = {
    "float32": ((3e38, 3e38), (1e30, 1.0, -1e30), (1e-30, 1e-30), (100.0, 0.0), (0.0, -200.0), (1e300, 1e-300)),
    "float16": ((6e4, 6e4), (3e4, 1.0, -3e4), (1e-4, 1e-4), (12.0, 0.0), (0.0, -20.0), (1e30, 1e-30)),
}
"""Narrower dtype → what a tensor of floats is filled with, again and again: what overflows as a sum, cancels, vanishes as a
product, overflows and vanishes as an exponential, and is out of its range itself."""
WHOLE = {"float32": 2**24 + 1, "float16": 2**11 + 1}
"""The least integer that the narrower dtype does not hold."""


def programs(program: Program, narrow: str) -> Iterator[Program]:
    """Yield the program with such numbers in its first tensor, as far as its dtype holds them."""
    leaf = next(iter(smaller.leaves(program)), None)
    if not isinstance(leaf, Tensor) or not leaf.array().size:
        return
    fills = ((WHOLE[narrow], 1),) if "int" in leaf.dtype else NUMBERS[narrow] if leaf.dtype.startswith("float") else ()
    for fill in fills:
        with np.errstate(over="ignore", under="ignore"):
            made = np.resize(np.array(fill, np.float64), leaf.shape)
            held = made.astype(leaf.dtype if leaf.dtype in ("float32", "float64") or "int" in leaf.dtype else "float16")
        if np.isfinite(held).all() and np.array_equal(held != 0, made != 0):
            yield smaller.at(0, lambda _, made=made, of=leaf: _filled(of, made))(program)  # type: ignore[misc]


def _filled(leaf: Leaf, numbers: simpler.Array) -> Leaf:
    return simpler.numbered(numbers, leaf.dtype)


def louder(ask: Asker, program: Program) -> list[Program]:
    """Return the program with numbers that are grossly wrong, if it has but such as a narrower dtype rounds to; else nothing.

    Another implementation must give what is expected, which is finite. Raises Spent.
    """
    seen = ask.outcomes.get(program.id)
    narrow = rounded(seen) if seen is not None else ""
    if seen is None or not narrow:
        return []
    tried = list(programs(program, narrow))
    for made, shown in zip(tried, ask.look(tried), strict=True):
        if _gross(seen, shown) and ask.agreed(made):
            return [made]
    return []


def _gross(seen: Outcome, shown: Outcome) -> bool:
    alike = (shown.verdict, shown.stage) == (INCONSISTENT, seen.stage) and shown.symptom in ("value", "nan-mask")
    same = shown.details.get("output") == seen.details.get("output")
    expected = shown.details.get("expected")
    finite = isinstance(expected, int | float) and kind(float(expected)) == "finite"
    return alike and same and finite and (shown.symptom == "nan-mask" or severity(shown) >= GROSS)
