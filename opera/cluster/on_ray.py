"""The machines of a Ray cluster: one actor a node, which holds the node's pool. Nothing else of opera imports Ray.

The actor takes all the CPUs that the node has, so that no other job of the cluster slows what is measured there. An actor that
dies is not restarted by Ray: what it was doing is known here, and is handed out anew.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import tempfile
from contextlib import ExitStack
from typing import Any

from opera import temporary
from opera.cluster.messages import Home
from opera.cluster.node import Node
from opera.cluster.remote import Lost
from opera.errors import NoAnswer, NotInstalled, UsageError

LOCAL = "local"
"""Address that stands for a cluster of this machine alone, which is started and ends with the run."""
CONNECTING = 10.0
"""Seconds that a connection to the cluster's head may take."""
OBJECTS = 256 << 20
"""Bytes of the object store of a local cluster: messages of more than 100 KiB go through it."""
QUIET: dict[str, int | bool] = {
    "memory_monitor_refresh_ms": 0,  # opera limits its workers itself
    "raylet_report_resources_period_milliseconds": 1000,
    "metrics_report_interval_ms": 60_000,
    "task_events_report_interval_ms": 0,
    "event_stats": False,
}
"""Of a local cluster: Ray observes itself less, for nobody looks at that."""
SHORT = 18
"""Letters of a temporary folder under which the paths of Ray's sockets are short enough."""
ENDING = 10.0
"""Seconds that nodes have to end their processes and to remove their folders."""


class Actor:
    """What runs on a node: the class of the actors."""

    def __init__(self, workers: int, store: str, home: Home | None, paths: tuple[str, ...]) -> None:
        self._node = Node(workers, store, home, paths)

    def exchange(self, request: bytes) -> bytes:
        """See opera.cluster.node.Node.exchange; an empty request is for the hello."""
        return self._node.exchange(request) if request else self._node.hello()

    def close(self) -> None:
        """End the node's processes, and remove its folder."""
        self._node.close()


class RayMachines:
    """The nodes of a Ray cluster.

    Args:
        address: `local`, `auto`, `HOST:PORT` of the head, or `ray://HOST:PORT`.
        workers: Processes at a time on each node; 0 for as many as it has CPUs.
        store: Address of the store, empty where there is none.
        home: The driver's folder, in which nodes on its machine work; None where none is to do so.

    Raises NotInstalled, UsageError or NoAnswer where there is no such cluster.
    """

    def __init__(self, address: str, *, workers: int = 0, store: str = "", home: Home | None = None) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nobody is told of it
        os.environ.setdefault(
            "RAY_worker_niceness", "0"
        )  # of a local cluster: else all else of the machine comes first
        try:
            import ray
            import ray.exceptions
        except ImportError as error:
            raise NotInstalled(
                f"--cluster needs Ray: {error}",
                cause='opera was installed without its extra "cluster"',
                fix='pip install "opera[cluster]", here and on every node',
            ) from None
        self._ray, self._workers, self._store, self._home = ray, workers, store, home
        self._actors: list[Any] = []
        self._stack = ExitStack()
        if not ray.is_initialized():
            with ExitStack() as stack:
                _connect(ray, address, workers, stack)
                self._stack = stack.pop_all()

    def look(self) -> dict[str, int]:
        """Return the nodes that are alive and have CPUs, by Ray's id, and how many workers each may have."""
        found = {}
        try:
            nodes = self._ray.nodes()
        except (self._ray.exceptions.RayError, RuntimeError, OSError) as error:
            raise NoAnswer(
                f"the cluster's head does not answer any more: {_told(error)}",
                cause="it died, or the network to it",
                fix="start the cluster again, and run the same command: what was stored stays",
            ) from None
        for node in nodes:
            cpus = int(node["Resources"].get("CPU", 0))
            if node["Alive"] and cpus:
                found[str(node["NodeID"])] = min(cpus, self._workers or cpus)
        return found

    def open(self, node: str, workers: int) -> Any:
        """Start the actor of a node; it waits until its CPUs are free."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        made = self._ray.remote(Actor).options(
            num_cpus=workers, max_restarts=0, max_task_retries=0,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
        )  # fmt: skip
        paths = tuple(os.path.abspath(entry) for entry in sys.path)  # noqa: PTH100  ("" is the current folder)
        actor = made.remote(workers, self._store, self._home, paths)
        self._actors.append(actor)
        return actor

    def call(self, node: Any, request: bytes) -> Any:
        """Have an actor exchange messages."""
        return node.exchange.remote(request)

    def wait(self, calls: list[Any], seconds: float) -> list[Any]:
        """Return those of the calls that are over, after so many seconds at the latest."""
        if not calls:
            return []
        done, left = self._ray.wait(calls, num_returns=1, timeout=seconds)
        more = self._ray.wait(left, num_returns=len(left), timeout=0)[0] if done and left else []
        return [*done, *more]

    def reply(self, call: Any) -> bytes:
        """Return the reply of a call that is over. Raises Lost."""
        try:
            data: bytes = self._ray.get(call)
        except self._ray.exceptions.RayError as error:
            raise Lost(_told(error)) from None
        return data

    def drop(self, node: Any) -> None:
        """End an actor, whatever it does."""
        with contextlib.suppress(self._ray.exceptions.RayError, ValueError):
            self._ray.kill(node, no_restart=True)
        self._actors = [x for x in self._actors if x is not node]

    def close(self) -> None:
        """End all actors, and the local cluster."""
        ends = [actor.close.remote() for actor in self._actors]
        if ends:
            with contextlib.suppress(self._ray.exceptions.RayError):
                self._ray.wait(ends, num_returns=len(ends), timeout=ENDING)
        for actor in list(self._actors):
            self.drop(actor)
        self._stack.close()


def _connect(ray: Any, address: str, workers: int, stack: ExitStack) -> None:
    """Connect to a cluster until the stack is closed. Raises UsageError or NoAnswer."""
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    if address == LOCAL:
        # Ray would leave its logs, and the paths of its sockets may have no more than 107 bytes.
        is_short = len(tempfile.gettempdir()) <= SHORT
        own = temporary.folder("ray") if is_short else tempfile.TemporaryDirectory(prefix="ray", dir="/tmp")
        place = stack.enter_context(own)
        stack.callback(ray.shutdown)
        try:
            ray.init(
                num_cpus=workers or None, include_dashboard=False, object_store_memory=OBJECTS,
                _temp_dir=str(place), _system_config=QUIET, **quiet,
            )  # fmt: skip
        except (OSError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
            raise NoAnswer(
                f"Ray cannot be started on this machine: {_told(error)}",
                cause="too little memory or shared memory, or too few processes or files are allowed",
                fix="leave --cluster local out: without it, all CPUs are used as well",
            ) from None
        return
    start = "`ray start --head` on one machine and `ray start --address HOST:PORT` on the others; see docs/cluster.md"
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if address != "auto" and not (host and port.isdigit()):
        raise UsageError(
            f"{address!r} is no address of a cluster", fix="name local, auto, HOST:PORT or ray://HOST:PORT"
        )
    try:
        if address != "auto":  # Ray itself would wait for minutes
            socket.create_connection((host.strip("[]"), int(port)), CONNECTING).close()
        stack.callback(ray.shutdown)
        ray.init(address=address, **quiet)
    except (OSError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
        raise NoAnswer(
            f"the cluster at {address} cannot be reached: {str(error).strip().splitlines()[0][:300]}",
            cause="no Ray runs there, a firewall is between, it has another version of Ray or Python, or it asks for a token",
            fix=f"start it with {start}; a token is given by RAY_AUTH_MODE=token and RAY_AUTH_TOKEN",
        ) from None


def _told(error: Exception) -> str:
    """Return in a line why a node is lost."""
    lines = [line.strip() for line in str(error).strip().splitlines() if line.strip()]
    last = lines[-1] if lines else ""
    return f"{type(error).__name__}: {last[:300]}"
