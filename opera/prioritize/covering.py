"""Strategies that look at the statements of the frontend under test that each test covers (`opera coverage`).

`total` ranks by their number, `additional` picks greedily what covers most that the picks since the last reset do not, and
resets where nothing is left to be covered. Source: Rothermel et al., "Prioritizing test cases for regression testing", IEEE
TSE 2001. A test without coverage is ranked last.
"""

from __future__ import annotations

import heapq
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
    """Groups of tests of equal coverage, over blocks: statements that the same groups cover.

    Attributes:
        blocks: Blocks of each group.
        weights: Statements of each block, int64 (blocks,).
    """

    def __init__(self, covers: list[Array]) -> None:
        group = np.repeat(np.arange(len(covers)), [len(statements) for statements in covers])
        statement = np.concatenate([np.empty(0, np.int64), *covers]).astype(np.int64)
        by_statement = np.argsort(statement, kind="stable")
        _, starts = np.unique(statement[by_statement], return_index=True)
        members = np.split(group[by_statement], starts[1:]) if len(starts) else []
        numbers: dict[bytes, int] = {}
        block_of = [numbers.setdefault(mine.tobytes(), len(numbers)) for mine in members]
        self.weights = np.bincount(np.array(block_of, np.int64), minlength=len(numbers))
        kinds = [np.frombuffer(data, group.dtype) for data in numbers]
        pair_group = np.concatenate([np.empty(0, np.int64), *kinds])
        pair_block = np.repeat(np.arange(len(kinds)), [len(mine) for mine in kinds])
        self._flat = pair_block[np.argsort(pair_group, kind="stable")]
        self._starts = np.searchsorted(np.sort(pair_group), np.arange(len(covers)))
        self.blocks = np.split(self._flat, self._starts[1:])

    def order(self, tests: list[list[int]], ties: Array) -> list[int]:
        """Return all tests; those of each group are taken from the end of its list."""
        left = sum(map(len, tests))
        ranked: list[int] = []
        while len(ranked) < left:
            ranked += self._cycle(tests, ties)
        return ranked

    def _cycle(self, tests: list[list[int]], ties: Array) -> list[int]:
        """Return picks until nothing is left to be covered.

        Gains only fall, so the heap's are bounds: who is still first when its gain is computed anew has the largest one
        and, among equals, the test that is first in tie order.
        """
        weights = self.weights.copy()
        picks: list[int] = []
        heap = self._heap(weights, tests, ties)
        while heap:
            bound, tie, group = heap[0]
            gain = int(weights[self.blocks[group]].sum())
            if not gain:
                heapq.heappop(heap)
            elif gain < -bound:
                heapq.heapreplace(heap, (-gain, tie, group))
            else:
                heapq.heappop(heap)
                picks.append(tests[group].pop())
                weights[self.blocks[group]] = 0
                if len(picks) == 1:  # most of what is common to all is covered now: all bounds are far off
                    heap = self._heap(weights, tests, ties)
        return picks

    def _heap(self, weights: Array, tests: list[list[int]], ties: Array) -> list[tuple[int, int, int]]:
        """Return (−gain, tie of the next test, group) of the groups that have tests and gain something."""
        gains = np.add.reduceat(weights[self._flat], self._starts)
        heap = [
            (-gain, int(ties[tests[group][-1]]), group)
            for group, gain in enumerate(gains.tolist())
            if gain and tests[group]
        ]
        heapq.heapify(heap)
        return heap


TOTAL, ADDITIONAL = Total(), Additional()
