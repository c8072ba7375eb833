"""Record what a script or test suite of the user's own calls: `opera record --library torch -- python train.py`.

The program runs in the foreground, as it would without opera, and is one unit: so no pool holds it.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

import opera
from opera import capture, libraries, plugins, processes, temporary
from opera.capture import script, sites
from opera.capture.child import Hooks, Ran
from opera.capture.script import Command
from opera.errors import SourceError, UsageError, WorkspaceError
from opera.pool.workers import LOAD
from opera.sources import DIED, DONE, TIMEOUT, Finished, UnitReport, engine, telling
from opera.sources.suites import suites
from opera.store import defaults
from opera.store import sites as stored_sites
from opera.store.sites import Seen
from opera.store.workspace import Workspace

SOURCE = "command"
"""The migration source that provenances name."""
START = (
    "import sys; sys.flags.safe_path or sys.path.pop(0)\n"
    + LOAD
    + "del importlib, spec\nfrom opera.capture.script import main; main(sys.argv[1])"
)
EXAMPLE = "opera record --library torch -- python train.py"
BY_INTERRUPT = (script.INTERRUPTED, -signal.SIGINT)
"""Exit codes of a program that Ctrl-C ended."""
PYTHON = re.compile(r"python(\d+(\.\d+)?)?")


def parse(library: str, words: Sequence[str]) -> Command:
    """Return what a command line means. Raises UsageError where opera cannot run it, SourceError for an unknown library."""
    known = list(plugins.registered(capture.GROUP))
    if not (library or words):
        raise UsageError("there is nothing to record", fix=EXAMPLE)
    if not library:
        raise UsageError(
            f"of which library should the operators of `{shlex.join(words)}` be recorded?",
            cause="a command was given without --library",
            fix=f"name the library: {EXAMPLE}",
        )
    if library not in known:
        raise SourceError(
            f"opera does not know how to capture operators of {library!r}", fix=f"choose from {', '.join(known)}"
        )
    if not words:
        raise UsageError(f"--library {library} needs a command after `--`", fix=EXAMPLE)
    hooks = Hooks(SOURCE, library, suites.points(library))
    program, *rest = words
    _check_interpreter(program)
    if _is_pytest(program):
        return Command(hooks, "pytest", shlex.join(["pytest", *rest]), tuple(rest))
    if rest[:2] == ["-m", "pytest"]:
        return Command(hooks, "pytest", shlex.join(["pytest", *rest[2:]]), tuple(rest[2:]), search=True)
    if rest[:1] == ["-m"] and len(rest) > 1:
        return Command(hooks, "module", rest[1], tuple(rest[2:]))
    if not rest or rest[0].startswith("-"):
        raise UsageError(
            f"opera cannot run `{shlex.join(words)}`",
            cause="options of the interpreter are not passed on" if rest else "Python's prompt is no script",
            fix="give a script or -m MODULE; PYTHONWARNINGS and the like do what Python's options do",
        )
    if not Path(rest[0]).is_file():
        raise UsageError(f"there is no script {rest[0]}", fix="check the path")
    return Command(hooks, "script", rest[0], tuple(rest[1:]))


def _is_pytest(program: str) -> bool:
    return Path(program).name in ("pytest", "py.test")


def is_program(program: str) -> bool:
    """Whether this is Python or pytest, by its name."""
    return _is_pytest(program) or program == sys.executable or PYTHON.fullmatch(Path(program).name) is not None


def _check_interpreter(program: str) -> None:
    """Programs run in opera's own environment: say so where a name means another one, refuse a path to another one."""
    if not is_program(program):
        raise UsageError(
            f"{program!r} is neither python nor pytest",
            cause="opera sees what a Python program calls from inside its process",
            fix="give `python SCRIPT`, `python -m MODULE` or `pytest ...`, with arguments, after `--`",
        )
    found = shutil.which(program)
    if found is None or Path(found).parent.resolve() == Path(sys.executable).parent.resolve():
        return
    if os.sep in program:
        raise UsageError(
            f"{program} is not of the environment that opera runs in ({sys.executable})",
            fix=f"install opera there and call it from there, or write `{Path(program).name}`",
        )
    print(f"{program} is taken to be that of opera's own environment: {sys.executable}", file=sys.stderr)


def record(workspace: Workspace, command: Command, *, timeout: float | None) -> bool:
    """Run a command, store what it calls, however it ends, and print a summary; False if nothing came of it.

    Its exit code is told and not taken over.
    """
    report, ending = recorded(workspace, command, timeout=timeout)
    _tell(report, ending, command.hooks.library)
    return report.captured > 0 or (report.status == DONE and ending.endswith("exit code 0"))


def recorded(workspace: Workspace, command: Command, *, timeout: float | None) -> tuple[UnitReport, str]:
    """Run a command and store what it calls; return what came of it, and how it ended.

    Every run records anew. `timeout` is in wall seconds, as whoever waits for the program counts them.
    """
    library = command.hooks.library
    version = suites.version_of(library)
    line, key = line_of(command), key_of(command)
    workspace.forget_extraction(key)
    about = {"target": line, "name": SOURCE, "version": version, "installed": version, "equipped": ""}
    workspace.extraction(key, about)
    with temporary.folder("extract") as folder, _outlasting_interrupts() as interrupts:
        report, ending, code = _run(command, line, folder, timeout)
        report = engine.store(workspace, report, Workspace.add_captured)
        seen = (Seen(name, x.file, x.line, x.module, x.text) for name, x in sites.read(folder / script.SITES))
        stored_sites.replace(workspace, key, seen)
        _save_defaults(workspace, library, folder / script.DEFAULTS)
        engine.finish(workspace, key, Finished(report=report))
    _check_still_there(workspace)
    if interrupts and code in BY_INTERRUPT:
        _tell(report, f"{ending}, interrupted", library)
        raise KeyboardInterrupt
    return report, ending + (", interrupted" if interrupts else "")


def line_of(command: Command) -> str:
    """Return the program as provenances name it: its file and arguments."""
    return shlex.join([command.file, *command.arguments]) if command.kind != "pytest" else command.file


def key_of(command: Command) -> str:
    """Return the key of what it calls: the same for the same program in the same folder, of the same version of the library."""
    library = command.hooks.library
    folder = str(Path.cwd()).encode("utf-8", "backslashreplace").decode()
    return f"{SOURCE} {line_of(command)} in {folder} on {library} {suites.version_of(library)}"


def _save_defaults(workspace: Workspace, library: str, path: Path) -> None:
    """Store what the program's process could say of its operators' defaults, so that `opera prioritize` need not ask."""
    if path.is_file():
        with suppress(msgspec.DecodeError):  # the process was killed meanwhile
            exporter = defaults.version(library, libraries.get(library).exporter())
            defaults.save(workspace, library, exporter, msgspec.json.decode(path.read_bytes()))


def _check_still_there(workspace: Workspace) -> None:
    """Raise WorkspaceError where the program has deleted the workspace: what was stored is in no folder."""
    if not (workspace.root / "opera.sqlite").is_file():
        raise WorkspaceError(
            f"the workspace {workspace.root} was deleted while the program ran, and what was captured with it",
            cause="the program removes the folder that the workspace is in",
            fix="name a folder elsewhere by --workspace",
        )


@contextmanager
def _outlasting_interrupts() -> Iterator[list[int]]:
    """Ctrl-C reaches the program too: it decides what comes of it, and what was captured is stored.

    Being a handler, and not SIG_IGN, this is not inherited by the program.
    """
    seen: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: seen.append(number))
    try:
        yield seen
    finally:
        signal.signal(signal.SIGINT, before)


def _run(command: Command, line: str, folder: Path, timeout: float | None) -> tuple[UnitReport, str, int]:
    """Run the program to its end; return what it left, in words how it ended, and its exit code (of a signal negative)."""
    (folder / script.COMMAND).write_bytes(msgspec.json.encode(msgspec.structs.replace(command, parent=os.getpid())))
    started, own = time.monotonic(), processes.children()
    status = ""
    with processes.adopting():
        process = subprocess.Popen([sys.executable, "-c", START, str(folder), opera.__file__])
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            code, status = process.wait(), TIMEOUT
        left = processes.end_adopted(own)
    seconds = time.monotonic() - started
    found = _answer(folder / script.ANSWER)
    ran = found or Ran(status or DONE, "", 0, 0, 0, 0, {}, seconds)
    reasons = [ran.reason]
    if found is None and code >= 0:
        reasons.append(
            "it ended without exit handlers (os._exit, or another program in its place): what was left out is not counted"
        )
    if left:
        reasons.append(f"it left {left} process{'es' * (left > 1)} running, not followed and ended now")
    ending = f"exit code {code}"
    if code < 0:
        ending = f"killed by {processes.signal_name(-code)}"
        status = status or DIED
    ending = f"still running after {timeout:g} s, and killed" if status == TIMEOUT and timeout else ending
    reason = "; ".join(filter(None, (*reasons, "" if not code else ending)))
    report = UnitReport(
        source=SOURCE, file=line, status=status or ran.status, reason=reason, tests=ran.tests, failed=ran.failed,
        calls=ran.calls, left_out=ran.left_out, seconds=round(seconds, 3), spool=folder / script.SPOOL,
    )  # fmt: skip
    return report, ending, code


def _answer(path: Path) -> Ran | None:
    """Return what the program's process wrote as its last; None where it did not come to that, or was killed meanwhile."""
    with suppress(OSError, msgspec.DecodeError):
        return msgspec.json.decode(path.read_bytes(), type=Ran)
    return None


def _tell(report: UnitReport, ending: str, library: str) -> None:
    tests = f", {report.tests} tests ({report.failed} failed)" if report.tests else ""
    print(
        f"opera: {report.file}: {ending} after {report.seconds:.1f} s{tests}; {report.captured} captured:"
        f" {report.new} new instances"
    )
    telling.show_left_out(report.left_out)
    for remark in report.reason.split("; "):
        if remark and remark != ending:
            print(f"note: {remark}")
    if not report.captured:
        print(f"note: it called no operator of {library} that can be recorded")
