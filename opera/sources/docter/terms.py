"""What terms, shapes and dtypes mean within one input."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from opera.programs.values import Tensor, Value
from opera.sources.docter.constraints import (
    MAX_NDIM,
    Interval,
    Ndim,
    Number,
    Operation,
    Parameter,
    Reference,
    Rest,
    Shape,
    Term,
    Variable,
)

FLOATS = ("float32", "float64", "float16", "bfloat16")
INTEGERS = ("int64", "int32", "int16", "int8", "uint8")
WIDE = ("uint16", "uint32", "uint64")
COMPLEX = ("complex64", "complex128")
GROUPS = {
    "int": INTEGERS,
    "float": FLOATS,
    "numeric": INTEGERS + FLOATS,
    "scalar": INTEGERS + FLOATS,
    "number": INTEGERS + FLOATS,
    "complex64": COMPLEX,
}
"""dtype names that stand for several."""
TENSOR_DTYPES = frozenset(INTEGERS + FLOATS + COMPLEX + WIDE + ("bool",))


class Unbound(Exception):
    """A term speaks of something that has no value (yet)."""


class Values:
    """The values and variables of one input, as terms see them.

    Attributes:
        values: Parameter → value, of those that were given.
        variables: Free variable → its number.
        fresh: Makes the number of a variable that has none; without it, such a term is Unbound.
    """

    def __init__(
        self, values: Mapping[str, Value], variables: dict[str, int], fresh: Callable[[], int] | None = None
    ) -> None:
        self.values, self.variables, self.fresh = values, variables, fresh

    def number(self, term: Term) -> int:
        """Return the number that a term stands for. Raises Unbound."""
        match term:
            case Number(value):
                return value
            case Variable(name):
                return self._variable(name)
            case Reference(fact, name):
                return self._fact(fact, name)
            case Operation(sign, left, right):
                return _compute(sign, self.number(left), self.number(right))
        raise Unbound

    def _variable(self, name: str) -> int:
        stated = self.values.get(name)
        if type(stated) is int:
            return stated
        if name not in self.variables:
            if self.fresh is None:
                raise Unbound
            self.variables[name] = self.fresh()
        return self.variables[name]

    def _fact(self, fact: str, name: str) -> int:
        value = self.values.get(name)
        match fact, value:
            case "value", int():
                return int(value)
            case "len", list() | tuple() | str():
                return len(value)
            case "len", Tensor(shape=shape) if shape:
                return shape[0]
            case "ndim", Tensor(shape=shape):
                return len(shape)
            case "max_value", Tensor() if math.prod(value.shape):
                return int(value.numbers().max())
            case "max_value", int():
                return int(value)
        if value is None and fact == "value":  # a parameter that was left out: whatever fits the others
            return self._variable(name)
        raise Unbound

    def sizes(self, shape: Shape) -> tuple[int | None, ...]:
        """Return the sizes that a shape states, None for any number of dimensions. Raises Unbound."""
        made: list[int | None] = []
        for term in shape.terms:
            match term:
                case Rest():
                    made.append(None)
                case Reference("shape", name):
                    value = self.values.get(name)
                    if not isinstance(value, Tensor):
                        raise Unbound
                    made += value.shape
                case _:
                    made.append(self.number(term))
        return tuple(made)

    def ndims(self, parameter: Parameter) -> frozenset[int] | None:
        """Return the numbers of dimensions up to MAX_NDIM that a parameter may have; None if any. Raises Unbound."""
        stated: set[int] = set()
        for ndim in parameter.ndims:
            stated |= self._counts(ndim)
        lengths = [len(shape.terms) for shape in parameter.shapes if not _open(shape)]
        closed = len(lengths) == len(parameter.shapes)
        if parameter.ndims:
            return frozenset(stated)
        if lengths and closed:
            return frozenset(lengths)
        return None

    def _counts(self, ndim: Ndim) -> set[int]:
        if ndim.sign == "?":
            return set(range(MAX_NDIM + 1))
        number = self.number(ndim.term)
        if ndim.sign == "=":
            return {number}
        tests: dict[str, Callable[[int], bool]] = {
            ">": lambda x: x > number, ">=": lambda x: x >= number, "<": lambda x: x < number, "<=": lambda x: x <= number,
        }  # fmt: skip
        return {x for x in range(MAX_NDIM + 1) if tests[ndim.sign](x)}

    def bounds(self, interval: Interval) -> tuple[float, float]:
        """Return both ends of a range. Raises Unbound."""
        low, high = (
            float(x) if isinstance(x, int | float) else float(self.number(x)) for x in (interval.low, interval.high)
        )
        return low, high


def _open(shape: Shape) -> bool:
    return any(isinstance(term, Rest) or (isinstance(term, Reference) and term.fact == "shape") for term in shape.terms)


def _compute(sign: str, left: int, right: int) -> int:
    if sign == "/":
        if not right or left % right:
            raise Unbound
        return left // right
    return {"+": left + right, "-": left - right, "*": left * right}[sign]


def inside(number: float, low: float, high: float, interval: Interval) -> bool:
    """Return whether a number lies in a range with these ends."""
    above = number >= low if interval.closed[0] else number > low
    below = number <= high if interval.closed[1] else number < high
    return above and below and (not interval.whole or number == int(number))


def tensor_dtypes(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the dtypes of tensors that dtype names stand for, each once."""
    found = [x for name in names for x in GROUPS.get(name, (name,))]
    return tuple(x for x in dict.fromkeys(found) if x in TENSOR_DTYPES)
