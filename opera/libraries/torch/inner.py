"""What PyTorch calls inside a call: submodules, and functions that are operators themselves. One of them may fail alone."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import torch.functional
import torch.nn.functional
from torch.overrides import TorchFunctionMode

from opera.errors import CorpusError
from opera.libraries.torch import api as torch_api
from opera.libraries.torch import calls, hooks, modules
from opera.libraries.torch import wrap as torch_module
from opera.libraries.torch.codec import NotRepresentable
from opera.programs.program import Instance

HOLDERS = (torch.functional, torch.nn.functional, torch._tensor)
"""Modules of PyTorch with functions in Python, which ask first of all whether a mode is to be told of the call."""
QUERIES = ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic")


def inner(instance: Instance) -> list[Instance]:
    """Return the calls that eager PyTorch makes for one call, each with the tensors it was given; the innermost first.

    A submodule is one of its constructor's arguments, with the weights that it gives itself. Raises InvalidTest where PyTorch
    rejects the call.
    """
    ran, seen = torch_module.run(instance), _Seen()
    with seen.modules():
        model = torch_module.module(instance, ran.outputs)
        with seen.functions():
            torch_module.eager(model, torch_module.tensors(instance))
    return seen.found[::-1]


class _Seen(TorchFunctionMode):  # type: ignore[misc]  # torch is not typed here
    """Sees the functions that a thread calls, and what these call in turn, as far as they are written in Python."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[Instance] = []
        self._entered: list[Any] = []
        self._through = False
        self._constructors = modules.Constructors(hooks.off)
        self._makers = frozenset(torch_api.instrumentation().operators.makers)

    def __torch_function__(self, func: Any, types_: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = torch_api.public_name(func)
        if name is not None and torch_api.denied(name) is None and name not in self._makers:
            self._note(lambda: calls.instance(name, args, kwargs))
        if not isinstance(func, types.FunctionType) or func in self._entered:
            return func(*args, **kwargs)
        self._entered.append(func)
        self._through = True  # it asks whether it is to be told of the call that it is
        try:
            with self:
                return func(*args, **kwargs)
        finally:
            self._through = False
            self._entered.pop()

    def _note(self, made: Callable[[], Instance]) -> None:
        with suppress(NotRepresentable, CorpusError), hooks.off():
            if not hooks.transformed():
                self.found.append(made())

    @contextmanager
    def functions(self) -> Iterator[None]:
        """See functions, as long as this lasts."""
        queries = [
            (holder, name, getattr(holder, name)) for holder in HOLDERS for name in QUERIES if hasattr(holder, name)
        ]
        for holder, name, query in queries:
            setattr(holder, name, self._asked(query))
        try:
            with self:
                yield
        finally:
            for holder, name, query in queries:
                setattr(holder, name, query)

    def _asked(self, query: Callable[..., bool]) -> Callable[..., bool]:
        def has_torch_function(*args: Any) -> bool:
            through, self._through = self._through, False
            return not through and query(*args)

        return has_torch_function

    @contextmanager
    def modules(self) -> Iterator[None]:
        """See calls of modules that are made while this lasts."""
        called: Callable[..., Any] = torch.nn.Module.__call__

        def call(this: Any, *args: Any, **kwargs: Any) -> Any:
            if (name := torch_api.public_name(type(this))) is not None:
                self._note(lambda: modules.module_instance(name, this, self._constructors.of(this), args, kwargs))
            return called(this, *args, **kwargs)

        with self._constructors.hooked():
            torch.nn.Module.__call__ = call
            try:
                yield
            finally:
                torch.nn.Module.__call__ = called
