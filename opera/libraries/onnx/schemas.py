"""What the installed onnx says about its operators' attributes."""

from __future__ import annotations

from collections.abc import Iterable

from opera.programs.values import NO_DEFAULT, Value


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


def _plain(value: Value) -> Value:
    """Strings come from onnx as bytes."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
