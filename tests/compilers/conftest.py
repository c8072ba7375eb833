"""Makes one-operator models, and runs them through a compiler as a worker does."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx
import pytest
from onnx import helper

from opera import compilers
from opera.compilers import Case, Compiler
from opera.programs.values import Optional, Sequence, Tensor, Value

Make = Callable[..., Case]


def type_of(value: Value) -> onnx.TypeProto:
    match value:
        case Tensor(dtype="string", shape=shape):
            return helper.make_tensor_type_proto(onnx.TensorProto.STRING, shape)
        case Tensor(dtype=dtype, shape=shape):
            return helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(numpy_dtype(dtype)), shape)
        case Sequence(items=items):
            return helper.make_sequence_type_proto(type_of(items[0]))
        case Optional(value=inner):
            return helper.make_optional_type_proto(type_of(inner))
    raise TypeError(type(value))


def numpy_dtype(dtype: str) -> np.dtype[Any]:
    import ml_dtypes

    return np.dtype(getattr(ml_dtypes, dtype, dtype))


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Make a case of one node; `outputs` are values that have the types of the outputs."""

    def build(operator: str, inputs: list[Value], outputs: list[Value], opset: int = 21, **attributes: Any) -> Case:
        ins, outs = [f"x{i}" for i in range(len(inputs))], [f"y{i}" for i in range(len(outputs))]
        node = helper.make_node(operator, ins, outs, **attributes)
        graph = helper.make_graph(
            [node],
            "g",
            [helper.make_value_info(name, type_of(value)) for name, value in zip(ins, inputs, strict=True)],
            [helper.make_value_info(name, type_of(value)) for name, value in zip(outs, outputs, strict=True)],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
        path = tmp_path / "model.onnx"
        path.write_bytes(model.SerializeToString())
        dtypes = tuple(x.dtype if isinstance(x, Tensor) else "" for x in outputs)
        return Case(
            "onnx", operator, path, dict(zip(ins, inputs, strict=True)), tuple(outs), artefact="onnx", dtypes=dtypes
        )

    return build


@pytest.fixture
def run(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Compiler, Case], tuple[str, Any]]:
    """Run a case; return (stage, outputs or exception)."""

    def go(compiler: Compiler, case: Case) -> tuple[str, Any]:
        frontend = compilers.frontend_of(compiler, case.library)
        named = [x.name for x in frontend.VARIANTS if x.artefact == case.artefact]
        case = msgspec.structs.replace(case, variant=case.variant or (named or [""])[0])
        state: Any = None
        for stage in ("load", "compile", "infer"):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    if stage == "load":
                        compiler.prepare()
                        case = compilers.exported(frontend, case, tmp_path_factory.mktemp("exported"))
                        state = frontend.load(case)
                    else:
                        state = getattr(frontend, stage)(state, case)
            except Exception as error:
                return stage, error
        return "done", state

    return go
