"""What onnx.defs knows of an operator, as a specification, and ours and published ones completed by it.

A specification file says only what the schema does not. It serves every version of its operator: names that a version does
not have are symbols there and nothing else, and a value that was an attribute in one version and is an input in another is
written once (`let axes = ...;`) and given as that version wants it.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from opera.errors import SourceError, near
from opera.sources.sionnx.spec import MAX_RANK, Attribute, Operand, Spec

DOMAINS = ("", "ai.onnx.ml")
NAMES = {
    "float": "float32", "double": "float64", "float8e4m3fn": "float8_e4m3fn", "float8e4m3fnuz": "float8_e4m3fnuz",
    "float8e5m2": "float8_e5m2", "float8e5m2fnuz": "float8_e5m2fnuz", "float8e8m0": "float8_e8m0fnu",
    "float4e2m1": "float4_e2m1fn",
}  # fmt: skip
"""Types of schemas whose dtypes opera names otherwise."""
UNKNOWN = ("map(", "float6")
"""Types that no value of opera's has: maps, and the six-bit floats, which no release of numpy's extension has with ONNX's."""


def versions(operator: str, domain: str = "") -> list[int]:
    """Return the versions of an operator that onnx has and that are not deprecated, oldest first."""
    return list(_versions().get((domain, operator), ()))


@cache
def _versions() -> dict[tuple[str, str], tuple[int, ...]]:
    from onnx import defs

    found: dict[tuple[str, str], list[int]] = {}
    for schema in defs.get_all_schemas_with_history():
        if not schema.deprecated:
            found.setdefault((schema.domain, schema.name), []).append(int(schema.since_version))
    return {key: tuple(sorted(numbers)) for key, numbers in found.items()}


def operators() -> list[tuple[str, str]]:
    """Return (domain, operator) of all operators of the domains that specifications are written for, sorted."""
    return sorted(key for key in _versions() if key[0] in DOMAINS)


@cache
def skeleton(operator: str, since: int, domain: str = "") -> Spec:
    """Return what the schema of an operator's version says. Raises SourceError where onnx has no such version."""
    from onnx import defs

    try:
        schema = defs.get_schema(operator, since, domain)
    except defs.SchemaError:
        raise SourceError(
            f"onnx has no operator {operator!r} of version {since} in the domain {domain!r}",
            cause=near(operator, [name for place, name in _versions() if place == domain]),
        ) from None
    variables = {item.type_param_str for item in schema.type_constraints}
    return Spec(
        name=f"{operator}Op",
        operator=operator,
        domain=domain,
        since=int(schema.since_version),
        attributes=tuple(_attribute(item) for _, item in sorted(schema.attributes.items())),
        inputs=tuple(_operand(place, item, variables, schema) for place, item in enumerate(schema.inputs)),
        outputs=tuple(_operand(place, item, variables, None) for place, item in enumerate(schema.outputs)),
    )


def _attribute(item: Any) -> Attribute:
    from onnx import helper

    default = helper.get_attribute_value(item.default_value) if item.default_value.type else None
    if isinstance(default, bytes):
        default = default.decode()
    elif isinstance(default, list):
        default = [x.decode() if isinstance(x, bytes) else x for x in default]
    elif default is not None and not isinstance(default, int | float | str):
        default = None  # a tensor: none of today's schemas has a default that says more than its absence
    return Attribute(name=item.name, types=(item.type.name.lower(),), default=default, required=bool(item.required))


def _operand(index: int, item: Any, variables: set[str], schema: Any) -> Operand:
    types = tuple(sorted(opera_type(x) for x in item.types if not any(y in x for y in UNKNOWN)))
    low, high = _ranks(index, item, schema) if schema is not None else (0, MAX_RANK)
    return Operand(
        index=index,
        types=types,
        name=item.name,
        variable=item.type_str if item.type_str in variables else "",
        min_rank=low,
        max_rank=high,
        optional=item.option.name == "Optional",
        variadic=item.option.name == "Variadic",
        homogeneous=bool(item.is_homogeneous),
        least=int(item.min_arity),
    )


def opera_type(name: str) -> str:
    """Return `float32` for `tensor(float)`, `sequence(int64)` for `seq(tensor(int64))`, and so on."""
    kind, _, rest = name.partition("(")
    inner = rest.removesuffix(")")
    if kind == "tensor":
        return NAMES.get(inner, inner)
    return f"{'sequence' if kind == 'seq' else kind}({opera_type(inner)})" if rest else name


def onnx_type(name: str) -> str:
    """Inverse of `opera_type`."""
    kind, _, rest = name.partition("(")
    if rest:
        return f"{'seq' if kind == 'sequence' else kind}({onnx_type(rest.removesuffix(')'))})"
    return f"tensor({ {ours: theirs for theirs, ours in NAMES.items()}.get(name, name) })"


def _ranks(index: int, item: Any, schema: Any) -> tuple[int, int]:
    """Return the ranks that shape inference takes for an input of which nothing else is known; all where it refuses every one.

    Other inputs have types without shapes; attributes have their defaults, so that nothing is learnt of an operator whose
    inference wants a required one.
    """
    if not any(x.startswith("tensor") for x in item.types):
        return 0, MAX_RANK
    taken = [rank for rank in range(MAX_RANK + 1) if _infers(schema, index, rank)]
    return (taken[0], taken[-1]) if taken else (0, MAX_RANK)


def _infers(schema: Any, index: int, rank: int) -> bool:
    from onnx import helper, shape_inference

    needed = [x for place, x in enumerate(schema.inputs) if x.option.name != "Optional" or place == index]
    names = [x.name if x in needed else "" for x in schema.inputs]
    node = helper.make_node(schema.name, names, [x.name for x in schema.outputs], domain=schema.domain)
    types = {x.name: _unshaped(min(x.types, key=lambda y: (y != "tensor(float)", y))) for x in needed}
    known = types[schema.inputs[index].name]
    if not known.HasField("tensor_type"):
        return True
    known.tensor_type.shape.SetInParent()
    for _ in range(rank):
        known.tensor_type.shape.dim.add()
    imports = [helper.make_opsetid(schema.domain, schema.since_version)]
    try:
        shape_inference.infer_node_outputs(schema, node, types, opset_imports=imports)
    except Exception:  # whatever inference raises, it does not take this rank
        return False
    return True


def _unshaped(name: str) -> Any:
    from onnx import TypeProto

    from opera.libraries.onnx.codec import ELEMENT_TYPES

    proto, kind = TypeProto(), opera_type(name)
    if kind in ELEMENT_TYPES:
        proto.tensor_type.elem_type = ELEMENT_TYPES[kind]
        return proto
    inner = name.partition("(")[2].removesuffix(")")
    held = proto.sequence_type if name.startswith("seq") else proto.optional_type
    held.elem_type.CopyFrom(_unshaped(inner))
    return proto


def resolve(spec: Spec, since: int = 0) -> Spec:
    """Return a specification completed by the schema of one version (the newest where `since` is 0).

    What the file says of an attribute or operand stands, within what the schema admits; what it does not mention is the
    schema's. Attributes and operands that this version lacks are left out. Raises SourceError for an unknown operator.
    """
    known = versions(spec.operator, spec.domain)
    if not known:
        raise SourceError(
            f"{spec.file}:{spec.line}: onnx has no operator {spec.signature!r}",
            cause=near(spec.operator, [name for place, name in _versions() if place == spec.domain]),
        )
    base = skeleton(spec.operator, since or known[-1], spec.domain)
    said = {item.name: item for item in spec.attributes}
    attributes = tuple(_merged_attribute(item, said.get(item.name)) for item in base.attributes)
    places = {item.index: item for item in spec.inputs}
    last = places.get(-1)
    inputs = tuple(_merged(item, places.get(item.index, last if item.variadic else None)) for item in base.inputs)
    return msgspec.structs.replace(spec, since=base.since, attributes=attributes, inputs=inputs, outputs=base.outputs)


def _merged_attribute(base: Attribute, said: Attribute | None) -> Attribute:
    if said is None:
        return base
    default = said.default if base.default is None else base.default
    fields = {name: getattr(said, name) for name in ("dependent", "minimum", "maximum", "choices")}
    return msgspec.structs.replace(base, default=default, **fields)


def _merged(base: Operand, said: Operand | None) -> Operand:
    if said is None:
        return base
    types = tuple(x for x in base.types if x in said.types) or base.types
    ranks = max(base.min_rank, said.min_rank), min(base.max_rank, said.max_rank)
    if ranks[0] > ranks[1]:
        ranks = said.min_rank, said.max_rank
    fields = {name: getattr(said, name) for name in ("normal", "axis_bound", "minimum", "maximum")}
    return msgspec.structs.replace(base, types=types, min_rank=ranks[0], max_rank=ranks[1], **fields)
