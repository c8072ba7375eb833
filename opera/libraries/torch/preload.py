"""Imports what PyTorch and its exporters would else import in every worker when they are first used (seconds each).

Importing starts no threads and runs no operator. Names that begin with an underscore are PyTorch's own business: what another
version does not have is passed over.

It also makes `ExportedProgram.run_decompositions`, which most frontends begin with, cost what the program costs. That asks
the dispatcher 50 times a call for the operators of every namespace, in case somebody has registered one since, and its
thousands of registrations each evaluate an annotation, which `typing` keeps and `collections.abc` does not: two thirds of the
time that a small model takes.

Where the environment variable OPERA_UNPATCHED is 1, PyTorch stays as it is: so a finding of what opera made quicker is
confirmed.
"""

import os
import sys
import typing
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Any

import torch

LISTING = "_collect_all_valid_cia_ops"
USERS = ("torch._export.utils", "torch.export.exported_program", "torch.export.decomp_utils")
"""Modules that hold that function by name."""

MODULES = """
torch.export torch.export._trace torch.export.exported_program torch.overrides torch.utils._pytree
torch.utils.serialization.config torch._export.passes.replace_autocast_with_hop_pass
torch._export.passes.replace_set_grad_with_hop_pass
torch._inductor.compiler_bisector torch._inductor.fx_passes.dedupe_symint_uses torch._inductor.ir torch._inductor.sizevars
torch._subclasses.schema_check_mode torch.fx.experimental.symbolic_shapes torch.fx.experimental.validator
onnxscript onnxscript.function_libs.torch_lib.ops onnxscript.rewriter.rules.fusion onnxscript._framework_apis.torch_2_9
torch.onnx._internal.exporter._compat torch.onnx._internal.exporter._torchlib.ops
"""

for name in MODULES.split():
    with suppress(ImportError):
        import_module(name)


def unpatched() -> bool:
    """Tell whether this process is to leave PyTorch as it is."""
    return os.environ.get("OPERA_UNPATCHED") == "1"


@cache
def remember() -> None:
    """Keep PyTorch's list of operators until its dispatcher's own changes; nothing is done in a PyTorch that has none."""
    if unpatched():
        return
    original = getattr(sys.modules.get(USERS[0]), LISTING, None)
    if original is not None:
        remembered = _remembered(original)
        for user in USERS:
            if getattr(sys.modules.get(user), LISTING, None) is original:
                setattr(sys.modules[user], LISTING, remembered)
    if getattr(torch._ops, "Callable", None) is Callable:
        torch._ops.Callable = typing.Callable


def _remembered(original: Callable[[], set[Any]]) -> Callable[[], set[Any]]:
    known: dict[str, Any] = {}

    def listed() -> set[Any]:
        registered = torch._C._dispatch_get_registrations_for_dispatch_key("CompositeImplicitAutograd")
        state = (len(registered), hash(frozenset(registered)), len(torch.ops._dir))
        if known.get("state") != state:
            known["operators"] = original()
            known["state"] = (*state[:2], len(torch.ops._dir))
        return set(known["operators"])

    return listed


remember()
