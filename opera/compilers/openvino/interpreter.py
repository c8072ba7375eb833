"""An `ov.Model`, run operator by operator as numpy has them: what an importer made, by no code of OpenVINO's own.

It knows the operators whose meaning is numpy's own, or a line of it, and those of opera.compilers.openvino.operators; of
others it says that it cannot tell. And it tells whether two models are the same, but for names and for what leads to no output.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from opera.compilers.openvino import operators
from opera.compilers.shared.packing import Refusal


class NotEvaluated(Refusal):
    """An operator of the model has no meaning here, or no reference code that can be asked."""


PLAIN = {
    "Abs": "abs", "Acos": "arccos", "Acosh": "arccosh", "Add": "add", "Asin": "arcsin", "Asinh": "arcsinh", "Atan": "arctan",
    "Atanh": "arctanh", "BitwiseAnd": "bitwise_and", "BitwiseNot": "invert", "BitwiseOr": "bitwise_or",
    "BitwiseXor": "bitwise_xor", "Ceiling": "ceil", "Cos": "cos", "Cosh": "cosh", "Equal": "equal", "Exp": "exp",
    "Floor": "floor", "FloorMod": "mod", "Greater": "greater", "GreaterEqual": "greater_equal", "IsFinite": "isfinite",
    "IsNaN": "isnan", "Less": "less", "LessEqual": "less_equal", "Log": "log", "LogicalAnd": "logical_and",
    "LogicalNot": "logical_not", "LogicalOr": "logical_or", "LogicalXor": "logical_xor", "Maximum": "maximum",
    "Minimum": "minimum", "Mod": "fmod", "Multiply": "multiply", "Negative": "negative", "NotEqual": "not_equal",
    "Power": "power", "Select": "where", "Sign": "sign", "Sin": "sin", "Sinh": "sinh", "Sqrt": "sqrt",
    "Subtract": "subtract", "Tan": "tan", "Tanh": "tanh",
}  # fmt: skip
"""Operators that are numpy's, element by element, broadcast by its rules."""

REDUCTIONS: dict[str, Callable[..., Any]] = {
    "ReduceLogicalAnd": np.all,
    "ReduceLogicalOr": np.any,
    "ReduceMax": np.max,
    "ReduceMean": np.mean,
    "ReduceMin": np.min,
    "ReduceProd": np.prod,
    "ReduceSum": np.sum,
}
DTYPES = {
    "boolean": "bool",
    "string": "object",
    **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)},
    **{f"{sign[0]}{bits}": f"{sign}{bits}" for sign in ("int", "uint") for bits in (8, 16, 32, 64)},
}
"""OpenVINO → numpy."""
GROWS = ("Abs", "Add", "Multiply", "Negative", "Power", "ReduceProd", "ReduceSum", "Subtract")
"""Operators of integers whose result their dtype may not hold."""
BODIES = ("If", "Loop", "TensorIterator")
"""Operators that hold models of their own."""


def evaluated(model: Any, fed: dict[str, Any]) -> list[Any]:
    """Return what a model computes of arrays, by the names of its parameters. Raises NotEvaluated."""
    known: dict[tuple[str, int], Any] = {}
    for node in model.get_ordered_ops():
        name, kind = node.get_friendly_name(), node.get_type_name()
        given = [known[source] for source in map(key, sources(node))]
        if kind == "Parameter":
            value = fed[name]
        elif kind == "Constant":
            value = constant(node)
        elif kind == "Result":
            value = given[0]
        else:
            known |= {(name, place): x for place, x in enumerate(computed(node, given))}
            continue
        known[name, 0] = value
    return [known[key(port)] for result in model.get_results() for port in sources(result)]


def key(port: Any) -> tuple[str, int]:
    """Return what tells an output of a node from all others of its model."""
    return port.get_node().get_friendly_name(), port.get_index()


def sources(node: Any) -> Iterator[Any]:
    """Yield the outputs that a node is given."""
    return (port.get_source_output() for port in node.inputs())


def _dtype(port: Any) -> Any:
    """Return numpy's dtype of an output of a node. Raises NotEvaluated where numpy has none."""
    name = port.get_element_type().get_type_name()
    if name not in DTYPES:
        raise NotEvaluated(f"numpy has no {name}")
    return np.dtype(DTYPES[name])


def constant(node: Any) -> Any:
    """Return the array of a Constant. Raises NotEvaluated where numpy has no such dtype."""
    dtype = _dtype(node.output(0))
    held = node.get_value_strings() if dtype.kind == "O" else node.data
    return np.array(held, dtype).reshape(list(node.get_output_shape(0)))


def computed(node: Any, given: list[Any]) -> list[Any]:
    """Return the outputs of a node, in the dtypes that the model states for them. Raises NotEvaluated."""
    kind, attributes, dtypes = node.get_type_name(), node.get_attributes(), [_dtype(x) for x in node.outputs()]
    if any(getattr(getattr(x, "dtype", None), "kind", "") == "O" for x in given) and kind not in operators.MOVES:
        raise NotEvaluated(f"opera does not evaluate {kind} of strings of OpenVINO")
    try:
        with np.errstate(all="ignore"):
            found = operators.meant(kind, attributes, given)
            if found is None and len(dtypes) == 1:
                found = [_computed(kind, attributes, given, dtypes[0])]
    except (ValueError, IndexError, TypeError) as error:
        raise NotEvaluated(f"numpy does not compute {kind} of this: {error}") from None
    if found is None:
        raise NotEvaluated(f"opera does not evaluate {kind} of OpenVINO")
    return [np.asarray(x).astype(dtype) for x, dtype in zip(found, dtypes, strict=True)]


def _computed(kind: str, attributes: dict[str, Any], given: list[Any], dtype: Any) -> Any:
    value = np.asarray(_by_numpy(kind, attributes, given, dtype))
    if kind in GROWS and dtype.kind in "iu":
        exact = _by_numpy(kind, attributes, [np.asarray(x).astype(object) for x in given[:1]] + given[1:], dtype)
        if (np.asarray(exact) != value).any():
            raise NotEvaluated(f"OpenVINO does not say what {kind} gives that {dtype} cannot hold")
    return value


def _by_numpy(kind: str, attributes: dict[str, Any], given: list[Any], dtype: Any) -> Any:
    if kind in PLAIN:
        return getattr(np, PLAIN[kind])(*given)
    x: Any = given[0] if given else None
    if kind in REDUCTIONS:
        axes = tuple(int(axis) for axis in np.ravel(given[1]))
        return REDUCTIONS[kind](x, axis=axes, keepdims=bool(attributes["keep_dims"]))
    match kind:
        case "Broadcast" if str(attributes.get("mode")).lower() in ("numpy", "bidirectional"):
            to = tuple(map(int, given[1]))
            both = str(attributes["mode"]).lower() == "bidirectional"
            return np.broadcast_to(x, np.broadcast_shapes(np.shape(x), to) if both else to)
        case "Clamp":
            return np.clip(x, attributes["min"], attributes["max"])
        case "Concat":
            return np.concatenate(given, int(attributes["axis"]))
        case "Convert":
            return _converted(np.asarray(x), dtype)
        case "FakeQuantize":
            return _quantised(*given[:5], levels=int(attributes["levels"]))
        case "IsInf":
            signs = [sign for sign, name in ((1, "detect_positive"), (-1, "detect_negative")) if attributes[name]]
            return np.isin(np.sign(x), signs) & np.isinf(x)
        case "MatMul" if min(np.ndim(y) for y in given) > 1:
            sides = [
                np.swapaxes(y, -1, -2) if attributes[name] else y
                for y, name in zip(given, ("transpose_a", "transpose_b"), strict=True)
            ]
            return np.matmul(*sides)
        case "Relu":
            return np.maximum(x, 0)
        case "Reshape":
            wanted = [int(size) for size in given[1]]
            if attributes["special_zero"]:
                wanted = [size or np.shape(x)[place] for place, size in enumerate(wanted)]
            return np.reshape(x, wanted)
        case "Round":
            away = np.sign(x) * np.floor(np.abs(x) + 0.5)
            return np.round(x) if attributes["mode"] == "half_to_even" else away
        case "ShapeOf":
            return np.array(np.shape(x))
        case "Sigmoid":
            return 1 / (1 + np.exp(-np.asarray(x)))
        case "Squeeze":
            return np.squeeze(x, tuple(map(int, np.ravel(given[1]))) if len(given) > 1 else None)
        case "Transpose":
            return np.transpose(x, [int(axis) for axis in given[1]] or None)
        case "Unsqueeze":
            return np.expand_dims(x, tuple(map(int, np.ravel(given[1]))))
    raise NotEvaluated(f"opera does not evaluate {kind} of OpenVINO")


def _converted(x: Any, dtype: Any) -> Any:
    """Convert. Raises NotEvaluated for what an integer cannot hold: numpy does not say what comes of it."""
    if x.dtype.kind == "f" and dtype.kind in "iu":
        limits = np.iinfo(dtype)
        if not ((np.trunc(x) >= limits.min) & (np.trunc(x) <= limits.max)).all():
            raise NotEvaluated(f"numpy does not say what {dtype} becomes of a number that it cannot hold")
    return x.astype(dtype)


def _quantised(x: Any, low: Any, high: Any, least: Any, most: Any, *, levels: int) -> Any:
    """Return what FakeQuantize says of its inputs (OpenVINO's operation specification, FakeQuantize-1)."""
    steps = np.round((x - low) / (high - low) * (levels - 1)) / (levels - 1) * (most - least) + least
    return np.where(x <= np.minimum(low, high), least, np.where(x > np.maximum(low, high), most, steps))


def digest(model: Any) -> str:
    """Return what is the same for models that compute the same by the same operators. Raises NotEvaluated for inner models."""
    told: dict[str, str] = {}
    for node in model.get_ordered_ops():
        name, kind = node.get_friendly_name(), node.get_type_name()
        if kind in BODIES:
            raise NotEvaluated(f"opera does not compare what is within {kind} of OpenVINO")
        parts = [kind, *(f"{told[source]}:{place}" for source, place in map(key, sources(node)))]
        if kind == "Parameter":
            parts.append(name)
        elif kind == "Constant":
            parts.append(hashlib.sha256(np.ascontiguousarray(node.data).tobytes()).hexdigest())
        parts += [str(sorted(node.get_attributes().items())), str([str(x.get_element_type()) for x in node.outputs()])]
        told[name] = hashlib.sha256("\n".join(parts).encode()).hexdigest()
    return hashlib.sha256("\n".join(told[x.get_friendly_name()] for x in model.get_results()).encode()).hexdigest()
