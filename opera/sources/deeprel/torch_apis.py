"""PyTorch: its operators as relations are inferred from, and calls of them by argument name."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import msgspec

from opera.libraries.calls import TRAINING
from opera.libraries.torch import api as torch_api
from opera.libraries.torch import calls
from opera.libraries.torch import codec as torch_values
from opera.libraries.torch import signatures as torch_signatures
from opera.libraries.torch.calls import FORWARD, decode, find
from opera.libraries.torch.hooks import watching
from opera.programs.program import Instance
from opera.programs.values import NO_DEFAULT, Named, Value
from opera.sources.deeprel import apis as related
from opera.sources.deeprel.apis import Api, Parameter

__all__ = [
    "FREE", "agree", "apis", "arguments", "bind", "call", "decode", "encode", "find", "prepare", "telling", "types", "watching",
]  # fmt: skip

FREE = (TRAINING, "_stacklevel", "device", "layout", "pin_memory", "requires_grad")
UNMATCHED = ("out", "generator", "_stacklevel", "device", "layout", "pin_memory", "requires_grad")
"""Parameters that play no part in relations."""

_TYPES = (
    ("Tensor[]", "tensors"), ("List[Tensor]", "tensors"), ("List[Optional[Tensor]]", "tensors"), ("Tensor", "tensor"),
    ("List[int]", "ints"), ("number", "float int"), ("float", "float"), ("int", "int"), ("bool", "bool"), ("str", "str"),
)  # fmt: skip
_LINK = re.compile(
    r"(?:alias (?:for|of)|see|in-?place version of|out-of-place version of|equivalent to)\s+"
    r"(?::\w+:)?`?`?~?([\w.]+)",
    re.IGNORECASE,
)


def prepare() -> None:
    """Use one thread, for there is a process a core, and say nothing."""
    import torch

    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    warnings.simplefilter("ignore")


def apis() -> list[Api]:
    """Return all operators."""
    return [_api(operator) for operator in torch_api.operators()]


def _api(operator: str) -> Api:
    text = torch_api.resolve(operator).__doc__ or ""
    links = related.linked(operator, text, _LINK, ("", "torch.", "torch.nn.functional."), _known())
    return Api(operator, parameters(operator), text, links)


@cache
def _known() -> frozenset[str]:
    return frozenset(torch_api.operators())


@cache
def parameters(operator: str) -> tuple[Parameter, ...]:
    """Return the parameters by signature and by operator schemas; of a module, those of forward after the constructor's."""
    defaults = _defaults()[operator]
    if torch_api.kind(operator) == "module":
        own = [_parameter(name, {}, defaults, False) for name in torch_api.constructor_formals(operator)]
        mode = Parameter(TRAINING, frozenset({"bool"}))
        called = [name for name in torch_api.formals(operator) if not name.startswith("*")]
        forward = [_parameter(FORWARD + name, {}, defaults, True) for name in called]
        found = [*own, *forward, mode]
    else:
        schemas = _schemas(operator)
        names = [name.lstrip("*") for name in torch_api.formals(operator)]
        stated = len([name for name in names if name])
        beyond = [name for name, x in schemas.items() if x.place is None or x.place >= stated]
        rest = [name for name in (*defaults, *beyond) if name not in names]
        found = [_parameter(name, schemas, defaults, False) for name in dict.fromkeys((*names, *rest))]
    return tuple(x for x in found if x.name not in UNMATCHED)


@cache
def _defaults() -> dict[str, dict[str, Value]]:
    return torch_signatures.defaults(torch_api.operators())


def _parameter(name: str, schemas: Mapping[str, _Argument], defaults: Mapping[str, Value], called: bool) -> Parameter:
    schema = schemas.get(name, _Argument())
    types, stated = schema.types, defaults.get(name, NO_DEFAULT)
    needed = name in defaults and stated == NO_DEFAULT and not schema.optional
    default = stated if stated != NO_DEFAULT else schema.default
    if not types and type(default) in (bool, int, float, str):
        types = frozenset({type(default).__name__})
    if called and not types:
        types = frozenset({"tensor"})
    return Parameter(name, types, default, needed, called)


class _Argument(msgspec.Struct):
    """What schemas say of an argument; `place` is None for one that in some overload only a keyword reaches."""

    types: frozenset[str] = frozenset()
    default: Value = NO_DEFAULT
    optional: bool = False
    place: int | None = None


def _schemas(operator: str) -> dict[str, _Argument]:
    """Return what all overloads of an operator's schema say of its arguments."""
    found: dict[str, _Argument] = {}
    last = operator.rpartition(".")[2]
    prefix = {"linalg": "linalg_", "special": "special_", "fft": "fft_"}.get(operator.split(".")[1], "")
    for schema in _schemas_by_name().get(f"aten::{prefix}{last}", ()):
        for place, argument in enumerate(schema.arguments):
            name, text = "input" if argument.name == "self" else argument.name, str(argument.type)
            known = name in found
            one = found.setdefault(name, _Argument(place=None if argument.kwarg_only else place))
            one.types |= frozenset({"dtype"}) if name == "dtype" else _kinds(text)
            one.place = None if argument.kwarg_only else one.place
            one.optional = name != "input" and (known or argument.has_default_value() or text.startswith("Optional"))
            if argument.has_default_value():
                one.default = encode(argument.default_value)
    return found


@cache
def positional_names(operator: str) -> list[str]:
    """Return the formal names that a call gives by position; torch.overrides does not tell them from keywords."""
    schemas, found = _schemas(operator), []
    for name in torch_api.formals(operator):
        if name in schemas and schemas[name].place is None:
            break
        found.append(name)
    return found


@cache
def _schemas_by_name() -> dict[str, list[Any]]:
    import torch

    found: dict[str, list[Any]] = {}
    for schema in torch._C._jit_get_all_schemas():
        found.setdefault(schema.name, []).append(schema)
    return found


def _kinds(text: str) -> frozenset[str]:
    text = text.removeprefix("Optional[").removesuffix("]") if text.startswith("Optional[") else text
    for name, kinds in _TYPES:
        if text == name or (name.endswith("[]") and text.startswith(name[:-2]) and text.endswith("]")):
            return frozenset(kinds.split())
    return frozenset()


def encode(item: Any) -> Value:
    """Return the value of an argument that is no tensor, NO_DEFAULT for what has none."""
    try:
        return torch_values.encode(item)
    except torch_values.NotRepresentable:
        return NO_DEFAULT


def arguments(instance: Instance) -> dict[str, Any]:
    """Return the arguments of an instance by parameter name, tensors fresh. Raises Unusable."""
    return calls.arguments(instance, [x.name for x in parameters(instance.operator)])


def bind(
    operator: str, positional: Sequence[Value], named: Mapping[str, Value], called: Sequence[Value] | None
) -> dict[str, Any]:
    """Return arguments by parameter name. Raises Unusable where they do not fit."""
    return calls.bind(operator, positional, named, called, positional_names(operator))


def call(operator: str, arguments: Mapping[str, Any]) -> list[Any]:
    """Call an operator, positionally as far as arguments are given without a gap; return the tensors it returns."""
    import torch
    from torch.utils import _pytree

    torch.default_generator.manual_seed(0)  # torch.manual_seed asks every device, with a traceback
    result = calls.call(operator, arguments, positional_names(operator))
    return [x for x in _pytree.tree_leaves(result) if isinstance(x, torch.Tensor)]


def agree(one: list[Any], other: list[Any]) -> bool:
    """Whether outputs are the same: number, dtypes, shapes, and values within the oracle's tolerance of the dtype."""
    import torch

    return related.agree(one, other, torch.equal, _close)


def _close(one: Any, other: Any, rtol: float, atol: float) -> bool:
    import torch

    if not one.dtype.is_complex:
        one, other = one.double(), other.double()
    return bool(torch.allclose(one, other, rtol=rtol, atol=atol, equal_nan=True))


def telling(outputs: list[Any], arguments: Mapping[str, Any]) -> bool:
    """Whether there are elements other than zero and NaN, in another tensor than an argument."""
    import torch

    given = [x for x in arguments.values() if isinstance(x, torch.Tensor)]
    new = [x for x in outputs if not any(x.dtype == y.dtype and torch.equal(x, y) for y in given)]
    return any(x.numel() and bool(torch.nan_to_num(x.detach().to(torch.complex64)).count_nonzero()) for x in new)


def types(instance: Instance) -> dict[str, str]:
    """Return parameter → type of what an instance was called with."""
    return related.types(instance, FORWARD if instance.context.get("kind") == "module" else "", kind_of)


def kind_of(value: Value) -> str:
    """Return the type of a value, empty for None and what has none."""
    match value:
        case bool() | int() | float() | str():
            return type(value).__name__
        case list() | tuple():
            return "ints" if all(type(x) is int for x in value) else "list"
        case Named(kind="torch.dtype"):
            return "dtype"
    return ""
