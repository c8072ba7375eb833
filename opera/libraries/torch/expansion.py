"""The operators that PyTorch's exporter makes of a call, and what PyTorch calls inside it: one of them may fail alone."""

from __future__ import annotations

import types
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from typing import Any

from opera.errors import CorpusError, InvalidTest
from opera.libraries.torch import api as torch_api
from opera.libraries.torch import wrap as torch_module
from opera.programs.program import Instance

NAMESPACES = ("torch", "torch.nn.functional", "torch.Tensor", "torch.linalg", "torch.fft", "torch.special")
"""Where the public form of an ATen operator is looked for, in this order."""
REDUCTIONS = ("none", "mean", "sum")
"""What the `reduction` of a loss is called whose number ATen is given (`at::Reduction`)."""
MOST = 40
"""Operators of one call that are told."""


def expanded(instance: Instance) -> list[Instance]:
    """Return the calls that one call is made of, each with the values it was given; empty where it stays one.

    Those that torch.export makes of the program come first, then those that the default decompositions leave, which compilers
    ask for. Where both leave the call as it is, those of PyTorch's own decomposition of it follow, if there is one: exporters
    ask for that. Submodules and functions that PyTorch calls come last (opera.libraries.torch.inner); before all that is not
    `documented`, which a documented function is never said to be made of: nobody calls that. An operator without a
    public name (`aten._softmax`) is left out. A public form may take its arguments otherwise: whoever runs the call computes
    its reference anew. Raises InvalidTest where PyTorch cannot export it, and calls nothing else inside.
    """
    import torch

    from opera.libraries.torch import inner as torch_inner
    from opera.libraries.torch.eager import quiet

    ran, inner = torch_module.run(instance), list[Instance]()
    with suppress(InvalidTest):  # what the exporter makes of it may be told still
        inner = [x for x in torch_inner.inner(instance) if x.operator != instance.operator][:MOST]
    made = torch_module.Live(torch_module.module(instance, ran.outputs), torch_module.tensors(instance), (), ())
    seen: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = []

    class Watch(torch.fx.Interpreter):  # type: ignore[misc]  # torch is not typed here
        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            seen.append((target, _kept(args), _kept(kwargs)))
            return super().call_function(target, args, kwargs)

    try:
        program = made.program()
        with quiet():
            for chain in (program, program.run_decompositions()):
                Watch(chain.module()).run(*made.args)
            with suppress(Exception):  # not all that PyTorch can decompose it can export then
                if len(seen) == 2 and seen[0][0] in (known := torch._decomp.decomposition_table):
                    Watch(program.run_decompositions({seen[0][0]: known[seen[0][0]]}).module()).run(*made.args)
    except Exception as error:
        if not inner:
            raise InvalidTest(f"PyTorch does not export it: {torch_module.brief(error)}") from None
    told = [x for target, args, kwargs in seen for x in _instances(target, args, kwargs)]
    told = [x for x in told if x.operator != instance.operator][:MOST]
    plain = sorted({x.id: x for x in (*told, *inner)}.values(), key=lambda x: not documented(x.operator))
    return [x for x in plain if documented(x.operator)] if documented(instance.operator, modules=False) else plain


def documented(operator: str, *, modules: bool = True) -> bool:
    """Whether PyTorch says what an operator does: `torch.conv1d`, not `torch.convolution` that it calls. A module's call may
    be made of calls that nobody documents (`modules`): they are plainer still.
    """
    known = torch_api.resolve(operator)
    special = operator.rpartition(".")[2].startswith("__")
    return (special or bool(getattr(known, "__doc__", None))) and (modules or not isinstance(known, type))


def _kept(item: Any) -> Any:
    """Return an argument with copies of its tensors, for later calls may write into them; a graph's own lists become lists."""
    import torch

    match item:
        case torch.Tensor():
            return item.detach().clone()
        case list() | tuple():
            return (tuple if isinstance(item, tuple) else list)(map(_kept, item))
        case dict():
            return {name: _kept(x) for name, x in item.items()}
    return item


def _instances(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Instance]:
    """Yield the call of the public form of an ATen operator, if it has one."""
    from opera.libraries.torch import calls as torch_calls
    from opera.libraries.torch.codec import NotRepresentable

    schema = tuple(
        "input" if x.name == "self" else x.name for x in getattr(getattr(target, "_schema", None), "arguments", ())
    )
    name = _public(str(getattr(getattr(target, "overloadpacket", None), "__name__", "")), schema)
    if name:
        args, named = _by_name(name, list(schema), args)
        kwargs = {"input" if x == "self" else x: value for x, value in kwargs.items()}
        with suppress(NotRepresentable, CorpusError):
            yield torch_calls.instance(name, args, {**named, **kwargs})


def _by_name(name: str, schema: list[str], args: tuple[Any, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return positional and named arguments of a public form, for those that an ATen operator was given by their place.

    From the first on that has another place there (`reduction` of `cross_entropy`), they go by their names. So do those of an
    overload that other arguments stand for in the first one (`dim` and `keepdim` of `prod`), for ATen's own functions know all.
    """
    formals, native = torch_api.formals(name), not isinstance(torch_api.resolve(name), types.FunctionType | type)
    moved = (n for n, (one, other) in enumerate(zip(schema, formals, strict=False)) if one != other and one in formals)
    unlike = (n for n, one in enumerate(schema) if n and formals[n : n + 1] != [one])
    first = min(next(unlike, len(args)), len(args)) if native else next(moved, len(args))
    named = dict(zip(schema[first : len(args)], args[first:], strict=False))
    if isinstance(named.get("reduction"), int):
        named["reduction"] = REDUCTIONS[named["reduction"]]
    return args[:first], named


@cache
def _public(name: str, schema: tuple[str, ...] = ()) -> str:
    """Return the operator that an ATen operator's name is known by, else nothing: one that knows names of its `schema`, if any.

    `linalg_det` is `torch.linalg.det`, `log_sigmoid` `torch.nn.functional.logsigmoid`, and `cross_entropy_loss`
    `torch.nn.functional.cross_entropy`. `unfold`, along a dimension, is a tensor's, and not that of windows.
    """
    known = _squeezed()
    inner = name.partition("_")[2]
    names = [f"{space}.{name}" for space in NAMESPACES] + [f"{space}.{inner}" for space in NAMESPACES[3:]]
    names += [f"{NAMESPACES[1]}.{name.removesuffix('_loss')}"] if name.endswith("_loss") else []
    found = [x for x in names if x in torch_api.operators()]
    said = {*schema} - {"input"}
    found = sorted(
        found, key=lambda x: not documented(x)
    )  # `torch.relu` is nowhere told, `torch.nn.functional.relu` is
    exact = next((x for x in found if not said or said & {*torch_api.formals(x)}), next(iter(found), ""))
    if exact or not name or name.startswith("_"):
        return exact
    return next((known[x.replace("_", "")] for x in names if x.replace("_", "") in known), "")


@cache
def _squeezed() -> dict[str, str]:
    return {x.replace("_", ""): x for x in torch_api.operators() if not x.rpartition(".")[2].startswith("__")}
