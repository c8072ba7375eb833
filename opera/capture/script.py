"""A child process that runs a script or test suite of the user's own as if opera were not there, and records what it calls.

Its working directory, environment, standard streams, configuration and plugins are the user's. The argument is a folder:
`command.json` (Command) is read from it; `spool.jsonl`, `sites.jsonl` (opera.capture.sites) and, once the program ended,
`defaults.json` (what its operators' parameters default to) and `answer.json` (Ran) are written into it.
"""

from __future__ import annotations

import atexit
import os
import resource
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from opera import capture, plugins, processes
from opera.capture.child import Hooks, Ran
from opera.capture.recorder import Recorder
from opera.programs import values

COMMAND, SPOOL, SITES, DEFAULTS, ANSWER = "command.json", "spool.jsonl", "sites.jsonl", "defaults.json", "answer.json"
PROCESSES = "it started processes, which are not followed"
INTERRUPTED = 130


class Command(msgspec.Struct, frozen=True):
    """What is run.

    Attributes:
        hooks: What is hooked for the life of the process.
        kind: `script`, `module` (`python -m`) or `pytest`.
        file: The script's path as it was given, the module's name, or pytest's whole command.
        arguments: What follows.
        search: Whether pytest was called by `python -m`, which searches the working directory for modules.
        parent: The process that waits for it; 0 for none.
    """

    hooks: Hooks
    kind: str
    file: str
    arguments: tuple[str, ...] = ()
    search: bool = False
    parent: int = 0


def main(folder: str) -> None:
    """Run the program; the process ends as it would have."""
    place = Path(folder)
    command = msgspec.json.decode((place / COMMAND).read_bytes(), type=Command)
    if command.parent:
        processes.end_with(command.parent)
    recorder = Recorder(command.hooks.source, sited=True)
    try:
        capture.get(command.hooks.library).install(recorder, command.hooks.points)
    except Exception as error:
        reason = f"the points of capture cannot be hooked: {type(error).__name__}: {error}"
        (place / ANSWER).write_bytes(msgspec.json.encode(Ran("failed", reason, 0, 0, 0, 0, {}, 0.0)))
        sys.exit(1)
    watcher = _Watcher(recorder, command, place)
    with recorder.watching():
        RUNNERS[command.kind](command, watcher)


class _Watcher:
    """Names the tests that pytest runs, and writes the answer when the process ends.

    Exit handlers run in reverse order: this one, which is the first, sees the end of all that the program does.
    """

    def __init__(self, recorder: Recorder, command: Command, place: Path) -> None:
        self.recorder, self._place, self._pid = recorder, place, os.getpid()
        self._library = command.hooks.library
        self.tests = self.failed = 0
        self._processes, self._started = _processes(), time.perf_counter()
        recorder.begin(command.file, place / SPOOL, place / SITES)
        os.register_at_fork(after_in_child=recorder.close)
        atexit.register(self._end)

    def pytest_runtest_protocol(self, item: Any, nextitem: Any) -> None:
        """Name the test."""
        self.recorder.test = item.nodeid

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Count tests; an error in set-up counts as a failure."""
        if report.when == "call" or report.outcome != "passed":
            self.tests += 1
            self.failed += report.outcome == "failed"

    def pytest_runtest_logfinish(self) -> None:
        """Make the observations that were put off to the end of the test."""
        self.recorder.flush()
        self.recorder.test = ""

    def _end(self) -> None:
        if os.getpid() != self._pid:
            return
        recorder = self.recorder
        recorder.flush()
        recorder.close()
        reasons = [recorder.unwritten] if recorder.unwritten else []
        reasons += [PROCESSES] if _processes() > self._processes else []
        ran = Ran(
            "failed" if recorder.unwritten else "done", "; ".join(reasons), self.tests, self.failed, recorder.calls,
            recorder.recorded, dict(recorder.left_out), round(time.perf_counter() - self._started, 3),
        )  # fmt: skip
        # Where no descriptor or no room is left, opera says what it does not know, and the program nothing.
        with suppress(OSError):
            if defaults := _defaults(self._library, recorder.operators):
                (self._place / DEFAULTS).write_bytes(msgspec.json.encode(defaults))
            (self._place / ANSWER).write_bytes(msgspec.json.encode(ran))


def _defaults(library: str, operators: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return what the operators' parameters default to, for the library is imported here; nothing where it cannot tell.

    A program may leave a library behind in any state; whoever ranks asks a library of its own then.
    """
    try:
        found = plugins.load("opera.libraries", "library", library).equipped_defaults(sorted(operators))
        return {
            operator: {name: values.encode(value) for name, value in known.items()} for operator, known in found.items()
        }
    except Exception:
        return {}


def _processes() -> int:
    """Grows with every child process that was waited for."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt


def _script(command: Command, watcher: _Watcher) -> None:
    path = os.path.abspath(command.file)  # noqa: PTH100  # as Python does
    sys.argv[:] = [command.file, *command.arguments]
    _search(os.path.dirname(os.path.realpath(path)))  # noqa: PTH120
    module = ModuleType("__main__")
    module.__dict__.update(__file__=path, __builtins__=__builtins__)
    sys.modules["__main__"] = module

    def run() -> None:
        exec(compile(Path(path).read_bytes(), path, "exec"), module.__dict__)

    _passing_on(run, lambda file: file == path)


def _module(command: Command, watcher: _Watcher) -> None:
    import runpy

    sys.argv[:] = [command.file, *command.arguments]
    _search(os.getcwd())  # noqa: PTH109
    _passing_on(
        lambda: runpy.run_module(command.file, run_name="__main__", alter_sys=True),
        lambda file: not file.startswith("<frozen"),
    )


def _pytest(command: Command, watcher: _Watcher) -> None:
    import pytest

    sys.argv[:] = ["pytest", *command.arguments]
    if command.search:
        _search(os.getcwd())  # noqa: PTH109
    sys.exit(pytest.main(list(command.arguments), plugins=[watcher]))


def _search(folder: str) -> None:
    if not sys.flags.safe_path:
        sys.path.insert(0, folder)


def _passing_on(run: Callable[[], object], mine: Callable[[str], bool]) -> None:
    """Run; an exception is shown without the frames that are opera's, and ends the process as Python would."""
    try:
        run()
    except SystemExit:
        raise
    except BaseException as error:
        sys.excepthook(type(error), error, _trimmed(error, mine))
        sys.exit(INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1)


def _trimmed(error: BaseException, mine: Callable[[str], bool]) -> Any:
    def later() -> Iterator[Any]:
        frame = error.__traceback__
        while frame is not None:
            yield frame
            frame = frame.tb_next

    own = (frame for frame in list(later())[1:] if frame.tb_frame.f_code.co_filename != __file__)
    found = next((frame for frame in own if mine(frame.tb_frame.f_code.co_filename)), None)
    error.__traceback__ = found
    return found


RUNNERS = {"script": _script, "module": _module, "pytest": _pytest}
