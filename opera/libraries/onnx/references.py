"""What ONNX's own reference evaluator, and the compilers that are asked for a second opinion, compute for a model."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from opera import plugins, resources
from opera.errors import InvalidTest
from opera.libraries.onnx import codec as onnx_values
from opera.oracle.opinions import Opinion
from opera.programs.case import Case
from opera.programs.migrated import Manifest
from opera.programs.values import Value

EVALUATOR = "reference-evaluator"


def evaluate(model: Any, feeds: dict[str, Value]) -> list[Value]:
    """Run a ModelProto in the reference evaluator.

    Raises InvalidTest whose reason starts with `no reference` where the evaluator has no implementation, and with
    `the ONNX reference evaluator rejects` where it refuses the inputs.
    """
    from onnx.reference import ReferenceEvaluator
    from onnx.reference.op_run import RuntimeContextError, RuntimeImplementationError

    missing = (NotImplementedError, RuntimeContextError, RuntimeImplementationError)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            fed = {name: onnx_values.to_evaluator(value) for name, value in feeds.items()}
            results = ReferenceEvaluator(model).run(None, fed)
    except missing as error:
        raise InvalidTest(f"no reference: the ONNX reference evaluator cannot run it: {_brief(error)}") from None
    except Exception as error:  # what operators raise for bad inputs is as various as numpy
        raise InvalidTest(f"the ONNX reference evaluator rejects the inputs: {_brief(error)}") from None
    kinds = [output.type for output in model.graph.output]
    names = [onnx_values.type_name(kind) if kind.WhichOneof("value") else "" for kind in kinds]
    return [onnx_values.from_evaluator(result, name) for result, name in zip(results, names, strict=True)]


def _brief(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


def opinions(manifest: Manifest, directory: Path, inputs: list[Value], besides: str) -> list[Opinion]:
    """See `opera.libraries.Library.opinions`.

    The evaluator has no vote: the node tests' expected outputs and it are by the same authors, often the same code. Which
    others are asked is declared in instrumentation/onnx.toml: fewer where the test itself says what it expects, for compilers
    agree in what they all leave out.
    """
    feeds = dict(zip(manifest.inputs, inputs, strict=True))
    path = directory / manifest.artefacts["onnx"].file
    declared = resources.declaration("instrumentation", "onnx").get("independent", {})
    asked = [_ask_evaluator(path, feeds)]
    for name in declared.get(manifest.reference, ()):
        if name != besides:
            asked.append(_ask_compiler(name, manifest, path, feeds))
    return asked


def _ask_evaluator(path: Path, feeds: dict[str, Value]) -> Opinion:
    import onnx

    try:
        return Opinion(EVALUATOR, False, evaluate(onnx.load(path), feeds))
    except InvalidTest as error:
        return Opinion(EVALUATOR, False, None, str(error))


def _ask_compiler(name: str, manifest: Manifest, path: Path, feeds: dict[str, Value]) -> Opinion:
    try:
        compiler = plugins.load("opera.compilers", "compiler", name)
        compiler.prepare()
        frontend = compiler.FRONTENDS[manifest.library]
        case = Case(manifest.library, manifest.operator, path, feeds, manifest.outputs, artefact="onnx")
        return Opinion(name, True, frontend.infer(frontend.compile(frontend.load(case), case), case))
    except Exception as error:  # not installed, not supported, or its own bug: it has no opinion
        return Opinion(name, True, None, _brief(error))
