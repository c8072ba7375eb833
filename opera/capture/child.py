"""A capture child: a worker of opera.pool that runs files of a suite, or what a driver is asked for, under instrumentation.

It stands in an empty folder, and has a temporary folder, of its own. Standard input and output belong to what it runs.
"""

from __future__ import annotations

import gc
import hashlib
import importlib
import importlib.metadata
import importlib.util
import os
import sys
import tempfile
import time
import warnings
from pathlib import Path

import msgspec

from opera import capture
from opera.capture.recorder import Recorder
from opera.programs.verdicts import Uses
from opera.store import folders


class Hooks(msgspec.Struct, frozen=True):
    """What is hooked for the life of a child; a child runs no jobs with others.

    Attributes:
        source: The migration source that provenances name.
        library: Whose capture module hooks.
        points: See opera.capture.Capture.
    """

    source: str
    library: str
    points: dict[str, list[str]]


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a suite, or one thing that a driver is asked for.

    Attributes:
        hooks: What is hooked: the same in all jobs of a child.
        kind: `modules`: executed under its dotted name in place of the installed one; `pytest`: run by pytest; `driver`:
            left to the module `driver`, whose `run(recorder, file)` returns how many tests ran and how many of them failed;
            `files`: likewise, given the file's path.
        root, file: The target's root, and the path of the file below it; the part that a driver is asked for.
        spool: Where captured instances go: a path, or a name among the files of the machine (opera.store.folders).
        arguments: Further arguments of pytest.
        path: Folders, relative to root, that are appended to sys.path.
        stop: Callables that pytest suites are not let into (`module:name`), for they cost time and show nothing.
        resume: Functions of the test module that then return something harmless; without one, the test ends as skipped.
        inert: Callables that do nothing and return something harmless.
    """

    hooks: Hooks
    kind: str
    root: str = ""
    file: str
    spool: str
    arguments: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    stop: tuple[str, ...] = ()
    resume: tuple[str, ...] = ()
    inert: tuple[str, ...] = ()
    driver: str = ""

    @property
    def uses(self) -> Uses:
        """What comes back from another machine: the spool."""
        return Uses(leaves=() if Path(self.spool).is_absolute() else (self.spool,))


class Needs(msgspec.Struct, frozen=True):
    """What a machine must have to capture what the driver's would.

    Attributes:
        distribution, version: The package that suites run against.
        root, files: The target's root, at the same path everywhere, and the files below it that are run.
        digest: Of those files, as `digest_of` makes it.
    """

    distribution: str
    version: str
    root: str = ""
    files: tuple[str, ...] = ()
    digest: str = ""


def digest_of(root: str, files: tuple[str, ...]) -> str:
    """Return the digest of files by name and content. Raises OSError where one cannot be read."""
    made = hashlib.sha256()
    for name in files:
        content = Path(root, name).read_bytes()
        made.update(f"{name}\0{len(content)}\0".encode("utf-8", "backslashreplace"))
        made.update(content)
    return made.hexdigest()


def has(needs: Needs) -> bool:
    """Return True; raises RuntimeError where this machine has not what the driver's has, and says what."""
    try:
        found = importlib.metadata.version(needs.distribution)
    except importlib.metadata.PackageNotFoundError:
        raise RuntimeError(f"{needs.distribution} is not installed there") from None
    if found != needs.version:
        raise RuntimeError(f"{needs.distribution} is {found} there, and {needs.version} here")
    try:
        same = digest_of(needs.root, needs.files) == needs.digest
    except OSError as error:
        raise RuntimeError(f"the test files in {needs.root} are not there: {error}") from None
    if not same:
        raise RuntimeError(f"the test files in {needs.root} are others there")
    return True


class Ran(msgspec.Struct, frozen=True):
    """How a job went, where the child lived to tell: see opera.sources.UnitReport."""

    status: str
    reason: str
    tests: int
    failed: int
    calls: int
    recorded: int
    left_out: dict[str, int]
    seconds: float


WITHOUT = ("-p", "no:cacheprovider", "-p", "no:unraisableexception")
"""Plugins of pytest that are left out: one that writes, and one that collects garbage ten times a file for its warnings."""

_installed: list[tuple[Recorder, str]] = []
"""The recorder of this process, and why its hooks could not be installed; empty until the first job."""


def run(job: Job) -> Ran:
    """Run one job; the child's function, as opera.pool calls it."""
    if not _installed:
        _leave_alone()
        _installed.append(_install(job.hooks))
    recorder, problem = _installed[0]
    if problem:
        return Ran("failed", problem, 0, 0, 0, 0, {}, 0.0)
    start = time.perf_counter()
    spool = folders.here().file(job.spool)
    spool.parent.mkdir(parents=True, exist_ok=True)
    spool.unlink(missing_ok=True)  # a machine that was lost in the middle may have left one
    recorder.begin(job.file, spool)
    sys.path.extend(str(Path(job.root, entry)) for entry in job.path)
    status, reason, tests, failed = KINDS[job.kind](job, recorder)
    recorder.flush()
    recorder.close()
    seconds = time.perf_counter() - start
    if recorder.unwritten:
        status, reason = "failed", recorder.unwritten
    return Ran(
        status, reason, tests, failed, recorder.calls, recorder.recorded, dict(recorder.left_out), round(seconds, 3)
    )


def _leave_alone() -> None:
    """Go from the folder that the pool gave this process, which is removed with it, to an empty one in it."""
    place, temporary = Path.cwd() / "cwd", Path.cwd() / "tmp"
    place.mkdir()
    temporary.mkdir()
    os.chdir(place)
    os.environ["TMPDIR"], tempfile.tempdir = str(temporary), None


def _install(hooks: Hooks) -> tuple[Recorder, str]:
    recorder = Recorder(hooks.source)
    try:
        capture.get(hooks.library).install(recorder, hooks.points)
    except Exception as error:
        return recorder, f"the points of capture cannot be hooked: {type(error).__name__}: {error}"
    gc.collect()
    gc.freeze()  # tests, and what runs them, collect garbage by the way: never in what was imported
    return recorder, ""


def _run_module(job: Job, recorder: Recorder) -> tuple[str, str, int, int]:
    """Execute a file as the module that its path spells, inside the installed package."""
    name = job.file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    try:
        importlib.import_module(name.rpartition(".")[0])
        spec = importlib.util.spec_from_file_location(name, Path(job.root, job.file))
        if spec is None or spec.loader is None:
            return "failed-import", "not a Python file", 0, 0
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        return "failed-import", f"{type(error).__name__}: {error}"[:500], recorder.calls, 1
    return "done", "", recorder.calls, 0


def _run_pytest(job: Job, recorder: Recorder) -> tuple[str, str, int, int]:
    """Run a file by pytest, with nothing of the checkout's own configuration, and the installed library first."""
    import pytest

    from opera.capture.plugin import Plugin

    plugin = Plugin(recorder, job.stop, job.resume, job.inert)
    with tempfile.TemporaryDirectory() as neutral:
        fixed = ["-c", os.devnull, "--rootdir", neutral, "--import-mode=importlib", *WITHOUT, "-q"]
        file = Path(job.root, job.file)
        if "--noconftest" in job.arguments:
            fixed.append(f"--confcutdir={file.parent}")  # pytest lists no folders above it
        code = pytest.main([*fixed, *job.arguments, str(file)], plugins=[plugin])
    tests, failed = sum(plugin.outcomes.values()), plugin.outcomes["failed"]
    if plugin.problems and not tests:
        return "failed-import", plugin.problems[0], 0, 0
    if code in (pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.INTERRUPTED):
        return (
            "failed",
            f"pytest ended with {pytest.ExitCode(code).name}" + "".join(f": {x}" for x in plugin.problems[:1]),
            tests,
            failed,
        )
    return "done", "; ".join(plugin.problems[:1]), tests, failed


def _run_driver(job: Job, recorder: Recorder) -> tuple[str, str, int, int]:
    """Let a capture module's driver run one part of the suite that it knows, or one file."""
    try:
        driver = importlib.import_module(job.driver)
    except Exception as error:
        return "failed-import", f"{job.driver}: {type(error).__name__}: {error}"[:500], 0, 0
    file = str(Path(job.root, job.file)) if job.kind == "files" else job.file
    try:
        tests, failed = driver.run(recorder, file)
    except Exception as error:
        return "failed", f"{type(error).__name__}: {error}"[:500], recorder.calls, 1
    return "done", "", tests, failed


KINDS = {"modules": _run_module, "pytest": _run_pytest, "driver": _run_driver, "files": _run_driver}
