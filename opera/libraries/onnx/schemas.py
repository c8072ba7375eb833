"""What the installed onnx says about its operators' attributes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from opera.libraries.documented import Quote, about_value, quoted, sentence_on, special
from opera.programs.program import Instance
from opera.programs.values import NO_DEFAULT, Tensor, Value

QUOTED = (re.compile(r"""["']([\w-]+)[,.]?["']"""), re.compile(r"`([\w-]+)`"))
"""How documentation names the values of a string attribute: in quotes, else in backticks, in which variables stand, too."""
CAPITALS = re.compile(r"\b[A-Z][A-Z\d_]+\b")
"""How it names them where they are in capitals, quoted or not."""
COMMON = ("float32", "int64")
"""Dtypes of which nobody doubts that an operator takes them."""


def attribute_defaults(operators: Iterable[str]) -> dict[str, dict[str, Value]]:
    """Return operator → attribute → default in its newest schema, NO_DEFAULT where an attribute has none.

    An operator is named `Conv`, or `ai.onnx.ml::Scaler`; one without a domain is looked up in every domain that onnx has.
    Operators that onnx does not know are left out. Needs onnx (ImportError).
    """
    import onnx
    import onnx.defs

    newest: dict[tuple[str, str], onnx.defs.OpSchema] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        key = (schema.domain, schema.name)
        if key not in newest or schema.since_version > newest[key].since_version:
            newest[key] = schema
    domains = ("", *sorted({domain for domain, _ in newest} - {""}))
    out: dict[str, dict[str, Value]] = {}
    for operator in operators:
        domain, _, name = operator.rpartition("::")
        found = [newest[key] for place in ((domain,) if domain else domains) if (key := (place, name)) in newest]
        if found:
            out[operator] = {
                attribute.name: onnx.helper.get_attribute_value(attribute.default_value)
                if attribute.default_value.type
                else NO_DEFAULT
                for attribute in found[0].attributes.values()
            }
            out[operator] = {name: _plain(value) for name, value in out[operator].items()}
    return out


def words(description: str, default: Any = None) -> list[str]:
    """Return the values of a string attribute that its documentation names; of those in capitals, where the default is."""
    found: list[str] = next(filter(None, (pattern.findall(description) for pattern in QUOTED)), [])
    if isinstance(default, str) and default.isupper():
        found = found + CAPITALS.findall(description)
    return [word for word in dict.fromkeys(found) if len(word) > 1]


def _plain(value: Value) -> Value:
    """Strings come from onnx as bytes."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def described(call: Instance) -> dict[str, str]:
    """Return the name of an input → its description in the schema of a call; nothing for an unknown operator."""
    schema = _schema(call)
    return {} if schema is None else {x.name: x.description for x in schema.inputs}


def _schema(call: Instance) -> Any:
    """Return the schema of a call's operator in its opset, None where onnx does not know it."""
    import onnx.defs

    domain, _, name = call.operator.rpartition("::")
    stated: Any = call.context.get("opset", {})
    try:
        return onnx.defs.get_schema(name, int(stated.get(domain, 0)) or onnx.defs.onnx_opset_version(), domain)
    except onnx.defs.SchemaError:
        return None


def quotes(call: Instance, parameters: list[str], output: str) -> list[Quote]:
    """Return what the schema of a call says of attributes and inputs, of an output's type, and of uncommon types and inputs.

    Empty for an operator that onnx does not know.
    """
    schema = _schema(call)
    if schema is None:
        return []
    domain, _, name = call.operator.rpartition("::")
    page = f"https://onnx.ai/onnx/operators/onnx_{domain.replace('.', '')}_{name}.html"
    address = f"{page}#l-onnx-op{domain.replace('.', '-')}-{name.lower()}-{schema.since_version}"
    found = []
    for key in parameters:
        if key in schema.attributes:
            text = about_value(schema.attributes[key].description, call.params.get(key))
            found.append(Quote(f"attribute `{key}`", text, address))
        found += [Quote(f"input `{key}`", quoted(x.description), address) for x in schema.inputs if x.name == key]
    for item in schema.outputs:
        if item.name == output and len(item.types) == 1:
            found.append(
                Quote(
                    f"output `{output}`", f"{quoted(item.description)} Its type is {next(iter(item.types))}.", address
                )
            )
    for item, given in zip(schema.inputs, call.inputs, strict=False):
        dtype = given.value.dtype if isinstance(given.value, Tensor) else COMMON[0]
        written = "tensor(" + {"float64": "double"}.get(dtype, dtype) + ")"
        if dtype not in COMMON and written in item.types:
            found.append(Quote(f"input `{item.name}`", f"Among the types of {item.type_str} is {written}.", address))
    for words, pattern in special(call):
        if text := sentence_on(schema.doc, pattern):
            found.append(Quote(words, text, address))
    return found
