"""What is told no more, for something else that is told says as much, or more: that numbers have different signs says that one
is negative; that a number is beyond a dtype says that it is given.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import partial

from opera.programs.program import Program
from opera.triage.conditions import dtypes, elementwise, listing, peculiar, removable, windows
from opera.triage.conditions.lengths import OF_LENGTH_0
from opera.triage.conditions.stated import BEYOND_DTYPE, NOT_BELOW, WHOLE, Feature
from opera.triage.sentence import EMPTY

OF_PROMOTION = " promoted to "
"""How it is told to what inputs are promoted, or not."""


def given(says: str, found: str) -> bool:
    """Whether what else is told tells of a parameter what is told of it: that it is not below another is more than that it is
    given, so is that it is beyond a dtype, and so are the length of the axis that it names, and that it lists several."""
    name = removable.named(says)
    several = listing.OF_SEVERAL.fullmatch(found)
    given = f" {name} names " in found or (several is not None and several[1] == name)
    more = (f"{name}{NOT_BELOW}", f"{name}{BEYOND_DTYPE}", f"{WHOLE}{name}{BEYOND_DTYPE}")
    return found.startswith(more) or (says.endswith(removable.IS_GIVEN) and given)


def of_one(says: str, found: Iterable[str]) -> bool:
    """Whether what is told of any input is told of one by name, too: `a negative number in steps`, `the first axis of x of
    length 0`; an end of int64 is beyond int32."""
    named = {
        EMPTY: OF_LENGTH_0,
        peculiar.NEGATIVE_INPUT: f"{peculiar.NEGATIVE} in ",
        f"{peculiar.BEYOND_INT32} in an input": "INT64_",
    }
    more = [elementwise.implied(x) for x in found]
    return says in named and (any(named[says] in x and x != says for x in found) or any(x and x in says for x in more))


def unless_of_dtypes(told: Sequence[Feature], besides: list[Feature], passing: Sequence[Program]) -> list[Feature]:
    """Return what else decides without the dtypes that inputs have, where to what they are promoted tells as much, or that a
    number is beyond their integers."""
    if not any(OF_PROMOTION in x.says or BEYOND_DTYPE in x.says for x in told):
        return besides
    left = [x for x in besides if not dtypes.members(x.says)]
    having = (sum(all(y.holds(x) for y in (*told, *of)) for x in passing) for of in (left, besides))
    return left if len(set(having)) == 1 else besides


def of_windows(told: list[Feature], besides: Sequence[Feature], passing: Sequence[Program]) -> list[Feature]:
    """Return what is told of parameters without those of windows, where it is told that one begins behind the input: that says
    as much of all of them."""
    if not any(x.says == windows.BEHIND for x in besides):
        return told
    left = [x for x in told if re.split(r"\W", x.says.rpartition(".")[2], maxsplit=1)[0] not in windows.OF_WINDOWS]
    return told if any(all(y.holds(x) for y in (*left, *besides)) for x in passing) else left


def of_given(besides: list[Feature], found: list[Feature]) -> tuple[list[Feature], list[Feature]]:
    """Return what else decides without that something is given, where it is told of what kind: that says so."""
    for of in [x for x in (*besides, *found) if given_inputs([x.says]) or x.says.endswith(removable.IS_GIVEN)]:
        name = of.says.removeprefix(removable.GIVEN).removesuffix(removable.IS_GIVEN)
        says = re.compile(rf"{re.escape(name)} of |an? (?:number|float|integer|tensor) for {re.escape(name)}$")
        kind = next((x for x in (*besides, *found) if says.match(x.says)), None)
        if kind is not None:
            both = Feature(kind.says, partial(_holds_both, kind, of))
            besides, found = ([both if x is kind else x for x in y if x is not of] for y in (besides, found))
    return besides, found


def _holds_both(one: Feature, other: Feature, program: Program) -> bool:
    return one.holds(program) and other.holds(program)


def given_inputs(told: Iterable[str]) -> list[str]:
    """Return the inputs of which it is told that they are given."""
    return [x for x in told if re.fullmatch(rf"{removable.GIVEN}\S+", x)]
