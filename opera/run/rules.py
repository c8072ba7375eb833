"""Digests of the rules that turn what was seen into verdicts, made of what the rules say.

A digest is of the syntax trees of the modules that hold rules, without comments, docstrings and layout, and of their tables.
Where one changes, the verdicts that were concluded by that kind of rule are judged anew (`opera.run.rejudge`).
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec

from opera import compilers, libraries, resources
from opera.compilers.shared import messages
from opera.oracle import comparison as oracle
from opera.programs import verdicts as records
from opera.run import culprit

REFUSALS = ("opera.run.judge", "opera.run.culprit")
COMPARISON = ("opera.oracle.comparison",)
SCREENS = (
    "opera.oracle.screens", "opera.oracle.conditioning", "opera.oracle.randomness", "opera.oracle.draws", "opera.oracle.laws",
    "opera.oracle.declared", "opera.oracle.quantities", "opera.oracle.ties", "opera.oracle.domains", "opera.oracle.undefined",
    "opera.libraries.rulings",
)  # fmt: skip
"""Modules that hold rules of every frontend; those of a compiler's adapter and of a library's module come with them."""


class Rules(msgspec.Struct, frozen=True):
    """Digests of what verdicts on a frontend are concluded by.

    Attributes:
        refusals: What is unsupported, and whose failure is whose: the adapter, its tables of refusals, and the blame.
        comparison: How outputs are compared.
        tolerances: At which tolerance.
        screens: What else explains an inconsistency: the screens, and what the library leaves undefined.
    """

    refusals: str = ""
    comparison: str = ""
    tolerances: str = ""
    screens: str = ""

    def __str__(self) -> str:
        return " ".join(msgspec.structs.astuple(self))

    @classmethod
    def parse(cls, text: str) -> Rules:
        """Inverse of str; what was not written by it counts as unknown rules."""
        parts = text.split(" ")
        return cls(*parts) if len(parts) == len(cls.__struct_fields__) else cls()

    def hold(self, verdict: str, now: Rules) -> bool:
        """Whether a verdict that these rules concluded needs not be judged by today's."""
        if verdict in (records.ABORT, records.TIMEOUT, records.OUT_OF_MEMORY):
            return True  # the operating system's word
        if verdict == records.PASS:
            return (self.comparison, self.tolerances) == (now.comparison, now.tolerances)
        if verdict in (records.INCONSISTENT, records.UNSTABLE, records.SCREENED):
            return msgspec.structs.replace(self, refusals=now.refusals) == now
        if verdict in (records.CRASH, records.REFUSED, records.UNSUPPORTED):
            return self.refusals == now.refusals
        return self == now


def of(compiler: str, library: str, device: str = "") -> Rules:
    """Return the rules of a frontend, as they stand; `device` is what the compiler's options say."""
    frontend = compilers.frontend(compiler, library)
    own = culprit.adapter_of(frontend)
    modules = closure(own, _home(own))
    judged = libraries.get(library)
    narrow = compilers.computes_in(frontend, device)
    tables: list[object] = [oracle.TOLERANCES, narrow]
    tables += [oracle.ON_DEVICE] if narrow != compilers.computes_in(frontend) else []
    return Rules(
        refusals=_digest((*REFUSALS, *modules), more=_said(tables_of(modules))),
        comparison=_digest(COMPARISON, "TOLERANCES"),
        tolerances=_short(msgspec.json.encode(tables, order="sorted")),
        screens=_digest((*SCREENS, *closure(culprit.adapter_of(judged), "opera.libraries")), "", _declared(library)),
    )


@cache
def of_exports() -> str:
    """Return the digest of what exported files are checked by."""
    return f"{_digest(COMPARISON, 'TOLERANCES')} {_short(msgspec.json.encode(oracle.TOLERANCES, order='sorted'))}"


@cache
def closure(module: str, package: str) -> tuple[str, ...]:
    """Return a module and those of the same package that it imports, wherever in its text, and so on; sorted."""
    found: set[str] = set()
    left = [module]
    while left:
        name = left.pop()
        if name not in found and culprit.within(name, (package,)) and _file(name) is not None:
            found.add(name)
            left.extend(_imports(name))
    return tuple(sorted(found))


def tables_of(modules: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of the tables of refusals that modules read: what they call `table` with."""
    calls = (node for name in modules for node in ast.walk(_tree(name)) if isinstance(node, ast.Call) and node.args)
    called = ((getattr(x.func, "attr", "") or getattr(x.func, "id", ""), x.args[0]) for x in calls)
    found = {str(first.value) for name, first in called if name == "table" and isinstance(first, ast.Constant)}
    return tuple(sorted(found))


def _said(tables: tuple[str, ...]) -> bytes:
    """Return what decides in tables of refusals: examples and reasons why are words about rules."""
    kept = ("pattern", "reason", "stage", "kind", "exception", "together")
    parts = {name: messages.read(messages.file_of(name)) for name in tables}
    plain = {
        name: {part: [[getattr(rule, field) for field in kept] for rule in rules] for part, rules in held.items()}
        for name, held in parts.items()
    }
    return msgspec.json.encode(plain, order="deterministic")


def _home(module: str) -> str:
    """Return the package whose modules belong to an adapter: opera's own adapters share one with much else."""
    return "opera.compilers" if culprit.within(module, ("opera",)) else module.partition(".")[0]


@cache
def _declared(library: str) -> bytes:
    return msgspec.json.encode(resources.declaration("instrumentation", library), order="sorted")


def _digest(modules: tuple[str, ...], without: str = "", more: bytes = b"") -> str:
    """Digest modules, without the assignment to one name: a table that has a digest of its own."""
    return _short(b"\0".join([*(_dump(name, without).encode() for name in modules), more]))


@cache
def _dump(module: str, without: str) -> str:
    body = [node for node in _tree(module).body if not _assigns(node, without)]
    return _short("".join(ast.dump(node, annotate_fields=False) for node in body).encode())


def _short(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:8]


def _assigns(node: ast.stmt, name: str) -> bool:
    target = (
        node.target if isinstance(node, ast.AnnAssign) else node.targets[0] if isinstance(node, ast.Assign) else None
    )
    return bool(name) and isinstance(target, ast.Name) and target.id == name


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _imports(module: str) -> Iterator[str]:
    """Yield the names of modules that a module imports, and of what it imports from packages."""
    for node in ast.walk(_tree(module)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def _file(module: str) -> Path | None:
    """Return the file of a module, None where there is none; opera's own packages hold protocols, and no rules."""
    above = _file(module.rpartition(".")[0]) if "." in module else None
    if above is not None and above.name != "__init__.py":
        return None  # a name in a module: to look for a module of that name would import the one above
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return None
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return None
    own = culprit.within(module, ("opera",)) and spec.submodule_search_locations is not None
    return None if own else Path(spec.origin)


@cache
def _tree(module: str) -> ast.Module:
    """Return the syntax tree of a module, without docstrings of modules, classes, functions and constants."""
    file = _file(module)
    if file is None:
        raise LookupError(f"the rules of {module} cannot be read")
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [x for x in body if not _is_text(x)] or [ast.Pass()]  # type: ignore[attr-defined]
    return tree
