"""Outputs that vary: random where an operator is declared so, else `unstable`, which is a failure of its own kind.

Randomness explains values, never a form (count, shape, dtype), and no output that does not vary at all where the reference's
does.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import msgspec
import numpy as np

from opera.oracle import comparison as oracle
from opera.oracle.draws import CONSTANT, RANGE, ROUNDING, UNCHANGED, Broken
from opera.programs.migrated import Manifest
from opera.programs.values import Tensor, Value
from opera.programs.verdicts import INCONSISTENT, UNSTABLE, Outcome

Array: TypeAlias = np.ndarray[Any, Any]

RANDOM = "nondeterministic"
"""Tag of a test with an operator that is declared random; also the detail of an outcome: whether repetitions differed."""
FORMS = frozenset(("count", "shape", "dtype"))
"""Symptoms of outputs of another form: no randomness, rounding or undefined value explains one."""
REPETITIONS = 2
"""Outputs that a worker computes again, where it does (opera.run.worker)."""
CHANCE = 1e-6
"""A random output is taken for a constant where chance makes it one less often than this."""

FAR = 1e4
"""A random number is none of its distribution if it is so many times farther from all that the reference drew than they are
from each other. Of what libraries offer, Cauchy's distribution has the heaviest tail: less than once in 100,000 times."""

FAR_WHOLE = 100.0
"""The same, where all that the reference draws are whole numbers: what is offered (uniform, Bernoulli, Poisson, geometric,
multinomial) has no heavy tail."""

RENEWED = "renewed"
"""Detail of an outcome: what is drawn was the same in all runs, and another in the clock's next second."""

SELDOM = 8
"""Of so many runs at most one may differ from the one before, that they are called the same."""

ENOUGH = 8
"""Elements that two runs of a reference need to tell how often elements are alike by chance."""


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


def compared(
    tags: Collection[str], expected: list[Value], actual: list[Value], names: tuple[str, ...], *grant: *oracle.Grant
) -> oracle.Comparison:
    """Compare outputs; of a random program a wrong form comes before all values, which are expected of no run, nor told."""
    found = oracle.compare(expected, actual, names, *grant)
    if RANDOM not in tags:
        return found
    if found.symptom and found.symptom not in FORMS and len(expected) == len(actual):
        pairs = zip(names, expected, actual, strict=True)
        each = (oracle.compare([want], [got], (name,), *grant) for name, want, got in pairs)
        found = next((x for x in each if x.symptom in FORMS), found)
    return oracle.of_form(found)


def wrong_form(manifest: Manifest, expected: list[Value], actual: list[Value]) -> str:
    """Return how an output is of another form than is expected, wherever it stands, else nothing."""
    if len(expected) != len(actual):
        return "count"
    for want, got in zip(expected, actual, strict=True):
        symptom = oracle.compare([want], [got], ("",), manifest.rtol, manifest.atol).symptom
        if symptom in FORMS:
            return symptom
    return ""


class Runs(msgspec.Struct, frozen=True):
    """What a random program drew beside its first outputs.

    Attributes:
        same: Outputs of further runs of one compiled model.
        anew: Those of the first run of another one, None where there is none.
    """

    same: tuple[list[Value], ...] = ()
    anew: list[Value] | None = None


NONE = Runs()


def runs(held: list[Value], count: int) -> Runs:
    """Return what a worker kept: the outputs of one run after the other, so many a run, that of a model compiled anew first."""
    if not count or len(held) % count:
        return Runs()
    found = [held[place : place + count] for place in range(0, len(held), count)]
    return Runs(tuple(found[1:]), found[0] if found else None)


def repeating(
    drawn: list[list[Value]],
    first: list[Value],
    again: tuple[list[Value], ...],
    inputs: Sequence[Value] = (),
    *,
    renewed: bool = False,
) -> Broken | None:
    """Return which output is the same from run to run of a compiled model, where the reference's runs differ; else None.

    It may be another now and then, as one is whose state is seeded by the clock's second. What is an input unchanged is told
    as that: nothing is drawn at all.

    Nothing is concluded where chance makes it so more often than CHANCE, by the share of the reference's runs that are like
    the one before (rule of succession).

    Args:
        drawn: Outputs of runs of the reference.
        first, again: Outputs of the compiler's runs.
        inputs: What the model was given.
        renewed: Whether they were others in the clock's next second.
    """
    for place, got in enumerate(first):
        if any(len(x) <= place for x in again):
            continue
        known = [x[place] for x in drawn if place < len(x)]
        pairs, told_pairs = len(known) - 1, sum(_apart(one, other) for one, other in pairwise(known))
        changes = _changes([got, *(x[place] for x in again)])
        differ = (told_pairs + 1) / (pairs + 2)
        if not told_pairs or changes > len(again) / SELDOM or _at_most(changes, len(again), differ) >= CHANCE:
            continue
        number = "" if got in known else _everywhere(got)  # a 0 that may be drawn is another in the next model
        same = UNCHANGED if any(x == got for x in inputs) else number or "the same"
        how = f"is {same} in every run of a compiled model"
        how += " within a second, and another in the next" if renewed else ""
        if changes:
            how = "hardly ever changes from run to run of a compiled model"
        answers = sum(all(_apart(x, y) for y in known[:n]) for n, x in enumerate(known))
        told = f"{len(known)} runs of the reference give {answers} different answers"
        return Broken(f"output {place} {how}; {told}", CONSTANT, place, renewed=renewed or changes > 0)
    return None


def refutes(shown: Outcome, target: Outcome) -> bool:
    """Whether numbers that are drawn as they may be speak against a failure: that nothing varies is refuted by runs that differ
    alone, for where other numbers are seldom drawn what is as constant may be drawn, too (`runs` of the screens)."""
    return target.details.get("drawn") != CONSTANT or shown.details.get("runs", 0) > 1


def _everywhere(value: Value) -> str:
    """Return the one number that all of several elements are, or a single 0: no draw; else nothing."""
    if not isinstance(value, Tensor) or value.dtype == "string" or "complex" in value.dtype:
        return ""
    given = np.unique(value.numbers().astype(np.float64))
    whole = given.size == 1 and (value.numbers().size > 1 or given[0] == 0)
    return f"{given[0]:g}{' everywhere' if value.numbers().size > 1 else ''}" if whole else ""


def _at_most(times: int, of: int, share: float) -> float:
    """Return how likely something of that share happens at most so many times: the binomial distribution function."""
    return sum(math.comb(of, x) * share**x * (1 - share) ** (of - x) for x in range(times + 1))


def _apart(one: Value, other: Value) -> bool:
    """Whether two values of the reference differ by more than rounding: where a random shift moves between equal numbers, what
    is interpolated is the same number but for its last bits.
    """
    if not isinstance(one, Tensor) or not isinstance(other, Tensor) or one == other:
        return bool(one != other)
    slack = ROUNDING.get(one.dtype)
    if slack is None or (one.dtype, one.shape) != (other.dtype, other.shape):
        return True
    first, second = (x.numbers().astype(np.float64) for x in (one, other))
    return not bool(np.allclose(first, second, rtol=slack, atol=0.0, equal_nan=True))


def _changes(values: Sequence[Value]) -> int:
    """Return how many of them differ from the one before."""
    return sum(one != other for one, other in pairwise(values))


def unvarying(inputs: list[Value], expected: list[Value], again: list[Value], actual: list[Value]) -> Broken | None:
    """Return which output of a random program does not vary where the reference's does; None where none.

    It is asked where a compiler's repetitions did not differ. An output that is one value all over, or an input unchanged, is
    no randomness; nor is one that stays the same from run to run where two runs of the reference (`expected`, `again`)
    differ. Neither is concluded where chance makes such an output more often than CHANCE, by the share of elements that the
    reference has alike.
    """
    for place, (want, other, got) in enumerate(zip(expected, again or expected, actual, strict=False)):
        if (
            not (isinstance(want, Tensor) and isinstance(got, Tensor))
            or want.shape != got.shape
            or "string" in got.dtype
        ):
            continue
        wanted, given = want.numbers(), got.numbers()
        if given.size < 2 or len(np.unique(wanted)) < 2:
            continue
        told = ""
        if len(np.unique(given)) == 1:
            told = f"all {given.size} elements are {given.flat[0]}"
        elif any(isinstance(x, Tensor) and x.shape == got.shape and x == got for x in inputs):
            told = f"all {given.size} elements are those of an input"
        if told and _unlikely(_alike(wanted, given), given.size, 1):
            return Broken(f"output {place} does not vary: {told}", CONSTANT, place)
        if isinstance(other, Tensor) and other.shape == want.shape and given.size >= ENOUGH:
            alike = _alike(wanted, other.numbers())
            if _unlikely(alike, given.size, REPETITIONS):
                told = f"in {given.size - alike} of {given.size} elements"
                told = f"output {place} is the same in every run; two runs of the reference differ {told}"
                return Broken(told, CONSTANT, place)
    return None


def suspicious(expected: list[Value], actual: list[Value]) -> bool:
    """Whether one run of the reference already is so unlike an answer that more of them should be asked for."""
    return any(beyond([[want]], [got]) or _single(want) for want, got in zip(expected, actual, strict=False))


def _single(value: Value) -> bool:
    """Whether a tensor has one number only: it tells nothing of how far numbers lie apart."""
    return isinstance(value, Tensor) and value.dtype != "string" and len(np.unique(value.numbers())) == 1


def beyond(drawn: list[list[Value]], actual: list[Value]) -> Broken | None:
    """Return which output of a random program holds what no run of the reference draws, None where none does.

    That is NaN or an infinity where the reference has none, or a number that is FAR from all others. `drawn` are the outputs of
    runs of the reference, of the form of `actual`; where they hold one number only, nothing is concluded from its size.
    """
    for place, got in enumerate(actual):
        runs = [x[place] for x in drawn if place < len(x)]
        like = [x for x in runs if isinstance(x, Tensor) and isinstance(got, Tensor) and x.shape == got.shape]
        if not isinstance(got, Tensor) or got.dtype == "string" or not like or "complex" in got.dtype:
            continue
        wanted, given = np.concatenate([_wide(x) for x in like]), _wide(got)
        if np.isfinite(wanted).all() and not np.isfinite(given).all():
            odd = "NaN" if np.isnan(given).any() else "infinities"
            told = f"output {place} holds {odd}; no run of the reference draws such a number"
            return Broken(told, RANGE, place, low=-sys.float_info.max, high=sys.float_info.max)
        wanted, given = wanted[np.isfinite(wanted)], given[np.isfinite(given)]
        if not wanted.size or not given.size:
            continue
        low, high = float(wanted.min()), float(wanted.max())
        with np.errstate(over="ignore"):
            outside = np.maximum(given - high, low - given)
        far = FAR_WHOLE if (wanted == np.round(wanted)).all() else FAR
        if high > low and outside.max() > far * (high - low):
            told = f"output {place} holds numbers far outside of what the reference draws"
            told = f"{told}; that is {low:g} to {high:g} in {len(like)} runs"
            return Broken(told, RANGE, place, low=low - far * (high - low), high=high + far * (high - low))
    return None


def _wide(tensor: Tensor) -> Array:
    return tensor.numbers().astype(np.float64).ravel()


def _alike(one: Array, other: Array) -> int:
    return int(((one == other) | ((one != one) & (other != other))).sum())


def _unlikely(alike: int, size: int, times: int) -> bool:
    """Whether `size` elements hardly are all alike, so many times, where `alike` of them were once (rule of succession)."""
    return ((alike + 1) / (size + 2)) ** (size * times) < CHANCE
