"""What PyTorch computes for an ONNX model: operators that are declared to be equivalent are calls of PyTorch, node by node.

The declarations are expressions (instrumentation/onnx.toml, `[equivalents]`). They are held against the expected outputs of
ONNX's node tests by tests/libraries/onnx/test_equivalents.py.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np

from opera import resources
from opera.libraries.onnx import codec, schemas
from opera.oracle.opinions import Opinion
from opera.programs.values import RandomTensor, Tensor, Value

NAME = "torch"
GATES = {"LSTM": (0, 2, 3, 1), "RNN": (0,)}
"""Recurrent operator → the places of PyTorch's gates (input, forget, cell, output) among those of ONNX (`iofc`)."""


def ask(model: Any, feeds: Mapping[str, Value]) -> Opinion:
    """Return what PyTorch computes for a ModelProto, without outputs where it is not there, or nothing is declared.

    It has no strings. What moves data moves numbers alike: each string is fed as its place among all that are fed, in order.
    """
    words = np.unique([word for x in feeds.values() if _is_text(x) for word in x.array().ravel()]).astype(object)
    try:
        outputs = _run(model, {name: _places(x, words) if _is_text(x) else x for name, x in feeds.items()})
        kinds = [codec.type_name(x.type) for x in model.graph.output]
        outputs = [
            Tensor.of(words[x.array()]) if kind == "string" and isinstance(x, Tensor) else x
            for kind, x in zip(kinds, outputs, strict=True)
        ]
    except Exception as error:  # nothing declared, or PyTorch refuses what ONNX admits: it has no opinion
        return Opinion(
            NAME, True, None, f"{type(error).__name__}: {' '.join(str(error).split())[:300]}", equivalent=True
        )
    return Opinion(NAME, True, outputs, equivalent=True)


def _is_text(value: Value) -> TypeGuard[Tensor]:
    return isinstance(value, Tensor) and value.dtype == "string"


def _places(tensor: Tensor, words: np.ndarray[Any, Any]) -> Tensor:
    """Return the place of each of these words among all."""
    return Tensor.of(np.searchsorted(words, tensor.array()).astype(np.int64).reshape(tensor.shape))


def declared() -> dict[str, str]:
    """Return ONNX operator → expression of PyTorch.

    Its names are the operator's inputs (tensors, None where they are left out, a list of a variadic one) and attributes (their
    values, by default as well), `every` of these by name, `given` (one that not every version has), `since` (the version of
    the operator), `torch`, `F`, `functools`, `math`, and the functions of HELP. It is a tensor, several, a function of the
    inputs, or None where PyTorch does something else.
    """
    found: dict[str, str] = resources.declaration("instrumentation", "onnx").get("equivalents", {})
    return found


def _run(model: Any, feeds: Mapping[str, Value]) -> list[Value]:
    """Return what a model computes. Raises LookupError where nothing is declared of a node: before PyTorch is imported."""
    expressions = declared()
    if others := {
        x.op_type for x in model.graph.node if x.domain not in ("", "ai.onnx") or x.op_type not in expressions
    }:
        raise LookupError(f"no equivalent of {', '.join(sorted(others))} is declared")
    from opera.libraries.torch import codec as torch_values
    from opera.libraries.torch import eager

    with eager.quiet():
        known = {
            name: torch_values.to_torch(value)
            for name, value in feeds.items()
            if isinstance(value, Tensor | RandomTensor)
        }
        known |= {x.name: torch_values.to_torch(codec.from_tensor_proto(x)) for x in model.graph.initializer}
        versions = {x.domain: x.version for x in model.opset_import}
        for node in model.graph.node:
            known |= zip(node.output, _call(node, expressions[node.op_type], versions, known), strict=False)
        return [_value(known[x.name]) for x in model.graph.output]


def _call(node: Any, expression: str, versions: Mapping[str, int], known: Mapping[str, Any]) -> Sequence[Any]:
    """Return what a node computes. Raises LookupError where PyTorch does something else."""
    import torch
    from onnx import defs, helper

    schema = defs.get_schema(node.op_type, versions.get(node.domain, 1), "")
    stated = {x.name: helper.get_attribute_value(x) for x in node.attribute}
    defaults = {
        name: helper.get_attribute_value(x.default_value) if x.default_value.type else None
        for name, x in schema.attributes.items()
    }
    names = {name: schemas.plain(x) for name, x in (defaults | stated).items()}
    given = [known[x] if x else None for x in node.input]
    for place, formal in enumerate(schema.inputs):
        variadic = formal.option == defs.OpSchema.FormalParameterOption.Variadic
        names[formal.name] = given[place:] if variadic else (given[place] if place < len(given) else None)

    def one(*keys: str, otherwise: Any = None) -> Any:
        return next((names[key] for key in keys if names.get(key) is not None), otherwise)

    more = {"torch": torch, "F": torch.nn.functional, "functools": functools, "math": math, **HELP}
    found = eval(expression, {**more, "since": schema.since_version, "given": one, "every": names, **names})
    found = found(*given) if callable(found) else found
    found = tuple(found) if isinstance(found, tuple | list) else (found,)
    if len(found) < len(node.output) or any(x is None for x in found[: len(node.output)]):
        raise LookupError(f"PyTorch has no equivalent of this {node.op_type}")
    return found


def _value(item: Any) -> Tensor:
    import torch

    dtype = str(item.dtype).removeprefix("torch.")
    return Tensor(dtype, tuple(item.shape), bytes(item.contiguous().flatten().view(torch.uint8).numpy().tobytes()))


# ---------------------------------------------------------------------- what expressions may call


def nd(name: str, x: Any) -> Any:
    """Return the function of PyTorch for as many spatial dimensions as a tensor has: `conv{}d`."""
    import torch

    return getattr(torch.nn.functional, name.format(x.ndim - 2))


def padding(x: Any, given: Sequence[int] | None, auto_pad: str = "NOTSET") -> list[int]:
    """Return the padding of each spatial dimension. Raises LookupError where it is not the same on both sides."""
    size = x.ndim - 2
    both = list(given or [0] * 2 * size)
    if auto_pad not in ("NOTSET", "VALID") or both[:size] != both[size:]:
        raise LookupError("PyTorch pads both sides alike")
    return [0] * size if auto_pad == "VALID" else both[:size]


def reduced(of: Any, every: Mapping[str, Any]) -> Any:
    """Return a reduction of a node: `of` takes a tensor, axes and whether they are kept, of length 1.

    Of no axes all are reduced, or, with `noop_with_empty_axes`, one that is added: what is done beside the reduction is done.
    """
    x, axes = every["data"], tuple(int(axis) for axis in (() if every["axes"] is None else every["axes"]))
    if every.get("noop_with_empty_axes") and not axes:
        return of(x.unsqueeze(-1), (-1,), False)
    return of(x, axes or tuple(range(x.ndim)), bool(every["keepdims"]))


def torch_dtype(number: int) -> Any:
    """Return PyTorch's dtype of a number of ONNX's TensorProto."""
    import torch

    return getattr(torch, codec.DTYPES[number])


def cast(x: Any, to: Any, saturate: int | None = 1) -> Any:
    """Return a tensor of another dtype; what is beyond one of 8 bits becomes its largest number where it saturates."""
    import torch

    name = str(to).removeprefix("torch.")
    if not (name.startswith("float8") and x.is_floating_point()):
        return None if name.startswith("float8") else x.to(to)
    if name.startswith("float8_e8m0") or (name == "float8_e4m3fn" and not saturate):  # rounds up; saturates anyway
        return None
    if saturate:
        most = torch.finfo(to).max
        wide = x.double()
        x = torch.where(wide.isnan(), wide, wide.clamp(-most, most)).to(x.dtype)
    return x.to(to)


def resized(every: Mapping[str, Any]) -> Any:
    """Return Resize, or None where PyTorch's interpolation means something else.

    Its positions are half pixels or aligned corners; of the nearest element, what asymmetric positions round down to, or the
    upper one of two that are equally near.
    """
    import torch

    x, mode, position = every["X"], every["mode"], every["coordinate_transformation_mode"]
    by = None if every["scales"] is None or not len(every["scales"]) else every["scales"].tolist()
    size = every["sizes"].tolist() if by is None else [round(s * n) for s, n in zip(by, x.shape, strict=True)]
    odd = every.get("antialias") or every["exclude_outside"] or every.get("axes") or every["cubic_coeff_a"] != -0.75
    odd = odd or every.get("keep_aspect_ratio_policy", "stretch") != "stretch" or position == "tf_crop_and_resize"
    if odd or (by and any(abs(s * n - m) > 1e-6 for s, n, m in zip(by, x.shape, size, strict=True))):
        return None
    if size[:2] != list(x.shape[:2]):
        return None
    if mode == "nearest":
        kinds = {("asymmetric", "floor"): "nearest", ("half_pixel", "round_prefer_ceil"): "nearest-exact"}
        kind, aligned = kinds.get((position, every["nearest_mode"])), None
    else:
        names = {"linear": {3: "linear", 4: "bilinear", 5: "trilinear"}, "cubic": {4: "bicubic"}}
        kind = names[mode].get(x.ndim) if position in ("half_pixel", "align_corners") else None
        aligned = position == "align_corners"
    if kind is None or (aligned and 1 in size[2:]):
        return None
    return torch.nn.functional.interpolate(x, size[2:], mode=kind, align_corners=aligned)


def unpooled(x: Any, indices: Any, shape: Any, kernel: Any, strides: Any, pads: Any) -> Any:
    """Return MaxUnpool: PyTorch's indices are those of a plane, ONNX's those of the whole tensor."""
    strides, around = strides or [1] * len(kernel), padding(x, pads)
    sides = zip(x.shape[2:], kernel, strides, around, strict=True)
    size = [int(n) for n in shape[2:]] if shape is not None else [(n - 1) * s + k - 2 * p for n, k, s, p in sides]
    return nd("max_unpool{}d", x)(x, indices % math.prod(size), kernel, strides, around, size)


def recurrent(kind: str, given: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return LSTM or RNN by PyTorch's own: Y, Y_h, and Y_c. Raises LookupError for what that has not."""
    import torch

    x, way = given["X"], given["direction"]
    odd = [x for x in ("sequence_lens", "P", "activation_alpha", "activation_beta", "clip") if given.get(x) is not None]
    odd += ["input_forget"] * bool(given.get("input_forget"))
    odd += ["activations"] * (
        given["activations"] is not None and (kind, *set(given["activations"])) != ("RNN", "Tanh")
    )
    if odd:
        raise LookupError(f"PyTorch's {kind} has no {', '.join(odd)}")
    first = bool(given.get("layout"))
    x = x.transpose(0, 1) if first else x
    directions, size = given["R"].shape[0], given["R"].shape[2]
    zeros = x.new_zeros(directions, x.shape[1], size)
    states = [
        zeros if s is None else s.transpose(0, 1) if first else s for s in map(given.get, ("initial_h", "initial_c"))
    ]
    bias = x.new_zeros(directions, 2 * len(GATES[kind]) * size) if given.get("B") is None else given["B"]

    def gates(held: Any) -> Any:
        return torch.cat([held.split(size)[place] for place in GATES[kind]])

    params = [
        gates(part)
        for place in range(directions)
        for part in (given["W"][place], given["R"][place], *bias[place].split(len(bias[place]) // 2))
    ]
    run = getattr(torch, {"RNN": "rnn_tanh"}.get(kind, kind.lower()))
    state = tuple(states) if kind == "LSTM" else states[0]
    turned = x.flip(0) if way == "reverse" else x
    y, *last = run(turned, state, params, True, 1, 0.0, False, directions == 2, False)
    y = y.flip(0) if way == "reverse" else y
    y = y.unflatten(2, (directions, size))  # (length, batch, directions, size)
    y = y.transpose(0, 1) if first else y.transpose(1, 2)
    return (y, *(s.transpose(0, 1) if first else s for s in last))


HELP: dict[str, Any] = {x.__name__: x for x in (nd, padding, reduced, torch_dtype, cast, resized, unpooled, recurrent)}
