"""The public names of PyTorch's operators: an allow-list, for names also come from corpora of other people.

It is made of torch.overrides, the module classes of torch.nn, and instrumentation/torch.toml. torch is imported inside
functions, for the CLI imports this module.
"""

from __future__ import annotations

import inspect
import keyword
import re
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Literal

import msgspec

from opera import resources
from opera.errors import CorpusError

Kind = Literal["function", "method", "property", "module"]


class _Operators(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    namespaces: list[str]
    also: list[str]
    makers: list[str]
    properties: list[str]
    dunders: list[str]
    variadic: list[str]


class _Modules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    deny: list[str]


class Instrumentation(msgspec.Struct, frozen=True):
    """instrumentation/torch.toml, as far as it says what is an operator."""

    operators: _Operators
    formals: dict[str, list[str]]
    constructors: dict[str, list[str]]
    modules: _Modules
    deny: dict[str, list[str]]


class _Api(msgspec.Struct, frozen=True):
    """name → object of all operators, callable → name (also of what is denied), and callable → override of its signature.

    Of names of one callable in one namespace, that of an ATen operator counts: `mm`, and neither `dsmm` nor `spmm`; `abs`, and
    not `__abs__`. `aliases` are the others, which instances may still have.
    """

    objects: dict[str, Any]
    aliases: dict[str, Any]
    names: dict[Any, str]
    overrides: dict[Any, Callable[..., Any]]


@cache
def instrumentation() -> Instrumentation:
    """Return what instrumentation/torch.toml declares."""
    return msgspec.convert(resources.declaration("instrumentation", "torch"), Instrumentation)


def deciding() -> dict[str, Any]:
    """Return what of instrumentation/torch.toml decides how a test is made: which names are operators.

    The rest names the arguments of what is captured, which the instance itself shows.
    """
    declared = resources.declaration("instrumentation", "torch")
    operators = {name: item for name, item in declared["operators"].items() if name != "variadic"}
    return {"operators": operators, "modules": declared["modules"], "deny": declared["deny"]}


def public_name(func: Any) -> str | None:
    """Return the public name of a callable, property, bound getter of a property or module class; None where it has none.

    The name may be one that `denied` gives a reason for, and `resolve` refuses.
    """
    try:
        return _api().names.get(func)
    except TypeError:  # not hashable
        return None


def resolve(operator: str) -> Any:
    """Return the callable, property or module class of an operator. Raises CorpusError for all other names."""
    api = _api()
    found = api.objects.get(operator, api.aliases.get(operator))
    if found is None:
        raise CorpusError(f"PyTorch has no operator called {operator[:100]!r} that opera knows")
    return found


def operators() -> list[str]:
    """Return all operators, sorted."""
    return sorted(_api().objects)


def kind(operator: str) -> Kind:
    """Return what sort of callable an operator is. Raises CorpusError for what is none."""
    found = resolve(operator)
    if isinstance(found, type):
        return "module"
    if operator.startswith("torch.Tensor."):
        return "method" if callable(found) else "property"
    return "function"


@cache
def denied(name: str) -> str | None:
    """Return why a public name is no operator (a category of instrumentation/torch.toml), else None."""
    for category, patterns in instrumentation().deny.items():
        if any(re.fullmatch(pattern, name) for pattern in patterns):
            return category
    return None


def formals(operator: str) -> list[str]:
    """Return the formal names of an operator's positional arguments, `*name` for one that takes all that follow.

    `self` of a method is `input`. For a module they are those of `forward`; see `constructor_formals`. What takes
    `*args` without saying more has none.
    """
    return list(_formals(operator))


@cache
def _formals(operator: str) -> tuple[str, ...]:
    found = resolve(operator)
    if operator in instrumentation().formals:
        return tuple(instrumentation().formals[operator])
    match kind(operator):
        case "module":
            return tuple(_positional(found.forward)[1:])
        case "property":
            return ("input",)
    own = _positional(found)
    stated = _api().overrides.get(found)
    if stated is not None and (not own or own[0] in ("*args", "*arg")):
        own = _as_schemas(operator, _positional(stated))
    if operator.startswith("torch.Tensor."):
        own[:1] = ["input"]
    return tuple("input" if name == "self" else name for name in own)


SCHEMAS = {"torch": "", "torch.Tensor": "", "torch.special": "special_", "torch.fft": "fft_"}
"""Namespace → how the names of its operators begin in ATen. Those of others (torch.linalg) have names of their own."""


def _as_schemas(operator: str, own: list[str]) -> list[str]:
    """Return formal names, of which torch.overrides states some that nothing takes, as PyTorch's schemas have them.

    A name but the first that no schema has counts as another one, which all have in its place; names that are missing at the
    end are those of the longest schema that begins so: `amin(input, dim)` takes `keepdim`, and `isin(e, te)` `elements`.
    """
    import torch

    space, _, name = operator.rpartition(".")
    if space not in SCHEMAS:
        return own
    found = torch._C._jit_get_schemas_for_operator(f"aten::{SCHEMAS[space]}{name}")
    schemas = [x for x in found if x.arguments and x.arguments[0].type.kind() == "TensorType"]
    every = [[x.name for x in schema.arguments if not (x.kwarg_only or x.is_out)] for schema in schemas]
    known = {x.name for schema in schemas for x in schema.arguments}
    made = [x for x in own if x != "out"]
    for place, stated in list(enumerate(made))[1:] if schemas else ():
        others = {names[place] for names in every if place < len(names)}
        plain = {x for x in others if not keyword.iskeyword(x)} - {"self", *made}
        if stated not in known and not stated.startswith("*") and len(others) == len(plain) == 1:
            made[place] = plain.pop()
    named = {x.name for schema in schemas for x in schema.arguments if x.kwarg_only}
    begins = [names for names in every if len(names) > len(made) and names[1 : len(made)] == made[1:]]
    return [*made, *(x for x in max(begins, key=len)[len(made) :] if x not in named)] if begins and made else made


def constructor_formals(operator: str) -> list[str]:
    """Return the formal names of a module's constructor, `self` left out. Raises CorpusError for what is no module."""
    return list(_constructor_formals(operator))


@cache
def _constructor_formals(operator: str) -> tuple[str, ...]:
    if kind(operator) != "module":
        raise CorpusError(f"{operator[:100]} is no module")
    stated = instrumentation().constructors.get(operator)
    return tuple(stated or _positional(resolve(operator).__init__)[1:])


def _positional(func: Any) -> list[str]:
    try:
        parameters = inspect.signature(func).parameters.values()
    except (ValueError, TypeError):
        return []
    names = []
    for parameter in parameters:
        if parameter.kind is parameter.VAR_POSITIONAL:
            names.append(f"*{parameter.name}")
        elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            names.append(parameter.name)
    return names


@cache
def _api() -> _Api:
    """Build the tables, once a process."""
    import torch.overrides

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # reading deprecated attributes warns
        overrides = torch.overrides.get_testing_overrides()
        listed = torch.overrides.get_overridable_functions()
        known = {func for functions in listed.values() for func in functions if func.__hash__ is not None}
        api = _Api({}, {}, {}, overrides)
        for name, found in (*_functions(known), *_methods(known), *_properties(), *_modules()):
            other = api.names.get(found)
            if other is not None and _is_alias(other, name) and denied(name) is None:
                if other in api.objects:
                    api.aliases[other] = api.objects.pop(other)
                del api.names[found]  # so that its key is the callable of this name
            if api.names.setdefault(found, name) == name and denied(name) is None:
                api.objects[name] = found
    for name in instrumentation().operators.properties:
        getter = getattr(torch.Tensor, name).__get__
        api.names[getter] = f"torch.Tensor.{name}"
    return api


def _is_alias(name: str, other: str) -> bool:
    """Whether a name is another one's in its namespace, and of the two only the other is an ATen operator's."""
    import torch

    (space, one), (same, known) = (x.rsplit(".", 1) for x in (name, other))
    return space == same and hasattr(torch.ops.aten, known) and not hasattr(torch.ops.aten, one)


def _functions(known: set[Any]) -> Iterator[tuple[str, Any]]:
    declared = instrumentation().operators
    for namespace in declared.namespaces:
        module = _module(namespace)
        for name in sorted(vars(module)):
            found = vars(module)[name]
            if not name.startswith("_") and callable(found) and not isinstance(found, type) and _among(found, known):
                yield f"{namespace}.{name}", found
    for name in (*declared.also, *declared.makers):
        module, attribute = _module(name.rpartition(".")[0]), name.rpartition(".")[2]
        if not name.startswith("torch.Tensor.") and hasattr(module, attribute):
            yield name, getattr(module, attribute)


def _methods(known: set[Any]) -> Iterator[tuple[str, Any]]:
    import torch

    declared = instrumentation().operators
    dunders = {f"__{name}__" for name in declared.dunders}
    makers = {name.rpartition(".")[2] for name in declared.makers if name.startswith("torch.Tensor.")}
    for name in sorted(dir(torch.Tensor)):
        found = getattr(torch.Tensor, name, None)
        public = not name.startswith("_") or name in dunders
        if public and callable(found) and not isinstance(found, type) and (name in makers or _among(found, known)):
            yield f"torch.Tensor.{name}", found


def _properties() -> Iterator[tuple[str, Any]]:
    import torch

    for name in instrumentation().operators.properties:
        yield f"torch.Tensor.{name}", getattr(torch.Tensor, name)


def _modules() -> Iterator[tuple[str, Any]]:
    import torch

    deny = set(instrumentation().modules.deny)
    for name, found in sorted(vars(torch.nn).items()):
        public = isinstance(found, type) and issubclass(found, torch.nn.Module) and name not in deny
        if public and not issubclass(found, torch.nn.modules.lazy.LazyModuleMixin):
            yield f"torch.nn.{name}", found


def _module(name: str) -> Any:
    """Return a namespace of torch that instrumentation/torch.toml names."""
    import torch

    found: Any = torch
    for step in name.split(".")[1:]:
        found = getattr(found, step)
    return found


def _among(found: Any, known: set[Any]) -> bool:
    try:
        return found in known
    except TypeError:
        return False
