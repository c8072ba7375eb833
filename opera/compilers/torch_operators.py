"""What the frontends of PyTorch share: its refusals, and decomposition that costs what the program costs.

`ExportedProgram.run_decompositions`, which most frontends begin with, asks the dispatcher 50 times a call for the
operators of every namespace, in case somebody has registered one since, and its thousands of registrations each evaluate
an annotation, which `typing` keeps and `collections.abc` does not. That is two thirds of the time that a small model takes.
"""

from __future__ import annotations

import sys
import traceback
import typing
from collections.abc import Callable
from functools import cache
from typing import Any

LISTING = "_collect_all_valid_cia_ops"
USERS = ("torch._export.utils", "torch.export.exported_program", "torch.export.decomp_utils")
"""Modules that hold that function by name."""

REFUSALS = {
    "Unsupported": "{}",
    "GuardOnDataDependentSymNode": "control flow that depends on data",
    "DataDependentOutputException": "{} returns a number that depends on data",
    "DynamicOutputShapeException": "the shape of what {} returns depends on data",
    "UnsupportedFakeTensorException": "{}",
    "UnsupportedOperatorException": "{} has no implementation that computes only shapes",
    "UnsupportedMutationAliasingException": "{}",
    "UnsupportedOperatorError": "{}",
}
"""PyTorch's exceptions whose very name is a refusal → what is refused, from the first line of their text."""


def refusal(error: BaseException) -> str | None:
    """Return what PyTorch itself refuses; causes are looked at too, for the layers above wrap such exceptions."""
    link: BaseException | None = error
    while link is not None:
        for kind in type(link).__mro__:
            if kind.__name__ in REFUSALS and kind.__module__.startswith("torch."):
                return REFUSALS[kind.__name__].format(str(link).strip().partition("\n")[0][:160])
        link = link.__cause__
    return None


@cache
def remember() -> None:
    """Keep PyTorch's list of operators until its dispatcher's own changes; nothing is done in a PyTorch that has none."""
    import torch.export
    from torch._export import utils

    original = getattr(utils, LISTING, None)
    if original is not None:
        remembered = _remembered(original)
        for name in USERS:
            if getattr(sys.modules.get(name), LISTING, None) is original:
                setattr(sys.modules[name], LISTING, remembered)
    if getattr(torch._ops, "Callable", None) is Callable:
        torch._ops.Callable = typing.Callable


def decomposing(error: BaseException | None) -> str:
    """Return `run_decompositions` where an error came out of it, for that is PyTorch's own step, else an empty string."""
    frames = traceback.walk_tb(error.__traceback__ if error is not None else None)
    names = {frame.f_code.co_name for frame, _ in frames if str(frame.f_globals.get("__name__")) == USERS[1]}
    return "torch.export:run_decompositions" if "run_decompositions" in names else ""


def _remembered(original: Callable[[], set[Any]]) -> Callable[[], set[Any]]:
    import torch

    known: dict[str, Any] = {}

    def listed() -> set[Any]:
        registered = torch._C._dispatch_get_registrations_for_dispatch_key("CompositeImplicitAutograd")
        state = (len(registered), hash(frozenset(registered)), len(torch.ops._dir))
        if known.get("state") != state:
            known["operators"] = original()
            known["state"] = (*state[:2], len(torch.ops._dir))
        return set(known["operators"])

    return listed
