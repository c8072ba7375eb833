"""OpenVINO on the CPU. What it does with PyTorch's and Keras's models is in openvino_torch.py and openvino_keras.py."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from opera import precision
from opera.compilers import Case, Variant
from opera.compilers.openvino import keras as openvino_keras
from opera.compilers.openvino import torch as openvino_torch
from opera.compilers.shared import keras_live, torch_operators
from opera.compilers.shared.messages import Rule, last_location
from opera.compilers.shared.messages import unsupported as first_rule
from opera.compilers.shared.packing import CannotCarry, of_numpy, pack, unpack
from opera.programs.values import Optional, Tensor, Value

NAME = "openvino"
PACKAGE = "openvino"
PRELOAD = ("openvino",)
FRONTENDS: Mapping[str, tuple[Variant, ...]] = {
    "onnx": (Variant("inputs", "onnx"), Variant("constants", "onnx-constants", after="rejected")),
    "torch": (
        Variant("exported-program", "pt2", preload=openvino_torch.PRELOAD),
        Variant("torchscript", "torchscript", preload=openvino_torch.PRELOAD),
        Variant("onnx", "onnx", after="rejected"),
    ),
    "keras": (
        Variant("saved-model", "saved_model", preload=openvino_keras.PRELOAD),
        Variant("live", "live", preload=openvino_keras.PRELOAD),
        Variant("openvino", "openvino", after="rejected"),
        Variant("onnx", "onnx", after="rejected"),
    ),
}

LOADERS = openvino_torch.LOADERS | openvino_keras.LOADERS
"""Artefact → what converts it; all others OpenVINO reads itself."""

PYTHON_FRONTENDS = {"torch": ("openvino.frontend.pytorch",)}
"""library → packages of its decoders, whose statements `opera coverage` traces; the converters are compiled."""

SETTINGS = {
    "INFERENCE_PRECISION_HINT": "f32",  # else bfloat16 on CPUs that have it
    "EXECUTION_MODE_HINT": "ACCURACY",  # else activations beside compressed weights are quantised on CPUs with VNNI
    "CPU_DENORMALS_OPTIMIZATION": "NO",
    "INFERENCE_NUM_THREADS": 1,
    "NUM_STREAMS": 1,
}

COMPUTES_IN = {"float64": "float32"}
"""The CPU plugin has no double precision: it converts float64 to float32 (OpenVINO documentation, CPU device)."""

UNSUPPORTED = (
    Rule(r"No conversion rule found for operations: ([^\n]{1,120})", r"no conversion rule for \1"),
    Rule(r"CPU plug-in doesn't support ([^\n.]{1,80})", r"the CPU plugin does not support \1"),
    Rule(r"[Uu]nsupported (?:data )?type\b:? ?(\w*)", r"unsupported type \1"),
    Rule(r"[Uu]nsupported src_prc: (\w+)", r"unsupported type \1"),
    Rule(r"[Uu]nsupported padding mode: \[(\w+)\]", r"unsupported padding mode \1"),
    Rule(r"evaluate\(\) is not implemented for op: (\S+)", r"no reference implementation of \1"),
    Rule(r"([^\n:]{1,80} (?:is|are) not (?:yet )?supported)\b", r"\1"),
    Rule(r"([^\n:]{1,80} (?:is|are) only supported [^\n:]{1,60})", r"\1"),
    Rule(r"\n([^\n]{1,60} must be an? [^\n.]{0,30}constant)\b", r"\1"),
)

GENERIC = r"core/src/node\.cpp|inference/src/|unconverted_ops_report"
"""Files that stand in every trace and tell nothing about the operator."""

INNER = r"prim::|\w+Mark$|<built-in function getitem>"
"""What is reported unconverted besides the operator that is."""

ELEMENT_TYPES = {
    "bf16": "bfloat16",
    "f8e4m3": "float8_e4m3fn",
    "f8e5m2": "float8_e5m2",
    "f8e8m0": "float8_e8m0fnu",
    "f4e2m1": "float4_e2m1fn",
    "i4": "int4",
    "u4": "uint4",
    "u2": "uint2",
}
"""Element types that numpy does not carry: OpenVINO's name → opera's."""
NAMES = {dtype: name for name, dtype in ELEMENT_TYPES.items()}


def version() -> str:
    import openvino

    return str(openvino.__version__).split("-")[0]


def options() -> dict[str, str]:
    return {"device": "CPU", **{name: str(value) for name, value in SETTINGS.items()}, **precision.ONEDNN}


def prepare() -> None:
    """Start the runtime, with telemetry off: convert_model reports 15 events a model, each from a thread that forks."""
    os.environ["CI"] = "true"  # where openvino_telemetry is told to be silent
    os.environ.update(precision.ONEDNN)
    _core()


@cache
def _core() -> Any:
    import openvino

    core = openvino.Core()
    core.set_property("CPU", SETTINGS)
    return core


def load(case: Case) -> Any:
    converted = LOADERS.get(case.artefact)
    return converted(case) if converted else _core().read_model(_file(case))


def _file(case: Case) -> Path:
    return case.model / "model.xml" if case.artefact == "openvino" else case.model


def compile(loaded: Any, case: Case) -> Any:
    """Compile; the names of inputs are taken before, for one that is passed through loses its own to the output's."""
    names = [port.get_names() | {port.get_node().get_friendly_name()} for port in loaded.inputs]
    return _core().compile_model(loaded, "CPU"), names


def infer(compiled: Any, case: Case) -> list[Value]:
    """Run it; inputs that OpenVINO dropped as unused are not fed."""
    compiled, names = compiled
    request = compiled.create_infer_request()
    left = dict(case.feeds)
    fed = []  # kept until the outputs are copied: an output that only passes an input on lives in the input's memory
    for port, called in zip(compiled.inputs, names, strict=True):
        name = next((name for name in left if name in called), None) or _fitting(port, left)
        fed.append(_tensor(left.pop(name)))
        request.set_tensor(port, fed[-1])
    request.infer()
    named = {name: port for port in compiled.outputs for name in port.get_names()}
    ports = [named.get(name) for name in case.outputs]
    if None in ports:  # an output that lost its name is found by its place
        ports = list(compiled.outputs)
    return [_value(request.get_tensor(port)) for port in ports]


def unsupported(stage: str, error: BaseException) -> str | None:
    refused = torch_operators.refusal(error) or keras_live.no_graph(error)
    return refused or first_rule(UNSUPPORTED + openvino_torch.UNSUPPORTED + openvino_keras.UNSUPPORTED, stage, error)


def conversion_function(case: Case, error: BaseException | None) -> str:
    """Return the operator that failed, and the last specific place in OpenVINO's sources that the message names.

    In the expanded body of a function, and in a decomposed PyTorch program, that is one of its operators. What fails
    before any operator is looked at is told by its place alone.
    """
    message = "" if error is None else str(error)
    named = re.findall(r"^-- (\S[^\n]*?)(?:-\d+)? with a message", message, re.MULTILINE)
    operator = next((name for name in reversed(named) if not re.match(INNER, name)), (named or [""])[-1])
    operator = openvino_torch.translator(operator)
    place = last_location(message, GENERIC)
    if place and not operator and re.match(openvino_torch.BEFORE_OPERATORS, place):
        return place
    if error is not None and not place and not operator:
        return openvino_torch.raised(error) or case.operator
    return f"{operator or case.operator}@{place}" if place else operator or case.operator


def _fitting(port: Any, feeds: dict[str, Value]) -> str:
    """Return the first feed of the type of an input whose name OpenVINO replaced by that of an output."""
    for name, value in feeds.items():
        if isinstance(value, Tensor):
            tensor = _tensor(value)
            if tensor.element_type == port.element_type and port.partial_shape.compatible(_shape(value)):
                return name
    raise CannotCarry(f"opera cannot tell what to feed to OpenVINO's input {port}")


def _shape(tensor: Tensor) -> Any:
    import openvino

    return openvino.PartialShape(list(tensor.shape))


def _tensor(value: Value) -> Any:
    import openvino

    if isinstance(value, Optional) and value.value is not None:
        value = value.value
    if not isinstance(value, Tensor):
        raise CannotCarry(f"opera cannot feed {type(value).__name__.lower()}s to OpenVINO, which has no such type")
    if value.dtype == "string":
        array = value.array()
        texts = [item.decode("utf-8", "surrogateescape") for item in array.ravel()]
        return openvino.Tensor(np.array(texts, dtype=np.str_).reshape(value.shape))
    if value.dtype.startswith("complex"):
        raise CannotCarry(f"opera cannot feed {value.dtype} to OpenVINO, which has no such type")
    if value.dtype not in NAMES:
        return openvino.Tensor(value.array())
    tensor = openvino.Tensor(getattr(openvino.Type, NAMES[value.dtype]), openvino.Shape(value.shape))
    data = np.frombuffer(pack(value), dtype=np.uint8)
    if data.size:
        tensor.data.reshape(-1).view(np.uint8)[:] = data
    return tensor


def _value(tensor: Any) -> Tensor:
    kind = tensor.element_type.get_type_name()
    shape = tuple(tensor.shape)
    if kind == "string":
        return Tensor.of(np.array(tensor.str_data, dtype=object).reshape(shape))
    if kind in ELEMENT_TYPES:
        return unpack(ELEMENT_TYPES[kind], shape, tensor.data.tobytes())
    return of_numpy(tensor.data)
