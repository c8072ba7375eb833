"""Findings that say the same of another operator: not one cause for certain, but whoever mends one looks at the other."""

from __future__ import annotations

import re
from collections.abc import Iterable

from opera.oracle.messages import cause
from opera.oracle.signature import TYPE, normalise
from opera.programs.verdicts import CRASH, INCONSISTENT, REFUSED, Outcome
from opera.store.workspace import Workspace
from opera.triage import failure
from opera.triage.distinct import causes, kinship
from opera.triage.reduction import Reduction
from opera.triage.sentence import brief

WORDS = 8
"""Words that a message has at least, if it is to tell anything without the place where it was raised."""
DIMENSIONS = re.compile(r"(?<=[a-z])[1-3]d", re.IGNORECASE)


def twins(workspace: Workspace, finding: str, environment: str) -> list[tuple[str, str]]:
    """Return the other findings that say the same as one, each with the operator of which they do; sorted."""
    told = causes.causes(workspace)
    found = [(told.of(name, x.test), x) for name, x in causes.reduced(workspace) if x.environment == environment]
    own = [x for name, x in found if name == finding]
    return sorted({
        (name, brief(x.program().program.operator))
        for name, x in found
        if name != finding and any(alike(x, y) for y in own)
    })  # fmt: skip


def alike(one: Reduction, other: Reduction) -> bool:
    """Whether two failures are twins: crashes or refusals of one frontend, at one stage, that the same decides, with the same
    words but for the operators' names and dimensions, of dtypes of the same kinds. A message is long, or both are raised at one
    `file:line`.

    So are wrong outputs that one value of a parameter decides, wrong in one respect: `noop_with_empty_axes=1` of several
    reductions.
    """
    both = (one, other)
    if one.outcome.verdict == other.outcome.verdict == INCONSISTENT:
        respects = {(x.frontend, x.outcome.symptom, x.deciding) for x in both}
        return len(respects) == 1 and any("=" in x for x in one.deciding)
    kinds = {(x.frontend, x.outcome.verdict, x.outcome.stage, x.outcome.symptom, kinship.conditions(x)) for x in both}
    if len(kinds) > 1 or one.outcome.verdict not in (CRASH, REFUSED):
        return False
    if failure.is_invalid(one.outcome) and not failure.nodes(one.outcome) & failure.nodes(other.outcome):
        return False  # the checker says the same of whatever is invalid so
    names = _names(name for x in both for name in x.program().program.operators)
    messages = (DIMENSIONS.sub("", normalise(cause(x.outcome.message))).lower() for x in both)
    said = {" ".join(names.sub(" ", message).split()) for message in messages}
    places = {x.outcome.line for x in both}
    same_place = len(places) == 1 and places != {""}
    types = {frozenset(map(_kind, TYPE.findall(cause(x.outcome.message)))) for x in both}  # of floats, or of indices
    return len(said) == len(types) == 1 and (same_place or len(re.findall(r"[a-z]{2,}", said.pop())) >= WORDS)


def says_much(outcome: Outcome) -> bool:
    """Whether a message tells something without the place where it was raised."""
    return len(re.findall(r"[a-z]{2,}", normalise(cause(outcome.message)).lower())) >= WORDS


def _names(operators: Iterable[str]) -> re.Pattern[str]:
    """Return what finds the words of operators' names, without dimensions."""
    words = {x for name in operators for x in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", DIMENSIONS.sub(" ", name))}
    return re.compile("|".join(sorted(map(re.escape, words), key=len, reverse=True)), re.IGNORECASE)


def _kind(dtype: str) -> str:
    """Return the first letter of a dtype's kind, as native code and Python write it: `f` of f64, float64 and bf16."""
    return dtype.removeprefix("b")[:1].replace("s", "i")
