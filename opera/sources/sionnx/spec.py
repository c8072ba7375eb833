"""What a specification says, whether it is one of opera's own or of the published repository."""

from __future__ import annotations

from typing import Any

import msgspec

MAX_RANK = 6
"""The highest rank of an operand that says nothing of it (the default of the published language)."""


class Node(msgspec.Struct, frozen=True):
    """A part of an expression: what it is (`range`, `call`, `name`, ...), its parts (Nodes and plain values), its line."""

    kind: str
    parts: tuple[Any, ...] = ()
    line: int = 0


class Let(msgspec.Struct, frozen=True):
    """`let NAME = VALUE;`: a symbol, or the value of an attribute or of an input.

    Attributes:
        name: A symbol, an attribute, an input, or a variable of types.
        value: What it is.
        default: What operators take where it is left out; None where the schema says it.
        required: It is always given.
    """

    name: str
    value: Node
    default: Node | None = None
    required: bool = False
    line: int = 0


class Shape(msgspec.Struct, frozen=True):
    """`NAME : SHAPE in LOW..HIGH;`: an input whose elements are drawn.

    Attributes:
        name: An input.
        dims: Expression of its shape.
        values: Expression of the range of its elements, or of the values that they are chosen from; None for any.
        repeated: How many there are, of a variadic input or a sequence.
        condition: It is left out where this does not hold.
        required: It is given where the condition holds, though the schema calls it optional.
        distinct: Its elements differ from each other.
    """

    name: str
    dims: Node
    values: Node | None = None
    repeated: Node | None = None
    condition: Node | None = None
    required: bool = False
    distinct: bool = False
    line: int = 0


class Where(msgspec.Struct, frozen=True):
    """`where CONDITION;`: what is valid."""

    condition: Node
    line: int = 0


Statement = Let | Shape | Where


class Attribute(msgspec.Struct, frozen=True, kw_only=True):
    """An attribute.

    Attributes:
        name: As in the schema.
        types: Kinds of ONNX (`int`, `ints`, `float`, `string`, `tensor`, `graph`, ...), or dtypes as published files have
            them, `int32_v4` a list of four.
        default: Its default, None where there is none.
        dependent: The default depends on the context (`?` in published files).
        minimum, maximum: Ranges as published files have them, in pairs; numbers, or `?`. A minimum alone is open above.
        choices: Strings that it may be.
        required: It cannot be left out. Published files do not say.
    """

    name: str
    types: tuple[str, ...]
    default: Any = None
    dependent: bool = False
    minimum: tuple[float | str, ...] = ()
    maximum: tuple[float | str, ...] = ()
    choices: tuple[str, ...] = ()
    required: bool = False


class Operand(msgspec.Struct, frozen=True, kw_only=True):
    """An input or output.

    Attributes:
        index: Its place; -1 for as many as there are (variadic).
        types: Types that it may have: dtypes as opera names them, `sequence(float32)`, `optional(float32)`.
        name: Formal name; published files have none.
        variable: Type variable, which ties operands together (`T`); empty where it has types of its own.
        min_rank, max_rank: Bounds of its rank.
        normal: Its size is drawn as usual; 0 where another operand or attribute says it (published files).
        axis_bound: An attribute `axis` or `axes` refers to its dimensions (published files).
        minimum, maximum: As of an attribute.
        optional: It may be left out.
        variadic: There may be more than one; `least` of them at least.
        homogeneous: All of a variadic one have one type.
        least: How many there are at least, of a variadic one.
    """

    index: int
    types: tuple[str, ...]
    name: str = ""
    variable: str = ""
    min_rank: int = 0
    max_rank: int = MAX_RANK
    normal: bool = True
    axis_bound: bool = False
    minimum: tuple[float | str, ...] = ()
    maximum: tuple[float | str, ...] = ()
    optional: bool = False
    variadic: bool = False
    homogeneous: bool = True
    least: int = 1


class Spec(msgspec.Struct, frozen=True, kw_only=True):
    """The specification of an operator.

    Attributes:
        name: Of the definition in its file.
        operator, domain: The operator; the default domain is "".
        since: The version that it is of; 0 where it is of every version that onnx has (see skeleton.resolve).
        attributes, inputs, outputs: What was written, or derived from the schema.
        properties: `broadcasting` (inputs broadcast), `nonzero` (divisors are not zero), and others that a file states.
        body: What our own files say besides, in order.
        file, line: Where it is defined.
    """

    name: str
    operator: str
    domain: str = ""
    since: int = 0
    attributes: tuple[Attribute, ...] = ()
    inputs: tuple[Operand, ...] = ()
    outputs: tuple[Operand, ...] = ()
    properties: tuple[str, ...] = ()
    body: tuple[Statement, ...] = ()
    file: str = ""
    line: int = 0

    @property
    def signature(self) -> str:
        """The operator as opera's instances name it: `Conv`, `ai.onnx.ml::Scaler`."""
        return f"{self.domain}::{self.operator}" if self.domain else self.operator
