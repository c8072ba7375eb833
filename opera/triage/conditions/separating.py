"""What separates the programs that pass from those that fail: one thing that none of them has, two or three together, or nearly
so."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from opera.programs.program import Program
from opera.triage.conditions import dtypes
from opera.triage.conditions.stated import Feature

FEW_OF = 8
"""Where nothing separates all programs that pass, that is told which one in so many of them has at most."""
TWICE = 2
"""Programs that pass for want of each one of three things alone, at least: of three some explain anything."""


def one(candidates: Sequence[Feature], passing: Sequence[Program]) -> list[list[Feature]]:
    """Return the features that no passing program has, each, if there are such programs."""
    return [[x] for x in candidates if passing and not any(map(x.holds, passing))]


def pairs(candidates: Sequence[Feature], passing: Sequence[Program]) -> list[list[Feature]]:
    """Return each two features that no passing program has both of, if there are such programs."""
    has = [{n for n, of in enumerate(passing) if x.holds(of)} for x in candidates]
    pairs = itertools.combinations(range(len(candidates)), 2) if passing else ()
    return [[candidates[x], candidates[y]] for x, y in pairs if not has[x] & has[y]]


def triples(candidates: Sequence[Feature], passing: Sequence[Program]) -> list[list[Feature]]:
    """Return each three features that no passing program has all of, where several lack each one of them alone; a dtype one."""
    has = [{n for n, of in enumerate(passing) if x.holds(of)} for x in candidates]
    least = [1 if dtypes.members(dtypes.unpromoted(x.says)) else TWICE for x in candidates]
    made = list[list[Feature]]()
    for one, two in itertools.combinations(range(len(has)), 2) if passing else ():
        both = has[one] & has[two]
        for three in range(two + 1, len(has)) if both else ():
            if not both & has[three]:
                lacking = {three: both, two: has[one] & has[three], one: has[two] & has[three]}
                if all(len(of) >= least[x] for x, of in lacking.items()):
                    made.append([candidates[x] for x in (one, two, three)])
    return made


def nearly(candidates: Sequence[Feature], passing: Sequence[Program]) -> list[list[Feature]]:
    """Return the one feature, or else the two, that the fewest passing programs have, where these are few of many."""
    most = len(passing) // FEW_OF
    has = [{n for n, of in enumerate(passing) if x.holds(of)} for x in candidates] if most else []
    for several in (1, 2):
        sets = list(itertools.combinations(range(len(has)), several))
        left = [len(set.intersection(*(has[n] for n in of))) for of in sets]
        if left and min(left) <= most:
            return [[candidates[n] for n in sets[left.index(min(left))]]]
    return []
