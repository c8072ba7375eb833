"""Environments of a compiler, of another release or to have one apart, made of the package index by uv or pip, and kept.

They are kept in the user's cache folder (`$XDG_CACHE_HOME/opera/environments`). An environment is the release, numpy, msgspec
and what else the compiler needs; opera itself is looked up where it runs, and so is a library that the compiler must have
in its own process. A wheel may be older than what it depends on by now and say nothing of it: so an environment counts only
once opera's canaries, a right answer and a planted wrong one, are judged as they should be, and is made with older
dependencies else.
"""

from __future__ import annotations

import fcntl
import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

import opera
from opera import compilers, libraries, plugins
from opera.errors import OperaError, UsageError
from opera.run import doctor

SECONDS = 1800
"""Wall seconds that an installation may take."""
VERSION = re.compile(r"\d[0-9A-Za-z.+!-]*")
"""A version, and nothing that pip would take for an option."""
WORKS = "works"
"""The file that an environment has once it was seen to work."""
OLD_NUMPY = "numpy<2"
"""What extensions need that were built before NumPy 2: some cannot be imported with it, others read wrong memory."""


class Unavailable(OperaError):
    """A release cannot be had for this Python, or does not work."""

    slug = "not-installed"


def folder() -> Path:
    """Return where environments are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "opera" / "environments"


class Kept(msgspec.Struct, frozen=True):
    """An environment that is kept.

    Attributes:
        name: Of its folder.
        made: What was installed, as requirements.
        version: Of the compiler's package, the first of these.
        size: Bytes on disk, what is linked several times once.
    """

    name: str
    folder: Path
    made: tuple[str, ...]
    version: str
    size: int

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"


def check(compiler: str, version: str) -> None:
    """Raise UsageError for what is no version, or a compiler that is no package with versions of its own."""
    if not VERSION.fullmatch(version):
        raise UsageError(f"{version!r} is no version", fix="give versions as the package index has them: 2024.0,2024.1")
    if not compilers.package(compiler):
        raise UsageError(
            f"{compiler} is no package of the index with releases of its own",
            cause="an exporter, or a part of the library",
            fix="make an environment by hand: opera run --python ../old/bin/python, then opera diff",
        )


def interpreter(compiler: str, library: str, version: str) -> str:
    """Return the interpreter of an environment with this release, made where it is not there yet. Raises Unavailable."""
    check(compiler, version)
    return str(_kept(f"{compiler}-{library}-{version}", compiler, [library], version) / "bin" / "python")


def create(compiler: str, version: str = "") -> Path:
    """Return the folder of an environment of this compiler's own, made where it is not there yet; newest where no version.

    It serves the frontends of all libraries that are installed here. Raises Unavailable where none of them works in it.
    """
    check(compiler, version or "0")
    wanted = [name for name in compilers.get(compiler).FRONTENDS if _installed_here(name)]
    if not wanted:
        raise UsageError(
            f"none of {', '.join(compilers.get(compiler).FRONTENDS)} is installed, whose models {compiler} loads",
            fix="install one first; `opera doctor --quick` tells how",
        )
    return _kept(f"{compiler}-{version}" if version else compiler, compiler, wanted, version)


def kept() -> list[Kept]:
    """Return the environments that were seen to work, by name."""
    return [_described(file.parent) for file in sorted(folder().glob(f"*/{WORKS}"))]


def remove(environment: Kept) -> None:
    """Delete an environment."""
    with _locked(folder() / f".{environment.name}.lock"):
        shutil.rmtree(environment.folder)


def _described(where: Path) -> Kept:
    made = tuple((where / WORKS).read_text(encoding="utf-8").split())
    package = re.split(r"[=<>~!\[]", made[0])[0]
    sites = [str(site) for site in where.glob("lib/python*/site-packages")]
    version = next((x.version for x in importlib.metadata.distributions(name=package, path=sites)), "")
    sizes = {(x.st_dev, x.st_ino): x.st_size for x in (file.lstat() for file in where.rglob("*"))}
    return Kept(where.name, where, made, version, sum(sizes.values()))


def _installed_here(library: str) -> bool:
    try:
        return bool(libraries.get(library).version())
    except ImportError:
        return False


def _kept(name: str, compiler: str, wanted: list[str], version: str) -> Path:
    """Return an environment in which frontends of these libraries work, one of them at least; made where it is not there."""
    name = f"{name}-{sys.implementation.cache_tag}"
    with _locked(folder() / f".{name}.lock"):
        where = folder() / name
        if not (where / WORKS).is_file():
            _make(compiler, wanted, version, where)
        _lend(where, compiler, any(borrows(compiler, library) for library in wanted))
    return where


def borrows(compiler: str, library: str) -> bool:
    """Whether the library must be in the compiler's own process: it is taken from the environment that runs opera."""
    variants = compilers.frontend(compiler, library).VARIANTS
    return any(module.startswith("opera.libraries.") for variant in variants for module in variant.preload)


def _make(compiler: str, served: list[str], version: str, where: Path) -> None:
    """Make an environment that works, with the newest dependencies if they will do."""
    package, *others = compilers.get(compiler).PACKAGE.split()
    together = {package, *getattr(compilers.get(compiler), "TOGETHER", ())}
    wanted = [_of(x, version) if x in together else _as_here(x) for x in (package, *others)] + ["numpy", "msgspec"]
    python = where / "bin" / "python"
    note, tried = "", set[tuple[str, ...]]()
    for old_numpy, lowest in ((False, False), (True, False), (False, True), (True, True)):
        pins = (*([OLD_NUMPY] if old_numpy else []), *(_lowest(where, package) if lowest else []))
        if pins in tried or (lowest and not _lowest(where, package)):
            continue
        tried.add(pins)
        asked = [*(["--no-deps"] if getattr(compilers.get(compiler), "BARE", False) else []), *wanted, *pins]
        if not _installed(where, asked, package, version, optional=bool(pins)):
            continue
        _lend(where, compiler, any(borrows(compiler, library) for library in served))
        seen = [doctor.examine(compiler, library, str(python)) for library in served]
        if any(x.mark == doctor.OK for x in seen):
            (where / WORKS).write_text(f"{' '.join([*wanted, *pins])}\n", encoding="utf-8")
            return
        note = note or seen[0].note
    shutil.rmtree(where, ignore_errors=True)
    raise Unavailable(
        f"{package} {version}".rstrip() + f" does not work: {note}",
        cause="the release does not go with this Python, or with what it depends on by now",
        fix="leave that version out, or make an environment by hand and see `opera doctor --python`",
    )


def _installed(where: Path, wanted: list[str], package: str, version: str, *, optional: bool) -> bool:
    """Make a fresh environment with these packages; False where these pins cannot be met (`optional`), else Unavailable.

    Among `wanted` may be options that uv and pip have in common.
    """
    shutil.rmtree(where, ignore_errors=True)
    python, uv = where / "bin" / "python", shutil.which("uv")
    if uv:
        steps = [[uv, "venv", "-q", "--python", sys.executable, str(where)]]
        steps += [[uv, "pip", "install", "-q", "--python", str(python), *wanted]]
    else:
        steps = [[sys.executable, "-m", "venv", str(where)]]
        steps += [[str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", *wanted]]
    for step in steps:
        try:
            done = subprocess.run(step, capture_output=True, text=True, timeout=SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unavailable(f"{step[0]} cannot be run: {error}", fix="see that uv or pip works here") from None
        if done.returncode:
            if optional:
                return False
            shutil.rmtree(where, ignore_errors=True)
            raise Unavailable(
                f"{package} {version}".rstrip() + f" cannot be installed for Python {sysconfig.get_python_version()}",
                cause=_reason(done.stderr),
                fix=f"`pip index versions {package}` lists the versions there are",
            )
    return True


def _reason(text: str) -> str:
    """Return why uv or pip could not install something, on one line."""
    flat = " ".join(re.sub(r"[╰│─▶×]+", " ", text).split())
    if found := re.search(r"Because (.*?)(?:,? and you require |, we can conclude|$)", flat):  # uv
        return found[1][:300]
    lines = [line.strip() for line in text.splitlines() if line.strip() and "notice" not in line]
    errors = [line for line in lines if line.startswith("ERROR")] or lines[-1:]  # pip
    return errors[-1][:300] if errors else "no reason given"


def _of(package: str, version: str) -> str:
    """Return a package of the compiler's, of the release that is wanted, the newest where none is."""
    return f"{package}=={version}" if version else package


def _as_here(package: str) -> str:
    """Return a package in the version that is installed here, in any where it is not: files are exchanged with it."""
    try:
        return f"{package}=={importlib.metadata.version(package)}"
    except importlib.metadata.PackageNotFoundError:
        return package


def _lowest(where: Path, package: str) -> list[str]:
    """Return the dependencies of an installed package at the lowest version that it states: what it was built with."""
    name = package.lower().replace("-", "_")
    found = []
    for file in where.glob(f"lib/python*/site-packages/{name}-*.dist-info/METADATA"):
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            stated = re.match(r"Requires-Dist: *([\w.-]+) *\(?[^;]*>= *([\w.]+)[^;]*$", line)
            if stated and stated[1].lower() != "numpy":
                found.append(f"{stated[1]}=={stated[2]}")
    return found


def _lend(where: Path, compiler: str, borrow: bool) -> None:
    """Let an environment find the opera that runs, its adapter, and what it lends, after all that is its own."""
    lent = where / "opera"
    shutil.rmtree(lent, ignore_errors=True)
    lent.mkdir(parents=True)
    (lent / "opera").symlink_to(Path(opera.__file__).resolve().parent)
    (lent / f"opera-{opera.__version__}.dist-info").mkdir()
    about = lent / f"opera-{opera.__version__}.dist-info"
    (about / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: opera\nVersion: {opera.__version__}\n", encoding="utf-8"
    )
    (about / "entry_points.txt").write_text(plugins.declared("opera."), encoding="utf-8")
    if adapter := _package_of(compiler):
        (lent / adapter.name).symlink_to(adapter)
    paths = [str(lent), *([sysconfig.get_path("purelib")] if borrow else [])]
    for site in where.glob("lib/python*/site-packages"):
        (site / "zz-opera.pth").write_text("\n".join([*paths, ""]), encoding="utf-8")


def _package_of(compiler: str) -> Path | None:
    """Return the package, or the module, that holds the adapter of a compiler, None where it is opera's own."""
    root = compilers.registered()[compiler].module.partition(".")[0] if compiler in compilers.registered() else "opera"
    found = importlib.util.find_spec(root) if root != "opera" else None
    if found is None or found.origin is None:
        return None
    return Path(found.origin).parent if found.submodule_search_locations else Path(found.origin)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Keep others from making the same environment meanwhile."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(path, os.O_CREAT | os.O_RDWR)
    except OSError as error:
        raise UsageError(
            f"{path.parent} cannot be written: {error.strerror}",
            fix="set XDG_CACHE_HOME to a folder that you may write",
        ) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
