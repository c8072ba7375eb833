"""Keras as a target of constraints: finding its operators, and calling them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any

import msgspec

from opera.capture.recorder import Recorder
from opera.errors import CorpusError
from opera.libraries.keras import api as keras_api
from opera.libraries.keras import codec as keras_values
from opera.programs.values import Named, RandomTensor, Tensor, Value
from opera.sources.docter.constraints import Api
from opera.sources.docter.keras_documents import CALL, api, widened
from opera.sources.docter.targets import Bound, Dead, adapted

MOVED = ("keras.ops.", "keras.activations.", "keras.ops.image.")
"""Where functions of keras.backend, and of modules that Keras no longer has, are today if they are anywhere."""


def prepared() -> None:
    """Import Keras as its capture does, in silence."""
    import os

    from opera.libraries.keras.hooks import SETTINGS

    for name, text in SETTINGS.items():
        os.environ.setdefault(name, text)


def builtin() -> Iterator[Api]:
    """Yield the constraints of all operators; see opera.sources.docter.targets.Target."""
    prepared()
    for operator in keras_api.objects():
        yield api(operator)


def bind(stated: Api) -> Bound:
    """Find an API of Keras, by the name that TensorFlow or Keras gives it."""
    operator = _operator(stated.title)
    known = api(operator)
    formals = (*known.required, *known.optional)
    fitted, remarks, names = adapted(stated, formals, known.required, known)
    fitted = widened(fitted)
    optional = tuple(name for name in fitted.optional if fitted.parameters[name].constrained)
    return Bound(operator, msgspec.structs.replace(fitted, optional=optional), tuple(remarks), names)


def _operator(title: str) -> str:
    """Return the operator that a title names, in whatever case it is written. Raises Dead."""
    name = title.removeprefix("tf.")
    if not name.startswith("keras."):
        raise Dead("it is TensorFlow's own, not Keras's")
    for candidate in (name, name.replace("keras.backend.", "keras.ops."), name.replace(".preprocessing.", ".")):
        found = _lower().get(candidate.replace(".experimental", "").lower())
        if found is not None:
            return found
    raise Dead("Keras has it no longer, or it is no operator that opera captures")


@cache
def _lower() -> dict[str, str]:
    import keras

    names = {name.lower(): name for name in keras_api.objects()}
    for alias, item in vars(keras.layers).items():  # MaxPool2D is MaxPooling2D
        name = keras_api.public_name(item) if isinstance(item, type) else None
        if name is not None:
            names.setdefault(f"keras.layers.{alias}".lower(), name)
    return names


@contextmanager
def watching(recorder: Recorder) -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """Keras's capture sees every call that the driver makes."""
    import keras

    keras.utils.set_random_seed(0)
    yield nullcontext
    keras.backend.clear_session()


def prepare(bound: Bound, values: Mapping[str, Value], number: int) -> Callable[[], Any]:
    """Return a call by name; every second layer is called for training."""
    found = keras_api.resolve(bound.operator)
    arguments = {name: decode(value) for name, value in values.items()}
    if keras_api.kind(bound.operator) == "function":
        namespace, _, last = bound.operator.rpartition(".")
        function = getattr(importlib.import_module(namespace), last)  # as capture has wrapped it
        return lambda: function(**arguments)
    called = {name.removeprefix(CALL): x for name, x in arguments.items() if name.startswith(CALL)}
    made = {name: x for name, x in arguments.items() if not name.startswith(CALL)}
    formals = keras_api.parameters(found.call)
    first = next(iter(formals))
    if "training" in formals:
        called["training"] = number % 2 == 0
    return lambda: found(**made)(called.pop(first), **called)


def decode(value: Value) -> Any:
    """Return Keras's object of a generated value. Raises CorpusError."""
    import keras

    match value:
        case Tensor() | RandomTensor():
            array = keras_values.to_array(value)
            return keras.ops.convert_to_tensor(array, dtype=None if value.dtype == "string" else value.dtype)
        case Named(kind="dtype", name=name):
            return name
        case list() | tuple():
            return type(value)(decode(x) for x in value)
        case dict():
            return {name: decode(x) for name, x in value.items()}
        case Named():
            raise CorpusError(f"Keras knows no {value.kind[:40]}")
    return value
