"""The constraints of one API: what DocTer's YAML says, parsed, and written again as it was.

Grammar of the texts, as in DocTer's published files and its paper:

- dtype: a name (`torch.int64`, `tf.string`, `int`, `float`, `numeric`, `scalar`, `tensorshape`) or `dtype:&p`, that of p;
- ndim: `n`, `>n`, `>=n`, `<n`, `<=n` or `?`, where n is a term;
- shape: `[...]` around terms with a comma between them; `...` is any number of dimensions;
- range: an interval of terms, `[0,inf)`, after `int:` one of whole numbers;
- term: whole numbers, names (a free variable that has one value in each input), `&p` (value of parameter p), `len:&p`,
  `ndim:&p`, `max_value:&p`, `shape:&p`, and these with `+ - * /` between them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import TypeAlias, TypeVar

import msgspec

from opera.errors import CorpusError

MAX_TEXT = 200
"""Characters of one constraint."""
MAX_NDIM = 5
"""Largest number of dimensions that is generated (DocTer's MAX_NUM_DIM)."""


T = TypeVar("T")


class Number(msgspec.Struct, frozen=True, tag=True):
    value: int


class Variable(msgspec.Struct, frozen=True, tag=True):
    """A name that stands for one number within an input; that of a parameter stands for its value."""

    name: str


class Reference(msgspec.Struct, frozen=True, tag=True):
    """A fact of another parameter: its `value`, `len`, `ndim`, `max_value` or `shape`."""

    fact: str
    parameter: str


class Rest(msgspec.Struct, frozen=True, tag=True):
    """`...`: any number of dimensions."""


class Operation(msgspec.Struct, frozen=True, tag=True):
    sign: str
    left: Term
    right: Term


Term: TypeAlias = Number | Variable | Reference | Rest | Operation


class Ndim(msgspec.Struct, frozen=True):
    """A number of dimensions: `sign` is `=`, `>`, `>=`, `<`, `<=`, or `?` for any."""

    sign: str
    term: Term


class Shape(msgspec.Struct, frozen=True):
    terms: tuple[Term, ...]


class Interval(msgspec.Struct, frozen=True):
    """An interval; `low` and `high` are numbers or terms, `closed` says which ends belong to it."""

    low: float | Term
    high: float | Term
    closed: tuple[bool, bool] = (True, True)
    whole: bool = False


class Dtype(msgspec.Struct, frozen=True):
    """A dtype by the name that opera gives it (`int64`, `bool`, `string`, `int`, `dtype`); `of` is the parameter it follows."""

    name: str
    of: str = ""


class Parameter(msgspec.Struct, frozen=True):
    """What is said about one parameter; an empty tuple says nothing.

    Attributes:
        structures: `list`, `tuple`, `dict`.
        tensors: Whether it is a tensor: `tensor`, `sparsetensor`.
        default: As documentation writes it; None where it says nothing.
        texts: The document as it was read, field → texts, for writing it again.
    """

    name: str
    dtypes: tuple[Dtype, ...] = ()
    ndims: tuple[Ndim, ...] = ()
    shapes: tuple[Shape, ...] = ()
    ranges: tuple[Interval, ...] = ()
    enum: tuple[str, ...] = ()
    structures: tuple[str, ...] = ()
    tensors: tuple[str, ...] = ()
    default: str | None = None
    description: str = ""
    texts: dict[str, list[str]] = {}

    @property
    def constrained(self) -> bool:
        return any(self.texts.get(field) for field in FIELDS)


class Api(msgspec.Struct, frozen=True):
    """The constraints of an API.

    Attributes:
        title: Its full name (`torch.nn.functional.conv2d`).
        required, optional: Parameters in order; `**kwargs` and the like are left out.
        layer: Whether it is a constructor, and what it makes is called.
        file: Name of the file, without `.yaml`: several files may describe one API.
    """

    title: str
    package: str
    required: tuple[str, ...]
    optional: tuple[str, ...]
    parameters: dict[str, Parameter]
    layer: bool = False
    file: str = ""


FIELDS = ("dtype", "structure", "tensor_t", "shape", "ndim", "range", "enum")
CATEGORIES = {
    "dtype": ("dtype",),
    "structure": ("structure", "tensor_t"),
    "shape": ("shape", "ndim"),
    "value": ("range", "enum"),
}
"""DocTer's four categories, and the fields that each is made of."""

_TOKEN = re.compile(r"\s*(?:(\d+)|((?:len|ndim|max_value|shape):&|&)?([A-Za-z_]\w*(?:\.\w+)*)|(\.\.\.)|([-+*/()]))")
_INTERVAL = re.compile(r"(int\s*:)?\s*([\[(])\s*([^,\[\]]+?)\s*,\s*([^,\[\]]+?)\s*([\])])")
_NDIM = re.compile(r"(>=|<=|>|<|=)?\s*(.+)")
_FLOAT = re.compile(r"[-+]?(\d+\.?\d*([eE][-+]?\d+)?|\.\d+|inf)")
DTYPES = {
    "boolean": "bool", "str": "string", "half": "float16", "double": "float64", "long": "int64", "short": "int16",
    "floating": "float", "integer": "int", "complex": "complex64",
}  # fmt: skip
"""dtype names of documents that opera writes otherwise."""


def term(text: str) -> Term:
    """Parse a term. Raises CorpusError."""
    if len(text) > MAX_TEXT:
        raise CorpusError(f"a term of {len(text)} characters")
    tokens, place = [], 0
    stripped = text.strip()
    while place < len(stripped):
        found = _TOKEN.match(stripped, place)
        if found is None:
            raise CorpusError(f"{text[:60]!r} is no term")
        tokens.append(found)
        place = found.end()
    rest = iter(tokens)
    result, following = _sum(rest, next(rest, None), 0)
    if following is not None:
        raise CorpusError(f"{text[:60]!r} is no term")
    return result


_Match: TypeAlias = "re.Match[str] | None"


def _sum(rest: Iterator[re.Match[str]], token: _Match, depth: int) -> tuple[Term, _Match]:
    left, token = _product(rest, token, depth)
    while token is not None and token[5] in ("+", "-"):
        sign = token[5]
        right, token = _product(rest, next(rest, None), depth)
        left = Operation(sign, left, right)
    return left, token


def _product(rest: Iterator[re.Match[str]], token: _Match, depth: int) -> tuple[Term, _Match]:
    left, token = _atom(rest, token, depth)
    while token is not None and token[5] in ("*", "/"):
        sign = token[5]
        right, token = _atom(rest, next(rest, None), depth)
        left = Operation(sign, left, right)
    return left, token


def _atom(rest: Iterator[re.Match[str]], token: _Match, depth: int) -> tuple[Term, _Match]:
    if token is None or depth > 20:
        raise CorpusError("a term that ends too early, or is nested too deep")
    number, prefix, name, dots, sign = token.groups()
    if number is not None:
        return Number(int(number[:18])), next(rest, None)
    if dots:
        return Rest(), next(rest, None)
    if name:
        made = Reference(prefix.removesuffix(":&") if prefix != "&" else "value", name) if prefix else Variable(name)
        return made, next(rest, None)
    if sign == "-":
        inner, token = _atom(rest, next(rest, None), depth + 1)
        return Operation("-", Number(0), inner), token
    if sign == "(":
        inner, token = _sum(rest, next(rest, None), depth + 1)
        if token is None or token[5] != ")":
            raise CorpusError("a term whose parentheses do not match")
        return inner, next(rest, None)
    raise CorpusError(f"a term with {sign!r} in an odd place")


def ndim(text: str) -> Ndim:
    """Parse a number of dimensions. Raises CorpusError."""
    found = _NDIM.fullmatch(text.strip()) if len(text) <= MAX_TEXT else None
    if found is None:
        raise CorpusError(f"{text[:60]!r} is no number of dimensions")
    if found[2] == "?":
        return Ndim("?", Number(0))
    return Ndim(found[1] or "=", term(found[2]))


def shape(text: str) -> Shape:
    """Parse a shape. Raises CorpusError."""
    text = text.strip()
    if text.startswith("&") or text.startswith("shape:&"):
        return Shape((Reference("shape", text.partition("&")[2]),))
    if not (text.startswith("[") and text.endswith("]")) or len(text) > MAX_TEXT:
        raise CorpusError(f"{text[:60]!r} is no shape")
    inner = text[1:-1].strip()
    return Shape(tuple(term(part) for part in inner.split(",")) if inner else ())


def interval(text: str) -> Interval:
    """Parse a range. Raises CorpusError."""
    found = _INTERVAL.fullmatch(text.strip()) if len(text) <= MAX_TEXT else None
    if found is None:
        raise CorpusError(f"{text[:60]!r} is no range")
    low, high = (_bound(part) for part in (found[3], found[4]))
    if isinstance(low, float) and isinstance(high, float) and (math.isnan(low + high) or low > high):
        raise CorpusError(f"the range {text[:60]!r} is empty")
    return Interval(low, high, (found[2] == "[", found[5] == "]"), bool(found[1]))


def _bound(text: str) -> float | Term:
    return float(text) if _FLOAT.fullmatch(text) else term(text)


def dtype(text: str) -> Dtype:
    """Parse a dtype. Raises CorpusError for what cannot be a name."""
    text = text.strip()
    if text.startswith("dtype:&"):
        return Dtype("", text.partition("&")[2])
    name = text.lower()
    for prefix in ("torch.", "tf.", "numpy.", "np.", "keras."):
        name = name.removeprefix(prefix)
    if not re.fullmatch(r"[a-z_][a-z0-9_]{0,30}", name):
        raise CorpusError(f"{text[:60]!r} is no dtype")
    return Dtype(DTYPES.get(name, name))


def parameter(name: str, texts: dict[str, list[str]], default: str | None, description: str) -> Parameter:
    """Parse all fields of a parameter. Raises CorpusError, which names the field."""
    return Parameter(
        name,
        _all(name, "dtype", texts, dtype),
        _all(name, "ndim", texts, ndim),
        _all(name, "shape", texts, shape),
        _all(name, "range", texts, interval),
        tuple(texts.get("enum", ())),
        tuple(texts.get("structure", ())),
        tuple(x.rpartition(".")[2].lower() for x in texts.get("tensor_t", ())),
        default,
        description,
        texts,
    )


def _all(name: str, field: str, texts: dict[str, list[str]], parse: Callable[[str], T]) -> tuple[T, ...]:
    try:
        return tuple(parse(text) for text in texts.get(field, ()))
    except CorpusError as error:
        raise CorpusError(f"{field} of {name[:60]!r}: {error.what}") from None


def references(parameter: Parameter) -> set[str]:
    """Return the parameters and variables that the constraints of a parameter speak of."""
    found = {x.of for x in parameter.dtypes if x.of}
    terms: list[float | Term] = [x.term for x in parameter.ndims]
    terms += [x for made in parameter.shapes for x in made.terms]
    terms += [x for made in parameter.ranges for x in (made.low, made.high)]
    while terms:
        match terms.pop():
            case Reference(_, name) | Variable(name):
                found.add(name)
            case Operation(_, left, right):
                terms += [left, right]
            case _:
                pass
    return found
