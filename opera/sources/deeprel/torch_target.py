"""PyTorch: its operators as relations are inferred from, and calls of them by argument name."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any

import msgspec

from opera.capture.recorder import Recorder
from opera.libraries.torch import api as torch_api
from opera.libraries.torch import codec as torch_values
from opera.libraries.torch import signatures as torch_signatures
from opera.programs.program import Instance
from opera.programs.values import NO_DEFAULT, Named, RandomTensor, Tensor, Value
from opera.sources.deeprel.apis import Api, Parameter, Unusable

FORWARD = "forward."
TRAINING = "training"
"""Of a module, a parameter as functions have it."""
FREE = (TRAINING, "_stacklevel", "device", "layout", "pin_memory", "requires_grad")
UNMATCHED = ("out", "generator", "_stacklevel", "device", "layout", "pin_memory", "requires_grad")
"""Parameters that play no part in relations."""
MAX_ELEMENTS = 1 << 22
"""Invocations with more elements in one input are not tried."""

_TYPES = (
    ("Tensor[]", "tensors"), ("List[Tensor]", "tensors"), ("List[Optional[Tensor]]", "tensors"), ("Tensor", "tensor"),
    ("List[int]", "ints"), ("number", "float int"), ("float", "float"), ("int", "int"), ("bool", "bool"), ("str", "str"),
)  # fmt: skip
_UNNAMED = re.compile(r"(forward\.)?arg\d+")
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
    return Api(operator, parameters(operator), text, frozenset(_links(operator, text)))


def _links(operator: str, text: str) -> Iterator[str]:
    known = set(torch_api.operators())
    for name in _LINK.findall(text):
        name = name.rstrip(".")
        for full in (name, f"torch.{name}", f"torch.nn.functional.{name}"):
            if full in known and full != operator:
                yield full


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


def arguments(instance: Instance) -> dict[str, Any]:
    """Return the arguments of an instance by parameter name, tensors fresh. Raises Unusable."""
    layouts: Any = instance.context.get("layout", {})
    inputs = {x.name: _tensor(x.value, layouts.get(x.name)) for x in instance.inputs}
    module = instance.context.get("kind") == "module"
    found: dict[str, Any] = {}
    for name in _written(instance, module):
        if _UNNAMED.fullmatch(name):
            place = _by_place(instance, name)
            found[place] = inputs[name] if name in inputs else torch_values.decode(instance.params[name], inputs)
        elif name not in inputs:
            found[name] = torch_values.decode(instance.params[name], inputs)
        elif "." in name:
            found.setdefault(name.partition(".")[0], []).append(inputs[name])
        else:
            found[FORWARD + name if module else name] = inputs[name]
    if module:
        found[TRAINING] = bool(instance.context.get(TRAINING))
    return found


def _by_place(instance: Instance, name: str) -> str:
    """Return the name of a positional argument that only operator schemas name."""
    place, known = int(name.removeprefix("arg")) if name.startswith("arg") else 1 << 30, parameters(instance.operator)
    written: Any = instance.context["call"]
    if place >= len(known) or known[place].name in (*written["args"], *written["kwargs"]):
        raise Unusable("an argument without a name")
    return known[place].name


def _written(instance: Instance, module: bool) -> Iterator[str]:
    try:
        for which in ("init", "call") if module else ("call",):
            how: Any = instance.context[which]
            yield from (*how["args"], *how["kwargs"])
    except (KeyError, TypeError):
        raise Unusable("an instance that does not say how it was called") from None


def _tensor(value: Value, strides: Any) -> Any:
    if not isinstance(value, Tensor | RandomTensor):
        raise Unusable("an input that is no tensor")
    size = 1
    for dim in value.shape:
        size *= dim
    if size > MAX_ELEMENTS:
        raise Unusable("large inputs")
    return torch_values.to_torch(value, None if strides is None else tuple(strides))


def encode(item: Any) -> Value:
    """Return the value of an argument that is no tensor, NO_DEFAULT for what has none."""
    try:
        return torch_values.encode(item)
    except torch_values.NotRepresentable:
        return NO_DEFAULT


def decode(value: Value) -> Any:
    """Inverse of `encode`."""
    return torch_values.decode(value)


def find(title: str) -> str:
    """Return the operator that DeepREL calls so. Raises Unusable."""
    import torch

    found: Any = torch
    for step in title.split(".")[1:]:
        found = getattr(found, step, None)
    if found is None or title.partition(".")[0] != "torch":
        raise Unusable("PyTorch has it no longer")
    name = title if title in torch_api.operators() else torch_api.public_name(found)
    if name is None or torch_api.denied(name):
        raise Unusable((name and torch_api.denied(name)) or "it is no operator that opera captures")
    return name


def bind(
    operator: str, positional: Sequence[Value], named: Mapping[str, Value], called: Sequence[Value] | None
) -> dict[str, Any]:
    """Return arguments by parameter name. Raises Unusable where they do not fit."""
    module = torch_api.kind(operator) == "module"
    if module != (called is not None):
        raise Unusable(
            "a class without what its object is called with" if module else "a function that is called twice"
        )
    formals = torch_api.constructor_formals(operator) if module else positional_names(operator)
    found = _by_position(formals, positional) | {name: decode(_dtype(x)) for name, x in named.items()}
    return found | {FORWARD + name: x for name, x in _by_position(torch_api.formals(operator), called or ()).items()}


def _by_position(formals: Sequence[str], items: Sequence[Value]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for place, item in enumerate(items):
        if place >= len(formals):
            raise Unusable("more positional arguments than there are parameters")
        if formals[place].startswith("*"):
            several = items[place:]
            found[formals[place][1:]] = decode(several[0] if len(several) == 1 else list(several))
            break
        found[formals[place]] = decode(_dtype(item))
    return found


def _dtype(item: Value) -> Value:
    return Named("torch.dtype", item.name) if isinstance(item, Named) and item.kind == "dtype" else item


def call(operator: str, arguments: Mapping[str, Any]) -> list[Any]:
    """Call an operator, positionally as far as arguments are given without a gap; return the tensors it returns."""
    import torch
    from torch.utils import _pytree

    torch.default_generator.manual_seed(0)  # torch.manual_seed asks every device, with a traceback
    result = _call(operator, torch_api.resolve(operator), dict(arguments))
    return [x for x in _pytree.tree_leaves(result) if isinstance(x, torch.Tensor)]


def _call(operator: str, found: Any, given: dict[str, Any]) -> Any:
    kind = torch_api.kind(operator)
    if kind == "property":
        return found.__get__(given["input"])
    if kind != "module":
        args, kwargs = torch_signatures.split(positional_names(operator), given)
        return found(*args, **kwargs)
    training = given.pop(TRAINING, True)
    forward = {name.removeprefix(FORWARD): x for name, x in given.items() if name.startswith(FORWARD)}
    own = {name: x for name, x in given.items() if not name.startswith(FORWARD)}
    args, kwargs = torch_signatures.split(torch_api.constructor_formals(operator), own)
    made = found(*args, **kwargs).train(bool(training))
    args, kwargs = torch_signatures.split(torch_api.formals(operator), forward)
    return made(*args, **kwargs)


def agree(one: list[Any], other: list[Any]) -> bool:
    """Whether outputs are the same: number, dtypes, shapes, and values within the oracle's tolerance of the dtype."""
    return bool(one) and len(one) == len(other) and all(map(_same, one, other))


def _same(one: Any, other: Any) -> bool:
    import torch

    from opera.oracle import comparison as oracle

    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if torch.equal(one, other):
        return True
    rtol, atol = oracle.tolerance(str(one.dtype).removeprefix("torch."), None, None)
    if not rtol:
        return False
    if not one.dtype.is_complex:
        one, other = one.double(), other.double()
    return bool(torch.allclose(one, other, rtol=rtol, atol=atol, equal_nan=True))


def telling(outputs: list[Any], arguments: Mapping[str, Any]) -> bool:
    """Whether there are elements other than zero and NaN, in another tensor than an argument."""
    import torch

    given = [x for x in arguments.values() if isinstance(x, torch.Tensor)]
    new = [x for x in outputs if not any(x.dtype == y.dtype and torch.equal(x, y) for y in given)]
    return any(x.numel() and bool(torch.nan_to_num(x.detach().to(torch.complex64)).count_nonzero()) for x in new)


@contextmanager
def watching(recorder: Recorder) -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """Take calls for those of a test."""
    from opera.libraries.torch.hooks import installed

    watch = installed(recorder)
    with watch.driving():
        yield watch.active


def types(instance: Instance) -> dict[str, str]:
    """Return parameter → type of what an instance was called with."""
    module = instance.context.get("kind") == "module"
    found = {}
    for operand in instance.inputs:
        base, _, rest = operand.name.partition(".")
        found[FORWARD + base if module else base] = "tensors" if rest else "tensor"
    for name, value in instance.params.items():
        found[name] = found.get(name) or kind_of(value)
    return {name: kind for name, kind in found.items() if kind and not _UNNAMED.fullmatch(name)}


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
