"""Whether failures are alike: of two versions of a compiler, of two programs or two compilers; whether two outputs are."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np

from opera.compilers.shared.packing import OF_BODY
from opera.oracle.messages import cause
from opera.oracle.signature import normalise
from opera.programs.values import Tensor, Value
from opera.programs.verdicts import CRASH, INCONSISTENT, REFUSED, Outcome
from opera.triage.failure import NUMBERS, spoils_memory

SIMILAR = 0.6
"""Share of words, in order, that two normalised messages have in common if one is the other worded anew."""
ANSWER = ("output", "index", "differing", "elements")
"""Details that two equal wrong answers share, beside what was returned."""
_PLACE = re.compile(r"@([\w.-]+):\d+$")


def alike(one: Outcome, other: Outcome) -> bool:
    """Whether two failures of one test are the same one.

    Verdict, stage and symptom are the same; of exceptions also the file that raised them, or what they say but for line
    numbers, boilerplate and a few words, for these change from version to version. Memory that is overwritten once the
    model is loaded is noticed sooner or later, and by the CPU or the heap.
    """
    if "load" not in (one.stage, other.stage) and spoils_memory(one) and spoils_memory(other):
        return True
    if (one.verdict, one.stage, one.symptom) != (other.verdict, other.stage, other.symptom):
        return False
    if one.verdict not in (CRASH, REFUSED):
        return True
    places = [_PLACE.search(x.conversion_function) for x in (one, other)]
    if places[0] and places[1] and places[0][1] == places[1][1]:
        return True
    return same_words(one.message, other.message)


def same_words(one: str, other: str) -> bool:
    """Whether two messages are one, but for line numbers, boilerplate and a few words."""
    words = [normalise(cause(x)).lower().split() for x in (one, other)]
    return difflib.SequenceMatcher(a=words[0], b=words[1], autojunk=False).ratio() >= SIMILAR


def same_answer(one: Outcome, other: Outcome) -> bool:
    """Whether two inconsistent outcomes are one wrong answer, by their first differing element, within what is tolerated, and
    how many there are: who adds an epsilon to a norm, and who does not, both give -1."""
    same = one.symptom == other.symptom and all(one.details.get(x) == other.details.get(x) for x in ANSWER)
    return same and _near(one.details.get("actual"), other.details.get("actual"), one.details)


def of_two_files(
    now: Outcome, routes: Iterable[tuple[str, Outcome]], right: Iterable[str], files: Mapping[str, Collection[str]]
) -> str:
    """Say by which other route wrong numbers are the same numbers, of a file that is right elsewhere; nothing where none is.

    Args:
        routes: Each in words, and what came of it.
        right: Other compilers that pass, in words that begin with their names.
        files: A route → compilers that try who writes its file.
    """
    known = {x.partition(" ")[0]: x for x in right}
    for way, shown in routes if now.symptom in NUMBERS else ():
        of = next((known[x] for x in files.get(way, ()) if x in known), "")
        if of and shown.verdict == INCONSISTENT and same_answer(shown, now):
            return f"{way} gives the same answer, of a file that is right by {of}"
    return ""


def _near(one: object, other: object, within: Mapping[str, Any]) -> bool:
    if not isinstance(one, float) or not isinstance(other, float):
        return one == other
    rtol, atol = within.get("rtol", 0.0), within.get("atol", 0.0)
    return one == other or bool(np.isclose(one, other, rtol=rtol, atol=atol, equal_nan=True))


def same_values(ones: list[Value] | None, others: list[Value] | None) -> bool:
    """Whether two lists of values are the same bits or the same numbers, whatever the dtypes."""
    if ones is None or others is None or len(ones) != len(others):
        return False
    pairs = list(zip(ones, others, strict=True))
    if not all(isinstance(x, Tensor) and isinstance(y, Tensor) and x.shape == y.shape for x, y in pairs):
        return ones == others
    return all(x.data == y.data or np.array_equal(x.array(), y.array()) for x, y in pairs)


def in_body(unlawful: Outcome, now: Outcome) -> bool:
    """Whether ONNX's own function body of an operator breaks a rule at the operator that a model does not load at."""
    at = re.match(rf"{OF_BODY}(\w+): ", unlawful.message)
    return at is not None and now.stage == "load" and re.search(rf"\b{at[1]}\b", now.message) is not None
