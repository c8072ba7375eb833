"""Environments of other releases of a compiler, made of the package index by uv, or by pip where that is not there, and kept.

They are kept in the user's cache folder (`$XDG_CACHE_HOME/opera/environments`). An environment is the release, numpy, msgspec
and what else the compiler needs; opera itself is looked up where it runs, and so is a library that the compiler must have
in its own process. A wheel may be older than what it depends on by now and say nothing of it: so an environment counts only
once opera's canaries, a right answer and a planted wrong one, are judged as they should be, and is made with older
dependencies else.
"""

from __future__ import annotations

import fcntl
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import opera
from opera import compilers
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


def check(compiler: str, version: str) -> None:
    """Raise UsageError for what is no version, or a compiler that is no package with versions of its own."""
    if not VERSION.fullmatch(version):
        raise UsageError(f"{version!r} is no version", fix="give versions as the package index has them: 2024.0,2024.1")
    module = compilers.get(compiler)
    package = module.PACKAGE.split()[0] if module.PACKAGE else ""
    if not re.fullmatch(r"[\w.-]+", package) or any(getattr(x, "EXPORTER", False) for x in module.FRONTENDS.values()):
        raise UsageError(
            f"{compiler} is no package of the index with releases of its own",
            cause="an exporter, or a part of the library",
            fix="make an environment by hand: opera run --python ../old/bin/python, then opera diff",
        )


def interpreter(compiler: str, library: str, version: str) -> str:
    """Return the interpreter of an environment with this release, made where it is not there yet. Raises Unavailable."""
    check(compiler, version)
    name = f"{compiler}-{library}-{version}-{sys.implementation.cache_tag}"
    with _locked(folder() / f".{name}.lock"):
        where = folder() / name
        python = where / "bin" / "python"
        if not (where / WORKS).is_file():
            _make(compiler, library, version, where)
        _lend(where, borrows(compiler, library))
    return str(python)


def borrows(compiler: str, library: str) -> bool:
    """Whether the library must be in the compiler's own process: it is taken from the environment that runs opera."""
    variants = compilers.frontend(compiler, library).VARIANTS
    return any(module.startswith("opera.libraries.") for variant in variants for module in variant.preload)


def _make(compiler: str, library: str, version: str, where: Path) -> None:
    """Make an environment that works, with the newest dependencies if they will do."""
    package, *others = compilers.get(compiler).PACKAGE.split()
    wanted = [f"{package}=={version}", *map(_as_here, others), "numpy", "msgspec"]
    python = where / "bin" / "python"
    note, tried = "", set[tuple[str, ...]]()
    for old_numpy, lowest in ((False, False), (True, False), (False, True), (True, True)):
        pins = (*([OLD_NUMPY] if old_numpy else []), *(_lowest(where, package) if lowest else []))
        if pins in tried or (lowest and not _lowest(where, package)):
            continue
        tried.add(pins)
        if not _installed(where, [*wanted, *pins], package, version, optional=bool(pins)):
            continue
        _lend(where, borrows(compiler, library))
        seen = doctor.examine(compiler, library, str(python))
        if seen.mark == doctor.OK:
            (where / WORKS).write_text(f"{' '.join([*wanted, *pins])}\n", encoding="utf-8")
            return
        note = note or seen.note
    shutil.rmtree(where, ignore_errors=True)
    raise Unavailable(
        f"{package} {version} does not work: {note}",
        cause="the release does not go with this Python, or with what it depends on by now",
        fix="leave that version out, or make an environment by hand and see `opera doctor --python`",
    )


def _installed(where: Path, wanted: list[str], package: str, version: str, *, optional: bool) -> bool:
    """Make a fresh environment with these packages; False where these pins cannot be met (`optional`), else Unavailable."""
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
                f"{package} {version} cannot be installed for Python {sysconfig.get_python_version()}",
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


def _lend(where: Path, borrow: bool) -> None:
    """Let an environment find the opera that runs, and what it lends, after all that is its own."""
    lent = where / "opera"
    shutil.rmtree(lent, ignore_errors=True)
    lent.mkdir(parents=True)
    (lent / "opera").symlink_to(Path(opera.__file__).resolve().parent)
    (lent / f"opera-{opera.__version__}.dist-info").mkdir()
    for name in ("METADATA", "entry_points.txt"):
        text = importlib.metadata.distribution("opera").read_text(name) or ""
        (lent / f"opera-{opera.__version__}.dist-info" / name).write_text(text, encoding="utf-8")
    paths = [str(lent), *([sysconfig.get_path("purelib")] if borrow else [])]
    for site in where.glob("lib/python*/site-packages"):
        (site / "zz-opera.pth").write_text("\n".join([*paths, ""]), encoding="utf-8")


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
