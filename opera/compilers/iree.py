"""IREE on the CPU: its importer of ONNX models, its compiler to machine code (`llvm-cpu`), and its runtime (`local-sync`).

Two packages of one release, in an environment of their own (`opera env create iree`): they weigh 600 MB with what they need.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from opera.compilers import (
    CONVERSION,
    KERNEL,
    LESS,
    OPTIMISATION,
    OWN,
    RECIPES,
    Case,
    Frontend,
    Involved,
    Recipe,
    Variant,
    Way,
)
from opera.compilers.shared import messages
from opera.compilers.shared.messages import unsupported as first_rule
from opera.compilers.shared.packing import CannotCarry, of_numpy
from opera.programs.values import CONTAINERS, Tensor, Value

NAME = "iree"
TITLE = "IREE"
PACKAGE = "iree-base-compiler iree-base-runtime onnx"
TOGETHER = ("iree-base-runtime",)
ALONE = True
PRELOAD = ("onnx", "iree.compiler.api", "iree.compiler.tools.import_onnx.__main__", "iree.runtime")

RECIPE = f"{RECIPES}.iree"
LEAST = ["--iree-dispatch-creation-opt-level=O0", "--iree-opt-const-expr-hoisting=false", "--iree-opt-const-eval=false"]
"""Without optimisations; all else is at the level O0 by default."""
VMVX = "--iree-hal-target-backends=vmvx"
UNSUPPORTED = messages.table("iree", "onnx")

PLACES = {
    r"'(?:torch|torch_c|tm_tensor|linalg|tensor)\.": CONVERSION,
    r"'(?:flow|stream|hal|vm|util|iree_\w+)\.": OPTIMISATION,
    r"'(?:vector|memref|llvm|scf|affine)\.": KERNEL,
}
"""Dialects of the operation that a diagnostic names."""
NODE = r'"onnx\.([\w.]+)"'
"""How a diagnostic names the operator of ONNX that it is at."""
OPERATION = r"operation '([\w.]+)'|'([\w.]+)' op\b"
"""How it names one of the operations that the model was made into."""


def version() -> str:
    return metadata.version("iree-base-compiler")


def options() -> dict[str, str]:
    return {
        "target": "llvm-cpu",
        "cpu": "generic",
        "device": "local-sync",
        "demote-f64-to-f32": "where no f64 is declared",
        "threads": "1",
    }


def prepare() -> None:
    from opera.compilers.recipes import iree as recipe  # noqa: F401 - its import leaves the compiler one thread


class Onnx:
    """IREE's importer of ONNX models, which is torch-mlir's, and its conversion to what the compiler begins with."""

    VARIANTS = (
        Variant("inputs", "onnx", exports="model.mlir"),
        Variant("constants", "onnx-constants", after="rejected", exports="model.mlir"),
    )
    PACKAGES = ("iree", f"{RECIPES}.iree_told")
    """The last raises what the compiler tells by diagnostics."""
    WAYS = (
        Way("unoptimised", LESS, "dispatches formed at level O0, no constants hoisted or computed by the compiler"),
        Way("interpreted", OWN, "the same after its conversion, on IREE's interpreter VMVX"),
    )
    PLACES: Mapping[str, str] = PLACES

    def export(self, case: Case, path: Path) -> None:
        from opera.compilers.recipes import iree as recipe

        recipe.convert(str(case.model), str(path))

    def load(self, case: Case) -> Any:
        from opera.compilers.recipes import iree as recipe

        flags = {
            "unoptimised": [*recipe.FLAGS, *LEAST],
            "interpreted": [x.replace(recipe.BACKEND, VMVX) for x in recipe.FLAGS],
        }
        return recipe.load(str(case.model), flags.get(case.way, recipe.FLAGS))

    def compile(self, loaded: Any, case: Case) -> Any:
        from opera.compilers.recipes import iree as recipe

        return recipe.compile(loaded)

    def infer(self, compiled: Any, case: Case) -> list[Value]:
        from opera.compilers.recipes import iree as recipe

        fed = {name: _array(value) for name, value in case.feeds.items()}
        return [of_numpy(array) for array in recipe.run(compiled, fed, case.dtypes)]

    def unsupported(self, case: Case, stage: str, error: BaseException) -> str | None:
        return first_rule(UNSUPPORTED, stage, error)

    def conversion_function(self, case: Case, error: BaseException | None) -> str:
        """Return the operator of ONNX that a diagnostic names, else the operation that it was made into, else the case's."""
        message = "" if error is None else str(error)
        if named := re.search(NODE, message):
            return named[1]
        made = re.search(OPERATION, message)
        return (made[1] or made[2]) if made else case.operator

    def recipe(self, artefact: str, involved: Involved) -> Recipe:
        return Recipe((f"{RECIPE}:convert", f"{RECIPE}:load"), (f"{RECIPE}:compile",), (f"{RECIPE}:run",))


FRONTENDS: Mapping[str, Frontend] = {"onnx": Onnx()}


def _array(value: Value) -> np.ndarray[Any, Any]:
    dtype = value.dtype if isinstance(value, Tensor) else f"{type(value).__name__.lower()}s"
    if not isinstance(value, Tensor) or CONTAINERS[dtype] != dtype:
        raise CannotCarry(f"opera cannot feed {dtype} to IREE")
    return value.array()
