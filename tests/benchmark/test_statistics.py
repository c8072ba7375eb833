from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opera.benchmark.score import contributions as contributed
from opera.benchmark.score import measure
from opera.benchmark.statistics import clustered_interval, contributions, interval, mann_whitney
from opera.benchmark.subjects import Subject
from opera.prioritize.metrics import all_metrics, apfdc, first_ranks
from opera.prioritize.subspaces import Row


@pytest.mark.parametrize(("tests", "faults"), [(40, 5), (1000, 30), (8, 4), (3, 2)])
def test_contributions_average_to_the_metrics(tests: int, faults: int) -> None:
    ranks = sorted(random.Random(tests).sample(range(1, tests + 1), min(faults, tests)))
    found = {name: x.mean() for name, x in contributions(np.array(ranks), tests).items()}
    assert found == pytest.approx(all_metrics(ranks, tests))


def test_apfdc_of_equal_costs_is_apfd_and_dear_tests_weigh_more() -> None:
    bugs = {"a": [1], "b": [3, 0]}
    assert apfdc([2, 1, 0, 3], bugs, [2.0] * 4) == pytest.approx(
        all_metrics(first_ranks([2, 1, 0, 3], bugs), 4)["apfd"]
    )
    assert apfdc([0, 1], {"b": [1]}, [3.0, 1.0]) == pytest.approx(0.5 / 4)
    assert apfdc([1, 0], {"b": [1]}, [3.0, 1.0]) == pytest.approx(3.5 / 4)


def test_scoring_measures_apfdc_as_defined() -> None:
    costs, bugs = [1.0, 5.0, 0.5, 2.0], {"a": [1], "b": [3, 0]}
    subject = Subject("s", "s", [Row("A", {})] * 4, [], {}, {"signature": bugs}, costs)
    orders = [[2, 1, 0, 3], [3, 2, 1, 0]]
    samples = measure(subject, [np.array(x) for x in orders], np.zeros(2))
    means = contributed(subject, samples, "signature")["apfdc"].mean(axis=1)
    assert means == pytest.approx([apfdc(order, bugs, costs) for order in orders])
    assert samples.spent["signature"].tolist() == [[5.5, 6.5], [7.5, 2.0]]


def test_intervals_hold_the_mean_and_shrink_with_more_faults() -> None:
    draw = np.random.Generator(np.random.PCG64(1))
    few, many = draw.random(10), draw.random(400)
    assert interval(few)[0] < few.mean() < interval(few)[1]
    assert np.diff(interval(many))[0] < np.diff(interval(few))[0]
    assert interval(few) == interval(few)


def test_frontends_of_one_compiler_do_not_count_as_independent() -> None:
    def faults(mean: float) -> np.ndarray:
        return np.full(50, mean)

    high, low = [faults(0.2)] * 5, [faults(-0.1)]
    together = clustered_interval({"one": high, "other": low})
    apart = clustered_interval({str(number): [x] for number, x in enumerate(high + low)})
    assert together[0] == pytest.approx(-0.1), "one time in four only the other compiler is drawn"
    assert together[0] < apart[0]
    assert clustered_interval({"one": [faults(0.3)]}) == pytest.approx((0.3, 0.3))


def test_pairs_are_compared_by_rank() -> None:
    low, high = np.arange(10.0), np.arange(10.0) + 20
    assert [mann_whitney(*pair)[0] for pair in ((high, low), (low, high), (low, low))] == [1.0, 0.0, 0.5]
    assert mann_whitney(low, high)[1] < 0.001
    assert mann_whitney(np.ones(5), np.ones(5)) == (0.5, 1.0)


SAMPLES = st.lists(st.integers(0, 5), min_size=1, max_size=12)


@given(SAMPLES, SAMPLES)
def test_a12_is_what_vargha_and_delaney_define(first: list[int], second: list[int]) -> None:
    larger = sum(one > other for one in first for other in second)
    equal = sum(one == other for one in first for other in second)
    found, _ = mann_whitney(np.array(first, float), np.array(second, float))
    assert found == (larger + equal / 2) / (len(first) * len(second))
