"""Reads the scripts that DeepREL's runs leave behind. They are parsed, and nothing in them is ever run.

A script makes its arguments (literals, `torch.rand`, `torch.randint`, `clone`), then calls two operators, each in a `try`.
Whatever else it does makes that call unreadable.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from opera.errors import CorpusError

MAX_SIZE = 256 << 10
"""Bytes of a script."""
MAX_NODES = 20_000
RANDOM = {"torch.rand": 0, "torch.randint": 2}
"""What makes a tensor → which of its arguments is the shape."""
NOISE = ("clone", "cuda", "to_sparse")


class _Unreadable(Exception):
    """An expression is none of those that DeepREL writes."""


def records(source: bytes) -> list[tuple[str, dict[str, Any]]]:
    """Return the calls of a script as (API, record). Raises CorpusError where it is none of DeepREL's."""
    if len(source) > MAX_SIZE:
        raise CorpusError(f"a script larger than {MAX_SIZE >> 10} KiB")
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise CorpusError(f"no Python script: {type(error).__name__}") from None
    if sum(1 for _ in ast.walk(tree)) > MAX_NODES:
        raise CorpusError(f"a script of more than {MAX_NODES} nodes")
    reader = _Reader()
    found = list(reader.read(tree.body))
    if not found:
        raise CorpusError("a script that calls nothing as DeepREL's do")
    return found


class _Reader:
    """Knows what the variables of a script stand for."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {}
        self.objects: dict[str, ast.Call] = {}

    def read(self, body: list[ast.stmt]) -> Iterator[tuple[str, dict[str, Any]]]:
        """Take assignments in, and yield the calls whose results are kept."""
        for statement in body:
            if isinstance(statement, ast.Try):
                yield from self.read(statement.body)
            if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
                continue
            target = statement.targets[0]
            try:
                if isinstance(target, ast.Name):
                    self._assign(target.id, statement.value)
                elif isinstance(target, ast.Subscript) and isinstance(statement.value, ast.Call):
                    yield self._call(statement.value)
            except _Unreadable:
                continue

    def _assign(self, name: str, value: ast.expr) -> None:
        self.names.pop(name, None)
        if isinstance(value, ast.Call) and _dotted(value.func).rpartition(".")[2][:1].isupper():
            self.objects[name] = value
        else:
            self.names[name] = self._value(value)

    def _call(self, call: ast.Call) -> tuple[str, dict[str, Any]]:
        """Return what `api(...)`, `api(...)(*input_signature)`, `object(*input_signature)` or `tensor.method(...)` call."""
        if isinstance(call.func, ast.Call):
            return _dotted(call.func.func), self._record(call.func) | {"input_signature": self._spread(call)}
        title = _dotted(call.func)
        if title in self.objects:
            made = self.objects[title]
            return _dotted(made.func), self._record(made) | {"input_signature": self._spread(call)}
        if isinstance(call.func, ast.Attribute) and not title.startswith("torch."):
            method = f"torch.Tensor.{call.func.attr}"
            return method, {"_input_tensor": self._value(call.func.value)} | self._record(call)
        return title, self._record(call)

    def _spread(self, call: ast.Call) -> Any:
        if len(call.args) == 1 and isinstance(call.args[0], ast.Starred) and not call.keywords:
            return self._value(call.args[0].value)
        return [self._value(item) for item in call.args]

    def _record(self, call: ast.Call) -> dict[str, Any]:
        found = {f"parameter:{place}": self._value(item) for place, item in enumerate(call.args)}
        for keyword in call.keywords:
            if keyword.arg is None:
                raise _Unreadable
            found[keyword.arg] = self._value(keyword.value)
        return found

    def _value(self, node: ast.expr, depth: int = 0) -> Any:
        if depth > 20:
            raise _Unreadable
        match node:
            case ast.Constant(value=None | bool() | int() | float() | str() as value):
                return value
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
                return -value
            case ast.Name(id=name) if name in self.names:
                return self.names[name]
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return [self._value(item, depth + 1) for item in items]
            case ast.Attribute():
                return _dotted(node)
            case ast.Call(func=ast.Attribute(attr=attribute, value=value), args=[]) if attribute in NOISE:
                return self._value(value, depth + 1)
            case ast.Call() if _dotted(node.func) in RANDOM:
                return self._tensor(node)
        raise _Unreadable

    def _tensor(self, call: ast.Call) -> dict[str, Any]:
        place = RANDOM[_dotted(call.func)]
        dtype = next((self._value(x.value) for x in call.keywords if x.arg == "dtype"), "torch.float32")
        if len(call.args) != place + 1:
            raise _Unreadable
        return {"shape": self._value(call.args[place]), "dtype": dtype}


def _dotted(node: ast.expr, depth: int = 0) -> str:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=attribute) if depth < 20:
            return f"{_dotted(value, depth + 1)}.{attribute}"
    return ""
