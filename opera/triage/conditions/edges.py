"""From which number on a program fails, where one number decides alone: between the largest that passes and the smallest that
fails others are asked about, again and again. OpenVINO's inverse error function is wrong beyond 0.9966, on either side of 0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias, cast

import numpy as np

from opera.programs.program import Instance, Program
from opera.programs.values import Tensor
from opera.triage.conditions.forms import tensor
from opera.triage.conditions.labels import Labelled
from opera.triage.conditions.stated import Feature
from opera.triage.conditions.varied import EXACT, FRACTIONS, WHOLE, filled
from opera.triage.shrink import simpler, smaller

Asked: TypeAlias = Callable[[Iterable[Program]], list[Labelled]]
OWN, STEPS, FROM_0, AT_ONCE, CLOSE, DIGITS = 3, 6, 2, 3, 5e-3, 2
"""Numbers of the program itself that are tried; how often others are asked between two, of which one is 0, and how many at
once; how close, relatively, the two are when it ends; and with how many digits they are told, where these tell them apart."""
FAR = (0.01, 5.0, 100.0)
"""Numbers of the sign of one that fails: what is told of a sign must hold of small ones and of large ones."""
NUMBER = re.compile(r"an? (?:large )?(?:negative |positive )?number")
"""How numbers of inputs are told."""
SIZE, PLAIN = "a number of absolute value", "a number"
READ: Mapping[str, Callable[[float], float]] = {SIZE: abs, PLAIN: float}
"""How numbers are read that are compared with an edge; by their size only where both signs fail."""


class Edge(NamedTuple):
    """Between which numbers a program fails: how they are read, the next ones that pass, and the least and largest that fail.

    What passes below is minus infinity, and above infinity, where nothing is known to pass there. `soft`: whether numbers
    between what passes and what fails say nothing, for there is no border: a loss that grows.
    """

    read: str
    below: float
    least: float
    most: float
    above: float
    soft: bool = False

    @property
    def gaps(self) -> list[tuple[float, float]]:
        """Return the ends that are not told closely yet: what passes there, and what fails."""
        pairs = [(self.below, self.least), (self.above, self.most)]
        return [(x, y) for x, y in pairs if np.isfinite(x) and abs(x - y) > CLOSE * max(abs(x), abs(y))]

    def leaves_open(self, number: float) -> bool:
        """Whether a number lies between one that passes and one that fails."""
        x, ends = READ[self.read](number), ((self.below, self.least), (self.most, self.above))
        return any(np.isfinite(y) and np.isfinite(z) and y < x < z for y, z in ends)

    def between(self, whole: bool) -> list[float]:
        """Return numbers in these gaps."""
        inner = [x for ends in self.gaps for x in np.linspace(*ends, AT_ONCE + 2)[1:-1]]
        return sorted({float(round(x)) if whole else float(f"{x:.6g}") for x in inner})

    def feature(self, name: str) -> Feature:
        """Return whether an input of this name holds a number between the two, and how that is told."""
        low, high = _rounded(self.below, self.least), _rounded(self.above, self.most)
        zero = self.below == 0 and self.above == np.inf
        if zero or (self.above == 0 and self.below == -np.inf):
            sign = "positive" if zero else "negative"
            told = "a number other than 0" if self.read == SIZE else f"a {sign} number"
        elif self.soft and (large := self._large):
            told = large
        elif np.isfinite(self.below) and np.isfinite(self.above):
            told = f"{self.read} between about {low} and {high}"
        else:
            told = f"{self.read} {f'above about {low}' if np.isfinite(self.below) else f'below about {high}'}"
        holds = partial(_between, name=name, read=READ[self.read], below=self.below, above=self.above)
        return Feature(f"{told} in an input", holds)

    def of(self, name: str, value: Callable[[Program], object]) -> Feature | None:
        """Return whether a parameter of this name is between the two, and how that is told; None where its size is between two
        numbers. `value` tells what it is.
        """
        low, high = _rounded(self.below, self.least), _rounded(self.above, self.most)
        ends = np.isfinite(self.below), np.isfinite(self.above)
        if self.read == SIZE:
            told = {(True, False): f"> {low} or < -{low}", (False, True): f"> -{high} and < {high}"}.get(ends, "")
        else:
            told = " and ".join(x for x, end in zip((f"> {low}", f"< {high}"), ends, strict=True) if end)
        holds = partial(_lies, value=value, read=READ[self.read], below=self.below, above=self.above)
        return Feature(f"{name} {told}", holds) if told else None

    @property
    def _large(self) -> str:
        """How numbers are told on one side of 0, from none on that can be told; empty where they are others."""
        if np.isfinite(self.below) and self.above == np.inf and self.below >= 0:
            return "a number of large absolute value" if self.read == SIZE else "a large number"
        return "a large negative number" if self.below == -np.inf and self.above <= 0 else ""


def _rounded(passes: float, fails: float) -> str:
    """Return a number that passes with as few digits, two at least, as leave it on its side of the one that fails."""
    for digits in range(DIGITS, 17):
        told = f"{passes:.{digits}g}"
        if not np.isfinite(passes) or (float(told) < fails if passes < fails else float(told) > fails):
            whole = digits > DIGITS + 1 and float(passes).is_integer()
            return f"{passes:.0f}" if whole else told
    return f"{passes:.17g}"


def _between(program: Program, name: str, read: Callable[[float], float], below: float, above: float) -> bool:
    held = tensor(program, name)
    return isinstance(held, Tensor) and any(below < read(x) < above for x in _numbers(held))


def _lies(
    program: Program,
    value: Callable[[Program], object],
    read: Callable[[float], float],
    below: float,
    above: float,
) -> bool:
    own = value(program)
    return isinstance(own, int | float) and not isinstance(own, bool) and below < read(own) < above


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
    """Yield a call with other numbers of a parameter, or its default, with their labels, and at last the edge, if there is
    one; none is looked for beside a default that passes. Raises Spent."""
    own = program.params.get(name, default)
    if isinstance(own, int | float) and not isinstance(own, bool):
        kind = type(own)

        def read(made: Program) -> float:
            return cast(float, made.instances()[0].params.get(name, own))

        def make(number: float) -> Program:
            put = smaller.with_param if name in program.params else smaller.given
            return put(program, name, kind(number)) or program

        yield from _of(make, read, [own], kind is int, asked, default)


def _of(
    make: Callable[[float], Program | None],
    read: Callable[[Program], float],
    own: Sequence[float],
    whole: bool,
    asked: Asked,
    default: object = None,
) -> Iterator[Labelled | Edge]:
    known, silent = dict[float, bool](), set[float]()

    def ask(numbers: Iterable[float]) -> list[Labelled]:
        made = {y.id: y for x in numbers if x not in known and (y := make(x)) is not None}
        found = asked(list(made.values()))
        known.update((read(x.program), x.fails) for x in found)  # as its dtype holds it
        silent.update({read(x) for x in made.values()} - known.keys())
        return found

    yield from ask(own)
    begun = next((x for x in own if known.get(x)), None)
    if begun is None:
        return
    near = [] if whole else [begun / 2, *FRACTIONS, *(math.copysign(x, begun) for x in FAR)]
    exact = [math.copysign(x, begun) for x in (EXACT, EXACT + 1, EXACT + 2, 2 * EXACT, 2 * EXACT + 2)]
    odd = exact if whole and abs(begun) >= EXACT else []
    yield from ask([*odd, -begun, 2 * begun, *WHOLE, *near])
    for step in range(STEPS):
        edge = _edge(known, least=1)
        if edge is None or (step >= FROM_0 and all(x in (0, default) for x, _ in edge.gaps)):
            break
        if not (more := ask(edge.between(whole))):
            break
        yield from more
    if (edge := _edge(known, least=2)) is not None:
        yield edge._replace(soft=any(map(edge.leaves_open, silent)))


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
