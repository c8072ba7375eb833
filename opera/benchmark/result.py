"""The whole benchmark: what every report of it shows, and how it is computed from subjects."""

from __future__ import annotations

import platform
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeAlias

import msgspec
import numpy as np

from opera import __version__
from opera.benchmark import score as scoring
from opera.benchmark import statistics
from opera.benchmark.score import Comparison, Metric, Score
from opera.benchmark.subjects import Subject
from opera.errors import UsageError

Array: TypeAlias = np.ndarray[Any, Any]

PACKAGES = ("numpy", "scipy", "datasketch", "coverage", "matplotlib")


class Facts(msgspec.Struct, frozen=True):
    """A subject in numbers: tests, equipped tests, granularity → faults, seconds that all tests take.

    Attributes:
        corpus: Instances that could have been run (0: as many as tests), `chosen_by` the strategy of the stored ranking.
    """

    name: str
    compiler: str
    tests: int
    equipped: int
    faults: dict[str, int]
    seconds: float
    corpus: int
    chosen_by: str


class Mean(msgspec.Struct, frozen=True):
    """The mean over all subjects; intervals draw compilers, their frontends, and faults."""

    granularity: str
    strategy: str
    metrics: dict[str, Metric]


class Difference(msgspec.Struct, frozen=True):
    """Mean of strategy − baseline over the subjects of a scope, paired by fault.

    Attributes:
        scope: `all`, or `held out` and `tuning` where a file tells them apart.
        interval: Bootstrap 95 % interval: compilers are drawn, then their frontends, then faults.
    """

    granularity: str
    scope: str
    subjects: tuple[str, ...]
    strategy: str
    baseline: str
    metric: str
    mean: float
    interval: tuple[float, float]


class Benchmark(msgspec.Struct, frozen=True):
    """The benchmark; `--format json` prints it.

    Attributes:
        versions: Of Python and of what takes part in ranking and measuring.
        labels: SHA-256 of the labels file.
        left_out: Subject → strategies that need what is not known of it.
    """

    opera_version: str
    generated: str
    versions: dict[str, str]
    environments: dict[str, str]
    labels: str
    seeds: int
    baseline: str
    strategies: list[str]
    granularities: list[str]
    subjects: list[Facts]
    left_out: dict[str, list[str]]
    scores: list[Score]
    means: list[Mean]
    differences: list[Difference]
    comparisons: list[Comparison]

    def find(self, subject: str, strategy: str, granularity: str) -> Score | None:
        """Return a score, None where the strategy was left out."""
        wanted = (subject, strategy, granularity)
        return next((x for x in self.scores if (x.subject, x.strategy, x.granularity) == wanted), None)

    def mean(self, strategy: str, granularity: str) -> Mean | None:
        """Return a mean, None where the strategy was left out of some subject."""
        return next((x for x in self.means if (x.strategy, x.granularity) == (strategy, granularity)), None)


class Settings(msgspec.Struct, frozen=True):
    """How to score: strategies (`strict`: they were asked for by name), seeds, workers, baseline, scope → subjects."""

    strategies: list[str]
    strict: bool
    seeds: int
    workers: int
    baseline: str = "opera"
    scopes: dict[str, list[str]] = {}


def run(subjects: Sequence[Subject], settings: Settings, *, labels: str, environments: dict[str, str]) -> Benchmark:
    """Score all strategies on all subjects. Raises UsageError where a strategy asked for has not what it needs."""
    chosen = {
        subject.name: scoring.usable(subject, settings.strategies, strict=settings.strict) for subject in subjects
    }
    pairs = [(at, name) for at, subject in enumerate(subjects) for name in chosen[subject.name]]
    scores: list[Score] = []
    found: dict[tuple[str, str, str], dict[str, Array]] = {}
    for (at, name), samples in zip(
        pairs, scoring.sample(subjects, pairs, settings.seeds, settings.workers), strict=True
    ):
        for granularity in subjects[at].faults:
            scores.append(scoring.score(subjects[at], name, samples, granularity))
            found[subjects[at].name, name, granularity] = scoring.contributions(subjects[at], samples, granularity)
    granularities = list(dict.fromkeys(name for subject in subjects for name in subject.faults))
    comparisons = [
        comparison
        for subject in subjects
        for granularity in subject.faults
        for comparison in scoring.compare(
            subject.name,
            granularity,
            {name: found[subject.name, name, granularity]["apfd"][1:].mean(axis=1) for name in chosen[subject.name]},
        )
    ]
    everywhere = [name for name in settings.strategies if all(name in chosen[subject.name] for subject in subjects)]
    return Benchmark(
        opera_version=__version__,
        generated=time.strftime("%Y-%m-%d %H:%M:%S %z"),
        versions={"python": platform.python_version(), **_versions()},
        environments=environments,
        labels=labels,
        seeds=settings.seeds,
        baseline=settings.baseline,
        strategies=settings.strategies,
        granularities=granularities,
        subjects=[_facts(subject) for subject in subjects],
        left_out={
            name: missing
            for name, used in chosen.items()
            if (missing := [x for x in settings.strategies if x not in used])
        },
        scores=scores,
        means=[_mean(subjects, found, name, granularity) for granularity in granularities for name in everywhere],
        differences=list(_differences(subjects, found, settings, everywhere, granularities)),
        comparisons=comparisons,
    )


def _facts(subject: Subject) -> Facts:
    faults = {name: len(found) for name, found in subject.faults.items()}
    return Facts(
        subject.name, subject.cluster, len(subject.rows), len(subject.equipped), faults, sum(subject.costs),
        subject.corpus, subject.chosen_by,
    )  # fmt: skip


def _mean(
    subjects: Sequence[Subject], found: dict[tuple[str, str, str], dict[str, Array]], strategy: str, granularity: str
) -> Mean:
    metrics = {}
    each = [found[subject.name, strategy, granularity] for subject in subjects]
    for name in [name for name in each[0] if all(name in x for x in each)]:
        means = np.mean([x[name].mean(axis=1) for x in each], axis=0)
        spread = float(means[1:].std(ddof=1)) if len(means) > 2 else 0.0
        bounds = statistics.clustered_interval(_clusters(subjects, [x[name][1:].mean(axis=0) for x in each]))
        metrics[name] = Metric(float(means[1:].mean()), spread, bounds, float(means[0]))
    return Mean(granularity, strategy, metrics)


def _differences(
    subjects: Sequence[Subject],
    found: dict[tuple[str, str, str], dict[str, Array]],
    settings: Settings,
    everywhere: list[str],
    granularities: list[str],
) -> Iterable[Difference]:
    if settings.baseline not in everywhere:
        return
    scopes = settings.scopes or {"all": [subject.name for subject in subjects]}
    for scope, names in scopes.items():
        members = [subject for subject in subjects if subject.name in names]
        for granularity in granularities if members else ():
            for strategy in (name for name in everywhere if name != settings.baseline):
                for metric in ("apfd", "apfdc"):
                    mine = [found[x.name, strategy, granularity].get(metric) for x in members]
                    theirs = [found[x.name, settings.baseline, granularity].get(metric) for x in members]
                    if any(x is None for x in mine):
                        continue
                    paired = [
                        (a - b)[1:].mean(axis=0)
                        for a, b in zip(mine, theirs, strict=True)
                        if a is not None and b is not None
                    ]
                    yield Difference(
                        granularity, scope, tuple(x.name for x in members), strategy, settings.baseline, metric,
                        float(np.mean([x.mean() for x in paired])),
                        statistics.clustered_interval(_clusters(members, paired)),
                    )  # fmt: skip


def _clusters(subjects: Sequence[Subject], values: Sequence[Array]) -> dict[str, list[Array]]:
    clusters: dict[str, list[Array]] = defaultdict(list)
    for subject, mine in zip(subjects, values, strict=True):
        clusters[subject.cluster].append(mine)
    return clusters


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def check_baseline(settings: Settings) -> None:
    """Raise UsageError where the baseline is not among the strategies that are scored."""
    if settings.baseline not in settings.strategies:
        raise UsageError(
            f"the baseline {settings.baseline} is not scored",
            fix=f"add --strategy {settings.baseline}, or name another --baseline",
        )
