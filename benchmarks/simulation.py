"""Nodes that only wait, on a clock of their own, under the real driver, scheduler, messages and workspace.

The clock goes on by what the driver computes (its CPU seconds, without the simulation's own) and, while it waits, to the next
reply. A call costs the driver what a call of Ray was measured to cost. Every test passes after a time drawn for it.
"""

from __future__ import annotations

import heapq
import random
import time
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec

from opera.cluster import messages
from opera.cluster import pool as cluster
from opera.cluster.messages import Done, Hello, Reply, Request
from opera.cluster.pool import ClusterPool
from opera.pool.workers import DONE
from opera.programs.program import Captured, Instance, Operand, Provenance
from opera.programs.values import Tensor
from opera.programs.verdicts import PASS, Outcome, Seen
from opera.run import driver, ledger, plan
from opera.run.groups import groups
from opera.run.pools import made_here
from opera.run.worker import Description
from opera.store.folders import Folders
from opera.store.rows import Test
from opera.store.workspace import Workspace

RAY_CALL = 0.0011
"""CPU seconds of the driver for a call and its reply: 1,000 calls of 2 kB in a loop took 1.1 s."""
LATENCY = 0.0005
"""Seconds that a message travels, each way."""
FOLDERS = 100
"""Tests share so many folders: the driver reads each as often as if it were a test's own, from a warm disk."""
COMPILER = "onnxruntime"


class Clock:
    """The time of the simulation, in place of the module `time`."""

    def __init__(self) -> None:
        self._now, self._computed = 0.0, time.process_time()
        self.driven = 0.0

    def monotonic(self) -> float:
        """Return the seconds of the simulation, as of the last look at what was computed: a look takes long itself."""
        return self._now

    def look(self) -> float:
        """Count what was computed since the last look."""
        computed = time.process_time()
        self.driven += computed - self._computed
        self._now += computed - self._computed
        self._computed = computed
        return self._now

    def jump(self, to: float) -> None:
        """Wait until then."""
        self._now = max(self._now, to)

    def sleep(self, seconds: float) -> None:
        """Wait so long."""
        self._now += seconds

    def add(self, seconds: float) -> None:
        """Let something take so long that is not computed here."""
        self._now += seconds

    def forget(self) -> None:
        """Leave out what was computed since the last look: it was the simulation's."""
        self._computed = time.process_time()


class SimulatedNode:
    """A node: jobs begin in order as workers become free, requests are answered one after the other (Node.exchange)."""

    def __init__(self, workers: int, speed: float) -> None:
        self.speed = speed
        self.free = [0.0] * workers
        self.ends: list[tuple[float, int, bytes]] = []  # of jobs that were not told: when, number, answer
        self.last_start = self.over = 0.0
        self.busy = 0.0

    def exchange(self, request: Request, arrives: float, lasts: Any) -> tuple[float, bytes]:
        """Return when the reply leaves, and the reply."""
        begin = max(arrives, self.over)
        for work in request.work:
            seconds, answer = lasts(work)
            start = max(begin, heapq.heappop(self.free))
            end = start + seconds / self.speed
            self.busy += end - start
            heapq.heappush(self.free, end)
            heapq.heappush(self.ends, (end, work.number, answer))
            self.last_start = max(self.last_start, start)
        hungry = max(begin, self.last_start)  # from here on nothing is queued
        first = next((end for end, *_ in sorted(self.ends) if end >= hungry), None)
        if self.ends and self.ends[0][0] <= begin and hungry <= begin:
            first = begin
        self.over = (
            begin if first is None and not self.ends else min(begin + request.wait, first or begin + request.wait)
        )
        done = []
        while self.ends and self.ends[0][0] <= self.over:
            _, number, answer = heapq.heappop(self.ends)
            done.append(Done(number, DONE, answer, "", "", "", "", "", 0.0, number % len(self.free), False, [], {}))
        return self.over, msgspec.msgpack.encode(Reply(done, [], len(self.ends), {}))


class Simulated:
    """Machines of `nodes` nodes with `each` workers; every eighth is half as fast."""

    def __init__(self, clock: Clock, nodes: int, each: int, mean: float) -> None:
        self.clock, self.mean, self.random = clock, mean, random.Random(1)
        self.workers = {f"node{n}": each for n in range(nodes)}
        self.nodes = {f"node{n}": SimulatedNode(each, 0.5 if n % 8 == 7 else 1.0) for n in range(nodes)}
        self.replies: dict[int, tuple[float, bytes]] = {}
        self.calls = 0
        described = Description(COMPILER, "1.0", {}, "3.11", "2.0", "x86_64")
        self.described = msgspec.msgpack.encode(described)
        self.exporter = msgspec.msgpack.encode(plan.exporter_id("onnx"))
        self.passed = msgspec.msgpack.encode(
            Outcome(PASS, seconds={"load": 0.1, "compile": 0.1, "infer": 0.1}, seen=Seen(identical=True))
        )

    def lasts(self, work: Any) -> tuple[float, bytes]:
        """Return the seconds of a job, half to one and a half times the mean, and its answer."""
        if work.call.endswith(("identify", "describe")):
            return 0.1, self.described
        if work.call.endswith("exporter"):
            return 0.1, self.exporter
        return self.random.uniform(0.5, 1.5) * self.mean, self.passed

    def look(self) -> dict[str, int]:
        return self.workers

    def open(self, node: str, workers: int) -> str:
        return node

    def call(self, node: str, data: bytes) -> int:
        self.calls += 1
        self.clock.add(RAY_CALL)
        now = self.clock.look()
        if data:
            request = msgspec.msgpack.decode(data, type=Request)
            leaves, reply = self.nodes[node].exchange(request, now + LATENCY, self.lasts)
        else:
            leaves, reply = now, msgspec.msgpack.encode(Hello(node, messages.code()))
        self.replies[self.calls] = leaves + LATENCY, reply
        self.clock.forget()
        return self.calls

    def wait(self, calls: list[int], seconds: float) -> list[int]:
        now = self.clock.look()
        first = min(self.replies[call][0] for call in calls)
        self.clock.jump(max(now, min(first, now + seconds)))
        now = self.clock.monotonic()
        return [call for call in calls if self.replies[call][0] <= now]

    def reply(self, call: int) -> bytes:
        return self.replies.pop(call)[1]

    def drop(self, node: str) -> None: ...

    def close(self) -> None: ...


class Shared(Folders, frozen=True):
    """Tests of which many share a folder."""

    def test(self, name: str) -> Path:
        return super().test(f"{int(name[:8], 16) % FOLDERS:020}")


class Silent:
    def say(self, text: str) -> None: ...
    def begin(self, total: int) -> None: ...
    def step(self, *_: Any) -> None: ...


def filled(root: Path, count: int, source: Path) -> None:
    """Make a workspace of so many instances with their tests, the folders of which are copies of real ones."""
    import shutil

    folders = sorted(path.parent for path in source.glob("tests/*/*/manifest.json"))[:FOLDERS]
    with Workspace.open(root, write=True) as workspace:
        files = Shared.of(root)
        for place, folder in enumerate(folders):
            shutil.copytree(folder, Folders.of(root).test(f"{place:020}"))
        exporter = plan.exporter_id("onnx")
        made = [_instance(number) for number in range(count)]
        workspace.add_captured(made)
        tests = [plan.test_id(x.program.id, exporter) for x in made]
        workspace.save_tests(
            exporter, (Test(t, x.program.id, "valid", "", 0.0) for t, x in zip(tests, made, strict=True))
        )
        assert files.test(tests[0]).is_dir()


def _instance(number: int) -> Captured:
    tensor = Tensor.of([float(number), 1.5])
    instance = Instance("onnx", "Relu", {}, (Operand("X", tensor),), ("Y",), {"opset": {"": 14}})
    return Captured(instance, Provenance("node-tests", "cases.py", f"test_{number}"), None)


def simulate(root: Path, nodes: int, each: int, mean: float) -> dict[str, float]:
    """Run all tests of a workspace that is `filled`; return what came of it."""
    clock = Clock()
    machines = Simulated(clock, nodes, each, mean)
    with (
        mock.patch.object(cluster, "time", clock), mock.patch.object(ledger, "time", clock),
        Workspace.open(root, write=True) as workspace,
    ):  # fmt: skip
        workspace.files = Shared.of(root)
        needed = groups([(COMPILER, "onnx")], ["onnx"], lambda _: "", workspace.files)
        options = driver.Options(compilers=(COMPILER,), workers=0)
        with ClusterPool({**needed, **made_here(needed)}, files=workspace.files, machines=machines) as pool:
            list(pool.results())
            began, before = clock.look(), clock.driven
            summary = driver.run(workspace, options, Silent(), pool)
        passed = clock.look() - began
        driven = clock.driven - before
    tests = sum(sum(x.values()) for x in summary.counts.values())
    busy = sum(node.busy for node in machines.nodes.values())
    return {
        "workers": nodes * each, "mean_seconds": mean, "tests": tests, "seconds": round(passed, 1),
        "tests_a_second": round(tests / passed), "driver_cpu_ms_a_test": round(1000 * driven / tests, 3),
        "calls": machines.calls, "efficiency": round(busy / (passed * nodes * each), 3),
    }  # fmt: skip
