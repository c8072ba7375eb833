"""Keras: its layers and functions as relations are inferred from, and calls of them by argument name."""

from __future__ import annotations

import importlib
import inspect
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any

import numpy as np

from opera.capture.recorder import Recorder
from opera.libraries.keras import api as keras_api
from opera.libraries.keras import codec as keras_values
from opera.libraries.keras import source as keras_source
from opera.libraries.keras.source import CALL, CONSTRUCTOR, INPUT
from opera.programs.program import Instance
from opera.programs.values import NO_DEFAULT, Named, RandomTensor, Tensor, Value
from opera.sources.deeprel.apis import Api, Parameter, Unusable

TRAINING = "training"
FREE = (TRAINING, "autocast", "name", "activity_regularizer")
COMMON = {"trainable": True, "dtype": "float32"}
"""What every layer's configuration says beside its own."""
MAX_ELEMENTS = 1 << 20
"""Invocations with more elements in one input are not tried."""
_LINK = re.compile(r"(?:alias (?:for|of)|see|equivalent to|same as|like)\s+(?:the\s+)?`?([\w.]+)", re.IGNORECASE)


def prepare() -> None:
    """Say nothing."""
    warnings.simplefilter("ignore")


def apis() -> list[Api]:
    """Return all operators."""
    return [_api(operator) for operator in sorted(keras_api.objects())]


def _api(operator: str) -> Api:
    text = inspect.getdoc(keras_api.resolve(operator)) or ""
    return Api(operator, parameters(operator), text, frozenset(_links(operator, text)))


def _links(operator: str, text: str) -> Iterator[str]:
    for name in _LINK.findall(text):
        name = name.rstrip(".")
        for full in (name, f"keras.layers.{name}", f"keras.ops.{name}", f"keras.activations.{name}"):
            if full in keras_api.objects() and full != operator:
                yield full


@cache
def parameters(operator: str) -> tuple[Parameter, ...]:
    """Return the parameters by signature; of a layer, those of its call after the constructor's."""
    found = keras_api.resolve(operator)
    if keras_api.kind(operator) == "function":
        return tuple(_parameter(x, "", x.name in _tensor_names()) for x in keras_api.parameters(found).values())
    own = [_parameter(x, "", False) for x in keras_api.parameters(found.__init__).values() if x.name not in FREE]
    stated = {x.name for x in own}
    own += [Parameter(name, default=x) for name, x in COMMON.items() if name not in stated]
    own = [x if x.name != "dtype" else Parameter("dtype", default="float32") for x in own]
    called = [x for x in keras_api.parameters(found.call).values() if x.name != TRAINING]
    mode = Parameter(TRAINING, frozenset({"bool"}))
    return (*own, *(_parameter(x, CALL, place == 0) for place, x in enumerate(called)), mode)


def _tensor_names() -> list[str]:
    return keras_api.instrumentation().tensors["formals"]


def _parameter(stated: inspect.Parameter, prefix: str, tensor: bool) -> Parameter:
    default, required = NO_DEFAULT, stated.default is inspect.Parameter.empty
    if not required:
        try:
            default = keras_source.default(stated.name, stated.default)
        except (keras_values.NotRepresentable, ValueError, TypeError):
            default = NO_DEFAULT
    types = frozenset({"tensor"}) if tensor else frozenset(filter(None, [kind_of(default)]))
    return Parameter(prefix + stated.name, types, default, required, bool(prefix))


def arguments(instance: Instance) -> dict[str, Any]:
    """Return the arguments of an instance by parameter name, tensors fresh. Raises Unusable."""
    inputs = {x.name: _tensor(x.value) for x in instance.inputs}
    layer = keras_api.kind(instance.operator) == "layer"
    found: dict[str, Any] = {}
    try:
        how: Any = instance.context["call"]
        called = [*how["args"], *how["kwargs"]]
        for name in called:
            key = CALL + name if layer and name in inputs else name
            found[key] = inputs[name] if name in inputs else _filled(instance.params[name], inputs)
    except (KeyError, TypeError):
        raise Unusable("an instance that does not say how it was called") from None
    if any(re.fullmatch(r"(call\.)?arg\d+", name) for name in found):
        raise Unusable("an argument without a name")
    if layer:
        own = {name: x for name, x in instance.params.items() if not name.startswith(CALL)}
        found |= {name: keras_values.decode(x) for name, x in own.items()}
        found[TRAINING] = bool(instance.context.get(TRAINING))
        if instance.context.get("config") == CONSTRUCTOR:
            raise Unusable("a layer without a configuration")
    return found


def _filled(value: Value, inputs: Mapping[str, Any]) -> Any:
    match value:
        case Named(kind=kind, name=name) if kind == INPUT:
            return inputs[name]
        case list() | tuple():
            return type(value)(_filled(x, inputs) for x in value)
        case dict() if "class_name" not in value:
            return {key: _filled(x, inputs) for key, x in value.items()}
    return keras_values.decode(value)


def _tensor(value: Value) -> Any:
    import keras

    if not isinstance(value, Tensor | RandomTensor):
        raise Unusable("an input that is no tensor")
    if int(np.prod([float(x) for x in value.shape])) > MAX_ELEMENTS:
        raise Unusable("large inputs")
    return keras.ops.convert_to_tensor(keras_values.to_array(value), dtype=value.dtype)


def types(instance: Instance) -> dict[str, str]:
    """Return parameter → type of what an instance was called with."""
    prefix = CALL if keras_api.kind(instance.operator) == "layer" else ""
    found = {}
    for operand in instance.inputs:
        base, _, rest = operand.name.partition(".")
        found[prefix + base] = "tensors" if rest else "tensor"
    for name, value in instance.params.items():
        found[name] = found.get(name) or kind_of(value)
    return {name: kind for name, kind in found.items() if kind and not re.fullmatch(r"(call\.)?arg\d+", name)}


def kind_of(value: Value) -> str:
    """Return the type of a value, empty for None and what has none."""
    match value:
        case bool() | int() | float() | str():
            return type(value).__name__
        case dict() if "class_name" in value:
            return "object"
        case list() | tuple() if value:
            return "ints" if all(type(x) is int for x in value) else "list"
    return ""


def encode(item: Any) -> Value:
    """Return the value of an argument that is no tensor, NO_DEFAULT for what has none."""
    try:
        return keras_values.encode(item)
    except keras_values.NotRepresentable:
        return NO_DEFAULT


def decode(value: Value) -> Any:
    """Inverse of `encode`."""
    return keras_values.decode(value)


def find(title: str) -> str:
    """Return the operator that DeepREL calls so, by tf.keras's name. Raises Unusable."""
    import keras

    found: Any = keras
    steps = title.removeprefix("tf.").split(".")
    for step in steps[1:]:
        found = getattr(found, step, None)
    if found is None or steps[0] != "keras" or inspect.ismodule(found):
        raise Unusable("Keras has it no longer")
    name = keras_api.public_name(getattr(found, "__wrapped__", found))
    if name is None:
        raise Unusable("it is no operator that opera captures")
    return name


def bind(
    operator: str, positional: Sequence[Value], named: Mapping[str, Value], called: Sequence[Value] | None
) -> dict[str, Any]:
    """Return arguments by parameter name. Raises Unusable where they do not fit."""
    layer, found = keras_api.kind(operator) == "layer", keras_api.resolve(operator)
    if layer != (called is not None):
        raise Unusable("a class without what its object is called with" if layer else "a function that is called twice")
    formals = keras_api.formals(found.__init__ if layer else found)
    if len(positional) > len(formals):
        raise Unusable("more positional arguments than there are parameters")
    given = dict(zip(formals, positional, strict=False)) | {k: x for k, x in named.items() if k != "name"}
    if layer:
        given |= {CALL + k: x for k, x in zip(keras_api.formals(found.call), called or (), strict=False)}
    return {name: _live(x) for name, x in given.items()}


def _live(value: Value) -> Any:
    match value:
        case Tensor():
            return _tensor(value)
        case Named(kind="dtype", name=name):
            return name
        case list():
            return [_live(x) for x in value]
    return keras_values.decode(value)


def call(operator: str, arguments: Mapping[str, Any]) -> list[Any]:
    """Call an operator, seeded, and return the tensors that it returns, as arrays."""
    from opera.libraries.keras.backend import begin_anew, keras

    begin_anew()
    given = dict(arguments)
    if keras_api.kind(operator) == "function":
        namespace, _, name = operator.rpartition(".")
        function = getattr(importlib.import_module(namespace), name)  # as callers find it: it may be watched
        args, kwargs = split(keras_api.formals(keras_api.resolve(operator)), given)
        result = function(*args, **kwargs)
    else:
        result = _call_layer(keras_api.resolve(operator), given)
    found = [x for x in keras.tree.flatten(result) if hasattr(x, "dtype") and hasattr(x, "shape")]
    return [np.asarray(keras.ops.convert_to_numpy(x)) for x in found]


def _call_layer(found: Any, given: dict[str, Any]) -> Any:
    training = given.pop(TRAINING, False)
    called = {name.removeprefix(CALL): x for name, x in given.items() if name.startswith(CALL)}
    own = {name: x for name, x in given.items() if not name.startswith(CALL)}
    formals = keras_api.formals(found.call)
    args, kwargs = split(formals[:1], called)  # Keras itself passes masks on by keyword
    if TRAINING in formals:
        kwargs[TRAINING] = training
    return found.from_config(own)(*args, **kwargs)


def split(formals: Sequence[str], given: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return positional and keyword arguments of a call."""
    args: list[Any] = []
    rest = dict(given)
    for name in formals:
        if name not in rest:
            break
        args.append(rest.pop(name))
    return args, rest


def agree(one: list[Any], other: list[Any]) -> bool:
    """Whether outputs are the same: number, dtypes, shapes, and values within the oracle's tolerance of the dtype."""
    return bool(one) and len(one) == len(other) and all(map(_same, one, other))


def _same(one: Any, other: Any) -> bool:
    from opera.oracle import comparison as oracle

    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if np.array_equal(one, other):
        return True
    rtol, atol = oracle.tolerance(one.dtype.name, None, None)
    if not rtol:
        return False
    wide = "complex128" if one.dtype.kind == "c" else "float64"
    return bool(np.allclose(one.astype(wide), other.astype(wide), rtol=rtol, atol=atol, equal_nan=True))


def telling(outputs: list[Any], arguments: Mapping[str, Any]) -> bool:
    """Whether there are elements other than zero and NaN, in another tensor than an argument."""
    import keras

    given = [np.asarray(x) for x in keras.tree.flatten(list(arguments.values())) if hasattr(x, "shape")]
    new = [x for x in outputs if x.size and not any(x.dtype == y.dtype and np.array_equal(x, y) for y in given)]
    return any(x.dtype.kind in "OSU" or bool(np.any(np.nan_to_num(x.astype("complex128")))) for x in new)


@contextmanager
def watching(recorder: Recorder) -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """Calls are seen wherever they are made, but where the recorder looks away."""
    yield nullcontext
