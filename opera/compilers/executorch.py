"""ExecuTorch on the CPU: its exporter lowers exported programs to .pte files, which its runtime runs."""

from __future__ import annotations

import json
import logging
import re
import traceback
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from opera import precision
from opera.compilers import APART, RECIPES, Case, Frontend, Involved, Recipe, Variant, Way
from opera.compilers.shared import messages, torch_live, torch_operators, torch_values
from opera.compilers.shared.messages import unsupported as first_rule
from opera.programs.values import Value

NAME = "executorch"
TITLE = "ExecuTorch"
PACKAGE = "executorch"
ALONE = True
PRELOAD = (
    precision.PRELOAD,
    "torch",
    "executorch.backends.xnnpack.partition.xnnpack_partitioner",
    "executorch.exir",
    "executorch.runtime",
)

RECIPE = f"{RECIPES}.executorch"
UNSUPPORTED = messages.table("executorch", "exporter", "runtime")
PORTABLE = "portable"
EDGE = "edge"
LIBRARY = ("opera.libraries.torch.preload",)
PATTERNS = "opera.compilers.shared.xnnpack_patterns"


def version() -> str:
    return metadata.version("executorch")


def options() -> dict[str, str]:
    return {"threads": "1", **precision.TORCH}


def prepare() -> None:
    """Keep it quiet; the runtime has its one thread when a file is loaded."""
    torch_live.prepare()
    logging.getLogger("executorch").setLevel(logging.ERROR)


class Torch:
    """An exported program, for XNNPACK with the kernels that the wheel has for the rest, and for these alone."""

    VARIANTS = (
        Variant("xnnpack", "pt2", preload=(*LIBRARY, PATTERNS), exports="model.pte"),
        Variant(PORTABLE, "pt2", preload=LIBRARY, exports="model.pte"),
    )
    PACKAGES = ("executorch", f"{RECIPE}_told")
    """The last raises what the runtime prints."""
    WAYS = (
        Way(
            EDGE, APART, "the program in ExecuTorch's Edge dialect, before any of it is delegated, on PyTorch's kernels"
        ),
    )
    BEFORE = torch_operators.BEFORE
    UNPATCHED: Mapping[str, str] = torch_operators.UNPATCHED
    """It decomposes what it is given by PyTorch's own functions."""
    PYTHON = ("executorch.exir", "executorch.backends.xnnpack")

    def export(self, case: Case, path: Path) -> None:
        """Lower the program, and write it as ExecuTorch's file."""
        import torch

        from opera.compilers.recipes import executorch as recipe

        lower: Any = recipe.lower_portable if case.variant == PORTABLE else recipe.lower_xnnpack
        with torch.no_grad():
            lower(str(case.model), str(path))
        strides = [x.stride() for x in torch.export.load(case.model).example_inputs[0]]
        _beside(path).write_text(json.dumps({"program": str(case.model), "strides": strides}), encoding="utf-8")

    def load(self, case: Case) -> str:
        """Lowering was all of it: nothing is left but to name the file."""
        return str(case.model)

    def compile(self, loaded: str, case: Case) -> Any:
        """Have the runtime load the file, which looks up kernels and has XNNPACK make its own."""
        from opera.compilers.recipes import executorch as recipe

        return _edge(_told(case)["program"]) if case.way == EDGE else recipe.load(loaded)

    def infer(self, compiled: Any, case: Case) -> list[Value]:
        from opera.compilers.recipes import executorch as recipe

        strides = _told(case)["strides"]
        args = [recipe.dense(torch_values.tensor(x), own) for x, own in zip(case.feeds.values(), strides, strict=True)]
        if case.way == EDGE:
            return _ran(compiled, args)
        found: list[Value] = recipe.infer(compiled, args, torch_values.value)
        return found

    def unsupported(self, case: Case, stage: str, error: BaseException) -> str | None:
        return torch_operators.refusal(error) or first_rule(UNSUPPORTED, stage, error)

    def conversion_function(self, case: Case, error: BaseException | None) -> str:
        """Return the operator without kernel, the kernel's file, or the exporter's step that failed, else the operator."""
        text = "" if error is None else str(error)
        if missing := re.search(r"Missing operator: \[\d+\] ([\w:.]+)", text):
            return missing[1]
        if kernel := re.search(r"\[((?:op|native)_\w+\.cpp):\d+\]", text):
            return kernel[1]
        return _step(error) or torch_operators.decomposing(error) or case.operator

    def recipe(self, artefact: str, involved: Involved) -> Recipe:
        lower = "lower_portable" if involved.variant == PORTABLE else "lower_xnnpack"
        return Recipe((f"{RECIPE}:{lower}",), (f"{RECIPE}:load",), (f"{RECIPE}:infer",))


FRONTENDS: Mapping[str, Frontend] = {"torch": Torch()}

STEPS = re.compile(r"executorch\.(?:exir\.passes|exir\.emit|backends\.xnnpack|backends\.transforms)\b")
"""The exporter's passes, its emitter, and XNNPACK's part of it."""


def _beside(lowered: Path) -> Path:
    """Return the file beside a lowered program that tells what it was made of: the exported program, its inputs' strides."""
    return lowered.with_name("made.json")


def _told(case: Case) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_beside(case.model).read_text(encoding="utf-8"))
    return found


def _edge(program: str) -> Any:
    """Return a function of what the exporter makes of a program before it delegates, plans and writes."""
    import torch
    from executorch.exir import to_edge_transform_and_lower

    return to_edge_transform_and_lower(torch.export.load(program)).exported_program().module()


def _ran(function: Any, args: list[Any]) -> list[Value]:
    import torch

    with torch.no_grad():
        return [torch_values.value(x) for x in torch.utils._pytree.tree_leaves(function(*args))]


def _step(error: BaseException | None) -> str:
    """Return the innermost of the exporter's own steps that an error came through (`op_add:AddVisitor.define_node`)."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__ if error is not None else None)]
    for frame in reversed(frames):
        module = str(frame.f_globals.get("__name__"))
        if STEPS.match(module):
            return f"{module.rpartition('.')[2]}:{frame.f_code.co_qualname}"
    return ""
