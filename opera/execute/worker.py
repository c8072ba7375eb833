"""What workers do on the compiler side: run a migrated test through a compiler, and say what it showed.

These functions are called by `opera.execute.forkserver` in worker processes, and need numpy and msgspec only beside the
compiler. Whatever a compiler raises becomes a verdict here; what kills the process, the pool sees.
"""

from __future__ import annotations

import platform
import sys
import time
import traceback
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np

from opera import compilers, libraries, migrated
from opera.compilers import Case, Compiler
from opera.execute import oracle
from opera.execute.forkserver import note
from opera.execute.records import CRASH, ERROR, INCONSISTENT, MARK, OUT_OF_MEMORY, PASS, UNSUPPORTED, Job, Outcome
from opera.migrated import LIVE, Manifest
from opera.values import Optional, RandomTensor, Sequence, Tensor, Value

MESSAGE = 4000
SAVED_OUTPUTS = 16 << 20
"""Outputs of more bytes than this are not kept."""
CPU_FEATURES = ("sse4_2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512_bf16", "avx512_fp16", "avx512_vnni", "avx_vnni",
                "amx_tile", "amx_bf16", "amx_int8", "asimd", "asimdhp", "asimddp", "bf16", "i8mm", "sve", "sve2")  # fmt: skip
"""Flags of /proc/cpuinfo that decide which kernels a compiler picks."""


class Description(msgspec.Struct, frozen=True):
    """What decides results beside the test itself.

    Attributes:
        compiler, version, options: As the compiler says.
        python, numpy: Their versions.
        machine: Architecture (`x86_64`).
        cpu: The CPU_FEATURES that are there.
        error: Why the compiler cannot be used, empty where it can.
    """

    compiler: str
    version: str = ""
    options: dict[str, str] = {}
    python: str = ""
    numpy: str = ""
    machine: str = ""
    cpu: tuple[str, ...] = ()
    error: str = ""


class _Stopped(Exception):
    """A stage of the compiler raised `error`."""

    def __init__(self, stage: str, error: BaseException) -> None:
        super().__init__(stage)
        self.stage, self.error = stage, error


class _NotRebuilt(Exception):
    """opera could not rebuild the library's own model: its error, not the compiler's."""


class _NoAnswer(Exception):
    """The compiler returned something that is no list of values."""


def describe(name: str) -> Description:
    """Return what identifies the environment of the compiler called `name`."""
    here = Description(name, "", {}, platform.python_version(), np.__version__, platform.machine(), _cpu_features())
    try:
        compiler = compilers.get(name)
        return msgspec.structs.replace(here, version=compiler.version(), options=dict(compiler.options()))
    except Exception as error:
        return msgspec.structs.replace(here, error=f"{type(error).__name__}: {_text(error)}")


def locate(job: Job) -> str:
    """Return the conversion function of a test, for a job that ended without telling; empty where it cannot be told."""
    compiler = prepared(job.compiler)
    return _conversion_function(compiler, case_of(job, migrated.read_manifest(Path(job.directory))), None)


def run(job: Job) -> Outcome:
    """Run a test through one variant of a frontend; `job.directory` and `job.save_outputs` are absolute paths."""
    try:
        note("prepare")
        compiler = prepared(job.compiler)
        manifest = migrated.read_manifest(Path(job.directory))
        case = case_of(job, manifest)
        expected = migrated.read_values(Path(job.directory), "expected")
    except MemoryError:
        raise
    except BaseException as error:
        return Outcome(ERROR, symptom=type(error).__name__, message=_cut(traceback.format_exc()))
    seconds: dict[str, float] = {}
    try:
        compiled = _build(compiler, case, seconds)
        actual = _infer(compiler, compiled, case, seconds)
    except _Stopped as stop:
        return _failure(compiler, case, stop, seconds)
    note("oracle")
    granted = oracle.granted(getattr(compiler, "COMPUTES_IN", {}), expected, manifest.rtol, manifest.atol)
    found = oracle.compare(expected, actual, manifest.outputs, *granted)
    details: dict[str, Any] = dict(found.details)
    if not found.symptom:
        return Outcome(PASS, seconds=seconds, details=details)
    if job.repeat:
        details |= _repeat(compiler, compiled, case, actual, manifest, seconds)
    if job.save_outputs:
        data = migrated.pack(actual)
        if len(data) <= SAVED_OUTPUTS:
            Path(job.save_outputs).write_bytes(data)
    where = _conversion_function(compiler, case, None)
    return Outcome(INCONSISTENT, "infer", found.symptom, _cut(found.message), "", where, seconds, details)


def replay(jobs: list[Job]) -> Outcome:
    """Run tests one after the other in this process, and return what the last one showed."""
    *before, last = jobs
    for job in before:
        print(MARK + job.test, flush=True)
        run(msgspec.structs.replace(job, repeat=False))
    print(MARK + last.test, flush=True)
    return run(last)


@cache
def prepared(name: str) -> Compiler:
    """Return a compiler that is set up in this process."""
    compiler = compilers.get(name)
    compiler.prepare()
    return compiler


def case_of(job: Job, manifest: Manifest) -> Case:
    """Return what a job gives to its compiler."""
    directory = Path(job.directory)
    artefact = migrated.artefact(manifest, directory, job.artefact)
    if artefact is None:
        raise LookupError(f"the test has no artefact {job.artefact}")
    inputs = dict(zip(manifest.inputs, migrated.read_values(directory, "inputs"), strict=True))
    feeds = {name: _made(inputs[name]) for name in artefact.feeds}
    live = partial(_live, manifest, directory) if job.artefact == LIVE else None
    model = directory / artefact.file
    return Case(manifest.library, manifest.operator, model, feeds, manifest.outputs, job.variant, job.artefact, live)


def _made(value: Value) -> Value:
    return value.tensor() if isinstance(value, RandomTensor) else value


def _live(manifest: Manifest, directory: Path) -> Any:
    library = cast(libraries.Exporting, libraries.get(manifest.library))
    try:
        return library.live(manifest, directory)
    except Exception as error:
        raise _NotRebuilt(f"the model cannot be rebuilt: {type(error).__name__}: {_text(error)}") from error


def _timed(stage: str, seconds: dict[str, float], function: Any, *arguments: Any) -> Any:
    note(stage)
    begin = time.perf_counter()
    try:
        return function(*arguments)
    except BaseException as error:
        raise _Stopped(stage, error) from None
    finally:
        seconds[stage] = seconds.get(stage, 0.0) + time.perf_counter() - begin


def _build(compiler: Compiler, case: Case, seconds: dict[str, float]) -> Any:
    loaded = _timed("load", seconds, compiler.load, case)
    return _timed("compile", seconds, compiler.compile, loaded, case)


def _infer(compiler: Compiler, compiled: Any, case: Case, seconds: dict[str, float]) -> list[Value]:
    outputs = _timed("infer", seconds, compiler.infer, compiled, case)
    if not isinstance(outputs, list) or not all(isinstance(x, Tensor | Sequence | Optional) for x in outputs):
        kind = (
            f"a list of {', '.join(sorted({type(x).__name__ for x in outputs}))}" if isinstance(outputs, list) else ""
        )
        raise _Stopped("infer", _NoAnswer(f"{kind or type(outputs).__name__} was returned instead of a list of values"))
    return outputs


def _failure(compiler: Compiler, case: Case, stop: _Stopped, seconds: dict[str, float]) -> Outcome:
    """Turn what a stage raised into unsupported, out-of-memory or a crash."""
    stage, error = stop.stage, stop.error
    message = _cut(_text(error).replace(f"{case.model.parent}/", ""))
    if isinstance(error, MemoryError) or "std::bad_alloc" in message:
        return Outcome(OUT_OF_MEMORY, stage, type(error).__name__, message, seconds=seconds)
    reason = None
    if not isinstance(error, _NotRebuilt):
        with suppress(BaseException):
            reason = compiler.unsupported(stage, error)
    if reason is None and _ours(error):
        text = _cut("".join(traceback.format_exception(error)))
        return Outcome(ERROR, stage, type(error).__qualname__, text, seconds=seconds)
    where = _conversion_function(compiler, case, error)
    if reason is not None:
        return Outcome(UNSUPPORTED, stage, type(error).__name__, _cut(reason), "", where, seconds)
    symptom = "no-answer" if isinstance(error, _NoAnswer) else type(error).__qualname__
    return Outcome(CRASH, stage, symptom, message, _location(compiler, error), where, seconds)


def _repeat(
    compiler: Compiler, compiled: Any, case: Case, first: list[Value], manifest: Manifest, seconds: dict[str, float]
) -> dict[str, Any]:
    """Infer again with what was compiled, and once more compiled anew; tell whether that changes the outputs.

    Differences within tolerance do not count: rounding that varies explains no inconsistency.
    """
    begin, ignored = time.perf_counter(), dict[str, float]()
    try:
        again = _infer(compiler, compiled, case, ignored)
        anew = _infer(compiler, _build(compiler, case, ignored), case, ignored)
    except _Stopped as stop:
        return {"nondeterministic": True, "repeat": f"{stop.stage}: {_cut(_text(stop.error))}"}
    finally:
        seconds["repeat"] = time.perf_counter() - begin
    for name, other in (("second inference", again), ("second compilation", anew)):
        changed = oracle.compare(first, other, manifest.outputs, manifest.rtol, manifest.atol)
        if changed.symptom:
            return {"nondeterministic": True, "repeat": f"{name}: {_cut(changed.message)}"}
    return {"nondeterministic": False}


def _conversion_function(compiler: Compiler, case: Case, error: BaseException | None) -> str:
    try:
        return str(compiler.conversion_function(case, error))
    except BaseException:
        return ""


def _ours(error: BaseException) -> bool:
    """Whether opera's own module made the mistake: a programming error that no code of the compiler's raised."""
    if isinstance(error, _NotRebuilt):
        return True
    if not isinstance(error, TypeError | AttributeError | NameError | LookupError | ImportError):
        return False
    frames = list(traceback.walk_tb(error.__traceback__))
    return bool(frames) and str(frames[-1][0].f_globals.get("__name__", "")).startswith("opera.compilers.")


def _location(compiler: Compiler, error: BaseException) -> str:
    """Return `file:function` of the last frame that is in one of the compiler's own packages."""
    roots = {name.partition(".")[0] for name in compiler.PRELOAD}
    found = ""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if str(frame.f_globals.get("__name__", "")).partition(".")[0] in roots:
            found = f"{Path(frame.f_code.co_filename).name}:{frame.f_code.co_name}"
    return found


def _text(error: BaseException) -> str:
    """Return the exception's text, even where it cannot say it itself."""
    try:
        return str(error)
    except BaseException as second:
        return f"(its text cannot be had: {type(second).__name__})"


def _cut(text: str) -> str:
    """Keep the beginning, which says what, and the end, which says where."""
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= MESSAGE else f"{text[: MESSAGE - 1005]} ... {text[-1000:]}"


def _cpu_features() -> tuple[str, ...]:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return (sys.platform,)
    flags: set[str] = set()
    for line in lines:
        if line.partition(":")[0].strip() in ("flags", "Features"):
            flags.update(line.partition(":")[2].split())
            break
    return tuple(name for name in CPU_FEATURES if name in flags)
