"""Whose failure is it? Decided by where the traceback leads. Needs the standard library only.

A failure is the compiler's only if code of the compiler's own packages raised it, or native code that they hold. What
raised in opera, in an adapter, or in a package that an adapter called by itself, is opera's failure; what raised in the
library's own packages while an exported file was read is the exporter's.
"""

from __future__ import annotations

import ast
import linecache
import sys
import traceback
from collections.abc import Iterable
from types import CodeType, FrameType, TracebackType
from typing import Any

COMPILER, LIBRARY, BEFORE, OPERA = "compiler", "library", "before", "opera"
"""Whose a failure is: BEFORE is what of the library makes that which the compiler works on (Frontend.BEFORE)."""

MISTAKES = (TypeError, AttributeError, NameError, LookupError, ImportError, AssertionError)
"""What is raised in a line of opera's own without a frame below it is opera's mistake, whatever it called."""

UNKNOWN = object()


def within(module: str, packages: Iterable[str]) -> bool:
    """Whether a module is one of the packages, or in one."""
    return any(module == name or module.startswith(f"{name}.") for name in packages)


def packages_of(compiler: Any, frontend: Any) -> tuple[str, ...]:
    """Return the packages whose failures are a frontend's: its PACKAGES, else the top-level ones that are preloaded for it.

    The adapter's own package never counts.
    """
    declared = getattr(frontend, "PACKAGES", None)
    if declared is not None:
        return tuple(declared)
    names = [*compiler.PRELOAD, *(name for variant in frontend.VARIANTS for name in variant.preload)]
    own = adapter_of(frontend).partition(".")[0]
    return tuple(dict.fromkeys(root for name in names if (root := name.partition(".")[0]) not in ("opera", own)))


def adapter_of(adapter: Any) -> str:
    """Return the name of the module that a frontend (or a library's adapter) is, or that its class is made in."""
    name = getattr(adapter, "__name__", None)
    return str(name if isinstance(name, str) and name in sys.modules else type(adapter).__module__)


def blame(
    error: BaseException,
    packages: tuple[str, ...],
    adapter: str,
    library: tuple[str, ...] = (),
    before: tuple[str, ...] = (),
) -> str:
    """Return COMPILER, LIBRARY, BEFORE or OPERA.

    Args:
        packages: Those of the compiler. They come first: a module of the adapter's package may belong to them.
        adapter: The module of the adapter; its whole top-level package is opera's side.
        library: Packages of the library whose exported file was given to the compiler; empty where there is none.
        before: Those of its packages that make what the compiler works on (`torch.export`): asked by the adapter before it
            asks the compiler, or by the compiler itself.
    """
    links = list(_links(error.__traceback__))
    names = _names(error)
    ours = ("opera", adapter if within(adapter, packages) else adapter.partition(".")[0])
    sides = [within(name, ours) and not within(name, packages) for name in names]
    last = max((place for place, own in enumerate(sides) if own), default=-1)
    below = names[last + 1 :]
    if (below and within(below[0], before)) or asked(error, packages, before):
        return BEFORE
    if any(within(name, packages) for name in below):
        return COMPILER
    if below:
        return LIBRARY if any(within(name, library) for name in below) else OPERA
    if not links or isinstance(error, MISTAKES):
        return OPERA
    return _by_line(error, links[-1], packages, library)


def asked(error: BaseException, packages: tuple[str, ...], before: tuple[str, ...]) -> bool:
    """Whether it came out of a module of `before` that a function of the packages called, with none of these below it again.

    Where one exception was made of another, the first of them tells: that is what went wrong. A package that holds `before`
    itself, as `torch` does, is no caller of it.
    """
    if not before:
        return False
    while error.__cause__ is not None and error.__cause__.__traceback__ is not None:
        error = error.__cause__
    callers = tuple(x for x in packages if not any(within(y, (x,)) for y in before))
    names = _names(error)
    last = max((place for place, name in enumerate(names) if within(name, callers)), default=-1)
    return 0 <= last < len(names) - 1 and within(names[last + 1], before)


def frames(error: BaseException, most: int = 40) -> tuple[str, ...]:
    """Return the last frames of a traceback as `module:function:line`, outermost first.

    Bindings add frames of no module for what was called by native code: of those the file is told, as of its package.
    """
    found = [
        f"{frame.f_globals.get('__name__') or _file(frame.f_code)}:{frame.f_code.co_qualname}:{line}"
        for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    return tuple(found[-most:])


def _file(code: CodeType) -> str:
    return code.co_filename.rpartition("/site-packages/")[2] if code.co_filename[:1] != "<" else "?"


def _names(error: BaseException) -> list[str]:
    """Return the modules that an exception came through, outermost first."""
    return [str(link.tb_frame.f_globals.get("__name__", "")) for link in _links(error.__traceback__)]


def _links(link: TracebackType | None) -> Iterable[TracebackType]:
    while link is not None:
        yield link
        link = link.tb_next


def _by_line(error: BaseException, link: TracebackType, packages: tuple[str, ...], library: tuple[str, ...]) -> str:
    """Decide for an error without a frame below opera's own: native code raised it, or the line itself did."""
    node = _failing_expression(link.tb_frame.f_code, link.tb_lasti)
    owners = [_owner(value) for value in _operands(node, link.tb_frame)]
    if any(within(owner, packages) for owner in owners):
        return COMPILER
    if any(within(owner, library) for owner in owners):
        return LIBRARY
    kind = type(error)
    if within(kind.__module__, packages):
        return COMPILER
    told = bool(owners) and all(owners)
    # What cannot be told and is a RuntimeError: that is what bindings make of an exception of C++.
    return COMPILER if node is not None and not told and kind is RuntimeError else OPERA


def _failing_expression(code: CodeType, instruction: int) -> ast.expr | None:
    """Return the expression that an instruction belongs to, None where it is none or the source is not to be had."""
    positions = list(code.co_positions())
    if not 0 <= instruction // 2 < len(positions):
        return None
    source = "".join(linecache.getlines(code.co_filename))
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return None
    line, last_line, column, last_column = positions[instruction // 2]  # columns are of bytes, as those of the tree
    for node in ast.walk(tree):
        if isinstance(node, ast.expr):
            found = (node.lineno, node.end_lineno, node.col_offset, node.end_col_offset)
            if found == (line, last_line, column, last_column):
                return node
    return None


def _operands(node: ast.expr | None, frame: FrameType) -> list[Any]:
    """Return what an expression asked to do something: the callee of a call, the operands of an operator."""
    match node:
        case ast.Call(func=callee):
            asked = [callee]
        case ast.BinOp(left=left, right=right):
            asked = [left, right]
        case ast.Compare(left=left, comparators=others):
            asked = [left, *others]
        case ast.UnaryOp(operand=operand):
            asked = [operand]
        case ast.Subscript(value=held):
            asked = [held]
        case _:
            asked = []
    return [_value(each, frame) for each in asked]


def _value(node: ast.expr, frame: FrameType) -> Any:
    """Return what a name, or attributes of one, stand for, without running anything that a call would; else UNKNOWN."""
    match node:
        case ast.Name(id=name):
            for scope in (frame.f_locals, frame.f_globals, frame.f_builtins):
                if name in scope:
                    return scope[name]
        case ast.Attribute(value=inner, attr=attribute):
            held = _value(inner, frame)
            if held is not UNKNOWN:
                try:
                    return getattr(held, attribute)
                except Exception:  # a property of the compiler's: then it cannot be told
                    return UNKNOWN
        case ast.BoolOp(values=values):
            found = [_value(each, frame) for each in values]
            return next((each for each in found if each is not UNKNOWN and each), UNKNOWN)
    return UNKNOWN


def _owner(value: Any) -> str:
    """Return the module that a callable belongs to, an empty string where it cannot be told."""
    if value is UNKNOWN or value is None:
        return ""
    held = getattr(value, "__self__", None)
    for one in (value, type(held) if held is not None and not isinstance(held, type(sys)) else held, type(value)):
        module = getattr(one, "__name__" if isinstance(one, type(sys)) else "__module__", None)
        if isinstance(module, str) and module and module != "builtins":
            return module
    return "builtins"
