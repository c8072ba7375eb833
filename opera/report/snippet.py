"""A call as a few lines to paste into an interpreter, made without importing its library, which takes seconds.

Floating-point inputs are random of the same shape, others are spelled where they are few: scripts of findings (`opera repro`)
have the values. What cannot be written so has no snippet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from opera.programs.literals import fold, literal
from opera.programs.program import Graph, Instance, Program, stated_version
from opera.programs.values import Named, RandomTensor, Tensor, Value

FEW = 64
"""Elements of an integer tensor that are spelled."""


class _Unwritten(Exception):
    """A value has no form that can be pasted."""


def snippet(program: Program, defaults: Mapping[str, Value] | None = None) -> str:
    """Return the lines, empty where there are none. `defaults` (parameter → default) need not be stated."""
    if isinstance(program, Graph) or program.library not in WRITERS:
        return ""
    try:
        return WRITERS[program.library](program, defaults or {})
    except (_Unwritten, TypeError):  # a value that has no literal
        return ""


def _torch(call: Instance, defaults: Mapping[str, Value]) -> str:
    names = _names(call)
    lines = ["import torch"]
    lines += [f"{names[x.name]} = {_torch_tensor(x.value)}" for x in call.inputs if x.value is not None]
    kind, operator = call.context.get("kind"), call.operator
    if kind == "module":
        made = fold(f"{operator}(", _arguments(call, "init", names), ")")
        mode = "" if call.context.get("training") else ".eval()"
        return "\n".join([*lines, f"module = {made}{mode}", fold("module(", _arguments(call, "call", names), ")")])
    arguments = _arguments(call, "call", names)
    if kind == "function":
        return "\n".join([*lines, fold(f"{operator}(", arguments, ")")])
    if kind == "method" and arguments:
        return "\n".join([*lines, fold(f"{operator}(", arguments, ")")])  # torch.Tensor.view(input, 2) is a call too
    raise _Unwritten


def _torch_tensor(value: Value) -> str:
    if not isinstance(value, Tensor | RandomTensor):
        raise _Unwritten
    shape = ", ".join(map(str, value.shape)) or "()"
    if value.dtype.startswith(("float", "bfloat", "complex")):
        dtype = "" if value.dtype == "float32" else f", dtype=torch.{value.dtype}"
        if value.dtype.startswith("float8"):
            return f"torch.rand({shape}).to(torch.{value.dtype})"
        return f"torch.rand({shape}{dtype})"
    if 0 in value.shape:
        return f"torch.zeros({shape}, dtype=torch.{value.dtype})"
    return f"torch.tensor({_items(value)}, dtype=torch.{value.dtype})"


def _keras(call: Instance, defaults: Mapping[str, Value]) -> str:
    names = _names(call)
    lines = ["import keras, numpy as np"]
    lines += [f"{names[x.name]} = {_array(x.value)}" for x in call.inputs if x.value is not None]
    arguments = _arguments(call, "call", names)
    if call.context.get("kind") == "layer":
        params = {
            name: value
            for name, value in call.params.items()
            if not name.startswith("call.") and (name not in defaults or defaults[name] != value)
            and (name, value) not in (("trainable", True), ("dtype", "float32"))
        }  # fmt: skip
        if any(isinstance(value, dict) for value in params.values()):
            raise _Unwritten
        made = fold(f"{call.operator}(", [f"{name}={_value(value, names)}" for name, value in params.items()], ")")
        if call.context.get("training"):
            arguments.append("training=True")
        return "\n".join([*lines, fold(f"{made}(", arguments, ")")])
    return "\n".join([*lines, fold(f"{call.operator}(", arguments, ")")])


def _onnx(call: Instance, defaults: Mapping[str, Value]) -> str:
    domain, _separator, operator = call.operator.rpartition("::")
    version = stated_version(call)
    if "body" in call.context or version is None:
        raise _Unwritten
    names = _names(call)
    given = [names[x.name] if x.value is not None else "" for x in call.inputs]
    params = [f"{name}={_value(value, names)}" for name, value in call.params.items()]
    outputs = [name or "" for name in call.outputs]
    parts = [
        literal(operator),
        literal(given),
        literal(outputs),
        *params,
        *([f"domain={literal(domain)}"] if domain else []),
    ]
    types = [
        f"helper.make_tensor_value_info({literal(names[x.name])},"
        f" helper.np_dtype_to_tensor_dtype(np.dtype({literal(_onnx_dtype(x.value))})), {literal(list(_shape(x.value)))})"
        for x in call.inputs
        if x.value is not None
    ]
    feeds = [f"{literal(names[x.name])}: {_array(x.value)}" for x in call.inputs if x.value is not None]
    return "\n".join(
        [
            "import numpy as np",
            "from onnx import ValueInfoProto, helper",
            "from onnx.reference import ReferenceEvaluator",
            fold("node = helper.make_node(", parts, ")"),
            fold("inputs = [", types, "]"),
            f"outputs = [ValueInfoProto(name=name) for name in {literal([x for x in outputs if x])}]",
            'graph = helper.make_graph([node], "model", inputs, outputs)',
            f"model = helper.make_model(graph, opset_imports=[helper.make_opsetid({literal(domain)}, {literal(version)})])",
            fold("ReferenceEvaluator(model).run(None, {", feeds, "})"),
        ]
    )


def _onnx_dtype(value: Value) -> str:
    if not isinstance(value, Tensor | RandomTensor) or value.dtype not in NUMPY:
        raise _Unwritten
    return value.dtype


NUMPY = {
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
    "complex64", "complex128",
}  # fmt: skip
"""Dtypes that NumPy has by itself."""


def _array(value: Value) -> str:
    if not isinstance(value, Tensor | RandomTensor) or value.dtype not in NUMPY:
        raise _Unwritten
    if value.dtype.startswith(("float", "complex")):
        return f'np.random.rand({", ".join(map(str, value.shape))}).astype("{value.dtype}")' if value.shape else (
            f"np.{value.dtype}(0.5)"
        )  # fmt: skip
    return f'np.array({_items(value)}, "{value.dtype}")'


def _shape(value: Value) -> tuple[int, ...]:
    if not isinstance(value, Tensor | RandomTensor):
        raise _Unwritten
    return value.shape


def _items(value: Tensor | RandomTensor) -> str:
    tensor = value.tensor() if isinstance(value, RandomTensor) else value
    if tensor.dtype not in NUMPY or tensor.array().size > FEW:
        raise _Unwritten
    return literal(tensor.numbers().tolist())


def _names(call: Instance) -> dict[str, str]:
    """Return input → its variable, where all names are fit for one."""
    names = {x.name: x.name.replace(".", "_").replace("[", "_").replace("]", "") for x in call.inputs}
    if not all(name.isidentifier() and name.isascii() for name in names.values()) or len(set(names.values())) < len(
        names
    ):
        raise _Unwritten
    return names


def _arguments(call: Instance, which: str, names: Mapping[str, str]) -> list[str]:
    """Return the arguments as the program gave them: `context` says which by place and which by name."""
    given: Any = call.context.get(which)
    if not isinstance(given, dict):
        raise _Unwritten
    place = [_argument(call, name, names) for name in given["args"]]
    return [*place, *(f"{str(name).rpartition('.')[2]}={_argument(call, name, names)}" for name in given["kwargs"])]


def _argument(call: Instance, name: Any, names: Mapping[str, str]) -> str:
    if not isinstance(name, str):
        return _value(name, names)
    for known in (name, f"forward.{name}", f"call.{name}"):
        if known in names:
            return names[known]
        if known in call.params:
            return _value(call.params[known], names)
    if any(x.name == name for x in call.inputs):
        return "None"
    raise _Unwritten


def _value(value: Value, names: Mapping[str, str]) -> str:
    """Return the source of a parameter."""
    match value:
        case Named(kind=kind, name=name) if kind.endswith(".input") and name in names:
            return names[name]
        case Named(kind="torch.dtype", name=name):
            return f"torch.{name.removeprefix('torch.')}"
        case list():
            return fold("[", [_value(item, names) for item in value], "]")
        case tuple():
            inner = [_value(item, names) for item in value]
            return f"({inner[0]},)" if len(inner) == 1 else fold("(", inner, ")")
        case Tensor() | RandomTensor() | Named():
            raise _Unwritten
    return literal(value)


WRITERS: dict[str, Callable[[Instance, Mapping[str, Value]], str]] = {"torch": _torch, "keras": _keras, "onnx": _onnx}
"""Library → what writes its calls; a plugin's library has none."""
