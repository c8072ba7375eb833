"""From the text of a .td file, published or of opera's own, to specifications. Nothing of a file is executed."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from opera.errors import NotInstalled, SourceError, near
from opera.sources.sionnx.spec import MAX_RANK, Attribute, Let, Node, Operand, Shape, Spec, Statement, Where

GRAMMAR = Path(__file__).with_name("osl.lark")
PUBLISHED_TYPES = {
    "f16": "float16", "f32": "float32", "f64": "float64", "i1": "bool", "i8": "int8", "i16": "int16", "i32": "int32",
    "i64": "int64", "ui8": "uint8", "ui16": "uint16", "ui32": "uint32", "ui64": "uint64", "str": "string",
}  # fmt: skip
"""Names of types in published files → dtypes as opera names them."""
DTYPES = frozenset(
    ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64")
    + ("bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu")
    + ("float4_e2m1fn", "int4", "uint4", "int2", "uint2", "complex64", "complex128", "string")
)
KINDS = frozenset(
    f"{kind}{many}"
    for kind in ("int", "float", "string", "tensor", "graph", "sparse_tensor", "type_proto")
    for many in ("", "s")
)
FIELDS = {
    "Attr": ("name", "types", "default", "minimum", "maximum"),
    "IOType": ("index", "types", "min_rank", "max_rank", "normal", "axis_bound", "minimum", "maximum", "optional"),
    "Instruction": ("operators", "attributes", "inputs", "outputs", "properties"),
}  # fmt: skip
"""Class of the language → its parameters, in order."""
LEAST = {"Attr": 2, "IOType": 2, "Instruction": 1}
PROPERTIES = ("broadcasting", "nonzero", "InferShape")
TERMINALS = {
    "NAME": "a name", "STRING": 'a string "..."', "INT": "a whole number", "FLOAT": "a number", "SIGNED": "a number",
    "OPERATOR": "an operator", "ANY": "?", "COMPARE": "a comparison", "ADD": "+ or -", "MUL": "*, / or %", "POW": "**",
    "LPAR": "(", "RPAR": ")", "LSQB": "[", "RSQB": "]", "LBRACE": "{", "RBRACE": "}", "LESSTHAN": "<", "MORETHAN": ">",
    "COMMA": ",", "SEMICOLON": ";", "COLON": ":", "EQUAL": "=", "SLICE": ":", "MINUS": "-", "__ANON_0": "..",
    "__ANON_1": "...", "$END": "the end of the file",
}  # fmt: skip


def parse(text: str, file: str) -> list[Spec]:
    """Return the specifications of a file, one for each operator that a definition of `Instruction` is for.

    Classes, and definitions of other classes (the published language's types and opcodes), are read over. A definition that
    lists several operators specifies all of them alike. Raises SourceError, which names file and line and says what was
    expected; NotInstalled without lark.
    """
    parser = _parser()
    import lark

    try:
        tree = parser.parse(text)
    except lark.exceptions.UnexpectedToken as error:
        raise _syntax(file, error.line, str(error.token), error.accepts or error.expected) from None
    except lark.exceptions.UnexpectedCharacters as error:
        raise _syntax(file, error.line, error.char, error.allowed or ()) from None
    except lark.exceptions.UnexpectedEOF as error:  # pragma: no cover - lalr reports $END as a token
        raise _syntax(file, text.count("\n") + 1, "the end of the file", error.expected) from None
    return [spec for item in tree.children if item.data == "def" for spec in _Definition(file, item).specs()]


@cache
def _parser() -> Any:
    try:
        import lark
    except ImportError:
        raise NotInstalled(
            "lark is not installed, which reads specifications", fix="pip install 'opera[generators]'"
        ) from None
    return lark.Lark(
        GRAMMAR.read_text(encoding="utf-8"), parser="lalr", propagate_positions=True, maybe_placeholders=True
    )


def _syntax(file: str, line: int, found: str, expected: Any) -> SourceError:
    words = sorted({TERMINALS.get(name, name.lower()) for name in expected if name not in ("COMMENT", "WS")})
    return SourceError(
        f"{file}:{line}: {found[:40]!r} is not expected here",
        cause=f"expected is {' or '.join(words)}" if words else "a character that the language does not have",
        fix="docs/sionnx.md tells the language",
    )


class _Definition:
    """One `def` of a file."""

    def __init__(self, file: str, tree: Any) -> None:
        self.file, self.tree = file, tree
        self.name, self.line = str(tree.children[0]), int(tree.meta.line)

    def specs(self) -> list[Spec]:
        parent = self.tree.children[1]
        if parent.children[0] != "Instruction":
            return []
        args = self._bound("Instruction", parent.children[1:], self.line)
        operators = [self._word(x, "an operator") for x in self._list(args["operators"], "a list of operators")]
        if not operators:
            raise self._wrong(self.line, f"{self.name} is for no operator", "Instruction<[Relu]>")
        properties = tuple(
            self._word(x, "a property") for x in self._list(args.get("properties"), "a list of properties")
        )
        for unknown in (x for x in properties if x not in PROPERTIES):
            raise self._wrong(
                self.line, f"there is no property {unknown!r}", " or ".join(PROPERTIES), near(unknown, PROPERTIES)
            )
        common = Spec(
            name=self.name,
            operator="",
            attributes=tuple(self._attribute(x) for x in self._list(args.get("attributes"), "a list of Attr")),
            inputs=tuple(self._operand(x) for x in self._list(args.get("inputs"), "a list of IOType")),
            outputs=tuple(self._operand(x) for x in self._list(args.get("outputs"), "a list of IOType")),
            properties=properties,
            body=tuple(self._statement(x) for x in self.tree.children[2:] if x is not None),
            file=self.file,
            line=self.line,
        )
        return [self._named(common, operator) for operator in operators]

    def _named(self, common: Spec, operator: str) -> Spec:
        import msgspec

        if operator.startswith("op_"):  # the published files' opcode; the definition is named after the operator
            operator = self.name.removesuffix("Op")
        domain, _, name = operator.rpartition("::")
        return msgspec.structs.replace(common, operator=name, domain="" if domain == "ai.onnx" else domain)

    def _bound(self, kind: str, values: list[Any], line: int) -> dict[str, Any]:
        fields = FIELDS[kind]
        if not LEAST[kind] <= len(values) <= len(fields):
            raise self._wrong(
                line, f"{kind} has {len(values)} arguments", f"{LEAST[kind]} to {len(fields)}: {', '.join(fields)}"
            )
        return dict(zip(fields, values, strict=False))

    def _template(self, tree: Any, kind: str) -> tuple[dict[str, Any], int]:
        if getattr(tree, "data", "") != "template" or tree.children[0] != kind:
            raise self._wrong(self._line(tree), f"{_shown(tree)} is no {kind}", f"{kind}<{', '.join(FIELDS[kind])}>")
        return self._bound(kind, tree.children[1:], int(tree.meta.line)), int(tree.meta.line)

    def _attribute(self, tree: Any) -> Attribute:
        args, line = self._template(tree, "Attr")
        types = tuple(self._type(x, line) for x in self._list(args["types"], "a list of types"))
        name = self._text(args["name"], line)
        minimum = self._texts(args.get("minimum"), line)
        choices: tuple[str, ...] = ()
        default = self._text(args["default"], line) if "default" in args else ""
        if types[:1] in (("string",), ("strings",)):
            choices, minimum = tuple(x.strip() for text in minimum for x in text.split(",")), ()
        maximum = self._texts(args.get("maximum"), line)
        return Attribute(
            name=name,
            types=types,
            default=None if default in ("", "?") else self._default(default, types, line),
            dependent=default == "?",
            minimum=tuple(self._bound_of(x, line) for x in minimum),
            maximum=tuple(self._bound_of(x, line) for x in maximum),
            choices=choices,
        )

    def _operand(self, tree: Any) -> Operand:
        args, line = self._template(tree, "IOType")
        index = self._whole(args["index"], line)
        ranks = [self._whole(args[x], line) if x in args else y for x, y in (("min_rank", 0), ("max_rank", MAX_RANK))]
        if not 0 <= ranks[0] <= ranks[1]:
            raise self._wrong(
                line, f"the ranks {ranks[0]} to {ranks[1]} are none", "a minimum that the maximum reaches"
            )
        return Operand(
            index=index,
            types=tuple(self._type(x, line) for x in self._list(args["types"], "a list of types")),
            min_rank=ranks[0],
            max_rank=ranks[1],
            normal=self._whole(args["normal"], line) != 0 if "normal" in args else True,
            axis_bound=self._whole(args["axis_bound"], line) != 0 if "axis_bound" in args else False,
            minimum=tuple(self._bound_of(x, line) for x in self._texts(args.get("minimum"), line)),
            maximum=tuple(self._bound_of(x, line) for x in self._texts(args.get("maximum"), line)),
            optional="optional" in args and self._whole(args["optional"], line) != 0,
            variadic=index == -1,
        )

    def _default(self, text: str, types: tuple[str, ...], line: int) -> Any:
        kind = types[0] if types else "string"
        if kind in ("string", "str"):
            return text
        if text.startswith("["):
            words = [x.strip() for x in text.strip("[]").split(",") if x.strip()]
            return words if kind == "strings" else [self._number(x, line) for x in words]
        return self._number(text, line)

    def _bound_of(self, text: str, line: int) -> float | str:
        return "?" if text.strip() == "?" else self._number(text, line)

    def _number(self, text: str, line: int) -> Any:
        try:
            return int(text) if re.fullmatch(r"\s*[-+]?\d+\s*", text) else float(text)
        except ValueError:
            raise self._wrong(line, f"{text[:40]!r} is no number", "a number in quotes, or ?") from None

    def _type(self, value: Any, line: int) -> str:
        """Return the name of a type: a dtype, a kind of attributes, `sequence<float32>`, `optional<sequence<int64>>`."""
        if getattr(value, "data", "") == "template":
            outer, inner = str(value.children[0]), value.children[1:]
            if outer not in ("sequence", "optional") or len(inner) != 1:
                raise self._wrong(line, f"there is no type {outer}<...>", "sequence<TYPE> or optional<TYPE>")
            return f"{outer}({self._type(inner[0], line)})"
        word = self._word(value, "a type")
        base, vector, length = word.rpartition("_v")
        if not (vector and length.isdigit()):
            base, vector, length = word, "", ""
        name = PUBLISHED_TYPES.get(base, base)
        if name not in DTYPES and name not in KINDS:
            known = [*PUBLISHED_TYPES, *sorted(DTYPES | KINDS)]
            raise self._wrong(line, f"there is no type {word!r}", "a type", near(word, known))
        return f"{name}{vector}{length}"

    def _list(self, tree: Any, what: str) -> list[Any]:
        if tree is None:
            return []
        if getattr(tree, "data", "") != "list":
            raise self._wrong(self._line(tree), f"{_shown(tree)} is no list", what)
        return [x for x in tree.children if x is not None]

    def _texts(self, tree: Any, line: int) -> tuple[str, ...]:
        return tuple(self._text(x, line) for x in self._list(tree, "a list of strings"))

    def _text(self, token: Any, line: int) -> str:
        if getattr(token, "type", "") != "STRING":
            raise self._wrong(line, f"{_shown(token)} is no string", 'a string "..."')
        return _unquoted(token)

    def _word(self, token: Any, what: str) -> str:
        if getattr(token, "type", "") not in ("NAME", "OPERATOR"):
            raise self._wrong(self._line(token), f"{_shown(token)} is not expected here", what)
        return str(token)

    def _whole(self, tree: Any, line: int) -> int:
        text = str(tree.children[0]) if getattr(tree, "data", "") == "number" else ""
        if not re.fullmatch(r"-?\d+", text):
            raise self._wrong(line, f"{_shown(tree)} is not expected here", "a whole number")
        return int(text)

    def _line(self, tree: Any) -> int:
        found = getattr(tree, "line", None) or getattr(getattr(tree, "meta", None), "line", None)
        return int(found or self.line)

    def _wrong(self, line: int, what: str, expected: str, meant: str = "") -> SourceError:
        cause = f"expected is {expected}" + (f"; {meant}" if meant else "")
        return SourceError(f"{self.file}:{line}: {what}", cause=cause, fix="docs/sionnx.md tells the language")

    def _statement(self, tree: Any) -> Statement:
        line = int(tree.meta.line)
        if tree.data == "let":
            name, value, default, required = tree.children
            return Let(
                str(name),
                _node(value),
                None if default is None else _node(default.children[0]),
                required is not None,
                line,
            )
        if tree.data == "where":
            return Where(_node(tree.children[0]), line)
        name, dims, values, repeated, required, distinct, condition = tree.children
        return Shape(
            str(name),
            _node(dims),
            None if values is None else _node(values),
            None if repeated is None else _node(repeated.children[0]),
            None if condition is None else _node(condition.children[0]),
            required is not None,
            distinct is not None,
            line,
        )


def _node(tree: Any) -> Node:
    """Return an expression's tree as plain data."""
    line, kind, parts = int(tree.meta.line or 0) if not tree.meta.empty else 0, str(tree.data), tree.children
    match kind:
        case "int":
            return Node(kind, (int(parts[0]),), line)
        case "float":
            return Node(kind, (float(parts[0]),), line)
        case "string":
            return Node(kind, (_unquoted(parts[0]),), line)
        case "none" | "true" | "false":
            return Node(kind, (), line)
        case "slice":
            return Node(kind, tuple(None if x is None else _node(x) for x in (parts[0], parts[1], parts[3])), line)
        case "each":
            names = tuple(str(x) for x in parts[1:-2] if x is not None)
            kept = None if parts[-1] is None else _node(parts[-1].children[0])
            return Node(kind, (_node(parts[0]), names, _node(parts[-2]), kept), line)
        case "call":
            return Node(kind, (str(parts[0]), *(_node(x) for x in parts[1:] if x is not None)), line)
    return Node(kind, tuple(_node(x) if hasattr(x, "data") else str(x) for x in parts if x is not None), line)


def _unquoted(token: Any) -> str:
    return re.sub(r"\\(.)", r"\1", str(token)[1:-1])


def _shown(tree: Any) -> str:
    return repr(str(tree)[:40]) if not hasattr(tree, "data") else f"a {tree.data}"
