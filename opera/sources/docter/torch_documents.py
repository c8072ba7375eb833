"""PyTorch for DocTer: constraints that it states in docstrings, signatures and operator schemas, and inputs as calls."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any

import msgspec

from opera.libraries.calls import TRAINING
from opera.libraries.torch import api as torch_api
from opera.libraries.torch import calls
from opera.libraries.torch.calls import FORWARD
from opera.libraries.torch.hooks import watching
from opera.programs.values import Value
from opera.sources.docter import docstrings, rules, torch_schemas
from opera.sources.docter.constraints import Api, Parameter
from opera.sources.docter.docstrings import Entry
from opera.sources.docter.documented import Bound, adapted
from opera.sources.docter.rules import Texts
from opera.sources.docter.torch_schemas import Argument

__all__ = ["bind", "builtin", "prepare", "watching"]

PACKAGE = "torch"
SKIPPED = frozenset({
    "out", "generator", "device", "layout", "pin_memory", "memory_format", "requires_grad", "names", "output_device", "stream",
})  # fmt: skip
"""Parameters that are not generated: they say where and how memory is had, not what is computed."""
_KINDS: dict[str, Texts] = {
    "Tensor": {"tensor_t": ["tensor"]},
    "Scalar": {"dtype": ["numeric"], "ndim": ["0"]},
    "int": {"dtype": ["int"], "ndim": ["0"]},
    "float": {"dtype": ["float"], "ndim": ["0"]},
    "number": {"dtype": ["numeric"], "ndim": ["0"]},
    "bool": {"dtype": ["bool"], "ndim": ["0"]},
    "str": {"dtype": ["string"]},
    "ScalarType": {"dtype": ["dtype"]},
}
"""What types of schemas mean."""
SYMBOLS = {
    "C_in": ("in_channels", "num_features"), "C_out": ("out_channels",), "C": ("num_features", "num_channels", "in_channels"),
    "H_in": ("in_features", "input_size", "in1_features"), "in_features": ("in_features",), "H_in1": ("in1_features",),
    "H_in2": ("in2_features",), "num_features": ("num_features",), "E": ("d_model", "embed_dim"), "embed_dim": ("embed_dim",),
}  # fmt: skip
"""Names of sizes in the shapes of modules → constructor parameters that have that value."""


def builtin() -> Iterator[Api]:
    """Yield the constraints of all operators; see opera.sources.docter.documented.Documented."""
    for operator in torch_api.operators():
        yield from apis(operator)


def bind(api: Api) -> Bound:
    """Find an API of PyTorch."""
    operator = calls.find(api.title, loosely=True)
    today = known(operator, api)
    fitted, remarks, names = adapted(api, *formals(operator, today), today)
    optional = tuple(name for name in fitted.optional if name not in SKIPPED and fitted.parameters[name].constrained)
    return Bound(operator, msgspec.structs.replace(fitted, optional=optional), tuple(remarks), names)


def known(operator: str, api: Api) -> Api | None:
    """Return today's constraints: of several signatures, those that share most parameters with the API."""
    found = list(apis(operator))
    same = [x for x in found if x.file == api.file]
    names = set(api.parameters)
    return max(same or found, key=lambda x: len(names & set(x.parameters)) - len(set(x.required) - names), default=None)


def prepare(bound: Bound, values: Mapping[str, Value], number: int) -> Callable[[], Any]:
    """Return a call: positional as far as parameters are given without a gap; every second module is in evaluation mode.

    The weights of a module take the dtype of the first floating-point input.
    """
    import torch

    torch.manual_seed(number)
    given = {name: calls.decode(value) for name, value in values.items()}
    if torch_api.kind(bound.operator) == "module":
        given[TRAINING] = number % 2 == 0
    fit = None if "dtype" in given else _in_dtype_of
    return partial(calls.call, bound.operator, given, torch_api.formals(bound.operator), fit)


def _in_dtype_of(module: Any, called: Sequence[Any]) -> Any:
    import torch

    dtype = next((x.dtype for x in called if isinstance(x, torch.Tensor) and x.is_floating_point()), None)
    return module if dtype is None else module.to(dtype)


@cache
def apis(operator: str) -> tuple[Api, ...]:
    """Return the constraints of an operator, one for each way to call it; the file of the n-th ends in n."""
    if torch_api.kind(operator) == "module":
        return (_module(operator),)
    described = docstrings.arguments(_documentation(operator))
    made = []
    for place, arguments in enumerate(torch_schemas.overloads(operator) or [[Argument("input", "Tensor")]], 1):
        parameters = {x.name: _parameter(x, x.name, described) for x in arguments}
        extra = {name: _described(name, entry) for name, entry in described.items() if name == "out"}
        required = tuple(x.name for x in arguments if x.required)
        optional = tuple(x.name for x in arguments if not x.required)
        file = operator if place == 1 else f"{operator}{place}"
        made.append(Api(operator, PACKAGE, required, (*optional, *extra), parameters | extra, file=file))
    return tuple(made)


def formals(operator: str, known: Api | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of all parameters, and of those that are required, of the way to call it that `known` describes."""
    if known is None:
        names = tuple(name.lstrip("*") for name in torch_api.formals(operator))
        return names, names
    return (*known.required, *known.optional), known.required


def _documentation(operator: str) -> str:
    """Return the docstring that describes the parameters: that of the function where a method refers to it."""
    own = torch_api.resolve(operator).__doc__ or ""
    if docstrings.arguments(own) or not operator.startswith("torch.Tensor."):
        return own
    bare = operator.rpartition(".")[2]
    bare = bare.strip("_") if bare.startswith("__") else bare.removesuffix("_")
    for namespace in ("torch", "torch.special", "torch.linalg", "torch.nn.functional"):
        if f"{namespace}.{bare}" in torch_api.operators():
            return torch_api.resolve(f"{namespace}.{bare}").__doc__ or ""
    return own


def _parameter(argument: Argument, name: str, described: dict[str, Entry]) -> Parameter:
    entry = described.get(argument.name, Entry("", ""))
    default = None if argument.default is None else argument.default.strip("'\"")
    kind = entry.kind
    stated = rules.texts(name, kind, entry.description, argument.default)
    made = _merged(argument.kind, stated) if argument.kind else stated
    return rules.parameter(name, made, default, rules.clean(entry.description))


def _described(name: str, entry: Entry) -> Parameter:
    return rules.parameter(
        name, rules.texts(name, entry.kind, entry.description, None), "None", rules.clean(entry.description)
    )


def _merged(kind: str, stated: Texts) -> Texts:
    """Join what a schema says, which holds, and what words say, which tells more of shapes and values."""
    bare = kind.rstrip("?")
    element, _, rest = bare.partition("[")
    if element not in _KINDS:
        return stated
    made = {field: list(items) for field, items in _KINDS[element].items()}
    words = {field: stated[field] for field in ("shape", "ndim", "range", "enum") if field in stated}
    if element == "Tensor":
        if rest:
            return made | {"structure": stated.get("structure") or ["list", "tuple"]}
        narrow = [x for x in stated.get("dtype", ()) if x[-1].isdigit() or x == "bool"]
        return (
            made
            | {name: words[name] for name in ("shape", "ndim") if name in words}
            | ({"dtype": narrow} if narrow else {})
        )
    if rest:
        made |= {
            "structure": stated.get("structure") or ["list", "tuple"],
            "ndim": ["0", "1"] if rest[:-1].rstrip("]") else ["1"],
        }
        made["ndim"] = [x for x in made["ndim"] if x == "1" or rest[0].isdigit()]
        size = re.match(r"([2-9])\]", rest)
        made |= {"shape": [f"[{size[1]}]"]} if size else {}
    elif "structure" in stated and element in ("int", "float"):
        made["ndim"] = ["0"]
    keep = {name: words[name] for name in ("range", "enum") if name in words}
    if element in ("bool", "ScalarType"):
        keep = {}
    return made | keep


def _module(operator: str) -> Api:
    found: Any = torch_api.resolve(operator)
    described = docstrings.arguments(found.__doc__)
    constructor, called = torch_schemas.constructor(operator), torch_schemas.forward(operator)
    constructor = [x for x in constructor if not x.name.startswith("*")]  # `Module(*args)` takes none
    parameters = {x.name: _parameter(x, x.name, described) for x in constructor if x.name not in ("device", "dtype")}
    shapes = _shapes(found.__doc__, set(parameters))
    texts = docstrings.entries(found.forward.__doc__)
    words = {name: entry for items in texts.values() for name, entry in items.items()}
    for place, x in enumerate(called):
        name = FORWARD + x.name
        parameters[name] = _forward(x, place, name, shapes, words)
    needed = [x.name for x in constructor if x.required and x.name in parameters]
    free = [x.name for x in constructor if not x.required and x.name in parameters]
    required = (*needed, *(FORWARD + x.name for x in called if x.required))
    return Api(
        operator, PACKAGE, required, (*free, *(FORWARD + x.name for x in called if not x.required)), parameters,
        layer=True, file=operator,
    )  # fmt: skip


def _forward(
    argument: Argument, place: int, name: str, shapes: dict[str, list[str]], words: dict[str, Entry]
) -> Parameter:
    stated: Texts = {"tensor_t": ["tensor"]} if argument.kind.startswith("Tensor") or not argument.kind else {}
    if not stated:
        return _parameter(argument, name, words)
    key = argument.name.lower()
    found = (
        shapes.get(key)
        or shapes.get(re.sub(r"^x(\d?)$", r"input\1", key))
        or ([] if place else shapes.get("input", []))
    )
    return rules.parameter(name, stated | ({"shape": found} if found else {}), argument.default, "")


def _shapes(text: str | None, names: set[str]) -> dict[str, list[str]]:
    """Return what the section `Shape` says of each input, its sizes named after constructor parameters."""
    found: dict[str, list[str]] = {}
    for head, items in docstrings.entries(text).items():
        if head.startswith("shape"):
            for name, entry in items.items():
                made = [_tied(x, names) for x in _stated(f"{entry.kind} {entry.description}")]
                if made:
                    found.setdefault(name.lower(), made)
    return found


def _stated(text: str) -> Sequence[str]:
    first = re.split(r"\bwhere\b", text, maxsplit=1)[0]
    return [x for x in (rules.shape(found) for found in re.findall(r":math:`(\([^`]*\))`", first)) if x]


def _tied(shape: str, names: set[str]) -> str:
    """Write the value of a constructor parameter in place of the name of the size that it sets."""

    def swap(found: re.Match[str]) -> str:
        known = next((x for x in SYMBOLS.get(found[0], ()) if x in names), None)
        return f"&{known}" if known else found[0]

    return re.sub(r"[A-Za-z]\w*", swap, shape)
