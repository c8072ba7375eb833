"""The operator instances of a whole model: shapes made concrete, types inferred, missing values made up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import onnx

from opera import resources
from opera.capture.recorder import LeftOut
from opera.errors import OperaError
from opera.libraries.onnx import nodes
from opera.libraries.onnx.codec import DTYPES, from_array, from_tensor_proto, type_name
from opera.programs.program import Instance
from opera.programs.values import CONTAINERS, Optional, RandomTensor, Sequence, Tensor, Value

MAX_NODES = 500
"""Models with more nodes are left out: they test a graph, not an operator."""
MAX_MADE = 1 << 22
"""Inputs with more elements than this are not made up."""
SMALL = 4
"""Integers that are made up lie in 0 .. SMALL - 1."""


def instances_of_model(model: Any) -> Iterator[Instance | LeftOut]:
    """Yield the instance of each node of a model's main graph, or why it is left out. The model is not changed."""
    if len(model.graph.node) > MAX_NODES:
        yield LeftOut("model of more than 500 nodes")
        return
    try:
        model = concrete(model)
    except Exception as error:  # inference fails in many ways on the models that tests of it build
        for _ in model.graph.node:
            yield LeftOut(f"types cannot be inferred: {type(error).__name__}")
        return
    opset, types, constants = nodes.opset_of(model), _types(model.graph), _constants(model.graph)
    for node in model.graph.node:
        try:
            yield nodes.instance(node, _edges(node, types, constants, opset), opset)
        except LeftOut as left_out:
            yield left_out
        except OperaError as error:
            yield LeftOut(f"no encoding: {error.what[:60]}")


def concrete(model: Any) -> Any:
    """Return a copy in which every dimension of a graph input is a number, with all types that follow from it."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    sizes: dict[str, int] = {}
    for info in copy.graph.input:
        if info.type.HasField("tensor_type") and info.type.tensor_type.HasField("shape"):
            for dim in info.type.tensor_type.shape.dim:
                if not dim.HasField("dim_value") or dim.dim_value < 0:
                    name = dim.dim_param
                    dim.dim_value = sizes.setdefault(name, 2 + len(sizes) % 4) if name else 2
    copy.graph.ClearField("value_info")
    for info in copy.graph.output:
        info.type.tensor_type.ClearField("shape") if info.type.HasField("tensor_type") else None
    return onnx.shape_inference.infer_shapes(copy, data_prop=True)


def _types(graph: Any) -> dict[str, Any]:
    return {info.name: info.type for info in (*graph.output, *graph.value_info, *graph.input)}


def _constants(graph: Any) -> dict[str, Value]:
    """Return edges whose values the model itself states: initializers and Constant nodes."""
    found: dict[str, Value] = {}
    for tensor in graph.initializer:
        found[tensor.name] = from_tensor_proto(tensor)
    for node in graph.node:
        if node.op_type == "Constant" and not node.domain and len(node.attribute) == 1:
            stated = nodes.plain(node.attribute[0])
            kind = {"value_int": "int64", "value_ints": "int64", "value_float": "float32", "value_floats": "float32"}
            if node.attribute[0].name in kind:
                stated = Tensor.of(np.asarray(stated, dtype=kind[node.attribute[0].name]))
            if isinstance(stated, Tensor):
                found[node.output[0]] = stated
    return found


def _edges(node: Any, types: dict[str, Any], constants: dict[str, Value], opset: Mapping[str, int]) -> dict[str, Value]:
    edges: dict[str, Value] = {}
    formals = nodes.formal_inputs(node, opset)
    fixed: dict[str, int] = resources.declaration("instrumentation", "onnx").get("made_up", {})
    for name in (*node.input, *nodes.outer_names(node)):
        if not name or name in edges:
            continue
        if name in constants:
            edges[name] = constants[name]
        elif name in types:
            edges[name] = made_up(types[name], len(edges), _range(node.op_type), fixed.get(formals.get(name, "")))
    return edges


def made_up(kind: Any, seed: int, bounds: tuple[float, float], fixed: int | None = None) -> Value:
    """Return a value of a type, the same for the same seed: small integers (all `fixed`, if given), floats in `bounds`.

    Raises LeftOut where the type lacks rank, a dimension or an element type.
    """
    match kind.WhichOneof("value"):
        case "tensor_type" if kind.tensor_type.elem_type in DTYPES:
            return _tensor(kind.tensor_type, seed, bounds, fixed)
        case "sequence_type":
            held = kind.sequence_type.elem_type
            return Sequence(type_name(held), tuple(made_up(held, seed + index, bounds) for index in range(2)))
        case "optional_type":
            held = kind.optional_type.elem_type
            return Optional(type_name(held), made_up(held, seed, bounds))
    raise LeftOut("input of unknown type")


def _tensor(kind: Any, seed: int, bounds: tuple[float, float], fixed: int | None) -> Tensor | RandomTensor:
    if not kind.HasField("shape"):
        raise LeftOut("input of unknown rank")
    if not all(dim.HasField("dim_value") for dim in kind.shape.dim):
        raise LeftOut("input of unknown dimension")
    dtype, shape = DTYPES[kind.elem_type], tuple(dim.dim_value for dim in kind.shape.dim)
    if np.prod(shape, dtype=float) > MAX_MADE or min(shape, default=0) < 0:
        raise LeftOut("input too large")
    if dtype in ("float16", "float32", "float64"):
        return RandomTensor(dtype, shape, seed, *bounds)
    random = np.random.Generator(np.random.PCG64(seed))
    if dtype == "string":
        return Tensor.of(random.choice(np.array(["a", "b", "ab"], dtype=object), shape))
    if dtype == "bool":
        return Tensor.of(random.random(shape) < 0.5)
    if dtype in ("complex64", "complex128"):
        return Tensor.of((random.random(shape) + 1j * random.random(shape)).astype(dtype))
    if dtype.startswith(("bfloat", "float")):
        low, high = bounds
        return from_array((low + (high - low) * random.random(shape)).astype(getattr(ml_dtypes, dtype)))
    if fixed is not None:
        return Tensor.of(np.full(shape, fixed).astype(CONTAINERS[dtype]), dtype)
    small = 2 if dtype in ("int2", "uint2") else SMALL
    return Tensor.of(random.integers(0, small, shape).astype(CONTAINERS[dtype]), dtype)


@cache
def _range(operator: str) -> tuple[float, float]:
    declared = resources.declaration("instrumentation", "onnx").get("ranges", {})
    low, high = declared.get(operator, declared.get("default", (-2.0, 2.0)))
    return float(low), float(high)
