"""The public names of Keras's operators: an allow-list, for names also come from corpora of other people.

It is made of the layer classes of keras.layers and the functions of the namespaces that instrumentation/keras.toml names.
keras is imported inside functions, for the CLI imports this module.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Literal

import msgspec

from opera import resources
from opera.errors import CorpusError

LAYERS = "keras.layers"
Kind = Literal["layer", "function"]


class Plainest(msgspec.Struct, frozen=True):
    """A call of which the exporter makes an operator of its own: shapes of float32 inputs, or dtype → numbers."""

    lowered: str
    operator: str
    inputs: dict[str, list[int] | dict[str, list[Any]]]
    params: dict[str, Any] = {}


class Instrumentation(msgspec.Struct, frozen=True):
    """instrumentation/keras.toml."""

    points: dict[str, list[str]]
    deny: dict[str, list[str]]
    tensors: dict[str, list[str]]
    nondeterministic: dict[str, list[str]]
    made_up: dict[str, str]
    exact: dict[str, list[str]]
    accumulating: dict[str, list[str]]
    inner: dict[str, str]
    plainest: list[Plainest]


@cache
def instrumentation() -> Instrumentation:
    """Return what instrumentation/keras.toml declares."""
    return msgspec.convert(resources.declaration("instrumentation", "keras"), Instrumentation)


def deciding() -> dict[str, Any]:
    """Return what of instrumentation/keras.toml decides how a test is made: which names are operators, and its tags.

    The rest tells what is captured, which the instance itself shows.
    """
    declared = resources.declaration("instrumentation", "keras")
    tables = ("deny", "nondeterministic", "exact", "accumulating")
    return {name: declared[name] for name in tables} | {"functions": declared["points"]["functions"]}


@cache
def objects() -> Mapping[str, Any]:
    """Return public name → layer class or function, of everything that is an operator. Needs keras (ImportError)."""
    denied = {name for names in instrumentation().deny.values() for name in names}
    found: dict[str, Any] = {}
    seen: set[Any] = set()
    for name, item in _candidates():
        if name not in denied and item not in seen:
            seen.add(item)
            found[name] = item
    return MappingProxyType(found)


def _candidates() -> list[tuple[str, Any]]:
    """Return all names, each object's canonical one first: classes have theirs, aliases of functions are read later."""
    import keras

    classes = [(name, item) for name, item in vars(keras.layers).items() if isinstance(item, type)]
    classes = [(name, item) for name, item in classes if issubclass(item, keras.Layer) and item.__name__ == name]
    found = [(f"{LAYERS}.{name}", item) for name, item in sorted(classes)]
    for namespace in instrumentation().points["functions"]:
        functions = [(name, item) for name, item in vars(importlib.import_module(namespace)).items() if _function(item)]
        functions.sort(key=lambda pair: (pair[0] != pair[1].__name__, pair[0]))
        found += [(f"{namespace}.{name}", item) for name, item in functions]
    return found


def _function(item: Any) -> bool:
    return inspect.isfunction(item) and not item.__name__.startswith("_")


@cache
def _names() -> dict[Any, str]:
    return {item: name for name, item in objects().items()}


def public_name(item: Any) -> str | None:
    """Return the operator that a layer class or function is; None for all others."""
    return _names().get(item)


def resolve(operator: str) -> Any:
    """Return the layer class or function of an operator. Raises CorpusError for all other names."""
    try:
        return objects()[operator]
    except KeyError:
        raise CorpusError(f"Keras has no operator called {operator[:100]!r} that opera knows") from None


def kind(operator: str) -> Kind:
    """Return what an operator is, by its name."""
    return "layer" if operator.startswith(f"{LAYERS}.") else "function"


@cache
def signature(call: Callable[..., Any]) -> inspect.Signature | None:
    """Return the signature of a function, or of a layer class's `call` or constructor; None where it has none."""
    try:
        return inspect.signature(call)
    except (TypeError, ValueError):
        return None


def parameters(call: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the named parameters of a function, or of a class's method or constructor without `self`."""
    stated = signature(call)
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    found = stated.parameters.values() if stated else ()
    return {x.name: x for x in found if x.kind not in variadic and x.name != "self"}


def formals(call: Callable[..., Any]) -> tuple[str, ...]:
    """Return their names, in order."""
    return tuple(parameters(call))


def defaults(operator: str) -> dict[str, Any]:
    """Return parameter → default (inspect.Parameter.empty where there is none) of a constructor or function."""
    found: Any = resolve(operator)
    stated = parameters(getattr(found, "__init__") if isinstance(found, type) else found)  # noqa: B009
    return {name: x.default for name, x in stated.items() if name != "name"}
