"""Contributions of faults to metrics, bootstrap intervals, and pairwise tests.

Every metric here is a mean over faults of what each contributes, so resampling faults is resampling contributions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from opera.prioritize.metrics import SHARES, rauc

Array: TypeAlias = np.ndarray[Any, Any]

RESAMPLES = 5000
LEVEL = 0.95


def contributions(ranks: Array, tests: int, costs: Array | None = None) -> dict[str, Array]:
    """Return metric → contributions, shaped as `ranks`; their mean over the faults is the metric (opera.prioritize.metrics).

    Args:
        ranks: Rank (from 1) of the first test that reveals each fault, (..., faults).
        tests: n.
        costs: For APFDc: fraction of the total cost that is spent, half of the revealing test's own included, when each
            fault is revealed; shaped as `ranks`.
    """
    faults = ranks.shape[-1]
    found: dict[str, Array] = {"apfd": 1 - ranks / tests + 1 / (2 * tests)}
    if costs is not None:
        found["apfdc"] = 1 - costs
    for name, percent in SHARES.items():
        samples = int(tests * percent / 100)
        area = np.maximum(samples - ranks - 0.5, 0.0)
        alone = max(samples - 1.5, 0.0)  # the area of one fault that is found first
        ideal = alone * faults / rauc([1] * faults, tests, percent) if alone else 1.0
        found[name] = area * faults / ideal
    return found


def interval(values: Array, seed: int = 0) -> tuple[float, float]:
    """Return the percentile bootstrap interval of the mean of contributions, (faults,) (Efron and Tibshirani 1993)."""
    draw = np.random.Generator(np.random.PCG64(seed))
    means = values[draw.integers(0, len(values), (RESAMPLES, len(values)))].mean(axis=1)
    return _percentiles(means)


def clustered_interval(values: Mapping[str, Sequence[Array]], seed: int = 0) -> tuple[float, float]:
    """Return the interval of the mean over frontends of their means, with what is dependent drawn together.

    Clusters (compilers) are drawn with replacement, then as many frontends of each as it has, then their faults.

    Args:
        values: Cluster → for each of its frontends the contributions, (faults,).
    """
    draw = np.random.Generator(np.random.PCG64(seed))
    clusters = list(values.values())
    sums, counts = np.zeros(RESAMPLES), np.zeros(RESAMPLES)
    for _ in clusters:
        drawn = draw.integers(0, len(clusters), RESAMPLES)
        for number, frontends in enumerate(clusters):
            mine = np.flatnonzero(drawn == number)
            for _ in frontends:
                which = draw.integers(0, len(frontends), len(mine))
                for at, faults in enumerate(frontends):
                    here = mine[which == at]
                    sums[here] += faults[draw.integers(0, len(faults), (len(here), len(faults)))].mean(axis=1)
            counts[mine] += len(frontends)
    return _percentiles(sums / counts)


def mann_whitney(first: Array, second: Array) -> tuple[float, float]:
    """Return (A12, p) of two samples.

    A12 is the probability that a draw of `first` is larger than one of `second`, ties counted half: the U of Mann and
    Whitney over the number of pairs. p is that of the two-sided test, 1 where all values are equal.

    Source: Vargha and Delaney, "A Critique and Improvement of the CL Common Language Effect Size Statistics", 2000.
    """
    from scipy.stats import mannwhitneyu

    if np.ptp(np.concatenate([first, second])) == 0:
        return 0.5, 1.0
    found = mannwhitneyu(first, second, alternative="two-sided")
    return float(found.statistic / (len(first) * len(second))), float(found.pvalue)


def _percentiles(means: Array) -> tuple[float, float]:
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)
