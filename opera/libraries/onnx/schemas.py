"""What the installed onnx says about its operators' attributes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import numpy as np

from opera.libraries import rulings
from opera.libraries.documented import (
    TIES,
    Quote,
    Wrong,
    about_value,
    assigned,
    clause,
    consequence,
    exception,
    formula,
    omitted,
    prose,
    quoted,
    reaching,
    rule_on,
    sentence_on,
    special,
    telling,
)
from opera.libraries.onnx import codec
from opera.programs.program import Instance
from opera.programs.values import NO_DEFAULT, Tensor, Value

QUOTED = (re.compile(r"""["']([\w-]+)[,.]?["']"""), re.compile(r"`([\w-]+)`"))
"""How documentation names the values of a string attribute: in quotes, else in backticks, in which variables stand, too."""
CAPITALS = re.compile(r"\b[A-Z][A-Z\d_]+\b")
"""How it names them where they are in capitals, quoted or not."""
SHAPE = r"\b(?:shapes?|rank|dimensions?)\b"
FLAG = re.compile(
    r"\b(?:whether|boolean|or not|0 or 1|(?:if|set to) (?:true|`?1`?))\b|\b(?:if|when) `?\w+`? ?(?:=|is) ?`?[01]\b"
    r"|\b\w+=1 indicates|\b0 - .*\b1 - |\b0 is .*\b1 is |\bcorresponds to `false`|\(False\)|\btrue by default"
    r"|\bmust be one of [01] \(default\), or [01]|\bwhen computing the output of the hidden gate\b",
    re.I | re.S,
)
"""How the description of an integer attribute, 0 or 1 by default, says that it is a flag; but for what has more VALUES."""
VALUES = re.compile(r"`[2-9]`")
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
            out[operator] = {name: plain(value) for name, value in out[operator].items()}
    return out


def words(description: str, default: Any = None) -> list[str]:
    """Return the values of a string attribute that its documentation names; of those in capitals, where the default is."""
    found: list[str] = next(filter(None, (pattern.findall(description) for pattern in QUOTED)), [])
    if isinstance(default, str) and default.isupper():
        found = found + CAPITALS.findall(description)
    return [word for word in dict.fromkeys(found) if len(word) > 1]


def plain(value: Value) -> Value:
    """Strings come from onnx as bytes."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


def described(call: Instance) -> dict[str, str]:
    """Return the name of an input or attribute → its description in the schema of a call, of a flag with the range of such in
    words; nothing for an unknown operator.
    """
    schema = _schema(call)
    if schema is None:
        return {}
    flags = {x.name: f"{x.description} It is in [0, 1]." for x in schema.attributes.values() if is_flag(x)}
    return {x.name: x.description for x in (*schema.inputs, *schema.attributes.values())} | flags


def is_flag(attribute: Any) -> bool:
    """Whether an attribute of a schema is a flag, by its default and its description: ONNX's are integers."""
    default, said = attribute.default_value, attribute.description
    stated = default.HasField("i") and default.i in (0, 1) and attribute.name != "axis"
    return bool(stated and FLAG.search(said) and not VALUES.search(said))


def _schema(call: Instance) -> Any:
    """Return the schema of a call's operator in its opset, None where onnx does not know it."""
    import onnx.defs

    domain, _, name = call.operator.rpartition("::")
    stated: Any = call.context.get("opset", {})
    try:
        return onnx.defs.get_schema(name, int(stated.get(domain, 0)) or onnx.defs.onnx_opset_version(), domain)
    except onnx.defs.SchemaError:
        return None


def fixed(call: Instance) -> frozenset[str]:
    """Return the names of the inputs that can be of one type alone, by the schema of a call."""
    schema = _schema(call)
    return frozenset() if schema is None else frozenset(x.name for x in schema.inputs if len(x.types) == 1)


def optional(call: Instance) -> frozenset[str]:
    """Return the names of the attributes and inputs that may be left out, by the schema of a call."""
    schema = _schema(call)
    if schema is None:
        return frozenset()
    inputs = (x.name for x in schema.inputs if x.option == x.option.Optional)
    return frozenset((*(name for name, x in schema.attributes.items() if not x.required), *inputs))


def quotes(call: Instance, parameters: list[str], wrong: Wrong) -> list[Quote]:
    """Return what the schema of a call says of attributes and inputs, of what is wrong, and of uncommon types and inputs.

    Empty for an operator that onnx does not know.
    """
    schema = _schema(call)
    if schema is None:
        return []
    domain, _, name = call.operator.rpartition("::")
    page = f"https://onnx.ai/onnx/operators/onnx_{domain.replace('.', '')}_{name}.html"
    address = f"{page}#l-onnx-op{domain.replace('.', '-')}-{name.lower()}-{schema.since_version}"
    found = [Quote(about, text, address, settles=True) for about, text in _settling(schema, call, wrong)]
    found += [Quote("the rule", text, address) for x in wrong.told if (text := _rule(schema, x))]
    ruled = {word for x in wrong.told if _rule(schema, x) for word in x.split()}
    for key in parameters:
        if key in schema.attributes:
            text, value = schema.attributes[key].description, call.params.get(key)
            exact, said = bool(clause(text, value)), about_value(text, value)
            about = f"attribute `{key}`"
            if key in wrong.omitted:
                found.append(Quote(about, omitted("", key, text) or _may_go(schema, key), address))
            elif exact or not (ruled and isinstance(value, str)):  # which of several modes it has is not that rule
                general = not (exact or (isinstance(value, str) and re.search(rf"\b{re.escape(value)}\b", said)))
                found.append(Quote(about, said, address, exact=exact, general=general))
            if wrong.symptom == "shape":
                outputs = " ".join(x.description for x in schema.outputs if x.name == wrong.output)
                found.append(Quote(f"output `{wrong.output}`", assigned(outputs, key, value), address))
        for x in schema.inputs:
            if x.name == key and key not in ruled:
                said = omitted("", key, x.description) or _may_go(schema, key) if key in wrong.omitted else ""
                found.append(Quote(f"input `{key}`", said or reaching(x.description), address, general=not said))
        if wrong.symptom in ("shape", "value") and (text := exception(prose(schema.doc, call), key)):
            found.append(Quote("an exception", text, address))
    found += [Quote(about, text, address) for about, text in _of_wrong(schema, call, parameters, wrong)]
    admitted: dict[str, list[str]] = {}
    for item, given in zip(schema.inputs, call.inputs, strict=False):
        dtype = given.value.dtype if isinstance(given.value, Tensor) else COMMON[0]
        written = "tensor(" + {"float64": "double"}.get(dtype, dtype) + ")"
        if dtype not in COMMON and written in item.types:
            admitted.setdefault(f"Among the types of {item.type_str} is {written}.", []).append(f"`{item.name}`")
    for text, names in admitted.items():
        found.append(Quote(f"input{'s' * (len(names) > 1)} {', '.join(names)}", text, address, types=True))
    if wrong.symptom not in ("count", "shape", "dtype", "value", "nan-mask") and (text := _apart(schema, call)):
        found.append(Quote("the types", text, address, types=True))
    target = _target(call)
    found += _cast(call, target, schema, address)
    for words, pattern in special(call) if target not in LOW else ():  # what is said of all types is not said of these
        if text := sentence_on(prose(schema.doc, call), pattern):
            found.append(Quote(words, text, address))
    return telling(found)


def _may_go(schema: Any, name: str) -> str:
    """Return what a schema says of an attribute that it does not require, of an optional input; nothing of others."""
    found = schema.attributes.get(name)
    if found is not None:
        return "" if found.required else f"{quoted(found.description)} (required: False)"
    optional_ = (x for x in schema.inputs if x.name == name and x.option == x.option.Optional)
    return next((f"(optional) {quoted(x.description)}" for x in optional_), "")


def _settling(schema: Any, call: Instance, wrong: Wrong) -> Iterator[tuple[str, str]]:
    """Yield what settles what is expected of the wrong output: a sentence on the very case, or the type that it shares."""
    place = call.outputs.index(wrong.output) if wrong.output in call.outputs else len(schema.outputs)
    item = schema.outputs[place] if place < len(schema.outputs) else None
    about = f"output `{wrong.output}`"
    if said := rulings.shape_of_scalar(schema.doc, call, wrong):
        yield about, said
    if item is not None and (said := rulings.same_as_input(item.description, call, wrong, output=True)):
        yield about, said
    for key in call.params.keys() & schema.attributes.keys():
        if said := rulings.of_each_number(schema.attributes[key].description, call, wrong):
            yield f"attribute `{key}`", said
    pairs = [(x, y.value) for x, y in zip(schema.inputs, call.inputs, strict=False) if isinstance(y.value, Tensor)]
    if wrong.symptom == "dtype" and item is not None and len(item.types) > 1:
        for formal, value in pairs:
            if formal.type_str == item.type_str and value.dtype == wrong.expected != wrong.actual:
                yield about, f"`{item.name}` and `{formal.name}` are both of type {item.type_str}."
                return


def _rule(schema: Any, told: str) -> str:
    """Return the sentence of the operator's whole text that says what is broken, by the words of what is told; or nothing."""
    items = (*schema.attributes.values(), *schema.inputs, *schema.outputs)
    return next(filter(None, (rule_on(x, told) for x in (schema.doc, *(x.description for x in items)))), "")


def _apart(schema: Any, call: Instance) -> str:
    """Return what is said of the types of inputs that are given two dtypes, and have types of their own; else nothing."""
    pairs = zip(schema.inputs, call.inputs, strict=False)
    given = {x.type_str: y.value.dtype for x, y in pairs if isinstance(y.value, Tensor)}
    said = {x.type_param_str: quoted(x.description) for x in schema.type_constraints if x.type_param_str in given}
    return (
        " ".join(f"{name}: {text}" for name, text in said.items()) if len(set(given.values())) > 1 < len(said) else ""
    )


def _of_wrong(schema: Any, call: Instance, parameters: list[str], wrong: Wrong) -> Iterator[tuple[str, str]]:
    """Yield what a schema says of the output that is wrong: its one type, shape, formula, ties, when special numbers result.

    What is said of its shape holds of all calls, so where a parameter decides nothing is.
    """
    name, doc = wrong.output, prose(schema.doc, call)
    [item] = [x for x in schema.outputs if x.name == name] or [None]
    if item is None:
        return
    alone = next(iter(item.types)) if len(item.types) == 1 else ""
    if wrong.symptom == "dtype" and alone:
        yield f"output `{name}`", f"{quoted(item.description)} Its type is {alone}."
    elif wrong.symptom == "shape" and not parameters:
        if said := sentence_on(doc, rf"(?=.*`{re.escape(name)}`).*{SHAPE}") or sentence_on(item.description, SHAPE):
            yield f"output `{name}`", said
    elif wrong.symptom in ("value", "nan-mask"):
        if said := formula(schema.doc, name):
            yield f"output `{name}`", said
        first = next((x.value for x in call.inputs if isinstance(x.value, Tensor)), None)
        indices = alone == "tensor(int64)" and first is not None and len(np.unique(first.array())) < first.array().size
        if indices and (said := sentence_on(doc, TIES)):
            yield "ties", said
        described = (schema.attributes[x].description for x in parameters if x in schema.attributes)
        results = (consequence(x, wrong.expected) for x in (doc, *described))
        if said := next(filter(None, results), ""):
            yield "what results", said


LOW = frozenset(name for name in codec.DTYPES.values() if name.startswith(("float8", "float6", "float4")))
"""Dtypes that casts follow rules of their own to."""
BEYOND = {"numbers above its range": "[x] > FLT_MAX", "numbers below its range": "[x] < -FLT_MAX"}
CELLS = {"NaN": "NaN", "infinities": "Inf", **BEYOND}
"""What is special about inputs (opera.libraries.documented.special), or beyond a type → how a table of casts calls it."""
PAGES = {
    "float4_e2m1fn": ("https://onnx.ai/onnx/technical/float4.html", {"NaN": "6", "infinities": "6, -Inf: -6"}),
}
"""dtype that has a page of its own → its address, and what its table says that special values become."""


def _target(call: Instance) -> str:
    """Return the dtype that a call casts to, empty where it casts to none."""
    number = call.params.get("to")
    like = (x.value.dtype for x in call.inputs if x.name == "target_type" and isinstance(x.value, Tensor))
    return codec.DTYPES.get(number, "") if isinstance(number, int) else next(like, "")


def _cast(call: Instance, target: str, schema: Any, address: str) -> Iterator[Quote]:
    """Yield what is documented of special values that are cast: by the tables of the operator, or of the one that it names,
    or the page of the type; and by which attribute what is beyond the type is made one of its numbers.
    """
    kinds = [words for words, _ in special(call) if words in CELLS] + _beyond(call, target)
    if target in PAGES:
        page, says = PAGES[target]
        yield from (
            Quote(f"{words} cast to `{target}`", f"{CELLS[words]} becomes {says[words]}.", page)
            for words in kinds if words in says
        )  # fmt: skip
    column = target.partition("_")[2].upper()
    named = re.search(r"[Ss]ee documentation of the (\w+) operator", schema.doc)
    other = _schema(msgspec.structs.replace(call, operator=named[1])) if named else None
    tables = [rows for x in (schema, other) if x for rows in _tables(x.doc) if column and column in rows[0]]
    if not tables:
        return
    rows = tables[-1] if len(tables) > 1 and call.params.get("saturate", 1) == 0 else tables[0]
    place = rows[0].index(column)
    for words in kinds:
        for row in rows[1:]:
            if row[0] == CELLS[words] and place < len(row):
                yield Quote(f"{words} cast to `{target}`", f"{row[0]} becomes {row[place]}.", address)
    if "saturate" in schema.attributes and set(kinds) & BEYOND.keys():
        yield Quote("attribute `saturate`", quoted(schema.attributes["saturate"].description), address)


def _beyond(call: Instance, target: str) -> list[str]:
    """Return on which sides finite numbers of the first input are beyond a dtype of few bits that they are cast to."""
    first = call.inputs[0].value if call.inputs else None
    if target not in LOW or not isinstance(first, Tensor) or first.dtype == "string":
        return []
    import ml_dtypes

    most, numbers = float(ml_dtypes.finfo(target).max), np.asarray(first.numbers(), np.float64)
    finite = numbers[np.isfinite(numbers)]
    return [words for words, found in zip(BEYOND, (finite > most, finite < -most), strict=True) if found.any()]


def _tables(doc: str) -> Iterator[list[list[str]]]:
    """Yield the tables of a description in Markdown: rows of cells, the header first."""
    for lines in re.findall(r"(?m)(?:^\s*\|.*\|\s*$\n?)+", doc):
        rows = (line.replace("\\", "").strip().strip("|") for line in lines.strip().splitlines())
        cells = [[cell.strip() for cell in row.split("|")] for row in rows]
        yield [row for row in cells if not all(re.fullmatch(r"[-: ]+", cell) for cell in row)]
