"""Torch-TensorRT: PyTorch's exported programs, converted operator by operator to TensorRT's network."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from typing import Any

from opera import precision
from opera.compilers import CONVERSION, KERNEL, OPTIMISATION, RECIPES, Canary, Case, Involved, Recipe, Variant
from opera.compilers.shared import messages, torch_operators, torch_values
from opera.compilers.shared.messages import unsupported as first_rule
from opera.compilers.tensorrt.told import told
from opera.programs.values import Value
from opera.programs.verdicts import UNSUPPORTED as UNSUPPORTED_VERDICT

PRELOAD = (precision.PRELOAD, "opera.libraries.torch.preload", "opera.compilers.tensorrt.installed")
"""Without torch_tensorrt itself, whose import asks CUDA for the GPU: a worker that is forked after that cannot use it."""

UNSUPPORTED = messages.table("tensorrt", "torch", "builder")

RECIPE = f"{RECIPES}.tensorrt_torch"
CONVERTERS = "torch_tensorrt.dynamo.conversion."
"""The package of its converters; what they call in common is below `impl`."""


class Torch:
    """An exported program is moved to the GPU, and compiled as a whole or not at all."""

    VARIANTS = (Variant("exported-program", "pt2", preload=PRELOAD),)
    PACKAGES = ("torch_tensorrt", "tensorrt", "tensorrt_bindings")
    BEFORE = torch_operators.BEFORE
    UNPATCHED: Mapping[str, str] = torch_operators.UNPATCHED
    """It decomposes what it is given by PyTorch's own functions."""
    PLACES: Mapping[str, str] = {
        r"aten_ops_converters|conversion[/.]impl|_TRTInterpreter|partitioning": CONVERSION,
        r"[oO]ptimizer|[mM]yelin|[tT]actic|Could not find any implementation|buildSerializedNetwork": OPTIMISATION,
        r"IExecutionContext|executionContext|CUDA error|execute_engine|TRTEngine": KERNEL,
    }
    PYTHON = ("torch_tensorrt.dynamo.conversion",)

    def load(self, case: Case) -> Any:
        """Read the program, and move it to the GPU."""
        from opera.compilers.recipes import tensorrt_torch as recipe

        return recipe.load(str(case.model))

    def compile(self, loaded: Any, case: Case) -> Any:
        """Convert it and build the engine: Torch-TensorRT does both in one call."""
        from opera.compilers.recipes import tensorrt_torch as recipe

        args = [torch_values.tensor(value) for value in case.feeds.values()]
        with told():
            return recipe.build(loaded, args)

    def infer(self, compiled: Any, case: Case) -> list[Value]:
        import torch

        from opera.compilers.recipes import tensorrt_torch as recipe

        with torch.no_grad():
            found: list[Value] = recipe.infer(compiled, torch_values.value)
        return found

    def unsupported(self, case: Case, stage: str, error: BaseException) -> str | None:
        return torch_operators.refusal(error) or first_rule(UNSUPPORTED, stage, error)

    def conversion_function(self, case: Case, error: BaseException | None) -> str:
        """Return the converter that raised (`aten_ops_converters:aten_ops_sub`), else the one that DYNAMO_CONVERTERS has first.

        Where the program calls several operators that have converters, and none of them raised, it is the operator.
        """
        if raised := _raised(error):
            return raised
        import torch
        from torch_tensorrt.dynamo.conversion import DYNAMO_CONVERTERS

        program = torch.export.load(case.model)
        targets = {node.target for node in program.graph.nodes if node.op == "call_function"}
        found = [DYNAMO_CONVERTERS.get_unvalidated(target) for target in targets]
        names = sorted({_named(entry[0]) for entry in found if entry is not None})
        return names[0] if len(names) == 1 else case.operator

    def canaries(self) -> tuple[Canary, ...]:
        """Return a call that has no converter, which Torch-TensorRT leaves to PyTorch without a word."""
        program = torch_operators.uncommon()
        return (Canary("an operator without converter is unsupported", UNSUPPORTED_VERDICT, program),)

    def recipe(self, artefact: str, involved: Involved) -> Recipe:
        return Recipe((f"{RECIPE}:load",), (f"{RECIPE}:build",), (f"{RECIPE}:infer",))


def _raised(error: BaseException | None) -> str:
    """Return the converter whose frame is in the traceback: the first of a module of converters."""
    for frame, _ in traceback.walk_tb(error.__traceback__ if error is not None else None):
        module = str(frame.f_globals.get("__name__"))
        if module.startswith(CONVERTERS) and module.endswith("_converters"):
            return f"{module.rpartition('.')[2]}:{frame.f_code.co_name}"
    return ""


def _named(converter: Any) -> str:
    return f"{converter.__module__.rpartition('.')[2]}:{converter.__qualname__}"
