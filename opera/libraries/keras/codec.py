"""Between opera's values and the objects of Keras: configurations, arguments and tensors.

A configuration stays what `get_config()` says, with three exceptions that make equal layers equal: names of layers are
dropped, as are `build_config`s (a layer is built again from its inputs), and a plain dtype policy is its name. Serialised
objects inside it must be built-in classes of Keras: nothing else is captured, and nothing else is ever deserialised.
keras is imported inside functions, for the CLI imports this module.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from opera.errors import CorpusError
from opera.programs.values import CONTAINERS, Named, RandomTensor, Tensor, Value

STORED = 1 << 14
"""Float tensors of more elements are described by their range, unless their dtype cannot be."""
MAX_STORED = 1 << 20
"""Tensors of more elements that cannot be described are not representable."""
CUSTOM = "custom object in the configuration"
MAX_NESTED = 24
"""Containers may be nested this deep."""
DESCRIBED = ("float16", "float32", "float64")
NAMESPACES = (
    "activations", "constraints", "dtype_policies", "initializers", "layers", "quantizers", "random", "regularizers",
)  # fmt: skip
"""Public namespaces (beside `keras` itself) whose classes a configuration may name."""
CONSTRUCTED = tuple(f"keras.{name}" for name in ("constraints", "initializers", "quantizers", "regularizers"))
"""Namespaces whose classes take their configuration as constructor arguments."""
PLAIN_POLICIES = ("DTypePolicy", "FloatDTypePolicy")
OBJECT = {"module", "class_name", "config", "registered_name"}
FILES = ("vocabulary", "idf_weights")
"""Parameters that may be the name of a file, which no instance is allowed to name."""
_SLICE = re.compile(r"(-?\d{1,20})?:(-?\d{1,20})?:(-?\d{1,20})?")


class NotRepresentable(Exception):
    """An object has no encoding; the text is the category that reports count."""


def encode(item: Any, depth: int = 0) -> Value:
    """Return the value of a configuration or argument. Raises NotRepresentable."""
    if depth > MAX_NESTED:
        raise NotRepresentable("container nested too deeply")
    match item:
        case None | bool() | str() | bytes():
            return item
        case np.generic():
            return encode(item.item(), depth)
        case int() | float():
            return item
        case complex():
            return Named("complex", repr(item))
        case np.ndarray():
            return array(item)
        case dict():
            return _encode_dict(item, depth + 1)
        case tuple():
            return tuple(encode(x, depth + 1) for x in item)
        case list() | set() | frozenset():
            return [encode(x, depth + 1) for x in item]
        case slice():
            parts = (item.start, item.stop, item.step)
            if all(x is None or isinstance(x, int) for x in parts):
                return Named("slice", ":".join("" if x is None else str(x) for x in parts))
            raise NotRepresentable("slice by tensors")
        case _ if item is Ellipsis:
            return Named("builtins", "Ellipsis")
    return _encode_other(item)


def _encode_dict(item: dict[Any, Any], depth: int) -> Value:
    if "class_name" in item and "config" in item:
        return _encode_object(item, depth)
    if set(item) == {"value"} and isinstance(item["value"], tuple):  # so activations say a lambda: as its code
        raise NotRepresentable(CUSTOM)
    if not all(isinstance(key, str | int | float | bool) for key in item):
        raise NotRepresentable("mapping with unusual keys")
    return {key: encode(value, depth) for key, value in item.items()}


def _encode_object(item: dict[str, Any], depth: int) -> Value:
    """Return a serialised object without what does not decide its meaning."""
    module, name = item.get("module"), item["class_name"]
    if module == "keras" and name in PLAIN_POLICIES:
        return str(item["config"]["name"])
    if not builtin(item):
        raise NotRepresentable(CUSTOM)
    kept = {key: value for key, value in item.items() if key in OBJECT}
    if module == "keras.layers" and isinstance(item["config"], dict):
        kept["config"] = {key: value for key, value in item["config"].items() if key != "name"}
    return {key: encode(value, depth) for key, value in kept.items()}


def _encode_other(item: Any) -> Value:
    import keras

    name = type(item).__name__
    if name == "TensorShape":
        return [None if x is None else int(x) for x in item.as_list()]
    if isinstance(item, np.dtype | type) or name == "DType":
        try:
            return str(keras.backend.standardize_dtype(item))
        except (ValueError, TypeError):
            raise NotRepresentable("a type as an argument") from None
    if callable(item):
        raise NotRepresentable("a callable as an argument")
    raise NotRepresentable(f"a value of type {name}"[:60])


def builtin(form: dict[str, Any]) -> bool:
    """Tell whether a serialised object is one of Keras's own public classes, and one that a corpus may name."""
    import keras

    from opera.libraries.keras import api as keras_api

    module, name = form.get("module"), form.get("class_name")
    if not isinstance(name, str):
        return False
    if module is None:
        return name == "__tensor__"
    if not isinstance(module, str) or form.get("registered_name") not in (None, name):
        return False
    if module == "keras":
        return name in ("DTypePolicyMap", "QuantizedDTypePolicy", "QuantizedFloat8DTypePolicy", *PLAIN_POLICIES)
    first, _, namespace = module.partition(".")
    if first != "keras" or namespace not in NAMESPACES:
        return False
    found = getattr(getattr(keras, namespace), name, None)
    if not isinstance(found, type):
        return False
    return keras_api.public_name(found) is not None if namespace == "layers" else True


def class_of(form: dict[str, Any]) -> Any:
    """Return the class of a serialised object that is `builtin`, of one of Keras's namespaces."""
    import keras

    return getattr(getattr(keras, form["module"].partition(".")[2]), form["class_name"])


def decode(value: Value) -> Any:
    """Return the argument or configuration of a value. Raises CorpusError for what no instance may name."""
    match value:
        case Tensor() | RandomTensor():
            return to_array(value)
        case Named(kind="complex", name=name):
            return complex(name)
        case Named(kind="builtins", name="Ellipsis"):
            return ...
        case Named(kind="slice", name=name) if _SLICE.fullmatch(name):
            return slice(*(int(part) if part else None for part in name.split(":")))
        case Named():
            raise CorpusError(f"an argument names {value.kind[:40]} {value.name[:40]}, which is nothing of Keras's")
        case dict():
            if "class_name" in value and "config" in value and not builtin(value):
                raise CorpusError(
                    f"a configuration names {str(value['class_name'])[:60]!r}, which is no class of Keras's"
                )
            for name in FILES:
                if isinstance(value.get(name), str):
                    raise CorpusError(f"the parameter {name} names a file")
            return {key: decode(item) for key, item in value.items()}
        case list():
            return [decode(item) for item in value]
        case tuple():
            return tuple(decode(item) for item in value)
    return value


def array(item: np.ndarray[Any, Any], *, exact: bool = False) -> Tensor | RandomTensor:
    """Return the value of an array, large floats described by their range. Raises NotRepresentable."""
    kind = item.dtype.kind
    if kind not in "OSU" and item.dtype.name not in CONTAINERS:
        raise NotRepresentable(f"dtype {item.dtype.name}"[:60])
    if kind == "O" and not all(isinstance(x, str | bytes) for x in item.ravel()):
        raise NotRepresentable("array of objects")
    if item.size > STORED and item.dtype.name in DESCRIBED and not exact:
        return _described(item)
    if item.size > MAX_STORED:
        raise NotRepresentable("tensor above the size limit")
    return Tensor.of(item)


def _described(item: np.ndarray[Any, Any]) -> RandomTensor:
    finite = item[np.isfinite(item)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    return RandomTensor(item.dtype.name, item.shape, item.size, low, high)


def made_up(dtype: str, shape: tuple[int, ...], seed: int, below: int) -> Tensor | RandomTensor:
    """Make up an input of a symbolic call: floats in -1 .. 1, whole numbers in 0 .. below - 1. Raises NotRepresentable."""
    if dtype == "string":
        return Tensor.of(np.full(shape, "a", dtype=object))
    if dtype not in CONTAINERS:
        raise NotRepresentable(f"dtype {dtype}"[:60])
    if math.prod(shape) > STORED and dtype in DESCRIBED:
        return RandomTensor(dtype, shape, seed, -1.0, 1.0)
    if math.prod(shape) > MAX_STORED:
        raise NotRepresentable("tensor above the size limit")
    generator = np.random.Generator(np.random.PCG64(seed))
    if dtype == "bool" or "int" in dtype:
        return Tensor.of(generator.integers(0, 2 if dtype == "bool" else below, shape).astype(dtype))
    values = generator.uniform(-1.0, 1.0, shape)
    if dtype in DESCRIBED or dtype.startswith("complex"):
        return Tensor.of(values.astype(dtype))
    return Tensor.of(values.astype(numpy_dtype(dtype)), dtype)


def numpy_dtype(dtype: str) -> np.dtype[Any]:
    """Return numpy's dtype of a name, ml_dtypes' where numpy has none. Raises CorpusError where neither has."""
    import ml_dtypes

    if dtype == "string":
        return np.dtype(object)
    if dtype not in CONTAINERS:
        raise CorpusError(f"Keras has no dtype {dtype[:40]!r}")
    return np.dtype(dtype if CONTAINERS[dtype] == dtype else getattr(ml_dtypes, dtype))


def to_array(value: Tensor | RandomTensor) -> np.ndarray[Any, Any]:
    """Return the numpy array of a value, of ml_dtypes' types where numpy has none; strings are an object array of bytes."""
    value = value.tensor() if isinstance(value, RandomTensor) else value
    made, dtype = value.array(), numpy_dtype(value.dtype)
    if made.dtype == dtype:
        return made
    return made.astype(dtype) if "int" in value.dtype else made.view(dtype)


def from_array(item: Any) -> Tensor:
    """Inverse of `to_array`, for whatever size: the outputs of a model."""
    made = np.asarray(item)
    return Tensor.of(made, made.dtype.name if made.dtype.name in CONTAINERS else None)
