"""OpenVINO's importer of PyTorch's exported programs, and of modules that PyTorch traced."""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import msgspec

from opera import precision
from opera.compilers import APART, GIVEN, Case, Involved, Recipe, Variant, Way
from opera.compilers.openvino import onnx as reader
from opera.compilers.openvino.evaluate import SHAPELESS
from opera.compilers.openvino.onnx import Onnx
from opera.compilers.shared import messages, torch_live, torch_operators
from opera.compilers.shared.messages import unsupported as first_rule
from opera.compilers.shared.packing import Refusal
from opera.programs.values import Tensor

PRELOAD = (precision.PRELOAD, "opera.libraries.torch.preload", "opera.compilers.openvino.torch_modules")

UNSUPPORTED = messages.table("openvino", "core", "pytorch")
"""The words of every route, and of its translators."""

UNSHAPED = "unshaped"
"""Its inputs become dynamic; but a program that does not use one has nothing that could be given a shape."""
PYTORCH = ("pt2", "live")
"""Artefacts that this importer takes; ONNX is read by OpenVINO's own reader."""


class NotTraced(Refusal):
    """PyTorch has no TorchScript of a module: no fault of OpenVINO's."""


class Torch(Onnx):
    """OpenVINO's importer of PyTorch's programs; what PyTorch exports to ONNX it reads as it is."""

    VARIANTS = (
        Variant("exported-program", "pt2", preload=PRELOAD),
        Variant("torchscript", "live", preload=PRELOAD),
        Variant("onnx", "onnx", after="rejected"),
    )

    BEFORE = torch_operators.BEFORE
    WAYS = (
        *Onnx.WAYS,
        Way(
            UNSHAPED, GIVEN, "convert_model(program) without input=", "load", PYTORCH,
            ("with input= given", "without input="),
        ),
        Way(
            SHAPELESS, APART, "the ov.Model that is made without shapes of inputs, its operators as numpy has them", "load",
            PYTORCH,
        ),
    )  # fmt: skip

    OPTIONS: Mapping[str, str] = {"torchscript": "traced in memory"}
    """Before this was stated, the variant `torchscript` was a file that opera had traced and saved."""

    def load(self, case: Case) -> Any:
        """Convert; a module is traced as it is, in memory: a file of TorchScript loses strides."""
        if case.artefact not in PYTORCH:
            return super().load(case)
        import torch

        from opera.compilers.recipes import openvino_torch as recipe

        feeds = {name: value for name, value in case.feeds.items() if isinstance(value, Tensor)}
        if case.artefact == "pt2":
            return (
                _unshaped(str(case.model), feeds)
                if case.way in (UNSHAPED, SHAPELESS)
                else recipe.load_program(str(case.model), feeds)
            )
        live = torch_live.rebuilt(case)
        with torch.no_grad():
            try:
                traced = recipe.trace(live.module, live.args)
            except Exception as error:
                raise NotTraced(f"PyTorch cannot trace it: {error}"[:300]) from None
            if case.way in (UNSHAPED, SHAPELESS):
                import openvino

                return recipe.named(openvino.convert_model(traced, example_input=deepcopy(live.args)), feeds, ())
            return recipe.load_traced(traced, live.args, feeds)

    def unsupported(self, case: Case, stage: str, error: BaseException) -> str | None:
        if case.artefact not in PYTORCH:
            return super().unsupported(case, stage, error)
        if isinstance(error, NotTraced):
            return str(error)
        return torch_operators.refusal(error) or first_rule(UNSUPPORTED, stage, error)

    def translator(self, operator: str) -> str:
        """Return one name for what has one translator: `aten.add.Tensor`, `aten::add` and `aten::add_` are `aten::add`."""
        found = re.fullmatch(r"aten(?:::|\.)(\w*?[a-z\d])_?(?:\.\w+)?", operator)
        return f"aten::{found[1]}" if found else operator

    def raised(self, error: BaseException) -> str:
        own = reader.raised_in(error, ("openvino.frontend.pytorch", "openvino.tools."))
        return own or torch_operators.decomposing(error)

    def recipe(self, artefact: str, involved: Involved) -> Recipe:
        own = f"{reader.RECIPE}_torch"
        load = {"pt2": (f"{own}:load_program",), "live": (f"{own}:trace", f"{own}:load_traced")}
        steps = reader.steps(involved, f"{reader.RECIPE}:load")
        return msgspec.structs.replace(steps, load=load.get(artefact, steps.load))


def _unshaped(path: str, feeds: Mapping[str, Tensor]) -> Any:
    import openvino
    import torch

    from opera.compilers.recipes import openvino_torch as recipe

    program = torch.export.load(path)
    return recipe.named(openvino.convert_model(program), feeds, program.graph_signature.user_inputs)
