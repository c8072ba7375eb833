"""Constraints that PyTorch states itself: in docstrings, signatures and operator schemas."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from opera.libraries.torch import api as torch_api
from opera.sources.docter import docstrings, rules, torch_schemas
from opera.sources.docter.constraints import Api, Parameter
from opera.sources.docter.docstrings import Entry
from opera.sources.docter.rules import Texts
from opera.sources.docter.torch_schemas import Argument

FORWARD = "forward."
"""Comes before the names of what a module is called with."""
PACKAGE = "torch"
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
