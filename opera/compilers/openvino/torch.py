"""OpenVINO's importer of PyTorch's exported programs and of TorchScript."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable
from typing import Any

from opera import precision
from opera.compilers import Case
from opera.compilers.shared import torch_operators
from opera.compilers.shared.messages import Rule
from opera.programs.values import Tensor, Value

PRELOAD = (
    precision.PRELOAD,
    "opera.libraries.torch.preload",
    "openvino.frontend.pytorch.fx_decoder",
    "openvino.frontend.pytorch.ts_decoder",
    "openvino.frontend.pytorch.torchdynamo.export_decompositions",
)

UNSUPPORTED = (
    Rule(r"\[PyTorch Frontend\] ([^\n]{1,80} do(?:es)? not support [^\n.]{1,60})", r"\1", "load"),
    Rule(r"\[PyTorch Frontend\] (The operation doesn't allow complex type)", r"\1", "load"),
    Rule(r"\[PyTorch Frontend\] ([\w:]+: Couldn't retrieve input stride information)", r"\1", "load"),
)
"""The words of its translators, beside those of openvino.py."""

BEFORE_OPERATORS = r"(?:frontend|translate_session|input_model)\.cpp:"
"""Places that fail for whatever operator the model has."""


def load_program(case: Case) -> Any:
    """Convert an ExportedProgram; without the shapes of its inputs all of them would become dynamic."""
    import openvino
    import torch

    program = torch.export.load(case.model)
    shapes = [openvino.PartialShape(list(_of(value).shape)) for value in case.feeds.values()]
    model = openvino.convert_model(program, input=shapes)
    return _named(model, case, list(program.graph_signature.user_inputs))


def load_script(case: Case) -> Any:
    """Convert TorchScript. Its inputs' types are taken from examples, which nothing is computed with."""
    import openvino
    import torch

    module = torch.jit.load(str(case.model))
    feeds = [_of(value) for value in case.feeds.values()]
    examples = tuple(torch.empty(feed.shape, dtype=getattr(torch, feed.dtype)) for feed in feeds)
    shapes = [openvino.PartialShape(list(feed.shape)) for feed in feeds]
    return _named(openvino.convert_model(module, input=shapes, example_input=examples), case, [])


LOADERS: dict[str, Callable[[Case], Any]] = {"pt2": load_program, "torchscript": load_script}
"""Artefact → what converts it."""


def translator(operator: str) -> str:
    """Return one name for what has one translator: `aten.add.Tensor`, `aten::add` and `aten::add_` are `aten::add`."""
    found = re.fullmatch(r"aten(?:::|\.)(\w*?[a-z\d])_?(?:\.\w+)?", operator)
    return f"aten::{found[1]}" if found else operator


def raised(error: BaseException) -> str:
    """Return `file:function` where OpenVINO's own Python code raised, else an empty string."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    last = frames[-1] if frames else None
    module = "" if last is None else str(last.f_globals.get("__name__"))
    if (
        last is None
        or not module.startswith(("openvino.frontend.pytorch", "openvino.tools."))
        or module.endswith(".pipeline")
    ):
        return torch_operators.decomposing(error)
    return f"{module.rsplit('.', 1)[-1]}:{last.f_code.co_qualname}"


def _named(model: Any, case: Case, names: list[str]) -> Any:
    """Give the model's inputs the names of the feeds: by their place where all are there, else by their own `names`."""
    feeds = list(case.feeds)
    whole = len(model.inputs) == len(feeds)
    for place, port in enumerate(model.inputs):
        known = [feed for feed, name in zip(feeds, names, strict=False) if name in port.get_names()]
        if whole or known:
            port.get_tensor().add_names({feeds[place] if whole else known[0]})
    return model


def _of(value: Value) -> Tensor:
    assert isinstance(value, Tensor)
    return value
