"""The worker groups of a run: which modules they preload, in which interpreter, and what they say of their compilers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from opera import compilers, libraries
from opera.compilers import settings
from opera.errors import NoAnswer, NotInstalled, OperaError
from opera.pool.interface import JobPool
from opera.pool.workers import ABORT, DONE, ERROR, STARVED, TIMEOUT, UNAVAILABLE, Group, Identity, Result
from opera.store.folders import Folders

DESCRIBING = 300.0
"""Seconds (as of opera.pool.clock) that a compiler may take to say what it is."""
NOTHING: Mapping[str, str] = MappingProxyType({})


def compiler_group(
    name: str,
    library: str,
    files: Folders,
    python: str = "",
    *,
    unpatched: bool = False,
    chosen: Mapping[str, str] = NOTHING,
) -> Group:
    """Return the workers of a frontend, which find tests among `files`; without opera's patches to it, if so wished.

    `chosen` are values of the compiler's settings; those of others do not matter.
    """
    compiler = compilers.get(name)
    variants = compilers.frontend_of(compiler, library).VARIANTS
    preload = (*compiler.PRELOAD, *(module for variant in variants for module in variant.preload))
    without = patches(name, library) if unpatched else {}
    return Group(
        call="opera.run.worker:run", python=python, preload=tuple(dict.fromkeys(preload)),
        env={**files.environment(), **without, **settings.environment(name, chosen)},
        identity=Identity("opera.run.worker:identify", name),
    )  # fmt: skip


def library_group(name: str, files: Folders) -> Group:
    """Return the workers of a library's side."""
    preload = tuple(libraries.get(name).PRELOAD)
    return Group(
        call="opera.run.library_side:wrap_batch", preload=preload, env={**files.environment()},
        identity=Identity("opera.run.library_side:exporter", name),
    )  # fmt: skip


def library_of(group: str) -> str:
    """Return the library whose side a group of workers is, empty for one of a frontend."""
    return group.removeprefix("library ") if group.startswith("library ") else ""


def patches(compiler: str, library: str) -> dict[str, str]:
    """Return what keeps opera from patching a frontend, as environment variables; empty where it patches nothing."""
    return dict(getattr(compilers.frontend(compiler, library), "UNPATCHED", {}))


def unpatched(frontend: str) -> str:
    """Return the name of the group that runs a frontend without the patches that opera makes to it for speed."""
    return f"{frontend} unpatched"


def groups(
    pairs: list[tuple[str, str]],
    names: list[str],
    interpreter: Callable[[str], str],
    files: Folders,
    chosen: Mapping[str, str] = NOTHING,
) -> dict[str, Group]:
    """Return all groups of a run over these frontends (compiler, library) and libraries; one starts when it has a job.

    `interpreter` says of a compiler which one runs it, empty for the one that runs opera; `chosen` are values of settings.
    """
    found: dict[str, Group] = {}
    for name, library in pairs:
        frontend = compilers.frontend_name(name, library)
        python = interpreter(name)
        found[frontend] = compiler_group(name, library, files, python, chosen=chosen)
        if patches(name, library):
            found[unpatched(frontend)] = compiler_group(name, library, files, python, unpatched=True, chosen=chosen)
    return found | {f"library {name}": library_group(name, files) for name in names}


def describe(
    pool: JobPool, pairs: list[tuple[str, str]], demanded: tuple[str, ...]
) -> tuple[dict[str, dict[str, Any]], dict[str, OperaError]]:
    """Return frontend → description (version, options, CPU, ...) of those that can be run, and why the others cannot.

    Raises NotInstalled or NoAnswer for a compiler that is demanded and has no frontend that can, or where none is left.
    """
    named = {compilers.frontend_name(name, library): name for name, library in pairs}
    for frontend, name in named.items():  # each in its own processes: it may need more than its compiler's others
        pool.submit(frontend, name, seconds=DESCRIBING, tag=frontend, call="opera.run.worker:describe")
    found: dict[str, dict[str, Any]] = {}
    missing: dict[str, OperaError] = {}
    for result in pool.results():
        frontend = result.tag
        if result.status == DONE and not result.payload["error"]:
            found[frontend] = {key: value for key, value in result.payload.items() if key != "error"}
        else:
            missing[frontend] = _reason(named[frontend], result)
    for name in demanded:
        own = [frontend for frontend, of in named.items() if of == name]
        if own and not any(frontend in found for frontend in own):
            raise missing[own[0]]
    if not found:
        if all(isinstance(why, NotInstalled) for why in missing.values()):
            raise NotInstalled(
                "no compiler is installed", fix='pip install "opera[onnxruntime]", or another; see `opera doctor`'
            )
        raise next(why for why in missing.values() if not isinstance(why, NotInstalled))
    ordered = {frontend: found[frontend] for frontend in named if frontend in found}
    return ordered, {frontend: missing[frontend] for frontend in named if frontend in missing}


def _reason(name: str, result: Result) -> OperaError:
    """Say why a compiler cannot be described: it is not there, its processes died, or nobody answered in time."""
    why = result.message or (result.payload or {}).get("error", "") or result.log
    last = (why.strip().splitlines() or ["no reason given"])[-1]
    if result.status in (TIMEOUT, STARVED) or result.busy:
        return NoAnswer(
            f"the compiler {name} did not answer in {DESCRIBING:g} s",
            cause="the machine is busy with something else, or the compiler hangs when it is imported",
            fix=f"run the command again when it is quieter; `opera doctor --compiler {name}` tries it alone",
        )
    if result.status == ABORT:
        return NoAnswer(
            f"the compiler {name} cannot be used: its process ended by {result.exit} when it was asked what it is",
            cause="a broken installation, or the machine ran out of memory",
            fix=f"`opera doctor --compiler {name}` tries it alone",
        )
    absent = result.status in (DONE, ERROR, UNAVAILABLE) and any(
        word in why for word in ("ModuleNotFoundError", "PackageNotFoundError", "ImportError", "cannot be run")
    )
    if absent:
        cure = compilers.cure(name)
        either = cure.startswith("pip ") and compilers.package(name)
        return NotInstalled(
            f"the compiler {name} cannot be used: {last}",
            cause="it is not installed, or the machine lacks what it needs",
            fix=cure + (f"; or `opera env create {name}`, an environment of its own" if either else ""),
        )
    return NoAnswer(
        f"the compiler {name} cannot be used: {last}",
        cause="its import, or the adapter of it, failed",
        fix=f"`opera doctor --compiler {name}` tries it alone",
    )
