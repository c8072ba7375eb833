"""PyTorch as a target of constraints: finding its operators, and calling them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any

import msgspec

from opera.capture.recorder import Recorder
from opera.errors import CorpusError
from opera.libraries.torch import api as torch_api
from opera.libraries.torch import codec as torch_values
from opera.libraries.torch import signatures as torch_signatures
from opera.programs.values import Named, RandomTensor, Tensor, Value
from opera.sources.docter import torch_documents
from opera.sources.docter.constraints import Api
from opera.sources.docter.targets import Bound, Dead, adapted
from opera.sources.docter.torch_documents import FORWARD

SKIPPED = frozenset(
    (
        "out",
        "generator",
        "device",
        "layout",
        "pin_memory",
        "memory_format",
        "requires_grad",
        "names",
        "output_device",
        "stream",
    )
)
"""Parameters that are not generated: they say where and how memory is had, not what is computed."""


def builtin() -> Iterator[Api]:
    """Yield the constraints of all operators; see opera.sources.docter.targets.Target."""
    for operator in torch_api.operators():
        yield from torch_documents.apis(operator)


def bind(api: Api) -> Bound:
    """Find an API of PyTorch."""
    operator = _operator(api.title)
    today = known(operator, api)
    formals, required = torch_documents.formals(operator, today)
    fitted, remarks, names = adapted(api, formals, required, today)
    optional = tuple(name for name in fitted.optional if name not in SKIPPED and fitted.parameters[name].constrained)
    return Bound(operator, msgspec.structs.replace(fitted, optional=optional), tuple(remarks), names)


def known(operator: str, api: Api) -> Api | None:
    """Return today's constraints: of several signatures, those that share most parameters with the API."""
    found = list(torch_documents.apis(operator))
    same = [x for x in found if x.file == api.file]
    names = set(api.parameters)
    return max(same or found, key=lambda x: len(names & set(x.parameters)) - len(set(x.required) - names), default=None)


def _operator(title: str) -> str:
    """Return the operator that a title names, in whatever case it is written. Raises Dead."""
    import torch

    name = _lower().get(title.lower(), title)
    try:
        torch_api.resolve(name)
        return name
    except CorpusError:
        pass
    found: Any = torch
    for step in title.split(".")[1:]:
        found = getattr(found, step, None)
    if title.partition(".")[0] != "torch" or found is None or type(found).__name__ == "module":
        raise Dead("PyTorch has it no longer")
    other = torch_api.public_name(found)
    if other is not None and torch_api.denied(other) is None:
        return other
    raise Dead((other and torch_api.denied(other)) or "it is no operator that opera captures")


@cache
def _lower() -> dict[str, str]:
    names = torch_api.operators()
    return {name.lower(): name for name in reversed(names)} | {name: name for name in names}


@contextmanager
def watching(recorder: Recorder) -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """Take calls for those of a test."""
    import torch

    from opera.libraries.torch.hooks import installed

    watch = installed(recorder)
    with torch.random.fork_rng(devices=[]), watch.driving():
        yield watch.active


def prepare(bound: Bound, values: Mapping[str, Value], number: int) -> Callable[[], Any]:
    """Return a call: positional as far as parameters are given without a gap, the rest by name."""
    import torch

    torch.manual_seed(number)
    found = torch_api.resolve(bound.operator)
    arguments = {name: decode(value) for name, value in values.items()}
    if torch_api.kind(bound.operator) == "module":
        return _module(bound.operator, found, arguments, number)
    args, kwargs = torch_signatures.split(torch_api.formals(bound.operator), arguments)
    if torch_api.kind(bound.operator) == "property":
        return lambda: found.__get__(args[0])
    return lambda: found(*args, **kwargs)


def _module(operator: str, kind: Any, arguments: dict[str, Any], number: int) -> Callable[[], Any]:
    """Module weights take the dtype of the first floating-point input; every second module is in evaluation mode."""
    import torch

    forward = {name.removeprefix(FORWARD): x for name, x in arguments.items() if name.startswith(FORWARD)}
    args, kwargs = torch_signatures.split(
        torch_api.constructor_formals(operator),
        {name: x for name, x in arguments.items() if not name.startswith(FORWARD)},
    )
    called, named = torch_signatures.split(torch_api.formals(operator), forward)

    def call() -> Any:
        module = kind(*args, **kwargs)
        floats = (x.dtype for x in called if isinstance(x, torch.Tensor) and x.is_floating_point())
        dtype = next(floats, None)
        module = module if dtype is None or "dtype" in kwargs else module.to(dtype)
        return module.train(number % 2 == 0)(*called, **named)

    return call


def decode(value: Value) -> Any:
    """Return PyTorch's object of a generated value."""
    match value:
        case Tensor() | RandomTensor():
            return torch_values.to_torch(value)
        case Named(kind="dtype", name=name):
            return torch_values.decode(Named("torch.dtype", name))
        case list() | tuple():
            return type(value)(decode(x) for x in value)
        case dict():
            return {name: decode(x) for name, x in value.items()}
    return torch_values.decode(value)
