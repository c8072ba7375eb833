"""TVM's importer of ONNX models."""

from __future__ import annotations

import traceback

from opera.compilers import Case
from opera.compilers.shared.messages import Rule
from opera.compilers.tvm.module import Imported

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
)


def load(case: Case) -> Imported:
    import onnx
    from tvm.relax.frontend import detach_params
    from tvm.relax.frontend.onnx import from_onnx

    model = onnx.load(case.model)
    module, params = detach_params(from_onnx(model, keep_params_in_input=True))
    inputs = [item.name for item in model.graph.input]
    outputs = [item.type for item in model.graph.output]
    return Imported(module, list(params.get("main", ())), tuple(inputs), tuple(outputs))


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
    nodes = [node.op_type for node in model.graph.node]
    if case.library == "onnx" and nodes != [name]:
        return f"expanded {name}"
    converter = onnx_frontend._get_convert_map().get(nodes[0]) if len(nodes) == 1 else None
    if converter is None:
        return name
    opset = next((item.version for item in model.opset_import if item.domain in ("", "ai.onnx")), 1)
    function = converter.get_converter(opset)
    return f"{function.__module__.rsplit('.', 1)[-1]}:{function.__qualname__}"
