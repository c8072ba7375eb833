"""What workers do on the compiler side: run a migrated test through a compiler, and say what it showed.

These functions are called by `opera.pool.forkserver` in worker processes, and need numpy and msgspec only beside the
compiler. Whatever a compiler raises becomes a verdict here; what kills the process, the pool sees.
"""

from __future__ import annotations

import errno
import math
import platform
import sys
import tempfile
import time
import traceback
from contextlib import nullcontext
from functools import cache, partial
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np

from opera import compilers, libraries, poison
from opera.compilers import Case, Compiler, Frontend
from opera.compilers.shared.packing import Told
from opera.oracle import comparison as oracle
from opera.oracle import manner, randomness
from opera.pool.forkserver import FILE_SIZE, mark, note
from opera.programs import migrated
from opera.programs.migrated import LIVE, Manifest
from opera.programs.program import operators_of
from opera.programs.values import Optional, RandomTensor, Sequence, Tensor, Value
from opera.programs.verdicts import (
    AGREES,
    ERROR,
    FAILURES,
    INCONSISTENT,
    NEWER,
    OUT_OF_MEMORY,
    PASS,
    Job,
    Outcome,
    Seen,
)
from opera.run import culprit, judge
from opera.run.judge import cut, said
from opera.store import folders

SAVED_OUTPUTS = 16 << 20
"""Outputs of more bytes than this are not kept."""
DRAWS, NUMBERS = 64, 640
"""How often a random program is run again at least, where what it draws is not what is expected, and numbers drawn at least."""
DRAWN = 1 << 19
"""Elements that are drawn at most for that."""
PATIENCE = 10.0
"""Seconds that this may take."""
SECOND = 1.0
"""What clocks count in: a state that is seeded by it lasts so long."""
SECONDS = 8
"""How many of the clock's next seconds are looked at where a job insists: of two numbers the next second may draw one again."""
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


class NotRebuilt(Exception):
    """opera could not rebuild the library's own model: its error, not the compiler's."""


class BadAnswer(Exception):
    """The adapter broke its contract: what it returned is no list of values."""


def describe(name: str) -> Description:
    """Return what identifies the environment of the compiler called `name`."""
    here = Description(name, "", {}, platform.python_version(), np.__version__, platform.machine(), _cpu_features())
    try:
        compiler = compilers.get(name)
        return msgspec.structs.replace(here, version=compiler.version(), options=dict(compiler.options()))
    except Exception as error:
        return msgspec.structs.replace(here, error=f"{type(error).__name__}: {said(error)}")


def identify(name: str) -> Description:
    """Return `describe`'s answer. Raises LookupError where the compiler cannot be used."""
    found = describe(name)
    if found.error:
        raise LookupError(found.error)
    return found


def locate(job: Job) -> str:
    """Return the conversion function of a test, for a job that ended without telling; empty where it cannot be told."""
    prepared(job.compiler)
    frontend = compilers.frontend(job.compiler, job.library)
    return _conversion_function(frontend, case_of(job, migrated.read_manifest(folders.here().test(job.test))), None, {})


def run(job: Job) -> Outcome:
    """Run a test through one variant of a frontend."""
    try:
        note("prepare")
        compiler = prepared(job.compiler)
        directory = folders.here().test(job.test)
        manifest = migrated.read_manifest(directory)
        frontend = compilers.frontend_of(compiler, job.library)
        expected = migrated.read_values(directory, "expected")
        case = case_of(job, manifest, expected)
    except MemoryError:
        raise
    except BaseException as error:
        return Outcome(ERROR, symptom=type(error).__name__, message=cut(traceback.format_exc()))
    exports = compilers.exports(frontend, case.variant)
    with tempfile.TemporaryDirectory() if exports else nullcontext("") as folder:
        return _run(job, compiler, frontend, case, manifest, expected, Path(folder))


def _run(
    job: Job,
    compiler: Compiler,
    frontend: Frontend,
    case: Case,
    manifest: Manifest,
    expected: list[Value],
    folder: Path,
) -> Outcome:
    """Run a case; what the frontend's own exporter makes of it lies in `folder`."""
    seconds: dict[str, float] = {}
    try:
        case = _timed("load", seconds, compilers.exported, frontend, case, folder)
        compiled = _build(frontend, case, seconds)
        actual = _infer(frontend, compiled, case, seconds)
    except _Stopped as stop:
        found = _failure(compiler, frontend, case, stop, manifest, seconds)
        return msgspec.structs.replace(found, details=found.details | manner.odd(expected))
    note("oracle")
    return _compared(job, frontend, compiled, case, manifest, expected, actual, seconds)


def _compared(
    job: Job,
    frontend: Frontend,
    compiled: Any,
    case: Case,
    manifest: Manifest,
    expected: list[Value],
    actual: list[Value],
    seconds: dict[str, float],
) -> Outcome:
    """Compare what was returned with what is expected."""
    narrow = compilers.computes_in(frontend, _device(job.compiler))
    granted = oracle.granted(narrow, expected, manifest)
    try:
        found = randomness.compared(manifest.tags, expected, actual, manifest.outputs, *granted)
        margins = () if found.symptom or expected == actual else oracle.margins(expected, actual)
    except MemoryError:
        raise
    except Exception as error:  # values that are none: the expected ones were read from a file of opera's
        text = f"the adapter returned values that cannot be read: {type(error).__name__}: {said(error)}"
        return Outcome(ERROR, "infer", BadAnswer.__name__, cut(text), seconds=seconds)
    details: dict[str, Any] = dict(found.details)
    random = job.repeat and randomness.RANDOM in manifest.tags
    again = job.insist or random or (job.repeat and bool(found.symptom))
    varied = _repeat(frontend, compiled, case, actual, manifest, seconds) if again else {}
    if not found.symptom and not random and not varied.get(randomness.RANDOM):
        seen = Seen(identical=not margins and expected == actual, margins=margins)
        return Outcome(PASS, seconds=seconds, details=details, seen=seen)
    if randomness.RANDOM not in manifest.tags:
        details["manner"] = manner.manner(manifest.outputs, expected, actual, case.feeds.values(), *granted)
    details |= _newer(frontend, manifest) | varied | ({AGREES: True} if random and not found.symptom else {})
    if job.save_outputs:
        data = migrated.pack(actual)
        if len(data) <= SAVED_OUTPUTS:
            folders.here().file(job.save_outputs).write_bytes(data)
            if randomness.RANDOM in manifest.tags and again:
                drawn = _draws(frontend, compiled, case, actual, seconds)
                details |= _renewed(frontend, compiled, case, actual, drawn, SECONDS if job.insist else 1)
                folders.here().file(folders.drawn(job.save_outputs)).write_bytes(migrated.pack(drawn))
    hooks: dict[str, str] = {}
    where = _conversion_function(frontend, case, None, hooks)
    seen = Seen(identical=False, hooks=hooks)
    symptom, message = found.symptom or "value", found.message or "the first outputs agree"
    outcome = Outcome(INCONSISTENT, "infer", symptom, cut(message), "", where, seconds, details, seen)
    return randomness.settled(outcome, manifest.tags)


def replay(jobs: list[Job]) -> Outcome:
    """Run tests one after the other in this process, and return what the last one showed."""
    *before, last = jobs
    for job in before:
        mark(job.name)
        try:
            run(msgspec.structs.replace(job, repeat=False))
        except Exception:  # opera's own failure, of which the job in question may be the victim: it gets its turn
            traceback.print_exc()
    mark(last.name)
    return run(last)


@cache
def prepared(name: str) -> Compiler:
    """Return a compiler that is set up in this process."""
    compiler = compilers.get(name)
    compiler.prepare()
    return compiler


@cache
def _device(name: str) -> str:
    """Return what a compiler runs on, as its options say; empty where they do not."""
    return dict(compilers.get(name).options()).get("device", "")


def case_of(job: Job, manifest: Manifest, expected: list[Value] | None = None) -> Case:
    """Return what a job gives to its compiler; the expected values are read where they are not given."""
    directory = folders.here().test(job.test)
    if expected is None:
        expected = migrated.read_values(directory, "expected")
    artefact = migrated.asked_for(manifest, directory, job.artefact)
    if artefact is None:
        raise LookupError(f"the test has no artefact {job.artefact}")
    inputs = dict(zip(manifest.inputs, migrated.read_values(directory, "inputs"), strict=True))
    feeds = {name: _made(inputs[name]) for name in artefact.feeds}
    live = partial(_live, manifest, directory) if job.artefact == LIVE else None
    model = directory / artefact.file
    dtypes = tuple(x.dtype if isinstance(x, Tensor) else "" for x in expected)
    names = (manifest.outputs, job.variant, job.artefact)
    held = artefact.constants(manifest.inputs)
    return Case(manifest.library, manifest.operator, model, feeds, *names, live, job.way, dtypes, held)


def _made(value: Value) -> Value:
    return value.tensor() if isinstance(value, RandomTensor) else value


def _live(manifest: Manifest, directory: Path) -> Any:
    library = cast(libraries.Exporting, libraries.get(manifest.library))
    try:
        return library.live(manifest, directory)
    except Exception as error:
        raise NotRebuilt(f"the model cannot be rebuilt: {type(error).__name__}: {said(error)}") from error


def _timed(stage: str, seconds: dict[str, float], function: Any, *arguments: Any) -> Any:
    note(stage)
    begin = time.perf_counter()
    try:
        return function(*arguments)
    except BaseException as error:
        raise _Stopped(stage, error) from None
    finally:
        seconds[stage] = seconds.get(stage, 0.0) + time.perf_counter() - begin


def _build(frontend: Frontend, case: Case, seconds: dict[str, float]) -> Any:
    loaded = _timed("load", seconds, frontend.load, case)
    return _timed("compile", seconds, frontend.compile, loaded, case)


def _infer(
    frontend: Frontend, compiled: Any, case: Case, seconds: dict[str, float], pattern: int = poison.FIRST
) -> list[Value]:
    with poison.memory(pattern):
        outputs = _timed("infer", seconds, frontend.infer, compiled, case)
    if not isinstance(outputs, list) or not all(isinstance(x, Tensor | Sequence | Optional) for x in outputs):
        kinds = ", ".join(sorted({type(x).__name__ for x in outputs})) if isinstance(outputs, list) else ""
        told = f"a list of {kinds}" if kinds else type(outputs).__name__
        raise _Stopped("infer", BadAnswer(f"the adapter returned {told} instead of a list of values"))
    return outputs


def _failure(
    compiler: Compiler, frontend: Frontend, case: Case, stop: _Stopped, manifest: Manifest, seconds: dict[str, float]
) -> Outcome:
    """Turn what a stage raised into a verdict."""
    stage, error = stop.stage, stop.error
    raised = judge.observed(error, f"{case.model.parent}/")
    if isinstance(error, OSError) and error.errno == errno.EFBIG:
        text = f"more than {FILE_SIZE >> 30} GiB were written to one file, which is opera's own limit: {raised[0].text}"
        return Outcome(ERROR, stage, type(error).__qualname__, cut(text), seconds=seconds)
    ours = isinstance(error, NotRebuilt | BadAnswer)
    exported = (manifest.library,) if case.artefact in manifest.offers else ()
    packages = culprit.packages_of(compiler, frontend)
    before = getattr(frontend, "BEFORE", ())
    whose = culprit.OPERA if ours else culprit.blame(error, packages, culprit.adapter_of(frontend), exported, before)
    if isinstance(error, Told):
        whose = culprit.COMPILER
    seen = Seen(raised, whose, culprit.frames(error))
    found = judge.conclude(frontend, case, stage, seen, error)
    if found.verdict in (ERROR, OUT_OF_MEMORY):
        return Outcome(found.verdict, stage, found.symptom, found.message, seconds=seconds, seen=seen)
    hooks = dict(found.hooks)
    where = _conversion_function(frontend, case, error, hooks)
    seen = msgspec.structs.replace(seen, hooks=hooks)
    place = _location(error, packages)
    details = found.details(_newer(frontend, manifest) if found.verdict in FAILURES else {})
    return Outcome(found.verdict, stage, found.symptom, found.message, place, where, seconds, details, seen)


def _newer(frontend: Frontend, manifest: Manifest) -> dict[str, Any]:
    """Return the tag of a test that needs a newer operator than the compiler knows, and which, as details of its failure.

    What it knows of an operator is the newest schema of it that it ships, else the opset that it declares.
    """
    declared: dict[str, int] = getattr(frontend, "opsets", dict)()
    newest = getattr(frontend, "newest", lambda operator: None)
    needs = manifest.operators or {f"{domain}::": version for domain, version in manifest.needs.items()}
    for operator, version in needs.items():
        ships, domain = newest(operator), operator.rpartition("::")[0]
        if version > (declared.get(domain, version) if ships is None else ships):
            known = f"it declares opset {declared[domain]}" if ships is None else f"the newest that it ships is {ships}"
            return {"tags": [NEWER], "newer": f"{operator.removesuffix('::') or 'opset'} {version}, where {known}"}
    return {}


def _repeat(
    frontend: Frontend, compiled: Any, case: Case, first: list[Value], manifest: Manifest, seconds: dict[str, float]
) -> dict[str, Any]:
    """Infer again with what was compiled, and once more compiled anew; tell whether that changes the outputs.

    Differences within tolerance do not count: rounding that varies explains no inconsistency. Fresh memory holds another
    pattern than before, so that outputs change which nobody wrote.
    """
    begin, ignored = time.perf_counter(), dict[str, float]()
    try:
        again = _infer(frontend, compiled, case, ignored, poison.SECOND)
        anew = _infer(frontend, _build(frontend, case, ignored), case, ignored, poison.SECOND)
    except _Stopped as stop:
        return {"nondeterministic": True, "repeat": f"{stop.stage}: {cut(said(stop.error))}"}
    finally:
        seconds["repeat"] = time.perf_counter() - begin
    for name, other in (("second inference", again), ("second compilation", anew)):
        changed = oracle.compare(first, other, manifest.outputs, manifest.rtol, manifest.atol)
        if changed.symptom:
            return {"nondeterministic": True, "repeat": f"{name}: {cut(changed.message)}"}
    return {"nondeterministic": False}


def _draws(frontend: Frontend, compiled: Any, case: Case, first: list[Value], seconds: dict[str, float]) -> list[Value]:
    """Return what a random program draws in further runs, one after the other, those of one compiled anew first.

    What fails then ends it: runs are as many as there are outputs of.
    """
    begin, ignored, found = time.perf_counter(), dict[str, float](), list[Value]()
    size = sum(math.prod(x.shape) for x in first if isinstance(x, Tensor))
    try:
        found += _infer(frontend, _build(frontend, case, ignored), case, ignored)
        for _ in range(min(max(DRAWS, NUMBERS // max(1, size)), DRAWN // max(1, size))):
            again = _infer(frontend, compiled, case, ignored)
            if len(again) != len(first) or ignored["infer"] > PATIENCE:
                break
            found += again
    except _Stopped:  # what was drawn until then counts
        pass
    finally:
        seconds["repeat"] = seconds.get("repeat", 0.0) + time.perf_counter() - begin
    return found


def _renewed(
    frontend: Frontend, compiled: Any, case: Case, first: list[Value], drawn: list[Value], seconds: int
) -> dict[str, bool]:
    """Say of what is the same in all runs whether it is another in one of the clock's next seconds: a seed of whole seconds."""
    same = randomness.runs(drawn, len(first)).same
    if not same or any(x != first for x in same):
        return {}
    for _ in range(seconds):
        time.sleep(SECOND - time.time() % SECOND)
        try:
            if _infer(frontend, compiled, case, {}) != first:
                return {randomness.RENEWED: True}
        except _Stopped:
            break
    return {}


def _conversion_function(frontend: Frontend, case: Case, error: BaseException | None, hooks: dict[str, str]) -> str:
    """Return what the adapter says; an adapter that fails is noted in `hooks`, for then signatures are others than usual.

    Where nothing was raised, nobody can tell which of several calls is to blame.
    """
    if error is None and len(operators_of(case.operator)) > 1:
        return ""
    try:
        return str(frontend.conversion_function(case, error))
    except Exception as failure:
        frames = traceback.extract_tb(failure.__traceback__)
        at = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
        hooks["conversion_function"] = f"{type(failure).__name__}: {cut(said(failure), 300)}{at}"
        return ""


def _location(error: BaseException, packages: tuple[str, ...]) -> str:
    """Return `file:function` of the last frame that is in one of the compiler's own packages.

    What a recipe raises in the compiler's words is none of them: in a script that function stands in another file.
    """
    found = ""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        name = str(frame.f_globals.get("__name__", ""))
        if culprit.within(name, packages) and not culprit.within(name, (compilers.RECIPES,)):
            found = f"{Path(frame.f_code.co_filename).name}:{frame.f_code.co_name}"
    return found


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
