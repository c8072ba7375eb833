"""What a run has in hand: items, the tasks that are submitted for them, a kind for each stage, and the steps in between.

A task is the tag of its job in the pool. What follows from its result is said by pure functions (`transitions.py`,
`confirm.py`), as a list of steps: a task to be submitted, or one of the steps below.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from opera.compilers import Variant
from opera.programs.verdicts import Outcome
from opera.run.plan import InstalledFrontend, Item
from opera.store.rows import Verdict


class Origin(msgspec.Struct, frozen=True):
    """Where a failure was seen: the worker, and the jobs that it had run before, as `test/variant`.

    `error` is how opera failed there, for a test that is tried again alone for that.
    """

    worker: int = -1
    predecessors: tuple[str, ...] = ()
    error: Outcome | None = None


class Suspicion(msgspec.Struct, frozen=True):
    """A test that fails after its predecessors and passes without them."""

    frontend: InstalledFrontend
    verdict: Verdict
    origin: Origin

    @property
    def name(self) -> str:
        return f"{self.verdict.test}/{self.verdict.variant}"


# ---------------------------------------------------------------------- tasks


class Wrap(msgspec.Struct, frozen=True):
    """Make the migrated tests of a batch of instances."""

    library: str
    exporter: str
    instances: tuple[str, ...]


class Export(msgspec.Struct, frozen=True):
    """Make an artefact that a test offers."""

    library: str
    test: str
    artefact: str


class Execute(msgspec.Struct, frozen=True):
    """Run an item's variant; with `origin`, alone, after opera failed in a worker that had run others.

    `way` is the variant's trial, empty for the way of users; `trial` says how the trial failed that this follows: right outputs
    are then computed again, with other patterns in fresh memory, for both may be luck.
    """

    item: Item
    origin: Origin | None = None
    way: str = ""
    trial: str = ""


class Locate(msgspec.Struct, frozen=True):
    """Ask what converts the operator of a test whose process died before it could tell."""

    item: Item
    outcome: Outcome
    origin: Origin


class Screen(msgspec.Struct, frozen=True):
    """Look for another explanation of an inconsistency, on the library's side."""

    item: Item
    outcome: Outcome
    origin: Origin


class Confirm(msgspec.Struct, frozen=True):
    """Run a failing test again in a fresh fork; an exporter without opera's patches, but with `patched`."""

    item: Item
    verdict: Verdict
    origin: Origin
    patched: bool = False


class Replay(msgspec.Struct, frozen=True):
    """Run a test that a fresh fork did not see fail after its predecessors; `alone` is what the fork saw."""

    item: Item
    verdict: Verdict
    origin: Origin
    alone: Outcome


class Rejudge(msgspec.Struct, frozen=True):
    """Compare and screen outputs that were kept, by the rules of today."""

    frontend: InstalledFrontend
    verdict: Verdict


Task: TypeAlias = Wrap | Export | Execute | Locate | Screen | Confirm | Replay | Rejudge

# ---------------------------------------------------------------------- steps


class Advance(msgspec.Struct, frozen=True):
    """Go on with an item whose test and artefacts are there, from its variant on."""

    item: Item


class Need(msgspec.Struct, frozen=True):
    """Have an item wait for an artefact that its test offers."""

    item: Item
    artefact: str


class Again(msgspec.Struct, frozen=True):
    """Run one variant of an item once more and alone, whatever else becomes of the item."""

    item: Item


class Conclude(msgspec.Struct, frozen=True):
    """An outcome of an item's variant is final, but for its confirmation."""

    item: Item
    outcome: Outcome
    origin: Origin


class Store(msgspec.Struct, frozen=True):
    """Store a verdict."""

    verdict: Verdict


class Suspect(msgspec.Struct, frozen=True):
    """Look for what spoilt a worker, once the run is over."""

    suspicion: Suspicion


class Finish(msgspec.Struct, frozen=True):
    """An item is done with, or left to the next run."""

    item: Item


Step: TypeAlias = Task | Advance | Need | Again | Conclude | Store | Suspect | Finish


def route(item: Item) -> Variant:
    """Return the variant that an item is at."""
    return item.frontend.variants[item.variant]


def predecessors(history: list[Any]) -> tuple[str, ...]:
    """Return the names of the tests that a worker ran, of its history of tags."""
    return tuple(f"{tag.item.test}/{route(tag.item).name}" for tag in history if isinstance(tag, Execute))
