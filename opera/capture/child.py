"""A child process that runs files of a suite under instrumentation, one job a line, and answers each.

Jobs come and answers go through one socket, whose descriptor is the argument: standard input and output belong to the suite.
"""

from __future__ import annotations

import fcntl
import importlib
import importlib.util
import os
import resource
import select
import signal
import socket
import sys
import tempfile
import time
import warnings
from pathlib import Path

import msgspec

from opera import capture
from opera.capture.recorder import Recorder

MEMORY = 12 << 30
"""Bytes of private memory that a child may take."""
FILE_SIZE = 2 << 30
"""Bytes that a child may write into one file, its log and spool included."""


class Setup(msgspec.Struct, frozen=True):
    """First line: what is hooked for the life of the child."""

    source: str
    library: str
    points: dict[str, list[str]]


class Job(msgspec.Struct, frozen=True):
    """One file of a suite.

    Attributes:
        kind: `modules`: executed under its dotted name in place of the installed one; `pytest`: run by pytest; `driver`:
            left to the module `driver`, whose `run(recorder, file)` returns how many tests ran and how many of them failed.
        root, file: The target's root, and the path of the file below it; the part that a driver is asked for.
        spool: Where captured instances go.
        arguments: Further arguments of pytest.
        path: Folders, relative to root, that are appended to sys.path.
        stop: Callables that pytest suites are not let into (`module:name`), for they cost time and show nothing.
        resume: Functions of the test module that then return something harmless; without one, the test ends as skipped.
        inert: Callables that do nothing and return something harmless.
    """

    kind: str
    root: str
    file: str
    spool: str
    arguments: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    stop: tuple[str, ...] = ()
    resume: tuple[str, ...] = ()
    inert: tuple[str, ...] = ()
    driver: str = ""


class Answer(msgspec.Struct, frozen=True):
    """How a file went: see opera.sources.suites.suites.FileReport."""

    status: str
    reason: str
    tests: int
    failed: int
    calls: int
    recorded: int
    left_out: dict[str, int]
    seconds: float


def main(descriptor: int, parent: int) -> None:
    """Serve jobs from the socket `descriptor` until the parent closes it; `parent` is the end of a pipe that it holds."""
    _leave_with(parent)
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_SIZE, FILE_SIZE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with socket.socket(fileno=descriptor) as link, link.makefile("rb") as lines:
        setup = msgspec.json.decode(lines.readline(), type=Setup)
        recorder = Recorder(setup.source)
        problem = _install(setup, recorder)
        for line in lines:
            job = msgspec.json.decode(line, type=Job)
            answer = Answer("failed", problem, 0, 0, 0, 0, {}, 0.0) if problem else _run(job, recorder)
            link.sendall(msgspec.json.encode(answer) + b"\n")
    os._exit(0)  # threads and exit handlers of what was run are of no concern


def _leave_with(parent: int) -> None:
    """Have the kernel kill this process's group, which is its own, when the other end of a pipe is closed.

    That ends also what hangs in code that lets no other thread run, and what a suite started.
    """
    fcntl.fcntl(parent, fcntl.F_SETOWN, -os.getpgrp())
    fcntl.fcntl(parent, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(parent, fcntl.F_SETFL, fcntl.fcntl(parent, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([parent], [], [], 0)[0]:  # it was closed before
        os._exit(1)


def _install(setup: Setup, recorder: Recorder) -> str:
    try:
        capture.get(setup.library).install(recorder, setup.points)
    except Exception as error:
        return f"the points of capture cannot be hooked: {type(error).__name__}: {error}"
    return ""


def _run(job: Job, recorder: Recorder) -> Answer:
    start = time.perf_counter()
    recorder.begin(job.file, Path(job.spool))
    sys.path.extend(str(Path(job.root, entry)) for entry in job.path)
    status, reason, tests, failed = KINDS[job.kind](job, recorder)
    recorder.flush()
    recorder.close()
    seconds = time.perf_counter() - start
    if recorder.unwritten:
        status, reason = "failed", recorder.unwritten
    return Answer(
        status, reason, tests, failed, recorder.calls, recorder.recorded, dict(recorder.left_out), round(seconds, 3)
    )


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
        fixed = ["-c", os.devnull, "--rootdir", neutral, "--import-mode=importlib", "-p", "no:cacheprovider", "-q"]
        code = pytest.main([*fixed, *job.arguments, str(Path(job.root, job.file))], plugins=[plugin])
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
    """Let a capture module's driver run one part of the suite that it knows."""
    try:
        driver = importlib.import_module(job.driver)
    except Exception as error:
        return "failed-import", f"{job.driver}: {type(error).__name__}: {error}"[:500], 0, 0
    try:
        tests, failed = driver.run(recorder, job.file)
    except Exception as error:
        return "failed", f"{type(error).__name__}: {error}"[:500], recorder.calls, 1
    return "done", "", tests, failed


KINDS = {"modules": _run_module, "pytest": _run_pytest, "driver": _run_driver}


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
