"""Exporters to ONNX as compilers under test: what they write is checked by onnx, and run by ONNX Runtime."""

from __future__ import annotations

import re
import tempfile
import traceback
import warnings
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import msgspec

from opera import precision
from opera.compilers import Case, Variant, onnxruntime
from opera.compilers.shared import keras_live, torch_live, torch_operators
from opera.compilers.shared.messages import Rule
from opera.programs.values import Tensor, Value

NAME = "onnxexport"
PACKAGE = "onnx onnxscript onnxruntime"
PRELOAD = ("onnx", "onnxruntime")
PACKAGES = ("torch", "keras", "tensorflow", "tf2onnx", "onnxscript", "onnx_ir", "onnx", "onnxruntime")
FRONTENDS: Mapping[str, tuple[Variant, ...]] = {
    "torch": (Variant("live", "live", preload=(precision.PRELOAD, "torch", "opera.libraries.torch.preload")),),
    "keras": (Variant("live", "live", preload=(keras_live.BACKEND,)),),
}

UNPATCHED: Mapping[str, Mapping[str, str]] = {"torch": torch_operators.UNPATCHED}
"""torch.onnx.export decomposes, and builds its registry; Keras's exporter is left as it is."""

UNSUPPORTED = (
    Rule(
        r"No (?:ONNX function|decompositions?)[\w ]* (?:found|registered) for '?(?:<OpOverload\(op=')?([\w.:]+)",
        r"no ONNX function for \1",
    ),
    Rule(r"requires the (tf2onnx) module", r"\1 is not installed", "load"),
    Rule(r"([^\n:]{1,80}(?: is| are)? not (?:yet |currently )?supported)\b", r"\1", "load"),
    Rule(r"([\w ]{1,60} not implemented\b)", r"\1", "load"),
)
"""The words of the exporters; those of ONNX Runtime about what they wrote are its own module's."""


class Exported(msgspec.Struct):
    """An ONNX file's content, the live model it was made of, and what it is run with."""

    model: bytes
    live: Any
    session: Any = None


def version() -> str:
    """Return the version of the ONNX Runtime that judges; the exporter's is the library's own."""
    import onnx

    return f"{onnx.__version__}, onnxruntime {onnxruntime.version()}"


def options() -> dict[str, str]:
    return {"dynamo": "True", **onnxruntime.options(), **precision.TORCH, **precision.TENSORFLOW}


def prepare() -> None:
    warnings.simplefilter("ignore")
    onnxruntime.prepare()


def load(case: Case) -> Exported:
    """Export: the library's own code, which is under test here."""
    library = keras_live if case.library == "keras" else torch_live
    library.prepare()
    live = library.rebuilt(case)
    traced = keras_live.graph_of(live) if case.library == "keras" else nullcontext()
    with traced, tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        live.onnx(path)
        return Exported(path.read_bytes(), live)


def compile(loaded: Exported, case: Case) -> Exported:
    """Check the model as onnx does, and have ONNX Runtime load it."""
    import onnx

    onnx.checker.check_model(loaded.model, full_check=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(loaded.model)
        loaded.session = onnxruntime.load(msgspec.structs.replace(case, model=path))
    return loaded


def infer(compiled: Exported, case: Case) -> list[Value]:
    """Run it. ONNX has hardly an operator for complex numbers: PyTorch's exporter makes pairs of them, as its docs say."""
    feeds = {name: _paired(value) for name, value in case.feeds.items()}
    outputs = run(compiled.session, msgspec.structs.replace(case, feeds=feeds))
    if case.library != "torch" or not any(isinstance(x, Tensor) and x.shape[-1:] == (2,) for x in outputs):
        return outputs
    eager = torch_live.ran(compiled.live, compiled.live.module)
    return [_unpaired(got, want) for got, want in zip(outputs, eager, strict=True)]


def run(session: Any, case: Case) -> list[Value]:
    """Return the outputs in the file's order: Keras's exporter does not let them be named."""
    named = tuple(item.name for item in session.get_outputs())
    return onnxruntime.infer(session, msgspec.structs.replace(case, outputs=named))


def _paired(value: Value) -> Value:
    if not isinstance(value, Tensor) or not value.dtype.startswith("complex"):
        return value
    return Tensor("float32" if value.dtype == "complex64" else "float64", (*value.shape, 2), value.data)


def _unpaired(got: Value, want: Value) -> Value:
    if not isinstance(got, Tensor) or not isinstance(want, Tensor) or _paired(want) is want or got.shape[-1:] != (2,):
        return got
    if got.dtype != _paired(want).dtype:
        return got
    return Tensor(want.dtype, got.shape[:-1], got.data)


def unsupported(stage: str, error: BaseException) -> str | None:
    told = keras_live.no_graph(error) or torch_live.unsupported(UNSUPPORTED, stage, error)
    return told or (onnxruntime.unsupported(stage, error) if stage != "load" else None)


def conversion_function(case: Case, error: BaseException | None) -> str:
    """Return the exporter's function that raised (`torch_lib:aten_conv2d`, `tf2onnx:ConvOp.version_11`), else the operator."""
    cause = error
    while cause is not None:
        for frame, _ in traceback.walk_tb(cause.__traceback__):
            if frame.f_globals.get("__name__", "").startswith("tf2onnx.onnx_opset."):
                return f"tf2onnx:{frame.f_code.co_qualname}"
            if re.search(r"torch_?lib", frame.f_code.co_filename) and frame.f_code.co_name.startswith("aten_"):
                return f"torch_lib:{frame.f_code.co_name}"
        cause = cause.__cause__
    return case.operator
