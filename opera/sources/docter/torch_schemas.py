"""What PyTorch's operator schemas and Python signatures say of parameters: names, types, defaults."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec

from opera.libraries.torch import api as torch_api

MAX_OVERLOADS = 6
PREFIXES = {"torch.linalg.": "linalg_", "torch.special.": "special_", "torch.fft.": "fft_"}
_ARGUMENT = re.compile(
    r"(?P<type>[\w.]+(?:\([a-z]!?(?: -> \*)?\))?(?:\[\d*\]|\?)*)\s+(?P<name>\w+)(?:=(?P<default>.+))?", re.DOTALL
)


class Argument(msgspec.Struct, frozen=True):
    """One parameter: `kind` is a type as schemas write it (`Tensor?`, `int[2]`), empty where nothing is known."""

    name: str
    kind: str
    default: str | None = None

    @property
    def required(self) -> bool:
        return self.default is None


def overloads(operator: str) -> list[list[Argument]]:
    """Return the parameters of every way in which an operator can be called with tensors, one list a way."""
    if torch_api.kind(operator) in ("module", "property"):
        return []
    python = _python(torch_api.resolve(operator))
    if python and not operator.startswith("torch.Tensor."):
        return [python]
    found = list(_schemas(operator))
    if found:
        return found[:MAX_OVERLOADS]
    formals = [name.lstrip("*") for name in torch_api.formals(operator)]
    if operator.startswith("torch.Tensor."):
        return [
            [Argument(name, "" if place else "Tensor", "None" if place else None) for place, name in enumerate(formals)]
        ]
    return [[Argument(name, "") for name in formals]]


def constructor(operator: str) -> list[Argument]:
    """Return the parameters of a module's constructor; of RNN, LSTM and GRU, which hide them, two are required."""
    made = _python(torch_api.resolve(operator).__init__) or []
    known = {x.name: x for x in made}
    formals = torch_api.constructor_formals(operator)
    return [known.get(name) or Argument(name, "", "None" if place >= 2 else None) for place, name in enumerate(formals)]


def forward(operator: str) -> list[Argument]:
    """Return the parameters of a module's forward."""
    return _python(torch_api.resolve(operator).forward) or []


def _python(func: Any) -> list[Argument]:
    """Read the signature of a function written in Python; empty where it has none that says names."""
    try:
        stated = inspect.signature(func).parameters.values()
    except (ValueError, TypeError):
        return []
    if any(x.kind is x.VAR_POSITIONAL for x in stated):
        return []
    made = []
    for x in stated:
        if x.name == "self" or x.kind is x.VAR_KEYWORD:
            continue
        made.append(Argument(x.name, _annotation(x.annotation), None if x.default is x.empty else _shown(x.default)))
    return made


def _shown(default: Any) -> str:
    """Write a default; where an object lies in memory is no part of it."""
    return re.sub(r" at 0x[0-9a-f]+>", ">", repr(default))


def _annotation(annotation: Any) -> str:
    """Write an annotation as schemas do; empty for what they cannot say."""
    if annotation is inspect.Parameter.empty:
        return ""
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    text = str(annotation) if isinstance(annotation, type) is False and not isinstance(annotation, str) else text
    text = re.sub(r"\b(torch|typing|builtins|collections\.abc|_types)\.", "", text)
    optional = "?" if re.search(r"\bNone\b|Optional", text) else ""
    text = re.sub(r"Optional\[(.*)\]", r"\1", text)
    text = re.sub(r"\s*\|\s*None|None\s*\|\s*", "", text).strip()
    plain = {"Tensor": "Tensor", "int": "int", "float": "float", "bool": "bool", "str": "str", "dtype": "ScalarType"}
    if text in plain:
        return plain[text] + optional
    if found := re.fullmatch(
        r"(?:List|list|Sequence)\[(Tensor|int|float|bool|str)\]|BroadcastingList(\d)\[(int|float)\]", text
    ):
        return (f"{found[3]}[{found[2]}]" if found[2] else f"{found[1]}[]") + optional
    if found := re.fullmatch(r"_size_(\d)_t", text):
        return f"int[{found[1]}]" + optional
    return "Scalar" + optional if text in ("Number", "Union[int, float]", "int | float", "float | int") else ""


def _schemas(operator: str) -> Iterator[list[Argument]]:
    import torch

    seen = set()
    for name in _names(operator):
        found = torch._C._jit_get_schemas_for_operator(f"aten::{name}")
        for schema in found:
            made = _parse(str(schema))
            if made is None or not _callable(operator, made):
                continue
            key = tuple((x.name, x.kind) for x in made)
            if key not in seen:
                seen.add(key)
                yield made
        if found:
            return


def _callable(operator: str, arguments: list[Argument]) -> bool:
    """Whether a schema is one of the operator, and not of what TorchScript does with numbers under the same name."""
    if operator.startswith("torch.Tensor."):
        return arguments[:1] != [] and arguments[0].kind == "Tensor"
    declared = torch_api.instrumentation().operators
    return (
        operator in declared.makers or operator in declared.also or any(x.kind.startswith("Tensor") for x in arguments)
    )


def _names(operator: str) -> list[str]:
    """Return the names that an operator's schemas may have."""
    last = operator.rpartition(".")[2]
    prefix = next((x for start, x in PREFIXES.items() if operator.startswith(start)), "")
    names = [prefix + last, last] if prefix else [last]
    if last.startswith("__") and last.endswith("__"):
        bare = last.strip("_")
        names += [bare, f"{bare[1:]}_" if bare.startswith("i") else bare.removeprefix("r")]
    return names


@cache
def _parse(text: str) -> list[Argument] | None:
    """Parse a schema; None where it asks for what cannot be generated (names of dimensions, outputs)."""
    inner = text[text.index("(") + 1 : text.rindex(") ->")]
    made: list[Argument] = []
    named = False
    for part in _split(inner):
        if part == "*":
            named = True
            continue
        found = _ARGUMENT.fullmatch(part)
        if found is None:
            return None
        kind = re.sub(r"\([a-z]!?(?: -> \*)?\)", "", found["type"]).replace("SymInt", "int")
        name = found["name"]
        if (named and "!" in found["type"]) or (kind.startswith("Dimname") and found["default"] is None):
            return None
        made.append(Argument("input" if name == "self" else name, kind, found["default"]))
    return made


def _split(text: str) -> list[str]:
    parts, depth = [""], 0
    for char in text:
        depth += (char in "([") - (char in ")]")
        if char == "," and not depth:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts if part.strip()]
