"""`opera extract --source deeprel`: verify relations on the instances of a workspace, then let partners exchange theirs."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial

import msgspec

from opera.errors import NotInstalled
from opera.programs.program import Captured
from opera.sources import Finished, Totals, Unit, UnitReport, telling
from opera.sources.deeprel import plans as files
from opera.sources.deeprel import relations, units
from opera.sources.deeprel.plans import Plan, Tried
from opera.sources.deeprel.relations import VERIFY, Relation
from opera.sources.suites import suites
from opera.store import instances
from opera.store.relations import SOURCE, STATUS, VALUE, insert, originals
from opera.store.rows import Crash
from opera.store.workspace import Workspace

VERIFIED = 100
"""Invocations of an operator on which its candidates are verified (DeepREL's number)."""
TRANSFERRED = {VALUE: 200, STATUS: 20}
"""Invocations of an operator that are tried on a partner, by relation."""
TRANSFER = "transfer "


class Settings(msgspec.Struct, frozen=True):
    """How an extraction works.

    Attributes:
        count: Invocations of an operator that are tried on a partner; 0 for the numbers above.
        timeout: Seconds that one call may take; None for the driver's own limit.
    """

    count: int = 0
    timeout: float | None = None


def installed(library: str) -> bool:
    """Return whether a library is there to be called; say on stderr that it is passed over where it is not."""
    try:
        suites.version_of(library)
    except NotInstalled as error:
        print(f"{library} is passed over: {error.what}", file=sys.stderr)
        return False
    return True


class Relations:
    """The relations among the operators of a library; see opera.sources.Extraction.

    Candidates are tried first. What holds is known when all were, and then partners exchange invocations.

    Args:
        workspace: Open for writing; it holds instances of the library from another source.
        library: `torch` or `keras`.
        settings: How.
        candidates: Operator → candidates, in place of opera's own; `named` says whose they are.
    """

    things = "operators"

    def __init__(
        self, workspace: Workspace, library: str, settings: Settings,
        candidates: Mapping[str, Sequence[str]] | None = None, named: str = "",
    ) -> None:  # fmt: skip
        self.workspace, self.library, self.settings, self.candidates = workspace, library, settings, candidates
        version = suites.version_of(library)
        self.key = relations.key(library, version, named)
        self.about = {"target": library, "name": SOURCE, "version": version, "installed": version, "equipped": ""}
        self.tried = 0
        self.crashes: list[Crash] = []
        self.differing: list[str] = []

    def names(self) -> Collection[str]:
        return [VERIFY + operator for operator in self.held if self._partners(operator) != []]

    def units(self) -> Iterator[Unit | None]:
        """Yield the trials of every operator that has invocations of its own, then what verified partners exchange."""
        for name in self.names():
            operator = name.removeprefix(VERIFY)
            yield units.unit(SOURCE, name, self.library, partial(self._trials, operator))
        yield None
        by_target: dict[str, list[Relation]] = defaultdict(list)
        for relation in self.found:
            by_target[relation.pair.target].append(relation)
        for target, held in sorted(by_target.items()):
            yield units.unit(SOURCE, TRANSFER + target, self.library, partial(self._exchange, held))

    def _partners(self, operator: str) -> list[str] | None:
        return None if self.candidates is None else list(self.candidates.get(operator, ()))

    def _trials(self, operator: str) -> Plan:
        documents = self._documents(operator, self.settings.count or VERIFIED)
        return Plan(self.library, operator, documents, partners=self._partners(operator), seconds=self.settings.timeout)

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

    def insert(self, workspace: Workspace, records: Iterable[Captured]) -> int:
        with workspace.transaction():
            return insert(workspace, records)

    def told(self, unit: Unit, report: UnitReport) -> Unit | Finished:
        ended = units.after(unit, report)
        if isinstance(ended, Unit):
            return ended
        outcomes = files.outcomes(report.plan)
        self._count(outcomes)
        self.crashes += ended.crashes
        tried = [x for x in outcomes if x.tried]
        if ended.plan.operator:  # it verifies; else pairs were verified before
            candidates = [(x.pair.source, x.pair.target, x) for x in tried]
            return Finished(report=report, crashes=ended.crashes, candidates=candidates)
        return Finished(report=report, crashes=ended.crashes, document={"outcomes": tried})

    def _count(self, outcomes: Iterable[Tried]) -> None:
        for outcome in outcomes:
            self.tried += outcome.tried
            if outcome.pair.relation == VALUE and outcome.differed:
                ids = ", ".join(outcome.examples["differed"][:3])
                self.differing.append(f"{outcome.pair.source} and {outcome.pair.target}: {outcome.differed} ({ids})")

    def progress(self, totals: Totals) -> str:
        return f"{totals.units} operators, {self.tried} invocations tried, {totals.captured} captured"

    def tell(self, totals: Totals) -> bool:
        kinds = Counter(relations.pairs(self.found).values())
        print(
            f"{self.library}: {kinds[VALUE] + kinds[STATUS]} verified pairs of operators: {kinds[VALUE]} of equal values,"
            f" {kinds[STATUS]} of equal status; {self.tried} invocations tried,"
            f" {totals.captured} captured: {totals.new} new instances, {totals.seconds:.0f} s"
        )
        telling.show_list("pairs of equal values differ on further invocations", self.differing)
        telling.show_list("calls hung or killed the library's process", list(map(units.told, self.crashes)))
        return bool(self.tried)
