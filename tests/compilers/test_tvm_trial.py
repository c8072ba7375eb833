"""TVM's trial computes what TVM computes as users run it, by kernels that are linked beforehand."""

from __future__ import annotations

import shutil
from typing import Any

import msgspec
import numpy as np
import pytest

from opera.compilers.tvm import compiler as tvm
from opera.compilers.tvm import trial
from opera.compilers.tvm.onnx import QUICK
from opera.programs.values import Tensor

FLOATS = Tensor.of(np.array([[0.5, -1.5], [2.0, 3.0]], np.float32))
HALVES = Tensor.of(np.array([0.5, -1.5], np.float16))
TWO_OUTPUTS = [Tensor.of(np.zeros((1, 2), np.float32))] * 2
CALLS = {
    "Erf": ([FLOATS], [FLOATS], {}),  # calls the C library's mathematics
    "Sqrt": ([HALVES], [HALVES], {}),  # converts between lengths of floats
    "MatMul": ([FLOATS, FLOATS], [FLOATS], {}),
    "Split": ([FLOATS], TWO_OUTPUTS, {"axis": 0, "num_outputs": 2}),
}
needs_linker = pytest.mark.skipif(shutil.which("ld") is None, reason="there is no linker")


@pytest.mark.parametrize("operator", list(CALLS))
def test_a_trial_computes_the_same(make: Any, run: Any, operator: str) -> None:
    inputs, outputs, attributes = CALLS[operator]
    case = make(operator, inputs, outputs, **attributes)
    usual, tried = run(tvm, case), run(tvm, msgspec.structs.replace(case, way=QUICK))
    assert usual[0] == tried[0] == "done"
    for one, other in zip(usual[1], tried[1], strict=True):
        np.testing.assert_allclose(one.array(), other.array(), rtol=1e-3)


def executable(case: Any) -> Any:
    module, *_ = tvm.FRONTENDS["onnx"].load(case)
    return trial.compiled(module, 3)


@needs_linker
def test_kernels_become_a_library(make: Any) -> None:
    made = executable(make("Erf", [FLOATS], [FLOATS]))
    assert trial.linked(made)
    assert [kernels.kind for kernels in made.mod.imports] == ["library"]


def test_without_kernels_or_without_a_linker_nothing_is_linked(make: Any, monkeypatch: Any) -> None:
    assert not trial.linked(executable(make("Identity", [FLOATS], [FLOATS])))
    monkeypatch.setattr(trial, "_linker", str)
    made = executable(make("Erf", [FLOATS], [FLOATS]))
    assert not trial.linked(made)
    assert [kernels.kind for kernels in made.mod.imports] == ["llvm"]
