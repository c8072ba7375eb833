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

import bisect
import heapq
import math
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from opera.prioritize.baselines import tie_order, with_rest, with_turns
from opera.prioritize.subspaces import ArtifactSubspaces, Defaults, PaperSubspaces, Row, Space, Subspaces, encode

DIGITS = 12
"""Scores are compared after rounding to this many decimals, so that sums in another order still tie."""

FEW = 8
"""From this many groups on, numpy computes scores faster than Python does."""
BLOCK = 1 << 21
"""Facets are numbered in blocks of places of about this many entries."""

TENSORS: int = len(list(ArtifactSubspaces().tensors(Row("", {}))))
"""Parameters that stand for the tensors, not for attributes."""

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
        left, right = np.triu_indices(self.parameters, 1)
        self.places = self.parameters + len(left)
        self.of = np.empty((rows, self.places), np.int32, order="F")
        self.starts = [0]
        # A parameter is the pair with a last column that has but one value.
        codes = np.concatenate([codes, np.zeros((rows, 1), codes.dtype)], axis=1).astype(np.int64)
        sizes = codes.max(axis=0) + 1
        left = np.concatenate([np.arange(self.parameters), left])
        right = np.concatenate([np.full(self.parameters, self.parameters), right])
        for block in self.blocks():
            spans = sizes[left[block]] * sizes[right[block]]
            offsets = np.cumsum(spans) - spans
            values = codes[:, left[block]] * sizes[right[block]] + codes[:, right[block]] + offsets
            self._number(block, values, offsets, int(spans.sum()))

    def blocks(self) -> Iterator[slice]:
        """Yield slices of places: as many at a time as bounded memory allows, since each numpy call has its price."""
        step = max(1, BLOCK // max(1, len(self.of)))
        for first in range(0, self.places, step):
            yield slice(first, min(first + step, self.places))

    def _number(self, block: slice, values: Array, offsets: Array, size: int) -> None:
        start = self.starts[-1]
        if size <= 4 * values.size:  # a table is faster than sorting
            seen = np.zeros(size, bool)
            seen[values] = True
            before = np.concatenate([[0], np.cumsum(seen)])
            self.of[:, block] = before[values] + start
            ends = before[[*offsets[1:], size]]
        else:
            distinct, number = np.unique(values, return_inverse=True)
            self.of[:, block] = number.reshape(values.shape) + start
            ends = np.searchsorted(distinct, [*offsets[1:], size])
        self.starts.extend((ends + start).tolist())

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
        counts, rows = [np.zeros(1, np.int64)], [np.empty(0, np.int32)]
        for block in facets.blocks():  # by place, and so by facet
            first, last = facets.starts[block.start], facets.starts[block.stop]
            numbers = facets.of[facets.known :, block].T
            place, row = np.nonzero(~covered[numbers])
            mine = numbers[place, row] - first
            counts.append(np.bincount(mine, minlength=last - first))
            rows.append(row[np.argsort(mine, kind="stable")].astype(np.int32))
        self._rows = np.concatenate(rows).data
        self._starts = np.cumsum(np.concatenate(counts)).data  # gives plain integers, faster than an array does

    def __getitem__(self, facet: int) -> list[int]:
        rows: list[int] = self._rows[self._starts[facet] : self._starts[facet + 1]].tolist()
        return rows


class Groups:
    """Rows by the set of places where they still offer something (their mask, an int with one bit a place).

    Each group keeps a heap of rows, smallest first; rows that left are dropped when they surface.
    """

    def __init__(self, flags: Array, parameters: int) -> None:
        self._parameters, self._width = parameters, flags.shape[1]
        self.group_of = [-1] * len(flags)
        self.masks: list[int] = []
        self.bounds: list[tuple[float, int]] = []
        """Heap of (−bound, group). A bound is a score of the past, its own or of a group whose mask held more."""
        self.bound: list[float] = []
        self._heaps: list[list[int]] = []
        self._places: dict[int, tuple[list[int], list[int]]] = {}
        self._slots: dict[int, int] = {}
        self._free: list[int] = []
        self._bits = np.zeros((0, self._width))
        self._ids: dict[int, int] = {}
        self._sizes: list[int] = []
        packed = np.packbits(flags, axis=1, bitorder="little")
        data, width = packed.tobytes(), packed.shape[1]
        for row in range(len(flags)):
            mask = int.from_bytes(data[row * width : (row + 1) * width], "little")
            if mask:
                self._enter(row, self._group(mask, math.inf))

    def clear(self, cleared: dict[int, int]) -> None:
        """Take places (as a mask) from rows: row → mask. The rows that are left with nothing leave all groups."""
        moves: dict[tuple[int, int], int] = {}
        for row, bits in cleared.items():
            old = self.group_of[row]
            new = moves.get((old, bits))
            if new is None:
                mask = self.masks[old] & ~bits
                new = moves[old, bits] = self._group(mask, self.bound[old]) if mask else -1
            self._sizes[old] -= 1
            if not self._sizes[old]:
                self._close(old)
            if new < 0:
                self.group_of[row] = -1
            else:
                self._enter(row, new)

    def first(self, group: int) -> int:
        """Return the smallest row of a group, −1 where it is empty."""
        heap, group_of = self._heaps[group], self.group_of
        while heap and group_of[heap[0]] != group:
            heapq.heappop(heap)
        return heap[0] if heap else -1

    def places(self, group: int) -> tuple[list[int], list[int]]:
        """Return the places of a group's mask that are parameters, and those that are pairs."""
        found = self._places.get(group)
        if found is None:
            places, mask = [], self.masks[group]
            while mask:
                places.append((mask & -mask).bit_length() - 1)
                mask &= mask - 1
            split = bisect.bisect_left(places, self._parameters)
            found = self._places[group] = places[:split], places[split:]
        return found

    def bits(self, groups: list[int]) -> Array:
        """Return the masks of groups, float64 (groups, places), 1 where a place is set."""
        new = [group for group in groups if group not in self._slots]
        if new:
            while len(self._free) < len(new):
                size = len(self._bits)
                self._bits = np.concatenate([self._bits, np.zeros((size + 64, self._width))])
                self._free += range(size, len(self._bits))
            slots = [self._free.pop() for _ in new]
            self._slots.update(zip(new, slots, strict=True))
            data = b"".join([self.masks[group].to_bytes(-(-self._width // 8), "little") for group in new])
            flags = np.frombuffer(data, np.uint8).reshape(len(new), -1)
            self._bits[slots] = np.unpackbits(flags, axis=1, count=self._width, bitorder="little")
        return self._bits[[self._slots[group] for group in groups]]

    def _enter(self, row: int, group: int) -> None:
        self.group_of[row] = group
        self._sizes[group] += 1
        heapq.heappush(self._heaps[group], row)

    def _group(self, mask: int, bound: float) -> int:
        group = self._ids.get(mask)
        if group is None:
            group = self._ids[mask] = len(self.masks)
            self._heaps.append([])
            self.masks.append(mask)
            self._sizes.append(0)
            self.bound.append(bound)
            heapq.heappush(self.bounds, (-bound, group))
        return group

    def _close(self, group: int) -> None:
        del self._ids[self.masks[group]]
        self._places.pop(group, None)
        self._heaps[group] = []
        if group in self._slots:
            self._free.append(self._slots.pop(group))


def greedy(facets: Facets, rate: float) -> Iterator[tuple[float, int]]:
    """Yield (score, row) in greedy order until no row has diversity left; equal scores go by row number."""
    covered = facets.covered()
    index = Index(facets, covered)
    sizes = facets.sizes(covered).astype(np.int64).tolist()
    parameters, pairs = facets.parameters, facets.places - facets.parameters
    share = [1 / max(parameters, 1)] * parameters + [1 / max(pairs, 1)] * pairs
    weights: list[float] = [part / max(size, 1) for part, size in zip(share, sizes, strict=True)]
    mine = facets.of[facets.known :]
    groups = Groups(~covered[mine], parameters)
    bounds = groups.bounds

    def scores(batch: list[int]) -> list[float]:
        if len(batch) < FEW:
            sums = [[sum([weights[place] for place in part]) for part in groups.places(x)] for x in batch]
        else:
            bits, now = groups.bits(batch), np.array(weights)
            singles = np.einsum("gp,p->g", bits[:, :parameters], now[:parameters])
            doubles = np.einsum("gp,p->g", bits[:, parameters:], now[parameters:])
            sums = np.stack([singles, doubles], axis=1).tolist()
        return [round(rate * max(pair), DIGITS) for pair in sums]

    while True:
        best, row, group, evaluated, size = -1.0, -1, -1, [], 1
        while bounds and -bounds[0][0] >= best:
            batch: list[int] = []
            while bounds and -bounds[0][0] >= best and len(batch) < size:
                other = heapq.heappop(bounds)[1]
                if groups.first(other) >= 0:
                    batch.append(other)
            size *= 4
            for other, score in zip(batch, scores(batch), strict=True):
                groups.bound[other] = score
                evaluated.append((-score, other))
                first = groups.first(other)
                if score > best or (score == best and first < row):
                    best, row, group = score, first, other
        if row < 0:
            return
        for bound in evaluated:
            heapq.heappush(bounds, bound)
        yield best, row
        cleared: dict[int, int] = {}
        numbers = mine[row].tolist()
        for place in chain(*groups.places(group)):
            bit = 1 << place
            for other in index[numbers[place]]:
                cleared[other] = cleared.get(other, 0) | bit
            sizes[place] += 1
            weights[place] = share[place] / sizes[place]
        groups.clear(cleared)


Rate: TypeAlias = Callable[[Facets, int, int], float]
"""(facets, migrated tests, equipped tests) → rate of the operator."""


def artifact_rate(facets: Facets, migrated: int, equipped: int) -> float:
    """Return 1 where the operator is not equipped, else the share of what its equipped tests do not cover (the artifact)."""
    return covered_share(facets) if equipped else 1.0


def paper_rate(facets: Facets, migrated: int, equipped: int) -> float:
    """Return num_dll / (num_dlc + 1), the paper's text with one added against division by zero."""
    return migrated / (equipped + 1)


def wide_rate(facets: Facets, migrated: int, equipped: int) -> float:
    """Return the artifact's rate × (1 + attributes of the operator): the more there are, the more can fail."""
    attributes: int = facets.parameters - TENSORS
    return artifact_rate(facets, migrated, equipped) * (1 + attributes)


class Diversity:
    """A strategy that ranks by rate × diversity; see the module.

    What has no diversity left keeps corpus order, or with `turns` goes operator by operator in turn.
    """

    def __init__(self, name: str, subspaces: Subspaces, rate: Rate, *, turns: bool = False) -> None:
        self.NAME, self._subspaces, self._rate, self._turns = name, subspaces, rate, turns

    def rank(self, rows: Iterable[Row], equipped: Iterable[Row], defaults: Defaults, seed: int | None) -> list[int]:
        """Return the positions of `rows` best first: a permutation; see `opera.prioritize.Strategy`."""
        spaces, count = encode(rows, equipped, defaults, self._subspaces)
        order = tie_order(count, seed)
        operators = _numbers(spaces, count) if self._turns else None
        found = [self._solve(spaces.pop(operator), order) for operator in list(spaces)]  # frees what is solved
        scores, chosen = (
            np.concatenate(column) for column in zip(*found, (np.empty(0), np.empty(0, np.int64)), strict=True)
        )
        # Within an operator scores only fall, and rows of equal score come in tie order: sorting is merging.
        head = chosen[np.lexsort((order[chosen], -scores))]
        head = head[np.sort(np.unique(head, return_index=True)[1])]  # a program of several calls has its best place
        return with_rest(head, count) if operators is None else with_turns(head, operators, order)

    def _solve(self, space: Space, order: Array) -> tuple[Array, Array]:
        """Return scores and positions of one operator's rows that had diversity when they were picked."""
        members, codes, which = space.migrated()
        first = np.full(len(codes), -1)
        by_tie = np.argsort(order[members])[::-1]
        first[which[by_tie]] = members[by_tie]  # of equal rows, the last one written is first in tie order
        sequence = np.argsort(order[first])
        facets = Facets(np.concatenate([space.seen(), codes[sequence]]), len(space.equipped) + 1)
        picks = list(greedy(facets, self._rate(facets, len(members), len(space.equipped))))
        scores = np.array([score for score, _ in picks])
        return scores, first[sequence[np.array([row for _, row in picks], np.int64)]]


def no_rate(facets: Facets, migrated: int, equipped: int) -> float:
    """Return 1: the score is the parameters' alone."""
    return 1.0


def _numbers(spaces: dict[str, Space], count: int) -> Array:
    """Return the number of each row's operator, int64 (rows,)."""
    numbers = np.empty(count, np.int64)
    for number, space in enumerate(spaces.values()):
        numbers[space.positions()] = number
    return numbers


class OperatorScore:
    """An ablation: the operator's score alone; all tests of an operator tie."""

    NAME = "opera-op"
    NEEDS = "equipped"

    def rank(self, rows: Iterable[Row], equipped: Iterable[Row], defaults: Defaults, seed: int | None) -> list[int]:
        """Return the positions of `rows` best first: a permutation; see `opera.prioritize.Strategy`."""
        spaces, count = encode(rows, equipped, defaults, ArtifactSubspaces())
        scores = np.zeros(count)
        for space in spaces.values():
            members, codes, _ = space.migrated()
            facets = Facets(np.concatenate([space.seen(), codes]), len(space.equipped) + 1)
            score = round(artifact_rate(facets, len(members), len(space.equipped)), DIGITS)
            scores[members] = np.maximum(scores[members], score)
        ranked: list[int] = np.lexsort((tie_order(count, seed), -scores)).tolist()
        return ranked


OPERA = Diversity("opera", ArtifactSubspaces(), artifact_rate)
OPERA_PAPER = Diversity("opera-paper", PaperSubspaces(), paper_rate)
OPERA_PARA = Diversity("opera-para", ArtifactSubspaces(), no_rate)
"""An ablation: the diversity of parameters alone."""
OPERA_OP = OperatorScore()
OPERA_WIDE = Diversity("opera-wide", ArtifactSubspaces(), wide_rate, turns=True)
"""OPERA with the operator's score weighted by its number of attributes; tuned as results/benchmarks/held-out.toml says."""
