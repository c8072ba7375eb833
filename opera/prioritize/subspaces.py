"""Operator instances as rows of parameter classes: each parameter's values fall into a few subspaces.

Two encodings: `ArtifactSubspaces` is what the OPERA artifact computes, `PaperSubspaces` what the paper's text says (ICSE
2025, "A Tale of Two DL Cities", section on test prioritization). Rows are read once and kept as tuples of small integers.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, Protocol, TypeAlias

import msgspec
import numpy as np

from opera.programs.program import Program, Result
from opera.programs.values import NO_DEFAULT, Message, Named, Optional, RandomTensor, Sequence, Tensor, Value

Defaults: TypeAlias = Mapping[str, Mapping[str, Value]]
"""Operator → attribute → default of the library's schema; an attribute without a default maps to NO_DEFAULT."""
Class: TypeAlias = Hashable

ABSENT = Named("opera", "absent")
"""Class of an attribute that a test does not set."""


class Row(msgspec.Struct, frozen=True):
    """What prioritization looks at in an operator instance.

    Attributes:
        operator: The operator signature.
        params: Parameter name → plain value.
        input_shapes, output_shapes: One list of dimensions a tensor (None where the tensor is left out).
        input_dtypes, output_dtypes: One name a tensor.
        calls: Of a program of several calls, the row of each; what its own inputs and outputs are is then not looked at.
    """

    operator: str
    params: dict[str, Value]
    input_shapes: list[Any] = []
    input_dtypes: list[Any] = []
    output_shapes: list[Any] = []
    output_dtypes: list[Any] = []
    calls: tuple[Row, ...] = ()


def from_program(program: Program, expected: tuple[Value, ...] | None = None) -> Row:
    """Make a row of a program; `expected` are its outputs, where the test says them."""
    outputs = expected or ()
    calls = program.instances()
    rows = [
        Row(
            call.operator,
            call.params,
            [_shape(x.value) for x in call.inputs],
            [_dtype(x.value) for x in call.inputs],
            *([], []) if len(calls) > 1 else ([_shape(x) for x in outputs], [_dtype(x) for x in outputs]),
        )
        for call in calls
    ]
    return rows[0] if len(rows) == 1 else Row(program.operator, {}, calls=tuple(rows))


def _shape(value: Value) -> Any:
    match value:
        case Tensor() | RandomTensor():
            return value.shape
        case Sequence():
            return [_shape(item) for item in value.items]
        case Optional():
            return _shape(value.value)
        case list() | tuple():
            return [_shape(item) for item in value]
    return None if value is None or isinstance(value, Result) else ()


def _dtype(value: Value) -> Any:
    match value:
        case Tensor() | RandomTensor():
            return value.dtype
        case Sequence():
            return f"sequence({value.type})"
        case Optional():
            return f"optional({value.type})"
        case list() | tuple():
            return [_dtype(item) for item in value]
    return None if value is None or isinstance(value, Result) else type(value).__name__


class Subspaces(Protocol):
    """An encoding of parameter values and tensors."""

    def value(self, value: Value) -> Class:
        """Return the class of a parameter's value."""

    def tensors(self, row: Row) -> Iterator[tuple[str, Class]]:
        """Yield the parameters that stand for the tensors of a row; no attribute may have such a name."""


def _integer(value: int) -> int:
    """Return -2, -1, 0, 1 or 2 for the classes <-1, -1, 0, 1, >1."""
    return 2 if value > 1 else -2 if value < -1 else int(value)


class ArtifactSubspaces:
    """The artifact's encoding: integers {<-1, -1, 0, 1, >1}, floats {>0, the rest}, strings by value, lists element by element.

    The artifact lets a list of two carry a third element that compares the two classes. It is a function of the other two, so
    it never tells two rows apart and is left out here. The tensors are four parameters: the lists of shapes and of dtypes.
    """

    def value(self, value: Value) -> Class:
        """Return the class of a parameter's value."""
        kind = type(value)
        if kind is int or kind is bool:
            return _integer(value)
        if kind is float:
            return self.real(value)
        if kind is list or kind is tuple:
            items = [_integer(item) if type(item) is int else self.value(item) for item in value]
            if items and items[0] is None:
                items[0] = 2  # an unknown batch size counts as >1
            return tuple(items)
        if value is None or kind is str:
            plain: Class = value
            return plain
        return self._other(value)

    def real(self, value: float) -> Class:
        """Return the class of a float; never equal to an integer's."""
        return 0.5 if value > 0 else -0.5

    def tensors(self, row: Row) -> Iterator[tuple[str, Class]]:
        """Yield the lists of input and output shapes and dtypes."""
        yield "input shapes", self.value(row.input_shapes)
        yield "input dtypes", tuple(map(str, row.input_dtypes))
        yield "output shapes", self.value(row.output_shapes)
        yield "output dtypes", tuple(map(str, row.output_dtypes))

    def _other(self, value: Value) -> Class:
        match value:
            case bytes():
                return value
            case Tensor() | RandomTensor():
                return ("tensor", value.dtype, self.value(value.shape))
            case Message():
                return ("message", value.type, hashlib.sha256(value.data).hexdigest())
            case Named():
                return ("named", value.kind, value.name)
            case Sequence():
                return ("sequence", value.type, self.value(value.items))
            case Optional():
                return ("optional", value.type, self.value(value.value))
            case dict():
                return ("dict", *sorted(((str(k), self.value(v)) for k, v in value.items()), key=lambda pair: pair[0]))
        raise TypeError(f"{type(value).__name__} is no value")


class PaperSubspaces(ArtifactSubspaces):
    """The paper's text: floats {<0, 0, >0}, and each tensor one parameter, dtype × dimensions (to 5, more) × their classes."""

    def real(self, value: float) -> Class:
        """Return the class of a float; never equal to an integer's. NaN counts as 0."""
        return 0.5 if value > 0 else -0.5 if value < 0 else 0.25

    def tensors(self, row: Row) -> Iterator[tuple[str, Class]]:
        """Yield one parameter a tensor."""
        for side, shapes, dtypes in (
            ("input", row.input_shapes, row.input_dtypes),
            ("output", row.output_shapes, row.output_dtypes),
        ):
            for place, (shape, dtype) in enumerate(zip(shapes, dtypes, strict=False)):
                yield f"{side} {place}", (str(dtype), None if shape is None else min(len(shape), 6), self.value(shape))


class Space:
    """The rows of one operator over all its parameters: schema, tensors, and whatever else a row sets.

    A row is a tuple of codes, one a column; columns that later rows add are filled up by `matrix`.
    """

    def __init__(self, subspaces: Subspaces, defaults: Mapping[str, Value]) -> None:
        self._subspaces, self._defaults = subspaces, defaults
        self._column: dict[str, int] = {}
        self._codes: list[dict[Class, int]] = []
        self._unset: list[int] = []
        self._default: list[int] = []
        self._distinct: dict[tuple[int, ...], int] = {}
        self._members = array("q")  # positions in the corpus, ascending
        self._rows = array("q")  # for each member, its index into the distinct rows
        self.equipped: list[tuple[int, ...]] = []
        for name in sorted(defaults):
            self._add_column(name)
        for name, _ in subspaces.tensors(Row("", {})):
            self._add_column(name)

    def add(self, row: Row, position: int) -> None:
        """Add a migrated row that stands at `position` of the corpus."""
        self._members.append(position)
        self._rows.append(self._distinct.setdefault(self._encode(row), len(self._distinct)))

    def add_equipped(self, row: Row) -> None:
        """Add a row of the compiler's own tests."""
        self.equipped.append(self._encode(row))

    def positions(self) -> np.ndarray[Any, Any]:
        """Return the positions of its rows in the corpus, int64 (members,), ascending."""
        return np.array(self._members, np.int64)

    def seen(self) -> np.ndarray[Any, Any]:
        """Return the codes of the default row and of the equipped rows, int32 (1 + equipped, parameters)."""
        return np.array([self._default, *self._filled(self.equipped)], np.int32)

    def migrated(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Return positions (members,), codes of the distinct rows (distinct, parameters), and each member's index into them."""
        merged: dict[tuple[int, ...], int] = {}
        index = np.array([merged.setdefault(row, len(merged)) for row in self._filled(self._distinct)], np.int64)
        codes = np.array(list(merged), np.int32).reshape(len(merged), len(self._codes))
        return np.array(self._members, np.int64), codes, index[np.array(self._rows, np.int64)]

    def _filled(self, rows: Iterable[tuple[int, ...]]) -> Iterator[tuple[int, ...]]:
        """Append the columns that were added after a row; two rows may become equal."""
        unset = tuple(self._unset)
        return (row + unset[len(row) :] for row in rows)

    def _encode(self, row: Row) -> tuple[int, ...]:
        codes, column, value = list(self._unset), self._column, self._subspaces.value
        for name, item in row.params.items():
            place = column.get(name)
            if place is None:
                place = self._add_column(name)
                codes.append(0)
            known = self._codes[place]
            codes[place] = known.setdefault(value(item), len(known))
        for name, kind in self._subspaces.tensors(row):
            place = column.get(name)
            if place is None:
                place = self._add_column(name)
                codes.append(0)
            known = self._codes[place]
            codes[place] = known.setdefault(kind, len(known))
        return tuple(codes)

    def _add_column(self, name: str) -> int:
        default = self._defaults.get(name, NO_DEFAULT)
        known: dict[Class, int] = {}
        if default == NO_DEFAULT:
            self._default.append(known.setdefault(NO_DEFAULT, 0))
            self._unset.append(known.setdefault(ABSENT, 1))
        else:
            self._default.append(known.setdefault(self._subspaces.value(default), 0))
            self._unset.append(0)
        self._codes.append(known)
        self._column[name] = len(self._codes) - 1
        return self._column[name]


def encode(
    rows: Iterable[Row], equipped: Iterable[Row], defaults: Defaults, subspaces: Subspaces
) -> tuple[dict[str, Space], int]:
    """Encode a corpus, reading it once; returns operator → space, and the number of rows.

    A program of several calls is in the space of each of its operators.
    """
    spaces: dict[str, Space] = {}

    def space(operator: str) -> Space:
        found = spaces.get(operator)
        if found is None:
            found = spaces[operator] = Space(subspaces, defaults.get(operator, {}))
        return found

    for row in equipped:
        for call in row.calls or (row,):
            space(call.operator).add_equipped(call)
    count = 0
    for row in rows:
        for call in row.calls or (row,):
            space(call.operator).add(call, count)
        count += 1
    return spaces, count
