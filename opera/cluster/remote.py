"""The machines of a cluster, and what the driver knows of each node there."""

from __future__ import annotations

import math
from collections import OrderedDict, defaultdict
from typing import Any, Protocol

import msgspec

from opera.cluster.messages import Work
from opera.programs.verdicts import Uses

AHEAD = 2
"""A node is handed what it does in so many times that, beside the jobs that it runs."""


class Lost(Exception):
    """A node is gone, or does not answer any more: its name says why."""


class Machines(Protocol):
    """The machines of a cluster, and how they are asked: by Ray, or in a test by other means."""

    def look(self) -> dict[str, int]:
        """Return the nodes that are alive now, by id, and how many workers each may have."""

    def open(self, node: str, workers: int) -> Any:
        """Start a node; its `hello` is asked for as a call. Nothing raises here."""

    def call(self, node: Any, request: bytes) -> Any:
        """Have a started node exchange messages (`Remote.exchange`), an empty request asks for its hello; return the call."""

    def wait(self, calls: list[Any], seconds: float) -> list[Any]:
        """Return those of the calls that are over, after so many seconds at the latest."""

    def reply(self, call: Any) -> bytes:
        """Return the reply of a call that is over. Raises Lost."""

    def drop(self, node: Any) -> None:
        """End a node, whatever it does."""

    def close(self) -> None:
        """End all nodes that were started."""


class Task(msgspec.Struct):
    """A job of the caller's; `losses` are nodes that were lost while they had it."""

    number: int
    work: Work
    tag: Any
    uses: Uses
    losses: int = 0


class Remote:
    """A node as the driver sees it."""

    def __init__(self, name: str, handle: Any, workers: int) -> None:
        self.name, self.handle, self.workers = name, handle, workers
        self.told = ""  # what it calls itself, once it has said hello
        self.at_home = False  # it works in the driver's folder
        self.calls: list[tuple[Any, int]] = []  # under way, the oldest first, and how many jobs each brings
        self.tasks: dict[int, Task] = {}  # handed to it and not told of
        self.groups: set[str] = set()  # that it knows
        self.identities: dict[str, bytes | None] = {}  # group → what it says, None where it cannot be in it
        self.asked: dict[int, str] = {}  # number of a job that asks for an identity → group
        self.tests: OrderedDict[str, str] = OrderedDict()  # test → digest that it is thought to have
        self.histories: dict[int, list[Any]] = defaultdict(list)  # its worker → tags
        self.numbers: dict[int, int] = {}  # its worker → number in this pool
        self.retire: list[int] = []
        self.release: list[str] = []
        self.rate: float | None = None  # jobs a second of late; None until it has worked for a second
        self.counted, self.since = 0, 0.0  # jobs done since when

    def room(self, wait: float) -> int:
        """Return how many jobs it may have in hand, where it replies after so many seconds."""
        return self.workers + (self.workers if self.rate is None else math.ceil(AHEAD * wait * self.rate))

    def count(self, done: int, now: float) -> None:
        """Take note of jobs that are done."""
        self.counted += done
        if now - self.since >= 1.0:
            if self.since:
                recent = self.counted / (now - self.since)
                self.rate = (self.rate + recent) / 2 if self.rate else recent
            self.counted, self.since = 0, now
