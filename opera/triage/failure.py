"""Whether a smaller program shows the failure that the first one showed, and no other: what a reduction may not drift from."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import msgspec
import numpy as np

from opera.oracle import location, manner, messages
from opera.oracle.comparison import conceals
from opera.oracle.signature import DTYPE, EXCUSED, Signature
from opera.programs.values import RandomTensor, Tensor
from opera.programs.verdicts import ABORT, CRASH, DEATHS, INCONSISTENT, PASS, REFUSED, UNSTABLE, Outcome

GROSS = 0.01
"""A deviation that is relatively larger than this may not be reduced to a smaller one: that could be rounding."""
NUMBERS = frozenset(("value", "nan-mask", UNSTABLE))
"""Symptoms of outputs whose numbers are wrong."""
CHECKED = {"InferenceError", "ValidationError"}
"""Exceptions by which ONNX's checker says that a model is not valid (`onnx.checker`, `onnx.shape_inference`): a runtime may
load it all the same."""
SLIGHT = 8
"""Times the tolerated deviation up to which a maintainer may take a wrong number for rounding."""
SEGMENTATION = ("SIGSEGV", "SIGBUS")
HEAP = re.compile(
    r"\b(?:malloc(?:_consolidate)?|free|realloc|m(?:unm|rem)ap_chunk)\(\)|double free|corrupted (?:size|double-linked|unsorted)"
)
"""How glibc's allocator says that what it keeps beside memory was overwritten (malloc/malloc.c, `malloc_printerr`)."""
NAMES = re.compile(messages.NAMES)
"""Names of tensors in messages."""
PRINTED = re.compile(messages.PRINTED)
TABLE = re.compile(r":\w*(?:expr|tensor)")
"""A function that looks tensors up by their names."""
ALIKE, TELLING = 0.6, 3
"""Share of the words of two messages that must be in both; with so many words a message tells something."""
SIZE = re.compile(r"\d+")
"""A size in a shape as the oracle writes it: `(1, 2)`."""
CLEARLY = 10, 100
"""Right is what is off by so many times less than the tolerance grants, relatively or absolutely (what is expected may be
nearly 0), or by SMALL of what the wrong one is off by."""
SMALL = 1e-3
EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7}
"""Distance of 1 to the next number of a dtype of 16 bits (IEEE 754; bfloat16 has eight bits of them). Of wider ones tolerances
grant hundreds of these."""
BOUND = 1e4
"""Numbers as large are masks and bounds, with which nothing is computed."""
STEPS = 4
"""Roundings of a number that a program may make of it one after the other, and nobody calls a mistake."""
CALLED = re.compile(r"[\w./-]*?((?:[\w-]+/)?[\w.-]+\.(?P<language>py|cc|cpp|cxx|h|hpp)):<module>:(\d+)")
"""A frame of native code, or of Python that native code has called, as `opera.run.culprit.frames` tells it."""
NODE = re.compile(r"(?:\bop_type:|\b[Nn]ode\b[^\w\n]+(?:Node\W+)?)((?:\w+::)*[A-Z]\w*)")
"""The operator that a message names after the word "node" or "op_type": where it failed."""


def alike(frontend: str, one: Outcome, other: Outcome, *, elsewhere: bool = False) -> bool:
    """Whether two outcomes are one failure: of one signature, and what a signature leaves out of a message is alike as well.

    `elsewhere`: another call of the program may be the one that fails.
    """
    if (one.verdict, one.stage) != (other.verdict, other.stage):
        return False
    if one.symptom != other.symptom:
        return spoils_memory(one) and spoils_memory(other)
    if one.verdict in DEATHS:
        return True
    one, other = unnamed(one), unnamed(other)
    if one.location.partition(":")[0] == other.location.partition(":")[0]:  # another function hands the same words on
        other = msgspec.structs.replace(other, location=one.location)
    if not elsewhere and Signature.of(frontend, "", one) != Signature.of(frontend, "", other):
        return False
    if one.verdict in (CRASH, REFUSED):
        if any(other.details.get(x) and not one.details.get(x) for x in manner.ODD):  # an odd program to file
            return elsewhere
        return same_words(one, other) and (elsewhere or nodes(other) <= (nodes(one) or nodes(other)))
    if one.details.get("drawn") != other.details.get("drawn"):
        return False
    if "drawn" in one.details:  # how far what was drawn is off tells nothing
        return True
    if lacks_axis(one) != lacks_axis(other):  # what takes an axis away is not what adds one
        return False
    if (
        not elsewhere and one.verdict != UNSTABLE and drifted(one, other)
    ):  # what varies is wrong in another manner each time
        return False
    return one.symptom != "value" or severity(other) >= min(severity(one), GROSS)


def lacks_axis(shown: Outcome) -> bool:
    """Whether fewer axes than are expected were returned."""
    if (shown.verdict, shown.symptom) != (INCONSISTENT, "shape"):
        return False
    expected, actual = (len(SIZE.findall(str(shown.details.get(x, "")))) for x in ("expected", "actual"))
    return actual < expected


def spoils_memory(outcome: Outcome) -> bool:
    """Whether a process died of memory that was overwritten, or is not its own: by the CPU or by the heap's own checks,
    whichever came to it first."""
    return outcome.verdict == ABORT and (
        outcome.symptom in SEGMENTATION or (outcome.symptom == "SIGABRT" and HEAP.search(outcome.message) is not None)
    )


def below(outcome: Outcome) -> tuple[str, ...]:
    """Return the lines of Python and of native code by which a compiler came to where it stopped, once native code had called
    Python: `topi/broadcast.py:249`, `op/op.cc:258`. Nothing where that did not stop in native code.
    """
    frames = outcome.seen.frames if outcome.seen is not None else ()
    called = [x for x in map(CALLED.fullmatch, frames) if x is not None]
    native = [x["language"] != "py" for x in called]
    return tuple(f"{x[1]}:{x[3]}" for x in called) if len(called) > 1 and native[-1] and not native[0] else ()


def unnamed(outcome: Outcome) -> Outcome:
    """Return an outcome whose message names no tensor of a model: the same tensor has another name in a smaller program; nor
    the dtype of a tensor of PyTorch's, which its words leave out of the usual ones; nor says what was done for no excuse to
    hold of it.
    """
    if EXCUSED in outcome.details:
        outcome = msgspec.structs.replace(outcome, details={x: y for x, y in outcome.details.items() if x != EXCUSED})
    text = PRINTED.sub("", NAMES.sub("@", outcome.message))
    if outcome.symptom == "KeyError" and TABLE.search(outcome.location):
        text = re.sub(r"'[^']*'", "@", text)
    return outcome if text == outcome.message else msgspec.structs.replace(outcome, message=text)


def moved(one: Outcome, other: Outcome, operators: Collection[str]) -> bool:
    """Whether a call inside a program fails at another place than the program, whose own place is told: it was converted as a
    whole, and what its library makes of it never came to the compiler.

    Args:
        operators: Of the program; where its place is only their name, nothing is told.
    """
    places = [location.canonical(location.shared(x.conversion_function)) for x in (one, other)]
    told = all(map(location.names_converter, places)) and one.converter not in operators
    return told and places[0] != places[1]


def as_wrong(one: Outcome, other: Outcome) -> bool:
    """Whether outputs are wrong in the same respect, and values no less, in whatever manner; what is no number where none is
    expected never is. Where finite numbers are expected, what is no number is as wrong as what is far off.
    """
    symptoms = {one.symptom, other.symptom}
    if not one.verdict == other.verdict == INCONSISTENT or (len(symptoms) > 1 and not symptoms <= NUMBERS):
        return False
    if "nan-mask" in symptoms and not (_finite(one) and _finite(other)):
        return False
    return other.symptom != "value" or severity(other) >= min(severity(one), GROSS)


def _finite(outcome: Outcome) -> bool:
    """Whether all numbers that are expected are known to be finite."""
    return outcome.details.get("not_finite") is False


def misvalued(one: Outcome, other: Outcome) -> bool:
    """Whether both give wrong numbers where finite ones are expected, the other by no little: a number, none, or now this and
    now that, as memory that nobody wrote holds them.
    """
    told = [x.verdict in (INCONSISTENT, UNSTABLE) and x.symptom in NUMBERS for x in (one, other)]
    drawn = any("drawn" in x.details for x in (one, other))
    return all(told) and not drawn and not other.details.get("not_finite") and severity(other) >= GROSS


def loses(one: Outcome, other: Outcome) -> bool:
    """Whether one gives wrong numbers where finite ones are expected, and the other a number where none is expected, or none
    where one is: what is no number arose inside of the one, and need not be lost to show.
    """
    told = one.verdict == INCONSISTENT and one.symptom in NUMBERS and _finite(one) and "drawn" not in one.details
    return (
        told and (other.verdict, other.symptom) == (INCONSISTENT, "nan-mask") and bool(other.details.get("not_finite"))
    )


def is_invalid(outcome: Outcome) -> bool:
    """Whether ONNX's checker refuses the file that was written."""
    return outcome.stage == "compile" and outcome.symptom.rpartition(".")[2] in CHECKED


def both_invalid(one: Outcome, other: Outcome) -> bool:
    """Whether ONNX's checker refuses what is made of both: it names what it comes to first, which may only read the cause."""
    return is_invalid(one) and is_invalid(other)


def same_words(one: Outcome, other: Outcome) -> bool:
    """Whether most words of two messages are the same, dtypes and numbers left out."""
    own, others = words(one.message), words(other.message)
    return len(own & others) >= ALIKE * len(own | others)


def says_the_same(one: Outcome, other: Outcome) -> bool:
    """Whether two crashes or refusals say the same in the same stage, word for word but for dtypes and numbers, wherever they
    are said to come from: whoever reads them takes them for one failure, and so does the script of a finding."""
    if (one.verdict, one.stage, one.symptom) != (other.verdict, other.stage, other.symptom):
        return False
    own = words(one.message)
    return one.verdict in (CRASH, REFUSED) and len(own) >= TELLING and own == words(other.message)


def as_told(target: Outcome, shown: Outcome) -> bool:
    """Whether a program fails as the target does in the eyes of its script, of whatever output: at one stage, with one type and
    text, or in one respect."""
    same = (target.verdict, target.stage, target.symptom) == (shown.verdict, shown.stage, shown.symptom)
    told = target.verdict == INCONSISTENT or messages.says(shown.message, messages.identifying(target.message))
    return same and told


def drifted(one: Outcome, other: Outcome) -> bool:
    """Whether what is wrong with the outputs of the other is not what is wrong with those of one, but hides or replaces it."""
    before, then = (x.details.get("manner") or {} for x in (one, other))
    details = _without(one.details, then)
    if then and not before:  # it drew numbers, which always differ; the other draws none
        details = {**details, "wrong": {x: y.removesuffix(" and values") for x, y in details.get("wrong", {}).items()}}
    if conceals(details, other.details) or _gains(details, other.details):
        return True
    if not before or not then:
        return _kinds(one) != _kinds(other)
    return not manner.keeps(before, then, str(one.details.get("output", "")))


def _gains(details: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether an output whose form alone was wrong has wrong numbers, too: that is another mistake beside it."""
    wrong, then = details.get("wrong") or {}, other.get("wrong") or {}
    return any(then.get(name) == f"{x} and values" for name, x in wrong.items())


def _without(details: Mapping[str, Any], left: Mapping[str, Any]) -> dict[str, Any]:
    """Return details without the outputs that a smaller program has no more, where its outputs are known."""
    wrong = details.get("wrong")
    if not isinstance(wrong, dict) or not left:
        return dict(details)
    return {**details, "wrong": {name: x for name, x in wrong.items() if name in left}}


def nodes(outcome: Outcome) -> set[str]:
    """Return the operators of a model that a message names: where it failed."""
    return set(NODE.findall(outcome.message))


def words(message: str) -> set[str]:
    """Return the words of a message, dtypes and numbers left out, addresses too: the letters of such are no words."""
    return set(
        re.findall(r"[A-Za-z_]{3,}", re.sub(rf"\b(?:dtype=(?:torch\.)?\w+|{DTYPE}|0x[0-9a-fA-F]+)\b", " ", message))
    )


def _kinds(outcome: Outcome) -> tuple[str, str]:
    """Return what kind of number was expected, and what kind was returned; that of a finite one for what is no number.

    The largest finite number for an infinity is another mistake than a small one for it.
    """
    expected, actual = (_kind(outcome.details.get(name)) for name in ("expected", "actual"))
    return expected, actual


def returned(outcome: Outcome) -> str:
    """Return what kind of number was returned, of either sign, if it is no finite one: `nan`, `inf`."""
    kind = _kinds(outcome)[1].lstrip("-")
    return kind if kind in ("nan", "inf") else ""


def _kind(value: object) -> str:
    try:
        return manner.kind(float(value)) if isinstance(value, int | float | str) else "finite"
    except ValueError:  # a shape, or a text
        return "finite"


def quiet(outcome: Outcome) -> bool:
    """Whether a number is off by so little, relative to what is expected, that a reader may take it for rounding."""
    relative, absolute = (outcome.details.get(x) for x in ("max_rel", "max_abs"))
    off = relative or absolute  # relative to 0 nothing is
    small = isinstance(off, int | float) and off < GROSS
    wrong = outcome.verdict == INCONSISTENT and outcome.symptom == "value" and "drawn" not in outcome.details
    return wrong and (small or rounded(outcome) != "")


def slight(outcome: Outcome) -> bool:
    """Whether no number is off by much more than is tolerated of its dtype, and none is one of a narrower dtype: the sums may
    have been made in another order, or by another formula.
    """
    relative, tolerated = (outcome.details.get(x) for x in ("max_rel", "rtol"))
    wrong = outcome.verdict == INCONSISTENT and outcome.symptom == "value" and "drawn" not in outcome.details
    if not wrong or not isinstance(relative, int | float) or not isinstance(tolerated, int | float):
        return False
    return 0 < relative <= SLIGHT * tolerated and not rounded(outcome)


def cancelled(outcome: Outcome, given: Iterable[Tensor | RandomTensor]) -> str:
    """Return how much all numbers are off, where that is what a few steps round of the largest that is given: what is left of a
    difference keeps the errors of its terms (Higham, Accuracy and Stability of Numerical Algorithms, section 1.7). An
    AffineGrid of float16 is 0.0039 for 0.0050 where 0.85 is added to -0.85.

    Empty where it is more, or nothing of 16 bits is given.
    """
    off = outcome.details.get("max_abs")
    wrong = outcome.verdict == INCONSISTENT and outcome.symptom == "value" and "drawn" not in outcome.details
    if not wrong or not isinstance(off, int | float) or outcome.details.get("not_finite") or rounded(outcome):
        return ""
    rounds, largest = max((_rounds(x) for x in given if isinstance(x, Tensor)), default=(0.0, 0.0))
    whole = not isinstance(outcome.details.get("expected"), float)
    return f"{off:.2g}, where {largest:.3g} is given" if not whole and 0 < off <= STEPS * rounds else ""


def _rounds(given: Tensor) -> tuple[float, float]:
    """Return by how much the largest number of a tensor of 16 bits is rounded, and that number, BOUND at most."""
    if given.dtype not in EPSILON:
        return 0.0, 0.0
    numbers = np.abs(given.numbers().astype(np.float64))
    largest = float(numbers[numbers < BOUND].max(initial=0.0))
    return EPSILON[given.dtype] * largest, largest


def rounded(outcome: Outcome) -> str:
    """Return the dtype whose precision a wrong number has, where the expected one has more and is no farther off than that
    dtype rounds in a few steps: `float32` of numbers of float64, `float16` of others; else nothing.

    A number of few bits (0.5) may be right by itself; another is one of a narrower dtype by chance once in 2**13 times.
    """
    expected, actual = (outcome.details.get(name) for name in ("expected", "actual"))
    if outcome.verdict != INCONSISTENT or outcome.symptom != "value":
        return ""
    if not isinstance(expected, float) or not isinstance(actual, float) or not _held(actual, "f"):
        return ""
    off = abs(actual - expected) / abs(expected) if expected else math.inf
    for dtype, wide, code, coarse, steps in (("float32", "d", "f", "e", 2.0**-19), ("float16", "f", "e", "", 2.0**-8)):
        narrow = _held(actual, code) and not (_held(actual, coarse) if coarse else actual * 64 % 1 == 0)
        if narrow and _held(expected, wide) and not _held(expected, code) and off <= steps:
            return dtype
    return ""


def _held(number: float, code: str) -> bool:
    """Whether a dtype holds a number: `d` float64, `f` float32, `e` float16 (struct)."""
    try:
        return bool(struct.unpack(code, struct.pack(code, number))[0] == number)
    except OverflowError:
        return False


def severity(outcome: Outcome) -> float:
    """Return how far values are off: relatively, or absolutely where the expected ones are nothing."""
    numbers = [outcome.details.get(name) for name in ("max_rel", "max_abs")]
    return max((float(x) for x in numbers if isinstance(x, int | float)), default=1.0)


def clearly(target: Outcome, shown: Outcome, small: float = SMALL) -> bool:
    """Whether numbers that pass beside wrong ones are right, and not as wrong within tolerance: the effect of what is left out
    may be small (a peephole of a gate that is nearly shut), and another dtype's tolerance larger than it.

    Args:
        small: Share of what the wrong ones are off by that is nothing; 0 where it shrinks with what was changed: a variance of
            4,096 numbers is hardly off by the divisor.
    """
    if target.symptom != "value" or shown.verdict != PASS:
        return True
    relative, absolute, rtol, atol = (float(shown.details.get(x) or 0) for x in ("max_rel", "max_abs", "rtol", "atol"))
    off = float(target.details.get("max_rel") or 0)
    if 0 < off <= rtol:
        return False
    known = relative > 0 or absolute == 0  # where 0 is expected nothing is so many times as large
    return (known and relative <= max(rtol / CLEARLY[0], off * small)) or absolute <= atol / CLEARLY[1]
