"""Which argument of one operator is which of another: an assignment that maximises similarity, as DeepREL's."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import msgspec
import numpy as np

from opera.errors import NotInstalled
from opera.programs.values import NO_DEFAULT
from opera.sources.deeprel.apis import Api, Parameter

ALIKE = 0.6
"""Optional parameters of both operators are matched only if their names are at least so similar."""
NEVER = 0.0
"""Similarity of parameters that types, or names, rule out as a match: none at all is as good."""
SAME = (
    ("input", "self", "x", "a", "tensor", "inputs", "data"), ("other", "x2", "b", "y", "vec2", "mat2"), ("input", "x1"),
    ("dim", "axis"), ("dims", "axes", "axis", "dim"), ("keepdim", "keepdims"), ("p", "rate", "ord"),
    ("tensors", "xs", "arrays", "input", "inputs"), ("min", "min_val", "x_min", "a_min"), ("max", "max_val", "x_max", "a_max"),
    ("negative_slope", "alpha"),
)  # fmt: skip
"""Names that mean the same."""
NEAR = ({"int", "float"}, {"int", "ints"})
"""Types of which one may be taken for the other."""


class Matching(msgspec.Struct, frozen=True):
    """How calls of one operator are expressed as calls of another.

    Attributes:
        names: Parameter of the source → parameter of the target.
        explicit: Parameter of the target → parameter of the source whose default is to be passed, for the target's is another.
    """

    names: dict[str, str]
    explicit: dict[str, str] = {}


def match(source: Api, target: Api) -> Matching | None:
    """Return the best assignment of arguments; None where a required one of either side has no counterpart.

    Raises NotInstalled without SciPy.
    """
    try:
        from scipy.optimize import linear_sum_assignment
    except ImportError:
        raise NotInstalled(
            "SciPy is not installed", cause="arguments are matched by assignment", fix="pip install 'opera[generators]'"
        ) from None
    left, right = source.parameters, target.parameters
    if not left or not right:
        return None
    scores = similarities(left, right)
    rows, columns = linear_sum_assignment(-scores)
    names = {left[i].name: right[j].name for i, j in zip(rows, columns, strict=True) if scores[i, j] > NEVER}
    taken = set(names.values())
    if any(x.required and x.name not in names for x in left) or any(x.required and x.name not in taken for x in right):
        return None
    return Matching(names, _explicit(source, target, names)) if names else None


def similarities(
    left: tuple[Parameter, ...], right: tuple[Parameter, ...]
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Return DeepREL's similarity of each pair: names (0 to 1), types (0 to 1), positions (0 to 1)."""
    longest = max(len(left), len(right))
    scores = np.empty((len(left), len(right)))
    for i, one in enumerate(left):
        for j, other in enumerate(right):
            scores[i, j] = _similarity(one, other, 1 - abs(i - j) / longest)
    return scores


def _similarity(one: Parameter, other: Parameter, place: float) -> float:
    types = compatible(one.types, other.types)
    if types == 0:
        return NEVER
    name = name_similarity(bare(one), bare(other))
    if not one.required and not other.required and name < ALIKE:
        return NEVER
    return name + types + place


def compatible(one: frozenset[str], other: frozenset[str]) -> float:
    """Return which part of the types of one parameter the other takes; a half where nothing is known."""
    if not one or not other:
        return 0.5
    share = len(one & other) / len(one)
    return share or (0.25 if any(one & near and other & near for near in NEAR) else 0.0)


def bare(parameter: Parameter) -> str:
    """Return a parameter's name without what tells constructor and call apart."""
    return parameter.name.rpartition(".")[2]


@lru_cache(maxsize=1 << 16)
def name_similarity(one: str, other: str) -> float:
    """Return 1 for names that mean the same, else the normalised Levenshtein similarity."""
    one, other = one.lower().lstrip("*"), other.lower().lstrip("*")
    if one == other or any(one in names and other in names for names in SAME):
        return 1.0
    return 1 - _levenshtein(one, other) / max(len(one), len(other), 1)


def _levenshtein(one: str, other: str) -> int:
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        before, row[0] = row[0], i
        for j, b in enumerate(other, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (a != b))
    return row[-1]


def _explicit(source: Api, target: Api, names: Mapping[str, str]) -> dict[str, str]:
    theirs = {x.name: x for x in target.parameters}
    found = {}
    for mine in source.parameters:
        other = theirs.get(names.get(mine.name, ""))
        if other is None or other.required or not has_default(mine):
            continue
        if repr(mine.default) != repr(other.default):
            found[other.name] = mine.name
    return found


def has_default(parameter: Parameter) -> bool:
    """Whether a default is known."""
    return repr(parameter.default) != repr(NO_DEFAULT)
