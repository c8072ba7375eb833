"""Inputs that break exactly one constraint (DocTer's VI mode): they may only show that the library or a compiler dies."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping

import numpy as np

from opera.programs.values import Named, Tensor, Value
from opera.sources.docter import make
from opera.sources.docter.check import broken
from opera.sources.docter.constraints import CATEGORIES, Api, Parameter
from opera.sources.docter.make import Unsatisfied
from opera.sources.docter.terms import Unbound, Values

TRIES = 24
_OTHER = ("bool", "int64", "uint8", "float32", "float64", "complex64")


class Violator:
    """Breaks one constraint of conforming inputs, another one each time."""

    def __init__(self, api: Api, seed: int) -> None:
        self.api, self._seed = api, seed

    def violate(self, conforming: Mapping[str, Value], number: int) -> tuple[dict[str, Value], str]:
        """Return an input that breaks one constraint, and which (`category of parameter`). Raises Unsatisfied."""
        rng = random.Random(f"{self._seed}/{self.api.title}/violate/{number}")
        targets = [
            (self.api.parameters[name], category)
            for name, value in conforming.items()
            for category, fields in CATEGORIES.items()
            if value is not None and any(self.api.parameters[name].texts.get(field) for field in fields)
        ]
        if not targets:
            raise Unsatisfied("no parameter that is given has a constraint")
        for _ in range(TRIES):
            parameter, category = rng.choice(targets)
            candidates = list(_breaking(rng, parameter, category, conforming))
            if not candidates:
                continue
            made = {**conforming, parameter.name: rng.choice(candidates)}
            if broken(self.api, made) == {(parameter.name, category)}:
                return made, f"{category} of {parameter.name}"
        raise Unsatisfied("no constraint can be broken alone")


def _breaking(rng: random.Random, parameter: Parameter, category: str, values: Mapping[str, Value]) -> Iterator[Value]:
    """Yield values that may break a constraint of one category."""
    old = values[parameter.name]
    match category, old:
        case ("dtype", Tensor()):
            for dtype in _OTHER:
                yield make.retyped(rng, old, dtype)
        case ("dtype", bool()):
            yield from (rng.choice((3, -1)), 0.5, "a")
        case ("dtype", int() | float()):
            yield from (0.5, True, "a", 1 + int(old))
        case ("dtype", str() | Named()):
            yield from (3, 0.5, True)
        case ("structure", Tensor()):
            yield from ([old], {"a": old}, 1)
        case ("structure", list() | tuple()):
            yield {str(i): x for i, x in enumerate(old)}
            yield list(old) if isinstance(old, tuple) else tuple(old)
            yield Tensor.of(np.zeros(len(old), "float32"))
        case ("structure", _):
            yield from ([old], (old,), {"a": old})
        case ("shape", Tensor()):
            for ndim in range(6):
                yield make.reshaped(rng, old, tuple(make.size(rng) for _ in range(ndim)))
            if old.shape:
                yield make.reshaped(rng, old, (*old.shape[:-1], old.shape[-1] + rng.choice((1, 3))))
        case ("shape", list() | tuple()):
            yield type(old)([*old, *old[-1:]])
            yield type(old)(old[:-1])
            yield from (old[0],) if old else ()
        case ("shape", bool() | int() | float()):
            yield from ([old, old], (old, old, old))
        case ("value", _):
            yield from _outside(rng, parameter, old, values)


def _outside(rng: random.Random, parameter: Parameter, old: Value, values: Mapping[str, Value]) -> Iterator[Value]:
    """Yield values out of range, and words at edit distance 1 from those that are allowed."""
    if isinstance(old, str) and parameter.enum:
        word = rng.choice(parameter.enum)
        place = rng.randrange(len(word) + 1)
        yield from (word[:place] + rng.choice("abcxyz_") + word[place:], word[:-1], word.upper())
        return
    scope = Values(values, {})
    for made in parameter.ranges:
        try:
            low, high = scope.bounds(made)
        except Unbound:
            continue
        for number in (low - 1, high + 1, low - 2**31, high + 2**31, low if not made.closed[0] else low - 0.5):
            if abs(number) != float("inf"):
                yield _like(old, number)


def _like(old: Value, number: float) -> Value:
    if isinstance(old, Tensor):
        if "int" in old.dtype or old.dtype == "bool" or old.dtype.startswith("complex"):
            info = np.iinfo(old.dtype) if "int" in old.dtype else np.iinfo("int8")
            number = min(max(int(number), int(info.min)), int(info.max))
        return make.numbers(np.random.Generator(np.random.PCG64(0)), old.dtype, old.shape, number, number)
    if isinstance(old, list | tuple):
        return type(old)([_like(old[0] if old else 0, number), *old[1:]])
    return int(number) if type(old) is int else number
