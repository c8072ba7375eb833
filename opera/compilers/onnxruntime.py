"""ONNX Runtime on the CPU. It needs no onnx package: the model file is its only input."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from opera.compilers import Case, Variant
from opera.compilers.shared.messages import Rule, last_location
from opera.compilers.shared.messages import unsupported as first_rule
from opera.compilers.shared.packing import CannotCarry, of_numpy, pack, unpack
from opera.programs.values import Optional, Sequence, Tensor, Value

NAME = "onnxruntime"
PACKAGE = "onnxruntime"
PRELOAD = ("onnxruntime",)
FRONTENDS: Mapping[str, tuple[Variant, ...]] = {
    "onnx": (Variant("inputs", "onnx"), Variant("constants", "onnx-constants", after="rejected")),
}

UNSUPPORTED = (
    Rule(
        r"NOT_IMPLEMENTED : (?:Could not find an implementation|Failed to find kernel) for (\w+)", r"no kernel for \1"
    ),
    Rule(r"([\w.]+):(\w+)\(-?\d+\) is not a registered function/op", r"operator \1:\2 is not registered"),
    Rule(r"No Op registered for (\w+) with domain_version of (\d+)", r"operator \1 is not registered for opset \2"),
    Rule(
        r"Opset (\d+) is under development and support for this is limited",
        r"opset \1 is newer than the official support",
    ),
    Rule(r"Type '([^']+)' of input parameter \([^)]*\) of operator \((\w+)\)", r"\2 does not take \1"),
    Rule(r"NOT_IMPLEMENTED : ([^\n]{1,120})", r"\1"),
    Rule(r"([^\n.]{1,80} (?:is|are) not (?:yet |currently )?supported)\b", r"\1"),
    Rule(r"Unsupported model IR version: (\d+)", r"models of IR version \1 are newer than it reads"),
    Rule(r"Unrecognized attribute: (\w+) for operator (\w+)", r"\2 has no attribute \1"),
    Rule(r"(Failed to construct locale with name:\S+?):", r"\1"),
)

ENTRIES = {
    "session.x64quantprecision": "1",  # without VNNI, products of uint8 and constant int8 would saturate at 16 bits
    "session.set_denormal_as_zero": "0",
    "mlas.enable_gemm_fastmath_arm64_bfloat16": "0",
}
"""Entries of a session's configuration that keep the CPU from deciding how precisely it computes."""

ELEMENT_TYPES = {
    "bfloat16": (16, "bfloat16"),
    "float8e4m3fn": (17, "float8_e4m3fn"),
    "float8e4m3fnuz": (18, "float8_e4m3fnuz"),
    "float8e5m2": (19, "float8_e5m2"),
    "float8e5m2fnuz": (20, "float8_e5m2fnuz"),
    "uint4": (21, "uint4"),
    "int4": (22, "int4"),
    "float4e2m1": (23, "float4_e2m1fn"),
    "float8e8m0": (24, "float8_e8m0fnu"),
    "uint2": (25, "uint2"),
    "int2": (26, "int2"),
}
"""Element types that numpy does not carry: ONNX Runtime's name → number in onnx.TensorProto.DataType, name in opera."""
NUMBERS = {dtype: number for number, dtype in ELEMENT_TYPES.values()}


def version() -> str:
    import onnxruntime

    return str(onnxruntime.__version__)


def options() -> dict[str, str]:
    return {"provider": "CPUExecutionProvider", "threads": "1", "optimization": "all", **ENTRIES}


def prepare() -> None:
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)


def load(case: Case) -> Any:
    """Create the session, which converts, optimises and assigns kernels: all that is done before inference."""
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    settings.log_severity_level = 4
    for key, value in ENTRIES.items():
        settings.add_session_config_entry(key, value)
    return onnxruntime.InferenceSession(str(case.model), settings, providers=["CPUExecutionProvider"])


def compile(loaded: Any, case: Case) -> Any:
    """Nothing is left to compile once a session is there."""
    return loaded


def infer(compiled: Any, case: Case) -> list[Value]:
    types = {output.name: output.type for output in compiled.get_outputs()}
    inputs = {item.name for item in compiled.get_inputs()}
    feeds = {name: value for name, value in case.feeds.items() if name in inputs}
    if any(_raw(value) for value in feeds.values()) or any(_raw_element(kind) for kind in types.values()):
        fed = {name: _ort_value(value) for name, value in feeds.items()}
        raw = compiled.run_with_ort_values(list(case.outputs), fed)
        return [_of_ort_value(item, types[name]) for name, item in zip(case.outputs, raw, strict=True)]
    plain = compiled.run(list(case.outputs), {name: _plain(value) for name, value in feeds.items()})
    return [_typed(item, types[name]) for name, item in zip(case.outputs, plain, strict=True)]


def unsupported(stage: str, error: BaseException) -> str | None:
    return first_rule(UNSUPPORTED, stage, error)


def conversion_function(case: Case, error: BaseException | None) -> str:
    """Return the operator that failed, and the place in ONNX Runtime's sources where its message names one.

    In the expanded body of a function that is one of the body's operators.
    """
    message = "" if error is None else str(error)
    named = re.search(r"while running (\w+) node", message)
    operator = named[1] if named else case.operator
    place = last_location(message, "$^")
    return f"{operator}@{place}" if place else operator


def _raw(value: Value) -> bool:
    match value:
        case Tensor(dtype=dtype):
            return dtype in NUMBERS
        case Sequence(items=items):
            return any(_raw(item) for item in items)
        case Optional(value=inner):
            return _raw(inner)
    return False


def _raw_element(kind: str) -> tuple[int, str] | None:
    """Return number and name of the innermost element of a type such as `seq(tensor(bfloat16))` if numpy lacks it."""
    found = re.search(r"tensor\((\w+)\)", kind)
    return ELEMENT_TYPES.get(found[1]) if found else None


def _plain(value: Value) -> Any:
    match value:
        case Tensor(dtype="string"):
            texts = np.empty(value.shape, dtype=object)
            texts.ravel()[:] = [item.decode("utf-8", "surrogateescape") for item in value.array().ravel()]
            return texts
        case Tensor():
            return value.array()
        case Sequence(items=items):
            return [_plain(item) for item in items]
        case Optional(value=inner):
            return None if inner is None else _plain(inner)
    raise CannotCarry(f"opera cannot feed a {type(value).__name__} to ONNX Runtime")


def _ort_value(value: Value) -> Any:
    import onnxruntime

    if isinstance(value, Optional) and value.value is not None:
        value = value.value
    if not isinstance(value, Tensor) or value.dtype == "string":
        raise CannotCarry("opera cannot feed sequences, empty optionals or strings beside low-precision tensors")
    if value.dtype not in NUMBERS:
        return onnxruntime.OrtValue.ortvalue_from_numpy(value.array())
    made = onnxruntime.OrtValue.ortvalue_from_shape_and_type(list(value.shape), NUMBERS[value.dtype])
    data = pack(value)
    if made.tensor_size_in_bytes() != len(data):
        raise CannotCarry(f"opera cannot feed {value.dtype}: {len(data)} bytes for {made.tensor_size_in_bytes()}")
    ctypes.memmove(made.data_ptr(), data, len(data))
    return made


def _of_ort_value(item: Any, kind: str) -> Value:
    if not item.is_tensor():
        raise CannotCarry(f"opera cannot read an output of type {item.data_type()}")
    element = _raw_element(item.data_type())
    if element is None:
        return _typed(item.numpy(), kind)
    data = ctypes.string_at(item.data_ptr(), item.tensor_size_in_bytes()) if item.tensor_size_in_bytes() else b""
    return _wrap(unpack(element[1], tuple(item.shape()), data), kind)


def _typed(item: Any, kind: str) -> Value:
    if item is None:
        return Optional(_inner(kind), None)
    if isinstance(item, list):
        inner = _inner(_inner(kind) if kind.startswith("optional(") else kind)
        return _wrap(Sequence(inner, tuple(_typed(part, inner) for part in item)), kind)
    return _wrap(of_numpy(np.asarray(item)), kind)


def _wrap(value: Value, kind: str) -> Value:
    return Optional(_inner(kind), value) if kind.startswith("optional(") else value


def _inner(kind: str) -> str:
    return kind.partition("(")[2].removesuffix(")")
