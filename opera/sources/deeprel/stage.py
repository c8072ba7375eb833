"""`opera extract --source deeprel`: verify relations on the instances of a workspace, then let partners exchange theirs."""

from __future__ import annotations

import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec

from opera import temporary
from opera.errors import NotInstalled, SourceError
from opera.sources.deeprel import relations
from opera.sources.deeprel.plans import Plan
from opera.sources.deeprel.pool import Done, Pool
from opera.sources.deeprel.relations import VERIFY, Relation
from opera.sources.suites import suites
from opera.store import instances
from opera.store.relations import SOURCE, STATUS, VALUE, insert, originals
from opera.store.workspace import Crash, Workspace

VERIFIED = 100
"""Invocations of an operator on which its candidates are verified (DeepREL's number)."""
TRANSFERRED = {VALUE: 200, STATUS: 20}
"""Invocations of an operator that are tried on a partner, by relation."""
TRANSFER = "transfer "
LINE_SECONDS = 2.0
SHOWN = 12


class Settings(msgspec.Struct, frozen=True):
    """How an extraction works.

    Attributes:
        workers: Child processes at a time.
        rerun: Begin anew; else what an interrupted extraction finished is passed over.
        count: Invocations of an operator that are tried on a partner; 0 for the numbers above.
        timeout: Seconds that one call may take; None for the driver's own limit.
    """

    workers: int = 2
    rerun: bool = False
    count: int = 0
    timeout: float | None = None


def extract(
    workspace: Workspace,
    library: str,
    settings: Settings,
    candidates: Mapping[str, Sequence[str]] | None = None,
    named: str = "",
) -> bool:
    """Infer relations among the operators of a library and let partners exchange invocations; print a summary.

    Args:
        workspace: Open for writing; it holds instances of the library from another source.
        library: `torch` or `keras`.
        settings: How.
        candidates: Operator → candidates, in place of opera's own; `named` says whose they are.

    Returns False if nothing could be tried. Raises SourceError where there are no instances.
    """
    if not workspace.operators(library):
        raise SourceError(
            f"the workspace holds no instances of {library}",
            cause="relations are verified on invocations that another source captured",
            fix=f"run `opera extract {library}` first",
        )
    installed = suites.version_of(library)
    started, key = time.monotonic(), relations.key(library, installed, named)
    if settings.rerun:
        workspace.forget_extraction(key)
    done = workspace.extraction(
        key, {"target": library, "name": SOURCE, "version": installed, "installed": installed, "equipped": ""}
    )
    run = _Run(workspace, library, key, done, candidates, settings)
    with temporary.folder("deeprel") as folder:
        for word, plans in (("verified", run.to_verify()), ("exchanged", run.to_transfer())):
            place = folder / word
            place.mkdir()
            with Pool(SOURCE, library, place, settings.workers) as pool:
                run.store_all(pool, plans, word)
    run.tell(time.monotonic() - started)
    return bool(run.totals["tried"]) or bool(done)


def installed(library: str) -> bool:
    """Return whether a library is there to be called; say on stderr that it is passed over where it is not."""
    try:
        suites.version_of(library)
    except NotInstalled as error:
        print(f"{library} is passed over: {error.what}", file=sys.stderr)
        return False
    return True


class _Run:
    """One extraction at work."""

    def __init__(
        self, workspace: Workspace, library: str, key: str, done: set[str],
        candidates: Mapping[str, Sequence[str]] | None, settings: Settings,
    ) -> None:  # fmt: skip
        self.workspace, self.library, self.key, self.done = workspace, library, key, done
        self.candidates, self.settings = candidates, settings
        self.totals: Counter[str] = Counter()
        self.crashes: list[Crash] = []
        self.differing: list[str] = []
        self.seconds: dict[str, float] = {}

    def to_verify(self) -> Iterator[tuple[str, Plan]]:
        """Yield a plan for every operator that has invocations of its own."""
        for operator in self.held:
            partners = None if self.candidates is None else list(self.candidates.get(operator, ()))
            if VERIFY + operator not in self.done and partners != []:
                documents = self._documents(operator, self.settings.count or VERIFIED)
                seconds = self.settings.timeout
                yield VERIFY + operator, Plan(self.library, operator, documents, partners=partners, seconds=seconds)

    @cached_property
    def held(self) -> dict[str, list[int]]:
        """Operator → what other sources captured of it: places of instances in the corpus."""
        return originals(self.workspace, self.library)

    def _documents(self, operator: str, most: int) -> list[tuple[str, bytes]]:
        """Return at most so many invocations of an operator, spread over all of them."""
        own = self.held.get(operator, [])
        chosen = [own[place * len(own) // most] for place in range(most)] if len(own) > most else own
        return instances.documents(self.workspace, chosen)

    @cached_property
    def found(self) -> list[Relation]:
        """The verified relations, once all candidates were tried."""
        return relations.verified(relations.stored(self.workspace, self.key))

    def to_transfer(self) -> Iterator[tuple[str, Plan]]:
        """Yield a plan for every operator that has verified partners, equal values first."""
        by_target: dict[str, list[Relation]] = defaultdict(list)
        for relation in self.found:
            by_target[relation.pair.target].append(relation)
        for target, held in sorted(by_target.items()):
            if TRANSFER + target not in self.done:
                yield TRANSFER + target, self._exchange(held)

    def _exchange(self, held: list[Relation]) -> Plan:
        documents: list[tuple[str, bytes]] = []
        pairs = []
        for relation in held:
            most = TRANSFERRED[relation.kind]
            own = self._documents(relation.pair.source, min(self.settings.count, most) or most)
            places = tuple(range(len(documents), len(documents) + len(own)))
            documents += own
            pairs.append(msgspec.structs.replace(relation.pair, documents=places))
        return Plan(self.library, "", documents, pairs, seconds=self.settings.timeout)

    def store_all(self, pool: Pool, plans: Iterator[tuple[str, Plan]], word: str) -> None:
        """Run plans and store what becomes of them, each as soon as it is known."""
        last = started = time.monotonic()
        for number, done in enumerate(pool.run(plans), 1):
            self._store(done)
            if time.monotonic() - last > LINE_SECONDS:
                last = time.monotonic()
                counted = f"{self.totals['tried']} invocations tried, {self.totals['captured']} captured"
                print(f"{number} operators {word}, {counted}; {done.report.file}", file=sys.stderr, flush=True)
        self.seconds[word] = time.monotonic() - started

    def _store(self, done: Done) -> None:
        captured, new, document = stored(self.workspace, done)
        tried = [x for x in done.outcomes if x.tried]
        candidates = []
        if done.plan.operator:  # it verifies; else pairs were verified before
            candidates = [(x.pair.source, x.pair.target, x) for x in tried]
        else:
            document["outcomes"] = tried
        self.workspace.save_extraction_file(
            self.key, done.report.file, done.report.status, document, crashes=done.crashes, candidates=candidates
        )
        self.totals.update(captured=captured, new=new, tried=sum(x.tried for x in done.outcomes))
        self.crashes += done.crashes
        for outcome in done.outcomes:
            if outcome.pair.relation == VALUE and outcome.differed:
                ids = ", ".join(outcome.examples["differed"][:3])
                self.differing.append(f"{outcome.pair.source} and {outcome.pair.target}: {outcome.differed} ({ids})")

    def tell(self, seconds: float) -> None:
        """Print what came of it."""
        kinds = Counter(relations.pairs(self.found).values())
        print(
            f"{self.library}: {kinds[VALUE] + kinds[STATUS]} verified pairs of operators: {kinds[VALUE]} of equal values,"
            f" {kinds[STATUS]} of equal status; {self.totals['tried']} invocations tried,"
            f" {self.totals['captured']} captured: {self.totals['new']} new instances, {seconds:.0f} s"
        )
        show_list(
            f"{len(self.differing)} pairs of equal values differ on further invocations:",
            self.differing,
        )
        show_list(f"{len(self.crashes)} calls hung or killed the library's process:", list(map(told, self.crashes)))


def stored(workspace: Workspace, done: Done) -> tuple[int, int, dict[str, Any]]:
    """Store what a plan captured; return how many instances that are, how many are new, and what is to be said of the plan."""
    lines, report = Counter[bool](), done.report
    with workspace.transaction():
        new = insert(workspace, report.records(lines))
    report.spool.unlink(missing_ok=True)
    names = ("source", "reason", "tests", "failed", "calls", "left_out", "seconds")
    document: dict[str, Any] = {name: getattr(report, name) for name in names}
    return lines[True], new, document | {"captured": lines[True], "new": new, "damaged": lines[False]}


def told(crash: Crash) -> str:
    """Return a line about a call that hung or killed its process."""
    return f"{crash.operator}, given the arguments of {crash.values['arguments']}: {crash.how}"


def show_list(head: str, lines: list[str]) -> None:
    """Print the first lines of a list, if there are any."""
    if lines:
        print(head)
        for line in lines[:SHOWN]:
            print(f"  {line}")
        if len(lines) > SHOWN:
            print(f"  and {len(lines) - SHOWN} more, in the workspace")
