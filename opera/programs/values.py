"""The safe encoding of parameter values and tensors.

A value is None, a bool, int, float, str, bytes, a list, tuple or dict of values, or one of the small classes below. Its
encoding is plain JSON; whatever JSON has no word for is an object with one key that starts with `$`:

| value | encoding |
|---|---|
| float NaN or infinity | `{"$float": "nan"}`, `"inf"`, `"-inf"` |
| int outside 64 bits | `{"$int": "12345678901234567890123"}` |
| str with a lone surrogate | `{"$str": BASE64 of UTF-8 with surrogatepass}` |
| bytes | `{"$bytes": BASE64}` |
| tuple, dict | `{"$tuple": [...]}`, `{"$dict": [[key, value], ...]}` |
| Tensor | `{"$tensor": {"dtype", "shape", "data": BASE64 or "strings": [...]}}` |
| RandomTensor | `{"$random": {"dtype", "shape", "seed", "low", "high"}}` |
| Sequence, Optional | `{"$sequence": {"type", "items"}}`, `{"$optional": {"type", "value"}}` |
| Message | `{"$message": {"type", "data": BASE64}}` |
| Named | `{"$named": {"kind", "name"}}` |

Encoding and decoding are inverse. Decoding evaluates nothing and imports nothing; sizes are checked before memory is
taken. This module needs numpy and msgspec only, for it also runs beside old compilers.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Iterator
from functools import cache
from typing import Any, TypeAlias

import msgspec
import numpy as np

from opera.errors import CorpusError

MAX_ELEMENTS = 1 << 26
"""A tensor that declares more elements than this is refused (64 Mi elements)."""
MAX_DESCRIBED = 1 << 30
"""Likewise for a RandomTensor, which costs no memory until it is made (and is not made above MAX_ELEMENTS)."""
MAX_DEPTH = 64
"""Containers nested deeper than this are refused."""

CONTAINERS: dict[str, str] = {
    **{name: name for name in ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")},
    **{name: name for name in ("float16", "float32", "float64", "complex64", "complex128")},
    "bfloat16": "uint16",
    **{f"float8_{kind}": "uint8" for kind in ("e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0fnu")},
    "float4_e2m1fn": "uint8",
    "int4": "int8",
    "uint4": "uint8",
    "int2": "int8",
    "uint2": "uint8",
    "string": "object",
}
"""dtype name (as numpy and ml_dtypes spell it) → numpy dtype that holds its elements, one element an item."""

LOW_PRECISION = {
    # name: (exponent bits, mantissa bits, bias, has infinity, finite-only with one NaN at -0 ("fnuz"))
    "bfloat16": (8, 7, 127, True, False),
    "float8_e4m3fn": (4, 3, 7, False, False),
    "float8_e4m3fnuz": (4, 3, 8, False, True),
    "float8_e5m2": (5, 2, 15, True, False),
    "float8_e5m2fnuz": (5, 2, 16, False, True),
    "float4_e2m1fn": (2, 1, 1, False, False),
}
"""Bit layouts of the floats that numpy itself lacks (OCP Microscaling and FP8 specifications; ONNX docs, float8)."""


DESCRIBED = frozenset(
    ["bool", "bfloat16", "float16", "float32", "float64"]
    + [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
)
"""dtypes that a RandomTensor can have."""


class Tensor(msgspec.Struct, frozen=True):
    """A tensor with all its elements.

    `data` holds the elements in C order and little-endian, one container item (see CONTAINERS) an element; for dtype
    `string` it is a msgpack list of bytes.
    """

    dtype: str
    shape: tuple[int, ...]
    data: bytes

    def __post_init__(self) -> None:
        check_shape(self.dtype, self.shape)
        if self.dtype == "string":
            if len(_strings(self.data)) != math.prod(self.shape):
                raise CorpusError(f"a string tensor of shape {self.shape} holds {len(_strings(self.data))} elements")
        elif math.prod(self.shape) * np.dtype(CONTAINERS[self.dtype]).itemsize != len(self.data):
            raise CorpusError(f"a {self.dtype} tensor of shape {list(self.shape)} cannot hold {len(self.data)} bytes")

    @classmethod
    def of(cls, array: Any, dtype: str | None = None) -> Tensor:
        """Make a tensor of anything numpy understands; `dtype` overrides the name where `array` is a bare container."""
        array = np.asarray(array)
        name = dtype or array.dtype.name
        if array.dtype.kind in "OSU":
            items = [x if isinstance(x, bytes) else str(x).encode("utf-8", "surrogatepass") for x in array.ravel()]
            return cls("string", array.shape, msgspec.msgpack.encode(items))
        if name not in CONTAINERS:
            raise CorpusError(f"dtype {name} has no encoding")
        container = np.dtype(CONTAINERS[name])
        array = array.copy(order="C")  # not ascontiguousarray, which makes 0-d arrays 1-d
        if array.dtype != container:
            # The upper bits of ml_dtypes' int4 and int2 are not set: viewed as int8, -1 would read 15.
            same_bits = array.dtype.name == name and array.dtype.itemsize == container.itemsize and "int" not in name
            array = array.view(container) if same_bits else array.astype(container)
        return cls(name, array.shape, array.astype(container.newbyteorder("<"), copy=False).tobytes())

    def array(self) -> np.ndarray[Any, Any]:
        """Return a writable array of the container dtype; strings come as an object array of bytes."""
        if self.dtype == "string":
            out = np.empty(len(_strings(self.data)), dtype=object)
            out[:] = _strings(self.data)
            return out.reshape(self.shape)
        return (
            np.frombuffer(self.data, dtype=np.dtype(CONTAINERS[self.dtype]).newbyteorder("<"))
            .reshape(self.shape)
            .copy()
        )

    def numbers(self) -> np.ndarray[Any, Any]:
        """Return the elements as numbers that numpy can compute with: low-precision floats become float32."""
        array = self.array()
        return widen(array, self.dtype) if self.dtype in LOW_PRECISION or self.dtype == "float8_e8m0fnu" else array


class RandomTensor(msgspec.Struct, frozen=True):
    """A large tensor described by how to make it, by numpy's PCG64 seeded with `seed`.

    Floats are uniform on [low, high), integers and booleans on the whole numbers from low to high, both included.
    """

    dtype: str
    shape: tuple[int, ...]
    seed: int
    low: float
    high: float

    def __post_init__(self) -> None:
        check_shape(self.dtype, self.shape, MAX_DESCRIBED)
        if self.dtype not in DESCRIBED:
            raise CorpusError(f"a random tensor cannot be {self.dtype}")
        finite = math.isfinite(self.low) and math.isfinite(self.high)
        if not (finite and self.low <= self.high and 0 <= self.seed < 2**63 and self._fits()):
            raise CorpusError(
                f"a random {self.dtype} tensor cannot have seed {self.seed} and range {self.low}..{self.high}"
            )

    def _fits(self) -> bool:
        """Whole numbers of the dtype, and such as float64 holds exactly."""
        if "float" in self.dtype:
            return True
        least, most = (0, 1) if self.dtype == "bool" else (np.iinfo(self.dtype).min, np.iinfo(self.dtype).max)
        whole = float(self.low).is_integer() and float(self.high).is_integer()
        return whole and max(least, -(2**53)) <= self.low and self.high <= min(most, 2**53)

    def tensor(self) -> Tensor:
        """Make the tensor. Raises CorpusError for one of more than MAX_ELEMENTS elements."""
        check_shape(self.dtype, self.shape)
        generator = np.random.Generator(np.random.PCG64(self.seed))
        if "float" not in self.dtype:
            whole = generator.integers(int(self.low), int(self.high), self.shape, self.dtype, endpoint=True)
            return Tensor.of(whole, self.dtype)
        values = self.low + (self.high - self.low) * generator.random(self.shape)
        if self.dtype == "bfloat16":  # the upper half of a float32
            return Tensor.of((values.astype("float32").view("uint32") >> 16).astype("uint16"), "bfloat16")
        return Tensor.of(values.astype(self.dtype))


class Sequence(msgspec.Struct, frozen=True):
    """An ONNX sequence; `type` is the dtype (or type) of its elements, needed where it is empty."""

    type: str
    items: tuple[Any, ...]


class Optional(msgspec.Struct, frozen=True):
    """An ONNX optional; `type` is the type of what it may hold, `value` None where it holds nothing."""

    type: str
    value: Any


class Message(msgspec.Struct, frozen=True):
    """A protobuf message, such as the body of If, Loop or Scan; `type` is its full name (`onnx.GraphProto`)."""

    type: str
    data: bytes

    @property
    def told(self) -> str:
        """How it stands in a call that people read: `<GraphProto>`."""
        return f"<{self.type.rpartition('.')[2]}>"


class Named(msgspec.Struct, frozen=True):
    """Something a library knows by name, such as a dtype (`kind="torch.dtype"`, `name="float32"`)."""

    kind: str
    name: str


def named_inputs(value: object) -> Iterator[str]:
    """Yield the names of the inputs that a value of a parameter names, wherever they stand in it."""
    match value:
        case Named(kind=kind, name=name) if kind.endswith(".input"):
            yield name
        case list() | tuple():
            for x in value:
                yield from named_inputs(x)
        case dict():
            yield from named_inputs(list(value.values()))


Value: TypeAlias = Any
"""None, bool, int, float, str, bytes, list, tuple, dict, or one of the classes above."""

NO_DEFAULT = Named("opera", "no default")
"""In place of a parameter's default: it has none, or none is known."""


def check_shape(dtype: str, shape: tuple[int, ...], limit: int = MAX_ELEMENTS) -> None:
    """Refuse unknown dtypes, negative dimensions and tensors of more than `limit` elements."""
    if dtype not in CONTAINERS:
        raise CorpusError(f"unknown dtype {dtype!r}")
    if len(shape) > 64 or any(not isinstance(d, int) or isinstance(d, bool) or d < 0 for d in shape):
        raise CorpusError(f"{str(shape)[:80]} is no shape")
    if math.prod(shape) > limit or max(shape, default=0) > limit:
        raise CorpusError(
            f"a tensor declares the shape {list(shape)[:8]}, which is more than {limit} elements",
            fix="leave the instance out of the corpus, or make the tensor smaller",
        )


def widen(bits: np.ndarray[Any, Any], dtype: str) -> np.ndarray[Any, Any]:
    """Decode the bits of a low-precision float into float32 (exact: each is a subset of float32)."""
    bits = bits.astype(np.uint32)
    if dtype == "bfloat16":
        return (bits << 16).astype(np.uint32).view(np.float32).reshape(bits.shape)
    if dtype == "float8_e8m0fnu":  # unsigned power of two; all ones is NaN
        # Not exp2, which in float32 is off by a unit in the last place on some CPUs, even for whole numbers.
        power = np.ldexp(np.float32(1), np.minimum(bits, 254).astype(np.int32) - 127)
        return np.where(bits == 255, np.float32(np.nan), power).astype(np.float32)
    table: np.ndarray[Any, Any] = _table(dtype)[bits]
    return table


@cache
def _table(dtype: str) -> np.ndarray[Any, Any]:
    exponent_bits, mantissa_bits, bias, has_infinity, fnuz = LOW_PRECISION[dtype]
    width = 1 + exponent_bits + mantissa_bits
    table = np.empty(1 << width, dtype=np.float32)
    for code in range(1 << width):
        sign = -1.0 if code >> (width - 1) else 1.0
        exponent = (code >> mantissa_bits) & ((1 << exponent_bits) - 1)
        mantissa = code & ((1 << mantissa_bits) - 1)
        top = exponent == (1 << exponent_bits) - 1
        if fnuz and code == 1 << (width - 1):
            value = math.nan
        elif has_infinity and top:
            value = sign * math.inf if mantissa == 0 else math.nan
        elif dtype == "float8_e4m3fn" and top and mantissa == (1 << mantissa_bits) - 1:
            value = math.nan
        elif exponent == 0:
            value = sign * math.ldexp(mantissa, 1 - bias - mantissa_bits)
        else:
            value = sign * math.ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits)
        table[code] = value
    return table


def encode(value: Value) -> Any:
    """Return the JSON form of a value. Raises CorpusError for what has no encoding."""
    return _encode(value, 0)


def decode(form: Any) -> Value:
    """Return the value of a JSON form. Raises CorpusError for whatever `encode` would not have written."""
    return _decode(form, 0)


def dumps(value: Value) -> bytes:
    """Return the canonical bytes of a value: sorted keys, no white space."""
    return msgspec.json.encode(encode(value), order="sorted")


def loads(data: bytes) -> Value:
    """Inverse of `dumps`."""
    try:
        form = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise CorpusError(f"a value is no JSON: {error}") from None
    return decode(form)


def _encode(value: Value, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise CorpusError(f"containers are nested deeper than {MAX_DEPTH}", cause="a container that holds itself")
    below = depth + 1
    match value:
        case None | bool():
            return value
        case int():
            return int(value) if -(2**63) <= value < 2**63 else {"$int": str(int(value))}
        case float():
            return float(value) if math.isfinite(value) else {"$float": str(float(value))}
        case str():
            try:
                value.encode()
            except UnicodeEncodeError:
                return {"$str": _base64(value.encode("utf-8", "surrogatepass"))}
            return str(value)
        case bytes():
            return {"$bytes": _base64(value)}
        case list():
            return [_encode(item, below) for item in value]
        case tuple():
            return {"$tuple": [_encode(item, below) for item in value]}
        case dict():
            return {"$dict": [[_encode(key, below), _encode(item, below)] for key, item in value.items()]}
        case Tensor():
            form: dict[str, Any] = {"dtype": value.dtype, "shape": list(value.shape)}
            if value.dtype == "string":
                form["strings"] = [_encode(_text(item), below) for item in _strings(value.data)]
            else:
                form["data"] = _base64(value.data)
            return {"$tensor": form}
        case RandomTensor():
            return {"$random": {"dtype": value.dtype, "shape": list(value.shape), "seed": value.seed}
                    | {"low": value.low, "high": value.high}}  # fmt: skip
        case Sequence():
            return {"$sequence": {"type": value.type, "items": [_encode(item, below) for item in value.items]}}
        case Optional():
            return {"$optional": {"type": value.type, "value": _encode(value.value, below)}}
        case Message():
            return {"$message": {"type": value.type, "data": _base64(value.data)}}
        case Named():
            return {"$named": {"kind": value.kind, "name": value.name}}
    raise CorpusError(f"a {type(value).__module__}.{type(value).__qualname__} has no encoding")


def _decode(form: Any, depth: int) -> Value:
    if depth > MAX_DEPTH:
        raise CorpusError(f"containers are nested deeper than {MAX_DEPTH}")
    below = depth + 1
    if isinstance(form, list):
        return [_decode(item, below) for item in form]
    if not isinstance(form, dict):
        return form
    if len(form) != 1:
        raise CorpusError("a value is an object that is not one of opera's (see docs/corpus.md)")
    tag, body = next(iter(form.items()))
    try:
        return _decode_tagged(tag, body, below)
    except (
        KeyError,
        TypeError,
        ValueError,
        OverflowError,
        AttributeError,
        binascii.Error,
        msgspec.DecodeError,
    ) as error:
        raise CorpusError(f"a value tagged {str(tag)[:20]!r} is malformed: {error}") from None


def _decode_tagged(tag: str, body: Any, below: int) -> Value:
    match tag:
        case "$float" if body in ("nan", "inf", "-inf"):
            return float(body)
        case "$int" if isinstance(body, str) and len(body) < 4000:
            return int(body)
        case "$str":
            return _unbase64(body).decode("utf-8", "surrogatepass")
        case "$bytes":
            return _unbase64(body)
        case "$tuple":
            return tuple(_decode(item, below) for item in body)
        case "$dict":
            return {_decode(key, below): _decode(item, below) for key, item in body}
        case "$tensor":
            shape = tuple(body["shape"])
            check_shape(body["dtype"], shape)
            if body["dtype"] == "string":
                items = [_decode(item, below) for item in body["strings"]]
                data = [x if isinstance(x, bytes) else x.encode("utf-8", "surrogatepass") for x in items]
                return Tensor("string", shape, msgspec.msgpack.encode(data))
            return Tensor(body["dtype"], shape, _unbase64(body["data"]))
        case "$random":
            return RandomTensor(
                body["dtype"], tuple(body["shape"]), int(body["seed"]), float(body["low"]), float(body["high"])
            )
        case "$sequence" if isinstance(body["type"], str):
            return Sequence(body["type"], tuple(_decode(item, below) for item in body["items"]))
        case "$optional" if isinstance(body["type"], str):
            return Optional(body["type"], _decode(body["value"], below))
        case "$message" if isinstance(body["type"], str):
            return Message(body["type"], _unbase64(body["data"]))
        case "$named" if isinstance(body["kind"], str) and isinstance(body["name"], str):
            return Named(body["kind"], body["name"])
    raise CorpusError(f"unknown or malformed tag {str(tag)[:20]!r}")


def _strings(data: bytes) -> list[bytes]:
    return msgspec.msgpack.decode(data, type=list[bytes])


def _text(item: bytes) -> str | bytes:
    """Strings are shown as text where they are UTF-8."""
    try:
        return item.decode()
    except UnicodeDecodeError:
        return item


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _unbase64(text: str) -> bytes:
    return base64.b64decode(text, validate=True)
