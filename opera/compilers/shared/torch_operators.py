"""What the frontends of PyTorch share: its refusals, its decompositions, and how to have it unpatched."""

from __future__ import annotations

import traceback
from collections.abc import Iterable

from opera.compilers.shared import messages
from opera.compilers.shared.packing import Refusal
from opera.programs.program import Captured, Instance, Operand, Provenance
from opera.programs.values import Tensor

BEFORE = ("torch.export",)
"""It makes the program that frontends are given, and decomposes it where they ask: what it raises is PyTorch's."""

UNPATCHED = {"OPERA_UNPATCHED": "1"}
"""The environment in which opera.libraries.torch.preload and torch_export leave PyTorch as it is."""

PLUMBING = {
    "_assert_tensor_metadata", "_to_copy", "_unsafe_view", "alias", "arange", "clone", "contiguous", "copy", "detach", "expand",
    "flatten", "full", "getitem", "permute", "reshape", "scalar_tensor", "select", "slice", "squeeze", "t", "transpose",
    "unsqueeze", "view",
}  # fmt: skip
"""Operators that PyTorch's decompositions put around the one that matters."""

EXPORTED = "torch.export.exported_program"

REFUSALS = messages.table("torch", "classes")
"""PyTorch's exceptions whose very name is a refusal."""


def refusal(error: BaseException) -> str | None:
    """Return what PyTorch itself refuses; causes are looked at too, for the layers above wrap such exceptions."""
    link: BaseException | None = error
    while link is not None:
        if not isinstance(link, Refusal) and (told := messages.unsupported(REFUSALS, "", link)):
            return told
        link = link.__cause__
    return None


def decomposing(error: BaseException | None) -> str:
    """Return `run_decompositions` where an error came out of it, for that is PyTorch's own step, else an empty string."""
    frames = traceback.walk_tb(error.__traceback__ if error is not None else None)
    names = {frame.f_code.co_name for frame, _ in frames if str(frame.f_globals.get("__name__")) == EXPORTED}
    return "torch.export:run_decompositions" if "run_decompositions" in names else ""


def telling(called: Iterable[str], name: str) -> list[str]:
    """Return each operator of a decomposed program once (`sub.Tensor`): the one of that name, else all but plumbing."""
    every = list(dict.fromkeys(called))
    keys = [key for key in every if key.partition(".")[0] not in PLUMBING] or every
    return [key for key in keys if key.partition(".")[0] == name] or keys


def uncommon() -> Captured:
    """Return a call for which few compilers have a converter: a canary."""
    ones = Tensor("float32", (1,), b"\0\0\x80\x3f")
    call = {"kind": "function", "call": {"args": ["input"], "kwargs": []}}
    instance = Instance("torch", "torch.special.i0", {}, (Operand("input", ones),), (), call)
    return Captured(instance, Provenance("doctor", "canary", "unsupported"))
