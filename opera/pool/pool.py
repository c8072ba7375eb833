"""A pool of worker processes that survives whatever a job does: a fault costs the job that has it, and nothing else.

Jobs belong to groups. A group is one interpreter with modules imported once (`opera.pool.forkserver`); its workers are
forked from there, kept warm, and share the pool's slots with the workers of all other groups. The pool is one thread: it
works while the caller iterates over `results()`, and waits in `select` in between.

pebble (benchmarks/pool.py) loses no more jobs and is somewhat faster on warm workers that do nothing, but it cannot cross
interpreters, and a fresh process for each job takes it some 40 times as long.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import selectors
import socket
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from opera.pool import clock
from opera.pool.forkserver import LOST_CONNECTION, Answer, Command, Event, Request, frame
from opera.pool.workers import (
    ABORT,
    DONE,
    OUT_OF_MEMORY,
    STARVED,
    TIMEOUT,
    UNAVAILABLE,
    Account,
    Group,
    Result,
    Server,
    Task,
    Worker,
    ending,
)

POLL = 0.1
"""Seconds between two looks at the time and the memory of a busy worker."""
GRACE = 0.5
"""Seconds between two looks whether a worker that lost its connection is dying."""
DEATHS = 3
"""A fork server may die so often without a job that could be blamed,"""
FORGIVEN = 100
"""and without so many jobs done in between."""
SENT = ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGALRM", "SIGUSR1", "SIGUSR2", "SIGSTOP")
"""Signals that come from somebody: a death by one of them that does not happen again was somebody else's doing. Each is told
apart: a job that ends itself by SIGTERM may have been killed by another one when it was run again."""
LARGEST_ANSWER = 256 << 20


class Pool:
    """Run jobs of several groups in at most `workers` processes at a time. Use it in a `with` statement."""

    def __init__(self, groups: Mapping[str, Group], *, workers: int) -> None:
        self.groups = dict(groups)
        self._servers = {name: Server(name, group) for name, group in groups.items()}
        self._slots = workers
        self._busy: dict[int, Worker] = {}
        self._results: deque[Result] = deque()
        self._order, self._numbers = itertools.count(), itertools.count()
        self._selector = selectors.DefaultSelector()
        self._last_begin = self._last_end = math.inf

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def workers(self) -> float:
        """Jobs that it does at a time."""
        return self._slots

    @property
    def room(self) -> int:
        """Jobs that it takes in at a time; as many again should be ready behind them."""
        return self._slots

    @property
    def accounts(self) -> dict[str, Account]:
        """What each group has cost so far."""
        return {name: server.account for name, server in self._servers.items()}

    def add(self, name: str, group: Group) -> None:
        """Have another group beside those that the pool was made with."""
        self.groups[name] = group
        self._servers[name] = Server(name, group)

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
        twice: bool = True,
    ) -> None:
        """Queue a job; jobs begin in this order, as far as their groups are ready.

        It is killed after `seconds` (as of `opera.pool.clock`), or when its worker has grown by `memory` bytes. With
        `fresh` it runs alone in a fork made for it. `call` names another function than the group's. The payload is anything
        that msgspec can encode. Unless it may run `twice`, a signal that ends it is taken for its own doing the first time.
        """
        server = self._servers[group]
        raw = msgspec.Raw(msgspec.msgpack.encode(payload))
        call = call or server.group.call
        server.queue.append(Task(next(self._order), tag, call, raw, seconds, memory, fresh, once=not twice))
        if server.state == "new":
            self._start(server)
        self._dispatch()

    def until(self, begin: float, end: float) -> None:
        """Begin no job after `begin` (as of time.monotonic), and drop those that still run at `end`: they have no result."""
        self._last_begin, self._last_end = begin, end

    def warm(self, group: str) -> None:
        """Have a group import its modules already: its first job will begin at once."""
        if self._servers[group].state == "new":
            self._start(self._servers[group])

    def release(self, group: str) -> None:
        """Give back the memory of a group that has nothing to do; it starts anew if it is given a job."""
        server = self._servers[group]
        if server.control is not None and not server.queue:
            self._selector.unregister(server.control)
            for worker in list(server.workers.values()):
                self._forget(worker)
            server.stop()
            server.state = "new"

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

    def poll(self) -> Iterator[Result]:
        """Yield what results there are, without waiting: for a caller who is at work, while workers are to be kept busy."""
        if self._busy or self.waiting():
            self._wait(patient=False)
        while self._results:
            yield self._results.popleft()

    def within(self, seconds: float) -> Iterator[Result]:
        """Yield results until so many seconds have gone by, nothing is left to do, or a worker could do with more jobs."""
        end = time.monotonic() + seconds
        while (self._busy or self.waiting()) and time.monotonic() < end:
            self._wait()
            hungry = bool(self._results) and not self.waiting()
            while self._results:
                yield self._results.popleft()
            if hungry:
                return
        while self._results:
            yield self._results.popleft()

    @property
    def left(self) -> int:
        """Jobs that are queued or running."""
        return len(self._busy) + self.waiting()

    def close(self) -> None:
        """Kill everything. What was not yielded is lost."""
        for server in self._servers.values():
            for worker in list(server.workers.values()):
                self._forget(worker)
            server.stop()
            server.state = "new"
            server.queue.clear()
        self._selector.close()

    def _start(self, server: Server) -> None:
        try:
            server.start()
        except OSError as error:
            server.stop()
            self._give_up(server, f"{server.group.python or sys.executable} cannot be run: {error}")
            return
        assert server.control is not None
        self._selector.register(server.control, selectors.EVENT_READ, lambda: self._hear(server))

    def _give_up(self, server: Server, message: str, busy: bool = False) -> None:
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

    def _requeue(self, worker: Worker, task: Task) -> None:
        """Put back a job that was never begun, or that another may have ended."""
        worker.server.queue.appendleft(task)
        self._retire(worker)

    def _fork(self, server: Server) -> Worker:
        worker = Worker(next(self._numbers), server)
        files = worker.far.fileno(), worker.log.fileno(), worker.note_file.fileno()
        server.tell(Command("fork", worker.number), *files)
        worker.far.close()
        server.workers[worker.number] = worker
        server.account.forks += 1
        self._selector.register(worker.connection, selectors.EVENT_READ, lambda: self._read(worker))
        return worker

    def _wait(self, patient: bool = True) -> None:
        """Wait for the next thing to happen if `patient`, and do what it asks for; then look at limits."""
        now = time.monotonic()
        watched = bool(self._busy) or any(server.state == "starting" for server in self._servers.values())
        until = min(now + POLL if watched else math.inf, self._last_begin if self.waiting() else math.inf)
        until = until if patient else now
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

    def _look(self, worker: Worker, now: float) -> None:
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
                self._kill(
                    worker, "" if worker.stopped() and not worker.task.once and not worker.task.ended else TIMEOUT
                )
            elif now >= worker.deadline:
                self._kill(worker, STARVED)

    def _look_at_server(self, server: Server, now: float) -> None:
        """Hold a fork server to the time that imports may take, and have one that a job has stopped go on."""
        if server.state == "starting":
            pid = server.process.pid if server.process is not None else 0
            late = server.clock.look(pid) >= server.group.start_seconds
            if late or now >= server.deadline:
                assert server.control is not None
                self._selector.unregister(server.control)
                text = server.stop()
                seconds = server.group.start_seconds
                why = "" if late else ", since the machine is busy with something else"
                self._give_up(server, f"its imports took more than {seconds:g} s{why}\n{text}", busy=True)
        elif any(worker.task for worker in server.workers.values()):
            server.whole()

    def _kill(self, worker: Worker, reason: str) -> None:
        """Kill a worker for `reason`; its slot is free when it is gone."""
        worker.reason, worker.dead, worker.deadline = reason, True, time.monotonic() + 10.0
        worker.server.tell(Command("kill", worker.number))

    def _retire(self, worker: Worker) -> None:
        """Let go of a worker that has no job."""
        worker.server.tell(Command("kill", worker.number))
        self._forget(worker)

    def _forget(self, worker: Worker) -> None:
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(worker.connection)
        self._busy.pop(worker.number, None)
        worker.server.workers.pop(worker.number, None)
        if worker in worker.server.idle:
            worker.server.idle.remove(worker)
        worker.close()

    def _hear(self, server: Server) -> None:
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
                self._exited(worker, event.message or ending(os.waitstatus_to_exitcode(event.status)))

    def _server_died(self, server: Server) -> None:
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

    def _read(self, worker: Worker) -> None:
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

    def _answered(self, worker: Worker, body: bytes) -> None:
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

    def _exited(self, worker: Worker, how: str) -> None:
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
        elif task is not None and not task.once and not worker.reason and how in SENT and how not in task.ended:
            task.ended.append(how)
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

    def _result(self, worker: Worker, task: Task, status: str) -> Result:
        note, mark = ("", "") if status == DONE else worker.notes()
        return Result(
            tag=task.tag, group=worker.server.name, status=status, note=note, mark=mark, log=worker.log_tail(),
            seconds=time.monotonic() - worker.started, worker=worker.number, fresh=task.fresh,
            history=worker.history, position=len(worker.history),
        )  # fmt: skip

    def _finish(self, worker: Worker, task: Task, result: Result) -> None:
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
