"""Programs of two and three calls, of each library, as somebody writes them by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from opera.programs.program import Argument, Call, Graph, Operand
from opera.programs.values import Named, Tensor

OPSET = {"opset": {"": 14}}


def tensor(*shape: int, start: float = -3.0) -> Tensor:
    """Return float32 numbers from `start` on, in steps of a half."""
    return Tensor.of((np.arange(np.prod(shape), dtype=np.float32) / 2 + start).reshape(shape))


def node(operator: str, arguments: dict[str, str], outputs: tuple[str, ...], **params: Any) -> Call:
    """Return a call of an ONNX operator; `arguments` are formal name → name in the program."""
    return Call(operator, params, tuple(Argument(*pair) for pair in arguments.items()), outputs, OPSET)


def function(
    operator: str, arguments: dict[str, str], *outputs: str, kwargs: tuple[str, ...] = (), **params: Any
) -> Call:
    """Return a call of a function or method of PyTorch or Keras: tensors by position, then parameters, but for `kwargs`."""
    positional = [*arguments, *(name for name in params if name not in kwargs)]
    context = {"kind": "function", "call": {"args": positional, "kwargs": list(kwargs)}}
    return Call(operator, params, tuple(Argument(*pair) for pair in arguments.items()), outputs, context)


ONNX = {
    "matmul-relu": Graph(
        "onnx", (Operand("x", tensor(2, 3)), Operand("w", tensor(3, 4, start=-1.0))),
        (node("MatMul", {"A": "x", "B": "w"}, ("product",)), node("Relu", {"X": "product"}, ("y",))), ("y",),
    ),
    "split-add-concat": Graph(  # two results of one call, and an input that two calls take
        "onnx", (Operand("x", tensor(2, 4)), Operand("bias", tensor(2, 2))),
        (
            node("Split", {"input": "x"}, ("left", "right"), axis=1),
            node("Add", {"A": "left", "B": "bias"}, ("sum",)),
            node("Concat", {"inputs": "sum", "more": "right", "again": "bias"}, ("y",), axis=1),
        ), ("y", "sum"),
    ),
    "clip-softmax": Graph(
        "onnx", (Operand("x", tensor(2, 3)), Operand("most", Tensor.of(np.float32(1.0)))),
        (
            node("Clip", {"input": "x", "min": "", "max": "most"}, ("clipped",)),
            node("Softmax", {"input": "clipped"}, ("y",), axis=1),
        ), ("y",),
    ),
}  # fmt: skip

LINEAR = Call(
    "torch.nn.Linear", {"in_features": 3, "out_features": 4}, (Argument("forward.input", "x"),), ("h",),
    {"kind": "module", "training": False, "init": {"args": ["in_features", "out_features"], "kwargs": []},
     "call": {"args": ["forward.input"], "kwargs": []}},
)  # fmt: skip
TORCH = {
    "matmul-relu_": Graph(  # the second call changes the first one's result in place, and the program returns both
        "torch", (Operand("x", tensor(2, 3)), Operand("w", tensor(3, 4, start=-1.0))),
        (
            function("torch.matmul", {"input": "x", "other": "w"}, "product"),
            function("torch.Tensor.relu_", {"input": "product"}, "y"),
        ), ("y", "product"),
    ),
    "linear-split-add": Graph(
        "torch", (Operand("x", tensor(2, 3)),),
        (
            LINEAR,
            function("torch.split", {"tensor": "h"}, "left", "right", split_size_or_sections=2, dim=1),
            function("torch.add", {"input": "left", "other": "right"}, "y"),
        ), ("y",),
    ),
}  # fmt: skip


def layer(
    operator: str, call: dict[str, Any], arguments: dict[str, str], outputs: tuple[str, ...], **params: Any
) -> Call:
    """Return a call of a Keras layer that is constructed with `params`; `call` are the arguments of the call."""
    context = {"kind": "layer", "config": "constructor", "training": False, "call": {"args": list(call), "kwargs": []}}
    return Call(operator, params | call, tuple(Argument(*pair) for pair in arguments.items()), outputs, context)


KERAS = {
    "dense-relu": Graph(
        "keras", (Operand("x", tensor(2, 3)),),
        (
            layer("keras.layers.Dense", {"call.inputs": Named("keras.input", "inputs")}, {"inputs": "x"}, ("h",), units=4),
            function("keras.ops.relu", {"x": "h"}, "y"),
        ), ("y",),
    ),
    "split-add": Graph(
        "keras", (Operand("x", tensor(2, 4)),),
        (
            function("keras.ops.split", {"x": "x"}, "left", "right", indices_or_sections=2, axis=1),
            layer(
                "keras.layers.Add",
                {"call.inputs": [Named("keras.input", "one"), Named("keras.input", "other")]},
                {"one": "left", "other": "right"}, ("sum",),
            ),
            function("keras.ops.exp", {"x": "sum"}, "y"),
        ), ("y",),
    ),
}  # fmt: skip
EVERY = {f"{graph.library} {name}": graph for part in (ONNX, TORCH, KERAS) for name, graph in part.items()}
