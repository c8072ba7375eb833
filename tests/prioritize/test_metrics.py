from __future__ import annotations

import json
from pathlib import Path

import pytest

from opera.errors import UsageError
from opera.prioritize.metrics import SHARES, all_metrics, apfd, first_ranks, rauc


def test_every_published_figure(shared_data: Path) -> None:
    ranks = json.loads((shared_data / "published_ranks.json").read_text())
    published = json.loads((shared_data / "published_apfd.json").read_text())
    checked = 0
    for subject, strategies in published.items():
        for strategy, figures in strategies.items():
            found = all_metrics(ranks[subject][strategy], ranks[subject]["n_tests"])
            assert len(ranks[subject][strategy]) == figures["m"]
            assert {name: round(x, 4) for name, x in found.items()} == {name: figures[name] for name in found}
            checked += len(found)
    assert checked == 8 * 5 * (1 + len(SHARES))


def test_apfd_by_hand() -> None:
    assert apfd([1], 2) == pytest.approx(0.75)
    assert apfd([1, 4], 4) == pytest.approx(1 - 5 / 8 + 1 / 8)


def test_rauc_by_hand() -> None:
    # Samples 0..3: the technique has found 0, 0, 1, 1 bugs (trapezoid 1.5); the ideal order 1, 2, 2, 2 (5.5).
    assert rauc([2, 4], 4, 100) == pytest.approx(1.5 / 5.5)
    assert rauc([3], 4, 50) == 0.0, "found after the first half"
    assert rauc([1], 4, 25) == 0.0, "one sample has no area"


def test_fewer_tests_than_bugs_within_the_share() -> None:
    # Samples 0 and 1 of 8 tests: ideal 1, 2 although there are 4 bugs; the technique 0, 1.
    assert rauc([1, 2, 3, 4], 8, 25) == pytest.approx(0.5 / 1.5)


def test_first_ranks_takes_the_earliest_test_of_each_bug() -> None:
    assert first_ranks([2, 0, 1], {"a": [0, 1], "b": [1]}) == [2, 3]


@pytest.mark.parametrize("ranks", [[], [0], [5]])
def test_impossible_ranks_are_refused(ranks: list[int]) -> None:
    with pytest.raises(UsageError):
        apfd(ranks, 4)
