"""FAST: similarity-based prioritization by minhashing and locality-sensitive hashing.

Source: B. Miranda, E. Cruciani, R. Verdecchia, A. Bertolino, "FAST Approaches to Scalable Similarity-based Test Case
Prioritization", ICSE 2018, black-box form, with its published parameters: shingles of 5 characters, signatures of 10
hashes, 10 bands of one row.

The signature of what was picked is the minimum over the picks. Candidates are the tests that share no band with it; where
none is left, it starts anew. `fast-pw` picks the candidate that is farthest from it, the others draw 1, log2, square root or
all of them. With bands of one row a candidate shares no hash at all with the picks, so all candidates are equally far:
`fast-pw` differs from `fast-one` only in that ties fall by tie order, not by a draw.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import numpy as np

from opera.errors import NotInstalled
from opera.prioritize.baselines import tie_order
from opera.prioritize.subspaces import Defaults, Row
from opera.programs.values import Message, Named, Optional, RandomTensor, Sequence, Tensor, Value

SHINGLE = 5
HASHES = 10
PICKED = 100
"""Added to the number of shared bands of a test that was picked, so that it is no candidate."""

Array: TypeAlias = np.ndarray[Any, Any]


def text(row: Row) -> str:
    """Return a test as text: operator, parameters, inputs and outputs, like the call that it is."""
    if row.calls:
        return " ".join(map(text, row.calls))
    params = [f"{name}={_plain(value)}" for name, value in row.params.items()]
    inputs = [f"{dtype}{shape}" for shape, dtype in zip(row.input_shapes, row.input_dtypes, strict=False)]
    outputs = [f"{dtype}{shape}" for shape, dtype in zip(row.output_shapes, row.output_dtypes, strict=False)]
    return f"{row.operator}({', '.join(params)}) {' '.join(inputs)} -> {' '.join(outputs)}"


def _plain(value: Value) -> str:
    match value:
        case Tensor() | RandomTensor():
            return f"tensor {value.dtype}{value.shape}"
        case Message():
            return f"{value.type} {zlib.crc32(value.data):08x}"
        case Named():
            return f"{value.kind}.{value.name}"
        case Sequence():
            return f"{value.type}[{' '.join(map(_plain, value.items))}]"
        case Optional():
            return f"{value.type}?{_plain(value.value)}"
        case list() | tuple():
            return f"[{' '.join(map(_plain, value))}]"
        case dict():
            return f"{{{' '.join(f'{key}:{_plain(item)}' for key, item in value.items())}}}"
    return str(value)


def signatures(rows: Iterable[Row]) -> Array:
    """Return the MinHash signatures of rows, (rows, HASHES); rows of equal text have equal ones."""
    try:
        from datasketch import MinHash
    except ImportError:
        raise NotInstalled(
            "the fast strategies need datasketch", cause="it is not installed", fix='pip install "opera[benchmark]"'
        ) from None
    empty = MinHash(num_perm=HASHES, seed=1, hashfunc=zlib.crc32)
    known: dict[str, int] = {}
    found: list[Array] = []
    which = []
    for row in rows:
        written = text(row)
        place = known.get(written)
        if place is None:
            place = known[written] = len(found)
            data = written.encode("utf-8", "backslashreplace")
            sketch = empty.copy()
            sketch.update_batch({data[at : at + SHINGLE] for at in range(max(1, len(data) - SHINGLE + 1))})
            found.append(sketch.hashvalues)
        which.append(place)
    return np.array(found).reshape(-1, HASHES)[which]


class Bands:
    """Tests by the value of each band, and how many bands each shares with the picks.

    Attributes:
        shared: Bands shared, int8 (tests,); at least PICKED for tests that were picked.
        least: The picks' signature: the minimum of each band over them, empty where nothing was picked since a reset.
    """

    def __init__(self, signatures: Array, least: list[int]) -> None:
        self._members, self._starts, self._codes = [], [], []
        self._signatures = signatures
        for band in signatures.T:
            values, code = np.unique(band, return_inverse=True)
            self._members.append(np.argsort(code, kind="stable"))
            self._starts.append(np.concatenate([[0], np.cumsum(np.bincount(code))]))
            self._codes.append({value: at for at, value in enumerate(values.tolist())})
        self.shared = np.zeros(len(signatures), np.int8)
        self.least = least
        for number, value in enumerate(least):
            self._shift(number, value, 1)

    def reset(self) -> None:
        """Begin anew: the picks so far count no longer."""
        self.shared[self.shared < PICKED] = 0
        self.least = []

    def pick(self, test: int) -> None:
        """Take a test into the picks."""
        self.shared[test] = PICKED
        mine: list[int] = self._signatures[test].tolist()
        for band, value in enumerate(mine):
            if not self.least:
                self._shift(band, value, 1)
            elif value < self.least[band]:
                self._shift(band, self.least[band], -1)
                self._shift(band, value, 1)
        self.least = list(map(min, self.least, mine)) if self.least else mine

    def _shift(self, band: int, value: int, by: int) -> None:
        code = self._codes[band].get(value)
        if code is not None:  # else no test that is left has it
            starts = self._starts[band]
            members = self._members[band][starts[code] : starts[code + 1]]
            self.shared[members] += np.where(self.shared[members] < PICKED, by, 0).astype(np.int8)


class Fast:
    """A strategy of the family; `size` tells how many of the candidates are drawn at a time, None takes the farthest."""

    def __init__(self, name: str, size: Callable[[int], int] | None) -> None:
        self.NAME, self._size = name, size

    def rank(self, rows: Iterable[Row], equipped: Iterable[Row], defaults: Defaults, seed: int | None) -> list[int]:
        """Return the positions of `rows` best first; see `opera.prioritize.Strategy`."""
        return self.order(signatures(rows), seed)

    def order(self, signatures: Array, seed: int | None) -> list[int]:
        """Return the positions of tests with these signatures, best first."""
        draw = np.random.Generator(np.random.PCG64(seed or 0))
        left = np.argsort(tie_order(len(signatures), seed))  # positions in tie order
        ranked: list[int] = []
        least: list[int] = []
        while len(left):  # looking at fewer tests is faster, so those that were picked are left out now and then
            bands = Bands(signatures[left], least)
            picks = self._picks(bands, len(left) - len(left) // 2, draw, first=not ranked)
            ranked += left[picks].tolist()
            left, least = np.delete(left, picks), bands.least
        return ranked

    def _picks(self, bands: Bands, wanted: int, draw: np.random.Generator, *, first: bool) -> list[int]:
        """Return at least `wanted` picks; the very `first` is picked alone."""
        picks: list[int] = []
        while len(picks) < wanted:
            free = bands.shared == 0
            if self._size is None:
                farthest = int(free.argmax())
                chosen = [farthest] if free[farthest] else []
            else:
                candidates = np.flatnonzero(free)
                size = 1 if first and not picks else min(self._size(max(len(candidates), 1)), len(candidates))
                chosen = draw.choice(candidates, size, replace=False).tolist() if size else []
            for test in chosen:
                bands.pick(test)
            picks += chosen
            if not chosen:
                bands.reset()
        return picks


FAST_PW = Fast("fast-pw", None)
FAST_ONE = Fast("fast-one", lambda count: 1)
FAST_LOG = Fast("fast-log", lambda count: int(math.log2(count)) + 1)
FAST_SQRT = Fast("fast-sqrt", lambda count: int(math.sqrt(count)) + 1)
FAST_ALL = Fast("fast-all", lambda count: count)
