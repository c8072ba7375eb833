"""Outputs that vary: random where an operator is declared so, else `unstable`, which is a failure of its own kind.

Randomness explains values, never a form (count, shape, dtype), and no output that does not vary at all where the reference's
does.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec
import numpy as np

from opera.oracle import comparison as oracle
from opera.programs.migrated import Manifest
from opera.programs.values import Tensor, Value
from opera.programs.verdicts import INCONSISTENT, UNSTABLE, Outcome

RANDOM = "nondeterministic"
"""Tag of a test with an operator that is declared random; also the detail of an outcome: whether repetitions differed."""
FORMS = frozenset(("count", "shape", "dtype"))
"""Symptoms of outputs of another form: no randomness, rounding or undefined value explains one."""
CHANCE = 1e-6
"""A random output is taken for a constant where chance makes it one less often than this."""


def settled(outcome: Outcome, tags: Collection[str]) -> Outcome:
    """Return wrong outputs as `unstable` where repetitions differed and no operator is declared random, else `inconsistent`.

    A wrong form is wrong whatever varies beside it. The symptom of all unstable outputs is one: which values, NaN or infinities
    memory happens to hold makes no two failures.
    """
    varies = bool(outcome.details.get(RANDOM)) and RANDOM not in tags and outcome.symptom not in FORMS
    if not varies:
        return msgspec.structs.replace(outcome, verdict=INCONSISTENT)
    text = f"repetitions differ: {outcome.details.get('repeat', '')}; against the reference: {outcome.message}"
    if outcome.symptom == UNSTABLE:
        text = outcome.message
    return msgspec.structs.replace(outcome, verdict=UNSTABLE, symptom=UNSTABLE, message=text[:4000])


def wrong_form(manifest: Manifest, expected: list[Value], actual: list[Value]) -> str:
    """Return how an output is of another form than is expected, wherever it stands, else nothing."""
    if len(expected) != len(actual):
        return "count"
    for want, got in zip(expected, actual, strict=True):
        symptom = oracle.compare([want], [got], ("",), manifest.rtol, manifest.atol).symptom
        if symptom in FORMS:
            return symptom
    return ""


def constant(inputs: list[Value], expected: list[Value], actual: list[Value], *, varied: bool) -> str:
    """Return which output of a random program does not vary where the reference's does, in words; empty where none.

    An output that is one value all over, or an input unchanged, is no randomness, where the compiler's repetitions did not
    differ (`varied`) and chance hardly makes such an output: were each element as often this value as the reference's are,
    all of them would be with a probability below CHANCE.
    """
    if varied:
        return ""
    for place, (want, got) in enumerate(zip(expected, actual, strict=False)):
        if (
            not (isinstance(want, Tensor) and isinstance(got, Tensor))
            or want.shape != got.shape
            or "string" in got.dtype
        ):
            continue
        wanted, given = want.numbers(), got.numbers()
        if given.size < 2 or len(np.unique(wanted)) < 2:
            continue
        if len(np.unique(given)) == 1:
            told = f"all {given.size} elements are {given.flat[0]}"
        elif any(isinstance(x, Tensor) and x.shape == got.shape and x == got for x in inputs):
            told = f"all {given.size} elements are those of an input"
        else:
            continue
        alike = int(((wanted == given) | ((wanted != wanted) & (given != given))).sum())
        if ((alike + 1) / (given.size + 2)) ** given.size < CHANCE:
            return f"output {place} does not vary: {told}; the reference has {given.size - alike} others"
    return ""
