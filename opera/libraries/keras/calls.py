"""Calls of Keras's operators: finding an operator, its arguments by name, the call, and a call that was seen as an instance.

Of a call that is seen, arguments are told apart, and symbolic inputs made concrete. keras is imported inside functions, for
capture has the say which backend it runs on.
"""

from __future__ import annotations

import importlib
import inspect
import random
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import msgspec
import numpy as np

from opera.capture.recorder import LeftOut
from opera.libraries.calls import TRAINING, Dead, Unusable, check_called, divided, split, tensor_input, written
from opera.libraries.keras import api as keras_api
from opera.libraries.keras import codec as keras_values
from opera.libraries.keras.codec import NotRepresentable
from opera.libraries.keras.source import CALL, CONSTRUCTOR, INPUT
from opera.programs import values
from opera.programs.program import Instance, Operand
from opera.programs.values import Named, RandomTensor, Tensor, Value

LARGE = 1 << 20
"""Instances with more elements in one input are not called again."""
BATCH, FREE = 2, 4
"""Sizes of a free first dimension, and of any other that no input says the size of."""
SMALL = 4
"""Whole numbers that are made up lie below this."""
_UNNAMED = re.compile(r"(call\.)?arg\d+")


def find(title: str, *, loosely: bool = False) -> str:
    """Return the operator that another tool calls so, by the path that TensorFlow or Keras has to it. Raises Dead.

    `loosely`: the name may be written in any case, and be that of an earlier Keras.
    """
    import keras

    name = title.removeprefix("tf.")
    if not name.startswith("keras."):
        raise Dead("it is TensorFlow's own, not Keras's")
    if loosely:
        for candidate in (name, name.replace("keras.backend.", "keras.ops."), name.replace(".preprocessing.", ".")):
            known = _in_any_case().get(candidate.replace(".experimental", "").lower())
            if known is not None:
                return known
    found: Any = keras
    for step in name.split(".")[1:]:
        found = getattr(found, step, None)
    if found is None or inspect.ismodule(found):
        raise Dead("Keras has it no longer")
    public = keras_api.public_name(getattr(found, "__wrapped__", found))
    if public is None:
        raise Dead("it is no operator that opera captures")
    return public


@cache
def _in_any_case() -> dict[str, str]:
    import keras

    names = {name.lower(): name for name in keras_api.objects()}
    for alias, item in vars(keras.layers).items():  # MaxPool2D is MaxPooling2D
        name = keras_api.public_name(item) if isinstance(item, type) else None
        if name is not None:
            names.setdefault(f"keras.layers.{alias}".lower(), name)
    return names


def decode(value: Value, inputs: Mapping[str, Any] | None = None) -> Any:
    """Return the live argument of a value; `Named(INPUT, name)` stands for `inputs[name]`. Raises CorpusError."""
    import keras

    match value:
        case Tensor() | RandomTensor():
            dtype = None if value.dtype == "string" else value.dtype
            return keras.ops.convert_to_tensor(keras_values.to_array(value), dtype=dtype)
        case Named(kind="dtype", name=name):
            return name
        case Named(kind=kind, name=name) if kind == INPUT and inputs is not None and name in inputs:
            return inputs[name]
        case list() | tuple():
            return type(value)(decode(item, inputs) for item in value)
        case dict() if "class_name" not in value:
            return {key: decode(item, inputs) for key, item in value.items()}
    return keras_values.decode(value)


def arguments(instance: Instance) -> dict[str, Any]:
    """Return the arguments of an instance by name, tensors fresh. Raises Unusable, CorpusError."""
    inputs = {x.name: decode(tensor_input(x.value, LARGE)) for x in instance.inputs}
    layer = keras_api.kind(instance.operator) == "layer"
    found: dict[str, Any] = {}
    for name in written(instance, "call"):
        if name in inputs:
            found[CALL + name if layer else name] = inputs[name]
        elif name in instance.params:
            found[name] = decode(instance.params[name], inputs)
        else:
            raise Unusable("an instance that does not say how it was called")
    if any(_UNNAMED.fullmatch(name) for name in found):
        raise Unusable("an argument without a name")
    if layer:
        own, _ = divided(instance.params, CALL)
        found |= {name: keras_values.decode(x) for name, x in own.items()}
        found[TRAINING] = bool(instance.context.get(TRAINING))
        if instance.context.get("config") == CONSTRUCTOR:
            raise Unusable("a layer without a configuration")
    return found


def bind(
    operator: str, positional: Sequence[Value], named: Mapping[str, Value], called: Sequence[Value] | None
) -> dict[str, Any]:
    """Return arguments by name.

    Args:
        positional, named: Values of what a function is called with, or a layer constructed.
        called: Of what a layer is called with; None for a function.

    Raises Unusable where they do not fit, CorpusError for what is no value of Keras's.
    """
    layer, found = keras_api.kind(operator) == "layer", keras_api.resolve(operator)
    check_called(layer, called)
    formals = keras_api.formals(found.__init__ if layer else found)
    if len(positional) > len(formals):
        raise Unusable("more positional arguments than there are parameters")
    given = dict(zip(formals, positional, strict=False)) | {k: x for k, x in named.items() if k != "name"}
    if layer:
        given |= {CALL + k: x for k, x in zip(keras_api.formals(found.call), called or (), strict=False)}
    for item in _leaves(list(given.values())):
        if isinstance(item, Tensor):
            tensor_input(item, LARGE)
    return {name: decode(x) for name, x in given.items()}


def call(
    operator: str, given: Mapping[str, Any], formals: Sequence[str], make: Callable[[Any, dict[str, Any]], Any]
) -> Any:
    """Call an operator. Raises what Keras raises.

    Args:
        operator: Its name.
        given: Arguments by name.
        formals: Names of a function's arguments that are given by position, as far as there is no gap.
        make: Makes a layer of its class and the arguments of its own.
    """
    if keras_api.kind(operator) == "function":
        namespace, _, name = operator.rpartition(".")
        function = getattr(importlib.import_module(namespace), name)  # as callers find it: it may be watched
        args, kwargs = split(formals, given)
        return function(*args, **kwargs)
    found = keras_api.resolve(operator)
    own, called = divided(given, CALL)
    training = own.pop(TRAINING, False)
    known = keras_api.formals(found.call)
    args, kwargs = split(known[:1], called)  # Keras itself passes masks on by keyword
    if TRAINING in known:
        kwargs[TRAINING] = training
    return make(found, own)(*args, **kwargs)


def begin_anew() -> None:
    """Leave Keras as `keras.backend.clear_session` and `keras.utils.set_random_seed(0)` do, but keep TensorFlow's kernels.

    Both drop them, and then every eager operation is prepared once more when it is called next: for those who call many
    operators in one process. Keras draws from Python's generator where no seed is given, never from TensorFlow's.
    """
    from keras.src.backend.common import global_state

    random.seed(0)
    np.random.seed(0)
    global_state.GLOBAL_STATE_TRACKER = threading.local()
    global_state.GLOBAL_SETTINGS_TRACKER = threading.local()


@contextmanager
def aside() -> Iterator[None]:
    """Leave what Keras draws from as it was: a model that is built begins anew, and those that were built before, with it."""
    from keras.src.backend.common import global_state

    numbers, python = np.random.get_state(), random.getstate()
    tracker, settings = global_state.GLOBAL_STATE_TRACKER, global_state.GLOBAL_SETTINGS_TRACKER
    try:
        yield
    finally:
        np.random.set_state(numbers)
        random.setstate(python)
        global_state.GLOBAL_STATE_TRACKER, global_state.GLOBAL_SETTINGS_TRACKER = tracker, settings


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
    if getattr(item, "sparse", False) or getattr(item, "ragged", False) or not_dense(item):
        raise LeftOut("sparse or ragged tensor")
    return _symbolic(item) if symbolic else _eager(item)


def not_dense(item: Any) -> bool:
    """Whether a tensor of the backend holds but some of its elements, or rows of many lengths."""
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
