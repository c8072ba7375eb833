"""Confirming failures: in a fresh process, unpatched where opera patches the exporter, and after their predecessors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import msgspec

from opera.pool.pool import SENT, Pool
from opera.pool.workers import Result
from opera.programs.verdicts import (
    ABORT,
    AGAIN,
    DEATHS,
    ERROR,
    FAILURES,
    FLAKY,
    OUT_OF_MEMORY,
    TIMEOUT,
    Limits,
    Outcome,
)
from opera.run.aftermath import SECONDS, Aftermath, Origin, Suspicion
from opera.run.groups import unpatched
from opera.run.ledger import Ledger, detailed, tagged, verdict_of
from opera.run.outcomes import outcome_of, reached
from opera.run.plan import InstalledFrontend, Item
from opera.run.prepare import Preparation
from opera.store.workspace import COUNTED, Verdict, Workspace

MEMBERS = 3
"""So many members of each finding are confirmed; later ones are stored as unconfirmed."""
PATCHED = "fails only with the patches that opera makes to the exporter for speed (OPERA_UNPATCHED=1 leaves them out)"
MORE_TIME, MORE_MEMORY = 3, 2
"""How many times both a confirmation has of what ran out of one of them."""


class Members:
    """Decides which failing verdicts are confirmed: every death, and the first members of each finding."""

    def __init__(self, workspace: Workspace) -> None:
        rows = workspace.query(
            f"SELECT finding, environment, COUNT(*) FROM verdicts WHERE {COUNTED} GROUP BY finding, environment"
        )
        self._members = Counter({(row[0], row[1]): row[2] for row in rows})

    def wanted(self, verdict: Verdict) -> str:
        """Return `pending` where the failing verdict is to be confirmed, else `unconfirmed`; counts it as a member."""
        key = (verdict.finding, verdict.environment)
        self._members[key] += 1
        return "pending" if verdict.outcome.verdict in DEATHS or self._members[key] <= MEMBERS else "unconfirmed"


class Confirming:
    """Confirms failing verdicts of a run, and stores what becomes of them."""

    def __init__(self, pool: Pool, ledger: Ledger, prepare: Preparation, aftermath: Aftermath, limits: Limits) -> None:
        self.pool, self.ledger, self.prepare, self.aftermath, self.limits = pool, ledger, prepare, aftermath, limits
        self.handlers: dict[str, Callable[..., None]] = {
            "confirm": self._confirmed,
            "patched": self._confirmed_patched,
            "replay": self._replayed,
        }

    def submit(self, item: Item, verdict: Verdict, origin: Origin, *, patched: bool = False) -> None:
        """Run a failing test again in a fresh process; an exporter first as its users have it, without opera's patches."""
        target = item.frontend
        first = self._is_patched(target) and not patched
        short = verdict.outcome.verdict in (TIMEOUT, OUT_OF_MEMORY)
        self.pool.submit(
            unpatched(target.name) if first else target.name,
            self.prepare.job(target, target.variants[target.place(verdict.variant)], item.test),
            seconds=self.limits.seconds * (MORE_TIME if short else 1),
            memory=self.limits.memory * (MORE_MEMORY if short else 1),
            fresh=True,
            tag=("patched" if patched else "confirm", item, verdict, origin),
        )

    def _is_patched(self, target: InstalledFrontend) -> bool:
        return unpatched(target.name) in self.pool.groups

    def _confirmed(self, result: Result, item: Item, verdict: Verdict, origin: Origin) -> None:
        outcome = self._seen(result, item)
        if outcome is None:
            return
        again = self._again(item, verdict, outcome)
        if again is not None:
            self.ledger.store(again)
        elif self._is_patched(item.frontend):
            self.submit(item, verdict, origin, patched=True)
        else:
            self._not_again(item, verdict, origin, outcome)

    def _confirmed_patched(self, result: Result, item: Item, verdict: Verdict, origin: Origin) -> None:
        """Tell a failure that opera's patches make from one that needs predecessors."""
        outcome = self._seen(result, item)
        if outcome is None:
            return
        if self._again(item, verdict, outcome) is None:
            self._not_again(item, verdict, origin, outcome)
        else:
            message = f"{PATCHED}: {verdict.outcome.message}"
            told = msgspec.structs.replace(verdict.outcome, verdict=ERROR, message=message)
            self.ledger.store(msgspec.structs.replace(verdict, outcome=told, finding="", confirmation=""))

    def _not_again(self, item: Item, verdict: Verdict, origin: Origin, alone: Outcome) -> None:
        """Go on with a failure that a fresh process did not show: after its predecessors, it may come back."""
        if not origin.predecessors:
            self._flaky(item, verdict, alone)
            return
        names = (*origin.predecessors, f"{verdict.test}/{verdict.variant}")
        self.pool.submit(
            item.frontend.name,
            [self.prepare.named_job(item.frontend, name) for name in names],
            seconds=self.limits.seconds * SECONDS,
            memory=self.limits.memory,
            fresh=True,
            call="opera.run.worker:replay",
            tag=("replay", item, verdict, origin, alone),
        )

    def _replayed(self, result: Result, item: Item, verdict: Verdict, origin: Origin, alone: Outcome) -> None:
        outcome = self._seen(result, item)
        if outcome is None:
            return
        there = reached(result, f"{verdict.test}/{verdict.variant}")
        again = self._again(item, verdict, outcome) if there else None
        if again is None:
            self._flaky(item, verdict, alone)
            return
        told = detailed(tagged(again.outcome, "state-dependent"), predecessors=list(origin.predecessors))
        again = msgspec.structs.replace(again, outcome=told)
        self.ledger.store(again)
        self.aftermath.suspect(Suspicion(item.frontend, again, origin))

    def _seen(self, result: Result, item: Item) -> Outcome | None:
        """Return what a fresh process showed; None where it had no time: the verdict stays pending, for the next run."""
        self.ledger.accounts.confirmed(item.frontend.name, result.seconds)
        outcome = outcome_of(result)
        return None if AGAIN in outcome.details else outcome

    def _again(self, item: Item, verdict: Verdict, outcome: Outcome) -> Verdict | None:
        """Return the verdict confirmed, or None where the test does not fail this time.

        Where it fails in another way, what the fresh process showed counts: it had no predecessors to be confused by.
        """
        if outcome.verdict not in FAILURES:
            return None
        if outcome.verdict in DEATHS and not outcome.conversion_function:
            outcome = msgspec.structs.replace(outcome, conversion_function=verdict.outcome.conversion_function)
        new = verdict_of(item.frontend, item.test, item.operator, verdict.variant, outcome)
        if new.finding == verdict.finding:
            return msgspec.structs.replace(verdict, confirmation="confirmed")
        kept = {key: value for key, value in verdict.outcome.details.items() if key in ("screen", "tags")}
        return msgspec.structs.replace(new, outcome=detailed(new.outcome, **kept), confirmation="confirmed")

    def _flaky(self, item: Item, verdict: Verdict, alone: Outcome) -> None:
        """Store what does not fail again as flaky; but a death by a signal that somebody sent says nothing of the test."""
        seen = verdict.outcome
        if seen.verdict == ABORT and seen.symptom in SENT:
            self.ledger.store(verdict_of(item.frontend, item.test, item.operator, verdict.variant, alone))
            return
        told = detailed(msgspec.structs.replace(seen, verdict=FLAKY), was=seen.verdict, finding=verdict.finding)
        self.ledger.store(msgspec.structs.replace(verdict, outcome=told, finding="", confirmation=""))
