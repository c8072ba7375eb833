"""Imports what PyTorch and its exporters would else import in every worker when they are first used (seconds each).

Importing starts no threads and runs no operator. Names that begin with an underscore are PyTorch's own business: what another
version does not have is passed over.

It also makes `ExportedProgram.run_decompositions`, which most frontends begin with, cost what the program costs. That asks
the dispatcher 50 times a call for the operators of every namespace, in case somebody has registered one since, and its
thousands of registrations each evaluate an annotation, which `typing` keeps and `collections.abc` does not: two thirds of the
time that a small model takes. Those registrations, five thousand for 525 operators, and their withdrawal are all but the same
every time, so that they are kept: two fifths of what is left.

Where the environment variable OPERA_UNPATCHED is 1, PyTorch stays as it is: so a finding of what opera made quicker is
confirmed.
"""

import os
import sys
import typing
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache, partial
from importlib import import_module
from typing import Any, NamedTuple

import torch

LISTING = "_collect_all_valid_cia_ops"
USERS = ("torch._export.utils", "torch.export.exported_program", "torch.export.decomp_utils")
"""Modules that hold that function by name."""

REPLACING, RULES = "_override_composite_implicit_decomp", "torch._subclasses.fake_impls"
"""What replaces the decompositions of composite operators for a while, and the module of the rules of fake tensors, to which
it adds some."""

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
    exported, rules = (sys.modules.get(x) for x in (USERS[1], RULES))
    replacing, of_fake = getattr(exported, REPLACING, None), getattr(rules, "op_implementations_dict", None)
    if replacing is not None and of_fake is not None:
        setattr(exported, REPLACING, _kept(replacing, of_fake))


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


class _Replaced(NamedTuple):
    """What replaces the decomposition of an operator: the kernels that it has before and meanwhile, and its rule."""

    by: Any
    before: dict[Any, Any]
    meanwhile: dict[Any, Any]
    rule: Any


def _same(one: Any, other: Any) -> bool:
    """Whether two functions are one; what decomposes a composite operator as it is is made anew whenever it is asked for."""
    if not isinstance(one, partial) or not isinstance(other, partial):
        return one is other
    code, others = (getattr(x.func, "__code__", x.func) for x in (one, other))
    bound = getattr(one.func, "__closure__", None) or getattr(other.func, "__closure__", None)
    return code is others and not bound and (one.args, one.keywords) == (other.args, other.keywords)


def _kept(
    original: Callable[[Mapping[Any, Any]], AbstractContextManager[None]], rules: dict[Any, Any]
) -> Callable[[Mapping[Any, Any]], AbstractContextManager[None]]:
    """Return what does as the original, which is asked once of an operator, its kernels and what is to replace them.

    Rules are taken away at the end, whoever added them: so the original does.
    """
    known: dict[Any, _Replaced] = {}

    @contextmanager
    def replaced(by: Mapping[Any, Any]) -> Iterator[None]:
        before = {operator: dict(operator.py_kernels) for operator in by}
        asked = {
            operator: function
            for operator, function in by.items()
            if operator in rules
            or (held := known.get(operator)) is None
            or not _same(held.by, function)
            or held.before != before[operator]
        }
        again = [operator for operator in by if operator not in asked]
        new = {operator: function for operator, function in asked.items() if operator not in rules}
        with original(asked):
            for operator, function in new.items():
                known[operator] = _Replaced(function, before[operator], dict(operator.py_kernels), rules.get(operator))
            for operator in again:
                operator.py_kernels.clear()
                operator.py_kernels.update(known[operator].meanwhile)
                operator._dispatch_cache.clear()
                rules[operator] = known[operator].rule
            try:
                yield
            finally:
                for operator in again:
                    operator.py_kernels.clear()
                    operator.py_kernels.update(known[operator].before)
                    operator._dispatch_cache.clear()
                    rules.pop(operator, None)

    return replaced


remember()
