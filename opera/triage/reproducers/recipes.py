"""Recipes of frontends as text: the functions that a script needs as they stand in their modules, and the steps that call them.

Modules are read, not imported: a script can be written where the compiler is not installed.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import msgspec

from opera.compilers import Recipe
from opera.programs.literals import fold

GIVEN = {
    "feeds": "FEEDS",
    "outputs": "OUTPUTS",
    "dtypes": "DTYPES",
    "model": "MODEL",
    "tensors": "TENSORS",
    "args": "ARGS",
    "signature": "SIGNATURE",
    "to_numpy": "to_numpy",
    "path": "path",
}
"""Parameter of a step → what a script gives it, see docs/extending.md: names that templates/LIBRARY/script.py.j2 defines."""


class Printed(msgspec.Struct, frozen=True):
    """A recipe as text.

    Attributes:
        imports: Lines that import what it uses, without numpy and the standard library.
        standard: Modules of the standard library that it uses, as lines.
        source: Its functions, and what they use in their modules.
        steps: A tuple of (stage, function, further arguments), as source.
    """

    imports: tuple[str, ...]
    standard: tuple[str, ...]
    source: str
    steps: str


def printed(recipe: Recipe) -> Printed:
    """Return the text of a recipe. Raises LookupError where a name is not there, or two of its functions share one."""
    stages = {"load": recipe.load, "compile": recipe.compile, "infer": recipe.infer}
    steps = [(stage, function) for stage, functions in stages.items() for function in functions]
    needed = _Needed()
    for _, function in steps:
        needed.add(*function.split(":"))
    shown = [_step(stage, function, recipe.more, needed) for stage, function in steps]
    lines = list(dict.fromkeys(needed.imports))
    standard = [line for line in lines if line.split()[1].partition(".")[0] in sys.stdlib_module_names]
    others = [line for line in lines if line not in standard and line != "import numpy as np"]
    others.sort(key=lambda line: (line.startswith("from"), line))
    return Printed(tuple(others), tuple(sorted(standard)), needed.source(), fold("(", shown, ")"))


def _step(stage: str, function: str, more: dict[str, str], needed: _Needed) -> str:
    """Return a step as source. The first parameter is the result before; a default is spelled where a later one is given."""
    module, _, name = function.partition(":")
    parameters = _read(module).parameters(name)[1:]
    last = max((place for place, (key, default) in enumerate(parameters) if key in more or default is None), default=-1)
    parts = [f'"{stage}"', name]
    for key, default in parameters[: last + 1]:
        if key in more:
            needed.add(*more[key].split(":"))
            parts.append(more[key].partition(":")[2])
        elif default is None and key not in GIVEN:
            raise LookupError(f"nothing is known to give to {key} of {function}")
        else:
            parts.append(GIVEN[key] if default is None else default)
    return f"({', '.join(parts)})"


class _Module:
    """A module of recipes as it is written."""

    def __init__(self, name: str) -> None:
        spec = importlib.util.find_spec(name)
        if spec is None or not spec.origin:
            raise LookupError(f"there is no module {name}")
        self.name = name
        self.lines = Path(spec.origin).read_text(encoding="utf-8").splitlines()
        self.defined: dict[str, ast.stmt] = {}
        self.imported: dict[str, tuple[str, str]] = {}  # name → module and name, of recipes
        self.outside: dict[str, list[str]] = {}  # name → lines that import it: `import a.b`, `import a.c` share a
        self.effects: list[ast.stmt] = []  # statements that define nothing: they are always needed
        for node in ast.parse("\n".join(self.lines)).body:
            self._note(node)

    def _note(self, node: ast.stmt) -> None:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.Assign(targets=[ast.Name(id=name)]):
                self.defined[name] = node
            case ast.ImportFrom(module=str(module), names=names, level=0) if self._is_recipe(module):
                self.imported |= {alias.name: (module, alias.name) for alias in names}
            case ast.ImportFrom(module=module, names=names):
                self.outside |= {x.asname or x.name: [f"from {module} import {_alias(x)}"] for x in names}
            case ast.Import(names=names):
                for x in names:
                    self.outside.setdefault(x.asname or x.name.partition(".")[0], []).append(f"import {_alias(x)}")
            case ast.Expr(value=ast.Constant()):
                pass
            case _:
                self.effects.append(node)

    def _is_recipe(self, module: str) -> bool:
        return module.rpartition(".")[0] == self.name.rpartition(".")[0] or module.startswith(
            "opera.compilers.recipes."
        )

    def parameters(self, function: str) -> list[tuple[str, str | None]]:
        """Return the parameters of a function with their defaults as source, None for those without."""
        module, name = self.imported.get(function, (self.name, function))
        if module != self.name:
            return _read(module).parameters(name)
        node = self.defined.get(function)
        if not isinstance(node, ast.FunctionDef):
            raise LookupError(f"{self.name} has no function {function}")
        names = [argument.arg for argument in node.args.args]
        defaults = [None] * (len(names) - len(node.args.defaults)) + [ast.unparse(x) for x in node.args.defaults]
        return list(zip(names, defaults, strict=True))

    def text(self, node: ast.stmt) -> str:
        """Return the lines of a statement, with the comments right above it."""
        first = min([node.lineno, *(x.lineno for x in getattr(node, "decorator_list", ()))]) - 1
        while first and self.lines[first - 1].startswith("#"):
            first -= 1
        return "\n".join(self.lines[first : node.end_lineno])


@cache
def _read(name: str) -> _Module:
    return _Module(name)


class _Needed:
    """What of some modules is needed."""

    def __init__(self) -> None:
        self.found: dict[str, dict[str, ast.stmt]] = {}  # module → name → statement; modules as they were come to
        self.imports: list[str] = []
        self._where: dict[str, str] = {}

    def add(self, module: str, name: str) -> None:
        """Add a name of a module, and all that it uses. Raises LookupError where it is not there."""
        read = _read(module)
        if name in read.imported:
            self.add(*read.imported[name])
        elif name in read.outside:
            self.imports += read.outside[name]
        elif name in read.defined:
            known = self.found.setdefault(module, {})
            if name in known:
                return
            if self._where.setdefault(name, module) != module:
                raise LookupError(f"{module} and {self._where[name]} both have a {name}: a script can hold one of them")
            known[name] = read.defined[name]
            for statement in (read.defined[name], *read.effects):
                self._add_used(module, statement)
        else:
            raise LookupError(f"{module} has no {name}")

    def _add_used(self, module: str, statement: ast.stmt) -> None:
        read = _read(module)
        own = {node.arg for node in ast.walk(statement) if isinstance(node, ast.arg)}
        for name in _used(statement):
            if name in read.imported or (name not in own and (name in read.defined or name in read.outside)):
                self.add(module, name)

    def source(self) -> str:
        """Return the statements, module by module: those first that others import from."""
        parts: list[tuple[bool, str]] = []
        for module in self._ordered():
            read = _read(module)
            kept = sorted([*self.found[module].values(), *read.effects], key=lambda node: node.lineno)
            parts += [(isinstance(node, ast.FunctionDef | ast.ClassDef), read.text(node)) for node in kept]
        text = ""
        for place, (block, written) in enumerate(parts):
            apart = place and (block or parts[place - 1][0])
            text += ("\n\n\n" if apart else "\n" if place else "") + written
        return text

    def _ordered(self) -> Iterator[str]:
        left = sorted(self.found, key=lambda name: not _read(name).effects)  # what sets the scene comes first
        while left:
            ready = next(name for name in left if not any(x in left for x in _imports(name) if x != name))
            left.remove(ready)
            yield ready


def _used(node: ast.stmt) -> Iterable[str]:
    """Return the names that a statement reads, in its order."""
    return dict.fromkeys(x.id for x in ast.walk(node) if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Load))


def _imports(module: str) -> set[str]:
    return {name for name, _ in _read(module).imported.values()}


def _alias(alias: ast.alias) -> str:
    return alias.name + (f" as {alias.asname}" if alias.asname else "")
