"""Python source of a program: the module that makes its calls, as a developer would write it, of literals and known names.

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
from opera.programs.program import Graph, Instance, Program, given_names, names_of
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
PLAIN = {"bool", "int8", "int16", "int32", "int64", "uint8", "float16", "bfloat16", "float32", "float64"}
"""Dtypes whose numbers `torch.tensor` rounds as NumPy does, and keeps as they are written."""
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


def model(program: Program, outputs: tuple[Outputs, ...]) -> str:
    """Return the source of the class `Model`; `outputs` are those of each call. Raises InvalidTest where one is no call."""
    calls, names = program.instances(), identifiers(program)
    modules = [place for place, call in enumerate(calls) if kind(call) == "module"]
    layers = {place: "layer" if len(modules) == 1 else f"layer_{place}" for place in modules}
    lines = ["class Model(torch.nn.Module):"]
    if layers:
        lines += ["    def __init__(self):", "        super().__init__()", "        torch.manual_seed(0)"]
        lines += [_indent(f"self.{name} = {constructor(calls[place])}", 8) for place, name in layers.items()]
        lines.append("")
    if isinstance(program, Graph):
        body = _forward(program, outputs, names, layers)
    else:
        body = [f"{names[name]} = {names[name]}.clone()" for name in outputs[0].mutated]
        body += _returned(call(program, names), outputs[0], names)
    arguments = [names[operand.name] for operand in program.inputs]
    lines.append(f"    def forward({', '.join(['self', *arguments])}):")
    return "\n".join([*lines, *(_indent(line, 8) for line in body), ""])


def _forward(
    graph: Graph, outputs: tuple[Outputs, ...], names: Mapping[str, str], layers: Mapping[int, str]
) -> list[str]:
    """Return the body of `forward`: what a call changes in place is a copy, for later calls mean the value before."""
    lines = []
    for place, (written, instance, known) in enumerate(
        zip(graph.calls, graph.instances(), names_of(graph), strict=True)
    ):
        arguments = {formal: names[name] for formal, name in known.items()}
        for formal in outputs[place].mutated:
            arguments[formal], original = f"{arguments[formal]}_copy", arguments[formal]
            lines.append(f"{arguments[formal]} = {original}.clone()")
        made, paths = call(instance, arguments, layers.get(place, "")), outputs[place].paths
        if len(written.outputs) > len(paths):
            raise InvalidTest(f"{written.operator} returns {len(paths)} tensors, not {len(written.outputs)}")
        used = [(names[name], path) for name, path in zip(written.outputs, paths, strict=False) if name]
        if paths[0].startswith("="):
            lines += [made, *(f"{name} = {arguments[path[1:]]}" for name, path in used)]
        elif paths == ("",) and used:
            lines.append(f"{used[0][0]} = {made}")
        else:
            targets, parts = ", ".join(name for name, _ in used), ", ".join(f"result{path}" for _, path in used)
            lines += [f"result = {made}", *([f"{targets} = {parts}"] if used else [])]
    return [*lines, f"return {', '.join(names[name] for name in graph.outputs)}"]


def reproducer(manifest: Manifest, program: Program, outputs: tuple[Outputs, ...], artefact: str) -> dict[str, object]:
    """See `opera.libraries.torch.library.reproducer`.

    Returns `model` (the source of the class), `feeds` (name → expression, as source), `fed` (the values), `training`,
    `artefact`, `opset` ("") and `spec`, the address of the operator's documentation.
    """
    layouts = layouts_of(program)
    items = []
    for name, operand in zip(manifest.inputs, program.inputs, strict=True):
        items.append(f"{literal(name)}: {tensor(operand.value, layouts.get(operand.name))}")
    return {
        "model": model(program, outputs).strip(),
        "feeds": fold("{", items, "}"),
        "fed": [operand.value for operand in program.inputs],
        "training": trains(program),
        "artefact": artefact,
        "opset": "",
        "spec": ", ".join(dict.fromkeys(map(specification, program.operators))),
    }


def specification(operator: str) -> str:
    """Return the address of an operator's documentation."""
    return f"https://docs.pytorch.org/docs/stable/generated/{operator}.html"


def trains(program: Program) -> bool:
    """Whether the model is in training mode: where any of its calls was made in it."""
    return any(bool(call.context.get("training", False)) for call in program.instances())


def layouts_of(program: Program) -> dict[str, tuple[int, ...]]:
    """Return input → its strides, where a call says so. Raises InvalidTest for what is no list of strides."""
    found: dict[str, tuple[int, ...]] = {}
    for call, names in zip(program.instances(), names_of(program), strict=True):
        layouts = call.context.get("layout", {})
        if not isinstance(layouts, dict):
            raise InvalidTest("the layout of an instance is no table")
        for name, strides in layouts.items():
            if not isinstance(strides, list | tuple):
                raise InvalidTest(f"the layout of {str(name)[:100]!r} is no list of strides")
            found.setdefault(str(names.get(name, name)), tuple(strides))
    return found


def identifiers(program: Program) -> dict[str, str]:
    """Return input or result → its name in the model."""
    known: dict[str, str] = {}
    taken = set(RESERVED)
    for given in given_names(program):
        if given in known:
            raise InvalidTest(f"two inputs are called {given[:100]!r}")
        name = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in given)[:60]
        name = name if name and not name[0].isdigit() else f"x{name}"
        while name in taken or iskeyword(name):
            name += "_"
        taken |= {name, f"{name}_copy"}
        known[given] = name
    return known


def kind(instance: Instance) -> str:
    """Return what is called: function, method, property or module. Raises CorpusError for unknown operators."""
    return torch_api.kind(instance.operator)


def constructor(instance: Instance) -> str:
    """Return the expression that makes the module of an instance."""
    torch_api.resolve(instance.operator)
    parts = _arguments(instance, "init", {}, "")
    return fold(f"{instance.operator}(", parts, ")")


def call(instance: Instance, names: Mapping[str, str], layer: str = "layer") -> str:
    """Return the expression that makes the call; `names` are the variables of its tensor arguments."""
    torch_api.resolve(instance.operator)
    sort = kind(instance)
    if sort == "module":
        return fold(f"self.{layer}(", _arguments(instance, "call", names, "forward."), ")")
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
    text = _written_out(value) or f"torch.from_numpy({literals.source(_bits(value))})"
    if value.dtype not in literals.NATIVE and text.startswith("torch.from_numpy("):
        text += f".view(torch.{value.dtype})"
    if strides is None:
        return text
    layout = literal(list(strides))
    return f"torch.empty_strided({literal(list(value.shape))}, {layout}, dtype=torch.{value.dtype}).copy_({text})"


def _written_out(value: Tensor) -> str:
    """Return `torch.tensor([1.0, 2.0])`, as users write it; nothing where that is long, or not bit for bit the same."""
    listed, dtype = literals.nested(value), f", dtype=torch.{value.dtype}"
    if value.dtype not in PLAIN or not (listed or 0 in value.shape):
        return ""
    if not listed:
        return f"torch.zeros({literal(list(value.shape))}{'' if value.dtype == 'float32' else dtype})"
    dtype = "" if value.dtype in ("float32", "int64", "bool") else dtype
    text = f"torch.tensor({listed}{dtype})".replace("np.", "torch.")
    return text if len(text) <= literals.WIDTH - 20 else ""


def _bits(value: Tensor) -> Tensor:
    """Return a tensor that NumPy can hold: low-precision floats as integers of the same width."""
    if value.dtype in literals.NATIVE:
        return value
    return Tensor({"uint16": "int16"}.get(CONTAINERS[value.dtype], "uint8"), value.shape, value.data)


def _indent(text: str, width: int) -> str:
    return "\n".join(" " * width + line if line else line for line in text.split("\n"))
