"""One attempt at a case: what was drawn so far, and the decisions that boundaries are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from opera.sources.sionnx import elements
from opera.sources.sionnx.spec import MAX_RANK, Operand, Spec

LARGEST = {0: 33, 1: 33, 2: 17, 3: 9, 4: 6, 5: 4, 6: 3}
"""The largest size drawn, by the number of dimensions that are drawn together. 33 and 17 are one above the width of vector
units in elements of 8 to 32 bits, so that kernels that go by blocks have a remainder; the others keep a tensor below some
thousand elements, for tests are stored, and run on many compilers."""
USUAL = 6
"""The largest size of a dimension that is on no boundary."""
MAX_ELEMENTS = 1 << 13
"""A case with a tensor of more elements is made anew."""
ODD = 0.12
"""The chance of a boundary where none is asked for."""


class Reject(Exception):
    """The attempt is no valid case; another one is made."""


class Uniform:
    """Uniform numbers from a numpy generator, drawn by the thousand: a call of numpy costs more than the number."""

    def __init__(self, generator: np.random.Generator, block: int = 1024) -> None:
        self.generator, self._block = generator, block
        self._left: list[float] = []

    def __call__(self) -> float:
        if not self._left:
            self._left = self.generator.random(self._block).tolist()
        return self._left.pop()

    def whole(self, low: int, high: int) -> int:
        """Return a whole number from low to high, both included."""
        return low + int(self() * (high - low + 1))

    def one(self, items: Any) -> Any:
        return items[int(self() * len(items))]


class Options(msgspec.Struct, frozen=True):
    """What a user asks for besides: dimensions of size 0, and NaN and infinities among the elements."""

    empty: bool = False
    special: bool = False


class Drawn(msgspec.Struct):
    """An operand of a case, its elements made when they are first asked for.

    Attributes:
        name: Formal name.
        type: As of `Input`.
        shape: Of a tensor; of a sequence, those of its items.
        value: Elements; None while they are not made.
        held: Whether an optional holds something.
        span, what: Range of the elements, and the boundary that they are on.
    """

    name: str
    type: str
    shape: list[int]
    value: Any = None
    items: list[Drawn] | None = None
    held: bool = True
    span: Any = None
    what: str = ""
    distinct: bool = False


class Scene:
    """An attempt.

    Attributes:
        spec: The resolved specification.
        names: Symbols, attributes and operands by name.
        types: Type variable → type.
        forced: Part → what it has to be.
        boundaries: Part → what it was decided to be.
        part, subject: What is drawn now, and the attribute, input or symbol that it is drawn for.
    """

    def __init__(
        self, spec: Spec, uniform: Uniform, options: Options, forced: dict[str, str], types: dict[str, str],
        known: dict[str, dict[str, int]], subjects: dict[str, str], steady: Uniform | None = None,
        attributes: frozenset[str] = frozenset(),
    ) -> None:  # fmt: skip
        self.spec, self.uniform, self.options, self.forced = spec, uniform, options, forced
        self.types, self.known, self.subjects, self.steady, self.attributes = types, known, subjects, steady, attributes
        self.names: dict[str, Any] = {"since": spec.since, **types}
        self.boundaries: dict[str, str] = {}
        self.part = self.subject = ""
        self.decided: dict[int, str] = {}
        self.draw_operand: Callable[[str], Any] = lambda name: None

    def source(self) -> Uniform:
        """The numbers of the part that is drawn now: in smoke mode, those of attributes are the same in every case."""
        return self.steady if self.steady is not None and self.subject in self.attributes else self.uniform

    def decide(self, part: str, options: list[str], odd: float = ODD) -> str:
        """Return one of the options, "" for none of them.

        What is forced is taken; else a boundary is drawn with the chance `odd`. Options are noted, so that later cases
        force each.
        """
        if not options:
            return ""
        table = self.known.setdefault(part, {})
        self.subjects.setdefault(part, self.subject)
        for option in options:
            table.setdefault(option, 0)
        wanted = self.forced.get(part)
        if wanted is not None:
            if wanted in options:
                return self.note(part, wanted)
            if odd < 1:
                return ""
        uniform = self.source()
        if uniform() < odd:
            return self.note(part, uniform.one(options))
        return ""

    def note(self, part: str, option: str) -> str:
        self.boundaries[part] = option
        return option

    def choice(self, items: list[Any], labels: list[str]) -> Any:
        """Return one of several values, each of which is a boundary of its own."""
        option = self.decide(self.part, labels, 1.0)
        return items[labels.index(option)]

    def number(self, low: Any, high: Any, key: int) -> Any:
        """Return a number from low to high, both included; `key` tells the ranges of a statement apart."""
        floats = isinstance(low, float) or isinstance(high, float)
        if high < low:
            raise Reject(f"nothing lies between {low} and {high}")
        if high == low:
            return low
        option = self.decided.get(key)
        inner = [(x, float(x) if floats else int(x)) for x in ("0", "1", "-1") if low < int(x) < high]
        if option is None:
            names = ["min", "max", *(name for name, _ in inner), *(["-0.0"] if floats and low <= 0 <= high else [])]
            option = self.decided[key] = self.decide(self._key(key), names)
        match option:
            case "min":
                return low
            case "max":
                return high
            case "-0.0":
                return -0.0
        for name, value in inner:
            if name == option:
                return value
        uniform = self.source()
        return low + uniform() * (high - low) if floats else uniform.whole(low, high)

    def _key(self, key: int) -> str:
        """Return the part's name, with a number where a statement draws from several ranges."""
        place = len(self.decided)
        return self.part if not place else f"{self.part}.{place + 1}"

    def sizes(self, count: int, least: int = 1, most: int | None = None) -> list[int]:
        """Return the sizes of dimensions that are drawn together."""
        if count <= 0:
            return []
        high = LARGEST[min(count, MAX_RANK)] if most is None else most
        low = min(least, high)
        zero = self.options.empty and least <= 1
        option = self.decide(self.part, [str(low), *(["max"] if high > low else []), *(["0"] if zero else [])])
        usual = max(low, min(high, USUAL))
        uniform = self.source()
        sizes = [uniform.whole(min(low + 1, usual), usual) for _ in range(count)]
        if option == str(low):
            return [low] * count
        if option == "max":
            sizes[uniform.whole(0, count - 1)] = high
        elif option == "0":
            sizes[uniform.whole(0, count - 1)] = 0
        return sizes

    def size(self, least: int = 1, most: int = 9) -> int:
        """Return the size of one dimension."""
        return self.sizes(1, least, most)[0]

    def rank(self, low: int, high: int, part: str = "") -> int:
        """Return a rank."""
        if low > high:
            raise Reject(f"no rank lies between {low} and {high}")
        if low == high:
            return low
        named = part or f"rank of {self.part.removeprefix('shape of ')}"
        option = self.decide(named, ["min", "max"])
        return {"min": low, "max": high}.get(option) if option else self.source().whole(low, min(high, max(low, 4)))  # type: ignore[return-value]

    def broadcast(self, shape: list[int]) -> list[int]:
        """Return a shape that broadcasts to another one; before opset 7, operators took equal shapes only."""
        if self.spec.since < 7 and not self.spec.domain:
            return list(shape)
        options = ["same", *(["scalar", "ones", "some ones", "shorter"] if shape else [])]
        option = self.decide(f"broadcast of {self.part.removeprefix('shape of ')}", options, 0.8)
        uniform = self.uniform
        match option:
            case "scalar":
                return []
            case "ones":
                return [1] * len(shape)
            case "some ones":
                sizes = [1 if uniform() < 0.5 else x for x in shape]
                sizes[uniform.whole(0, len(shape) - 1)] = 1
                return sizes
            case "shorter":
                return shape[uniform.whole(1, len(shape)) :]
        return list(shape)

    def elements(self, drawn: Drawn) -> Any:
        """Return the elements of an operand, made now if they were not."""
        if drawn.value is None and drawn.held:
            if drawn.items is not None:
                drawn.value = [self.elements(item) for item in drawn.items]
            else:
                dtype = drawn.type.rpartition("(")[2].rstrip(")")
                made = elements.array(
                    self.uniform.generator, dtype, drawn.shape, drawn.span, drawn.what, drawn.distinct
                )
                drawn.value = made
        return drawn.value

    def operand(self, name: str) -> Operand | None:
        return next((x for x in self.spec.inputs if x.name == name), None)
