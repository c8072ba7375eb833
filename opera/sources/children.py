"""The parent's side of opera.capture.child: start it, give it files, survive whatever becomes of it."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import msgspec

import opera
from opera import processes
from opera.capture.child import Answer, Job, Setup

LOAD = (
    "import importlib.util, sys\n"
    "spec = importlib.util.spec_from_file_location('opera', sys.argv.pop())\n"
    "sys.modules['opera'] = importlib.util.module_from_spec(spec)\n"
    "spec.loader.exec_module(sys.modules['opera'])\n"
)
"""Imports this very opera, whose file is the last argument, without a place on the path: what is beside it would be there too,
and another opera that is installed would come before it."""
COMMAND = LOAD + "from opera.capture.child import main; main(*map(int, sys.argv[1:]))"
FORGOTTEN = (
    "PYTEST_ADDOPTS",
    "PYTEST_PLUGINS",
    "PYTEST_CURRENT_TEST",
    "PYTHONPATH",
    "PYTHONWARNINGS",
    "COVERAGE_PROCESS_START",
)


class Lost(Exception):
    """A child gave no answer; the arguments are the status of the file (`died`, `timeout`) and the reason."""


def how(reason: str) -> str:
    """Return in few words how a call ended its process, given why the child was Lost; what hangs is ended by SIGALRM."""
    if "SIGALRM" in reason:
        return "does not end in time"
    found = re.match(r"killed by \w+", reason)
    return found[0] if found else "ends the process"


class Child:
    """One child process, in a session and an empty folder of its own; its output goes to a log."""

    def __init__(self, setup: Setup, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.setup = setup
        self._log = folder / "log"
        place, temporary = folder / "cwd", folder / "tmp"
        place.mkdir(exist_ok=True)
        temporary.mkdir(exist_ok=True)
        self._link, theirs = socket.socketpair()
        watched, alive = os.pipe()  # when this process is gone, so is its end, and then the child
        self._alive = os.fdopen(alive, "wb")
        environment = {name: text for name, text in os.environ.items() if name not in FORGOTTEN} | {
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTHONDONTWRITEBYTECODE": "1",  # never write into somebody's checkout
            "PYTHONHASHSEED": "0",  # two extractions see the same order of sets
            "OMP_NUM_THREADS": "1",
            "TMPDIR": str(temporary),  # what a suite leaves there when it is killed goes with the folder
        }
        with theirs, os.fdopen(watched) as end, self._log.open("wb") as log:
            passed = theirs.fileno(), end.fileno()
            self._process = subprocess.Popen(
                [sys.executable, "-c", COMMAND, *map(str, passed), opera.__file__],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd=place, env=environment,
                pass_fds=passed, start_new_session=True,
            )  # fmt: skip
        self._lines = self._link.makefile("rb")
        self._link.sendall(msgspec.json.encode(setup) + b"\n")

    def run(self, job: Job, timeout: float) -> Answer:
        """Run one file. Raises Lost, after which the child is gone."""
        self._link.settimeout(timeout)
        try:
            self._link.sendall(msgspec.json.encode(job) + b"\n")
            line = self._lines.readline()
            return msgspec.json.decode(line, type=Answer)
        except TimeoutError:
            self.close()
            raise Lost("timeout", f"still running after {timeout:g} s{self._tail()}") from None
        except (OSError, msgspec.DecodeError):
            self.close(grace=2.0)
            raise Lost("died", f"{_ending(self._process.returncode)}{self._tail()}") from None

    def close(self, grace: float = 0.0) -> None:
        """End the child and everything that it started; `grace` are seconds it is given to end by itself."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(grace)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._lines.close()
        self._link.close()
        self._alive.close()

    def _tail(self) -> str:
        with self._log.open("rb") as log:
            log.seek(max(0, self._log.stat().st_size - 2000))
            lines = [line for line in log.read().decode("utf-8", "replace").splitlines() if line.strip()]
        return f"; last output: {lines[-1].strip()[:300]}" if lines else ""


class Children:
    """The children of a pool of threads: each thread keeps one for as long as it asks for the same setup.

    Attributes:
        folder: Where the children's own folders are made.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._mine = threading.local()
        self._known: set[Child] = set()
        self._started, self._closed = 0, False
        self._lock = threading.Lock()

    def run(self, setup: Setup, job: Job, timeout: float, *, keep: bool = True) -> Answer:
        """Run one file in this thread's child, or in one for it alone if not `keep`. Raises Lost."""
        child = self._child(setup, keep)
        try:
            answer = child.run(job, timeout)
        except Lost:
            self._end(child)
            raise
        if not keep:
            self._end(child)
        return answer

    def close(self) -> None:
        """End all; those that threads still wait for are lost to them."""
        with self._lock:
            self._closed = True
            children, self._known = self._known, set()
        for child in children:
            child.close()

    def _child(self, setup: Setup, keep: bool) -> Child:
        child: Child | None = getattr(self._mine, "child", None)
        if child is not None:
            if keep and child in self._known and child.setup == setup:
                return child
            self._end(child)
        with self._lock:
            if self._closed:
                raise Lost("died", "the extraction was stopped")
            self._started += 1
            child = self._mine.child = Child(setup, self.folder / f"child-{self._started}")
            self._known.add(child)
        return child

    def _end(self, child: Child) -> None:
        with self._lock:
            known = child in self._known
            self._known.discard(child)
        if known:
            child.close()


def _ending(code: int) -> str:
    if code < 0:
        return f"killed by {processes.signal_name(-code)}"
    return f"the process ended with exit code {code} in the middle of the file"
