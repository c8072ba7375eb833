"""A call of a Keras layer or function as an instance: its arguments told apart, its symbolic inputs made concrete."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
import numpy as np

from opera.capture.recorder import LeftOut
from opera.libraries.keras import api as keras_api
from opera.libraries.keras import codec as keras_values
from opera.libraries.keras.codec import NotRepresentable
from opera.libraries.keras.source import INPUT
from opera.programs import values
from opera.programs.program import Instance, Operand
from opera.programs.values import Named, Value

BATCH, FREE = 2, 4
"""Sizes of a free first dimension, and of any other that no input says the size of."""
SMALL = 4
"""Whole numbers that are made up lie below this."""


class Spec(msgspec.Struct, frozen=True):
    """What is known of a tensor argument: `data` is None for a symbolic one, whose dimensions may be None."""

    dtype: str
    shape: tuple[int | None, ...]
    data: np.ndarray[Any, Any] | None


class Call(msgspec.Struct):
    """Arguments of one call: tensors under their names, all others as values, and how they were passed."""

    tensors: dict[str, Spec] = {}
    params: dict[str, Value] = {}
    args: list[str] = []
    kwargs: list[str] = []

    def key(self, *more: object) -> tuple[object, ...]:
        """What makes two calls the same to capture: values of tensors do not."""
        form = values.dumps({"params": self.params, "args": self.args, "kwargs": self.kwargs})
        return (form, *((name, spec.dtype, spec.shape) for name, spec in self.tensors.items()), *more)

    def rough_key(self, *more: object) -> tuple[object, ...]:
        """Likewise, sizes of dimensions disregarded."""
        form = values.dumps({"params": self.params, "args": self.args, "kwargs": self.kwargs})
        return (form, *((name, spec.dtype, len(spec.shape)) for name, spec in self.tensors.items()), *more)

    @property
    def symbolic(self) -> list[str]:
        return [name for name, spec in self.tensors.items() if spec.data is None]


def describe(
    call: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], prefix: str, floatx: str = ""
) -> Call:
    """Tell the arguments of a call apart.

    Args:
        call: The function, or the `call` method of a layer: its signature names positional arguments.
        prefix: Comes before the names of arguments that are no tensors.
        floatx: dtype that float64 arrays are taken as (a layer casts them), where it is given.
    """
    found = Call()
    for name, item, positional in _named(call, args, kwargs):
        value = _argument(found, name, item, floatx)
        plain = not isinstance(value, Named) or value.kind != INPUT
        if plain:
            found.params[prefix + name] = value
        (found.args if positional else found.kwargs).append(prefix + name if plain else name)
    return found


def _named(
    call: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Iterator[tuple[str, Any, bool]]:
    signature = keras_api.signature(getattr(call, "__func__", call))
    parameters = list(signature.parameters.values()) if signature else []
    parameters = parameters[1:] if inspect.ismethod(call) else parameters
    usual = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    formals = [x.name for x in parameters if x.kind in usual]
    for place, item in enumerate(args):
        yield formals[place] if place < len(formals) else f"arg{place}", item, True
    for name, item in kwargs.items():
        yield name, item, False


def _argument(found: Call, name: str, item: Any, floatx: str, depth: int = 0) -> Value:
    if depth > keras_values.MAX_NESTED:
        raise LeftOut("container nested too deeply")
    spec = tensor(item, floatx)
    if spec is not None:
        found.tensors[name] = spec
        return Named(INPUT, name)
    if isinstance(item, list | tuple | dict) and any(tensor(x, floatx) is not None for x in _leaves(item)):
        keyed = item.items() if isinstance(item, dict) else enumerate(item)
        made = {key: _argument(found, f"{name}.{key}", x, floatx, depth + 1) for key, x in keyed}
        if isinstance(item, dict):
            return made
        return list(made.values()) if isinstance(item, list) else tuple(made.values())
    try:
        return keras_values.encode(item)
    except NotRepresentable as category:
        raise LeftOut(str(category)) from None


def _leaves(item: Any) -> Iterator[Any]:
    match item:
        case list() | tuple():
            for x in item:
                yield from _leaves(x)
        case dict():
            for x in item.values():
                yield from _leaves(x)
        case _:
            yield item


def tensor(item: Any, floatx: str = "") -> Spec | None:
    """Return what is known of a tensor argument, None for what is none. Raises LeftOut for what is not dense."""
    from keras.src import backend

    if isinstance(item, np.ndarray):
        if item.dtype.kind == "O" and not all(isinstance(x, str | bytes) for x in item.ravel()):
            raise LeftOut("array of objects")
        data = item.astype(floatx) if floatx and item.dtype == np.float64 else item
        return Spec("string" if data.dtype.kind in "OSU" else data.dtype.name, data.shape, data)
    if isinstance(item, backend.Variable):
        item = item.value
    symbolic = isinstance(item, backend.KerasTensor)
    if not symbolic and not backend.is_tensor(item):
        return None
    if getattr(item, "sparse", False) or getattr(item, "ragged", False) or _not_dense(item):
        raise LeftOut("sparse or ragged tensor")
    return _symbolic(item) if symbolic else _eager(item)


def _not_dense(item: Any) -> bool:
    return type(item).__name__ in ("IndexedSlices", "RaggedTensor", "SparseTensor", "BCOO")


def _symbolic(item: Any) -> Spec:
    from keras.src import backend

    rank = getattr(item.shape, "rank", 0)
    if item.shape is None or rank is None:
        raise LeftOut("input of unknown rank")
    return Spec(
        str(backend.standardize_dtype(item.dtype)), tuple(None if x is None else int(x) for x in item.shape), None
    )


def _eager(item: Any) -> Spec:
    """Tensors inside a traced graph have no value: they are symbolic."""
    from keras.src import backend

    try:
        data = np.asarray(backend.convert_to_numpy(item))
    except (NotImplementedError, AttributeError, TypeError, RuntimeError, ValueError):
        return _symbolic(item)
    return Spec("string" if data.dtype.kind in "OSU" else data.dtype.name, data.shape, data)


def instance(operator: str, found: Call, params: dict[str, Value], context: dict[str, Value]) -> Instance:
    """Make the instance of a call; `params` come before the call's own. Raises LeftOut."""
    below = keras_api.instrumentation().made_up.get(operator, "")
    limit = {**params, **found.params}.get(below)
    small = limit if isinstance(limit, int) and limit > 0 else SMALL
    operands = []
    for place, (name, spec) in enumerate(found.tensors.items()):
        try:
            if spec.data is None:
                sizes = concrete(spec.shape, [x.shape for x in found.tensors.values()])
                value = keras_values.made_up(spec.dtype, sizes, place, small)
            else:
                value = keras_values.array(spec.data)
        except NotRepresentable as category:
            raise LeftOut(str(category)) from None
        operands.append(Operand(name, value))
    called: dict[str, Value] = {"call": {"args": list(found.args), "kwargs": list(found.kwargs)}}
    if found.symbolic:
        called["symbolic"] = found.symbolic
    return Instance("keras", operator, {**params, **found.params}, tuple(operands), (), {**context, **called})


def concrete(shape: tuple[int | None, ...], others: list[tuple[int | None, ...]]) -> tuple[int, ...]:
    """Give free dimensions a size: that of the same dimension, counted from the last, of another input if one says it."""
    sizes = []
    for place, size in enumerate(shape):
        back = len(shape) - place
        known = [x[-back] for x in others if len(x) >= back]
        stated = [x for x in known if x is not None and x > 1]
        sizes.append(size if size is not None else stated[0] if stated else BATCH if place == 0 else FREE)
    return tuple(sizes)
