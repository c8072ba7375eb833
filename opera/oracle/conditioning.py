"""Whether rounding explains a difference of values: inputs are perturbed, and sums are measured by what they are made of."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np

from opera.oracle import comparison as oracle
from opera.oracle import randomness, ties
from opera.oracle.opinions import Opinion
from opera.programs.migrated import Manifest
from opera.programs.program import Program
from opera.programs.values import Optional, Sequence, Tensor, Value

NEARER = 8
"""How many times nearer, at least, an answer is to that of a program which lacks something, where rounding may explain it."""
NORMWISE = 16.0
"""Rounding errors of this many machine epsilons of the largest element are no finding (long sums reach about 10)..."""
STEPS = 2
"""... and of a few terms no more than there are terms, and so many besides: each addition rounds by half of one (Higham,
Accuracy and Stability of Numerical Algorithms, 2002, section 4.2)."""
EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52, "complex64": 2.0**-23}
OF_SUMS = "deviation_in_epsilons_of_the_largest_element"
"""Detail of a verdict that is explained as rounding of a sum."""
SAMPLES = 3
"""How often inputs are perturbed: one sample may by chance move an output little."""
SHARE, MARGIN = 0.95, 4.0
"""Share of the differing elements that must each have moved by a MARGINth of their deviation: a few of many move little by
chance, but an element that is tame is not excused by a wild one."""
ULPS = {"float16": 1, "bfloat16": 1, "float32": 4, "float64": 4}
"""dtype → units in the last place that inputs are perturbed by. A backward-stable implementation is exact for inputs
that are this close; 8-bit floats are left alone, for their steps are far larger than any rounding."""

INTERPOLATING = "interpolating"
"""Tag of a test whose operator computes integers between those that it is given, and says nothing of how it rounds them."""
WHOLE = re.compile(r"u?int(8|16|32)")
"""Dtypes of integers all of which float64 holds."""
HALF = 0.5 + 2.0**-20
"""How far the nearest integer is from a number at most, that float64 has a little off."""

Array: TypeAlias = np.ndarray[Any, Any]
Number: TypeAlias = str | float | int | bool | None
Ask: TypeAlias = Callable[[list[Value]], list[Opinion]]


def ill_conditioned(
    ask: Ask,
    manifest: Manifest,
    program: Program,
    inputs: list[Value],
    expected: list[Value],
    actual: list[Value],
    symptom: str,
    opinions: list[Opinion],
) -> dict[str, Number]:
    """Return the numbers that show that rounding explains a difference of values, empty where it does not."""
    if randomness.wrong_form(manifest, expected, actual):
        return {}
    if symptom == "value" and "accumulating" in manifest.tags:
        terms = max((math.prod(x.shape) for x in inputs if isinstance(x, Tensor)), default=0)
        numbers = rounding(manifest, expected, actual, min(NORMWISE, terms + STEPS))
        if numbers is not None:
            return numbers
    if symptom in ("value", "nan-mask") and oracle.EXACT not in manifest.tags:
        decided = [ties.exact(program, want.shape) for want, _ in tensors(expected, actual)]
        for base in opinions:
            numbers = _ill_conditioned(ask, manifest, inputs, expected, actual, base, decided)
            if numbers is not None:
                return numbers if numbers["explains"] else {}
        if symptom == "value" and INTERPOLATING in manifest.tags:
            return nearest(ask, inputs, expected, actual)
    return {}


def nearest(ask: Ask, inputs: list[Value], expected: list[Value], actual: list[Value]) -> dict[str, Number]:
    """Return the numbers that show that integers are one off because what a reference computes in float64 was rounded to the
    nearest of them, in one of two ways where it lies in the middle; empty where they do not.

    How an interpolation of integers is rounded is not documented, and libraries compute it in fixed-point arithmetic (uint8
    `interpolate` of PyTorch), which is not the nearest either. It is asked of operators alone that are declared to interpolate:
    that a quotient is cut off is what others are documented to do.
    """
    pairs = list(tensors(expected, actual))
    kinds = {want.dtype for want, _ in pairs}
    if len(pairs) != len(expected) or not all(WHOLE.fullmatch(x) for x in kinds):
        return {}
    if max((float(distance_of(want, got)[0].max(initial=0.0)) for want, got in pairs), default=0.0) != 1.0:
        return {}
    exact = [
        Tensor.of(x.array().astype("float64")) if isinstance(x, Tensor) and x.dtype in kinds else x for x in inputs
    ]
    for base in ask(exact) if exact != inputs else ():
        found = list(zip(pairs, base.outputs or (), strict=False))
        if len(found) == len(pairs) and all(_is_nearest(pair, made) for pair, made in found):
            return {"rounded_to_the_nearest_of": base.name, "computed_in": "float64"}
    return {}


def _is_nearest(pair: tuple[Tensor, Tensor], exact: Value) -> bool:
    """Whether integers that differ are the nearest to what was computed in float64."""
    want, got = pair
    if not isinstance(exact, Tensor) or exact.dtype != "float64" or exact.shape != got.shape:
        return False
    off = np.abs(wide(got) - exact.numbers())[distance_of(want, got)[0] > 0]
    return bool((off <= HALF).all())


def left_out(manifest: Manifest, expected: list[Value], actual: list[Value], lacking: list[Value]) -> bool:
    """Whether an answer that may be rounded is that of a program which lacks something: within tolerance of it, and nearer to
    it than to the expected one by far.
    """
    if oracle.compare(lacking, actual, manifest.outputs, manifest.rtol, manifest.atol).symptom:
        return False
    off, left = (
        max((float(distance_of(want, got)[0].max(initial=0.0)) for want, got in tensors(of, actual)), default=0.0)
        for of in (expected, lacking)
    )
    return off > NEARER * left


def rounding(
    manifest: Manifest, expected: list[Value], actual: list[Value], allowed: float = NORMWISE
) -> dict[str, Number] | None:
    """Return the numbers that show that all differences are rounding at the scale of the tensor, `allowed` epsilons of it at
    most, else None.

    A sum that cancels to nearly nothing keeps the rounding errors of its terms: its error is small beside the norm of the
    output, though not beside the element itself (normwise forward error; Higham, Accuracy and Stability of Numerical
    Algorithms, 2002, section 3.1).
    """
    pairs = list(tensors(expected, actual))
    worst = 0.0
    for want, got in pairs:
        epsilon = EPSILON.get(want.dtype)
        distance, special = distance_of(want, got)
        if special.any() or (epsilon is None and distance.any()):
            return None
        sizes = np.abs(wide(want))
        norm = float(sizes[np.isfinite(sizes)].max(initial=0.0))
        rtol, atol = oracle.tolerance(want.dtype, manifest.rtol, manifest.atol)
        off = distance[distance > atol + rtol * np.nan_to_num(sizes, nan=0.0, posinf=0.0)]
        if off.size:
            worst = max(worst, float(off.max()) / (norm * (epsilon or 0.0)) if norm else np.inf)
    if not pairs or not 0.0 < worst <= allowed:
        return None
    return {OF_SUMS: worst, "allowed": allowed}


def _ill_conditioned(
    ask: Ask,
    manifest: Manifest,
    inputs: list[Value],
    expected: list[Value],
    actual: list[Value],
    base: Opinion,
    decided: list[Array | None],
) -> dict[str, Number] | None:
    """Compare how far the compiler is off with how far a reference moves when its inputs do, where they differ.

    Returns None where this reference cannot tell: it did not run, or its outputs have another form.
    """
    pairs = list(tensors(expected, actual))
    steady = None if base.outputs is None else [got for _, got in tensors(expected, base.outputs)]
    if not pairs or steady is None or len(steady) != len(pairs):
        return None
    moved = [np.zeros(want.shape) for want, _ in pairs]
    flipped = [np.zeros(want.shape, dtype=bool) for want, _ in pairs]
    largest = [np.zeros(want.shape) for want, _ in pairs]
    whole = EPSILON["float32"] if _of_the_first(inputs, pairs) else np.inf
    coarsest = max(EPSILON.get(want.dtype, whole) for want, _ in pairs)
    for seed in range(SAMPLES):
        generator = np.random.Generator(np.random.PCG64(seed))
        nudged = [perturb(value, generator, coarsest) for value in inputs]
        if nudged == inputs:
            return None
        again = [x for x in ask(nudged) if x.name == base.name]
        if not again or again[0].outputs is None:
            return None
        shifted = [got for _, got in tensors(expected, again[0].outputs)]
        if len(shifted) != len(steady):
            return None
        for place, (before, after) in enumerate(zip(steady, shifted, strict=True)):
            distance, special = distance_of(before, after)
            moved[place], flipped[place] = np.maximum(moved[place], distance), flipped[place] | special
            sizes = np.abs(np.nan_to_num(wide(after), nan=0.0, posinf=0.0, neginf=0.0))
            largest[place] = np.maximum(largest[place], sizes)
    flipped = [x & ~_far(got, reach) for x, (_, got), reach in zip(flipped, pairs, largest, strict=True)]
    return _verdict(manifest, pairs, moved, flipped, decided, base.name)


def _far(got: Tensor, reach: Array) -> Array:
    """Return where a finite number lies far beyond all finite ones that a reference gives of perturbed inputs: near 1 an
    inverse hyperbolic tangent is NaN, infinity or 19, and no 3.4e38."""
    numbers = np.abs(wide(got))
    return np.isfinite(numbers) & (numbers > MARGIN * reach) & (reach > 0)


def _of_the_first(inputs: list[Value], pairs: list[tuple[Tensor, Tensor]]) -> bool:
    """Whether all results are integers of the first input's dtype: a narrow float beside it, an exponent, is no dtype in which
    such are computed.
    """
    first = next((x.dtype for x in inputs if isinstance(x, Tensor)), "")
    return first not in EPSILON and all(want.dtype == first for want, _ in pairs)


def _verdict(
    manifest: Manifest,
    pairs: list[tuple[Tensor, Tensor]],
    moved: list[Array],
    flipped: list[Array],
    decided: list[Array | None],
    name: str,
) -> dict[str, Number]:
    """Decide: what is off must have been moved as far by the perturbation, in the elements that are off.

    `decided` tells the exact ties of each output: what is off there is wrong, however far a perturbation moves it.
    """
    explains, deviation, movement = True, 0.0, 0.0
    for (want, got), reach, flips, tied in zip(pairs, moved, flipped, decided, strict=True):
        distance, special = distance_of(want, got)
        rtol, atol = oracle.tolerance(want.dtype, manifest.rtol, manifest.atol)
        size = np.nan_to_num(np.abs(wide(want)), nan=0.0, posinf=0.0)
        off = ~special & (distance > atol + rtol * size)
        explains = explains and bool(flips[special].all()) and (tied is None or not (tied & off).any())
        if off.any():
            each = float(np.mean(MARGIN * reach[off] >= distance[off]))
            explains = explains and each >= SHARE and bool(reach[off].max() >= distance[off].max())
            deviation = max(deviation, float(distance[off].max()))
            movement = max(movement, float(reach[off].max()))
    return {
        "explains": explains,
        "reference": name,
        "compiler_deviation": deviation,
        "reference_movement": movement,
        "samples": SAMPLES,
    }


def perturb(value: Value, generator: np.random.Generator, coarsest: float = np.inf) -> Value:
    """Move every finite, nonzero float of a value by 1 to ULPS units in the last place; its sign and zeros stay.

    Floats whose machine epsilon is above `coarsest` stay: where a result is of a finer dtype than an input, the input is exact
    in the precision that the result is to have, and a move of it would excuse whoever computes in the input's.
    """
    match value:
        case Tensor(dtype=dtype) if dtype in ULPS and EPSILON[dtype] <= coarsest:
            width = 16 if dtype == "bfloat16" else 8 * np.dtype(dtype).itemsize
            mantissa = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}[dtype]
            bits = np.frombuffer(value.data, dtype=f"<u{width // 8}").astype(np.uint64)
            sign = np.uint64(1 << (width - 1))
            size = (bits & ~sign).astype(np.int64)
            infinity = ((1 << (width - 1 - mantissa)) - 1) << mantissa
            steps = generator.integers(1, ULPS[dtype] + 1, size=size.shape) * generator.choice([-1, 1], size=size.shape)
            usual = (size > ULPS[dtype]) & (size < infinity - ULPS[dtype])
            new = np.where(usual, size + steps, size).astype(np.uint64) | (bits & sign)
            return Tensor(dtype, value.shape, new.astype(f"<u{width // 8}").tobytes())
        case Sequence(items=items):
            return Sequence(value.type, tuple(perturb(item, generator, coarsest) for item in items))
        case Optional(value=inner) if inner is not None:
            return Optional(value.type, perturb(inner, generator, coarsest))
    return value


def tensors(expected: list[Value], actual: list[Value]) -> Iterator[tuple[Tensor, Tensor]]:
    """Pair the numeric tensors of two lists of outputs, where both have the same form; what has not is left out."""
    for want, got in zip(expected, actual, strict=False):
        want = want.value if isinstance(want, Optional) else want
        got = got.value if isinstance(got, Optional) else got
        match want, got:
            case Tensor(), Tensor():
                if want.shape == got.shape and want.dtype == got.dtype != "string":
                    yield want, got
            case Sequence(items=wants), Sequence(items=gots) if len(wants) == len(gots):
                yield from tensors(list(wants), list(gots))


def wide(tensor: Tensor) -> Array:
    numbers = tensor.numbers()
    return numbers.astype(np.complex128 if numbers.dtype.kind == "c" else np.float64)


def distance_of(before: Tensor, after: Tensor) -> tuple[Array, Array]:
    """Return |after - before| (0 where either is not finite), and where NaN or an infinity is on one side only."""
    one, other = wide(before), wide(after)
    finite = np.isfinite(one) & np.isfinite(other)
    with np.errstate(invalid="ignore", over="ignore"):
        same = (one == other) | (np.isnan(one) & np.isnan(other))
        distance = np.where(finite, np.abs(np.where(finite, other, 0) - np.where(finite, one, 0)), 0.0)
    return distance, ~finite & ~same
