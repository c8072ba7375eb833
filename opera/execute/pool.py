"""A pool of worker processes that survives whatever a job does: a fault costs the job that has it, and nothing else.

Jobs belong to groups. A group is one interpreter with modules imported once (`opera.execute.forkserver`); its workers are
forked from there, kept warm, and share the pool's slots with the workers of all other groups. The pool is one thread: it
works while the caller iterates over `results()`, and waits in `select` in between.

pebble (benchmarks/pool.py) loses no more jobs and is somewhat faster on warm workers that do nothing, but it cannot cross
interpreters, and a fresh process for each job takes it some 40 times as long.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import math
import mmap
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from opera.execute import clock
from opera.execute.clock import Clock
from opera.execute.forkserver import LOST_CONNECTION, MARK_AT, NOTE_SIZE, Answer, Command, Event, Request, Setup, frame

DONE, ERROR, UNAVAILABLE = "done", "error", "unavailable"
ABORT, TIMEOUT, OUT_OF_MEMORY, STARVED = "abort", "timeout", "out-of-memory", "starved"

LOG_TAIL = 4000
LOG_SIZE = 8 << 20
"""A log that has grown by so many bytes is cut: a compiler that prints without end fills no disk."""
POLL = 0.1
"""Seconds between two looks at the time and the memory of a busy worker."""
GRACE = 0.5
"""Seconds between two looks whether a worker that lost its connection is dying."""
SENDING = 120.0
"""Seconds that a worker may take to read a request, which it waits for."""
DEATHS = 3
"""A fork server may die so often without a job that could be blamed,"""
FORGIVEN = 100
"""and without so many jobs done in between."""
SENT = ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGALRM", "SIGUSR1", "SIGUSR2", "SIGSTOP")
"""Signals that come from somebody: a death by one of them that does not happen again was somebody else's doing."""
LARGEST_ANSWER = 256 << 20
MARK = "OPERA_FORK_SERVER"
"""Environment variable by which the processes of a fork server are known."""
THREADS = ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB", "TVM")


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of worker.

    Attributes:
        call: Function that does its jobs, `module:name`; it takes the payload and returns what `Result.payload` holds.
        python: Interpreter; empty for the running one (whose `sys.path` the workers then have).
        preload: Modules imported before workers are forked.
        env: Environment variables set on top of this process's.
        jobs: A worker is replaced after so many jobs,
        growth: or when it has grown by so many bytes.
        start_seconds: Time that importing may take (seconds as of `opera.execute.clock`).
    """

    call: str
    python: str = ""
    preload: tuple[str, ...] = ()
    env: dict[str, str] = {}
    jobs: int = 500
    growth: int = 1 << 30
    start_seconds: float = 300.0


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


class _Task(msgspec.Struct):
    order: int
    tag: Any
    call: str
    payload: msgspec.Raw
    seconds: float
    memory: int
    fresh: bool
    suspect: bool = False  # the fork server died while it ran: it is run again with no other beside it
    again: bool = False  # a signal ended it that may have been another job's doing: it is run a second time


class _Worker:
    """One worker process as the pool sees it. It occupies a slot while it has a task."""

    def __init__(self, number: int, server: _Server) -> None:
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
        self.task: _Task | None = None
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
        found = clock.process(self.pid) if self.pid else None
        return found is None or found.state in "ZX" or bool(found.flags & clock.EXITING)

    def stopped(self) -> bool:
        """Whether a signal has stopped the process, perhaps another job's."""
        found = clock.process(self.pid) if self.pid else None
        return found is not None and found.state in clock.STOPPED

    def close(self) -> None:
        for thing in (self.connection, self.far, self.log, self.note, self.note_file):
            thing.close()
        if self.statm >= 0:
            os.close(self.statm)
            self.statm = -1  # its number may soon be another file's


class _Server:
    """The fork server of a group: `new`, `starting`, `ready` or `failed`."""

    def __init__(self, name: str, group: Group) -> None:
        self.name, self.group = name, group
        self.state, self.message, self.busy = "new", "", False
        self.queue: deque[_Task] = deque()
        self.workers: dict[int, _Worker] = {}
        self.idle: list[_Worker] = []
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
        env = {**os.environ, **{f"{name}_NUM_THREADS": "1" for name in THREADS}, **group.env, MARK: self.mark}
        if not group.python:  # the same modules as here; -P keeps the current folder from shadowing them
            paths = [str(Path(entry).absolute()) for entry in sys.path]  # "" is the current folder
            env["PYTHONPATH"] = os.pathsep.join([*filter(None, [group.env.get("PYTHONPATH")]), *paths])
        self.control, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.log = tempfile.TemporaryFile()  # noqa: SIM115
        try:
            self.process = subprocess.Popen(
                [group.python or sys.executable, "-P", "-m", "opera.execute.forkserver", str(far.fileno())],
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
            text = f"{_ending(self.process.returncode)}\n{printed}".strip()
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
        """Whether its first job may begin: one that may have killed the last server runs with no other beside it."""
        if not self.queue or self.state != "ready":
            return False
        running = [worker.task for worker in self.workers.values() if worker.task is not None]
        return not running or not (self.queue[0].suspect or any(task.suspect for task in running))


class Pool:
    """Run jobs of several groups in at most `workers` processes at a time. Use it in a `with` statement."""

    def __init__(self, groups: Mapping[str, Group], *, workers: int) -> None:
        self.groups = dict(groups)
        self._servers = {name: _Server(name, group) for name, group in groups.items()}
        self._slots = workers
        self._busy: dict[int, _Worker] = {}
        self._results: deque[Result] = deque()
        self._order, self._numbers = itertools.count(), itertools.count()
        self._selector = selectors.DefaultSelector()
        self._last_begin = self._last_end = math.inf

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def accounts(self) -> dict[str, Account]:
        """What each group has cost so far."""
        return {name: server.account for name, server in self._servers.items()}

    def waiting(self, group: str | None = None) -> int:
        """Return how many jobs (of one group) no worker has begun: submit more when that is fewer than a few a slot."""
        return sum(len(server.queue) for name, server in self._servers.items() if group in (None, name))

    def submit(
        self,
        group: str,
        payload: Any,
        *,
        seconds: float,
        memory: int = 4 << 30,
        tag: Any = None,
        fresh: bool = False,
        call: str = "",
    ) -> None:
        """Queue a job; jobs begin in this order, as far as their groups are ready.

        It is killed after `seconds` (as of `opera.execute.clock`), or when its worker has grown by `memory` bytes. With
        `fresh` it runs alone in a fork made for it. `call` names another function than the group's. The payload is anything
        that msgspec can encode.
        """
        server = self._servers[group]
        raw = msgspec.Raw(msgspec.msgpack.encode(payload))
        server.queue.append(_Task(next(self._order), tag, call or server.group.call, raw, seconds, memory, fresh))
        if server.state == "new":
            self._start(server)
        self._dispatch()

    def until(self, begin: float, end: float) -> None:
        """Begin no job after `begin` (as of time.monotonic), and drop those that still run at `end`: they have no result."""
        self._last_begin, self._last_end = begin, end

    def retire(self, number: int) -> None:
        """Give the worker of that number no other job: a job may have left it in a state that harms the next ones."""
        for server in self._servers.values():
            worker = server.workers.get(number)
            if worker is not None:
                worker.worn = True
                if worker in server.idle:
                    self._retire(worker)

    def results(self) -> Iterator[Result]:
        """Yield results as they come, until nothing is left to do; more may be submitted in between."""
        while True:
            while self._results:
                yield self._results.popleft()
            if not self._busy and not self.waiting():
                return
            self._wait()

    def close(self) -> None:
        """Kill everything. What was not yielded is lost."""
        for server in self._servers.values():
            for worker in list(server.workers.values()):
                self._forget(worker)
            server.stop()
            server.state = "new"
            server.queue.clear()
        self._selector.close()

    def _start(self, server: _Server) -> None:
        try:
            server.start()
        except OSError as error:
            server.stop()
            self._give_up(server, f"{server.group.python or sys.executable} cannot be run: {error}")
            return
        assert server.control is not None
        self._selector.register(server.control, selectors.EVENT_READ, lambda: self._hear(server))

    def _give_up(self, server: _Server, message: str, busy: bool = False) -> None:
        server.state, server.message, server.deadline, server.busy = "failed", message, math.inf, busy
        self._dispatch()

    def _dispatch(self) -> None:
        """Give free slots to the jobs that were submitted first, of the groups that are ready."""
        for server in self._servers.values():
            if server.state == "failed":
                for task in server.queue:
                    self._results.append(
                        Result(
                            tag=task.tag, group=server.name, status=UNAVAILABLE, message=server.message,
                            busy=server.busy,
                        )
                    )  # fmt: skip
                server.queue.clear()
            elif time.monotonic() >= self._last_begin:
                server.queue.clear()
        while len(self._busy) < self._slots:
            ready = [server for server in self._servers.values() if server.eligible()]
            if not ready:
                return
            server = min(ready, key=lambda server: server.queue[0].order)
            task = server.queue.popleft()
            worker = server.idle.pop() if server.idle and not task.fresh else self._fork(server)
            worker.task, worker.started = task, time.monotonic()
            worker.looked, worker.deadline = worker.started, worker.started + clock.backstop(task.seconds)
            worker.clock.start()
            self._busy[worker.number] = worker
            try:
                worker.connection.sendall(frame(Request(task.order, task.call, task.payload, task.memory)))
            except BrokenPipeError:  # it died while idle; where a fork never came about, its server will be heard of
                if worker.history:
                    self._requeue(worker, task)
            except OSError:
                self._kill(worker, STARVED)

    def _requeue(self, worker: _Worker, task: _Task) -> None:
        """Put back a job that was never begun, or that another may have ended."""
        worker.server.queue.appendleft(task)
        self._retire(worker)

    def _fork(self, server: _Server) -> _Worker:
        worker = _Worker(next(self._numbers), server)
        files = worker.far.fileno(), worker.log.fileno(), worker.note_file.fileno()
        server.tell(Command("fork", worker.number), *files)
        worker.far.close()
        server.workers[worker.number] = worker
        server.account.forks += 1
        self._selector.register(worker.connection, selectors.EVENT_READ, lambda: self._read(worker))
        return worker

    def _wait(self) -> None:
        """Wait for the next thing to happen, and do what it asks for; then look at limits."""
        now = time.monotonic()
        watched = bool(self._busy) or any(server.state == "starting" for server in self._servers.values())
        until = min(now + POLL if watched else math.inf, self._last_begin if self.waiting() else math.inf)
        ready = self._selector.select(None if until == math.inf else max(0.0, until - now))
        for key, _ in ready:
            if self._selector.get_map().get(key.fd) is key:  # an earlier one of these may have closed it
                act: Callable[[], None] = key.data
                act()
        now = time.monotonic()
        for worker in list(self._busy.values()):
            if worker.number in self._busy and (now >= worker.deadline or now - worker.looked >= POLL):
                self._look(worker, now)
        for server in self._servers.values():
            if server.control is not None:
                self._look_at_server(server, now)
        if now >= self._last_begin:
            self._dispatch()
        if now >= self._last_end:
            for worker in list(self._busy.values()):
                self._retire(worker)

    def _look(self, worker: _Worker, now: float) -> None:
        """Hold a busy worker to its limits."""
        worker.looked = now
        if worker.dead:  # it was killed, and the kernel may not let go of it: the slot must go on
            if now >= worker.deadline:
                self._exited(worker, "SIGKILL")
        elif worker.lost:
            if now >= worker.deadline and not worker.dying():
                self._kill(worker, ABORT)
        elif worker.task is not None:
            worker.cut_log()
            if worker.rss() > worker.server.rss + worker.task.memory:
                self._kill(worker, OUT_OF_MEMORY)
            elif worker.clock.look(worker.pid) >= worker.task.seconds:
                self._kill(worker, "" if worker.stopped() and not worker.task.again else TIMEOUT)
            elif now >= worker.deadline:
                self._kill(worker, STARVED)

    def _look_at_server(self, server: _Server, now: float) -> None:
        """Hold a fork server to the time that imports may take, and end one that a job has stopped."""
        pid = server.process.pid if server.process is not None else 0
        if server.state == "starting":
            late = server.clock.look(pid) >= server.group.start_seconds
            if late or now >= server.deadline:
                assert server.control is not None
                self._selector.unregister(server.control)
                text = server.stop()
                seconds = server.group.start_seconds
                why = "" if late else ", since the machine is busy with something else"
                self._give_up(server, f"its imports took more than {seconds:g} s{why}\n{text}", busy=True)
        elif server.process is not None and any(worker.task for worker in server.workers.values()):
            found = clock.process(pid)
            if found is not None and found.state in clock.STOPPED:
                server.process.kill()

    def _kill(self, worker: _Worker, reason: str) -> None:
        """Kill a worker for `reason`; its slot is free when it is gone."""
        worker.reason, worker.dead, worker.deadline = reason, True, time.monotonic() + 10.0
        worker.server.tell(Command("kill", worker.number))

    def _retire(self, worker: _Worker) -> None:
        """Let go of a worker that has no job."""
        worker.server.tell(Command("kill", worker.number))
        self._forget(worker)

    def _forget(self, worker: _Worker) -> None:
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(worker.connection)
        self._busy.pop(worker.number, None)
        worker.server.workers.pop(worker.number, None)
        if worker in worker.server.idle:
            worker.server.idle.remove(worker)
        worker.close()

    def _hear(self, server: _Server) -> None:
        """Read one event of a fork server."""
        assert server.control is not None
        try:
            data = server.control.recv(1 << 16)
        except OSError:
            data = b""
        if not data:
            self._server_died(server)
            return
        event = msgspec.msgpack.decode(data, type=Event)
        worker = server.workers.get(event.worker)
        if event.kind == "ready":
            server.state, server.deadline, server.rss, server.home = "ready", math.inf, event.peak, event.message
            self._dispatch()
        elif event.kind == "failed":
            self._selector.unregister(server.control)
            server.stop()
            self._give_up(server, event.message)
        elif event.kind == "forked":
            server.pids[event.worker] = event.pid
            if worker is not None:
                worker.pid = event.pid
                with contextlib.suppress(OSError):
                    worker.statm = os.open(f"/proc/{event.pid}/statm", os.O_RDONLY | os.O_CLOEXEC)
        else:
            server.pids.pop(event.worker, None)
            if worker is not None:
                self._exited(worker, event.message or _ending(os.waitstatus_to_exitcode(event.status)))

    def _server_died(self, server: _Server) -> None:
        """Start it again, and do again what its workers were doing: one job after the other, with nothing beside it.

        A job that runs alone when the server dies a second time is taken to have killed it, which costs the job and not the
        group.
        """
        assert server.control is not None
        self._selector.unregister(server.control)
        started, guilty = server.state == "ready", False
        text = server.stop()
        running = [worker for worker in server.workers.values() if worker.task is not None]
        for worker in list(server.workers.values()):
            task = worker.task
            if task is not None and task.suspect and len(running) == 1:
                result = self._result(worker, task, ABORT)
                result.exit, guilty = "killed its parent", True
                self._finish(worker, task, result)
            elif task is not None:
                task.suspect = True
                server.queue.append(task)
            self._forget(worker)
        server.queue = deque(sorted(server.queue, key=lambda task: (not task.suspect, task.order)))
        server.deaths = -1 + server.deaths if guilty else 1 + server.deaths * (server.lived < FORGIVEN)
        server.lived = 0
        if started and server.deaths < DEATHS:
            self._start(server)
        else:
            what = "the fork server died again" if started else "the fork server died while it imported"
            self._give_up(server, f"{what}: {text}")

    def _read(self, worker: _Worker) -> None:
        """Read what a worker sent; its answer may come in pieces."""
        try:
            data = worker.connection.recv(1 << 20, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError as error:
            data = b""
            worker.unread = isinstance(error, ConnectionResetError)  # the kernel's word for: it ended with data unread
        if not data:
            self._selector.unregister(worker.connection)
            worker.lost = True
            if worker.task is None:
                self._retire(worker)
            else:  # the fork server will tell how it ended; if it lives on, it can no longer answer
                worker.deadline = time.monotonic() + GRACE
            return
        worker.received += data
        size = int.from_bytes(worker.received[:4], "little")
        if size > LARGEST_ANSWER:
            self._kill(worker, ABORT)
        elif len(worker.received) >= max(4 + size, 5):
            body = bytes(worker.received[4 : 4 + size])
            worker.received.clear()
            self._answered(worker, body)

    def _answered(self, worker: _Worker, body: bytes) -> None:
        try:
            answer = msgspec.msgpack.decode(body, type=Answer)
            payload = msgspec.msgpack.decode(answer.payload)
        except msgspec.MsgspecError:
            self._kill(worker, ABORT)
            return
        task = worker.task
        if task is None or answer.number != task.order:
            self._kill(worker, ABORT)
            return
        result = self._result(worker, task, answer.status)
        if answer.status == DONE:
            result.payload, result.raw = payload, bytes(answer.payload)
        else:
            result.message = str(payload)
        self._finish(worker, task, result)
        group = worker.server.group
        worn = len(worker.history) >= group.jobs or worker.rss() > worker.server.rss + group.growth
        if task.fresh or worn or worker.worn or answer.children or worker.dead or answer.status == OUT_OF_MEMORY:
            self._retire(worker)
        else:
            worker.server.idle.append(worker)
        self._dispatch()

    def _exited(self, worker: _Worker, how: str) -> None:
        """A worker is gone. What it had answered before counts; else its death is the result."""
        worker.dead = True
        while worker.task is not None and not worker.lost:
            before = len(worker.received)
            self._read(worker)
            if len(worker.received) == before:
                break
        task = worker.task
        if worker.number not in worker.server.workers:
            return
        if task is not None and worker.unread and worker.history:
            self._requeue(worker, task)
        elif task is not None and not task.again and not worker.reason and how in SENT:
            task.again = True
            self._requeue(worker, task)
        elif task is not None:
            result = self._result(worker, task, worker.reason or ABORT)
            cut_off = worker.lost and (worker.reason == ABORT or how == f"exit {LOST_CONNECTION}")
            result.exit = "closed files" if cut_off else how
            if result.status == ABORT and how == "SIGABRT" and "bad_alloc" in result.log:
                result.status = OUT_OF_MEMORY
            self._finish(worker, task, result)
        self._forget(worker)
        self._dispatch()

    def _result(self, worker: _Worker, task: _Task, status: str) -> Result:
        note, mark = ("", "") if status == DONE else worker.notes()
        return Result(
            tag=task.tag, group=worker.server.name, status=status, note=note, mark=mark, log=worker.log_tail(),
            seconds=time.monotonic() - worker.started, worker=worker.number, fresh=task.fresh,
            history=worker.history, position=len(worker.history),
        )  # fmt: skip

    def _finish(self, worker: _Worker, task: _Task, result: Result) -> None:
        account = worker.server.account
        if task.fresh:
            account.fresh_seconds += result.seconds
            account.fresh_jobs += 1
        else:
            account.seconds += result.seconds
            account.jobs += 1
        worker.history.append(task.tag)
        worker.server.lived += 1
        worker.task = None
        self._busy.pop(worker.number, None)
        self._results.append(result)


def _marked(mark: bytes) -> list[int]:
    """Return the processes that were started with that in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it is gone, or somebody else's
            if mark in (folder / "environ").read_bytes():
                found.append(int(folder.name))
    return found


def _ending(code: int) -> str:
    """Return an exit code, negative for a signal, in words: `exit 1`, `SIGSEGV`."""
    if code >= 0:
        return f"exit {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
