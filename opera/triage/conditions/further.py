"""Programs further from a failing one, of which several things differ at once: what is told is put to the test.

What near programs teach, in which one thing differs (opera.triage.conditions.near), explains these; whether it holds beyond
them only others can say. So a learned circumstance is judged by inputs of which it was not learned, as Kampmann et al. judge
theirs (Alhazen, ESEC/FSE 2020). So do programs of the corpus, which others made who knew nothing of the failure: what a suite
or a generator tries of an operator is what nobody thinks of who begins at the failing program.
"""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import msgspec
import numpy as np

from opera.programs.program import Instance, Operand, Program
from opera.programs.values import Tensor, Value
from opera.triage.conditions.labels import Labelled
from opera.triage.conditions.near import near
from opera.triage.shrink import simpler, smaller
from opera.triage.shrink.smaller import Defaults

Holds: TypeAlias = Callable[[Program], bool]
STEPS = (2, 3)
"""How many things differ, at least and at most."""
FIRST = 6
"""Programs of a row among which one is drawn: the more telling ones come first."""
TRIES = 400
"""Draws at most: many end at no program."""
ANEW = 0.5
"""How often all numbers are drawn anew, too: what near programs hold is 0, 1, 2, or what is told, and any other may pass."""
SPANS, LARGEST, MOST = (1, 10, 100), 7, 4096
"""Floats are drawn below one of these numbers, of both signs; integers up to the second (of two bits, 1); that many at
most."""

TRIALS = 8
"""So many of them must say something: what fewer say is no test of what is told."""
OTHERS = 16
"""Programs of the corpus that are asked about, one after each that is drawn."""


class Tried(NamedTuple):
    """What programs that nothing was learned of say.

    Attributes:
        failing, passing: Of those that have all that is told, how many fail alike, and how many pass.
        other_failing, other_passing: Of those that lack something of it.
    """

    failing: int = 0
    passing: int = 0
    other_failing: int = 0
    other_passing: int = 0

    @classmethod
    def of(cls, labelled: Sequence[Labelled], holds: Holds, excused: Holds) -> Tried:
        """Return what labelled programs say; of those that have all that is told, one that passes may be excused."""
        having = Counter(x.fails for x in labelled if holds(x.program) and (x.fails or not excused(x.program)))
        lacking = Counter(x.fails for x in labelled if not holds(x.program))
        return cls(having[True], having[False], lacking[True], lacking[False])

    def teaching(self, labelled: Sequence[Labelled], holds: Holds) -> list[Labelled]:
        """Return the programs of which something is learned: all that pass; and those that fail without what is told where
        most do that lack it, for else they may fail of something else.
        """
        odd = self.other_failing <= self.other_passing
        return [x for x in labelled if not (odd and x.fails and not holds(x.program))]

    @property
    def asked(self) -> int:
        """How many say something."""
        return sum(self)

    @property
    def as_told(self) -> int:
        """How many say what is told."""
        return self.failing + self.other_passing


def further(
    bases: Sequence[Instance], defaults: Defaults, seed: str, known: Collection[str] = ()
) -> Iterator[Instance]:
    """Yield programs that differ from one of these in several things, each once, the same ones of the same seed.

    Args:
        bases: What is drawn from, all as often: a program, and others, which differ from it in something already.
        known: Ids of programs that are not drawn.
    """
    draw, seen = random.Random(seed), {*known, *(x.id for x in bases)}
    for base in itertools.islice(itertools.cycle(bases), TRIES):
        made = base
        for _ in range(draw.randint(*STEPS) - (base is not bases[0])):
            row = draw.choice(near(made, defaults))
            found = [x for x in itertools.islice(row, draw.randint(1, FIRST)) if isinstance(x, Instance)]
            made = found[-1] if found else made
        if draw.random() < ANEW:
            made = anew(made, draw)
        if made.id not in seen and made.operator == base.operator:
            seen.add(made.id)
            yield made


def in_turn(ones: Iterable[Instance], others: Iterable[Instance]) -> Iterator[Instance]:
    """Yield programs of two kinds in turn, as long as there are both, then the rest."""
    pairs = itertools.zip_longest(ones, others)
    return (x for pair in pairs for x in pair if x is not None)


def anew(program: Instance, draw: random.Random) -> Instance:
    """Return a call with other numbers in its inputs, but for those that may state sizes or axes: ordinary ones of
    both signs.
    """

    def drawn(held: Value) -> Value:
        if not isinstance(held, Tensor) or smaller.states(held) or math.prod(held.shape) > MOST:
            return held
        numbers: list[float] = []
        count, dtype = math.prod(held.shape), held.dtype
        if "int" in dtype:
            most = 1 if dtype.endswith("int2") else LARGEST
            numbers = [draw.randint(0 if dtype.startswith("u") else -most, most) for _ in range(count)]
        elif "float" in dtype:
            span = draw.choice(SPANS)
            numbers = [round(draw.uniform(-span, span), 3) for _ in range(count)]
        else:
            return held
        return simpler.numbered(np.array(numbers).reshape(held.shape), dtype)

    return msgspec.structs.replace(program, inputs=tuple(Operand(x.name, drawn(x.value)) for x in program.inputs))


def evenly(programs: Iterable[Instance], holds: Holds, *, both: bool) -> Iterator[Instance]:
    """Yield of programs those that have all that is told, and those that lack something, in turn as long as there are both.

    Args:
        both: Whether there is something that programs can lack.
    """
    waiting: dict[bool, deque[Instance]] = {True: deque(), False: deque()}
    turn = True
    for x in programs:
        waiting[not both or holds(x)].append(x)
        while waiting[turn]:
            yield waiting[turn].popleft()
            turn = not (turn and both)
    yield from (x for of in waiting.values() for x in of)
