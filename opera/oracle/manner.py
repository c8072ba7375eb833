"""In which manner outputs are wrong: what a smaller program that shows the same mistake has to keep of it.

This decides no verdict. It is a few words for each output, from simple questions: is it wrong, everywhere or in some places;
which kind of number stands for which; and is what was returned nothing (`zero`), one number (`constant`), an input as it was
(`input`), what is expected in another order (`permuted`), or that and a constant (`offset`)?
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np

from opera.oracle.comparison import TOLERANCES, Grant, tolerance
from opera.programs.values import Optional, Tensor, Value

RIGHT, WRONG, FORM = "right", "wrong", "form"
"""An output is right, some of its numbers are wrong, or it is no numbers of that many."""
ALL, SOME = "all", "some"
"""Whether all numbers are wrong."""
UNIFORM = "uniform"
"""What is expected is one number, several times: much agrees with that."""
SHOWN = ("zero", "constant", "input", "permuted", "offset")
"""What may be said of what was returned; with MAYBE, where there are too few numbers to see it."""
MAYBE = "?"
FOR = ">"
"""Stands between two kinds of numbers: `-inf>largest` is the largest finite number for minus infinity."""
LARGEST = (448.0, 57344.0, 65504.0, 2.0**128 * (1 - 2.0**-8), 2.0**128 * (1 - 2.0**-24), sys.float_info.max)
"""The largest finite numbers of dtypes, which stand for an infinity where one is replaced."""
DENORMAL = float(np.finfo("float32").tiny)
"""What is smaller, and not 0, is what bits of integers, and unwritten memory, read as floats are."""
SEVERAL = 3
"""So many wrong numbers are no chance: fewer are often one constant apart, or the same ones in another order."""
MOST = 1 << 20
"""Elements of an output that are looked at."""

Array: TypeAlias = np.ndarray[Any, Any]
Manner: TypeAlias = dict[str, list[str]]


def manner(
    outputs: Iterable[str],
    expected: list[Value],
    actual: list[Value],
    inputs: Iterable[Value],
    *grant: *Grant,
) -> Manner:
    """Return each output's name → words on it; nothing where the number of outputs differs.

    `grant` is what the test is granted, as in `opera.oracle.comparison.compare`.
    """
    names = list(outputs)
    if not len(names) == len(expected) == len(actual):
        return {}
    given = [x for x in map(_numbers, inputs) if x is not None]
    return {name: _words(want, got, given, grant) for name, want, got in zip(names, expected, actual, strict=True)}


def keeps(one: Mapping[str, list[str]], other: Mapping[str, list[str]], worst: str) -> bool:
    """Whether what is wrong in one manner is wrong in the other, too, as far as fewer numbers can show it, and nothing else is.

    An output that is left out altogether hides nothing, but `worst`, which the failure is named for. Where the manner of one is
    not known, all is well.
    """
    if not one or not other:
        return True
    if worst in one and worst not in other:
        return False
    numbers = any(WRONG in words for words in one.values())
    return all(_keeps(words, other[name], numbers) for name, words in one.items() if name in other)


def _keeps(words: list[str], then: list[str], numbers: bool) -> bool:
    """`numbers`: whether it is numbers that are wrong, in whichever output; then they have to tell something in all of them."""
    if (RIGHT in words) is not (RIGHT in then):
        return False
    if numbers and UNIFORM in then and UNIFORM not in words:
        return False
    if WRONG not in words or WRONG not in then:
        return True
    if ALL in words and ALL not in then:
        return False
    kinds, others = ({x for x in found if FOR in x} for found in (words, then))
    return others <= kinds and all(x in then or x + MAYBE in then for x in SHOWN if x in words)


def more(one: Mapping[str, list[str]], other: Mapping[str, list[str]]) -> bool:
    """Whether an output that is right in one manner is wrong in the other."""
    return any(RIGHT in words and name in other and RIGHT not in other[name] for name, words in one.items())


def tells(found: Mapping[str, list[str]]) -> tuple[int, int]:
    """Return how much the wrong numbers tell: fewer outputs expect one number alone, and fewer kinds of wrong ones expect 0."""
    words = [x for said in found.values() if WRONG in said for x in said]
    return -words.count(UNIFORM), -sum(x.startswith(f"zero{FOR}") for x in words)


def special(found: Mapping[str, list[str]]) -> frozenset[str]:
    """Return which number stands for which, where one of them is NaN, an infinity or the largest finite one: `-inf>largest`."""
    pairs = {x for said in found.values() for x in said if FOR in x}
    return frozenset(x for x in pairs if not set(x.split(FOR)) <= {"finite", "zero", "denormal"})


ODD = ("not_finite", "nothing")
"""Details of a crash: whether NaN or infinity is expected, and whether an output without elements is."""


def odd(expected: Iterable[Value]) -> dict[str, bool]:
    """Return what of ODD holds of these outputs."""
    found = [x for x in map(_numbers, expected) if x is not None]
    held = (not all(bool(np.isfinite(x).all()) for x in found), any(x.size == 0 for x in found))
    return {name: True for name, holds in zip(ODD, held, strict=True) if holds}


def kind(number: float) -> str:
    """Return what kind of number this is: `nan`, `inf`, `-inf`, `largest` (finite of its dtype, either sign), `denormal` (of
    float32) or `finite`.

    In the words on outputs 0 of a floating-point dtype is `zero`.
    """
    if not math.isfinite(number):
        return str(float(number))
    if 0 < abs(number) < DENORMAL:
        return "denormal"
    return "largest" if any(abs(abs(number) - x) <= 1e-6 * x for x in LARGEST) else "finite"


def _numbers(value: Value) -> Array | None:
    """Return the elements of a tensor as real numbers; None where they are none, or too many."""
    held = value.value if isinstance(value, Optional) else value
    if not isinstance(held, Tensor) or held.dtype == "string" or math.prod(held.shape) > MOST:
        return None
    found = held.numbers()
    return None if found.dtype.kind == "c" else found.astype(np.float64)


def _words(want: Value, got: Value, given: list[Array], grant: Grant) -> list[str]:
    if want == got:
        right = _numbers(want)
        return [RIGHT, *([UNIFORM] if right is not None and _one(right) else [])]
    expected, actual = _numbers(want), _numbers(got)
    if expected is None or actual is None or expected.size != actual.size:
        return [FORM]
    uniform = [UNIFORM] if _one(expected) else []
    held = want.value if isinstance(want, Optional) else want
    relative, absolute = tolerance(held.dtype if isinstance(held, Tensor) else "", *grant)
    form = expected.shape != actual.shape or getattr(held, "dtype", "") != getattr(got, "dtype", "")
    expected, actual = expected.ravel(), actual.ravel()
    wrong = _differ(expected, actual, relative, absolute)
    if not wrong.any():
        return [FORM if form else RIGHT, *uniform]
    zero = "zero" if isinstance(held, Tensor) and held.dtype in TOLERANCES else "finite"
    few = zip(*_few(expected[wrong], actual[wrong]), strict=True)
    pairs = {FOR.join(kind(x) if x else zero for x in pair) for pair in few}
    shown = list(_shown(expected, actual, wrong, given, relative, absolute))
    return [WRONG, ALL if wrong.all() else SOME, *sorted(pairs), *shown, *uniform]


def _differ(expected: Array, actual: Array, relative: float, absolute: float) -> Array:
    with np.errstate(invalid="ignore", over="ignore"):
        close = np.abs(actual - expected) <= absolute + relative * np.abs(expected)
    same = (expected == actual) | (np.isnan(expected) & np.isnan(actual))
    return np.asarray(~np.where(np.isfinite(expected) & np.isfinite(actual), close, same))


def _few(expected: Array, actual: Array) -> tuple[list[float], list[float]]:
    """Return the pairs of numbers of which each kind is represented, without looking at a million of them one by one."""
    codes = np.stack([_codes(x) for x in (expected, actual)])
    _, places = np.unique(codes, axis=1, return_index=True)
    return expected[places].tolist(), actual[places].tolist()


def _codes(numbers: Array) -> Array:
    """Return a number for each kind of number."""
    size = np.abs(numbers)
    largest = np.any([np.abs(size - x) <= 1e-6 * x for x in LARGEST], axis=0)
    denormal = (size > 0) & (size < DENORMAL)
    return np.select(
        [np.isnan(numbers), np.isposinf(numbers), np.isneginf(numbers), largest, numbers == 0, denormal], range(1, 7), 0
    )


def _one(numbers: Array) -> bool:
    """Whether these are several numbers, all the same."""
    flat = numbers.ravel()
    return flat.size > 1 and bool((flat == flat[0]).all() or np.isnan(flat).all())


def _shown(
    expected: Array, actual: Array, wrong: Array, given: list[Array], relative: float, absolute: float
) -> Iterable[str]:
    """Yield the words of SHOWN that hold, with MAYBE those of which too few numbers tell."""
    wants, gots = expected[wrong], actual[wrong]
    if not gots.any():
        yield "zero"
    if actual.size < 2 or _one(expected):
        yield "constant" + MAYBE
    elif _one(actual):
        yield "constant"
    if any(x.size == actual.size and np.array_equal(x.ravel(), actual, equal_nan=True) for x in given):
        yield "input" if len(np.unique(actual)) >= SEVERAL else "input" + MAYBE
    if len(np.unique(wants)) >= SEVERAL:
        if not _differ(np.sort(wants), np.sort(gots), relative, absolute).any():
            yield "permuted"
    elif wants.size > 1:
        yield "permuted" + MAYBE
    if np.isfinite(wants).all() and np.isfinite(gots).all():
        if wants.size < SEVERAL:
            yield "offset" + MAYBE
        elif not _differ(wants + (gots - wants)[0], gots, relative, absolute).any() and not _one(wants):
            yield "offset"
