"""TVM's importer of TensorFlow Lite models, by which Keras models get to it."""

from __future__ import annotations

import functools
import re
import traceback
from typing import Any

from opera.compilers import Case
from opera.compilers.shared.messages import Rule
from opera.compilers.tvm.module import Imported
from opera.programs.values import Value

PRELOAD = ("tvm.relax.frontend.tflite",)

UNSUPPORTED = (
    Rule(r"No module named '(tflite)\b", r"the Python package \1 is not installed", "load"),
    Rule(r"(quantized TFLite operators are not supported in frontend TFLite yet: [^\n.]+)", r"\1", "load"),
    Rule(r"(?:TFLite|TFLite frontend) (does not support [^\n(]{1,60})", r"\1", "load"),
)
"""The words of its importer, beside the exceptions in REFUSALS."""

REFUSALS = ("OpNotImplemented", "OpAttributeUnImplemented")
"""TVM's exceptions whose very name is a refusal."""

PLUMBING = {"CAST", "CONCATENATION", "EXPAND_DIMS", "FILL", "PACK", "RESHAPE", "SHAPE", "SLICE", "SPLIT", "SPLIT_V", "SQUEEZE",
            "STRIDED_SLICE", "TRANSPOSE", "UNPACK"}  # fmt: skip
"""Operators that the TFLite converter puts around the one that matters."""


class FromTFLite(Imported):
    """A Relax module whose inputs are named, and whose outputs come in the order of the TFLite model's subgraph.

    Attributes:
        names: Names of the outputs in the order in which they come.
    """

    names: tuple[str, ...] = ()

    def results(self, result: Any) -> list[Value]:
        found = dict(zip(self.names, super().results(result), strict=True))
        return [found[name] for name in sorted(found, key=_place)]


def load(case: Case) -> FromTFLite:
    from tvm.relax.frontend.tflite import from_tflite

    model, inputs, outputs = _read(case)
    return FromTFLite(from_tflite(model), inputs=inputs, outputs=(None,) * len(outputs), names=outputs)


def _read(case: Case) -> tuple[Any, tuple[str, ...], tuple[str, ...]]:
    """Return a TFLite model, and names of inputs and outputs in its own order: only its signature has them."""
    import tflite

    model = tflite.Model.GetRootAsModel(case.model.read_bytes(), 0)
    graph, signature = model.Subgraphs(0), model.SignatureDefs(0)
    inputs = [signature.Inputs(place) for place in range(signature.InputsLength())]
    outputs = [signature.Outputs(place) for place in range(signature.OutputsLength())]
    return model, _named(graph.InputsAsNumpy(), inputs), _named(graph.OutputsAsNumpy(), outputs)


def _named(order: Any, signature: list[Any]) -> tuple[str, ...]:
    """Return names by the places of tensors; a tensor that is several outputs has several names."""
    left = [(item.TensorIndex(), item.Name().decode()) for item in signature]
    found = []
    for place in order:
        entry = next(item for item in left if item[0] == place)
        left.remove(entry)
        found.append(entry[1])
    return tuple(found)


def _place(name: str) -> int:
    return int(name.rpartition("_")[2])


def refusal(stage: str, error: BaseException) -> str | None:
    """Return what the importer refuses by its exception's class, where its words match no rule."""
    refused = stage == "load" and any(kind.__name__ in REFUSALS for kind in type(error).__mro__)
    return str(error).strip().partition("\n")[0][:160] if refused else None


def conversion_function(case: Case, error: BaseException | None) -> str:
    """Return the converter that raised, else the one that TVM chooses for what the layer became.

    A converter is told as `tflite_frontend:OperatorConverter.convert_conv2d`; one that serves several operators is told with
    the operator: `tflite_frontend:OperatorConverter._convert_elemwise[ADD]`. Where several operators matter and none raised,
    that is told as `expanded LSTM`.
    """
    from tvm.relax.frontend.tflite.tflite_frontend import ExprTable, OperatorConverter

    if lacking := missing(error):
        return lacking
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__ if error is not None else None)]
    for frame in reversed(frames):  # the bodies of loops are converted inside the conversion of the loop
        if frame.f_code.co_name == "convert_op_to_relax" and "op_code_str" in frame.f_locals:
            return _called(frame.f_locals["self"], str(frame.f_locals["op_code_str"]))
    model, _, _ = _read(case)
    graph = model.Subgraphs(0)
    converter = OperatorConverter(model, graph, ExprTable(), None)
    codes = [converter.get_op_code_str(graph.Operators(place)) for place in range(graph.OperatorsLength())]
    codes = list(dict.fromkeys([code for code in codes if code not in PLUMBING] or codes))
    return _called(converter, codes[0]) if len(codes) == 1 else f"expanded {case.operator.rpartition('.')[2]}"


def missing(error: BaseException | None) -> str:
    """Return the operators without converter, which the importer lists in an order that changes from run to run."""
    found = re.search(r"operators are not supported in frontend TFLite: ([^\n]+)", str(error))
    return ", ".join(sorted(re.findall(r"\w+", found[1]))) if found else ""


def _called(converter: Any, code: str) -> str:
    method = converter.convert_map.get(code)
    if method is None:
        return code
    shared = isinstance(method, functools.partial)
    name = (method.func if shared else method).__qualname__
    return f"tflite_frontend:{name}[{code}]" if shared else f"tflite_frontend:{name}"
