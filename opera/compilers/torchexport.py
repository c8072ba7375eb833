"""torch.export as a compiler under test: it takes a module to an ExportedProgram, which all newer frontends read."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

from opera import precision
from opera.compilers import Case, Variant
from opera.compilers.shared import torch_live, torch_operators
from opera.compilers.shared.messages import Rule
from opera.programs.values import Value

NAME = "torchexport"
PACKAGE = "torch"
PRELOAD = (precision.PRELOAD, "torch", "opera.libraries.torch.preload")
PACKAGES = ("torch",)
FRONTENDS: Mapping[str, tuple[Variant, ...]] = {"torch": (Variant("live", "live"),)}

UNPATCHED: Mapping[str, Mapping[str, str]] = {"torch": torch_operators.UNPATCHED}
"""The functions that its own PyTorch shares: torch.export decomposes by them, and annotates by `torch._ops.Callable`."""

UNSUPPORTED = (
    Rule(r"([^\n:]{1,80}(?: is| are)? not (?:yet |currently )?supported)\b", r"\1"),
    Rule(r"([^\n:]{1,80} not implemented for [^\n]{1,40})", r"\1"),
)


def version() -> str:
    import torch

    return str(torch.__version__)


def options() -> dict[str, str]:
    return {"strict": "False", **precision.TORCH}


def prepare() -> None:
    torch_live.prepare()


def load(case: Case) -> tuple[Any, Any]:
    live = torch_live.rebuilt(case)
    return live.program(), live


def compile(loaded: tuple[Any, Any], case: Case) -> tuple[Any, Any]:
    """Save the program and load it again, as everybody does who hands it on."""
    import torch

    program, live = loaded
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    return torch.export.load(file).module(), live


def infer(compiled: tuple[Any, Any], case: Case) -> list[Value]:
    model, live = compiled
    return torch_live.ran(live, model)


def unsupported(stage: str, error: BaseException) -> str | None:
    return torch_live.unsupported(UNSUPPORTED, stage, error)


def conversion_function(case: Case, error: BaseException | None) -> str:
    """Return the operator: torch.export has no converter for each of them."""
    return case.operator
