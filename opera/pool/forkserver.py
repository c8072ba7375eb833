"""The other end of the worker pool: a process that imports once and forks workers on command. Linux.

`PYTHON -P -m opera.pool.forkserver FD` speaks with `opera.pool.pool` over the socket FD. It imports the modules it is
told to, says that it is ready (or why it is not), and then forks, reaps and kills. It never runs a compiler itself, so that a
fork of it is as good as a fresh process. Another interpreter than the pool's will do: it needs opera, numpy and msgspec.

When the pool goes away, however it goes, the control socket ends; then the server kills its workers, what they started
(orphans come to it, for it is their subreaper), and itself.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import gc
import importlib
import inspect
import mmap
import os
import resource
import select
import shutil
import signal
import socket
import sys
import tempfile
import traceback
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NoReturn, get_type_hints

import msgspec

from opera import processes, temporary

FILE_SIZE = 4 << 30
"""Bytes that a worker may write to one file. Its log is cut by the pool long before (`opera.pool.workers.LOG_SIZE`)."""
NOTE_SIZE = 4096
MARK_AT = NOTE_SIZE // 2
"""Where the second note begins."""
LOST_CONNECTION = 97
"""Exit code of a worker whose connection was closed under it."""


class Setup(msgspec.Struct, array_like=True):
    """First message to the server: modules to import, and the functions that workers will call (`module:name`)."""

    preload: list[str]
    calls: list[str]


class Command(msgspec.Struct, array_like=True):
    """`fork` (with three descriptors: connection, log, note) or `kill` the worker of that number."""

    kind: str
    worker: int


class Event(msgspec.Struct, array_like=True):
    """What the server tells: `ready`, `failed`, `forked` or `exited` (`status` as of waitpid, `peak` RSS in bytes).

    `message` is why the server cannot start (`failed`) or a worker could not be forked (`exited`), or the temporary folder in
    which workers stand (`ready`).
    """

    kind: str
    worker: int = 0
    pid: int = 0
    status: int = 0
    peak: int = 0
    message: str = ""


class Request(msgspec.Struct, array_like=True):
    """One job: call the function with the payload, growing by at most `memory` bytes."""

    number: int
    call: str
    payload: msgspec.Raw
    memory: int


class Answer(msgspec.Struct, array_like=True):
    """`done` with what the function returned, or `error` or `out-of-memory` with a traceback.

    `children` tells that the job left processes behind, which die with the worker.
    """

    number: int
    status: str
    payload: msgspec.Raw
    children: bool


_note: list[mmap.mmap] = []


def note(text: str) -> None:
    """Leave a note that the pool can still read when this worker is dead, such as the stage it is in."""
    _leave(text, 0)


def mark(text: str) -> None:
    """Leave a second note, which the first does not touch: which of several things a job is at."""
    _leave(text, MARK_AT)


def _leave(text: str, at: int) -> None:
    if _note:
        data = text.encode()[: MARK_AT - 1] + b"\0"
        _note[0][at : at + len(data)] = data


def frame(message: Any) -> bytes:
    """Return a message with its length before it, as it goes over a worker's connection."""
    data = msgspec.msgpack.encode(message)
    return len(data).to_bytes(4, "little") + data


def main(control: socket.socket) -> None:
    """Serve until the control socket ends."""
    faulthandler.enable(2)
    processes.end_with_parent()  # while it imports, it would not see the socket end
    sys.path[:] = [str(Path(entry).absolute()) for entry in sys.path]
    setup = msgspec.msgpack.decode(control.recv(1 << 20), type=Setup)
    try:
        for name in setup.preload:
            importlib.import_module(name)
        for name in setup.calls:
            function(name)
    except BaseException:
        _tell(control, Event("failed", message=traceback.format_exc(limit=-3)[-4000:]))
        return
    with temporary.folder("worker") as home:  # compilers leave files where they stand, and where such files belong
        os.chdir(home)
        try:
            _Server(control, str(home)).serve()
        finally:
            os.chdir("/")


@cache
def function(name: str) -> tuple[Callable[[Any], Any], Any]:
    """Return the function `module:name`, and the type of its argument."""
    module, _, attribute = name.partition(":")
    found: Callable[[Any], Any] = getattr(importlib.import_module(module), attribute)
    argument = next(iter(inspect.signature(found).parameters))
    return found, get_type_hints(found).get(argument, Any)


class _Server:
    def __init__(self, control: socket.socket, home: str) -> None:
        self.control, self.home = control, home
        self.pids: dict[int, int] = {}  # pid → worker
        self.own = processes.children()  # helpers that an import started
        self.wake, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)

    def serve(self) -> None:
        processes.end_with_parent(False)  # from here on it must outlive the pool by a moment, to clean up
        processes.adopt()
        gc.collect()
        gc.freeze()  # a collection in a worker would copy every page that was imported
        _tell(self.control, Event("ready", pid=os.getpid(), peak=_status("VmRSS"), message=self.home))
        try:
            while True:
                ready, _, _ = select.select([self.control.fileno(), self.wake], [], [])
                if self.wake in ready:
                    os.read(self.wake, 4096)
                    self.reap()
                if self.control.fileno() in ready and not self.obey():
                    return
        finally:
            self.kill_all()

    def obey(self) -> bool:
        """Do what the pool says; False where it is gone."""
        data, files, _, _ = socket.recv_fds(self.control, 1 << 16, 3)
        if not data:
            return False
        command = msgspec.msgpack.decode(data, type=Command)
        if command.kind == "fork":
            try:
                self.fork(command.worker, files)
            except OSError as error:
                _tell(self.control, Event("exited", command.worker, message=f"cannot fork a worker: {error}"))
            for file in files:
                os.close(file)
        else:
            for pid in [pid for pid, worker in self.pids.items() if worker == command.worker]:
                _kill(pid)
        return True

    def fork(self, worker: int, files: list[int]) -> None:
        server = os.getpid()
        pid = os.fork()
        if pid == 0:
            try:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                self.control.close()
                os.setsid()  # a group to kill; Ctrl-C does not reach it, and what shares out CPUs counts it by itself
                folder = self.folder(worker)  # its own: in a shared one it could delete or damage another's files
                folder.mkdir(parents=True)
                os.chdir(folder)
                os.environ["TMPDIR"], tempfile.tempdir = str(folder), None
                _work(server, *files)
            finally:
                os._exit(LOST_CONNECTION)
        self.pids[pid] = worker
        _tell(self.control, Event("forked", worker, pid))

    def folder(self, worker: int) -> Path:
        return Path(self.home, str(worker))

    def reap(self) -> None:
        while self.pids or processes.children() - self.own:
            # The group is killed while the dead worker still holds its number: afterwards it might be another's.
            try:
                dead = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if dead is None:
                return
            if dead.si_pid in self.pids:
                _kill(dead.si_pid)
            pid, status, usage = os.wait4(dead.si_pid, 0)
            if pid in self.pids:
                worker = self.pids.pop(pid)
                _tell(self.control, Event("exited", worker, pid, status, usage.ru_maxrss << 10))
                self.kill_orphans()
                shutil.rmtree(self.folder(worker), ignore_errors=True)

    def kill_orphans(self) -> None:
        for pid in processes.children() - self.own - self.pids.keys():
            _kill(pid)

    def kill_all(self) -> None:
        """Kill workers and all that they started, until nothing is left."""
        for pid in self.pids:
            _kill(pid)
        while rest := processes.children() - self.own:
            for pid in rest - self.pids.keys():
                _kill(pid)
            with contextlib.suppress(ChildProcessError):
                os.wait()


def _tell(control: socket.socket, event: Event) -> None:
    with contextlib.suppress(OSError):
        control.send(msgspec.msgpack.encode(event))


def _kill(pid: int) -> None:
    """Kill a process and its group (it may have left its own)."""
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)


def _status(field: str) -> int:
    """Return a field of /proc/self/status in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) << 10
    return 0


def _work(server: int, connection: int, log: int, notes: int) -> NoReturn:
    """Be a worker: set up the process, then do one job after the other until the connection ends."""
    processes.end_with(server, LOST_CONNECTION)
    _redirect(log)
    _note[:] = [mmap.mmap(notes, NOTE_SIZE)]
    resource.setrlimit(resource.RLIMIT_CORE, (1, 1))  # core(5): 1, unlike 0, also keeps piped core handlers away
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_SIZE, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    with contextlib.suppress(OSError):  # should the machine run out of memory, a worker goes first
        Path("/proc/self/oom_score_adj").write_text("500")
    channel, me, base = socket.socket(fileno=connection), os.getpid(), _status("VmData")
    while True:
        try:
            request = msgspec.msgpack.decode(_receive(channel), type=Request)
            _limit_data(base + request.memory)
            answer = _answer(request)
            if os.getpid() != me:  # a job forked, and this is its child: one process answers
                os._exit(0)
            channel.sendall(answer)
        except (OSError, msgspec.MsgspecError):
            os._exit(LOST_CONNECTION)


def _answer(request: Request) -> bytes:
    """Do one job and return the framed answer; nothing but the end of the process gets past this."""
    note("")
    mark("")
    try:
        call, argument = function(request.call)
        result = call(msgspec.msgpack.decode(request.payload, type=argument))
        return frame(Answer(request.number, "done", msgspec.Raw(msgspec.msgpack.encode(result)), _has_children()))
    except BaseException as error:
        depth = sys.getrecursionlimit()
        sys.setrecursionlimit(max(depth, 1000))  # what failed for want of depth or memory is told with more of both
        _limit_data(resource.getrlimit(resource.RLIMIT_DATA)[1])
        status = "out-of-memory" if isinstance(error, MemoryError) else "error"
        text = traceback.format_exc()[-4000:].encode("utf-8", "backslashreplace").decode()
        sys.setrecursionlimit(depth)
        return frame(Answer(request.number, status, msgspec.Raw(msgspec.msgpack.encode(text)), _has_children()))


def _limit_data(size: int) -> None:
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_DATA, (size, resource.getrlimit(resource.RLIMIT_DATA)[1]))


def _redirect(log: int) -> None:
    """Send standard output and error, of Python and of C, to the log, line by line."""
    os.dup2(log, 1)
    os.dup2(log, 2)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115  (the server's: /dev/null)
    sys.stdout = open(1, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    libc = ctypes.CDLL(None)
    with contextlib.suppress(ValueError):
        libc.setvbuf(ctypes.c_void_p.in_dll(libc, "stdout"), None, 1, 0)  # _IOLBF: what C printed survives a crash
    faulthandler.enable(2)


def _receive(channel: socket.socket) -> bytes:
    """Return one frame; OSError where the connection ended."""
    return _exactly(channel, int.from_bytes(_exactly(channel, 4), "little"))


def _exactly(channel: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = channel.recv(size - len(data))
        if not more:
            raise ConnectionError
        data += more
    return data


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


if __name__ == "__main__":
    # The module that workers import must be this one, not a second copy called __main__.
    from opera.pool.forkserver import main as _main

    _main(socket.socket(fileno=int(sys.argv[1])))
