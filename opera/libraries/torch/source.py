"""Python source of a call: the module that makes it, as a developer would write it, from literals and known names alone.

The same source is run by `torch_module` and shown by reproducers, so that a script shows what was tested. Nothing in an
instance can become code: operators and callables are looked up in PyTorch's public API, names are identifiers, and every
other value is a literal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from keyword import iskeyword

import msgspec

from opera.errors import CorpusError, InvalidTest
from opera.libraries.torch import api as torch_api
from opera.libraries.torch import codec as torch_values
from opera.programs import literals
from opera.programs.literals import fold, literal
from opera.programs.migrated import Manifest
from opera.programs.program import Instance
from opera.programs.values import CONTAINERS, Named, RandomTensor, Tensor, Value

RESERVED = {"self", "torch", "np", "result"}
"""Names that the source itself uses."""
FEW = 8
"""So many outputs are written one by one."""
BINARY = {
    "add": "+", "and": "&", "eq": "==", "floordiv": "//", "ge": ">=", "gt": ">", "le": "<=", "lshift": "<<", "lt": "<",
    "matmul": "@", "mod": "%", "mul": "*", "ne": "!=", "or": "|", "pow": "**", "rshift": ">>", "sub": "-", "truediv": "/",
    "xor": "^",
}  # fmt: skip
UNARY = {"invert": "~", "neg": "-", "pos": "+"}
"""Methods with two leading underscores (without them) → the operator that calls them."""


class Outputs(msgspec.Struct, frozen=True):
    """What a call changes and returns, which only running it tells.

    Attributes:
        mutated: Inputs (operand names) that the call changes in place: the model works on copies of them.
        paths: Where the tensors are in what the call returns, as source (`""`, `[0]`, `[1].values`); or, where it returns
            nothing, the names of the operands it changed, as `=name`.
    """

    mutated: tuple[str, ...] = ()
    paths: tuple[str, ...] = ("",)


def model(instance: Instance, outputs: Outputs) -> str:
    """Return the source of the class `Model`. Raises InvalidTest where the instance describes no call."""
    names = identifiers(instance)
    body = [f"{names[name]} = {names[name]}.clone()" for name in outputs.mutated]
    body += _returned(call(instance, names), outputs, names)
    lines = ["class Model(torch.nn.Module):"]
    if kind(instance) == "module":
        lines += ["    def __init__(self):", "        super().__init__()", "        torch.manual_seed(0)"]
        lines += [_indent(f"self.layer = {constructor(instance)}", 8), ""]
    lines.append(f"    def forward({', '.join(['self', *names.values()])}):")
    return "\n".join([*lines, *(_indent(line, 8) for line in body), ""])


def reproducer(manifest: Manifest, instance: Instance, outputs: Outputs, artefact: str) -> dict[str, object]:
    """See `opera.libraries.torch.library.reproducer`.

    Returns `model` (the source of the class), `feeds` (name → expression, as source), `fed` (the values), `training`,
    `artefact`, `opset` ("") and `spec`, the address of the operator's documentation.
    """
    layouts = instance.context.get("layout", {})
    items = []
    for name, operand in zip(manifest.inputs, instance.inputs, strict=True):
        items.append(f"{literal(name)}: {tensor(operand.value, layouts.get(operand.name))}")
    return {
        "model": model(instance, outputs).strip(),
        "feeds": fold("{", items, "}"),
        "fed": [operand.value for operand in instance.inputs],
        "training": bool(instance.context.get("training", False)),
        "artefact": artefact,
        "opset": "",
        "spec": f"https://docs.pytorch.org/docs/stable/generated/{instance.operator}.html",
    }


def identifiers(instance: Instance) -> dict[str, str]:
    """Return operand name → the name of the model's input, for all operands that hold a tensor."""
    known: dict[str, str] = {}
    taken = set(RESERVED)
    for operand in instance.inputs:
        if operand.name in known:
            raise InvalidTest(f"two inputs are called {operand.name[:100]!r}")
        name = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in operand.name)[:60]
        name = name if name and not name[0].isdigit() else f"x{name}"
        while name in taken or iskeyword(name):
            name += "_"
        taken.add(name)
        known[operand.name] = name
    return known


def kind(instance: Instance) -> str:
    """Return what is called: function, method, property or module. Raises CorpusError for unknown operators."""
    return torch_api.kind(instance.operator)


def constructor(instance: Instance) -> str:
    """Return the expression that makes the module of an instance."""
    torch_api.resolve(instance.operator)
    parts = _arguments(instance, "init", {}, "")
    return fold(f"{instance.operator}(", parts, ")")


def call(instance: Instance, names: Mapping[str, str]) -> str:
    """Return the expression that makes the call."""
    torch_api.resolve(instance.operator)
    sort = kind(instance)
    if sort == "module":
        return fold("self.layer(", _arguments(instance, "call", names, "forward."), ")")
    if sort == "function":
        return fold(f"{instance.operator}(", _arguments(instance, "call", names, ""), ")")
    attribute = instance.operator.rpartition(".")[2]
    first, *rest = _arguments(instance, "call", names, "") or [""]
    if first not in names.values():  # the tensor is not in its usual place
        if sort == "property":
            raise InvalidTest(f"{instance.operator} is read of no tensor")
        return fold(f"{instance.operator}(", [first, *rest] if first else [], ")")
    if sort == "property":
        return f"{first}.{attribute}"
    return _operation(instance, names, attribute, first, rest) or fold(f"{first}.{attribute}(", rest, ")")


def _operation(instance: Instance, names: Mapping[str, str], attribute: str, first: str, rest: list[str]) -> str:
    """Return a method that Python has an operator for as people write it, or nothing."""
    plain = attribute.strip("_")
    if not attribute.startswith("__") or instance.context["call"]["kwargs"]:
        return ""
    if not rest:
        return f"{UNARY[plain]}{first}" if plain in UNARY else ""
    if len(rest) != 1:
        return ""
    if plain == "getitem":
        key = instance.params.get(instance.context["call"]["args"][1])
        return f"{first}[{_subscript(key, names) if isinstance(key, tuple) and key else rest[0]}]"
    if plain in BINARY:
        return f"{first} {BINARY[plain]} {rest[0]}"
    if plain.startswith("r") and plain[1:] in BINARY:
        return f"{rest[0]} {BINARY[plain[1:]]} {first}"
    return ""


def _subscript(key: tuple[Value, ...], names: Mapping[str, str]) -> str:
    """Return an index as it is written between brackets, `1:3, ..., None`."""
    parts = []
    for item in key:
        text = expression(item, names)
        if isinstance(item, Named) and item.kind == "slice":
            start, stop, step = ("" if x is None else str(x) for x in slice_of(item))
            text = f"{start}:{stop}" + (f":{step}" if step else "")
        parts.append(text)
    return ", ".join(parts) + ("," if len(parts) == 1 else "")


def slice_of(item: Named) -> tuple[int | None, int | None, int | None]:
    """Return the bounds of a slice."""
    found = torch_values.decode(item)
    return found.start, found.stop, found.step


def _arguments(instance: Instance, which: str, names: Mapping[str, str], prefix: str) -> list[str]:
    """Return the arguments of a call or constructor, in order, as source."""
    written = instance.context.get(which)
    match written:
        case {"args": list() | tuple() as positional, "kwargs": list() | tuple() as keywords}:
            pass
        case _:
            raise InvalidTest(f"the instance does not say how it was called ({which})")
    parts = [_argument(instance, name, names) for name in positional]
    for name in keywords:
        text = _argument(instance, name, names)
        plain = str(name).removeprefix(prefix)
        parts.append(
            f"{plain}={text}"
            if plain.isidentifier() and plain.isascii() and not iskeyword(plain)
            else f"**{{{literal(plain)}: {text}}}"
        )
    return parts


def _argument(instance: Instance, name: Value, names: Mapping[str, str]) -> str:
    if isinstance(name, str):
        if name in names:
            return names[name]
        if name in instance.params:
            return expression(instance.params[name], names)
        if any(operand.name == name for operand in instance.inputs):
            raise InvalidTest(f"the constructor takes the input {name[:100]!r}")
    raise InvalidTest(f"the instance has no argument {str(name)[:100]!r}")


def _returned(made: str, outputs: Outputs, names: Mapping[str, str]) -> list[str]:
    changed = [names[path[1:]] for path in outputs.paths if path.startswith("=")]
    if changed:
        return [made, f"return {', '.join(changed)}"]
    if outputs.paths == ("",):
        return [f"return {made}"]
    if outputs.paths == tuple(f"[{index}]" for index in range(len(outputs.paths))) and len(outputs.paths) > FEW:
        return [f"return tuple({made})"]
    items = ", ".join(f"result{path}" for path in outputs.paths)
    return [f"result = {made}", f"return ({items},)" if len(outputs.paths) == 1 else f"return {items}"]


def expression(value: Value, names: Mapping[str, str]) -> str:
    """Return the source of an argument; `Named("torch.input", name)` is the input of that name.

    Raises InvalidTest for an input that is not there, CorpusError for what PyTorch does not have.
    """
    match value:
        case Named(kind="torch.input", name=name):
            if name not in names:
                raise InvalidTest(f"an argument refers to the input {name[:100]!r}, which is not there")
            return names[name]
        case Named():
            return _named(value)
        case list():
            return fold("[", [expression(item, names) for item in value], "]")
        case tuple():
            items = [expression(item, names) for item in value]
            return f"({items[0]},)" if len(items) == 1 else fold("(", items, ")")
        case dict():
            return fold("{", [f"{literal(key)}: {expression(item, names)}" for key, item in value.items()], "}")
        case Tensor() | RandomTensor():
            return tensor(value)
        case None | bool() | int() | float() | str() | bytes():
            return literal(value)
    raise CorpusError(f"PyTorch has no {type(value).__name__} among its arguments")


def _named(value: Named) -> str:
    found = torch_values.decode(value)  # refuses what is not there
    match value.kind:
        case "torch.device":
            return f"torch.device({literal(value.name)})"
        case "torch.callable":
            return value.name
        case "complex":
            return literal(found)
        case "slice":
            return f"slice({found.start}, {found.stop}, {found.step})"
        case "builtins":
            return "..."
    return f"torch.{value.name}"


def tensor(value: Tensor | RandomTensor, strides: Iterable[int] | None = None) -> str:
    """Return an expression for a torch.Tensor; scripts with large ones need `unpack` (opera.programs.literals)."""
    value = value.tensor() if isinstance(value, RandomTensor) else value
    text = f"torch.from_numpy({literals.source(_bits(value))})"
    if value.dtype not in literals.NATIVE:
        text += f".view(torch.{value.dtype})"
    if strides is None:
        return text
    layout = literal(list(strides))
    return f"torch.empty_strided({literal(list(value.shape))}, {layout}, dtype=torch.{value.dtype}).copy_({text})"


def _bits(value: Tensor) -> Tensor:
    """Return a tensor that NumPy can hold: low-precision floats as integers of the same width."""
    if value.dtype in literals.NATIVE:
        return value
    return Tensor({"uint16": "int16"}.get(CONTAINERS[value.dtype], "uint8"), value.shape, value.data)


def _indent(text: str, width: int) -> str:
    return "\n".join(" " * width + line if line else line for line in text.split("\n"))
