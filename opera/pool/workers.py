"""Worker processes and their fork servers, as the pool sees them: started, looked at, told, ended. Linux."""

from __future__ import annotations

import contextlib
import fcntl
import math
import mmap
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import deque
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

import opera
from opera import poison, processes
from opera.pool import clock
from opera.pool.clock import Clock
from opera.pool.forkserver import MARK_AT, NOTE_SIZE, Command, Setup

DONE, ERROR, UNAVAILABLE = "done", "error", "unavailable"
ABORT, TIMEOUT, OUT_OF_MEMORY, STARVED = "abort", "timeout", "out-of-memory", "starved"

LOG_TAIL = 4000
LOG_SIZE = 8 << 20
"""A log that has grown by so many bytes is cut: a compiler that prints without end fills no disk."""
SENDING = 120.0
"""Seconds that a worker may take to read a request, which it waits for."""
MARK = "OPERA_FORK_SERVER"
"""Environment variable by which the processes of a fork server are known."""
THREADS = ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB", "TVM")
LOAD = (
    "import importlib.util, sys\n"
    "spec = importlib.util.spec_from_file_location('opera', sys.argv.pop())\n"
    "sys.modules['opera'] = importlib.util.module_from_spec(spec)\n"
    "spec.loader.exec_module(sys.modules['opera'])\n"
)
"""Imports this very opera, whose file is the last argument, without a place on the path: what is beside it would be there too,
and another opera that is installed would come before it."""
BARE = LOAD + "import socket\nfrom opera.pool.forkserver import main\nmain(socket.socket(fileno=int(sys.argv.pop())))"


class Identity(msgspec.Struct, frozen=True):
    """What tells whether machines would do jobs of a group alike: what `call`, `module:name`, returns for `argument`.

    Jobs of the group are done where it returns what `expected` is; where that is None, what it returns in most workers.
    """

    call: str
    argument: Any
    expected: Any = None


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of worker.

    Attributes:
        call: Function that does its jobs, `module:name`; it takes the payload and returns what `Result.payload` holds.
        python: Interpreter; empty for the running one (whose `sys.path` the workers then have).
        bare: The running interpreter with its own `sys.path` alone, and opera imported by its file: for code that is to run as
            if opera were not there.
        preload: Modules imported before workers are forked.
        env: Environment variables set on top of this process's; None for one that is left out.
        jobs: A worker is replaced after so many jobs,
        growth: or when it has grown by so many bytes.
        start_seconds: Time that importing may take (seconds as of `opera.pool.clock`).
        identity: For pools of several machines; None where any will do.
    """

    call: str
    python: str = ""
    bare: bool = False
    preload: tuple[str, ...] = ()
    env: dict[str, str | None] = {}
    jobs: int = 500
    growth: int = 1 << 30
    start_seconds: float = 300.0
    identity: Identity | None = None


class Account(msgspec.Struct):
    """What a group has cost: slot-seconds of jobs in warm workers and in fresh ones, jobs done of each, forks made."""

    seconds: float = 0.0
    fresh_seconds: float = 0.0
    jobs: int = 0
    fresh_jobs: int = 0
    forks: int = 0


class Result(msgspec.Struct, kw_only=True):
    """What became of one job.

    Attributes:
        tag: The caller's own, as submitted.
        group: The group it was submitted to.
        status: `done`; `abort` (the process died), `timeout` or `out-of-memory`; `error` (the function raised); `starved`
            (the machine did not serve it in time); or `unavailable` (the group's interpreter, or an import in it, does not
            work).
        payload: What the function returned, in msgpack's types (None unless `done`); `decode` gives it its own type.
        message: The traceback of `error`, or why the group is `unavailable`.
        exit: How the process died: `SIGSEGV`, `exit 0`, `closed files`, `killed its parent`.
        note: The last `forkserver.note` of a job that is not `done`: the stage that it was in.
        mark: Its last `forkserver.mark`: which of several tests it was at.
        log: The last 4,000 characters that the job printed.
        seconds: Slot-seconds occupied, the fork included.
        worker: Number of the worker, unique in the pool.
        fresh: Whether a fresh fork did it.
        busy: For `unavailable`: the imports did not end in time. Else they failed.
    """

    tag: Any
    group: str
    status: str
    payload: Any = None
    message: str = ""
    exit: str = ""
    note: str = ""
    mark: str = ""
    log: str = ""
    seconds: float = 0.0
    worker: int = -1
    fresh: bool = False
    busy: bool = False
    raw: bytes = b""
    history: list[Any] = []
    position: int = 0

    @property
    def predecessors(self) -> list[Any]:
        """Tags of the jobs that the worker had done before, in order."""
        return self.history[: self.position]

    def decode(self, kind: Any) -> Any:
        """Return the payload as `kind`, a type that msgspec knows."""
        return msgspec.msgpack.decode(self.raw, type=kind)


class Task(msgspec.Struct):
    order: int
    tag: Any
    call: str
    payload: msgspec.Raw
    seconds: float
    memory: int
    fresh: bool
    suspect: bool = False  # the fork server died while it ran: it is run again with no other beside it
    once: bool = False  # it is not run again, whatever signal ends it
    ended: list[str] = []  # signals that ended it and may have been another job's doing: after each it was run again


class Worker:
    """One worker process as the pool sees it. It occupies a slot while it has a task."""

    def __init__(self, number: int, server: Server) -> None:
        self.number, self.server = number, server
        self.connection, self.far = socket.socketpair()
        self.connection.settimeout(SENDING)  # reading never waits
        self.log: BinaryIO = tempfile.TemporaryFile()  # noqa: SIM115
        self.note_file: BinaryIO = tempfile.TemporaryFile()  # noqa: SIM115
        self.note_file.truncate(NOTE_SIZE)
        self.note = mmap.mmap(self.note_file.fileno(), NOTE_SIZE)
        fcntl.fcntl(self.log, fcntl.F_SETFL, os.O_APPEND)  # so that truncating it starts it anew
        fcntl.fcntl(self.note_file, fcntl.F_SETFL, os.O_APPEND)  # what a job writes to it by mistake spoils no note
        self.received = bytearray()
        self.statm, self.pid = -1, 0
        self.task: Task | None = None
        self.started = self.deadline = 0.0  # when its task began; when it is given up in any case
        self.clock, self.looked = Clock(), 0.0
        self.history: list[Any] = []
        self.reason = ""  # why it is being killed
        self.lost = self.unread = self.dead = False  # connection ended; request not read; killed or gone
        self.worn = False  # it is given no other task
        self._tail = b""  # of a log that was cut

    def rss(self) -> int:
        """Resident bytes."""
        try:
            return int(os.pread(self.statm, 100, 0).split()[1]) * mmap.PAGESIZE
        except (OSError, IndexError):
            return 0

    def notes(self) -> tuple[str, str]:
        """Return the last note and the last mark of its job."""
        both = self.note[:MARK_AT], self.note[MARK_AT:]
        note, mark = (bytes(data).split(b"\0", 1)[0].decode("utf-8", "replace") for data in both)
        return note, mark

    def cut_log(self) -> None:
        """Drop what a flood has printed, but for its end."""
        if os.fstat(self.log.fileno()).st_size > LOG_SIZE:
            self._tail = self._read_log()

    def log_tail(self) -> str:
        """Return the end of what was printed since the last call."""
        data, self._tail = (self._tail + self._read_log())[-4 * LOG_TAIL :], b""
        return data.decode("utf-8", "replace")[-LOG_TAIL:]

    def _read_log(self) -> bytes:
        file = self.log.fileno()
        size = os.fstat(file).st_size
        if not size:
            return b""
        data = os.pread(file, 4 * LOG_TAIL, max(0, size - 4 * LOG_TAIL))
        os.ftruncate(file, 0)
        return data

    def dying(self) -> bool:
        """Whether the process ends, and the fork server is about to tell how; False for one that lives on."""
        found = processes.look(self.pid) if self.pid else None
        return found is None or found.ended

    def stopped(self) -> bool:
        """Whether a signal has stopped the process, perhaps another job's."""
        found = processes.look(self.pid) if self.pid else None
        return found is not None and found.stopped

    def close(self) -> None:
        for thing in (self.connection, self.far, self.log, self.note, self.note_file):
            thing.close()
        if self.statm >= 0:
            os.close(self.statm)
            self.statm = -1  # its number may soon be another file's


class Server:
    """The fork server of a group: `new`, `starting`, `ready` or `failed`."""

    def __init__(self, name: str, group: Group) -> None:
        self.name, self.group = name, group
        self.state, self.message, self.busy = "new", "", False
        self.queue: deque[Task] = deque()
        self.workers: dict[int, Worker] = {}
        self.idle: list[Worker] = []
        self.account = Account()
        self.deadline, self.rss, self.deaths, self.home = math.inf, 0, 0, ""
        self.clock = Clock()
        self.process: subprocess.Popen[bytes] | None = None
        self.control: socket.socket | None = None
        self.log: BinaryIO | None = None
        self.pids: dict[int, int] = {}  # worker → pid
        self.lived = 0  # jobs done since it last died
        self.mark = ""  # in the environment of the server and all that comes of it

    def start(self) -> None:
        """Start the process; OSError where the interpreter cannot be run."""
        group = self.group
        self.mark = f"{os.getpid()}-{time.monotonic_ns()}"
        threads = {f"{name}_NUM_THREADS": "1" for name in THREADS}
        stated = {**os.environ, **poison.uncached(os.environ), **threads, **group.env, MARK: self.mark}
        env = {name: value for name, value in stated.items() if value is not None}
        if not (
            group.python or group.bare
        ):  # the same modules as here; -P keeps the current folder from shadowing them
            paths = [str(Path(entry).absolute()) for entry in sys.path]  # "" is the current folder
            env["PYTHONPATH"] = os.pathsep.join([*filter(None, [group.env.get("PYTHONPATH")]), *paths])
        self.control, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.log = tempfile.TemporaryFile()  # noqa: SIM115
        number = str(far.fileno())
        program = ["-c", BARE, number, opera.__file__] if group.bare else ["-m", "opera.pool.forkserver", number]
        try:
            self.process = subprocess.Popen(
                [group.python or sys.executable, "-P", *program],
                stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                pass_fds=[far.fileno()], start_new_session=True, env=env,
            )  # fmt: skip
        finally:
            far.close()
        self.state, self.deadline = "starting", time.monotonic() + clock.backstop(group.start_seconds)
        self.clock.start()
        with contextlib.suppress(OSError):
            self.control.send(msgspec.msgpack.encode(Setup(list(group.preload), [group.call])))

    def tell(self, command: Command, *files: int) -> None:
        """Send a command; a server that is gone shows when it is read from."""
        with contextlib.suppress(OSError):
            if self.control is not None:
                socket.send_fds(self.control, [msgspec.msgpack.encode(command)], list(files))

    def stop(self) -> str:
        """End the process and all its workers; return how it ended and what it printed last."""
        if self.control is not None:
            self.control.close()
            self.whole()  # one that is stopped would not hear of it
        text = ""
        if self.process is not None and self.log is not None:
            try:  # it kills its workers on its own
                self.process.wait(0.0 if self.state == "starting" else 5.0)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            for pid in self.pids.values():
                with contextlib.suppress(OSError):
                    os.killpg(pid, signal.SIGKILL)
            if self.process.returncode:
                self._kill_marked()
            self.log.seek(0)
            printed = self.log.read().decode("utf-8", "replace")[-LOG_TAIL:]
            text = f"{ending(self.process.returncode)}\n{printed}".strip()
            self.log.close()
        if self.home:  # a server that was killed leaves it
            shutil.rmtree(self.home, ignore_errors=True)
        self.control, self.process, self.log, self.home = None, None, None, ""
        self.pids.clear()
        return text

    def _kill_marked(self) -> None:
        """Kill what a server has left that could not clean up: daemons are nobody's children any more."""
        for _again in range(20):  # one may fork meanwhile, and the kernel may not let go of one
            pids = _marked(f"{MARK}={self.mark}".encode())
            if not pids:
                return
            for pid in pids:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.01)

    def eligible(self) -> bool:
        """Whether its first job may begin: one that may have killed the last server runs with no other beside it.

        Nor on a server that an earlier one has killed: it would pay for that.
        """
        if not self.queue or self.state != "ready":
            return False
        running = [worker.task for worker in self.workers.values() if worker.task is not None]
        suspect = self.queue[0].suspect
        return (not suspect or self.whole()) if not running else not (suspect or any(x.suspect for x in running))

    def whole(self) -> bool:
        """Whether it lives. One that a job has stopped goes on, as if nothing had happened."""
        found = processes.look(self.process.pid) if self.process is not None else None
        if (
            self.process is not None and found is not None and found.stopped
        ):  # "t": a debugger's, which SIGCONT does not end
            self.process.send_signal(signal.SIGKILL if found.state == "t" else signal.SIGCONT)
        return found is not None and not found.ended and found.state != "t"


def ending(code: int) -> str:
    """Return an exit code, negative for a signal, in words: `exit 1`, `SIGSEGV`."""
    return f"exit {code}" if code >= 0 else processes.signal_name(-code)


def _marked(mark: bytes) -> list[int]:
    """Return the processes that were started with that in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it is gone, or somebody else's
            if mark in (folder / "environ").read_bytes():
                found.append(int(folder.name))
    return found
