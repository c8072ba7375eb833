"""Between opera's values and ONNX's own: TensorProto, TypeProto, and what the reference evaluator takes and gives.

`Sequence.type` and `Optional.type` are the type of what they hold: a dtype name (`float32`), or `sequence(TYPE)` or
`optional(TYPE)` of one. onnx is imported inside functions, for this module is imported by whatever lists libraries.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from opera.errors import InvalidTest
from opera.programs.values import CONTAINERS, Message, Optional, RandomTensor, Sequence, Tensor, Value

ELEMENT_TYPES: dict[str, int] = {
    "float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "string": 8, "bool": 9,
    "float16": 10, "float64": 11, "uint32": 12, "uint64": 13, "complex64": 14, "complex128": 15, "bfloat16": 16,
    "float8_e4m3fn": 17, "float8_e4m3fnuz": 18, "float8_e5m2": 19, "float8_e5m2fnuz": 20, "uint4": 21, "int4": 22,
    "float4_e2m1fn": 23, "float8_e8m0fnu": 24, "uint2": 25, "int2": 26,
}  # fmt: skip
"""dtype name → number in TensorProto.DataType."""
DTYPES = {number: name for name, number in ELEMENT_TYPES.items()}

BITS = {"uint4": 4, "int4": 4, "float4_e2m1fn": 4, "uint2": 2, "int2": 2}
"""dtypes of which a TensorProto packs several elements into one byte, the first in the lowest bits."""

IR_VERSIONS = {"float8": 9, "uint4": 10, "int4": 10, "float4": 11, "float8_e8m0fnu": 12, "uint2": 13, "int2": 13}
"""dtype (or its start) → the IR version that introduced it (ONNX, docs/IR.md and the changes of onnx.in.proto)."""


def materialise(value: Value) -> Value:
    """Return the value with its elements: a RandomTensor becomes the Tensor that it describes."""
    return value.tensor() if isinstance(value, RandomTensor) else value


def ir_version(dtype: str) -> int:
    """Return the lowest IR version that knows a dtype."""
    matching = [name for name in IR_VERSIONS if dtype.startswith(name)]
    return max((IR_VERSIONS[name] for name in matching), default=0)


def dtypes(value: Value) -> set[str]:
    """Return the dtypes of all tensors in a value."""
    match value:
        case Tensor() | RandomTensor():
            return {value.dtype}
        case Sequence(items=items):
            return {value.type.rsplit("(")[-1].rstrip(")")}.union(*(dtypes(item) for item in items))
        case Optional(value=inner):
            return {value.type.rsplit("(")[-1].rstrip(")")} | dtypes(inner)
        case list() | tuple():
            return set().union(*(dtypes(item) for item in value))
    return set()


def tensor_proto(tensor: Tensor, name: str = "") -> Any:
    """Return the TensorProto of a tensor; strings go to `string_data`, everything else to `raw_data`."""
    from onnx import TensorProto

    proto = TensorProto(data_type=ELEMENT_TYPES[tensor.dtype], dims=tensor.shape)
    if name:
        proto.name = name
    if tensor.dtype == "string":
        proto.string_data.extend(tensor.array().ravel())
    else:
        proto.raw_data = _pack(tensor)
    return proto


def _pack(tensor: Tensor) -> bytes:
    if tensor.dtype not in BITS:
        return tensor.data
    bits = BITS[tensor.dtype]
    each = 8 // bits
    items = np.frombuffer(tensor.data, np.uint8) & ((1 << bits) - 1)
    items = np.pad(items, (0, -len(items) % each)).reshape(-1, each)
    packed: bytes = (items << (np.arange(each, dtype=np.uint8) * bits)).sum(axis=1).astype(np.uint8).tobytes()
    return packed


def from_tensor_proto(proto: Any) -> Tensor:
    """Return the tensor of a TensorProto that holds its data itself (external data is refused)."""
    from onnx import TensorProto, numpy_helper

    if proto.data_location == TensorProto.EXTERNAL or proto.data_type not in DTYPES:
        raise InvalidTest(f"a tensor of type {proto.data_type} with data at {proto.data_location} cannot be read")
    if proto.data_type == TensorProto.STRING:
        return Tensor.of(_objects(list(proto.string_data)).reshape(tuple(proto.dims)))
    return from_array(numpy_helper.to_array(proto), DTYPES[proto.data_type])


def from_array(array: Any, dtype: str = "") -> Tensor:
    """Return the tensor of a numpy array, also of the dtypes that come from ml_dtypes."""
    array = np.asarray(array)
    name = array.dtype.name
    return Tensor.of(array, name if name in CONTAINERS and array.dtype.kind != "O" else dtype or None)


def _objects(items: list[Any]) -> np.ndarray[Any, Any]:
    out = np.empty(len(items), dtype=object)
    out[:] = items
    return out


def type_proto(value: Value) -> Any:
    """Return the exact TypeProto of a value; elements of a sequence have no shape, for they may differ."""
    from onnx import TypeProto

    proto = TypeProto()
    match value:
        case Tensor() | RandomTensor():
            proto.tensor_type.elem_type = ELEMENT_TYPES[value.dtype]
            proto.tensor_type.shape.SetInParent()
            for dim in value.shape:
                proto.tensor_type.shape.dim.add(dim_value=dim)
        case Sequence(type=name):
            proto.sequence_type.elem_type.CopyFrom(named_type(name))
        case Optional(type=name, value=inner):
            held = named_type(name) if inner is None else type_proto(inner)
            proto.optional_type.elem_type.CopyFrom(held)
        case _:
            raise InvalidTest(f"a {type(value).__name__} cannot be an input or output of an ONNX model")
    return proto


def named_type(name: str) -> Any:
    """Return the TypeProto of a type by its name, tensors without a shape."""
    from onnx import TypeProto

    proto = TypeProto()
    kind, _, rest = name.partition("(")
    if rest and kind in ("sequence", "optional", "tensor"):
        inner = named_type(rest.removesuffix(")"))
        if kind == "tensor":
            return inner
        getattr(proto, f"{kind}_type").elem_type.CopyFrom(inner)
    elif name in ELEMENT_TYPES:
        proto.tensor_type.elem_type = ELEMENT_TYPES[name]
    else:
        raise InvalidTest(f"ONNX has no type {name[:40]!r}")
    return proto


def type_name(proto: Any) -> str:
    """Inverse of `named_type`; shapes are left out."""
    match proto.WhichOneof("value"):
        case "sequence_type":
            return f"sequence({type_name(proto.sequence_type.elem_type)})"
        case "optional_type":
            return f"optional({type_name(proto.optional_type.elem_type)})"
        case "tensor_type" if proto.tensor_type.elem_type in DTYPES:
            return DTYPES[proto.tensor_type.elem_type]
    raise InvalidTest(f"a value of type {str(proto)[:60]!r} is none that opera knows")


def element_type(number: int) -> str:
    """Return the type of a tensor as schemas write it: `tensor(float8e4m3fn)`."""
    from onnx import TensorProto

    return f"tensor({TensorProto.DataType.Name(number).lower()})"


def schema_type(proto: Any) -> str:
    """Return a TypeProto as schemas write it, `seq(tensor(double))`; empty where it is none of theirs, or not known."""
    kind = proto.WhichOneof("value")
    if kind == "tensor_type":
        return element_type(proto.tensor_type.elem_type) if proto.tensor_type.elem_type in DTYPES else ""
    short = {"sequence_type": "seq", "optional_type": "optional"}.get(kind or "")
    inner = schema_type(getattr(proto, kind).elem_type) if short else ""
    return f"{short}({inner})" if inner else ""


@cache
def numpy_dtype(name: str) -> np.dtype[Any]:
    """Return numpy's dtype, or that of ml_dtypes where numpy has none."""
    import ml_dtypes

    return np.dtype(getattr(ml_dtypes, name) if hasattr(ml_dtypes, name) else name)


def cast(tensor: Tensor, name: str) -> Tensor:
    """Return a tensor of numbers in another dtype."""
    with np.errstate(all="ignore"):
        return from_array(tensor.numbers().astype(numpy_dtype(name)), name)


def to_evaluator(value: Value) -> Any:
    """Return what onnx.reference.ReferenceEvaluator takes for a value: an array (of ml_dtypes where numpy has none),
    a list for a sequence, None for an empty optional."""
    match value:
        case Tensor(dtype="string"):
            texts = [item.decode("utf-8", "surrogateescape") for item in value.array().ravel()]
            return _objects(texts).reshape(value.shape)
        case Tensor():
            array, dtype = value.array(), numpy_dtype(value.dtype)
            if array.dtype == dtype:
                return array
            return array.astype(dtype) if value.dtype in BITS and dtype.name != "float4_e2m1fn" else array.view(dtype)
        case Sequence(items=items):
            return [to_evaluator(item) for item in items]
        case Optional(value=inner):
            return None if inner is None else to_evaluator(inner)
    return value


def from_evaluator(result: Any, name: str) -> Value:
    """Inverse of `to_evaluator`; `name` is the output's type (`sequence(float32)`), empty where it is not known."""
    kind, _, rest = name.partition("(")
    inner = rest.removesuffix(")")
    if kind == "optional":
        return Optional(inner, None if result is None else from_evaluator(result, inner))
    if isinstance(result, list) or kind == "sequence":
        items = tuple(from_evaluator(item, inner) for item in result)
        return Sequence(inner or (items[0].dtype if items and isinstance(items[0], Tensor) else "float32"), items)
    if result is None:
        raise InvalidTest("no reference: the ONNX reference evaluator computed nothing for an output")
    if (
        isinstance(result, np.ndarray)
        and result.dtype == object
        and len({isinstance(x, str | bytes) for x in result.flat}) > 1
    ):
        raise InvalidTest(
            "no reference: the ONNX reference evaluator returned numbers among strings, which nothing defines"
        )
    if isinstance(result, np.ndarray | np.generic | bool | int | float | complex | str | bytes):
        return from_array(result, "")
    raise InvalidTest(f"no reference: the ONNX reference evaluator returned a {type(result).__name__}")


def parse(message: Message) -> Any:
    """Return the protobuf message that a Message holds. Raises InvalidTest for unknown types and malformed bytes."""
    import onnx
    from google.protobuf.message import DecodeError

    kind = message.type.removeprefix("onnx.")
    if kind not in ("GraphProto", "TypeProto", "SparseTensorProto", "TensorProto", "NodeProto"):
        raise InvalidTest(f"a message of type {message.type[:40]!r} is none that an ONNX model holds")
    proto = getattr(onnx, kind)()
    try:
        proto.ParseFromString(message.data)
    except DecodeError:
        raise InvalidTest(f"the bytes of an {message.type} are malformed") from None
    return proto


def elements(value: Value) -> int:
    """Return how many elements the tensors of a value hold together."""
    match value:
        case Tensor() | RandomTensor():
            return math.prod(value.shape)
        case Sequence(items=items):
            return sum(elements(item) for item in items)
        case Optional(value=inner) if inner is not None:
            return elements(inner)
    return 0
