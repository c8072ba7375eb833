"""OPERA's ranking: greedy by rate(operator) × diversity(instance) (ICSE 2025, test prioritization).

S are the rows seen so far: the operator's default row, its equipped tests, and what was ranked before. With P parameters,
S_k the values of parameter k in S, and S_kl the value pairs of parameters k and l in S,

    diversity(v) = max(1/P Σ_{v_k ∉ S_k} 1/|S_k|, 1/C(P,2) Σ_{(v_k,v_l) ∉ S_kl} 1/|S_kl|)

What a row still has to offer is a set of *facets*: its values and value pairs that S lacks. All rows with the same places of
uncovered facets have the same score, so they form a group, and a pick costs one look at each group instead of one at each
row. An inverted index facet → rows finds the rows that change their group. Each row loses each facet once, so all changes
together are linear in the number of (row, facet).

Operators do not share S, so each is solved alone, and their sequences are merged by score.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np

from opera.prioritize.baselines import tie_order, with_rest
from opera.prioritize.subspaces import (
    ArtifactSubspaces,
    Defaults,
    PaperSubspaces,
    Row,
    Space,
    Subspaces,
    encode,
)

DIGITS = 12
"""Scores are compared after rounding to this many decimals, so that sums in another order still tie."""

Array: TypeAlias = np.ndarray[Any, Any]


class Facets:
    """The values and value pairs of rows, numbered densely; a facet's `place` is the parameter or pair it belongs to.

    Attributes:
        of: Facet of each row in each place, int32 (rows, places); the first `known` rows are S.
        starts: First facet of each place, and one past the last of all.
        known: Number of rows at the start that are seen already (default row and equipped tests).
        parameters: P; the first P places are parameters, the others their pairs.
    """

    def __init__(self, codes: Array, known: int) -> None:
        rows, self.parameters = codes.shape
        self.known = known
        pairs = list(combinations(range(self.parameters), 2))
        self.places = self.parameters + len(pairs)
        self.of = np.empty((rows, self.places), np.int32, order="F")
        self.starts = [0]
        sizes = codes.max(axis=0).astype(np.int64) + 1
        for place in range(self.parameters):
            self._number(place, codes[:, place].astype(np.int64), int(sizes[place]))
        for place, (left, right) in enumerate(pairs, self.parameters):
            pair = codes[:, left].astype(np.int64) * sizes[right] + codes[:, right]
            self._number(place, pair, int(sizes[left] * sizes[right]))

    def _number(self, place: int, values: Array, size: int) -> None:
        if size <= 4 * len(values) + 64:  # a table is faster than sorting
            seen = np.zeros(size, bool)
            seen[values] = True
            self.of[:, place] = (np.cumsum(seen) + (self.starts[-1] - 1))[values]
            self.starts.append(self.starts[-1] + int(np.count_nonzero(seen)))
        else:
            distinct, number = np.unique(values, return_inverse=True)
            self.of[:, place] = number.reshape(-1) + self.starts[-1]
            self.starts.append(self.starts[-1] + len(distinct))

    def covered(self) -> Array:
        """Return for each facet whether S has it, bool (facets,)."""
        out = np.zeros(self.starts[-1], bool)
        out[self.of[: self.known].reshape(-1)] = True
        return out

    def sizes(self, covered: Array) -> Array:
        """Return |S_k| and |S_kl| by place, float64 (places,), of the facets marked in `covered`."""
        return np.add.reduceat(covered.astype(np.float64), self.starts[:-1])

    def totals(self) -> Array:
        """Return the number of facets by place, float64 (places,)."""
        return np.diff(self.starts).astype(np.float64)


def covered_share(facets: Facets) -> float:
    """Return 1 − Π |E_k|/|E_k ∪ M_k| · Π |E_kl|/|E_kl ∪ M_kl|: the operator's rate where it is equipped (the artifact's)."""
    return float(1.0 - np.prod(facets.sizes(facets.covered()) / facets.totals()))


class Index:
    """Facet → rows that have it, for the facets that S lacks at the start. Rows count from 0 after the known ones."""

    def __init__(self, facets: Facets, covered: Array) -> None:
        self.starts = np.zeros(facets.starts[-1] + 1, np.int64)
        columns = []
        for place in range(facets.places):
            column = facets.of[facets.known :, place]
            open_rows = np.flatnonzero(~covered[column]).astype(np.int32)
            mine = column[open_rows]
            columns.append(open_rows[np.argsort(mine, kind="stable")])
            self.starts[1:] += np.bincount(mine, minlength=facets.starts[-1])
        np.cumsum(self.starts, out=self.starts)
        self.rows = np.concatenate([*columns, np.empty(0, np.int32)])  # facets of a place are numbered after those of the place before it

    def __getitem__(self, facet: int) -> Array:
        return self.rows[self.starts[facet] : self.starts[facet + 1]]


class Groups:
    """Rows by the set of places where they still offer something (their mask).

    Each group keeps a heap of rows, of which the smallest comes first; rows that left are dropped when they surface.
    """

    def __init__(self, masks: Array, places: int) -> None:
        self.masks, self.places = masks, places
        self.group_of = np.full(len(masks), -1, np.int32)
        self.bits = np.zeros((16, places))
        self.sizes = np.zeros(16, np.int64)
        self._ids: dict[bytes, int] = {}
        self._keys: list[bytes] = []
        self._heaps: list[list[int]] = []
        self._free: list[int] = []
        self.place(np.arange(len(masks)))

    @property
    def used(self) -> int:
        """Number of group slots in use or freed; all ids are below it."""
        return len(self._heaps)

    def place(self, rows: Array) -> None:
        """Put rows (ascending) into the groups of their masks; rows with nothing to offer go into none."""
        left = self.group_of[rows]
        width = self.masks.shape[1] * 8
        data, empty = self.masks[rows].tobytes(), bytes(width)
        arrived: dict[bytes, list[int]] = {}
        for start, row in zip(range(0, len(data), width), rows.tolist(), strict=True):
            arrived.setdefault(data[start : start + width], []).append(row)
        arrived.pop(empty, None)
        self.group_of[rows] = -1
        for group, gone in zip(*np.unique(left[left >= 0], return_counts=True), strict=True):
            self.sizes[group] -= gone
        for key, members in arrived.items():
            group = self._ids.get(key, -1)
            if group < 0:
                group = self._open(key)
            heap = self._heaps[group]
            if heap and len(members) < 8:
                for row in members:
                    heapq.heappush(heap, row)
            else:
                heap.extend(members)
                if len(heap) > len(members):
                    heapq.heapify(heap)
            self.group_of[members] = group
            self.sizes[group] += len(members)
        for group in np.unique(left[left >= 0]).tolist():
            if not self.sizes[group]:
                self._close(group)

    def first(self, group: int) -> int:
        """Return the smallest row of a group that is not empty."""
        heap = self._heaps[group]
        while self.group_of[heap[0]] != group:
            heapq.heappop(heap)
        return heap[0]

    def _open(self, key: bytes) -> int:
        if self._free:
            group = self._free.pop()
            self._keys[group] = key
        else:
            group = len(self._heaps)
            self._heaps.append([])
            self._keys.append(key)
            if group == len(self.bits):
                self.bits = np.concatenate([self.bits, np.zeros_like(self.bits)])
                self.sizes = np.concatenate([self.sizes, np.zeros_like(self.sizes)])
        self._ids[key] = group
        flags = np.unpackbits(np.frombuffer(key, np.uint8), bitorder="little")
        self.bits[group] = flags[: self.places]
        return group

    def _close(self, group: int) -> None:
        self._heaps[group].clear()
        self.bits[group] = 0
        del self._ids[self._keys[group]]
        self._free.append(group)


def greedy(facets: Facets, rate: float) -> Iterator[tuple[float, int]]:
    """Yield (score, row) in greedy order until no row has diversity left; equal scores go by row number."""
    covered = facets.covered()
    index = Index(facets, covered)
    sizes = facets.sizes(covered)
    parameters, pairs = facets.parameters, facets.places - facets.parameters
    share = np.concatenate([np.full(parameters, 1 / max(parameters, 1)), np.full(pairs, 1 / max(pairs, 1))])
    weights = share / np.maximum(sizes, 1)
    mine = facets.of[facets.known :]
    groups = Groups(_masks(~covered[mine]), facets.places)
    one = np.uint64(1)
    while True:
        bits = groups.bits[: groups.used]
        scores = np.einsum("gp,p->g", bits[:, :parameters], weights[:parameters])
        if pairs:
            np.maximum(scores, np.einsum("gp,p->g", bits[:, parameters:], weights[parameters:]), out=scores)
        if not scores.any():
            return
        np.round(scores * rate, DIGITS, out=scores)
        best = scores.max()
        row = min(groups.first(group) for group in np.flatnonzero(scores == best).tolist() if groups.sizes[group])
        yield float(best), row
        open_places = np.flatnonzero(groups.bits[groups.group_of[row]])
        changed = []
        for place, facet in zip(open_places.tolist(), mine[row, open_places].tolist(), strict=True):
            rows = index[facet]
            groups.masks[rows, place >> 6] &= ~(one << np.uint64(place & 63))
            changed.append(rows)
        sizes[open_places] += 1
        weights[open_places] = share[open_places] / sizes[open_places]
        groups.place(np.unique(np.concatenate(changed)))


def _masks(flags: Array) -> Array:
    """Pack bool (rows, places) into uint64 words (rows, ⌈places/64⌉), least significant bit first."""
    words = max(1, -(-flags.shape[1] // 64))
    packed = np.zeros((len(flags), words * 8), np.uint8)
    part = np.packbits(flags, axis=1, bitorder="little")
    packed[:, : part.shape[1]] = part
    return packed.view("<u8")


Rate: TypeAlias = Callable[[Facets, int, int], float]
"""(facets, migrated tests, equipped tests) → rate of the operator."""


def artifact_rate(facets: Facets, migrated: int, equipped: int) -> float:
    """Return 1 where the operator is not equipped, else the share of what its equipped tests do not cover (the artifact)."""
    return covered_share(facets) if equipped else 1.0


def paper_rate(facets: Facets, migrated: int, equipped: int) -> float:
    """Return num_dll / (num_dlc + 1), the paper's text with one added against division by zero."""
    return migrated / (equipped + 1)


class Diversity:
    """A strategy that ranks by rate × diversity; see the module."""

    def __init__(self, name: str, subspaces: Subspaces, rate: Rate) -> None:
        self.NAME, self._subspaces, self._rate = name, subspaces, rate

    def rank(self, rows: Iterable[Row], equipped: Iterable[Row], defaults: Defaults, seed: int | None) -> list[int]:
        """Return the positions of `rows` best first: a permutation; see `opera.prioritize.Strategy`."""
        spaces, count = encode(rows, equipped, defaults, self._subspaces)
        order = tie_order(count, seed)
        found = [self._solve(spaces.pop(operator), order) for operator in list(spaces)]  # frees what is solved
        scores, chosen = (np.concatenate(column) for column in zip(*found, (np.empty(0), np.empty(0, np.int64)), strict=True))
        # Within an operator scores only fall, and rows of equal score come in tie order: sorting is merging.
        return with_rest(chosen[np.lexsort((order[chosen], -scores))], count)

    def _solve(self, space: Space, order: Array) -> tuple[Array, Array]:
        """Return scores and positions of one operator's rows that had diversity when they were picked."""
        members, codes, which = space.migrated()
        first = np.full(len(codes), -1)
        by_tie = members[np.argsort(order[members])[::-1]]
        first[which[np.searchsorted(members, by_tie)]] = by_tie  # of equal rows, the last one written is first in tie order
        sequence = np.argsort(order[first])
        facets = Facets(np.concatenate([space.seen(), codes[sequence]]), len(space.equipped) + 1)
        picks = list(greedy(facets, self._rate(facets, len(members), len(space.equipped))))
        scores = np.array([score for score, _ in picks])
        return scores, first[sequence[np.array([row for _, row in picks], np.int64)]]


OPERA = Diversity("opera", ArtifactSubspaces(), artifact_rate)
OPERA_PAPER = Diversity("opera-paper", PaperSubspaces(), paper_rate)
