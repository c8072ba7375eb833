"""What TVM's converters read of an operator, by their source: which parameters and inputs they never look at."""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from opera.compilers.shared.packing import DROPS, NEVER

NAMED, PLACED, NODE = "named", "placed", "node"
"""What a variable holds: parameters by their names, arguments by their places, or a node of torch.fx, which has both."""
GETTERS = ("get", "pop", "setdefault")
HELD = {"args": PLACED, "kwargs": NAMED}
"""What of a node of torch.fx holds its arguments."""
HARMLESS = ("target", "name", "op", "meta", "users", "graph", "type")
"""What of a node of torch.fx is none of its arguments."""
PACKAGE = "tvm.relax.frontend"

Keys = set[str | int]


class _Whole(Exception):
    """A whole list of parameters goes where it is not known what is read of it."""


class Given(msgspec.Struct, frozen=True):
    """What a model gives to an argument of a converter.

    Attributes:
        holds: What the argument is: NAMED, PLACED or NODE.
        names: How each parameter or input is told → the names or places that it may be read by.
    """

    holds: str
    names: Mapping[str, frozenset[str | int]]


def told(name: str, function: Any, given: Mapping[str, Given], unused: Collection[str] = ()) -> str:
    """Return where a converter stands, and what it never reads of what it is given: `onnx_frontend.py:3825 Resize._impl_v18
    never reads antialias, axes`. Of an argument that goes where nobody sees what becomes of it, nothing is said.

    Args:
        name: What the converter is called.
        function: It, bound or not, or a functools.partial of it.
        given: By its arguments.
        unused: What nothing of the imported module uses, whatever the converter reads.
    """
    while isinstance(function, functools.partial):
        function = function.func
    code, unread = function.__code__, []
    for argument, what in given.items():
        with suppress(_Whole):
            read = _read(function, {argument: what.holds}, set())
            unread += [x for x, keys in what.names.items() if not keys & read]
    place = f"{Path(code.co_filename).name}:{_line(code)} {name}"
    dropped = [x for x in unused if x not in unread]
    place += f"{NEVER}{', '.join(unread)}" if unread else ""
    return place + (f"{DROPS}{', '.join(dropped)}" if dropped else "")


def _line(code: Any) -> int:
    """Return the line of a definition, below its decorators."""
    found = _definitions(code.co_filename).get(code.co_firstlineno, [])
    return int(getattr(found[0], "lineno", 0)) if found else int(code.co_firstlineno)


def _read(function: Any, roles: dict[str, str], seen: set[Any]) -> Keys:
    """Return the names and places of parameters that a function reads, and what it calls with them. Raises _Whole."""
    bare = getattr(function, "__func__", function)
    key = (bare.__code__, frozenset(roles.items()))
    if key in seen:
        return set()
    seen.add(key)
    return _Reading(function, roles, seen).keys()


class _Reading:
    def __init__(self, function: Any, roles: dict[str, str], seen: set[Any]) -> None:
        self._function, self._roles, self._seen = function, dict(roles), seen
        self._tree = _definition(function)
        self._above = {below: node for node in ast.walk(self._tree) for below in ast.iter_child_nodes(node)}
        self._found: Keys = set()

    def keys(self) -> Keys:
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Assign):
                self._assigned(node)
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Name) and node.id in self._roles and isinstance(node.ctx, ast.Load):
                self._used(node, self._roles[node.id])
        return self._found

    def _assigned(self, node: ast.Assign) -> None:
        """Know the variables that hold a node's arguments."""
        [target, *more] = node.targets
        match target, node.value:
            case ast.Name(id=name), ast.Attribute(value=ast.Name(id=of), attr=what):
                if self._node(of) and what in HELD:
                    self._hold(name, HELD[what], more)
            case ast.Name(id=name), ast.Call(func=ast.Attribute(attr="retrieve_args"), args=[ast.Name(id=of)]):
                if self._node(of):
                    self._hold(name, PLACED, more)
            case (
                ast.Tuple(elts=[ast.Name(id=args), ast.Name(id=kwargs)]),
                ast.Call(func=ast.Attribute(attr="normalized_arguments")),
            ):
                self._hold(args, PLACED, more)
                self._hold(kwargs, NAMED, more)

    def _node(self, name: str) -> bool:
        return self._roles.get(name) == NODE

    def _hold(self, name: str, role: str, more: list[Any]) -> None:
        if more or self._roles.get(name, role) != role:
            raise _Whole
        self._roles[name] = role

    def _used(self, node: ast.expr, role: str) -> None:
        """Note what is read of an expression that holds parameters. Raises _Whole where that is not known."""
        above = self._above.get(node)
        match above:
            case ast.Subscript(slice=ast.Constant(value=str() | int() as key)) if above.value is node:
                if isinstance(above.ctx, ast.Load):
                    self._found.add(key)
            case ast.Attribute(attr=attribute) if role == NODE and attribute in HELD:
                self._used(above, HELD[attribute])
            case ast.Attribute(attr=attribute) if role == NODE and attribute in HARMLESS:
                pass
            case ast.Attribute(attr="normalized_arguments") if role == NODE:
                pass
            case ast.Attribute(attr=attribute) if role == NAMED and attribute in GETTERS:
                self._got(self._above.get(above))
            case ast.Compare(left=ast.Constant(value=str() as key), ops=[ast.In() | ast.NotIn()]):
                self._found.add(key)
            case ast.Call(func=ast.Name(id="len")):
                pass
            case ast.Assign() if role != NODE and node is above.value:
                self._kept(above)
            case ast.Call() if node in above.args:
                self._called(above, node, role)
            case ast.keyword(arg=str()) if isinstance(call := self._above.get(above), ast.Call):
                self._called(call, above, role)
            case _:
                raise _Whole

    def _got(self, call: ast.AST | None) -> None:
        match call:
            case ast.Call(args=[ast.Constant(value=str() as key), *_]):
                self._found.add(key)
            case _:
                raise _Whole

    def _kept(self, assigned: ast.Assign) -> None:
        """Let through `args = node.args`, whose variable is known."""
        match assigned:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Attribute()) if name in self._roles:
                pass
            case _:
                raise _Whole

    def _called(self, call: ast.Call, argument: ast.expr | ast.keyword, role: str) -> None:
        """Read on in the function that is called with a whole list of parameters."""
        match call.func:
            case ast.Attribute(attr="normalized_arguments") if role == NODE:
                return
            case ast.Attribute(attr="retrieve_args") if role == NODE:
                assigned = self._above.get(call)
                if not (isinstance(assigned, ast.Assign) and isinstance(assigned.targets[0], ast.Name)):
                    self._used(call, PLACED)
                return
        function = self._callee(call.func)
        if any(isinstance(x, ast.Starred) for x in call.args):
            raise _Whole
        names = list(inspect.signature(function).parameters)
        if isinstance(argument, ast.keyword):
            names = [x for x in names if x == argument.arg]
        else:
            names = names[call.args.index(argument) :]
        if not names:
            raise _Whole
        self._found |= _read(function, {names[0]: role}, self._seen)

    def _callee(self, node: ast.expr) -> Any:
        """Return the function of TVM's importers that an expression names. Raises _Whole."""
        function: Any = None
        owner, names = getattr(self._function, "__self__", None), _globals(self._function)
        match node:
            case ast.Name(id=name):
                function = names.get(name)
            case ast.Attribute(value=ast.Name(id="cls" | "self"), attr=name):
                function = getattr(owner, name, None)
            case ast.Attribute(value=ast.Name(id=of), attr=name):
                function = getattr(names.get(of), name, None)
        bare = getattr(function, "__func__", function)
        if not inspect.isfunction(bare) or not bare.__module__.startswith(PACKAGE):
            raise _Whole
        return function


def _globals(function: Any) -> Mapping[str, Any]:
    found: Mapping[str, Any] = getattr(function, "__func__", function).__globals__
    return found


def _definition(function: Any) -> ast.AST:
    """Return the one function or lambda that begins at a function's first line. Raises _Whole."""
    code = getattr(function, "__func__", function).__code__
    found = _definitions(code.co_filename).get(code.co_firstlineno, [])
    if len(found) != 1:
        raise _Whole
    return found[0]


@cache
def _definitions(file: str) -> dict[int, list[ast.AST]]:
    """Return line → the functions and lambdas of a file that begin there; a decorated one begins at its first decorator."""
    try:
        tree = ast.parse(Path(file).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return {}
    found: dict[int, list[ast.AST]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            decorators = getattr(node, "decorator_list", [])
            found.setdefault(decorators[0].lineno if decorators else node.lineno, []).append(node)
    return found
