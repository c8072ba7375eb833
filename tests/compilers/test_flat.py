"""Compilers that have their frontends' functions themselves, as all had once, still work."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from opera import compilers
from opera.compilers import Variant
from opera.compilers.shared.packing import of_numpy
from opera.programs.case import remembered
from opera.programs.values import Tensor
from opera.run import culprit

X = Tensor.of(np.float32([1, -2]))
VARIANTS = {"onnx": (Variant("inputs", "onnx"),), "torch": (Variant("program", "pt2"), Variant("live", "live"))}
FLAT: Any = SimpleNamespace(
    __name__=__name__,
    NAME="flat",
    PRELOAD=("mine",),
    FRONTENDS=VARIANTS,
    COMPUTES_IN={"float64": "float32"},
    UNPATCHED={"torch": {"QUICK": "0"}},
    PYTHON_FRONTENDS={"onnx": ("mine.onnx",)},
    prepare=lambda: None,
    load=lambda case: case.feeds,
    compile=lambda loaded, case: [value.array() for value in loaded.values()],
    infer=lambda compiled, case: [of_numpy(array * 2) for array in compiled],
    unsupported=lambda stage, error: f"{error} at {stage}",
    conversion_function=lambda case, error: f"convert_{case.operator}",
)


def test_a_model_runs_through_it(make: Any, run: Any) -> None:
    assert run(FLAT, make("Relu", [X], [X])) == ("done", [Tensor.of(np.float32([2, -4]))])


def test_it_is_asked_as_it_was() -> None:
    frontend, case = compilers.frontend_of(FLAT, "torch"), remembered("torch", "torch.cos", "live", "live")
    assert frontend.unsupported(case, "load", ValueError("no rule")) == "no rule at load"
    assert frontend.conversion_function(case, None) == "convert_torch.cos"


def test_what_it_says_of_a_library_is_its_frontends() -> None:
    onnx, torch = (compilers.frontend_of(FLAT, library) for library in ("onnx", "torch"))
    assert (VARIANTS["onnx"], VARIANTS["torch"]) == (onnx.VARIANTS, torch.VARIANTS)
    assert (getattr(onnx, "UNPATCHED", None), getattr(torch, "UNPATCHED", None)) == ({}, {"QUICK": "0"})
    assert (getattr(onnx, "PYTHON", None), getattr(torch, "PYTHON", None)) == (("mine.onnx",), ())
    assert compilers.computes_in(torch) == {"float64": "float32"}
    assert culprit.packages_of(FLAT, torch) == ("mine",)
    assert not hasattr(torch, "recipe") and not hasattr(torch, "PACKAGES")
