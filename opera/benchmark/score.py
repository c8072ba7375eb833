"""Scoring: rank every subject by every strategy, with ties in corpus order and in seeded orders, and measure."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import combinations
from typing import Any, TypeAlias

import msgspec
import numpy as np

from opera.benchmark import statistics
from opera.benchmark.subjects import Subject
from opera.errors import UsageError
from opera.prioritize import EQUIPPED, needs, rank, require

Array: TypeAlias = np.ndarray[Any, Any]

CURVE_POINTS = 120
"""A curve is sampled at this many places."""


class Metric(msgspec.Struct, frozen=True):
    """One metric of one strategy.

    Attributes:
        mean, sd: Over the tie-breaking seeds (sd is 0 for one seed).
        interval: Bootstrap 95 % interval of the mean, over the faults.
        corpus_order: With ties broken by corpus order; for strategies that draw it is their default seed.
    """

    mean: float
    sd: float
    interval: tuple[float, float]
    corpus_order: float


class FaultRank(msgspec.Struct, frozen=True):
    """The rank (from 1) of the first test that reveals a fault: mean, least and largest over seeds, in corpus order."""

    mean: float
    least: int
    largest: int
    corpus_order: int


class Score(msgspec.Struct, frozen=True):
    """A strategy on a subject, at one granularity.

    Attributes:
        ranks: Fault → its rank.
        seconds: CPU seconds of one ranking, the collection of what it needs included.
        tests_curve: [tests run, mean faults found], at equal steps.
        seconds_curve: [seconds, mean faults found]: ranking, collection, and seconds inside the compiler.
    """

    subject: str
    strategy: str
    granularity: str
    metrics: dict[str, Metric]
    ranks: dict[str, FaultRank]
    seconds: float
    tests_curve: list[tuple[float, float]]
    seconds_curve: list[tuple[float, float]]


class Comparison(msgspec.Struct, frozen=True):
    """APFD of two strategies on one subject over the seeds, as FuzzBench compares trials.

    Attributes:
        a12: Probability that the first has the larger one.
        p: Of the two-sided Mann-Whitney U test.
    """

    subject: str
    granularity: str
    first: str
    second: str
    a12: float
    p: float


class Samples(msgspec.Struct, frozen=True):
    """What scoring a strategy on a subject gives, before anything is averaged.

    Attributes:
        ranks: granularity → rank of each fault, int64 (1 + seeds, faults); row 0 is corpus order.
        spent: granularity → seconds inside the compiler until the revealing test has ended, float64 (1 + seeds, faults).
        halves: granularity → the same less half of the revealing test's own, for APFDc.
        seconds: CPU seconds of each ranking, (1 + seeds,).
    """

    ranks: dict[str, Array]
    spent: dict[str, Array]
    halves: dict[str, Array]
    seconds: Array


def usable(subject: Subject, strategies: Iterable[str], *, strict: bool) -> list[str]:
    """Return the strategies for which the subject has what they need; where `strict`, raise UsageError for others."""
    found = []
    for name in strategies:
        try:
            require(name, subject.equipped, subject.source)
        except UsageError:
            if strict:
                raise
            continue
        found.append(name)
    return found


def sample(
    subjects: Sequence[Subject], pairs: Sequence[tuple[int, str]], seeds: int, workers: int
) -> Iterator[Samples]:
    """Yield the samples of (number of the subject, strategy), in that order; subjects that rank alike are ranked once."""
    global _subjects
    keys = [
        (subjects[at].same or str(at), name) if needs(name) in ("", EQUIPPED) else (str(at), name) for at, name in pairs
    ]
    distinct = list(dict.fromkeys(keys))
    alike = [[at for (at, _), other in zip(pairs, keys, strict=True) if other == key] for key in distinct]
    _subjects = subjects
    found: dict[tuple[int, str], Samples] = {}
    if workers == 1:
        for together, key in zip(alike, distinct, strict=True):
            found.update({(at, key[1]): x for at, x in zip(together, _sample(together, key[1], seeds), strict=True)})
        yield from (found[pair] for pair in pairs)
        return
    with ProcessPoolExecutor(workers, multiprocessing.get_context("fork")) as pool:
        jobs = [pool.submit(_sample, together, key[1], seeds) for together, key in zip(alike, distinct, strict=True)]
        for job, together, key in zip(jobs, alike, distinct, strict=True):
            found.update({(at, key[1]): samples for at, samples in zip(together, job.result(), strict=True)})
    yield from (found[pair] for pair in pairs)


_subjects: Sequence[Subject] = ()
"""Workers are forked with it: a corpus is read once, and sent to nobody."""


def _sample(together: list[int], strategy: str, seeds: int) -> list[Samples]:
    subjects = [_subjects[at] for at in together]
    first = subjects[0]
    orders, seconds = [], []
    for seed in (None, *range(seeds)):
        started = time.process_time()
        orders.append(
            np.array(rank(strategy, first.rows, first.equipped, first.defaults, seed, first.source), np.int64)
        )
        seconds.append(time.process_time() - started)
    return [measure(subject, orders, np.array(seconds)) for subject in subjects]


def measure(subject: Subject, orders: Sequence[Array], seconds: Array) -> Samples:
    """Measure rankings (positions, best first) of a subject."""
    ranks: dict[str, list[Array]] = {name: [] for name in subject.faults}
    spent: dict[str, list[Array]] = {name: [] for name in subject.faults}
    halves: dict[str, list[Array]] = {name: [] for name in subject.faults}
    costs = np.array(subject.costs) if subject.costs else np.zeros(len(subject.rows))
    for order in orders:
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        ends = np.cumsum(costs[order])
        for name, faults in subject.faults.items():
            first = np.array([place[tests].min() for tests in faults.values()], np.int64)
            ranks[name].append(first + 1)
            spent[name].append(ends[first])
            halves[name].append(ends[first] - costs[order[first]] / 2)
    return Samples(_stacked(ranks), _stacked(spent), _stacked(halves), seconds)


def _stacked(found: dict[str, list[Array]]) -> dict[str, Array]:
    return {name: np.stack(each) for name, each in found.items()}


def contributions(subject: Subject, samples: Samples, granularity: str) -> dict[str, Array]:
    """Return metric → contributions of faults, float64 (1 + seeds, faults)."""
    total = sum(subject.costs)
    costs = samples.halves[granularity] / total if total else None
    return statistics.contributions(samples.ranks[granularity], len(subject.rows), costs)


def metric(contributed: Array) -> Metric:
    """Return the figures of a metric of which each fault contributes this much, float64 (1 + seeds, faults)."""
    means = contributed.mean(axis=1)
    spread = float(means[1:].std(ddof=1)) if len(means) > 2 else 0.0
    bounds = statistics.interval(contributed[1:].mean(axis=0))
    return Metric(float(means[1:].mean()), spread, bounds, float(means[0]))


def score(subject: Subject, strategy: str, samples: Samples, granularity: str) -> Score:
    """Return all that is reported of a strategy on a subject."""
    ranks = samples.ranks[granularity]
    told = {
        fault: FaultRank(float(mine[1:].mean()), int(mine[1:].min()), int(mine[1:].max()), int(mine[0]))
        for fault, mine in zip(subject.faults[granularity], ranks.T, strict=True)
    }
    before = float(samples.seconds.mean()) + subject.preparation.get(needs(strategy), 0.0)
    return Score(
        subject.name,
        strategy,
        granularity,
        {name: metric(x) for name, x in contributions(subject, samples, granularity).items()},
        told,
        before,
        _curve(ranks[1:], 0.0, len(subject.rows)),
        _curve(samples.spent[granularity][1:] + before, before, before + sum(subject.costs)) if subject.costs else [],
    )


def _curve(found: Array, start: float, end: float) -> list[tuple[float, float]]:
    """Return (place, mean number of faults found until then) at equal steps."""
    places = np.linspace(start, end, CURVE_POINTS)
    counts = np.searchsorted(np.sort(found, axis=None), places, side="right") / len(found)
    return list(zip(places.tolist(), counts.tolist(), strict=True))


def compare(subject: str, granularity: str, figures: dict[str, Array]) -> list[Comparison]:
    """Compare all pairs of strategies by their APFD over the seeds, strategy → float64 (seeds,)."""
    return [
        Comparison(
            subject, granularity, first, second, *statistics.mann_whitney(figures[first], figures[second])
        )
        for first, second in combinations(figures, 2)
    ]  # fmt: skip
