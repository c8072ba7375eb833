"""Nodes of a cluster in this process, one after the other, for tests of what does not need Ray."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import msgspec

from opera.cluster.messages import Home, Reply, Request
from opera.cluster.node import Node
from opera.cluster.remote import Lost


class Nearby:
    """Machines by name, each with its workers; `traits` of a machine are variables in the environment of its processes."""

    def __init__(
        self,
        workers: dict[str, int],
        *,
        store: str = "",
        home: Home | None = None,
        least_free: dict[str, int] | None = None,
    ) -> None:
        self.workers, self.store, self.home, self.least_free = dict(workers), store, home, least_free or {}
        self.traits: dict[str, dict[str, str]] = {}
        self.nodes: dict[str, Node] = {}
        self.dies_at: dict[str, int] = {}  # machine → after so many jobs of it that were told, it is lost
        self.rots: set[str] = set()  # machines whose actor is lost at each request with work, and comes again
        self.requests: dict[str, list[Request]] = {}
        self.told: Counter[str] = Counter()

    def look(self) -> dict[str, int]:
        return dict(self.workers)

    def open(self, node: str, workers: int) -> Any:
        # Mebibytes that are free in tests are nobody's concern, unless a test says so.
        self.nodes[node] = Node(workers, self.store, self.home, least_free=self.least_free.get(node, 0))
        self.requests.setdefault(node, [])
        return node

    def call(self, node: Any, request: bytes) -> Any:
        if request:
            self.requests[node].append(msgspec.msgpack.decode(request, type=Request))
        return _Call(node, self.nodes.get(node), request)

    def wait(self, calls: list[Any], seconds: float) -> list[Any]:
        return list(calls)

    def reply(self, call: Any) -> bytes:
        name, node = call.node, call.at
        if node is None or self.nodes.get(name) is not node:
            raise Lost("it was lost before")
        if not call.request:
            return node.hello()
        asked = msgspec.msgpack.decode(call.request, type=Request)
        if name in self.rots and any(work.reads or not work.call.endswith("trait") for work in asked.work):
            self._end(name)
            raise Lost("its process was killed")
        before = {key: os.environ.get(key) for key in self.traits.get(name, {})}
        os.environ.update(self.traits.get(name, {}))
        try:
            data = node.exchange(call.request)
        finally:
            for key, value in before.items():
                os.environ.pop(key) if value is None else os.environ.update({key: value})
        reply = msgspec.msgpack.decode(data, type=Reply)
        if name in self.dies_at and self.told[name] + len(reply.done) > self.dies_at[name]:
            self._end(name)
            del self.workers[name]
            raise Lost("its machine died")
        self.told[name] += len(reply.done)
        return data

    def _end(self, name: str) -> None:
        self.nodes.pop(name).close()

    def drop(self, node: Any) -> None:
        if node in self.nodes:
            self._end(node)

    def close(self) -> None:
        for name in list(self.nodes):
            self._end(name)

    def jobs(self, name: str) -> int:
        """Return how many jobs a machine was given, those left out that ask what it is."""
        return sum(not work.call.endswith("trait") for request in self.requests[name] for work in request.work)


class _Call:
    def __init__(self, node: str, at: Node | None, request: bytes) -> None:
        self.node, self.at, self.request = node, at, request
