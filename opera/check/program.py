"""What is checked: a script, a test suite or a model file, and the library whose operators it calls."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from opera import capture, compilers, plugins
from opera.capture.script import Command
from opera.errors import UsageError
from opera.sources import record

EXAMPLE = "opera check train.py --compiler openvino --library torch"
PACKAGES = {"torch": "torch", "torchvision": "torch", "keras": "keras", "tensorflow": "keras", "onnx": "onnx"}
"""Package that a program imports → the library whose operators it calls."""
MODELS = {".onnx": ("onnx", "opera.libraries.onnx.evaluate")}
"""Suffix of a model file → its library, and the module that runs it once."""
FOLLOWED = 100
"""Modules beside the script that are looked at for what they import."""


def parse(library: str, words: Sequence[str]) -> Command:
    """Return what is run. Raises UsageError where that is no program, or where its library cannot be told."""
    if not words:
        raise UsageError("there is nothing to check", fix=EXAMPLE)
    first, *rest = words
    suffix = Path(first).suffix
    if suffix in MODELS:
        known, module = MODELS[suffix]
        if library not in ("", known):
            raise UsageError(f"{first} is a model of {known}, not of {library}", fix="leave out --library")
        _check_there(first)
        return record.parse(known, [sys.executable, "-m", module, str(Path(first).resolve()), *rest])
    if suffix == ".py":
        _check_there(first)
        return record.parse(library or guess(Path(first)), [sys.executable, first, *rest])
    if not record.is_program(first):
        raise UsageError(
            f"{first} is nothing that can be checked",
            cause="it is no script (.py), no model (.onnx), and neither python nor pytest",
            fix=EXAMPLE,
        )
    script = next((Path(word) for word in rest if word.endswith(".py") and Path(word).is_file()), None)
    if not library and script is None:
        raise UsageError(
            f"of which library should the operators of `{' '.join(words)}` be checked?",
            cause="only a script says by its imports which one it uses",
            fix="name it: --library torch",
        )
    return record.parse(library or guess(script or Path(first)), words)


def _check_there(name: str) -> None:
    if not Path(name).is_file():
        raise UsageError(f"there is no file {name}", fix="check the path")


def guess(script: Path) -> str:
    """Return the library that a script and the modules beside it import. Raises UsageError where that is not one."""
    packages, seen, left = set[str](), set[Path](), [script]
    while left and len(seen) < FOLLOWED:
        path = left.pop()
        if path in seen:
            continue
        seen.add(path)
        for name in _imported(path):
            packages.add(name.partition(".")[0])
            left += _beside(script.parent, name)
    known = {PACKAGES[name] for name in packages if name in PACKAGES}
    registered = plugins.registered(capture.GROUP)
    found = {name for name in known | (packages & registered.keys()) if name in registered}
    if len(found) > 1:
        found -= {"onnx"}  # what models are exported to
    if not found and (wrong := _syntax_error(script)):
        raise UsageError(f"{script} is no Python that this version reads: {wrong}", fix="mend it, and check it again")
    if len(found) != 1:
        what = f"imports {' and '.join(sorted(found))}" if found else f"imports none of {', '.join(registered)}"
        raise UsageError(
            f"of which library should the operators of {script} be checked?",
            cause=f"it {what}",
            fix=f"name it: {EXAMPLE}",
        )
    return found.pop()


def _imported(path: Path) -> set[str]:
    """Return the modules that a file imports; none of one that is no Python of this version, as running it will say."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return set()
    names = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            prefix = node.module or ""
            names |= {prefix} if prefix else {alias.name for alias in node.names}
    return names


def _syntax_error(path: Path) -> str:
    """Return what is wrong with a file of Python, and in which line; empty where nothing is."""
    try:
        ast.parse(path.read_bytes())
    except SyntaxError as error:
        return f"line {error.lineno}: {error.msg}"
    except ValueError as error:
        return str(error)
    return ""


def _beside(folder: Path, name: str) -> list[Path]:
    """Return the file of a module that lies beside the script."""
    place = folder.joinpath(*name.split("."))
    return [path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file()]


def check_compilers(names: Sequence[str], library: str) -> None:
    """Raise UsageError for a compiler that is none, or that has no frontend for the library."""
    for name in names:
        frontends = compilers.get(name).FRONTENDS
        if library not in frontends:
            able = [x for x in compilers.registered() if library in compilers.get(x).FRONTENDS]
            raise UsageError(
                f"{name} has no frontend for {library}",
                cause=f"the program's operators are those of {library}",
                fix=f"choose from {', '.join(able)}",
            )


def title(command: Command) -> str:
    """Return the name of the folder that a check is kept in: that of the file that is checked."""
    name = command.arguments[0] if command.kind == "module" and command.arguments else command.file
    return re.sub(r"[^\w.-]+", "-", Path(name).stem) or "program"
