"""The oracle: do the outputs of a compiler agree with the expected ones? Needs numpy and msgspec only.

Each output is compared in this order, and the first difference is its symptom: number of outputs (or of a sequence's
elements), shape, dtype, where NaN and infinities are (with their sign), values. An optional that holds something is
compared as what it holds, since a compiler without such a type hands back the value itself. Where several outputs differ,
the failure is that of the worst (SEVERITY), and the others are listed. Under another dtype, or another shape of as many
elements, values are compared too; integers in place of floats need only be these without their fractions.

Values differ when |actual - expected| > atol + rtol * |expected| somewhere. rtol and atol are each the larger of the
test's own and of the output dtype's in TOLERANCES: an atol of 1e-7, which all of ONNX's tests have, is below the
rounding of one float32 sum near zero, and their rtol of 1e-3 is below that of bfloat16. What a program computes that never
rounds, but converts and selects, has those of UNROUNDED. Integers, booleans and strings must be equal. The rule of the
paper (OPERA, ICSE 2025), Chebyshev distance > 1e-3, is decided beside it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec
import numpy as np

from opera.programs.migrated import Manifest
from opera.programs.values import Optional, Sequence, Tensor, Value
from opera.programs.verdicts import Margin

PAPER_DISTANCE = 1e-3
"""OPERA, ICSE 2025: outputs are inconsistent when their Chebyshev distance exceeds this."""

TOLERANCES: dict[str, tuple[float, float]] = {
    "float64": (1e-7, 1e-9),
    "float32": (1e-4, 1e-5),
    "float16": (5e-3, 1e-3),
    "bfloat16": (2e-2, 1e-2),
    "complex64": (1e-4, 1e-5),
    "complex128": (1e-7, 1e-9),
    "float8_e4m3fn": (2**-3, 2**-9),
    "float8_e4m3fnuz": (2**-3, 2**-10),
    "float8_e5m2": (2**-2, 2**-16),
    "float8_e5m2fnuz": (2**-2, 2**-17),
    "float8_e8m0fnu": (0.0, 0.0),
    "float4_e2m1fn": (2**-2, 0.5),
}
"""dtype → (rtol, atol). Half precisions get a few units in the last place, for sums are made in another order. The 8-
and 4-bit floats get one step (its relative size, and the smallest subnormal), for a quotient on the border between two
steps may fall to either side; e8m0 holds powers of two and gets none. What is not listed is compared exactly."""

ON_DEVICE: dict[str, tuple[float, float]] = {
    "float32 on cuda": (1e-3, 1e-4),
    "float16 on cuda": (1e-2, 2e-3),
    "bfloat16 on cuda": (4e-2, 2e-2),
    "complex64 on cuda": (1e-3, 1e-4),
}
"""`dtype on device` → (rtol, atol), where they are larger than on a CPU (docs/oracle.md, Precision, says why)."""

UNROUNDED: dict[str, tuple[float, float]] = {
    "float64": (2.0**-54, 2.0**-1022),
    "float32": (2.0**-25, 2.0**-126),
    "float16": (2.0**-12, 2.0**-25),
    "bfloat16": (2.0**-9, 2.0**-126),
}
"""dtype → (rtol, atol) of what is selected, moved, compared or converted: half of the smallest relative step, so that a
neighbour is too far away, and the smallest normal number, below which a processor may be set to flush to zero; of float16,
which is converted without that, half of the smallest subnormal one."""
EXACT = "exact"
"""Tag of a test whose program never rounds a result but to convert it."""

Array: TypeAlias = np.ndarray[Any, Any]
Grant: TypeAlias = tuple[float | None, float | None, bool]
"""rtol and atol of a test, None for the dtype's alone, and whether UNROUNDED holds instead of both."""
Detail: TypeAlias = str | float | int | bool | list[str] | dict[str, str] | None

COUNT = "count"
"""Symptom of a model with fewer outputs, or more: whatever these hold."""
SEVERITY = (COUNT, "size", "nan-mask", "value", "dtype and values", "shape and values", "shape", "dtype")
"""What an output may differ in, worst first: data that is missing, then wrong numbers, which a user does not notice, then
right numbers in another form, which breaks what comes after. `size` is a shape of another number of elements."""
TOO, AND_VALUES = "; values differ too", " and values"
"""How it is told that an output of another form has other values, too: at the end of a message, and of a severity."""
OTHERS = 8
"""Differing outputs that are listed beside the worst."""


class Comparison(msgspec.Struct):
    """Whether outputs agree.

    Attributes:
        symptom: Empty where they agree, else `count`, `shape`, `dtype`, `nan-mask` or `value`.
        message: One line for humans: what differs, where, by how much.
        details: `paper_rule` (None where the distance is undefined) and `chebyshev` over all outputs. And for the
            output that differs, else the one that differs most within tolerance: `output`, `max_abs`, `max_rel`,
            `differing`, `elements`, `rtol`, `atol`, and `index`, `expected`, `actual` of the first differing element;
            `values_differ` where dtype or shape differ and values could be compared all the same. `others`: what else
            differs, a line an output. `wrong`: each output that differs → what of SEVERITY it is. `not_finite`: whether NaN or
            infinity is expected anywhere.
    """

    symptom: str = ""
    message: str = ""
    details: dict[str, Detail] = {}


class _Result(msgspec.Struct):
    """What comparing one value showed; `chebyshev` is None where the distance is not defined.

    `severity` is one of SEVERITY where that is not the symptom itself.
    """

    symptom: str = ""
    message: str = ""
    chebyshev: float | None = 0.0
    details: dict[str, Detail] = {}
    severity: str = ""

    @property
    def rank(self) -> int:
        """Its place in SEVERITY."""
        return SEVERITY.index(self.severity or self.symptom)


def compare(
    expected: list[Value],
    actual: list[Value],
    outputs: tuple[str, ...],
    rtol: float | None,
    atol: float | None,
    exact: bool = False,
) -> Comparison:
    """Compare the outputs of one run; `rtol` and `atol` are the test's own tolerance, or None for the dtype's alone, and what
    is `exact` has that of UNROUNDED."""
    if len(expected) != len(actual):
        message = f"{len(expected)} outputs are expected, {len(actual)} were returned"
        return Comparison(COUNT, message, {"expected": len(expected), "actual": len(actual), "paper_rule": None})
    results = []
    for position, (want, got) in enumerate(zip(expected, actual, strict=True)):
        result = _compare_value(want, got, (rtol, atol, exact))
        name = outputs[position] if position < len(outputs) else str(position)
        results.append((result, name))
    chebyshev, paper_rule = _paper([result for result, _ in results])
    if not results:
        return Comparison(details={"chebyshev": chebyshev, "paper_rule": paper_rule})
    failed = [pair for pair in results if pair[0].symptom]
    first = min(failed, key=lambda pair: pair[0].rank) if failed else None
    worst, name = first or max(results, key=lambda pair: pair[0].chebyshev or 0.0)
    details = {**worst.details, "output": name, "chebyshev": chebyshev, "paper_rule": paper_rule}
    if failed:
        details["wrong"] = {other: SEVERITY[x.rank] for x, other in failed}
        details["not_finite"] = not all(map(_finite, expected))
    others = [f"output {other!r}: {x.symptom}: {x.message}"[:200] for x, other in failed if x is not worst]
    if others:
        details["others"] = [*others[:OTHERS], *([f"{len(others) - OTHERS} more"] if len(others) > OTHERS else [])]
    return Comparison(worst.symptom, f"output {name!r}: {worst.message}" if worst.symptom else "", details)


def of_form(found: Comparison) -> Comparison:
    """Return a comparison that says nothing of the values of what has another form."""
    details = {name: x for name, x in found.details.items() if name != "values_differ"}
    if isinstance(wrong := details.get("wrong"), dict):
        details["wrong"] = {name: x.removesuffix(AND_VALUES) for name, x in wrong.items()}
    return Comparison(found.symptom, found.message.removesuffix(TOO), details)


def conceals(shown: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether other outputs of a program hide something of what these details of a Comparison show: an output that is wrong
    now is right then, or less wrong, or must be NaN or infinite, which much agrees with. What says nothing conceals nothing.
    """
    wrong, then = shown.get("wrong"), other.get("wrong")
    if not isinstance(wrong, dict) or not isinstance(then, dict):
        return False
    if other.get("not_finite") and not shown.get("not_finite"):
        return True
    return any(name not in then or SEVERITY.index(then[name]) > SEVERITY.index(x) for name, x in wrong.items())


def margins(expected: list[Value], actual: list[Value]) -> tuple[Margin, ...]:
    """Return, for outputs that agree, what decides whether they still agree under other tolerances.

    |actual - expected| > atol + rtol * |expected| holds somewhere if and only if it holds at a corner of the upper convex hull
    of the points (|expected|, |actual - expected|), for it asks whether one of them lies above a line that does not fall.
    """
    found: list[Margin] = []
    for want, got in zip(expected, actual, strict=False):
        match want, got:
            case (Optional(value=want_held), _) if want_held is not None:
                found += margins([want_held], [got.value if isinstance(got, Optional) else got])
            case Sequence(items=wants), Sequence(items=gots):
                found += margins(list(wants), list(gots))
            case (Tensor(), Optional(value=got_held)):
                found += margins([want], [got_held])
            case (Tensor(dtype=dtype), Tensor()) if dtype in TOLERANCES and want.shape == got.shape and want != got:
                found.append(Margin(dtype, _corners(want, got)))
    return tuple(found)


def within(found: tuple[Margin, ...], *grant: *Grant) -> bool:
    """Whether outputs of these margins agree by today's tolerances, of which the test is granted these."""
    for margin in found:
        relative, absolute = tolerance(margin.dtype, *grant)
        if any(distance > absolute + relative * size for size, distance in margin.corners):
            return False
    return True


def _corners(want: Tensor, got: Tensor) -> list[tuple[float, float]]:
    wide = np.complex128 if want.dtype.startswith("complex") else np.float64
    one, other = want.numbers().astype(wide).ravel(), got.numbers().astype(wide).ravel()
    both = np.isfinite(one) & np.isfinite(other)
    with np.errstate(over="ignore"):
        sizes, distances = np.abs(one[both]), np.abs(other[both] - one[both])
    order = np.lexsort((-distances, sizes))
    sizes, distances = sizes[order], distances[order]
    highest = np.maximum.accumulate(distances)
    rises = np.flatnonzero(distances > np.concatenate(([0.0], highest[:-1])))
    corners: list[tuple[float, float]] = []
    for size, distance in zip(sizes[rises].tolist(), distances[rises].tolist(), strict=True):
        while len(corners) > 1 and _below(corners[-2], corners[-1], (size, distance)):
            corners.pop()
        corners.append((size, distance))
    return corners


def _below(first: tuple[float, float], middle: tuple[float, float], last: tuple[float, float]) -> bool:
    """Whether the middle point lies on or under the line between two others."""
    left = (middle[1] - first[1]) * (last[0] - first[0])
    return left <= (last[1] - first[1]) * (middle[0] - first[0])


def tolerance(dtype: str, rtol: float | None, atol: float | None, exact: bool = False) -> tuple[float, float]:
    """Return the tolerance (rtol, atol) that applies to outputs of a dtype: the larger of the test's own and the dtype's.

    Both are 0 for a dtype whose values must be equal. `dtype` may be one of ON_DEVICE. What is `exact` has that of UNROUNDED.
    """
    if exact and dtype in UNROUNDED:
        return UNROUNDED[dtype]
    if dtype not in TOLERANCES and dtype not in ON_DEVICE:
        return 0.0, 0.0
    least_rtol, least_atol = TOLERANCES.get(dtype) or ON_DEVICE[dtype]
    return max(rtol or 0.0, least_rtol), max(atol or 0.0, least_atol)


def on_device(computed: Mapping[str, str], device: str) -> dict[str, str]:
    """Return dtype → `dtype on device` of what has tolerances of its own there; `computed` tells what each is computed in."""
    named = {dtype: f"{narrow} on {device}" for dtype, narrow in computed.items()}
    return {dtype: name for dtype, name in named.items() if name in ON_DEVICE}


def granted(computes_in: Mapping[str, str], expected: list[Value], manifest: Manifest) -> Grant:
    """Return the test's tolerance, or that of the narrower dtype which a compiler computes an output in by design.

    `computes_in` is the compiler's COMPUTES_IN: dtype → narrower dtype.
    """
    rtol, atol = manifest.rtol, manifest.atol
    narrower = sorted({value.dtype for value in expected if isinstance(value, Tensor)} & computes_in.keys())
    for dtype in narrower:
        rtol, atol = tolerance(computes_in[dtype], rtol, atol)
    return rtol, atol, EXACT in manifest.tags and not narrower


def _paper(results: list[_Result]) -> tuple[float | None, bool | None]:
    """Decide the paper's rule: one output too far away is enough; else, one without a distance leaves it undecided."""
    known = [result.chebyshev for result in results if result.chebyshev is not None]
    largest = max(known, default=None if results else 0.0)
    if largest is not None and largest > PAPER_DISTANCE:
        return largest, True
    return largest, False if len(known) == len(results) else None


def _compare_value(expected: Value, actual: Value, grant: Grant) -> _Result:
    match expected, actual:
        case (Optional(value=want), _) if want is not None:
            return _compare_value(want, actual, grant)
        case (_, Optional(value=got)) if got is not None:
            return _compare_value(expected, got, grant)
        case Optional(), Optional():
            return _Result()
        case Tensor(), Tensor():
            return _compare_tensor(expected, actual, grant)
        case Sequence(items=wants), Sequence(items=gots):
            return _compare_items(wants, gots, grant)
    kinds: dict[str, Detail] = {"expected": _kind(expected), "actual": _kind(actual)}
    return _Result("dtype", f"{kinds['expected']} is expected, {kinds['actual']} was returned", None, kinds)


def _compare_items(wants: tuple[Value, ...], gots: tuple[Value, ...], grant: Grant) -> _Result:
    if len(wants) != len(gots):
        message = f"a sequence of {len(wants)} elements is expected, one of {len(gots)} was returned"
        return _Result("count", message, None)
    results = [_compare_value(want, got, grant) for want, got in zip(wants, gots, strict=True)]
    chebyshev, _ = _paper(results)
    failed = [(result, position) for position, result in enumerate(results) if result.symptom]
    if failed:
        worst, position = min(failed, key=lambda pair: pair[0].rank)
        return _Result(worst.symptom, f"element {position}: {worst.message}", chebyshev, worst.details, worst.severity)
    return _Result(chebyshev=chebyshev, details=results[-1].details if results else {})


def _kind(value: Value) -> str:
    match value:
        case Tensor():
            return f"a {value.dtype} tensor"
        case Sequence():
            return "a sequence"
        case Optional():
            return "an empty optional"
    return f"a {type(value).__name__}"


def _compare_tensor(expected: Tensor, actual: Tensor, grant: Grant) -> _Result:
    if expected.shape != actual.shape:
        message = f"shape {list(expected.shape)} is expected, {list(actual.shape)} was returned"
        details: dict[str, Detail] = {"expected": str(expected.shape), "actual": str(actual.shape)}
        if math.prod(expected.shape) != math.prod(actual.shape):
            return _Result("shape", message, None, details, "size")
        return _otherwise("shape", message, details, expected, actual, grant)
    if expected.dtype != actual.dtype:
        message = f"{expected.dtype} is expected, {actual.dtype} was returned"
        details = {"expected": expected.dtype, "actual": actual.dtype}
        return _otherwise("dtype", message, details, expected, actual, grant)
    if expected.dtype == "string":
        return _judge(expected, actual, np.asarray(expected.array() != actual.array(), dtype=bool), None, 0.0, 0.0)
    if expected.dtype in TOLERANCES:
        return _compare_floats(expected, actual, grant)
    difference = _integer_difference(expected.array(), actual.array())
    return _judge(expected, actual, difference != 0, difference, 0.0, 0.0)


def _otherwise(
    symptom: str,
    message: str,
    details: dict[str, Detail],
    expected: Tensor,
    actual: Tensor,
    grant: Grant,
) -> _Result:
    """Make the result of another shape or dtype, with whether the values differ too, in order, at the laxer tolerance."""
    differ = _values_differ(expected, actual, grant)
    if differ is not None:
        details["values_differ"] = differ
    if not differ:
        return _Result(symptom, message, None, details)
    return _Result(symptom, f"{message}{TOO}", None, details, f"{symptom}{AND_VALUES}")


def _values_differ(expected: Tensor, actual: Tensor, grant: Grant) -> bool | None:
    """Whether the numbers of two tensors of as many elements differ; None where that cannot be told."""
    if "string" in (expected.dtype, actual.dtype):
        return (
            bool((expected.array().ravel() != actual.array().ravel()).any()) if expected.dtype == actual.dtype else None
        )
    want, got = expected.numbers().ravel(), actual.numbers().ravel()
    if want.dtype.kind in "biu" and got.dtype.kind in "biu":
        return want.tolist() != got.tolist()  # Python's integers and booleans: 1 == True, and none is too large
    wide = np.complex128 if "c" in (want.dtype.kind, got.dtype.kind) else np.float64
    want, got = want.astype(wide), got.astype(wide)
    if (_special(want) != _special(got)).any():
        return True
    relative, absolute = map(max, tolerance(expected.dtype, *grant), tolerance(actual.dtype, *grant))
    finite = np.isfinite(want)
    with np.errstate(over="ignore"):
        distance = np.abs(got[finite] - want[finite])
    far = bool((distance > absolute + relative * np.abs(want[finite])).any())
    return far and not (_is_integral(actual) and not _is_integral(expected) and _is_cut(want, got))


def _is_integral(tensor: Tensor) -> bool:
    return tensor.numbers().dtype.kind in "iu"


def _is_cut(want: Any, got: Any) -> bool:
    """Whether integers are what is left of numbers with fractions, and not of nothing: an integer dtype holds no more, so that
    the dtype alone is wrong."""
    if want.dtype.kind == "c" or not np.isfinite(want).all() or not got.any():
        return False
    return any(np.array_equal(way(want), got) for way in (np.trunc, np.floor, np.rint))


def _compare_floats(expected: Tensor, actual: Tensor, grant: Grant) -> _Result:
    rtol, atol = tolerance(expected.dtype, *grant)
    want, got = expected.numbers(), actual.numbers()
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    want, got = want.astype(wide), got.astype(wide)
    mask = np.asarray(_special(want) != _special(got))
    if mask.any():
        details = _count(mask) | _at(expected, actual, mask)
        return _Result("nan-mask", f"NaN or infinity on one side only at {_where(details)}", None, details)
    finite = np.isfinite(want)
    want, got = np.where(finite, want, 0.0), np.where(finite, got, 0.0)
    with np.errstate(over="ignore"):  # a difference beyond float64 is an infinite one
        difference = np.abs(got - want)
        differs = difference > atol + rtol * np.abs(want)
    return _judge(expected, actual, differs, difference, rtol, atol)


def _judge(
    expected: Tensor, actual: Tensor, differs: Array, difference: Array | None, rtol: float, atol: float
) -> _Result:
    """Make the result of comparing values; `difference` is |actual - expected|, or None where there is no distance."""
    details = _count(differs)
    distance: float | None = None
    if difference is not None:
        distance = float(difference.max(initial=0))
        details |= {"max_abs": distance, "max_rel": _relative(difference, expected), "rtol": rtol, "atol": atol}
    if not details["differing"]:
        return _Result(chebyshev=distance, details=details)
    details |= _at(expected, actual, differs)
    message = _where(details)
    if distance is not None and expected.dtype != "bool":
        message += f"; by at most {distance:.4g}"
        message += f", relatively {details['max_rel']:.4g} (rtol {rtol:g}, atol {atol:g})" if rtol or atol else ""
    return _Result("value", message, distance, details)


def _integer_difference(want: Array, got: Array) -> Array:
    """Return |got - want| of integers or booleans as uint64, exact for every pair of 64-bit integers."""
    signed, shape = want.dtype.kind == "i", np.shape(want)
    wide: type = np.int64 if signed else np.uint64
    want, got = (np.atleast_1d(x).astype(wide) for x in (want, got))  # numbers by themselves warn of what wraps around
    return (np.maximum(want, got).astype(np.uint64) - np.minimum(want, got).astype(np.uint64)).reshape(shape)


def _relative(difference: Array, expected: Tensor) -> float:
    size = np.abs(expected.numbers().astype(np.complex128 if expected.dtype.startswith("complex") else np.float64))
    usable = np.isfinite(size) & (size > 0)
    return float(np.max(difference[usable] / size[usable], initial=0.0))


def _finite(value: Value) -> bool:
    match value:
        case Tensor(dtype=dtype) if dtype in TOLERANCES:
            return not _special(np.asarray(value.numbers())).any()
        case Sequence(items=items):
            return all(map(_finite, items))
        case Optional(value=held):
            return _finite(held)
    return True


def _special(array: Array) -> Array:
    """Return 0 for finite elements, and another number for each of NaN, infinity and negative infinity."""
    if array.dtype.kind == "c":
        return np.asarray(_special(array.real) + 4 * _special(array.imag))
    return np.select([np.isnan(array), np.isposinf(array), np.isneginf(array)], [1, 2, 3], 0)


def _count(differs: Array) -> dict[str, Detail]:
    return {"differing": int(differs.sum()), "elements": int(differs.size)}


def _at(expected: Tensor, actual: Tensor, differs: Array) -> dict[str, Detail]:
    """Return where the first difference is, and what stands there on both sides."""
    index = tuple(int(x) for x in np.argwhere(differs)[0])
    return {
        "index": str(list(index)),
        "expected": _plain(expected.numbers()[index]),
        "actual": _plain(actual.numbers()[index]),
    }


def _where(details: dict[str, Detail]) -> str:
    return (
        f"{details['differing']} of {details['elements']} elements, first at {details['index']}: "
        f"expected {details['expected']}, got {details['actual']}"
    )


def _plain(item: Any) -> Detail:
    """Return an element as JSON can hold it: NaN, infinities, complex numbers and strings as text."""
    item = item.item() if isinstance(item, np.generic) else item
    if isinstance(item, bytes):
        return item[:200].decode("utf-8", "backslashreplace")
    return item if isinstance(item, bool | int) or (isinstance(item, float) and math.isfinite(item)) else str(item)
