"""One call of a PyTorch operator as an operator instance, and the key by which equal calls are passed over.

Nothing here keeps a reference to a tensor or changes one. Whoever calls this has switched function modes off, so that
looking at a tensor is no call of PyTorch that anybody sees.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import torch

from opera.libraries.torch import api as torch_api
from opera.libraries.torch import codec as torch_values
from opera.libraries.torch.codec import MAX_NESTED, NotRepresentable
from opera.programs.program import Instance, Operand
from opera.programs.values import MAX_ELEMENTS, Named, Value

MAX_ITEMS = 4096
"""Containers with more items are not representable."""
TENSORS = (torch.Tensor, torch.nn.Parameter)
_ATOMS = frozenset({int, bool, str, bytes, type(None), torch.dtype, torch.layout, torch.memory_format})
_LISTS = (list, tuple, torch.Size)


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
            yield formals[i]
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
