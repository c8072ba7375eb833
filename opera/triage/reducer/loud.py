"""Numbers at which a small difference becomes one that nobody takes for rounding.

A loss of 8.48 that is off by 1e-4 may be anything to who reads it; that the logarithm of the sigmoid of -100 is minus infinity
is not. So where what is wrong is that near, ordinary numbers of other magnitudes are tried, and such as overflow, vanish or
cancel; those of a narrower dtype first, where it is that dtype's rounding.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from opera.oracle.manner import kind
from opera.oracle.screens import AGREEING
from opera.programs.program import Program
from opera.programs.values import Tensor
from opera.programs.verdicts import INCONSISTENT, Outcome
from opera.triage import failure
from opera.triage.conditions import readable
from opera.triage.failure import GROSS, misvalued, quiet, rounded, severity
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
ORDINARY: tuple[tuple[float, ...], ...] = (
    (-100.0, 100.0), (100.0, 0.0), (20.0, -20.0), (-1e4, 1e4), (0.0, -200.0), (0.5, 1.5, -2.5), (0.0, 1.0), (1e-4, -1e-4),
    (1.0, 1.0000001), (1e-40, -1e-40),
)  # fmt: skip
"""What is tried whatever the dtype, what a user may have first: large numbers of both signs, where sigmoid and exponential are
as good as 0 or 1; ties and zeros; small ones; two that cancel; denormal ones."""


def programs(program: Program, narrow: str) -> Iterator[Program]:
    """Yield the program with such numbers in its first tensor, as far as its dtype holds them.

    Args:
        narrow: Dtype that it may have been computed in; empty: what is wrong is no rounding of any.
    """
    leaf = next(iter(smaller.leaves(program)), None)
    if not isinstance(leaf, Tensor) or not leaf.array().size:
        return
    fills: tuple[tuple[float, ...], ...] = ()
    if "int" in leaf.dtype and narrow:
        fills = ((WHOLE[narrow], 1),)
    elif leaf.dtype.startswith("float"):
        fills = (*NUMBERS[narrow], *ORDINARY) if narrow else (*ORDINARY, *NUMBERS["float32"])
    for fill in fills:
        with np.errstate(over="ignore", under="ignore"):
            made = np.resize(np.array(fill, np.float64), leaf.shape)
            held = made.astype(leaf.dtype if leaf.dtype in ("float32", "float64") or "int" in leaf.dtype else "float16")
        if np.isfinite(held).all() and np.array_equal(held != 0, made != 0):
            yield smaller.at(0, lambda _, made=made, of=leaf: _filled(of, made))(program)  # type: ignore[misc]


def _filled(leaf: Leaf, numbers: simpler.Array) -> Leaf:
    return simpler.numbered(numbers, leaf.dtype)


def louder(ask: Asker, program: Program) -> list[Program]:
    """Return the program with numbers that are grossly wrong, the first such, if its own are off by little; else nothing.

    All that is expected then is finite, another implementation gives that, and documentation admits the numbers as far as it
    does the program's own. Raises Spent.
    """
    seen = ask.outcomes.get(program.id)
    if seen is None or not quiet(seen):
        return []
    tried = ask.within(list(programs(program, rounded(seen))))
    shown = zip(tried, ask.look(tried), strict=True)
    return next(([x] for x, outcome in shown if _gross(seen, outcome) and ask.agreed(x)), [])


def with_numbers(ask: Asker, program: Program) -> list[Program]:
    """Return the program with 1, 2, 3, ... in place of NaN and infinities, if it is grossly wrong of these, too: what is no
    number is but one that comes out wrong then, and few would think of it first. That becomes the target.

    Whoever confirms what is expected of the target does so there. Raises Spent.
    """
    target = ask.target
    if target is None or target.symptom not in failure.NUMBERS or simpler.finite(smaller.leaves(program)):
        return []
    tried = [x for x in readable.counted(program) if simpler.finite(smaller.leaves(x))]
    for x, shown in zip(tried, ask.look(tried), strict=True):
        confirmed = shown.details.get(AGREEING) or not target.details.get(AGREEING)
        if misvalued(target, shown) and confirmed and ask.admits(x) and ask.turned(x):
            return [x]
    return []


def held(program: Program) -> frozenset[float]:
    """Return the numbers of the first tensor of a program."""
    leaf = next(iter(smaller.leaves(program)), None)
    numeric = isinstance(leaf, Tensor) and leaf.dtype not in ("string", "complex64", "complex128")
    return frozenset(simpler.numbers(leaf).astype("float64").ravel().tolist()) if numeric else frozenset()  # type: ignore[arg-type]


def holds(numbers: frozenset[float], program: Program) -> bool:
    """Whether a program has but these numbers in its first tensor: with smaller ones another part may fail, and for less."""
    return held(program) <= numbers


def _gross(seen: Outcome, shown: Outcome) -> bool:
    alike = (shown.verdict, shown.stage) == (INCONSISTENT, seen.stage) and shown.symptom in ("value", "nan-mask")
    same = shown.details.get("output") == seen.details.get("output")
    expected = shown.details.get("expected")
    finite = isinstance(expected, int | float) and kind(float(expected)) == "finite"
    finite = finite and not shown.details.get("not_finite")
    return alike and same and finite and (shown.symptom == "nan-mask" or severity(shown) >= GROSS)
