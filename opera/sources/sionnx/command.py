"""`opera constraints onnx --osl`: what the installed onnx knows of its operators, in the specification language."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path
from typing import Any

from opera.errors import NotInstalled, UsageError
from opera.sources.sionnx import own, skeleton
from opera.sources.sionnx.spec import MAX_RANK, Attribute, Operand, Spec

INDENT = " " * 4


def write(folder: Path) -> None:
    """Write a file for the newest version of each operator, and say how many have a specification of opera's own.

    Raises UsageError where that would mix with other files, NotInstalled without onnx.
    """
    try:
        version = importlib.metadata.version("onnx")
    except importlib.metadata.PackageNotFoundError:
        raise NotInstalled("onnx is not installed, whose schemas are asked", fix="pip install 'opera[onnx]'") from None
    if folder.is_dir() and any(path.suffix != ".td" for path in folder.iterdir()):
        raise UsageError(f"{folder} holds other files", fix="name a new folder, or one of specifications")
    folder.mkdir(parents=True, exist_ok=True)
    known = own.specifications()
    specs = [
        skeleton.skeleton(name, skeleton.versions(name, domain)[-1], domain) for domain, name in skeleton.operators()
    ]
    for spec in specs:
        path = folder / f"{spec.signature.replace('::', '.')}.td"
        path.write_text(text(spec, f"onnx {version}"), encoding="utf-8")
    said = sum(spec.signature in known for spec in specs)
    print(f"{len(specs)} files, {len(specs)} operators: {folder}")
    print(f"opera says of {said} of them what no schema does, in files of its own: {own.folder()}")


def text(spec: Spec, origin: str) -> str:
    """Return the text of a skeleton: `parse` reads it back to the same attributes, inputs and outputs."""
    return (
        f"// {spec.signature} of version {spec.since}, from the schemas of {origin}. A specification need not repeat this: it\n"
        f"// says in a body, {{ ... }}, what shapes and values go together (docs/sionnx.md).\n{definition(spec)}"
    )


def definition(spec: Spec) -> str:
    """Return the definition of an operator, in which comments name inputs, outputs and what ties their types."""
    parts = [
        _list([(_attribute(x), "required" if x.required else "") for x in spec.attributes]),
        _list([(_operand(x), _remark(x)) for x in spec.inputs]),
        _list([(_operand(x), _remark(x)) for x in spec.outputs]),
        f"[{', '.join(spec.properties)}]",
    ]
    while parts and parts[-1] == "[]":
        parts.pop()
    rest = "".join(f",\n{INDENT}{part}" for part in parts)
    return f"def {spec.name} : Instruction<[{spec.signature}]{rest}>;\n"


def _list(items: list[tuple[str, str]]) -> str:
    lines = []
    for place, (item, remark) in enumerate(items):
        comma = "," if place + 1 < len(items) else ""
        lines.append(f"{item}{comma}" + (f"  // {remark}" if remark else ""))
    ending = f"\n{INDENT}" if items and items[-1][1] else ""
    return f"[{f'{chr(10)}{INDENT} '.join(lines)}{ending}]"


def _attribute(item: Attribute) -> str:
    default = "?" if item.dependent else "" if item.default is None else _value(item.default)
    start = f'Attr<"{item.name}", [{", ".join(item.types)}]'
    return f'{start}, "{default}">' if default else f"{start}>"


def _value(value: Any) -> str:
    return f"[{', '.join(_value(x) for x in value)}]" if isinstance(value, list) else str(value)


def _operand(item: Operand) -> str:
    """Return an operand; of the parameters at its end, those that have their defaults are left away."""
    fields: list[Any] = [item.min_rank, item.max_rank, 1, 0, "[]", "[]", int(item.optional)]
    defaults: list[Any] = [0, MAX_RANK, 1, 0, "[]", "[]", 0]
    while fields and fields[-1] == defaults[len(fields) - 1]:
        fields.pop()
    types = ", ".join(x.replace("(", "<").replace(")", ">") for x in item.types)
    return f"IOType<{', '.join([str(-1 if item.variadic else item.index), f'[{types}]', *map(str, fields)])}>"


def _remark(item: Operand) -> str:
    return f"{item.name}: {item.variable}" if item.variable else item.name
