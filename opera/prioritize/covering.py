"""Strategies that look at the statements of the frontend under test that each test covers (`opera coverage`).

`total` ranks by their number, `additional` picks greedily what covers most that the picks since the last reset do not, and
resets where nothing is left to be covered. Source: Rothermel et al., "Prioritizing test cases for regression testing", IEEE
TSE 2001. A test without coverage is ranked last.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from opera.prioritize.baselines import tie_order
from opera.prioritize.subspaces import Defaults, Row

Array: TypeAlias = np.ndarray[Any, Any]


def _read(rows: Iterable[Row]) -> None:
    """Read rows to their end, as whoever hands them to a strategy expects."""
    deque(rows, maxlen=0)


class Total:
    """Most covered statements first."""

    NAME = "total"
    NEEDS = "coverage"

    def rank(
        self, rows: Iterable[Row], equipped: Iterable[Row], defaults: Defaults, seed: int | None, known: Sequence[Array]
    ) -> list[int]:
        """Return the positions of `rows` best first; `known` are the statements of each, numbers without repeats."""
        _read(rows)
        sizes = np.array([len(statements) for statements in known], np.int64)
        ranked: list[int] = np.lexsort((tie_order(len(known), seed), -sizes)).tolist()
        return ranked


class Additional:
    """Most statements first that what is ranked before does not cover."""

    NAME = "additional"
    NEEDS = "coverage"

    def rank(
        self, rows: Iterable[Row], equipped: Iterable[Row], defaults: Defaults, seed: int | None, known: Sequence[Array]
    ) -> list[int]:
        """Return the positions of `rows` best first; `known` are the statements of each, numbers without repeats."""
        _read(rows)
        order = tie_order(len(known), seed)
        groups: dict[bytes, list[int]] = defaultdict(list)
        for position in np.argsort(order)[::-1].tolist():  # from behind, so that the first in tie order is popped first
            groups[known[position].tobytes()].append(position)
        empty = groups.pop(b"", [])
        covers = _Covers([known[members[0]] for members in groups.values()])
        ranked = covers.order(list(groups.values()), order) if groups else []
        return ranked + empty[::-1]


class _Covers:
    """Groups of tests of equal coverage, over blocks: statements that the same groups cover."""

    def __init__(self, covers: list[Array]) -> None:
        self._sizes = np.array([len(statements) for statements in covers], np.int64)
        group = np.repeat(np.arange(len(covers)), self._sizes)
        statement = np.concatenate([np.empty(0, np.int64), *covers]).astype(np.int64)
        by_statement = np.argsort(statement, kind="stable")
        _, starts = np.unique(statement[by_statement], return_index=True)
        members = np.split(group[by_statement], starts[1:]) if len(starts) else []
        numbers: dict[bytes, int] = {}
        block_of = [numbers.setdefault(mine.tobytes(), len(numbers)) for mine in members]
        self._weights: list[int] = np.bincount(np.array(block_of, np.int64), minlength=len(numbers)).tolist()
        self._members = [np.frombuffer(data, group.dtype) for data in numbers]
        self._blocks: list[list[int]] = [[] for _ in covers]
        for block, mine in enumerate(self._members):
            for number in mine.tolist():
                self._blocks[number].append(block)

    def order(self, tests: list[list[int]], ties: Array) -> list[int]:
        """Return all tests; those of each group are taken from the end of its list."""
        left = sum(map(len, tests))
        head = np.array([ties[members[-1]] for members in tests], np.int64)
        gone = np.zeros(len(tests), bool)
        ranked: list[int] = []
        while len(ranked) < left:
            ranked += self._cycle(tests, ties, head, gone)
        return ranked

    def _cycle(self, tests: list[list[int]], ties: Array, head: Array, gone: Array) -> list[int]:
        """Return picks until nothing is left to be covered; `head` is the tie of each group's next test."""
        gains, covered, picks = np.where(gone, 0, self._sizes), set[int](), list[int]()
        while (most := gains.max()) > 0:
            best = np.flatnonzero(gains == most)
            group = int(best[head[best].argmin()]) if len(best) > 1 else int(best[0])
            picks.append(tests[group].pop())
            if tests[group]:
                head[group] = ties[tests[group][-1]]
            else:
                gone[group] = True
            new = [block for block in self._blocks[group] if block not in covered]
            covered.update(new)
            members = [self._members[block] for block in new]
            weights = np.repeat([self._weights[block] for block in new], list(map(len, members)))
            gains -= np.bincount(np.concatenate(members), weights, len(gains)).astype(np.int64)
        return picks


TOTAL, ADDITIONAL = Total(), Additional()
