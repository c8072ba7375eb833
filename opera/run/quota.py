"""How many tests of each frontend are run: the best-ranked, or with --balance the same number of each migration source."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice

from opera.errors import UsageError
from opera.programs.program import matches
from opera.run.plan import Item, Queue, Selection, merged
from opera.store import families
from opera.store.workspace import Workspace

Key = tuple[str, str]
"""(frontend, share); see opera.run.plan.Item."""


class Quota:
    """Counts the tests that are taken up. One that its library rejects makes room for the next best of the same share.

    With `balance`, the number is that of the source with fewest tests, or the limit's equal part of each; a test of two
    sources counts for both.
    """

    def __init__(self, queues: list[Queue], selection: Selection) -> None:
        self._taken: Counter[Key] = Counter()
        self._aside: dict[Key, deque[Item]] = defaultdict(deque)  # what there was no room for, best first
        self._again: set[tuple[str, str]] = set()  # (frontend, instance) taken from there
        self._rest: dict[str, Iterator[tuple[float, Item]]] = {}  # frontend → what comes after its limit
        self._limit = selection.limit
        self._parts: dict[str, int] = {}  # frontend → tests of each source
        if selection.balance:
            for queue in queues:
                shares = Counter(share for each in queue.shares for share in each)
                least = min(shares.values(), default=0)
                if shares:
                    most = least if self._limit is None else min(least, self._limit // len(shares))
                    self._parts[queue.frontend.name] = most

    def total(self, queues: list[Queue], rejected: Callable[[str, str], bool]) -> int:
        """Return how many tests will be taken if no more are rejected; `rejected` is asked of (exporter, instance)."""
        return sum(self._total(queue, partial(rejected, queue.frontend.exporter)) for queue in queues)

    def _total(self, queue: Queue, rejected: Callable[[str], bool]) -> int:
        if not queue.shares:
            valid = sum(not rejected(instance) for instance, _ in queue.ranked)
            return valid if self._limit is None else min(valid, self._limit)
        taken: Counter[Key] = Counter()
        total = 0
        for _, item in queue.items():
            if not rejected(item.instance) and self._room(item, taken):
                taken.update(_keys(item))
                total += 1
        return total

    def upcoming(self, queues: list[Queue], rejected: Callable[[str, str], bool]) -> Iterator[Item]:
        """Yield the items of all queues, interleaved by relative rank: with a plain limit, no more than are wanted."""
        if self._limit is None or self._parts:
            return merged(queue.items() for queue in queues)
        each = []
        for queue in queues:
            valid = _valid(queue, rejected)
            self._rest[queue.frontend.name] = valid
            each.append(islice(valid, self._limit))
        return merged(each)

    def take(self, item: Item) -> bool:
        """Count an item and return True; or put it aside where there is no room for it."""
        keys = _keys(item)
        if not self._room(item, self._taken):
            for key in keys:
                self._aside[key].append(item)
            return False
        self._taken.update(keys)
        return True

    def replacements(self, rejected: Item) -> Iterator[Item]:
        """Give an item's room back, and yield what may have it instead: to be tried until one is taken."""
        keys = _keys(rejected)
        self._taken.subtract(keys)
        yield from (item for _, item in self._rest.get(rejected.frontend.name, ()))
        for key in keys:
            aside = self._aside[key]
            while aside and self._room(aside[0], self._taken):
                item = aside.popleft()
                name = (item.frontend.name, item.instance)
                if name not in self._again:
                    self._again.add(name)
                    yield item

    def _room(self, item: Item, taken: Counter[Key]) -> bool:
        most = self._parts.get(item.frontend.name, self._limit)
        return most is None or any(taken[key] < most for key in _keys(item))


def check(workspace: Workspace, libraries: list[str], selection: Selection) -> None:
    """Raise UsageError where a library has not two sources, or one of them nothing to run, so that nothing can be balanced."""
    found: dict[str, Counter[str]] = {library: Counter() for library in libraries}
    for (library, operator, sources), count in families.held(workspace).items():
        if library in found:
            wanted = count if matches(operator, selection.operator) else 0
            found[library].update(dict.fromkeys(families.ordered(sources), wanted))
    for library, counts in found.items():
        if len(counts) < 2:
            raise UsageError(
                f"there is nothing to balance: all instances of {library} come from one source, {', '.join(counts)}",
                cause="nothing was extracted from another source yet",
                fix="extract from another source, name the libraries to run by --library, or leave --balance out",
            )
        missing = [name for name, count in counts.items() if not count]
        if missing:
            raise UsageError(
                f"{' and '.join(missing)} has no {library} instance of an operator that matches {selection.operator!r}",
                fix="choose another --operator, or leave --balance out",
            )
        if selection.limit is not None and selection.limit < len(counts):
            raise UsageError(
                f"--limit {selection.limit} leaves no test for each of the {len(counts)} sources of {library}",
                cause="with --balance, every source has an equal part of the limit",
                fix=f"give --limit {len(counts)} or more",
            )


def _valid(queue: Queue, rejected: Callable[[str, str], bool]) -> Iterator[tuple[float, Item]]:
    exporter = queue.frontend.exporter
    return (pair for pair in queue.items() if not rejected(exporter, pair[1].instance))


def _keys(item: Item) -> list[Key]:
    return [(item.frontend.name, share) for share in item.shares]
