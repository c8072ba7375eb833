"""Modules of torch.nn as operator instances: what they were constructed with, and what they are called with.

Constructor arguments are encoded when the constructor is called, so that nothing of the suite is kept alive, and held by a weak
reference to the module. `Module.__new__` sees them; that `Module.__init__` follows tells a constructor call from a copy
or an unpickled module, whose constructor nobody called and whose arguments are therefore not known.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import torch

from opera.libraries.torch import api as torch_api
from opera.libraries.torch import codec as torch_values
from opera.libraries.torch.calls import FORWARD, Call, key
from opera.libraries.torch.codec import NotRepresentable
from opera.programs.program import Instance
from opera.programs.values import Named, Value


class Constructed(msgspec.Struct, frozen=True):
    """Encoded constructor arguments: `params` by formal name, and their names as they were given."""

    params: dict[str, Value]
    args: list[Value]
    kwargs: list[Value]


class Constructors:
    """Remembers how the modules that are alive were constructed.

    `off` is a context manager factory under which PyTorch tells no function mode what is called.
    """

    def __init__(self, off: Callable[[], Any]) -> None:
        self._off = off
        self._known: dict[int, tuple[Any, Constructed | str, bool]] = {}

    def hook(self) -> None:
        """Override `Module.__new__` and `Module.__init__` for the rest of the process."""
        module: Any = torch.nn.Module
        initialise = module.__init__
        known, note = self._known, self._note

        def make(cls: type, *args: Any, **kwargs: Any) -> Any:
            following: Any = super(module, cls).__new__  # type: ignore[misc]
            made = following(cls) if following is object.__new__ else following(cls, *args, **kwargs)
            if torch_api.public_name(cls) is not None and not torch.compiler.is_compiling():
                note(made, cls, args, kwargs)
            return made

        @functools.wraps(initialise)
        def follow(self: Any, *args: Any, **kwargs: Any) -> None:
            found = known.get(id(self))
            if found is not None:
                known[id(self)] = (*found[:2], True)
            initialise(self, *args, **kwargs)

        module.__new__ = staticmethod(make)
        module.__init__ = follow

    @contextmanager
    def hooked(self) -> Iterator[None]:
        """As `hook`, as long as this lasts."""
        module: Any = torch.nn.Module
        initialise = module.__init__
        self.hook()
        try:
            yield
        finally:
            module.__init__ = initialise
            module.__new__ = staticmethod(lambda cls, *_, **__: object.__new__(cls))  # once set it cannot be taken away

    def _note(self, made: Any, cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        what: Constructed | str
        try:
            with self._off():
                what = constructed(str(torch_api.public_name(cls)), args, kwargs)
        except NotRepresentable as category:
            what = str(category)
        except Exception as error:
            what = f"capture failed: {type(error).__name__}"
        name, known = id(made), self._known
        known[name] = (weakref.ref(made, lambda _: known.pop(name, None)), what, False)

    def of(self, module: Any) -> Constructed:
        """Return how a module was constructed. Raises NotRepresentable."""
        reference, what, initialised = self._known.get(id(module), (None, "", False))
        if reference is None or reference() is not module or not initialised:
            raise NotRepresentable("module whose constructor was not seen")
        if isinstance(what, str):
            raise NotRepresentable(what)
        return what


def constructed(operator: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Constructed:
    """Encode constructor arguments; tensors among them are values, not inputs. Raises NotRepresentable."""
    formals = torch_api.constructor_formals(operator)
    if len(args) > len(formals):
        raise NotRepresentable("more constructor arguments than the module has")
    given = dict(zip(formals, args, strict=False)) | kwargs
    if len(given) != len(args) + len(kwargs):
        raise NotRepresentable("constructor argument given twice")
    params = {name: _constant(item, 0) for name, item in given.items()}
    return Constructed(params, list(formals[: len(args)]), list(kwargs))


def _constant(item: Any, depth: int) -> Value:
    if depth > torch_values.MAX_NESTED:
        raise NotRepresentable("container nested too deep, or within itself")
    if isinstance(item, torch.Tensor):
        return torch_values.tensor(item)
    if type(item) in (list, tuple):
        return type(item)(_constant(each, depth + 1) for each in item)
    return torch_values.encode(item)


def module_key(operator: str, module: Any, made: Constructed, args: Any, kwargs: Any) -> Any:
    """Return what tells calls of modules apart; see calls.key."""
    return key(operator, args, kwargs), repr(made), module.training, _dtype(module)


def module_instance(operator: str, module: Any, made: Constructed, args: Any, kwargs: Any) -> Instance:
    """Return the instance of a call of a module. Raises NotRepresentable."""
    call = Call()
    given = call.arguments(torch_api.formals(operator), args, kwargs, FORWARD)
    params, init_kwargs = dict(made.params), list(made.kwargs)
    dtype = _dtype(module)
    if dtype is not None and "dtype" in torch_api.constructor_formals(operator):
        stated = params.get("dtype")
        if dtype != (stated.name if isinstance(stated, Named) else "float32"):  # `Conv2d(...).double()`
            params["dtype"] = Named("torch.dtype", dtype)
            if "dtype" not in (*init_kwargs, *made.args):
                init_kwargs.append("dtype")
    context: dict[str, Value] = {
        "kind": "module",
        "init": {"args": list(made.args), "kwargs": init_kwargs},
        "call": given,
        "training": bool(module.training),
    }
    if call.layout:
        context["layout"] = call.layout
    return Instance("torch", operator, params | call.params, tuple(call.inputs), (), context)


def _dtype(module: Any) -> str | None:
    """The dtype of a module's own weights, which may have been converted since they were made."""
    for weight in module._parameters.values():
        if type(weight) is torch.nn.Parameter:
            return str(weight.dtype).removeprefix("torch.")
    return None
