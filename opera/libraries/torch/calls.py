"""Calls of PyTorch's operators: finding an operator, its arguments by name, the call, and a call that was seen as an instance.

Nothing that looks at a call which is seen keeps a reference to a tensor or changes one. Whoever looks has switched function
modes off, so that looking at a tensor is no call of PyTorch that anybody sees.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

import torch

from opera.errors import CorpusError
from opera.libraries.calls import TRAINING, Dead, Unusable, check_called, divided, split, tensor_input, written
from opera.libraries.torch import api as torch_api
from opera.libraries.torch import codec as torch_values
from opera.libraries.torch.codec import MAX_NESTED, NotRepresentable
from opera.programs.program import Instance, Operand
from opera.programs.values import MAX_ELEMENTS, Named, Value

FORWARD = "forward."
"""Comes before the names of what a module is called with, where its constructor's stand beside them."""
LARGE = 1 << 22
"""Instances with more elements in one input are not called again."""
MAX_ITEMS = 4096
"""Containers with more items are not representable."""
TENSORS = (torch.Tensor, torch.nn.Parameter)
AXIS, OTHER = "dim", "other"
"""What `torch.max` calls its second argument: an axis, but for a tensor."""
_ATOMS = frozenset({int, bool, str, bytes, type(None), torch.dtype, torch.layout, torch.memory_format})
_LISTS = (list, tuple, torch.Size)
_UNNAMED = re.compile(r"(forward\.)?arg\d+")


def find(title: str, *, loosely: bool = False) -> str:
    """Return the operator that another tool calls so: by its name, or by the path to it. Raises Dead.

    `loosely`: the name may be written in any case.
    """
    name = _in_any_case().get(title.lower(), title) if loosely else title
    with suppress(CorpusError):
        torch_api.resolve(name)
        return name
    package, *path = title.split(".")
    found: Any = torch
    for step in path:
        found = getattr(found, step, None)
    if package != "torch" or found is None or inspect.ismodule(found):
        raise Dead("PyTorch has it no longer")
    public = torch_api.public_name(found)
    category = None if public is None else torch_api.denied(public)
    if public is None or category is not None:
        raise Dead(category or "it is no operator that opera captures")
    return public


@cache
def _in_any_case() -> dict[str, str]:
    names = torch_api.operators()
    return {name.lower(): name for name in reversed(names)} | {name: name for name in names}


def decode(value: Value, inputs: Mapping[str, Any] | None = None) -> Any:
    """Return the object of a value, as the codec does; a dtype may also be named as for every library. Raises CorpusError."""
    match value:
        case Named(kind="dtype", name=name):
            return torch_values.decode(Named("torch.dtype", name))
        case list() | tuple():
            return type(value)(decode(item, inputs) for item in value)
        case dict():
            return {key: decode(item, inputs) for key, item in value.items()}
    return torch_values.decode(value, inputs)


def arguments(instance: Instance, parameters: Sequence[str]) -> dict[str, Any]:
    """Return the arguments of an instance by name, tensors fresh. Raises Unusable, CorpusError.

    `parameters` are those of the operator in order: they name arguments that were given by position alone.
    """
    layouts: Any = instance.context.get("layout", {})
    inputs = {x.name: _live(x.value, layouts.get(x.name)) for x in instance.inputs}
    module = instance.context.get("kind") == "module"
    found: dict[str, Any] = {}
    for name in written(instance, "init", "call") if module else written(instance, "call"):
        if _UNNAMED.fullmatch(name):
            place = _by_place(instance, name, parameters)
            found[place] = inputs[name] if name in inputs else decode(instance.params[name], inputs)
        elif name not in inputs:
            found[name] = decode(instance.params[name], inputs)
        elif "." in name:
            found.setdefault(name.partition(".")[0], []).append(inputs[name])
        else:
            found[FORWARD + name if module else name] = inputs[name]
    if module:
        found[TRAINING] = bool(instance.context.get(TRAINING))
    return found


def _live(value: Value, strides: Any) -> Any:
    return torch_values.to_torch(tensor_input(value, LARGE), None if strides is None else tuple(strides))


def _by_place(instance: Instance, name: str, parameters: Sequence[str]) -> str:
    """Return the name of a positional argument that only operator schemas name."""
    place = int(name.removeprefix("arg")) if name.startswith("arg") else len(parameters)
    if place >= len(parameters) or parameters[place] in written(instance, "call"):
        raise Unusable("an argument without a name")
    return parameters[place]


def bind(
    operator: str,
    positional: Sequence[Value],
    named: Mapping[str, Value],
    called: Sequence[Value] | None,
    formals: Sequence[str],
) -> dict[str, Any]:
    """Return arguments by name.

    Args:
        positional, named: Values of what an operator is called with, or a module constructed.
        called: Of what a module is called with; None for what is no module.
        formals: Names of positional arguments of what is no module.

    Raises Unusable where they do not fit, CorpusError for what is no value of PyTorch's.
    """
    module = torch_api.kind(operator) == "module"
    check_called(module, called)
    own = _by_position(torch_api.constructor_formals(operator) if module else formals, positional)
    found = own | {name: decode(x) for name, x in named.items()}
    return found | {FORWARD + name: x for name, x in _by_position(torch_api.formals(operator), called or ()).items()}


def _by_position(formals: Sequence[str], items: Sequence[Value]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for place, item in enumerate(items):
        if place >= len(formals):
            raise Unusable("more positional arguments than there are parameters")
        if formals[place].startswith("*"):
            several = items[place:]
            found[formals[place][1:]] = decode(several[0] if len(several) == 1 else list(several))
            break
        found[formals[place]] = decode(item)
    return found


def call(
    operator: str,
    given: Mapping[str, Any],
    formals: Sequence[str],
    fit: Callable[[Any, Sequence[Any]], Any] | None = None,
) -> Any:
    """Call an operator, positionally as far as arguments are given without a gap. Raises what PyTorch raises.

    Args:
        operator: Its name.
        given: Arguments by name.
        formals: Names of positional arguments of what is no module.
        fit: Makes a module fit for the positional arguments that it is called with.
    """
    found, kind = torch_api.resolve(operator), torch_api.kind(operator)
    if kind != "module":
        args, kwargs = split(formals, given)
        return found.__get__(args[0]) if kind == "property" else found(*args, **kwargs)
    own, called = divided(given, FORWARD)
    training = own.pop(TRAINING, True)
    args, kwargs = split(torch_api.constructor_formals(operator), own)
    module = found(*args, **kwargs)
    args, kwargs = split(torch_api.formals(operator), called)
    module = module if fit is None else fit(module, args)
    return module.train(bool(training))(*args, **kwargs)


class Call:
    """Collects the arguments of one call under their formal names."""

    def __init__(self) -> None:
        self.params: dict[str, Value] = {}
        self.inputs: list[Operand] = []
        self.layout: dict[str, Value] = {}

    def arguments(
        self, formals: Sequence[str], args: Sequence[Any], kwargs: Mapping[str, Any], prefix: str = ""
    ) -> dict[str, Value]:
        """Add all arguments and return their names, as `context["call"]` states them.

        `prefix` precedes the names of those that are no tensors.
        """
        positional = [
            self._add(name, item, prefix) for name, item in zip(names(formals, args, kwargs), args, strict=True)
        ]
        return {"args": positional, "kwargs": [self._add(name, item, prefix) for name, item in kwargs.items()]}

    def _add(self, name: str, item: Any, prefix: str) -> str:
        if isinstance(item, torch.Tensor):
            self._tensor(name, item)
            return name
        self.params[prefix + name] = self._value(name, item, 0)
        return prefix + name

    def _tensor(self, name: str, item: Any) -> Named:
        self.inputs.append(Operand(name, torch_values.tensor(item)))
        shape, strides = tuple(item.shape), item.stride()
        if not item.is_contiguous() and not torch_values.overlapping(shape, strides):
            if torch_values.span(shape, strides) > MAX_ELEMENTS:
                raise NotRepresentable("layout that needs too much memory")
            self.layout[name] = list(strides)
        return Named("torch.input", name)

    def _value(self, name: str, item: Any, depth: int) -> Value:
        """Tensors within containers become inputs, and their places refer to them."""
        if depth > MAX_NESTED:
            raise NotRepresentable("container nested too deep, or within itself")
        if isinstance(item, torch.Tensor):
            return self._tensor(name, item)
        if type(item) is list:
            return [self._value(f"{name}.{i}", each, depth + 1) for i, each in enumerate(item)]
        if type(item) is tuple:
            return tuple(self._value(f"{name}.{i}", each, depth + 1) for i, each in enumerate(item))
        if type(item) is dict:
            return {key: self._value(f"{name}.{key}", each, depth + 1) for key, each in item.items()}
        return torch_values.encode(item)


def instance(operator: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Instance:
    """Return the instance of a call of a function, method or property. Raises NotRepresentable."""
    call = Call()
    if operator in torch_api.instrumentation().operators.variadic:
        args = _joined(operator, args)
    context: dict[str, Value] = {"kind": torch_api.kind(operator)}
    context["call"] = call.arguments(torch_api.formals(operator), args, kwargs)
    if call.layout:
        context["layout"] = call.layout
    return Instance("torch", operator, call.params, tuple(call.inputs), (), context)


def names(formals: Sequence[str], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of positional arguments: formal names, else `argN`."""
    for i, item in enumerate(args):
        last = formals[-1] if formals else ""
        if last.startswith("*") and i >= len(formals) - 1:
            yield f"{last[1:]}.{i - len(formals) + 1}" if isinstance(item, torch.Tensor) else f"arg{i}"
        elif i < len(formals) and formals[i] not in kwargs:
            yield OTHER if formals[i] == AXIS and isinstance(item, torch.Tensor) else formals[i]
        else:
            yield f"arg{i}"


def _joined(operator: str, args: Sequence[Any]) -> Sequence[Any]:
    """`x.permute(0, 2, 1)` is `x.permute((0, 2, 1))`."""
    first = 1 if operator.startswith("torch.Tensor.") else 0
    if len(args) > first and all(type(item) is int for item in args[first:]):
        return (*args[:first], tuple(args[first:]))
    return args


def key(operator: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Hashable:
    """Return what tells calls apart: operator, arguments, and dtype, shape and strides of tensors.

    Raises NotRepresentable for some of what `instance` refuses, at little cost.
    """
    sketches = tuple([_sketch(item, 0) for item in args])
    return (
        (operator, sketches, *[(name, _sketch(item, 0)) for name, item in kwargs.items()])
        if kwargs
        else (operator, sketches)
    )


def _sketches(items: Sequence[Any], depth: int) -> Hashable:
    if depth > MAX_NESTED:
        raise NotRepresentable("container nested too deep, or within itself")
    if len(items) > MAX_ITEMS:
        raise NotRepresentable("container of too many items")
    return tuple([_sketch(item, depth) for item in items])


def _sketch(item: Any, depth: int) -> Hashable:
    kind = type(item)
    if kind in TENSORS:
        try:
            return item.dtype, item.shape, item.stride()
        except RuntimeError:  # sparse, nested and opaque tensors have no strides
            raise NotRepresentable("tensor that is not dense") from None
    if kind in _ATOMS:
        return kind, item
    if kind is float:
        return kind, item if item == item and item else str(item)  # tells -0.0 from 0.0, and takes NaN for itself
    if kind in _LISTS:
        return kind, _sketches(item, depth + 1)
    if kind is dict:
        return kind, _sketches(list(item), depth + 1), _sketches(list(item.values()), depth + 1)
    if isinstance(item, torch.Tensor):
        raise NotRepresentable("tensor subclass")
    return repr(torch_values.encode(item))


def returned_tensor(result: Any, depth: int = 0) -> bool:
    """Return whether there is a tensor in what an operator returned."""
    if isinstance(result, torch.Tensor):
        return True
    if depth < 4 and isinstance(result, list | tuple):
        return any(returned_tensor(item, depth + 1) for item in result)
    return False
