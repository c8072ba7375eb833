"""From which number on a program fails, where one number decides alone: between the largest that passes and the smallest that
fails others are asked about, again and again. OpenVINO's inverse error function is wrong beyond 0.9966, on either side of 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias, cast

import numpy as np

from opera.programs.program import Instance, Program
from opera.programs.values import Tensor
from opera.triage.conditions.features import Feature
from opera.triage.conditions.labels import Labelled
from opera.triage.conditions.near import tensor
from opera.triage.conditions.varied import FRACTIONS, WHOLE, filled
from opera.triage.shrink import simpler, smaller

Asked: TypeAlias = Callable[[Iterable[Program]], list[Labelled]]
OWN, STEPS, FROM_0, AT_ONCE, CLOSE = 3, 6, 2, 3, 1e-3
"""Numbers of the program itself that are tried; how often others are asked between two, of which one is 0, and how many at
once; how close, relatively, the two are when it ends."""
NUMBER = re.compile(r"an? (?:negative |positive )?number")
"""How numbers of inputs are told."""
SIZE, PLAIN = "a number of absolute value", "a number"
READ: Mapping[str, Callable[[float], float]] = {SIZE: abs, PLAIN: float}
"""How numbers are read that are compared with an edge; by their size only where both signs fail."""


class Edge(NamedTuple):
    """Between which numbers a program fails: how they are read, the next ones that pass, and the least and largest that fail.

    What passes below is minus infinity, and above infinity, where nothing is known to pass there.
    """

    read: str
    below: float
    least: float
    most: float
    above: float

    @property
    def gaps(self) -> list[tuple[float, float]]:
        """Return the ends that are not told closely yet: what passes there, and what fails."""
        pairs = [(self.below, self.least), (self.above, self.most)]
        return [(x, y) for x, y in pairs if np.isfinite(x) and abs(x - y) > CLOSE * max(abs(x), abs(y))]

    def between(self, whole: bool) -> list[float]:
        """Return numbers in these gaps."""
        inner = [x for ends in self.gaps for x in np.linspace(*ends, AT_ONCE + 2)[1:-1]]
        return sorted({float(round(x)) if whole else float(f"{x:.6g}") for x in inner})

    def feature(self, name: str) -> Feature:
        """Return whether an input of this name holds a number between the two, and how that is told."""
        low, high = (f"{x:.4g}" for x in (self.below, self.above))
        zero = self.below == 0 and self.above == np.inf
        if zero or (self.above == 0 and self.below == -np.inf):
            sign = "positive" if zero else "negative"
            told = "a number other than 0" if self.read == SIZE else f"a {sign} number"
        elif np.isfinite(self.below) and np.isfinite(self.above):
            told = f"{self.read} between about {low} and {high}"
        else:
            told = f"{self.read} {f'above about {low}' if np.isfinite(self.below) else f'below about {high}'}"
        holds = partial(_between, name=name, read=READ[self.read], below=self.below, above=self.above)
        return Feature(f"{told} in an input", holds)


def _between(program: Program, name: str, read: Callable[[float], float], below: float, above: float) -> bool:
    held = tensor(program, name)
    return isinstance(held, Tensor) and any(below < read(x) < above for x in _numbers(held))


def _numbers(held: Tensor) -> list[float]:
    plain = held.dtype not in ("string", "bool") and not held.dtype.startswith("complex")
    return [float(x) for x in simpler.numbers(held).ravel().tolist()] if plain else []


def of_input(program: Instance, name: str, asked: Asked) -> Iterator[Labelled | Edge]:
    """Yield programs in which one number is all elements of an input, with their labels, and at last the edge, if there is one.
    Raises Spent."""
    held = tensor(program, name)
    if not isinstance(held, Tensor) or not 0 < held.array().size <= simpler.MANY:
        return
    own = sorted({x for x in _numbers(held) if np.isfinite(x)}, key=lambda x: (-abs(x), x))[:OWN]

    def read(made: Program) -> float:
        put = tensor(made, name)
        return _numbers(put)[0] if isinstance(put, Tensor) else 0.0

    yield from _of(lambda x: filled(program, name, x), read, own, "float" not in held.dtype, asked)


def of_parameter(program: Instance, name: str, default: object, asked: Asked) -> Iterator[Labelled | Edge]:
    """Yield a call with other numbers of a parameter, with their labels, and at last the edge, if there is one; none is looked
    for beside the default. Raises Spent."""
    own = program.params.get(name)
    if isinstance(own, int | float) and not isinstance(own, bool):
        kind = type(own)

        def read(made: Program) -> float:
            return cast(float, made.instances()[0].params[name])

        def make(number: float) -> Program:
            return smaller.with_param(program, name, kind(number)) or program

        yield from _of(make, read, [own], kind is int, asked, default)


def _of(
    make: Callable[[float], Program | None],
    read: Callable[[Program], float],
    own: Sequence[float],
    whole: bool,
    asked: Asked,
    default: object = None,
) -> Iterator[Labelled | Edge]:
    known = dict[float, bool]()

    def ask(numbers: Iterable[float]) -> list[Labelled]:
        made = {y.id: y for x in numbers if x not in known and (y := make(x)) is not None}
        found = asked(list(made.values()))
        known.update((read(x.program), x.fails) for x in found)  # as its dtype holds it
        return found

    yield from ask(own)
    begun = next((x for x in own if known.get(x)), None)
    if begun is None:
        return
    yield from ask([-begun, 2 * begun, *(() if whole else (begun / 2,)), *WHOLE, *(() if whole else FRACTIONS)])
    for step in range(STEPS):
        edge = _edge(known, least=1)
        if edge is None or (step >= FROM_0 and all(x in (0, default) for x, _ in edge.gaps)):
            break
        if not (more := ask(edge.between(whole))):
            break
        yield from more
    if (edge := _edge(known, least=2)) is not None:
        yield edge


def _edge(known: Mapping[float, bool], least: int) -> Edge | None:
    """Return between which numbers a program fails, and with no other, where so many fail, at least, and two pass."""
    bad, good = ([x for x, fails in known.items() if fails is of] for of in (True, False))
    if len(bad) < least or len(good) < 2:
        return None
    for says, read in READ.items():
        first, last = min(map(read, bad)), max(map(read, bad))
        passing = list(map(read, good))
        if not any(first <= x <= last for x in passing) and (read is not abs or min(bad) < 0 < max(bad)):
            below = max((x for x in passing if x < first), default=-np.inf)
            above = min((x for x in passing if x > last), default=np.inf)
            return Edge(says, float(below), first, last, float(above))
    return None
