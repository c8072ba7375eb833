"""Whether two failures are alike: of two versions of a compiler, however each words it; of two programs or two compilers."""

from __future__ import annotations

import difflib
import re

from opera.oracle.messages import cause
from opera.oracle.signature import normalise
from opera.programs.verdicts import CRASH, REFUSED, Outcome

SIMILAR = 0.6
"""Share of words, in order, that two normalised messages have in common if one is the other worded anew."""
ANSWER = ("output", "index", "actual", "differing", "elements")
"""Details that two equal wrong answers share."""
_PLACE = re.compile(r"@([\w.-]+):\d+$")


def alike(one: Outcome, other: Outcome) -> bool:
    """Whether two failures of one test are the same one.

    Verdict, stage and symptom are the same; of exceptions also the file that raised them, or what they say but for line
    numbers, boilerplate and a few words, for these change from version to version.
    """
    if (one.verdict, one.stage, one.symptom) != (other.verdict, other.stage, other.symptom):
        return False
    if one.verdict not in (CRASH, REFUSED):
        return True
    places = [_PLACE.search(x.conversion_function) for x in (one, other)]
    if places[0] and places[1] and places[0][1] == places[1][1]:
        return True
    words = [normalise(cause(x.message)).lower().split() for x in (one, other)]
    return difflib.SequenceMatcher(a=words[0], b=words[1], autojunk=False).ratio() >= SIMILAR


def same_answer(one: Outcome, other: Outcome) -> bool:
    """Whether two inconsistent outcomes are one wrong answer, by their first differing element and how many there are."""
    return one.symptom == other.symptom and all(one.details.get(x) == other.details.get(x) for x in ANSWER)
