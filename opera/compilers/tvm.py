"""TVM (Relax) on the CPU, by the recipe of its own ONNX tests: import, decompose, legalise, compile, run in the VM."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from opera.compilers import Case, Variant
from opera.compilers.messages import Rule
from opera.compilers.messages import unsupported as first_rule
from opera.compilers.packing import BITS, CannotCarry, of_numpy
from opera.values import Optional, Sequence, Tensor, Value

NAME = "tvm"
PACKAGE = "apache-tvm onnx"
PRELOAD = ("tvm.relax.frontend.onnx",)
FRONTENDS: Mapping[str, tuple[Variant, ...]] = {
    "onnx": (Variant("inputs", "onnx"), Variant("constants", "onnx-constants", after="rejected")),
}

UNSUPPORTED = (
    Rule(r"operators are not supported for frontend ONNX: ([\w, ]+)", r"no converter for \1"),
    Rule(r"Operator (\w+) not implemented", r"no converter for \1"),
    Rule(r"cannot handle ShapeExpr inputs", r"cannot handle ShapeExpr inputs", "load"),
    Rule(r"no value in Constant", r"Constant without the attribute value", "load"),
    Rule(r"unknown dtype `(\w+)`", r"unsupported type \1"),
    Rule(r"[Uu]nsupported (input|output) datatype (?:attribute )?for operation: '?(\w+)", r"unsupported \1 type \2"),
    Rule(r"(\w+) param datatype should be one of .* but got T\.(\w+)", r"unsupported \1 type \2"),
    Rule(r"Type <class '[\w.]*?(\w+)'> for (\w+) is currently unsupported", r"\2 as \1 is unsupported", "load"),
    Rule(r"([Oo]nly constant \w+(?: currently)? supported)", r"\1", "load"),
    Rule(r"([\w ]{1,60} must be a constant)", r"\1", "load"),
    Rule(r"([^\n:]{1,80}(?: is| are)? not (?:yet |currently )?supported)\b", r"\1"),
    Rule(r"([\w ]{1,60} not implemented\b)", r"\1"),
)


class Imported:
    """A Relax module, its constants, and the names of inputs and types of outputs that the model file states."""

    def __init__(self, module: Any, params: list[Any], graph: Any) -> None:
        self.module, self.params = module, params
        self.inputs = [item.name for item in graph.input]
        self.outputs = {item.name: item.type for item in graph.output}


def version() -> str:
    import tvm

    return str(tvm.__version__)


def options() -> dict[str, str]:
    return {"target": "llvm", "opt_level": "3"}


def prepare() -> None:
    warnings.simplefilter("ignore")
    _target()


@cache
def _target() -> Any:
    import tvm

    return tvm.target.Target("llvm")


def load(case: Case) -> Imported:
    import onnx
    from tvm.relax.frontend import detach_params
    from tvm.relax.frontend.onnx import from_onnx

    model = onnx.load(case.model)
    module, params = detach_params(from_onnx(model, keep_params_in_input=True))
    return Imported(module, list(params.get("main", ())), model.graph)


def compile(loaded: Imported, case: Case) -> tuple[Any, Imported]:
    import tvm
    from tvm import relax

    module = relax.transform.LegalizeOps()(relax.transform.DecomposeOpsForInference()(loaded.module))
    with tvm.transform.PassContext(opt_level=3):
        executable = tvm.compile(module, target=_target())
    return relax.VirtualMachine(executable, tvm.cpu()), loaded


def infer(compiled: tuple[Any, Imported], case: Case) -> list[Value]:
    machine, imported = compiled
    fed = [_tensor(case.feeds[name]) for name in imported.inputs if name in case.feeds]
    machine.set_input("main", *fed, *imported.params)
    machine.invoke_stateful("main")
    result = machine.get_outputs("main")
    results = [result] if len(imported.outputs) == 1 else list(result)
    types = list(imported.outputs.values())
    return [_value(item, types[i] if i < len(types) else None) for i, item in enumerate(results)]


def unsupported(stage: str, error: BaseException) -> str | None:
    return first_rule(UNSUPPORTED, stage, error)


def conversion_function(case: Case, error: BaseException | None) -> str:
    """Return the converter that raised, else the one that TVM chooses for the operator: `onnx_frontend:Conv._impl_v11`.

    The expanded body of a function has many converters; where none raised, it is told as `expanded Softmax`.
    """
    import onnx
    from tvm.relax.frontend.onnx import onnx_frontend

    for frame, _ in traceback.walk_tb(error.__traceback__ if error is not None else None):
        if frame.f_code.co_name.startswith("_impl_v") and frame.f_globals.get("__name__") == onnx_frontend.__name__:
            return f"onnx_frontend:{frame.f_code.co_qualname}"
    name = case.operator.rsplit("::", 1)[-1]
    model = onnx.load(case.model)
    if [node.op_type for node in model.graph.node] != [name]:
        return f"expanded {name}"
    converter = onnx_frontend._get_convert_map().get(name)
    if converter is None:
        return name
    opset = next((item.version for item in model.opset_import if item.domain in ("", "ai.onnx")), 1)
    function = converter.get_converter(opset)
    return f"{function.__module__.rsplit('.', 1)[-1]}:{function.__qualname__}"


def _tensor(value: Value) -> Any:
    import ml_dtypes
    import tvm

    if isinstance(value, Optional) and value.value is not None:
        value = value.value
    if isinstance(value, Sequence):
        return [_tensor(item) for item in value.items]
    if not isinstance(value, Tensor) or value.dtype == "string":
        raise CannotCarry(f"opera cannot feed {_called(value)} to TVM, which has no such type")
    if value.dtype in BITS:  # TVM's copies pack such elements, and its generated code reads them unpacked
        raise CannotCarry(f"opera cannot feed {value.dtype}: TVM's runtime has no settled layout for it")
    low = getattr(ml_dtypes, value.dtype, None)
    return tvm.runtime.tensor(value.array() if low is None else value.array().view(low))


def _called(value: Value) -> str:
    return "strings" if isinstance(value, Tensor) else "an empty optional"


def _value(item: Any, kind: Any) -> Value:
    """Return an output; `kind` is its onnx.TypeProto, by which tuples are told from sequences and numbers get a dtype."""
    import tvm
    import tvm_ffi

    if isinstance(item, tvm.runtime.Tensor):
        return of_numpy(item.numpy())
    if isinstance(item, tvm_ffi.Shape):  # TVM keeps shapes as shapes; ONNX has them as tensors of int64
        return of_numpy(np.array([int(x) for x in item], dtype=np.int64))
    if isinstance(item, bool | int | float):
        return of_numpy(np.asarray(item))
    if item is None:
        return Optional("", None)
    parts = tuple(_value(part, None) for part in item)
    return Sequence(parts[0].dtype if parts and isinstance(parts[0], Tensor) else "", parts)
