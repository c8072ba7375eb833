"""An imported Relax module, run operator by operator as numpy has them: what the importer made, before TVM lowers it.

It knows the operators whose meaning is numpy's own, or a line of it, and those of opera.compilers.tvm.operators; of others it
says that it cannot tell.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opera.compilers.shared.packing import Refusal
from opera.compilers.tvm import operators
from opera.compilers.tvm.values import array, handed

NAMES = {
    "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan",
    "atanh": "arctanh", "mod": "fmod", "floor_mod": "mod", "divide": "divide", "power": "power", "abs": "absolute",
    "logical_and": "logical_and", "bitwise_not": "invert", "left_shift": "left_shift", "right_shift": "right_shift",
}  # fmt: skip
"""Relax → numpy, where names differ (or an operator is in PLAIN though numpy calls it so)."""

PLAIN = {
    "add", "subtract", "multiply", "divide", "power", "floor_divide", "mod", "floor_mod", "maximum", "minimum", "equal",
    "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or", "logical_xor", "logical_not",
    "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "left_shift", "right_shift", "abs", "ceil", "floor", "cos",
    "cosh", "sin", "sinh", "tan", "tanh", "acos", "acosh", "asin", "asinh", "atan", "atanh", "exp", "log", "negative",
    "sign", "sqrt", "square", "trunc", "isnan", "isinf", "isfinite", "where", "matmul",
}  # fmt: skip
"""Operators that are numpy's of that name, or of NAMES', element by element or by its own rules of broadcasting."""

GROWS = {"abs", "add", "multiply", "negative", "power", "subtract", "sum", "prod", "square", "cumsum", "cumprod"}
"""Operators of integers whose result their dtype may not hold."""

REDUCTIONS: dict[str, Callable[..., Any]] = {
    "sum": np.sum,
    "prod": np.prod,
    "max": np.max,
    "min": np.min,
    "mean": np.mean,
    "std": np.std,
    "variance": np.var,
}


class NotKnown(Refusal):
    """The module has something of which this cannot tell the meaning."""


class Declared:
    """Stands where a virtual machine stands: zeros of the types that Relax states for what the module returns."""

    def __init__(self, module: Any) -> None:
        function = module["main"]
        self._stated = getattr(function, "ret_ty", None) or function.ret_struct_info

    def set_input(self, _: str, *values: Any) -> None:
        pass

    def invoke_stateful(self, _: str) -> None:
        pass

    def get_outputs(self, _: str) -> Any:
        """Return the zeros. Raises NotKnown where a shape is not stated."""
        return _handed(_zeros(self._stated))


def _zeros(stated: Any) -> Any:
    if hasattr(stated, "fields"):
        return tuple(_zeros(field) for field in stated.fields)
    shape = getattr(stated, "shape", None)
    if shape is None or getattr(shape, "values", None) is None:
        raise NotKnown("Relax states no shape for what it returns")
    return np.zeros([int(x) for x in _static(shape.values)], str(stated.dtype))


def digest(module: Any) -> str:
    """Return what is the same for modules that are the same but for names, and for parameters that nothing uses."""
    import tvm_ffi

    functions = {str(name.name_hint): function for name, function in module.functions.items()}
    bodies = {name: getattr(function, "body", function) for name, function in functions.items()}
    return " ".join(f"{name}:{tvm_ffi.structural_hash(bodies[name], map_free_vars=True):x}" for name in sorted(bodies))


class Interpreted:
    """Stands where a virtual machine stands."""

    def __init__(self, module: Any) -> None:
        self._module, self._values, self._found = module, (), None

    def set_input(self, _: str, *values: Any) -> None:
        self._values = values

    def invoke_stateful(self, _: str) -> None:
        with np.errstate(all="ignore"):
            self._found = _run(self._module["main"], self._values, self)

    def called(self, node: Any, arguments: list[Any]) -> Any:
        """Return what a call of an operator gives. Raises NotKnown."""
        name = getattr(node.op, "name", "")
        short = name.removeprefix("relax.")
        if overflows(short, arguments, node.attrs):
            raise NotKnown(f"TVM does not say what {name} gives that its dtype cannot hold")
        try:
            meant = operators.meant(short, node.attrs, arguments)
        except (ValueError, IndexError, TypeError) as error:
            raise NotKnown(f"numpy does not compute {name} of this: {error}") from None
        return _call(short, arguments, node.attrs) if meant is None else meant

    def typed(self, variable: Any, value: Any) -> Any:
        """Return a value in the dtype that Relax states for it: numpy promotes by other rules."""
        dtype = getattr(stated(variable), "dtype", None)
        if dtype is None or not isinstance(value, np.ndarray | np.generic):
            return value
        return np.asarray(value).astype(str(dtype))

    def get_outputs(self, _: str) -> Any:
        return _handed(self._found)


def _handed(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_handed(item) for item in value]
    return handed(np.asarray(value).copy(order="C"))


def _run(function: Any, values: Any, by: Interpreted) -> Any:
    """Return what a function computes. Raises NotKnown."""
    from tvm import relax

    known: dict[Any, Any] = {}
    for parameter, value in zip(function.params, values, strict=True):
        known[parameter] = array(value) if hasattr(value, "numpy") else value
    body = function.body
    for block in body.blocks if isinstance(body, relax.SeqExpr) else ():
        for binding in block.bindings:
            known[binding.var] = by.typed(binding.var, _value(binding.value, known, by.called))
    return _value(body.body if isinstance(body, relax.SeqExpr) else body, known, by.called)


def stated(node: Any) -> Any:
    """Return what Relax states of a value: its type."""
    return getattr(node, "ty", None) or getattr(node, "struct_info", None)


def _value(node: Any, known: dict[Any, Any], called: Callable[[Any, list[Any]], Any]) -> Any:
    import tvm
    from tvm import relax

    match node:
        case relax.Var():
            return known[node]
        case tvm.ir.Constant() if hasattr(node, "data"):
            return node.data.numpy()
        case relax.Expr() if hasattr(getattr(node, "value", None), "numpy"):  # so from TVM 0.26 on
            return node.value.numpy()
        case relax.ShapeExpr():
            return tuple(int(x) for x in _static(node.values))
        case relax.Tuple():
            return tuple(_value(field, known, called) for field in node.fields)
        case relax.TupleGetItem():
            return _value(node.tuple_value, known, called)[node.index]
        case relax.Call():
            return called(node, [_value(x, known, called) for x in node.args])
    if hasattr(node, "value"):  # a number among the arguments: an IntImm, a FloatImm, or what holds one
        [number] = _static([node if not hasattr(node.value, "value") else node.value])
        return number
    raise NotKnown(f"Relax has {type(node).__name__}, which opera does not evaluate")


def _static(values: Any) -> list[Any]:
    found = [getattr(x, "value", None) for x in values]
    if any(x is None for x in found):
        raise NotKnown("Relax has a shape that is not known")
    return found


def overflows(name: str, arguments: list[Any], attrs: Any) -> bool:
    """Whether what an operator computes of integers is none that their dtype holds: numpy wraps it, TVM says nothing of it."""
    if name not in GROWS or any(getattr(x, "dtype", np.dtype(bool)).kind not in "iu" for x in arguments):
        return False
    exact = np.asarray(_call(name, [np.asarray(x).astype(object) for x in arguments], attrs))
    return bool((exact != np.asarray(_call(name, arguments, attrs))).any())


def _call(name: str, arguments: list[Any], attrs: Any) -> Any:
    if name in PLAIN:
        function: Callable[..., Any] = getattr(np, NAMES.get(name, name))
        return np.asarray(function(*arguments))
    if name in REDUCTIONS:
        return np.asarray(REDUCTIONS[name](arguments[0], axis=_axes(attrs), keepdims=bool(attrs.keepdims)))
    if name in ("argmax", "argmin"):
        axis = None if attrs.axis is None else int(attrs.axis)
        return np.asarray(getattr(np, name)(arguments[0], axis=axis, keepdims=bool(attrs.keepdims)))
    x: Any = arguments[0] if arguments else None
    match name:
        case "astype":
            return np.asarray(x).astype(str(attrs.dtype))
        case "sigmoid":
            return 1 / (1 + np.exp(-x))
        case "rsqrt":
            return 1 / np.sqrt(x)
        case "nn.softmax" | "nn.log_softmax":
            raised = np.exp(x - np.max(x, int(attrs.axis), keepdims=True))
            shares = raised / np.sum(raised, int(attrs.axis), keepdims=True)
            return shares if name == "nn.softmax" else np.log(shares)
        case "nn.relu":
            return np.maximum(x, 0)
        case "clip":
            return np.clip(x, arguments[1], arguments[2])
        case "reshape":
            return np.reshape(x, arguments[1])
        case "broadcast_to":
            return np.broadcast_to(x, arguments[1])
        case "permute_dims":
            return np.transpose(x, None if attrs.axes is None else [int(a) for a in attrs.axes])
        case "expand_dims":
            return np.expand_dims(x, tuple(int(a) for a in attrs.axis))
        case "squeeze":
            return np.squeeze(x, _axes(attrs))
        case "flip":
            return np.flip(x, int(attrs.axis))
        case "concat":
            return np.concatenate(x, None if attrs.axis is None else int(attrs.axis))
        case "zeros_like" | "ones_like":
            return getattr(np, name)(x)
        case "zeros" | "ones":
            return getattr(np, name)(x, str(attrs.dtype))
        case "full":
            return np.full(x, arguments[1])
        case "tile":
            return np.tile(x, [int(a) for a in attrs.repeats])
        case "cumsum" | "cumprod":
            if not attrs.exclusive:
                whole = attrs.axis is None
                found = getattr(np, name)(x, axis=None if whole else int(attrs.axis))
                return found if whole else found.reshape(np.shape(x))  # numpy makes an axis for one number
    raise NotKnown(f"opera does not evaluate {name or 'what is called'} of Relax")


def _axes(attrs: Any) -> tuple[int, ...] | None:
    return None if attrs.axis is None else tuple(int(x) for x in attrs.axis)
