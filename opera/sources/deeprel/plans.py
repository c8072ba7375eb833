"""What is asked of a child that tries operators on each other's invocations, and what it answers: files beside each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from opera.sources.deeprel import candidates
from opera.sources.deeprel.replay import Replayed
from opera.store.relations import STATUS, VALUE

HOPELESS = 10
"""So many refusals for want of a dtype, and fewer calls that returned: no more are tried."""
STATUS_TRIED = 20
"""Where values differ, and only equal status is left to be verified, so many invocations are tried."""
LEAST = 3
"""Invocations that speak for a relation, at least: on which both agree, or that both accept."""
ENOUGH = 8
"""Examples of an outcome that are kept."""


class Pair(msgspec.Struct, frozen=True):
    """A source whose invocations are tried on a target, and how they are expressed there.

    Attributes:
        names: Parameter of the source → parameter of the target.
        explicit: Parameter of the target → encoded value that is passed where the source's call gives none.
        dropped: Parameter of the source without a counterpart → encoded value at which it may be left out.
        needed: Parameters that every call of the target needs.
        relation: `value`, `status`, or empty where that is to be found out.
        documents: Of the plan's documents, those that are invocations of the source; None for all.
    """

    source: str
    target: str
    names: dict[str, str]
    explicit: dict[str, Any] = {}
    dropped: dict[str, Any] = {}
    needed: tuple[str, ...] = ()
    relation: str = ""
    documents: tuple[int, ...] | None = None


class Plan(msgspec.Struct, frozen=True):
    """What is asked of one run: a file whose name is the job's.

    Attributes:
        library: Whose operators are called.
        operator: The source whose candidates are verified; empty where `pairs` are transferred.
        documents: (instance id, its document).
        pairs: What is transferred.
        partners: Candidates of the operator; None for those that opera finds.
        top: How many candidates opera takes.
        limit: Instances that a pair yields at most.
        seconds: What one call may take; None for the usual.
        title, file, names, records: Recorded invocations of an API that are run, in place of all that (see replay.py).
        skip: (pair, document) of calls that hung or killed the process; the pair -1 stands for the source itself.
    """

    library: str
    operator: str
    documents: list[tuple[str, bytes]]
    pairs: list[Pair] = []
    partners: list[str] | None = None
    top: int = candidates.TOP
    limit: int = 100
    seconds: float | None = None
    title: str = ""
    file: str = ""
    names: list[str] = []
    records: list[dict[str, Any]] = []
    skip: list[tuple[int, int]] = []


class Tried(msgspec.Struct):
    """What became of a pair; written as one line as soon as it is known.

    Attributes:
        pair: What was tried.
        agreed: Invocations on which both operators returned the same, and that tells something; `hollow` where it is all
            zeros, or the argument itself.
        differed, raised: Invocations on which the target returned something else, or refused by an exception.
        excused: Invocations that it refused for want of a dtype.
        skipped: Why invocations could not be tried → how many.
        examples: Tried → ids of instances.
        captured: Instances recorded.
    """

    pair: Pair
    agreed: int = 0
    hollow: int = 0
    differed: int = 0
    raised: int = 0
    excused: int = 0
    skipped: dict[str, int] = {}
    examples: dict[str, list[str]] = {}
    error: str = ""
    captured: int = 0

    @property
    def tried(self) -> int:
        return self.agreed + self.hollow + self.differed + self.raised + self.excused

    def count(self, what: str, instance: str) -> None:
        """Count an outcome of an instance."""
        setattr(self, what, getattr(self, what) + 1)
        kept = self.examples.setdefault(what, [])
        if len(kept) < ENOUGH:
            kept.append(instance)


class Attempt(msgspec.Struct):
    """The call that runs now, which is the one to blame if the process dies; `instance` gave the arguments."""

    pair: int
    document: int
    operator: str
    source: str
    instance: str


def outcomes_file(plan: Path) -> Path:
    return plan.with_suffix(".outcomes")


def attempt_file(plan: Path) -> Path:
    return plan.with_suffix(".attempt")


def outcomes(plan: Path) -> list[Tried]:
    """Return what a plan has come to, also where its process died."""
    return [msgspec.json.decode(line, type=Tried) for line in _lines(plan)]


def replayed(plan: Path) -> Replayed:
    """Return what a plan of records has come to."""
    return msgspec.json.decode([*_lines(plan), b"{}"][0], type=Replayed)


def _lines(plan: Path) -> list[bytes]:
    path = outcomes_file(plan)
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    return [line for line in lines if line.endswith(b"\n")]


def settled(outcome: Tried) -> bool:
    """Whether further invocations can only say what is known: no relation is left, or only that of status."""
    if outcome.raised or outcome.excused >= HOPELESS > outcome.agreed + outcome.differed:
        return True
    return outcome.differed > 0 and (outcome.excused > 0 or outcome.tried >= STATUS_TRIED)


def supported(outcome: Tried) -> str:
    """Return the relation that a pair's outcome supports, empty for none."""
    returned = outcome.agreed + outcome.hollow + outcome.differed
    if outcome.raised or outcome.excused > returned:
        return ""
    if not outcome.differed:
        return VALUE if outcome.agreed >= LEAST else ""
    return STATUS if not outcome.excused and returned >= LEAST else ""
