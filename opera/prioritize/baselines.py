"""Random and round-robin orders, and what all strategies share about order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opera.prioritize.subspaces import Defaults, Row


def tie_order(count: int, seed: int | None) -> np.ndarray[Any, Any]:
    """Return the rank of each position among ties, int64 (count,): corpus order, or a permutation drawn with `seed`."""
    return np.arange(count) if seed is None else np.random.Generator(np.random.PCG64(seed)).permutation(count)


def with_rest(chosen: np.ndarray[Any, Any], count: int) -> list[int]:
    """Return `chosen` (positions, best first) and after it all other positions in corpus order."""
    rest = np.ones(count, bool)
    rest[chosen] = False
    ranked: list[int] = np.concatenate([chosen, np.flatnonzero(rest)]).tolist()
    return ranked


def with_turns(chosen: np.ndarray[Any, Any], operators: np.ndarray[Any, Any], order: np.ndarray[Any, Any]) -> list[int]:
    """Return `chosen` (positions, best first) and after it the others, one of each operator in turn, in tie order."""
    rest = np.ones(len(operators), bool)
    rest[chosen] = False
    left = np.flatnonzero(rest)
    left = left[np.argsort(order[left])]
    ranked: list[int] = np.concatenate([chosen, left[np.argsort(turns(operators[left]), kind="stable")]]).tolist()
    return ranked


class Random:
    """Any order, drawn with the seed (0 where none is given)."""

    NAME = "random"

    def rank(self, rows: Iterable[Row], equipped: Iterable[Row], defaults: Defaults, seed: int | None) -> list[int]:
        """Return a permutation of the positions of `rows`."""
        ranked: list[int] = np.argsort(tie_order(sum(1 for _ in rows), seed or 0)).tolist()
        return ranked


class RoundRobin:
    """One test of each operator in turn: operators by their first test, an operator's tests by tie order."""

    NAME = "round-robin"

    def rank(self, rows: Iterable[Row], equipped: Iterable[Row], defaults: Defaults, seed: int | None) -> list[int]:
        """Return a permutation of the positions of `rows`."""
        numbers: dict[str, int] = {}
        operators = np.array([numbers.setdefault(row.operator, len(numbers)) for row in rows], np.int64)
        order = np.argsort(tie_order(len(operators), seed))
        ranked: list[int] = order[np.argsort(turns(operators[order]), kind="stable")].tolist()
        return ranked


def turns(operators: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return for each entry how many equal ones stand before it, int64 (entries,)."""
    by_operator = np.argsort(operators, kind="stable")
    ordered = operators[by_operator]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])) if len(ordered) else ordered
    counts = np.diff(np.append(starts, len(ordered)))
    turn = np.empty(len(operators), np.int64)
    turn[by_operator] = np.arange(len(ordered)) - np.repeat(starts, counts)
    return turn


RANDOM = Random()
ROUND_ROBIN = RoundRobin()
