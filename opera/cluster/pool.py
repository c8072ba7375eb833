"""The pool of a run over many machines: the same interface as opera.pool.pool.Pool, its jobs done by nodes.

Each node (`node.py`) has a pool of its own. The driver hands it as many jobs as its workers and a fraction of a second's more,
so that a slow one holds little, and has two requests under way to each: while a node's reply travels, it is at the next.
A node that is lost takes nothing with it: what it had not told is handed out anew, and nothing that it says later is heard.
"""

from __future__ import annotations

import itertools
import math
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from opera.cluster.luggage import Luggage, remember, uses_of
from opera.cluster.messages import Done, Hello, Reply, Request, Work, code
from opera.cluster.parcels import Store
from opera.cluster.remote import Lost, Machines, Remote, Task
from opera.errors import NoAnswer
from opera.pool.workers import DONE, STARVED, UNAVAILABLE, Account, Group, Result
from opera.store.folders import Files

WAIT = 0.5
"""Seconds after which a node replies at the latest,"""
EACH = 0.01
"""or so many for each node, where that is more: the driver hears of a hundred replies a second at most."""
UNDER_WAY = 2
"""Requests to a node at a time."""
LOOK = 2.0
"""Seconds between two looks for nodes that have joined."""
START = 120.0
"""Seconds that the first node may take to start."""
SETTLE = 20.0
"""Seconds that the other nodes are then waited for; who comes later joins later."""
PATIENCE = 120.0
"""Seconds that jobs wait for a node that can do them, once there is none."""
LOSSES = 3
"""A node may be lost so often without a job done in between; a job may lose so many nodes."""
KNOWN = 5_000
"""Tests of which it is remembered, for each node, that it has them. It says so where it has not, or not any more."""


class ClusterPool:
    """Run jobs of several groups on the nodes of a cluster. Use it in a `with` statement.

    Args:
        groups: As of opera.pool.pool.Pool. A group's jobs are done on nodes that are alike by its `identity`.
        files: The driver's own, where tests are read and to which those that nodes make are written.
        machines: What the cluster is.
        store: Where tests lie for all nodes; None where they travel with the messages.
        say: Is told of nodes that join, are lost or are left out.

    Raises NoAnswer where no node can be had.
    """

    def __init__(
        self,
        groups: Mapping[str, Group],
        *,
        files: Files,
        machines: Machines,
        store: Store | None = None,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.groups = dict(groups)
        self._machines, self._say, self._luggage = machines, say, Luggage(files, store)
        self._accounts = {name: Account() for name in groups}
        self._queues: dict[str, deque[Task]] = {name: deque() for name in groups}
        self._numbers, self._workers = itertools.count(), itertools.count()
        self._nodes: dict[str, Remote] = {}
        self._losses: dict[str, int] = defaultdict(int)
        self._refused: set[str] = set()
        self._chosen: dict[str, bytes] = {}  # group → identity of the nodes that do its jobs
        self._messages: dict[str, str] = {}  # group → why a node cannot be in it
        self._results: deque[Result] = deque()
        self._last_begin = self._last_end = math.inf
        self._looked = self._began = self._counted_at = time.monotonic()
        self._orphaned: float | None = None  # since when no node can do what is queued
        self._slot_seconds = 0.0
        self._wait, self._room = WAIT, 0

    def __enter__(self) -> ClusterPool:
        self._code = code()
        try:
            self._gather()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------------ what callers ask for

    @property
    def workers(self) -> float:
        """Workers of all nodes, on average since the first of them began."""
        self._count_slots()
        passed = self._counted_at - self._began
        return self._slot_seconds / passed if passed else float(self._slots())

    @property
    def room(self) -> int:
        """Jobs that nodes hold at a time."""
        return self._room

    @property
    def accounts(self) -> dict[str, Account]:
        """What each group has cost so far, on all nodes."""
        return self._accounts

    def add(self, name: str, group: Group) -> None:
        """Have another group beside those that the pool was made with."""
        self.groups[name], self._accounts[name], self._queues[name] = group, Account(), deque()

    def waiting(self) -> int:
        """Return how many jobs no node was handed."""
        return sum(map(len, self._queues.values()))

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
        """Queue a job; see opera.pool.pool.Pool.submit. What it uses of the files is said by its `uses`."""
        number = next(self._numbers)
        raw = msgspec.Raw(msgspec.msgpack.encode(payload))
        work = Work(number, group, call or self.groups[group].call, raw, seconds, memory, fresh, twice)
        self._queues[group].append(Task(number, work, tag, uses_of(payload)))

    def until(self, begin: float, end: float) -> None:
        """Begin no job after `begin` (as of time.monotonic), and drop those that still run at `end`: they have no result."""
        self._last_begin, self._last_end = begin, end

    def retire(self, number: int) -> None:
        """Give the worker of that number no other job."""
        for node in self._nodes.values():
            node.retire += [own for own, known in node.numbers.items() if known == number]

    def results(self) -> Iterator[Result]:
        """Yield results as they come, until nothing is left to do; more may be submitted in between."""
        while True:
            while self._results:
                yield self._results.popleft()
            if not self.waiting() and not any(node.tasks for node in self._nodes.values()):
                return
            self._step(WAIT)

    def poll(self) -> Iterator[Result]:
        """Yield what results there are, without waiting."""
        if self.waiting() or any(node.tasks for node in self._nodes.values()):
            self._step(0.0)
        while self._results:
            yield self._results.popleft()

    def release(self, group: str) -> None:
        """Give back the memory of a group that has nothing to do, on all nodes; it starts anew if it is given a job."""
        for node in self._nodes.values():
            if group in node.groups and group not in node.release:
                node.release.append(group)

    def close(self) -> None:
        """End all nodes. What was not yielded is lost."""
        self._nodes.clear()
        self._machines.close()

    # ------------------------------------------------------------------ nodes come and go

    def _gather(self) -> None:
        """Start the nodes that are there, and wait until they have said hello, though not for long for the last ones."""
        begun, first = time.monotonic(), 0.0
        self._look()
        while True:
            ready = [node for node in self._nodes.values() if node.told]
            now = time.monotonic()
            first = first or (now if ready else 0.0)
            if ready and (len(ready) == len(self._nodes) or now - first > SETTLE):
                break
            if not self._nodes or now - begun > START:
                raise NoAnswer(
                    "no node of the cluster can be used" + "".join(f"\n  {text}" for text in self._messages.values()),
                    cause="no node has CPUs, all are taken by other jobs of the cluster, or opera is not installed there",
                    fix="see `ray status`, and docs/cluster.md for what a node needs",
                )
            self._hear(WAIT)
            self._look_again()
        self._measure()
        self._began, self._slot_seconds = time.monotonic(), 0.0
        self._counted_at = self._began

    def _measure(self) -> None:
        """See how many jobs nodes may hold, and how often they are to reply."""
        self._wait = max(WAIT, EACH * len(self._nodes))
        self._room = sum(node.room(self._wait) for node in self._nodes.values() if node.told)

    def _look_again(self) -> None:
        if time.monotonic() - self._looked >= LOOK:
            self._look()

    def _look(self) -> None:
        """Start nodes that have joined since the last look."""
        self._looked = time.monotonic()
        for name, workers in self._machines.look().items():
            if name not in self._nodes and name not in self._refused and self._losses[name] < LOSSES:
                self._count_slots()
                node = Remote(name, self._machines.open(name, workers), workers)
                node.calls.append((self._machines.call(node.handle, b""), 0))
                self._nodes[name] = node

    def _greeted(self, node: Remote, data: bytes) -> None:
        hello = msgspec.msgpack.decode(data, type=Hello)
        if hello.code != self._code:
            text = f"node {hello.name} is left out: another opera is installed there than here"
            self._messages["opera"] = text
            self._refused.add(node.name)
            self._leave(node, text)
            return
        self._count_slots()
        node.told, node.at_home = hello.name, hello.at_home
        self._say(f"node {node.told} does {node.workers} jobs at a time")

    def _lose(self, node: Remote, why: str) -> None:
        """A node is gone: what it has not told is handed out anew, the first of all."""
        self._losses[node.name] += 1
        self._messages[node.name] = text = f"node {node.told or node.name} is lost: {why}"
        if self._losses[node.name] == LOSSES:
            text += "; it is not tried again"
        self._leave(node, text)

    def _leave(self, node: Remote, text: str) -> None:
        self._count_slots()
        self._nodes.pop(node.name, None)
        self._machines.drop(node.handle)
        again = list(node.tasks.values())
        self._say(text + (f"; {len(again)} jobs of it are done elsewhere" if again else ""))
        for task in again:
            task.losses += 1
            if (
                task.losses >= LOSSES
            ):  # it may be what ends them; it says nothing of the test, which the next run tries again
                why = f"{task.losses} nodes were lost while they had this job"
                self._results.append(Result(tag=task.tag, group=task.work.group, status=STARVED, message=why))
        self._put_back([task for task in again if task.losses < LOSSES])

    def _put_back(self, tasks: list[Task]) -> None:
        """Queue jobs where they were."""
        for name in {task.work.group for task in tasks}:
            queue = self._queues[name]
            queue.extend(task for task in tasks if task.work.group == name)
            self._queues[name] = deque(sorted(queue, key=lambda task: task.number))

    def _slots(self) -> int:
        return sum(node.workers for node in self._nodes.values() if node.told)

    def _count_slots(self) -> None:
        now = time.monotonic()
        self._slot_seconds += (now - self._counted_at) * self._slots()
        self._counted_at = now

    # ------------------------------------------------------------------ which nodes may do a group's jobs

    def _admit(self) -> None:
        """Have nodes say what they are to the groups that have jobs, and choose where none is chosen yet."""
        for name, queue in self._queues.items():
            group = self.groups[name]
            if not queue or group.identity is None:
                continue
            nodes = [node for node in self._nodes.values() if node.told]
            for node in nodes:
                if name not in node.identities and name not in node.asked.values():
                    number = next(self._numbers)
                    argument = msgspec.Raw(msgspec.msgpack.encode(group.identity.argument))
                    node.asked[number] = name
                    self._send(node, [Work(number, name, group.identity.call, argument, group.start_seconds, 4 << 30)])
            if name not in self._chosen and all(name in node.identities for node in nodes):
                self._choose(name, group, nodes)

    def _choose(self, name: str, group: Group, nodes: list[Remote]) -> None:
        """Choose what most workers are; the others do no jobs of the group."""
        assert group.identity is not None
        workers: dict[bytes, int] = defaultdict(int)
        for node in nodes:
            said = node.identities[name]
            if said is not None:
                workers[said] += node.workers
        if group.identity.expected is not None:
            wanted = msgspec.msgpack.encode(group.identity.expected)
            workers = defaultdict(int, {x: count for x, count in workers.items() if x == wanted})
        if not workers:
            return
        self._chosen[name] = max(workers, key=lambda said: (workers[said], said))
        for node in nodes:
            self._tell_apart(node, name)

    def _tell_apart(self, node: Remote, name: str) -> None:
        """Say that a node does no jobs of a group, if that is so."""
        if name in self._chosen and node.identities.get(name) != self._chosen[name]:
            why = (
                self._messages.get(f"{node.name} {name}") or "versions, options or CPU differ from those of the others"
            )
            self._say(f"node {node.told} runs no {name}: {why}")

    def _identified(self, node: Remote, name: str, done: Done) -> None:
        node.identities[name] = done.raw if done.status == DONE else None
        if done.status != DONE:
            last = (done.message or done.log or done.exit).strip().splitlines() or [done.status]
            self._messages[f"{node.name} {name}"] = last[-1][:300]
            self._messages[name] = done.message or f"{done.status} {done.exit}\n{done.log}".strip()
        self._tell_apart(node, name)

    def _may(self, node: Remote, name: str) -> bool:
        group = self.groups[name]
        return group.identity is None or (name in self._chosen and node.identities.get(name) == self._chosen[name])

    def _give_up(self) -> None:
        """Answer jobs that no node can do, once it is clear that none will."""
        for name, queue in self._queues.items():
            nodes = [node for node in self._nodes.values() if node.told]
            if not queue or any(self._may(node, name) for node in nodes):
                continue
            asked = self.groups[name].identity is not None and all(name in node.identities for node in nodes)
            if nodes and asked and name not in self._chosen:
                why = self._messages.get(name, "no node has what the driver's environment has")
            elif self._orphaned is not None and time.monotonic() - self._orphaned > PATIENCE:
                why = "no node is left that could do its jobs\n" + "\n".join(self._messages.values())[-2000:]
            else:
                self._orphaned = self._orphaned or time.monotonic()
                continue
            for task in queue:
                self._results.append(Result(tag=task.tag, group=name, status=UNAVAILABLE, message=why))
            queue.clear()

    # ------------------------------------------------------------------ the work

    def _step(self, seconds: float) -> None:
        """Hand out what can be, and wait so long for a reply."""
        self._look_again()
        self._measure()
        now = time.monotonic()
        if now >= self._last_begin:
            for queue in self._queues.values():
                queue.clear()
        if now >= self._last_end:
            for node in self._nodes.values():
                node.tasks.clear()
            return
        self._admit()
        self._hand_out()
        if not any(node.calls for node in self._nodes.values()):
            self._give_up()
            if seconds and not self._results and self.waiting():
                time.sleep(seconds)
            return
        self._hear(min(seconds, max(0.0, self._last_end - now)))

    def _hand_out(self) -> None:
        """Give jobs to nodes: first as many as they have workers, then those that they begin next."""
        ready = [node for node in self._nodes.values() if node.told and len(node.calls) < UNDER_WAY]
        given: dict[str, list[Task]] = {node.name: [] for node in ready}
        if self.waiting():
            for ahead in (False, True):
                for node in sorted(ready, key=lambda x: len(x.tasks) / x.workers):
                    room = node.room(self._wait) if ahead else node.workers
                    while len(node.tasks) < room:
                        task = self._next(node)
                        if task is None:
                            break
                        node.tasks[task.number] = task
                        given[node.name].append(task)
        for node in ready:
            if given[node.name] or node.tasks or node.asked or node.retire:
                luggage = (self._luggage.pack(x.work, x.uses, at_home=node.at_home) for x in given[node.name])
                self._send(node, list(luggage))
                self._luggage.sent()

    def _next(self, node: Remote) -> Task | None:
        """Take the job that was submitted first, of those that a node may do."""
        names = [name for name, queue in self._queues.items() if queue and self._may(node, name)]
        if not names:
            return None
        self._orphaned = None
        return self._queues[min(names, key=lambda name: self._queues[name][0].number)].popleft()

    def _send(self, node: Remote, works: list[Work]) -> None:
        """Send jobs, and with them the tests that the node is thought to lack."""
        request = Request(works, retire=node.retire, release=node.release, wait=self._wait)
        node.retire, node.release = [], []
        for work in works:
            if work.group not in node.groups:
                request.groups[work.group] = self.groups[work.group]
                node.groups.add(work.group)
            for read in work.reads:
                if node.tests.get(read.test) != read.digest and read.digest not in request.parcels:
                    self._luggage.provide(request, read)
                remember(node.tests, read.test, read.digest, KNOWN)
        if self._last_begin < math.inf:
            now = time.monotonic()
            request.until = self._last_begin - now, self._last_end - now
        node.calls.append((self._machines.call(node.handle, msgspec.msgpack.encode(request)), len(works)))

    def _hear(self, seconds: float) -> None:
        """Wait for replies, and take them in."""
        calls = {node.calls[0][0]: node for node in self._nodes.values() if node.calls}
        for call in self._machines.wait(list(calls), seconds):
            node = calls[call]
            del node.calls[0]
            try:
                data = self._machines.reply(call)
                if node.told:
                    self._replied(node, msgspec.msgpack.decode(data, type=Reply))
                else:
                    self._greeted(node, data)
            except (Lost, msgspec.DecodeError) as error:
                self._lose(node, str(error))

    def _replied(self, node: Remote, reply: Reply) -> None:
        for name, forks in reply.forks.items():
            self._accounts[name].forks += forks
        lacking = [task for number in reply.lacking if (task := node.tasks.pop(number, None)) is not None]
        for read in (read for task in lacking for read in task.work.reads):
            node.tests.pop(read.test, None)
            self._luggage.lacking(read)
        self._put_back(lacking)
        node.count(len(reply.done), time.monotonic())
        for done in reply.done:
            if done.number in node.asked:
                self._identified(node, node.asked.pop(done.number), done)
            elif done.number in node.tasks:  # else it was dropped, for the time of the run is over
                self._done(node, node.tasks.pop(done.number), done)
        if reply.unfit:
            self._refused.add(node.name)
            self._messages[node.name] = text = f"node {node.told} is left out: {reply.unfit}"
            self._leave(node, text)
        elif not reply.left and not any(brings for _, brings in node.calls) and time.monotonic() >= self._last_begin:
            node.tasks.clear()  # it has dropped them

    def _done(self, node: Remote, task: Task, done: Done) -> None:
        """Write what a job has made, and make its result."""
        if done.status == UNAVAILABLE and self.groups[task.work.group].identity is not None:
            # Its processes cannot be started there any more; other nodes may still do it.
            node.identities[task.work.group] = None
            self._messages[task.work.group] = self._messages[f"{node.name} {task.work.group}"] = done.message
            self._tell_apart(node, task.work.group)
            self._put_back([task])
            return
        for made in done.made:
            if self._luggage.keep(made, task.work.reads):
                remember(node.tests, made.test, made.digest, KNOWN)
        self._luggage.unpack(done, task.uses)
        result = Result(
            tag=task.tag, group=task.work.group, status=done.status, raw=done.raw, message=done.message, exit=done.exit,
            note=done.note, mark=done.mark, log=done.log, seconds=done.seconds, fresh=task.work.fresh, busy=done.busy,
        )  # fmt: skip
        if done.status == DONE:
            result.payload = msgspec.msgpack.decode(done.raw)
        if done.worker >= 0:
            if done.worker not in node.numbers:
                node.numbers[done.worker] = next(self._workers)
            result.worker, result.history = node.numbers[done.worker], node.histories[done.worker]
            result.position = len(result.history)
            result.history.append(task.tag)
        account = self._accounts[task.work.group]
        if task.work.fresh:
            account.fresh_seconds += done.seconds
            account.fresh_jobs += 1
        else:
            account.seconds += done.seconds
            account.jobs += 1
        self._losses[node.name] = 0
        self._results.append(result)
