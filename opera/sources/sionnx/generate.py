"""TDBc-gen: cases of an operator from its specification, by types, dimensions, boundaries and corner cases.

Each combination of types has its share of the cases. Whatever is drawn is a part with boundaries (a size, a rank, an
attribute left out, the elements of an operand): each case is made for the pair of part and boundary that was seen least, and
the rest is drawn, on a boundary now and then. Once each boundary was seen, cases are made for two or three at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import product
from typing import Any

import numpy as np

from opera.sources.sionnx import elements
from opera.sources.sionnx.attempt import Program
from opera.sources.sionnx.case import Case
from opera.sources.sionnx.scene import Options, Reject, Scene, Uniform
from opera.sources.sionnx.spec import Spec

FULL, SMOKE = "full", "smoke"
COUNT = 200
"""Cases of an operator, as the published generator makes them."""
TRIES = 40
"""Attempts at one case, after which its target is given up."""
GIVE_UP = 4
"""A boundary that was missed so often is not asked for again."""
DRAWS, TRIAL = 12, 24
"""How often the one value of each attribute is drawn in smoke mode, and attempts that tell how many cases it admits."""
COMBINATIONS = 4000
"""So many combinations of types are made at most; of an operator that has more, some."""


def cases(
    spec: Spec,
    mode: str = FULL,
    count: int = COUNT,
    seed: int = 0,
    *,
    empty: bool = False,
    special: bool = False,
    rejected: Counter[str] | None = None,
) -> Iterator[Case]:
    """Yield the cases of one version of an operator; the same ones for the same arguments.

    Args:
        spec: A resolved specification (skeleton.resolve).
        mode: `full`, or `smoke`: attributes have one value each, which is drawn once; of what has no inputs it is `full`.
        count: How many cases; fewer where a specification does not admit so many attempts.
        seed: Of all that is random.
        empty: Dimensions of size 0 are boundaries too.
        special: NaN and infinities are boundaries of float elements too.
        rejected: Counts the attempts that the specification rejects, by reason.

    Raises SourceError for a specification that contradicts itself, with file and line.
    """
    if mode not in (FULL, SMOKE):
        raise ValueError(f"the mode is {FULL} or {SMOKE}, not {mode!r}")
    program = Program(spec)
    mode = mode if program.inputs else FULL  # or each case would be the first one again
    key = int.from_bytes(f"{spec.signature}-{spec.since}".encode()[-24:], "big")
    rng = np.random.Generator(np.random.PCG64([seed, key]))
    uniform = Uniform(rng)
    targets = _Targets(program.attribute_parts, uniform, mode)
    combinations = _combinations(program.variables, uniform)
    options = Options(empty, special)
    draw = _draw(program, combinations, options, seed, key) if mode == SMOKE else 0
    number = failed = 0
    while number < count and failed < 8 * GIVE_UP + count:
        place = (number + failed) % len(combinations)
        forced = targets.next({name: combinations[place].get(kind, "") for name, kind in program.typed.items()})
        case = None
        for _ in range(TRIES):
            steady = _steady(seed, key, draw) if draw else None
            scene = Scene(
                spec,
                uniform,
                options,
                forced,
                combinations[place],
                targets.known,
                targets.subjects,
                steady,
                program.attribute_parts,
            )
            try:
                case = program.run(scene, number)
                break
            except Reject as why:
                if rejected is not None:
                    rejected[str(why)] += 1
        if case is None:
            failed += 1
            targets.missed(forced)
            if not forced and len(combinations) > 1:
                combinations.pop(place)
            continue
        targets.saw(case.boundaries, forced)
        number += 1
        yield case


def _steady(seed: int, key: int, draw: int) -> Uniform:
    """Return the numbers that attributes are drawn from in smoke mode, the same in every case."""
    return Uniform(np.random.Generator(np.random.PCG64([seed, key, draw])), 64)


def _draw(program: Program, combinations: list[dict[str, str]], options: Options, seed: int, key: int) -> int:
    """Return which draw of the attributes' values smoke mode takes: the first that most attempts are cases with, else the
    one that admits most. With some a specification admits next to nothing: `saturate=0` is for a few types only.
    """
    best = (0, 1)
    for draw in range(1, DRAWS + 1):
        uniform = Uniform(np.random.Generator(np.random.PCG64([seed, key, 0])))
        found = 0
        for attempt in range(TRIAL):
            types = combinations[attempt % len(combinations)]
            scene = Scene(
                program.spec, uniform, options, {}, types, {}, {}, _steady(seed, key, draw), program.attribute_parts
            )
            with suppress(Reject):
                program.run(scene, 0)
                found += 1
        if 2 * found > TRIAL:
            return draw
        best = max(best, (found, draw), key=lambda x: x[0])
    return best[1]


class _Targets:
    """Which boundaries there are, how often each was seen, and which one is next."""

    def __init__(self, attributes: frozenset[str], uniform: Uniform, mode: str) -> None:
        self.known: dict[str, dict[str, int]] = {}
        self.subjects: dict[str, str] = {}
        self._attributes, self._uniform, self._mode = attributes, uniform, mode
        self._missed: dict[tuple[str, str], int] = {}
        self._turn = 0

    def next(self, types: dict[str, str]) -> dict[str, str]:
        """Return what is forced in the next case, whose inputs have these types.

        Nothing is in every eighth, for usual cases are cases too.
        """
        self._turn += 1
        if self._turn % 8 == 1 or not self.known:
            return {}
        pairs = []
        for part, table in self.known.items():
            operands = self.subjects[part] not in self._attributes
            if operands or self._mode == FULL:
                admitted = (x for x in table if elements.admits(types.get(part, ""), x))
                pairs += [(table[x], operands, part, x) for x in admitted if self._missed.get((part, x), 0) < GIVE_UP]
        if not pairs:
            return {}
        _, _, part, option = min(pairs, key=lambda x: x[:2])
        forced = {part: option}
        if not any(times == 0 for times, *_ in pairs):
            for _ in range(self._uniform.whole(1, 2)):
                _, _, part, option = self._uniform.one(pairs)
                forced.setdefault(part, option)
        return forced

    def saw(self, boundaries: dict[str, str], forced: dict[str, str]) -> None:
        for part, option in boundaries.items():
            if option in self.known.get(part, ()):
                self.known[part][option] += 1
        for part, option in forced.items():
            if boundaries.get(part) != option:
                self.missed({part: option})

    def missed(self, forced: dict[str, str]) -> None:
        if len(forced) == 1:
            for pair in forced.items():
                self._missed[pair] = self._missed.get(pair, 0) + 1


def _combinations(variables: dict[str, tuple[str, ...]], uniform: Uniform) -> list[dict[str, str]]:
    """Return the product of the types: first some in which each type of each variable is, then the others, shuffled."""
    if not variables:
        return [{}]
    lists = {name: list(types) for name, types in variables.items()}
    for types in lists.values():
        _shuffle(types, uniform)
    longest = max(map(len, lists.values()))
    first = [tuple(types[place % len(types)] for types in lists.values()) for place in range(longest)]
    size = int(np.prod([float(len(x)) for x in lists.values()]))
    if size <= COMBINATIONS:
        rest = [x for x in product(*lists.values()) if x not in set(first)]
    else:
        rest = [tuple(uniform.one(types) for types in lists.values()) for _ in range(COMBINATIONS)]
    _shuffle(rest, uniform)
    return [dict(zip(lists, x, strict=True)) for x in dict.fromkeys([*first, *rest])]


def _shuffle(items: list[Any], uniform: Uniform) -> None:
    for place in range(len(items) - 1, 0, -1):
        other = uniform.whole(0, place)
        items[place], items[other] = items[other], items[place]
