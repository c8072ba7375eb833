"""What the generator makes: a call of an operator, as plain data."""

from __future__ import annotations

from typing import Any

import msgspec


class Given(msgspec.Struct, frozen=True):
    """The value of an attribute.

    Attributes:
        kind: ONNX's name of its type in small letters (`int`, `floats`, `string`, `tensor`, `graph`, `type_proto`, ...).
        value: int, float, str, a list of them; a numpy array for `tensor` (its dtype's name is opera's; strings as objects);
            a serialized protobuf message for `graph`, `type_proto` and `sparse_tensor`.
    """

    kind: str
    value: Any


class Input(msgspec.Struct, frozen=True):
    """The value of an input that is given.

    Attributes:
        name: Its formal name; those of a variadic input that follow the first are `name_1`, `name_2`, ...
        type: A dtype as opera names it, `sequence(float32)`, `optional(float32)`, `optional(sequence(float32))`.
        value: A numpy array (its dtype one of ml_dtypes where numpy has none, objects of type str for strings), a list of them
            for a sequence, None for an optional that holds nothing.
    """

    name: str
    type: str
    value: Any


class Case(msgspec.Struct, frozen=True):
    """A call.

    Attributes:
        operator, domain: As in Spec.
        since: The version of the operator; every opset that has this version means the same.
        attributes: Those given, by name.
        inputs: In order, None for one that is left out; trailing ones that are left out are not there.
        outputs: Formal names of the outputs asked for, in order, "" for one that is left out.
        boundaries: Part → what it was drawn to be: `{"X": "min", "axis": "default", "B": "left out", "T": "float16"}`. A part
            that is neither on a boundary nor one of a few choices is not there.
        target: The pair of `boundaries` that the case was made for, (part, what); ("", "") where none was left.
        number: Its place in what the generator yields.
    """

    operator: str
    domain: str
    since: int
    attributes: dict[str, Given]
    inputs: tuple[Input | None, ...]
    outputs: tuple[str, ...]
    boundaries: dict[str, str]
    target: tuple[str, str]
    number: int
