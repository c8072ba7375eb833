"""How early a ranking finds bugs: APFD, and RAUC-k as the OPERA artifact computes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from opera.errors import UsageError

SHARES = {"rauc25": 25, "rauc50": 50, "rauc75": 75, "rauc100": 100}
"""The RAUC-k of the paper's supplement: name → percentage of the tests."""


def first_ranks(ranking: Sequence[int], bugs: Mapping[str, Iterable[int]]) -> list[int]:
    """Return the rank (from 1) at which each bug is first revealed, ascending.

    Args:
        ranking: Positions of tests, best first.
        bugs: Bug → positions of the tests that reveal it, at least one.
    """
    rank = {position: place for place, position in enumerate(ranking, 1)}
    return sorted(min(rank[position] for position in tests) for tests in bugs.values())


def apfd(ranks: Sequence[int], tests: int) -> float:
    """Return the average percentage of faults detected, 1 − Σ r_i / (n·m) + 1 / (2n); in (0, 1), higher is better.

    Source: Rothermel et al., "Prioritizing test cases for regression testing", IEEE TSE 2001. Raises UsageError.

    Args:
        ranks: Rank (from 1) of the first test that reveals each of m bugs.
        tests: n, the number of tests ranked.
    """
    _check(ranks, tests)
    return 1 - sum(ranks) / (tests * len(ranks)) + 1 / (2 * tests)


def rauc(ranks: Sequence[int], tests: int, percent: float) -> float:
    """Return RAUC-k: the area under bugs over tests within the first k % of the tests, over that of the ideal order.

    Source: the supplement of OPERA (ICSE 2025); the areas are those of its published figures. With X = ⌊n·k/100⌋, both curves
    are sampled at x = 0 … X−1 and integrated by the trapezoidal rule. The technique's curve is the number of bugs with rank
    ≤ x; the ideal one, min(x + 1, m), has found its first bug at x = 0. So a bug of rank r < X counts X − r − ½, and the
    ideal area is mX − (m² + 1)/2 where m ≤ X; the best order scores a little less than 1. Where X < 2 there is no area, and the
    result is 0. Raises UsageError.

    Args:
        ranks: Rank (from 1) of the first test that reveals each of m bugs.
        tests: n, the number of tests ranked.
        percent: k.
    """
    _check(ranks, tests)
    samples, bugs = int(tests * percent / 100), len(ranks)
    if samples < 2:
        return 0.0
    area = sum(max(samples - rank - 0.5, 0) for rank in ranks)
    rising = min(samples, bugs)
    ideal = rising * (rising + 1) / 2 + bugs * (samples - rising) - (1 + rising) / 2
    return area / ideal


def apfdc(ranking: Sequence[int], bugs: Mapping[str, Iterable[int]], costs: Sequence[float]) -> float:
    """Return cost-cognizant APFD with faults of equal severity: mean of (Σ_{j ≥ r_i} t_j − t_{r_i} / 2) / Σ t_j.

    Source: Elbaum, Malishevsky, Rothermel, "Incorporating varying test costs and fault severities into test case
    prioritization", ICSE 2001. Raises UsageError.

    Args:
        ranking: Positions of tests, best first.
        bugs: Bug → positions of the tests that reveal it.
        costs: Seconds of each test, by position; at least one above 0.
    """
    ranks, ordered = first_ranks(ranking, bugs), [costs[position] for position in ranking]
    _check(ranks, len(ranking))
    if not sum(ordered) > 0:
        raise UsageError("tests that cost nothing cannot be weighed by their costs")
    parts = [sum(ordered[rank - 1 :]) - ordered[rank - 1] / 2 for rank in ranks]
    return sum(parts) / (len(parts) * sum(ordered))


def all_metrics(ranks: Sequence[int], tests: int) -> dict[str, float]:
    """Return APFD and every RAUC-k by name."""
    return {"apfd": apfd(ranks, tests)} | {name: rauc(ranks, tests, percent) for name, percent in SHARES.items()}


def _check(ranks: Sequence[int], tests: int) -> None:
    if not ranks:
        raise UsageError("there are no bugs, so no ranking can be measured")
    if min(ranks) < 1 or max(ranks) > tests:
        raise UsageError(f"ranks count from 1 to the number of tests ({tests}), not {min(ranks)} to {max(ranks)}")
