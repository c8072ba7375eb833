"""What is said of numbers that differ from a law holds of others that are drawn so, and not of right ones."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opera.oracle import laws, quantities


def shown(found, numbers):
    """Whether numbers are as wrong as was told, as a script looks at them."""
    if found.how in ("mean", "std"):
        return abs(getattr(numbers, found.how)() - found.wanted) > found.slack
    seen = {"==": numbers == found.at, "<=": numbers <= found.at, "<": numbers < found.at, ">": numbers > found.at}
    return abs(seen[found.how].mean() - found.wanted) > found.slack


def told(law, given, numbers, few=None):
    each = {name: np.array(float(x)) for name, x in given.items()}
    at, *_ = quantities.farthest(law, each, numbers)
    return quantities.difference(law, each, numbers, few, at)


@given(st.floats(-3, 3), st.floats(0.1, 4), st.integers(0, 2**32))
def test_what_is_told_of_a_normal_distribution_is_seen_again(mean, std, seed):
    generator = np.random.default_rng(seed)
    if abs(mean) < 0.5 and 0.7 < std < 1.5:
        mean += 1.0
    found = told(laws.LAWS["normal"], {"mean": 0, "std": 1}, generator.normal(mean, std, 1000))
    assert shown(found, generator.normal(mean, std, max(1000, found.needs)))
    assert not shown(found, generator.normal(0, 1, found.needs)), found


@given(st.lists(st.floats(0.05, 1), min_size=2, max_size=9), st.integers(0, 2**32))
def test_the_value_is_named_that_comes_too_often_or_too_seldom(weights, seed):
    generator, count = np.random.default_rng(seed), len(weights)
    shares = np.array(weights) / sum(weights)
    if abs(shares - 1 / count).max() < 0.15:
        shares = np.eye(count)[0]
    law = laws.LAWS["integers"]
    drawn = generator.choice(count, 2000, p=shares).astype(float)
    found = told(law, {"low": 0, "high": count}, drawn, np.arange(count - 1))
    assert found.how == "==" and math.isclose(found.wanted, 1 / count)
    assert shown(found, generator.choice(count, max(2000, found.needs), p=shares).astype(float))
    assert not shown(found, generator.integers(0, count, found.needs).astype(float)), found


@pytest.mark.parametrize(
    ("law", "given", "draw", "says"),
    [
        ("uniform", {"low": 0, "high": 1}, lambda g: g.random(900) / 2, "is never above 0.51, as 49 % of the numbers"),
        ("uniform", {"low": -1, "high": 1}, lambda g: g.uniform(-0.5, 0.5, 900), "within -0.51 and 0.52, as only 52 %"),
        ("uniform", {"low": 0, "high": 1}, lambda g: g.random(900) ** 0.7, "has a mean of about 0.58, not 0.5"),
        ("cauchy", {"median": 0, "scale": 1}, lambda g: 2 * g.standard_cauchy(900), "% of the numbers, not in"),
        ("geometric", {"p": 0.2}, lambda g: g.geometric(0.2, 900) + 1.0, "is never below 2, as 20 % of the numbers should be"),
        ("log-normal", {"mean": 1, "std": 2}, lambda g: np.exp(1 + 2 * abs(g.normal(0, 1, 900))), "never below 2.6, as 49 %"),
    ],
)  # fmt: skip
def test_a_difference_is_told_in_quantities_that_a_reader_knows(law, given, draw, says):
    found = told(laws.LAWS[law], given, draw(np.random.default_rng(3)))
    assert says in found.says and shown(found, draw(np.random.default_rng(4)))


@pytest.mark.parametrize("name", laws.LAWS)
def test_a_law_says_its_parameters_and_its_moments_are_those_of_its_shares(name):
    """The mean and the square are integrals of shares: of F(x), by parts."""
    law = laws.LAWS[name]
    each = {x: np.array(v) for x, v in {"low": -2.0, "high": 3.0, "mean": 1.0, "std": 0.5, "rate": 2.0, "p": 0.25,
                                         "median": 0.0, "scale": 1.0}.items() if x in law.parameters}  # fmt: skip
    assert all(f"{float(x):g}" in law.words.format(**each) for x in each.values())
    if law.moments is None:
        return
    step = 1.0 if law.whole else 1e-3
    x = np.arange(-60.0, 60.0, step)
    share = np.diff(law.share(np.append(x, 60.0), {name: np.broadcast_to(v, x.size + 1) for name, v in each.items()}))
    middle = x + (1.0 if law.whole else step / 2)
    mean = float((share * middle).sum())
    std = math.sqrt((share * (middle - mean) ** 2).sum())
    assert np.allclose([float(v) for v in law.moments(each)], [mean, std], rtol=1e-3)


@given(st.floats(1e-6, 1e6))
def test_a_bound_of_two_digits_is_no_narrower(number):
    for sign in (1, -1):
        low, high = (quantities._rounded(sign * number, x) for x in (math.floor, math.ceil))
        assert low <= sign * number * (1 + sign * 1e-9) and high >= sign * number * (1 - sign * 1e-9)
        assert high - low <= 0.11 * number
