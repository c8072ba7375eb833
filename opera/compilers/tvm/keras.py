"""TVM's importer of TensorFlow Lite models, by which Keras models get to it."""

from __future__ import annotations

import functools
import re
import traceback
from typing import Any

from opera.compilers import Case, Involved, Recipe, Variant
from opera.compilers.shared import messages, tflite_models
from opera.compilers.shared.messages import unsupported as first_rule
from opera.compilers.shared.packing import Made, Refusal
from opera.compilers.tvm import onnx as importer
from opera.compilers.tvm.onnx import Onnx
from opera.compilers.tvm.values import feed, read
from opera.programs.values import Value

PRELOAD = ("tvm.relax.frontend.tflite",)

UNSUPPORTED = messages.table("tvm", "tflite", "every", "classes")
"""The words of its importer, of what all importers share, and exceptions whose very name is a refusal."""


class Keras(Onnx):
    """TVM's importer of TensorFlow Lite models; what Keras exports to ONNX goes through that of ONNX."""

    VARIANTS = (
        Variant("tflite", "tflite", preload=PRELOAD, trial=importer.QUICK),
        Variant("onnx", "onnx", after="rejected", preload=importer.PRELOAD, trial=importer.QUICK),
    )
    WAYS = (*Onnx.WAYS, tflite_models.OPERATORS)
    PYTHON = PRELOAD

    def load(self, case: Case) -> Any:
        if case.way == tflite_models.OPERATORS.name:
            if case.artefact != "tflite":
                raise Refusal("it is no TFLite model")
            raise Made(" ".join(tflite_models.operators(case.model)))
        if case.artefact != "tflite":
            return super().load(case)
        from opera.compilers.recipes import tvm_tflite as recipe

        return recipe.load(str(case.model))

    def infer(self, compiled: Any, case: Case) -> list[Value]:
        if case.artefact != "tflite":
            return super().infer(compiled, case)
        from opera.compilers.recipes import tvm_tflite as recipe

        found: list[Value] = recipe.infer(compiled, case.feeds, feed, read)
        return found

    def unsupported(self, case: Case, stage: str, error: BaseException) -> str | None:
        """Return the operators without converter, what the importer says, or what its exception's class refuses."""
        if case.artefact != "tflite":
            return super().unsupported(case, stage, error)
        if missing := _missing(error):
            return f"no converter for {missing}"
        return first_rule(UNSUPPORTED, stage, error)

    def conversion_function(self, case: Case, error: BaseException | None) -> str:
        """Return the converter that raised, else the function of the importer that did, which looked at no operator, else the
        converter that TVM chooses for what the layer became.

        A converter is told as `tflite_frontend:OperatorConverter.convert_tile`; one that serves several operators, or one of
        another name, is told with the operator: `tflite_frontend:OperatorConverter._convert_elemwise[ADD]`. Where several
        operators matter and none raised, that is told as `expanded LSTM`.
        """
        if case.artefact != "tflite":
            return super().conversion_function(case, error)
        from tvm.relax.frontend.tflite.tflite_frontend import ExprTable, OperatorConverter

        from opera.compilers.recipes import tvm_tflite as recipe

        if lacking := _missing(error):
            return lacking
        frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__ if error is not None else None)]
        for frame in reversed(frames):  # the bodies of loops are converted inside the conversion of the loop
            if frame.f_code.co_name == "convert_op_to_relax" and "op_code_str" in frame.f_locals:
                return _called(frame.f_locals["self"], str(frame.f_locals["op_code_str"]))
        if within := [x for x in frames if x.f_globals.get("__name__") == OperatorConverter.__module__]:
            return f"tflite_frontend:{within[-1].f_code.co_qualname}"
        model, _, _ = recipe.read_model(str(case.model))
        graph = model.Subgraphs(0)
        converter = OperatorConverter(model, graph, ExprTable(), None)
        codes = [converter.get_op_code_str(graph.Operators(place)) for place in range(graph.OperatorsLength())]
        codes = tflite_models.telling(codes)
        if codes == [tflite_models.NONE]:
            return tflite_models.NONE
        return _called(converter, codes[0]) if len(codes) == 1 else f"expanded {case.operator.rpartition('.')[2]}"

    def recipe(self, artefact: str, involved: Involved) -> Recipe:
        return importer.steps("tflite" if artefact == "tflite" else "onnx", involved)


def _missing(error: BaseException | None) -> str:
    """Return the operators without converter, which the importer lists in an order that changes from run to run."""
    found = re.search(r"operators are not supported in frontend TFLite: ([^\n]+)", str(error))
    return ", ".join(sorted(re.findall(r"\w+", found[1]))) if found else ""


def _called(converter: Any, code: str) -> str:
    method = converter.convert_map.get(code)
    if method is None:
        return code
    partial = isinstance(method, functools.partial)
    name = (method.func if partial else method).__qualname__
    own = re.sub(r"_|convert", "", name.rpartition(".")[2].lower())
    shared = partial or own not in code.replace("_", "").lower()  # that of SELECT converts a WHERE of one input, too
    return f"tflite_frontend:{name}[{code}]" if shared else f"tflite_frontend:{name}"
