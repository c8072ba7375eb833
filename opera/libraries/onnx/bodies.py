"""ONNX's function bodies: what its specification says that an operator computes, in terms of others."""

from __future__ import annotations

from functools import cache
from typing import Any

from opera import resources
from opera.libraries.onnx.walk import all_nodes


def inlined(model: Any) -> Any:
    """Return a model whose operators are what their function bodies make of them; None where it has none such, draws numbers,
    or ONNX fails.

    Defaults of attributes are stated first: the inliner leaves out what refers to one that is not. What is within bodies of
    Loop, If and Scan stays.
    """
    import onnx
    import onnx.inliner

    if any(x.op_type in _random() for x in all_nodes(model.graph.node)):
        return None
    versions = {item.domain: item.version for item in model.opset_import}
    made = onnx.ModelProto.FromString(model.SerializeToString())
    found: list[tuple[str, str]] = []
    for node in made.graph.node:
        if node.domain not in versions or not onnx.defs.has(node.op_type, versions[node.domain], node.domain):
            continue
        schema = onnx.defs.get_schema(node.op_type, versions[node.domain], node.domain)
        if not (schema.has_function or schema.has_context_dependent_function):
            continue
        found.append((node.domain, node.op_type))
        given = {x.name for x in node.attribute}
        stated = (x.default_value for name, x in schema.attributes.items() if name not in given)
        node.attribute.extend(x for x in stated if x.type)
    if not found:
        return None
    try:
        made = onnx.shape_inference.infer_shapes(made, data_prop=True)
        made = onnx.inliner.inline_selected_functions(made, found, inline_schema_functions=True)
    except Exception:  # types that inference does not tell: then nobody knows the body
        return None
    return None if any((x.domain, x.op_type) in found for x in made.graph.node) else made


@cache
def _random() -> frozenset[str]:
    """Return the operators that may draw other numbers when they are run again: nothing can be compared then."""
    declared = resources.declaration("instrumentation", "onnx")["nondeterministic"]
    return frozenset((*declared["operators"], *declared["when"]))
