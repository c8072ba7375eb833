"""What distributions say of numbers drawn from them: which may be, how many are at most so large, their mean and deviation.

Parameters are numbers, or arrays that an output's shape can be made of by repetition; so each element may have its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]
Given: TypeAlias = Mapping[str, Array]


class Law(NamedTuple):
    """A distribution.

    Attributes:
        parameters: Their names.
        whole: Whether it draws whole numbers alone.
        least, most: Parameters → the smallest and the largest number that may be drawn, both within.
        share: Number and parameters → the share of draws that are at most this number.
        words: What it is called, with its parameters in braces.
        moments: Parameters → mean and standard deviation; None where a few draws do not come near them.
    """

    parameters: tuple[str, ...]
    whole: bool
    least: Callable[[Given], Array]
    most: Callable[[Given], Array]
    share: Callable[[Array, Given], Array]
    words: str
    moments: Callable[[Given], tuple[Array, Array]] | None = None


def _none(given: Given) -> Array:
    return np.array(-np.inf)


def _endless(given: Given) -> Array:
    return np.array(np.inf)


def _nothing(given: Given) -> Array:
    return np.array(0.0)


def _uniform(x: Array, given: Given) -> Array:
    low, high = given["low"], given["high"]
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = (x - low) / (high - low)
    return np.asarray(np.where(high > low, np.clip(inside, 0.0, 1.0), (x >= low) * 1.0))


def _normal(x: Array, given: Given) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled = (x - given["mean"]) / given["std"]
    spread = 0.5 * (1.0 + _erf(scaled / math.sqrt(2.0)))
    return np.asarray(np.where(given["std"] > 0, spread, (x >= given["mean"]) * 1.0))


def _erf(x: Array) -> Array:
    return np.asarray(np.vectorize(math.erf, otypes=[float])(np.nan_to_num(x, nan=0.0)))


def _log_normal(x: Array, given: Given) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(x > 0, _normal(np.log(np.maximum(x, 1e-300)), given), 0.0))


def _exponential(x: Array, given: Given) -> Array:
    return np.asarray(1.0 - np.exp(-given["rate"] * np.maximum(x, 0.0)))


def _cauchy(x: Array, given: Given) -> Array:
    return np.asarray(0.5 + np.arctan((x - given["median"]) / given["scale"]) / np.pi)


def _geometric(x: Array, given: Given) -> Array:
    return np.asarray(1.0 - (1.0 - given["p"]) ** np.maximum(np.floor(x), 0.0))


def _bernoulli(x: Array, given: Given) -> Array:
    return np.where(x < 0, 0.0, np.where(x < 1, 1.0 - given["p"], 1.0))


def _integers(x: Array, given: Given) -> Array:
    low, high = given["low"], given["high"]
    return np.asarray(np.clip((np.floor(x) - low + 1.0) / (high - low), 0.0, 1.0))


LAWS = {
    "uniform": Law(
        ("low", "high"), False, lambda x: x["low"], lambda x: x["high"], _uniform,
        "a uniform distribution from {low:g} to {high:g}",
        lambda x: ((x["low"] + x["high"]) / 2, (x["high"] - x["low"]) / math.sqrt(12)),
    ),
    "normal": Law(
        ("mean", "std"), False, _none, _endless, _normal,
        "a normal distribution of mean {mean:g} and standard deviation {std:g}",
        lambda x: (x["mean"], x["std"]),
    ),
    "log-normal": Law(
        ("mean", "std"), False, _nothing, _endless, _log_normal,
        "a log-normal distribution, the logarithm of mean {mean:g} and standard deviation {std:g}",
    ),
    "exponential": Law(
        ("rate",), False, _nothing, _endless, _exponential,
        "an exponential distribution of rate {rate:g}",
        lambda x: (1 / x["rate"], 1 / x["rate"]),
    ),
    "cauchy": Law(
        ("median", "scale"), False, _none, _endless, _cauchy,
        "a Cauchy distribution of median {median:g} and scale {scale:g}",
    ),
    "geometric": Law(
        ("p",), True, lambda x: np.array(1.0), _endless, _geometric,
        "a geometric distribution of probability {p:g}",
        lambda x: (1 / x["p"], np.sqrt(1 - x["p"]) / x["p"]),
    ),
    "bernoulli": Law(("p",), True, _nothing, lambda x: np.array(1.0), _bernoulli, "1 with probability {p:g}, else 0"),
    "integers": Law(
        ("low", "high"), True, lambda x: x["low"], lambda x: x["high"] - 1.0, _integers,
        "whole numbers from {low:g} to below {high:g}, all as often",
        lambda x: ((x["low"] + x["high"] - 1) / 2, np.sqrt(((x["high"] - x["low"]) ** 2 - 1) / 12)),
    ),
}  # fmt: skip
"""Name, as instrumentation/<library>.toml has it → distribution: `uniform` from low to high, `integers` from low to below high,
`geometric` the number of trials up to the first success, `exponential` of a rate, `bernoulli` 1 in a share p, else 0."""


def categorical(weights: Array) -> Law:
    """Return the distribution of indices of weights, of which each row may have its own: rows stand before the last axis."""
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.cumsum(weights, -1) / weights.sum(-1, keepdims=True)
    count = weights.shape[-1]

    def share(x: Array, given: Given) -> Array:
        place = np.clip(np.floor(x), -1, count - 1).astype(np.int64)
        rows = np.broadcast_to(given["row"], x.shape).astype(np.int64)
        return np.where(place < 0, 0.0, shares.reshape(-1, count)[rows, np.maximum(place, 0)])

    return Law(("row",), True, _nothing, lambda x: np.array(count - 1.0), share, "indices drawn by their weights")
