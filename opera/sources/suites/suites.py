"""Test suites as migration sources: recognising a target, and what its suites are.

What a target looks like, which suites it has and how they run is declared in `sources/*.toml`; nothing here names a library.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
from fnmatch import fnmatch
from pathlib import Path

import msgspec

from opera import resources
from opera.capture.child import Hooks
from opera.errors import NotInstalled, OperaError, SourceError

MAX_VERSION = 1 << 20
"""Characters of the file that states a version in which it is looked for."""


class Version(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a checkout states its version: the first group of `regex` in `file`."""

    file: str
    regex: str


class Checkout(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a checkout is recognised: all of `files` (files or folders) exist, patterns among them at least once."""

    files: tuple[str, ...]
    version: Version | None = None


class Suite(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One suite of a source.

    Attributes:
        name: The migration source that provenances name.
        kind: `modules`, `pytest`, `driver` or `files` (opera.capture.child.Job).
        globs, exclude: Which files, relative to the target's root.
        driver, parts: For the kind `driver`, the module that runs the suite, and what it is asked for in place of files,
            largest first. It belongs to the installed package, never to a checkout. For the kind `files`, the module that
            reads each of them.
        library: Whose operators are captured; the source's own by default.
        arguments: Further arguments of pytest.
        path: Folders that its tests import helpers from.
        stop, resume, inert: What is not run, and where tests go on (opera.capture.child.Job).
        points: What is hooked, in place of the points of the library's instrumentation.
        people: Whether people wrote its tests: who wrote the others is not known, and they are a family of their own.
        installed: Whether the installed package ships it.
        shared_process: Whether files run one after the other in one process, or each in its own.
        timeout: Seconds a file may take, as of opera.pool.clock.
    """

    name: str
    kind: str
    globs: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    driver: str = ""
    parts: tuple[str, ...] = ()
    library: str = ""
    arguments: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    stop: tuple[str, ...] = ()
    resume: tuple[str, ...] = ()
    inert: tuple[str, ...] = ()
    points: dict[str, list[str]] = {}
    people: bool = True
    installed: bool = False
    shared_process: bool = False
    timeout: float = 300.0


class Declaration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of `sources/`: a library, or a compiler whose own tests are read as equipped tests."""

    distribution: str
    package: str
    checkout: Checkout
    suites: tuple[Suite, ...]
    library: str = ""
    compiler: str = ""


class Target(msgspec.Struct, frozen=True):
    """What `opera extract` was pointed at.

    Attributes:
        source: Its declaration.
        name: Name of the declaration (`onnx`).
        root: The checkout, or the folder that the installed package lies in.
        version: The version the checkout states, or that is installed.
        installed: Version of the installed package that its suites run against.
        checkout: Whether it is a checkout.
    """

    source: Declaration
    name: str
    root: Path
    version: str
    installed: str
    checkout: bool

    @property
    def key(self) -> str:
        """Identity of an extraction: what was run, against what."""
        return f"{self.name} {self.version} at {self.root} on {self.installed}"


def sources() -> dict[str, Declaration]:
    """Return every declared source by name."""
    names = sorted(path.stem for path in resources.content("sources").glob("*.toml"))
    return {name: msgspec.convert(resources.declaration("sources", name), Declaration) for name in names}


def recognise(target: str) -> Target:
    """Tell what a target is: the name of an installed library, or a path to a checkout.

    Raises SourceError for anything else, NotInstalled where the library that its suites run against is missing.
    """
    declared = sources()
    for name, source in declared.items():
        if not source.compiler and target in (name, source.library):
            return _installed(name, source)
    root = Path(target).expanduser()
    if not root.is_dir():
        known = dict.fromkeys(s.library for s in declared.values() if s.library)
        raise SourceError(
            f"{target!r} is neither a library that opera knows nor a folder",
            cause="a spelling mistake, or a path relative to another folder",
            fix=f"name one of {', '.join(known)}, or the folder of a checkout",
        )
    for name, source in declared.items():
        if all(any(root.glob(entry)) for entry in source.checkout.files):
            root = _text(root.resolve())
            return Target(source, name, root, _stated_version(root, source), installed_version(source), True)
    expected = "; ".join(f"{name}: {', '.join(source.checkout.files)}" for name, source in declared.items())
    raise SourceError(
        f"{target} is no checkout that opera knows",
        cause=f"it holds none of the sets of files by which checkouts are recognised ({expected})",
        fix="give the top folder of a complete checkout",
    )


def files(target: Target, suite: Suite) -> list[str]:
    """Return the files of a suite, relative to the target's root, sorted; of a driver, its parts."""
    if suite.kind == "driver":
        return [] if target.checkout else list(suite.parts)
    if not (target.checkout or suite.installed):
        return []
    paths = (path for glob in suite.globs for path in target.root.glob(glob))
    found = {path.relative_to(target.root).as_posix() for path in paths if path.is_file()}
    return sorted(name for name in found if not any(fnmatch(name, pattern) for pattern in suite.exclude))


def hooks(source: Declaration, suite: Suite) -> Hooks:
    """Return what is hooked while a suite runs."""
    library = suite.library or source.library
    return Hooks(suite.name, library, suite.points or points(library))


def points(library: str) -> dict[str, list[str]]:
    """Return the points of capture that a library's instrumentation declares."""
    declared: dict[str, list[str]] = resources.declaration("instrumentation", library).get("points", {})
    return declared


def check_role(target: Target, equipped: str) -> None:
    """Raise SourceError where a compiler's checkout is taken for a library's, or the other way round."""
    role = target.source.compiler
    if role and not equipped:
        raise SourceError(
            f"{target.root} is a checkout of the compiler {role}, not of a library",
            fix=f"`opera extract --equipped {role} {target.root}` reads its own tests for prioritization",
        )
    if equipped and role != equipped:
        raise SourceError(
            f"{target.root} holds no tests of the compiler {equipped}",
            cause=f"it was recognised as {target.name}",
            fix=f"give the folder of a checkout of {equipped}",
        )


def _text(root: Path) -> Path:
    """Return a path that is text, as it is stored; SourceError for others."""
    try:
        str(root).encode()
    except UnicodeEncodeError:
        raise SourceError(
            f"the path of {os.fsencode(root)!r} is no UTF-8 text",
            cause="a folder named in another encoding",
            fix="rename it",
        ) from None
    return root


def _installed(name: str, source: Declaration) -> Target:
    version = installed_version(source)
    spec = importlib.util.find_spec(source.package)
    if spec is None or not spec.submodule_search_locations:
        raise NotInstalled(f"{name} is not installed", fix=f"pip install {source.distribution}")
    return Target(source, name, Path(next(iter(spec.submodule_search_locations))).parent, version, version, False)


def installed_version(source: Declaration) -> str:
    """Return the version of the package that a source's suites run against. Raises NotInstalled."""
    try:
        return importlib.metadata.version(source.distribution)
    except importlib.metadata.PackageNotFoundError:
        raise NotInstalled(
            f"{source.distribution} is not installed",
            cause="test suites run against the installed package, also those of a checkout",
            fix=f"pip install {source.distribution}",
        ) from None


def version_of(library: str) -> str:
    """Return the version of the installed library. Raises NotInstalled."""
    return next((installed_version(x) for x in sources().values() if x.library == library), "unknown")


def _stated_version(root: Path, source: Declaration) -> str:
    stated = source.checkout.version
    if stated is None or not (root / stated.file).is_file():  # a pipe or a device would be read without end
        return "unknown"
    try:
        with (root / stated.file).open(encoding="utf-8", errors="replace") as file:
            found = re.search(stated.regex, file.read(MAX_VERSION))
    except OSError as error:
        raise OperaError(f"{root} cannot be read: {error}") from None
    return found[1] if found and found[1].isprintable() and found[1].isascii() else "unknown"
