"""Where the code of a compiler lies that a finding is about: a file, a line, and the name of the conversion function."""

from __future__ import annotations

import ast
import os
import re
from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property
from importlib import metadata, util
from pathlib import Path

import msgspec

from opera import compilers
from opera.run import culprit
from opera.triage.findings import Finding

AT_LINE = re.compile(r"@([\w.+-]+\.\w+):(\d+)$")
"""`Resize@interpolate_shape_inference.hpp:82`."""
IN_MODULE = re.compile(r"^([A-Za-z_][\w.]*):([A-Za-z_][\w.]*)(?:\[.*\])?$")
"""`onnx_frontend:Pool._impl_v1`, `base_fx_graph_translator:BaseFXGraphImporter._argmax_argmin[argmin.default]`."""
RAISED = re.compile(r"^([\w.+-]+\.py):(\w+)$")
"""`onnx_frontend.py:_impl_v13`: the last line of the compiler's own code in a traceback."""
LEFT_OUT = frozenset((".git", "build", "node_modules", ".venv", "__pycache__"))
"""Folders of a checkout that hold no sources."""


class Place(msgspec.Struct, frozen=True):
    """Where a finding's code lies.

    Attributes:
        file: Path in the checkout that was named, or below where the compiler's package is installed; the name of the file
            alone where it was not found there.
        line: 0 where it is not known.
        function: The conversion function, or the operator.
        found: Whether the file was found.
    """

    file: str
    line: int = 0
    function: str = ""
    found: bool = False


class Places:
    """Finds the files of compilers, in a checkout of one or where they are installed; each is looked for once."""

    def __init__(self, findings: Iterable[Finding], source: Path | None = None) -> None:
        self._source = source
        self._modules: dict[str, set[str]] = defaultdict(set)
        for x in findings:
            if found := IN_MODULE.match(x.conversion_function):
                self._modules[x.frontend].add(f"{found[1].rpartition('.')[2]}.py")
        self._trees: dict[Path, ast.Module | None] = {}
        self._files: dict[str, dict[str, list[tuple[Path, Path]]]] = {}

    def of(self, finding: Finding) -> Place | None:
        """Return where the code lies that converts what fails; None where nothing is known.

        A line is told where the compiler tells it, or the definition is found in a checkout, or in the very version that the
        finding is of.
        """
        converter = finding.conversion_function
        if at := AT_LINE.search(converter):
            path, _ = self._path(finding, at[1], "")
            return Place(path or at[1], int(at[2]), converter.partition("@")[0], bool(path))
        if at := IN_MODULE.match(converter):
            name = f"{at[1].rpartition('.')[2]}.py"
            path, line = self._path(finding, name, at[2])
            return Place(path or name, line, at[2], bool(path))
        raised = RAISED.match(finding.location)
        if raised and raised[1] in self._modules[finding.frontend]:  # not a wrapper, through which everything goes
            path, line = self._path(finding, raised[1], raised[2])
            return Place(path or raised[1], line, raised[2], bool(path))
        return None

    def _path(self, finding: Finding, name: str, definition: str) -> tuple[str, int]:
        """Return path and line of a definition in a file of that name, ("", 0) where none or several are there."""
        found = []
        for root, path in self._index(finding.frontend).get(name, ()):
            line = self._line(path, definition) if definition else 0
            found.append((path.relative_to(root).as_posix(), line))
        if definition and len(found) > 1:
            found = [x for x in found if x[1]]
        if len(found) != 1:
            return "", 0
        path_of, line = found[0]
        return path_of, line if self._source is not None or self._same_version(finding) else 0

    def _index(self, frontend: str) -> dict[str, list[tuple[Path, Path]]]:
        """Return name of a file → (root, path) of the files that are called so."""
        key = "" if self._source is not None else frontend
        if key not in self._files:
            roots = [(self._source, self._source)] if self._source is not None else list(_installed(frontend))
            index: dict[str, list[tuple[Path, Path]]] = defaultdict(list)
            for root, folder in roots:
                for at, folders, names in os.walk(folder):
                    folders[:] = sorted(x for x in folders if x not in LEFT_OUT)
                    for name in names:
                        index[name].append((root, Path(at, name)))
            self._files[key] = dict(index)
        return self._files[key]

    def _line(self, path: Path, definition: str) -> int:
        """Return the line of `Class.function` in a file of Python; of the class where the function is inherited; else 0."""
        if path not in self._trees:
            try:
                self._trees[path] = ast.parse(path.read_bytes())
            except (OSError, SyntaxError, ValueError):  # unreadable, or of another Python: it says nothing
                self._trees[path] = None
        body: list[ast.stmt] = getattr(self._trees[path], "body", [])
        line = 0
        for part in definition.split("."):
            kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
            found = next((x for x in body if isinstance(x, kinds) and x.name == part), None)
            if found is None and not line:  # a method whose class is not told
                methods = (y for x in body if isinstance(x, ast.ClassDef) for y in x.body)
                found = next((x for x in methods if isinstance(x, kinds) and x.name == part), None)
            if found is None:
                return line
            line, body = found.lineno, found.body
        return line

    def _same_version(self, finding: Finding) -> bool:
        """Whether what is installed is the version that the finding is of."""
        names = {name for package in _packages(finding.frontend) for name in self._distributions.get(package, ())}
        return any(metadata.version(name) == finding.compiler_version for name in names)

    @cached_property
    def _distributions(self) -> dict[str, list[str]]:
        return dict(metadata.packages_distributions())


def _packages(frontend: str) -> tuple[str, ...]:
    """Return the packages of a frontend's compiler, none where opera does not know it here."""
    compiler, _, library = frontend.rpartition("-")
    if compiler not in compilers.registered() or library not in compilers.get(compiler).FRONTENDS:
        return ()
    adapter = compilers.get(compiler)
    return culprit.packages_of(adapter, compilers.frontend_of(adapter, library))


def _installed(frontend: str) -> Iterable[tuple[Path, Path]]:
    """Yield (folder that holds the package, package) of what is installed; nothing is imported."""
    for name in _packages(frontend):
        spec = util.find_spec(name)
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            yield Path(folder).parent, Path(folder)
