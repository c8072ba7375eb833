"""Rows straight from stored documents: of tensors, only dtype and shape are looked at, which is a third of the work."""

from __future__ import annotations

from typing import Any

import msgspec

from opera.prioritize.subspaces import Row, from_program
from opera.programs import values
from opera.programs.program import parse


class _Spec(msgspec.Struct):
    """A tensor without its elements."""

    dtype: str
    shape: tuple[int, ...]


class _Value(msgspec.Struct, rename={"tensor": "$tensor", "random": "$random"}, forbid_unknown_fields=True):
    """A plain or described tensor; anything else is not decoded as this."""

    tensor: _Spec | None = None
    random: _Spec | None = None


class _Input(msgspec.Struct):
    value: _Value | None


class _Document(msgspec.Struct):
    operator: str
    params: dict[str, Any]
    inputs: list[_Input]


class _Expectation(msgspec.Struct):
    expected: list[_Value | None] | None  # null where only facts for the screens are known


_document = msgspec.json.Decoder(_Document)
_expectation = msgspec.json.Decoder(_Expectation)


def from_document(document: bytes, expectation: bytes | None = None) -> Row:
    """Return the row of a canonical instance and, where its test says them, of its outputs (see subspaces.from_program)."""
    try:
        form = _document.decode(document)
        stated = (_expectation.decode(expectation).expected if expectation is not None else None) or []
    except msgspec.ValidationError:  # several calls; sequences and optionals, whose shapes are lists of shapes
        expected = None
        if expectation is not None:
            expected = tuple(values.decode(form) for form in msgspec.json.decode(expectation)["expected"] or ())
        return from_program(parse(document), expected)
    inputs, outputs = [_facts(item.value) for item in form.inputs], [_facts(item) for item in stated]
    return Row(
        form.operator,
        {name: _plain(item) for name, item in form.params.items()},
        [shape for shape, _ in inputs],
        [dtype for _, dtype in inputs],
        [shape for shape, _ in outputs],
        [dtype for _, dtype in outputs],
    )


def _facts(value: _Value | None) -> tuple[Any, Any]:
    """Return (shape, dtype)."""
    spec = value and (value.tensor or value.random)
    return (spec.shape, spec.dtype) if spec else (None, None)


def _plain(form: Any) -> Any:
    return values.decode(form) if isinstance(form, dict | list) else form
