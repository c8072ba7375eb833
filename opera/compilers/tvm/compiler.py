"""TVM (Relax) on the CPU, by the recipe of its own tests: import, decompose, legalise, compile, run in the VM.

Its importers are in tvm_onnx.py, tvm_torch.py and tvm_keras.py.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import cache
from types import ModuleType
from typing import Any

from opera import precision
from opera.compilers import Case, Variant
from opera.compilers.shared.messages import Rule
from opera.compilers.shared.messages import unsupported as first_rule
from opera.compilers.tvm import keras as tvm_keras
from opera.compilers.tvm import onnx as tvm_onnx
from opera.compilers.tvm import torch as tvm_torch
from opera.compilers.tvm.module import Imported
from opera.programs.values import Value

NAME = "tvm"
PACKAGE = "apache-tvm onnx"
PRELOAD = ("tvm.relax",)
FROM_ONNX = ("tvm.relax.frontend.onnx",)
PACKAGES = ("tvm", "tvm_ffi")
FRONTENDS: Mapping[str, tuple[Variant, ...]] = {
    "onnx": (
        Variant("inputs", "onnx", preload=FROM_ONNX),
        Variant("constants", "onnx-constants", after="rejected", preload=FROM_ONNX),
    ),
    "torch": (
        Variant(
            "exported-program",
            "pt2",
            preload=(precision.PRELOAD, "opera.libraries.torch.preload", "tvm.relax.frontend.torch"),
        ),
        Variant("onnx", "onnx", after="rejected", preload=FROM_ONNX),
    ),
    "keras": (
        Variant("tflite", "tflite", preload=tvm_keras.PRELOAD),
        Variant("onnx", "onnx", after="rejected", preload=FROM_ONNX),
    ),
}

PYTHON_FRONTENDS = {"onnx": FROM_ONNX, "torch": ("tvm.relax.frontend.torch",), "keras": tvm_keras.PRELOAD}
"""library → packages of the importer, whose statements `opera coverage` traces."""


UNSUPPORTED = (
    Rule(r"([^\n:]{1,80}(?: is| are)? not (?:yet |currently )?supported)\b", r"\1"),
    Rule(r"([\w ]{1,60} not implemented\b)", r"\1"),
)


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
    imported: Imported = _importer(case).load(case)
    return imported


def compile(loaded: Imported, case: Case) -> tuple[Any, Imported]:
    import tvm
    from tvm import relax

    module = relax.transform.LegalizeOps()(relax.transform.DecomposeOpsForInference()(loaded.module))
    with tvm.transform.PassContext(opt_level=3):
        executable = tvm.compile(module, target=_target())
    return relax.VirtualMachine(executable, tvm.cpu()), loaded


def infer(compiled: tuple[Any, Imported], case: Case) -> list[Value]:
    machine, imported = compiled
    machine.set_input("main", *imported.feeds(case))
    machine.invoke_stateful("main")
    return imported.results(machine.get_outputs("main"))


def unsupported(stage: str, error: BaseException) -> str | None:
    if missing := tvm_keras.missing(error):
        return f"no converter for {missing}"
    rules = tvm_onnx.UNSUPPORTED + tvm_torch.UNSUPPORTED + tvm_keras.UNSUPPORTED + UNSUPPORTED
    worded = tvm_torch.unsupported(stage, error) or first_rule(rules, stage, error)
    return worded or tvm_keras.refusal(stage, error)


def conversion_function(case: Case, error: BaseException | None) -> str:
    return str(_importer(case).conversion_function(case, error))


def _importer(case: Case) -> ModuleType:
    return {"pt2": tvm_torch, "tflite": tvm_keras}.get(case.artefact, tvm_onnx)
