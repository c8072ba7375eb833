"""Keras for DocTer: constraints that it states in docstrings, signatures and tables of names, and inputs as calls."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from typing import Any

import msgspec

from opera.libraries.calls import TRAINING
from opera.libraries.keras import api as keras_api
from opera.libraries.keras import calls, hooks
from opera.libraries.keras.hooks import watching
from opera.libraries.keras.source import CALL
from opera.programs.values import Value
from opera.sources.docter import docstrings, rules
from opera.sources.docter.constraints import Api, Parameter
from opera.sources.docter.docstrings import Entry
from opera.sources.docter.documented import Bound, adapted
from opera.sources.docter.rules import Texts

__all__ = ["bind", "builtin", "prepare", "watching"]

PACKAGE = "keras"
_NO_CHOICE = ("name", "kwargs", "dtype", "seed", "training", "sparse", "trainable")
"""Parameters that say nothing of the operator, or that every layer has."""
_INPUTS = re.compile(
    r"\n *Input shape:?(.*?)(?:\n *\n? *(?:Output shape|Returns?|Call arguments|Examples?|References?|Raises)\b|\Z)",
    re.DOTALL,
)
_ND = re.compile(r"(\d)(?:D\b| or more)|(?:dimension|rank) (\d) or higher")


def builtin() -> Iterator[Api]:
    """Yield the constraints of all operators; see opera.sources.docter.documented.Documented."""
    hooks.settle()
    for operator in keras_api.objects():
        yield api(operator)


def bind(stated: Api) -> Bound:
    """Find an API of Keras, by the name that TensorFlow or Keras gives it."""
    operator = calls.find(stated.title, loosely=True)
    known = api(operator)
    fitted, remarks, names = adapted(stated, (*known.required, *known.optional), known.required, known)
    fitted = widened(fitted)
    optional = tuple(name for name in fitted.optional if fitted.parameters[name].constrained)
    return Bound(operator, msgspec.structs.replace(fitted, optional=optional), tuple(remarks), names)


def prepare(bound: Bound, values: Mapping[str, Value], number: int) -> Callable[[], Any]:
    """Return a call by name; every second layer is called for training."""
    given = {name: calls.decode(value) for name, value in values.items()}
    if keras_api.kind(bound.operator) == "layer":
        given[TRAINING] = number % 2 == 0
    return partial(calls.call, bound.operator, given, (), lambda layer, own: layer(**own))


@cache
def api(operator: str) -> Api:
    """Return the constraints of an operator."""
    if keras_api.kind(operator) == "layer":
        return _layer(operator)
    found = keras_api.resolve(operator)
    stated = keras_api.parameters(found)
    described = docstrings.arguments(found.__doc__)
    tensors = set(keras_api.instrumentation().tensors["formals"])
    parameters = {name: _parameter(name, x, described, name in tensors) for name, x in stated.items()}
    return _api(operator, parameters, [name for name, x in stated.items() if x.default is x.empty], layer=False)


def _api(operator: str, parameters: dict[str, Parameter], required: list[str], *, layer: bool) -> Api:
    optional = tuple(name for name in parameters if name not in required)
    return Api(operator, PACKAGE, tuple(required), optional, parameters, layer=layer, file=operator)


def _parameter(name: str, stated: inspect.Parameter, described: dict[str, Entry], tensor: bool) -> Parameter:
    entry = described.get(name, Entry("", ""))
    default = None if stated.default is stated.empty else repr(stated.default)
    made = rules.texts(name, entry.kind, entry.description, default)
    if isinstance(stated.default, str) and not made.get("enum") and made.get("dtype") == ["string"]:
        made["enum"] = [stated.default]
    elif tensor and not made.get("structure") and not made.get("tensor_t"):
        made = {"tensor_t": ["tensor"]} | {
            field: made[field] for field in ("shape", "ndim") if field in made and field != "ndim"
        }
    shown = default.strip("'\"") if default is not None else None
    return rules.parameter(name, made, shown, rules.clean(entry.description))


def widened(api: Api) -> Api:
    """Let parameters that name an activation, an initializer and the like take every such name that Keras knows."""
    parameters = dict(api.parameters)
    for name, parameter in api.parameters.items():
        words = _names(name)
        if words and len(parameter.enum) < 2:
            texts = {"dtype": ["string"], "ndim": ["0"], "enum": list(words)}
            parameters[name] = rules.parameter(name, texts, parameter.default, parameter.description)
    return msgspec.structs.replace(api, parameters=parameters)


@cache
def _names(name: str) -> tuple[str, ...]:
    """Return the names that a parameter takes from one of Keras's tables; empty where it is none of those."""
    import keras

    if name == "activation" or name.endswith("_activation"):
        return tuple(x.rpartition(".")[2] for x in keras_api.objects() if x.startswith("keras.activations."))
    for end, module in (
        ("initializer", keras.initializers),
        ("regularizer", keras.regularizers),
        ("constraint", keras.constraints),
    ):
        if name == end or name.endswith(f"_{end}"):
            return tuple(sorted(x for x, item in vars(module).items() if inspect.isclass(item) and _plain(item)))
    return ()


def _plain(kind: Any) -> bool:
    """Whether a class can be made without arguments, and does not only stand for others."""
    if kind.__name__ in ("Initializer", "RandomInitializer", "Regularizer", "Constraint"):
        return False
    return all(x.default is not x.empty for x in keras_api.parameters(kind.__init__).values())


def _layer(operator: str) -> Api:
    found = keras_api.resolve(operator)
    constructor = keras_api.parameters(found.__init__)
    called = {name: x for name, x in keras_api.parameters(found.call).items() if name != "training"}
    described = docstrings.arguments(found.__doc__)
    words = {
        name: x
        for head, items in docstrings.entries(found.__doc__).items()
        if head.startswith("call")
        for name, x in items.items()
    }
    words |= docstrings.arguments(found.call.__doc__)
    parameters = {
        name: _parameter(name, x, described, False) for name, x in constructor.items() if name not in _NO_CHOICE
    }
    for place, (name, x) in enumerate(called.items()):
        parameters[CALL + name] = _called(found, CALL + name, x, words.get(name, Entry("", "")), first=not place)
    required = [name for name, x in constructor.items() if x.default is x.empty and name in parameters]
    required += [CALL + name for name, x in called.items() if x.default is x.empty]
    return _api(operator, parameters, required, layer=True)


def _called(kind: Any, name: str, stated: inspect.Parameter, entry: Entry, *, first: bool) -> Parameter:
    """What a layer is called with: tensors, of the shapes that its documentation states under `Input shape`."""
    made: Texts = {"tensor_t": ["tensor"]}
    if stated.default is not stated.empty and not first:
        made = rules.texts(name, entry.kind, entry.description, repr(stated.default))
    elif first:
        made |= _input_shapes(kind)
        if any(base.__name__ in ("Merge", "BaseGlobalMerge") for base in kind.__mro__) or kind.__name__ in (
            "AdditiveAttention",
            "Attention",
        ):
            made |= {"structure": ["list"]}
        elif any(
            base.__module__.startswith("keras.src.layers.preprocessing.image_preprocessing") for base in kind.__mro__
        ):
            made |= {"range": ["[0,255]"], "dtype": ["float32"]} | (
                {} if "ndim" in made or "shape" in made else {"ndim": ["3", "4"]}
            )
    default = None if stated.default is stated.empty else repr(stated.default)
    return rules.parameter(name, made, default, rules.clean(entry.description))


def _input_shapes(kind: Any) -> Texts:
    found = _INPUTS.search(kind.__doc__ or "")
    text = rules.clean(found[1]) if found else ""
    stated = [x for x in (rules.shape(x) for x in re.findall(r"`(\([^`]*\))`", text)) if x and "None" not in x]
    ndims = [a or f">={b}" for a, b in _ND.findall(text)]
    if stated and "unbatched" not in text:
        return {"shape": list(dict.fromkeys(stated))}
    if ndims and ndims != ["N"]:
        return {"ndim": list(dict.fromkeys(ndims))}
    rank = re.search(r"(\d)D$", kind.__name__)  # what has no section of its own is told by its class
    return {"ndim": [str(int(rank[1]) + 2)]} if rank else {}
