"""What whoever has jobs done knows of a pool: processes of this machine (`pool.py`), or of many (`opera.cluster`)."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Any, Protocol, Self

from opera.pool.workers import Account, Group, Result


class JobPool(Protocol):
    """Runs jobs of several groups; the methods are told in opera.pool.pool.Pool."""

    groups: dict[str, Group]

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...

    @property
    def workers(self) -> float:
        """Jobs that it does at a time; where machines come and go, on average so far."""

    @property
    def room(self) -> int:
        """Jobs that it takes in at a time; as many again should be ready behind them."""

    @property
    def accounts(self) -> dict[str, Account]:
        """What each group has cost so far."""

    def add(self, name: str, group: Group) -> None:
        """Have another group beside those that the pool was made with."""

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
        """Queue a job."""

    def until(self, begin: float, end: float) -> None:
        """Begin no job after `begin` (as of time.monotonic), and drop those that still run at `end`."""

    def retire(self, number: int) -> None:
        """Give the worker of that number no other job."""

    def release(self, group: str) -> None:
        """Give back the memory of a group that has nothing to do; it starts anew if it is given a job."""

    def results(self) -> Iterator[Result]:
        """Yield results as they come, until nothing is left to do; more may be submitted in between."""

    def poll(self) -> Iterator[Result]:
        """Yield what results there are, without waiting."""
