"""Cases as the published code makes them, which differs from the paper: see docs/sionnx.md. For its specifications alone.

Types of operands are zipped, not multiplied; a node has ten tests; ranks are drawn without replacement; nothing is put on a
boundary. Corner cases are written by operator, and some of what they make is no valid call: the checker and the references
tell. Large tensors are kept by seed and range, as everywhere in opera.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from opera.sources.sionnx import skeleton
from opera.sources.sionnx.case import Case, Given, Input
from opera.sources.sionnx.generate import SMOKE
from opera.sources.sionnx.spec import Attribute, Operand, Spec

TESTS = 10
"""Tests of one node."""
LARGEST = {0: 200, 1: 200, 2: 200, 3: 40, 4: 25}
"""The largest size of a dimension by rank; 10 above."""
INTEGERS, FLOATS = (-128, 127), (-500.0, 500.0)
VARIADIC = 10
"""Inputs of a variadic operator at most."""
LETTERS = np.array(list("abcdefgh"), dtype=object)


def cases(spec: Spec, mode: str, count: int, seed: int) -> Iterator[Case]:
    """Yield about `count` cases of a specification that is not completed by a schema: its version is in `since`."""
    key = int.from_bytes(f"{spec.signature}-{spec.since}".encode()[-24:], "big")
    chance = _Chance(np.random.Generator(np.random.PCG64([seed, key])))
    number = 0
    for types, times in _combinations(spec, count, mode == SMOKE):
        for _ in range(times):
            node = _Node(spec, types, chance)
            for _ in range(TESTS if spec.inputs else 1):
                yield node.case(number)
                number += 1


def _combinations(spec: Spec, count: int, smoke: bool) -> Iterator[tuple[list[str], int]]:
    """Yield the types of the operands, and how many nodes are made of them.

    The lists are zipped; of the operands whose list is shorter or longer than the longest, the first one is varied alone.
    """
    lists = [x.types for x in spec.inputs or spec.outputs]
    longest = max(map(len, lists), default=0)
    times = max(1, count // (TESTS * max(longest, 1)))
    odd = next((place for place, types in enumerate(lists) if len(types) != longest), None)
    for place in range(longest):
        types = [found[place] if len(found) == longest else found[0] for found in lists]
        yield types, times
        if smoke:
            return
        for other in lists[odd][1:] if odd is not None else ():
            types = list(types)
            types[odd or 0] = other
            yield types, times


class _Chance:
    """Chance as the published code has it."""

    def __init__(self, generator: np.random.Generator) -> None:
        self.generator = generator

    def whole(self, low: int, high: int) -> int:
        return int(self.generator.integers(low, max(low, high) + 1))

    def flag(self) -> bool:
        return self.whole(0, 10) > 5

    def real(self, low: float, high: float) -> float:
        return float(self.generator.uniform(low, high))


class _Node:
    """One node: its attributes are drawn once, its inputs for every test."""

    def __init__(self, spec: Spec, types: list[str], chance: _Chance) -> None:
        self.spec, self.types, self.chance = spec, types, chance
        self.base = skeleton.skeleton(spec.operator, spec.since, spec.domain)
        self.seen: dict[int, set[int]] = {}
        self.given: dict[str, Any] = {}
        self.values: dict[str, Any] = {}
        self.axis: int | None = None
        self.variadic = bool(spec.inputs) and spec.inputs[0].index == -1
        self.inputs = chance.whole(1, VARIADIC) if self.variadic else len(spec.inputs)
        self.broadcasts, self.nonzero = "broadcasting" in spec.properties, "nonzero" in spec.properties
        vector = chance.whole(0, max((len(x.types) for x in spec.attributes), default=1) - 1)
        for attribute in spec.attributes:
            self._attribute(attribute, vector)

    # ------------------------------------------------------------------ attributes

    def _attribute(self, attribute: Attribute, vector: int) -> None:
        name, default = attribute.name, attribute.default
        if self.chance.flag() and (default is not None or attribute.dependent):
            self.values[name] = default
            if name == "axis" and default is not None:
                self.axis = int(default)
            return
        kind = attribute.types[vector if len(attribute.types) > vector + 1 else 0]
        value = self._value(attribute, kind)
        if self.spec.operator == "LRN" and name == "size":
            value += value % 2 == 0
        if name in ("axis", "axes"):
            self.axis = max(value) if isinstance(value, list) else value
        self.given[name] = self.values[name] = value

    def _value(self, attribute: Attribute, kind: str) -> Any:
        if attribute.choices:
            return attribute.choices[self.chance.whole(0, len(attribute.choices) - 1)]
        if kind.startswith("tensor"):
            return self._constant()
        base, _, length = kind.partition("_v")
        low, high = _range(attribute, base, self.chance)
        if not length:
            return self._one(base, low, high)
        found: list[Any] = []
        while len(found) < int(length):
            item = self._one(base, low, high)
            if attribute.name != "axes" or item not in found or high - low + 1 < int(length):
                found.append(item)
        return found

    def _one(self, base: str, low: float, high: float) -> Any:
        if base == "bool":
            return int(self.chance.flag())
        return self.chance.whole(int(low), int(high)) if "int" in base else self.chance.real(low, high)

    def _constant(self) -> Any:
        output = self.spec.outputs[0]
        rank = self.chance.whole(output.min_rank, output.max_rank)
        shape = [self.chance.whole(1, _largest(rank)) for _ in range(rank)]
        return _normal(self.chance.generator, shape, self.types[0])

    # ------------------------------------------------------------------ inputs

    def case(self, number: int) -> Case:
        """Return a test of this node."""
        shapes: list[list[int]] = []
        inputs: list[Input | None] = []
        for place in range(self.inputs):
            operand = self.spec.inputs[0 if self.variadic else place]
            dtype = self.types[0 if self.variadic else place]
            value = self._input(place, operand, dtype, shapes)
            shapes.append(list(value.shape))
            inputs.append(Input(self._name(place), dtype, value))
        kinds = {x.name: x.types[0] for x in self.base.attributes}
        attributes = {name: _given(kinds[name], value) for name, value in self.given.items()}
        outputs = tuple(x.name for x in self.base.outputs[: max(1, len(self.spec.outputs))])
        types = {f"type {place}": dtype for place, dtype in enumerate(self.types)} if self.spec.inputs else {}
        return Case(
            self.spec.operator,
            self.spec.domain,
            self.spec.since,
            attributes,
            tuple(inputs),
            outputs,
            types,
            ("", ""),
            number,
        )

    def _name(self, place: int) -> str:
        known = self.base.inputs
        return known[place].name if place < len(known) else f"{known[-1].name}_{place - len(known) + 1}"

    def _input(self, place: int, operand: Operand, dtype: str, shapes: list[list[int]]) -> Any:
        generator = self.chance.generator
        if self.spec.operator == "Reshape" and place:
            return np.array(self._reshaped(shapes[0]), dtype)
        rank = self._rank(place, operand, shapes)
        if operand.normal and not self.nonzero:
            if self.spec.operator == "Expand" and place == 1:
                return np.array(self._sizes(place, rank, shapes) if rank else 1, dtype)
            shape = self._sizes(place, rank, shapes)
            return _normal(generator, shape, dtype)
        shape = [self._plain_size(place, k, rank, shapes) for k in range(rank)]
        if self.nonzero:
            return self._without_zero(shape, dtype)
        low, high = _range(operand, dtype, self.chance, self._dependent(place, shapes))
        if low == high:
            return np.full(shape, low).astype(dtype)
        if "int" in dtype:
            return generator.integers(int(low), max(int(high), int(low) + 1), shape).astype(dtype)
        return np.asarray(generator.uniform(low, high, shape)).astype(dtype)

    def _rank(self, place: int, operand: Operand, shapes: list[list[int]]) -> int:
        low, high = operand.min_rank, operand.max_rank
        if operand.axis_bound and self.axis is not None:
            low = max(low, self.axis + 1 if self.axis >= 0 else -self.axis)
        if self.spec.operator == "AveragePool":
            low = high = len(self.values.get("pads") or [0] * 4) // 2 + 2
        if place and self.broadcasts and (self.inputs > 2 or self.spec.operator == "PRelu"):
            high = len(shapes[0])
        if place and self.spec.operator in ("Concat", "MatMul"):
            return len(shapes[0])
        seen = self.seen.setdefault(place, set())
        left = [rank for rank in range(low, high + 1) if rank not in seen]
        if not left:
            seen.clear()
            left = list(range(low, max(low, high) + 1))
        rank = left[self.chance.whole(0, len(left) - 1)]
        seen.add(rank)
        return rank

    def _plain_size(self, place: int, k: int, rank: int, shapes: list[list[int]]) -> int:
        if place and self.broadcasts and k >= rank - len(shapes[place - 1]):
            return 1 if self.chance.flag() else shapes[place - 1][k - rank + len(shapes[place - 1])]
        if place == 1 and self.spec.operator == "Tile":
            return len(shapes[0])
        return self.chance.whole(1, _largest(rank))

    def _without_zero(self, shape: list[int], dtype: str) -> Any:
        """Return -100 .. -1 with either sign, or 1 .. 100."""
        generator = self.chance.generator
        if dtype.startswith("uint"):
            return (100 - generator.integers(0, 100, shape)).astype(dtype)
        drawn = generator.integers(-100, 0, shape) if "int" in dtype else generator.uniform(-100, 0, shape)
        return np.asarray(-drawn if self.chance.flag() else drawn).astype(dtype)

    def _dependent(self, place: int, shapes: list[list[int]]) -> float:
        """Return the greatest element where the specification says `?`: an index."""
        if self.spec.operator == "Gather" and place and self.axis is not None and shapes[0]:
            return shapes[0][self.axis] - 1
        return 0

    def _sizes(self, place: int, rank: int, shapes: list[list[int]]) -> list[int]:
        return [self._size(place, k, rank, _largest(rank), shapes) for k in range(rank)]

    def _size(self, place: int, k: int, rank: int, largest: int, shapes: list[list[int]]) -> int:
        """Return the size of a dimension: the corner cases of operators."""
        whole, first = self.chance.whole, shapes[0] if shapes else []
        if place and self.broadcasts and k >= rank - len(first):
            return 1 if self.chance.flag() else first[k - rank + len(first)]
        match self.spec.operator:
            case "AveragePool":
                return self._pooled(k, largest)
            case "BatchNormalization":
                return first[1] if place else [1, whole(1, 10)][k] if k < 2 else whole(1, largest)
            case "Compress" if place == 1:
                total = int(np.prod(first)) if self.axis is None else first[self.axis]
                return whole(1, total)
            case "Concat" if place:
                return whole(1, largest) if k == (self.axis or 0) % rank else first[k]
            case "DepthToSpace" if k == 1:
                return int(self.values["blocksize"]) ** 2 * whole(1, 5)
            case "Gemm" if place:
                rows, columns = (bool(self.values.get(x)) for x in ("transA", "transB"))
                inner, outer = (0, 1) if rows else (1, 0)
                if place == 1:
                    return first[inner] if (k == 0) != columns else whole(1, largest)
                return first[outer] if k == 0 else shapes[1][0 if columns else 1]
            case "MatMul" if place:
                if k >= rank - 2 and rank > 1:
                    return first[rank - 2] if k == rank - 1 else first[rank - 1]
                return first[k]
            case "Conv":
                kernel = self.values["kernel_shape"]
                if place == 2:
                    return shapes[1][0]
                return 1 if k < 2 else kernel[k - 2] if place else whole(kernel[k - 2], largest)
            case "OneHot" if place == 2:
                return 2
            case "Squeeze" if k in (self.values.get("axes") or []):
                return 1
            case "LRN":
                return whole(int(self.values["size"]), max(largest, int(self.values["size"])))
        return whole(1, largest)

    def _pooled(self, k: int, largest: int) -> int:
        if k < 2:
            return [1, self.chance.whole(1, 10)][k]
        pads, kernel = self.values.get("pads") or [], self.values.get("kernel_shape") or []
        if k - 2 >= len(kernel) or k - 2 >= len(pads) // 2:
            return self.chance.whole(1, largest)
        least = max(1, kernel[k - 2] - pads[k - 2] - pads[len(pads) - k + 1])
        return self.chance.whole(least, largest if largest > least else least + 5)

    def _reshaped(self, shape: list[int]) -> list[int]:
        """Return a target: the sizes in another order, fewer or more of them, one, or one of them as -1."""
        total, kind = int(np.prod(shape)), self.chance.whole(0, 4)
        if kind == 0 or not shape:
            return [int(x) for x in self.chance.generator.permutation(shape)]
        if kind == 1:
            return [shape[0] * shape[1], *shape[2:]] if len(shape) > 1 else [total]
        if kind == 2:
            least = next((x for x in (2, 3, 5, 7) if shape[0] % x == 0), 1)
            return [least, shape[0] // least, *shape[1:]]
        if kind == 3:
            return [total]
        place = self.chance.whole(0, len(shape) - 1)
        return [-1 if k == place else size for k, size in enumerate(shape)]


def _largest(rank: int) -> int:
    return LARGEST.get(rank, 10)


def _range(said: Attribute | Operand, dtype: str, chance: _Chance, dependent: float = 0) -> tuple[float, float]:
    """Return one of the ranges that are listed, the usual one where there is none."""
    low, high = INTEGERS if "int" in dtype else FLOATS
    place = chance.whole(0, max(len(said.minimum), 1) - 1)
    found = [
        usual if place >= len(bounds) else dependent if isinstance(bounds[place], str) else float(bounds[place])
        for bounds, usual in ((said.minimum, low), (said.maximum, high))
    ]
    return found[0], max(found)


def _normal(generator: np.random.Generator, shape: list[int], dtype: str) -> Any:
    """Return normally distributed elements; those of whole types are cut, and so -2 to 2."""
    if dtype == "string":
        return LETTERS[generator.integers(0, len(LETTERS), shape)]
    drawn = generator.normal(size=shape) if shape else np.asarray(generator.random())
    if dtype.startswith("uint"):
        drawn = np.abs(drawn)  # what a cast of negative floats to them gives is undefined
    return np.asarray(drawn).astype(dtype)


def _given(kind: str, value: Any) -> Given:
    if kind == "tensor":
        return Given(kind, value)
    if kind.startswith("float"):
        return Given(kind, [float(x) for x in value] if kind.endswith("s") else float(value))
    return Given(kind, value)
