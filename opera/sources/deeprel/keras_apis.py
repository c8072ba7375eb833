"""Keras: its layers and functions as relations are inferred from, and calls of them by argument name."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from opera.libraries.calls import TRAINING
from opera.libraries.keras import api as keras_api
from opera.libraries.keras import calls
from opera.libraries.keras import codec as keras_values
from opera.libraries.keras import source as keras_source
from opera.libraries.keras.calls import arguments, bind, decode, find
from opera.libraries.keras.hooks import watching
from opera.libraries.keras.source import CALL
from opera.programs.program import Instance
from opera.programs.values import NO_DEFAULT, Value
from opera.sources.deeprel import apis as related
from opera.sources.deeprel.apis import Api, Parameter

__all__ = [
    "FREE", "agree", "apis", "arguments", "bind", "call", "decode", "encode", "find", "prepare", "telling", "types", "watching",
]  # fmt: skip

FREE = (TRAINING, "autocast", "name", "activity_regularizer")
COMMON = {"trainable": True, "dtype": "float32"}
"""What every layer's configuration says beside its own."""
_LINK = re.compile(r"(?:alias (?:for|of)|see|equivalent to|same as|like)\s+(?:the\s+)?`?([\w.]+)", re.IGNORECASE)


def prepare() -> None:
    """Say nothing."""
    from opera.libraries.keras import backend  # noqa: F401 - TensorFlow is to say nothing either

    warnings.simplefilter("ignore")


def apis() -> list[Api]:
    """Return all operators."""
    return [_api(operator) for operator in sorted(keras_api.objects())]


def _api(operator: str) -> Api:
    text = inspect.getdoc(keras_api.resolve(operator)) or ""
    places = ("", "keras.layers.", "keras.ops.", "keras.activations.")
    links = related.linked(operator, text, _LINK, places, keras_api.objects())
    return Api(operator, parameters(operator), text, links)


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


def types(instance: Instance) -> dict[str, str]:
    """Return parameter → type of what an instance was called with."""
    return related.types(instance, CALL if keras_api.kind(instance.operator) == "layer" else "", kind_of)


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


def call(operator: str, arguments: Mapping[str, Any]) -> list[Any]:
    """Call an operator, seeded, and return the tensors that it returns, as arrays."""
    import keras

    calls.begin_anew()
    formals = () if keras_api.kind(operator) == "layer" else keras_api.formals(keras_api.resolve(operator))
    result = calls.call(operator, arguments, formals, lambda layer, own: layer.from_config(own))
    found = [x for x in keras.tree.flatten(result) if hasattr(x, "dtype") and hasattr(x, "shape")]
    return [np.asarray(keras.ops.convert_to_numpy(x)) for x in found]


def agree(one: list[Any], other: list[Any]) -> bool:
    """Whether outputs are the same: number, dtypes, shapes, and values within the oracle's tolerance of the dtype."""
    return related.agree(one, other, np.array_equal, _close)


def _close(one: Any, other: Any, rtol: float, atol: float) -> bool:
    wide = "complex128" if one.dtype.kind == "c" else "float64"
    return bool(np.allclose(one.astype(wide), other.astype(wide), rtol=rtol, atol=atol, equal_nan=True))


def telling(outputs: list[Any], arguments: Mapping[str, Any]) -> bool:
    """Whether there are elements other than zero and NaN, in another tensor than an argument."""
    import keras

    given = [np.asarray(x) for x in keras.tree.flatten(list(arguments.values())) if hasattr(x, "shape")]
    new = [x for x in outputs if x.size and not any(x.dtype == y.dtype and np.array_equal(x, y) for y in given)]
    return any(x.dtype.kind in "OSU" or bool(np.any(np.nan_to_num(x.astype("complex128")))) for x in new)
