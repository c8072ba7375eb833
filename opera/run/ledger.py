"""The verdicts of a run: made of outcomes, gathered, and written every second."""

from __future__ import annotations

import time
from collections import Counter, defaultdict

import msgspec

from opera.oracle.signature import Signature
from opera.pool.workers import Account
from opera.programs.verdicts import FAILURES, Outcome
from opera.run.accounts import Accounts
from opera.run.plan import InstalledFrontend
from opera.store import tests
from opera.store.rows import Verdict
from opera.store.workspace import COMBINED, Workspace

SAVE_SECONDS = 1.0
"""Verdicts are written at least this often."""
ADAPTER_FAILED = "adapter-failed"
"""Tag of a finding whose signature lacks what a failing function of the adapter should have said."""


def verdict_of(target: InstalledFrontend, test: str, operator: str, variant: str, outcome: Outcome) -> Verdict:
    """Return the verdict of an outcome; where it is a failure, with its finding."""
    if outcome.verdict not in FAILURES:
        return Verdict(test, target.name, variant, target.environment, outcome, rules=str(target.rules))
    if outcome.seen is not None and outcome.seen.hooks:
        outcome = tagged(outcome, ADAPTER_FAILED)
    finding = Signature.of(target.name, operator, outcome).id
    return Verdict(test, target.name, variant, target.environment, outcome, finding, rules=str(target.rules))


def tagged(outcome: Outcome, *tags: str) -> Outcome:
    """Return an outcome with more tags among its details."""
    return detailed(outcome, tags=list(dict.fromkeys([*outcome.details.get("tags", ()), *tags])))


def detailed(outcome: Outcome, **details: object) -> Outcome:
    """Return an outcome with more details."""
    return msgspec.structs.replace(outcome, details=outcome.details | details)


class Ledger:
    """Gathers verdicts.

    Attributes:
        stored: frontend → (test, variant) → (verdict, stage) of all that have a verdict in today's environments.
        worst: (frontend, test) → worst verdict over its variants, of those that this run stored.
        tally: Worst verdict → how many of these.
        hooks: (frontend, function of the adapter) → how it failed, each time.
    """

    def __init__(
        self, workspace: Workspace, frontends: list[InstalledFrontend], accounts: Accounts, number: int
    ) -> None:
        self.workspace, self.accounts, self.number = workspace, accounts, number
        self.stored = {x.name: workspace.verdict_names(x.name, x.environment) for x in frontends}
        self.worst: dict[tuple[str, str], str] = {}
        self.tally: Counter[str] = Counter()
        self.hooks: dict[tuple[str, str], list[str]] = defaultdict(list)
        self._frontends = {x.name: x for x in frontends}
        self._verdicts: dict[tuple[str, str, str], Verdict] = {}  # to be written
        self._signatures: dict[str, bytes] = {}  # of new findings, to be written
        self._signed: set[str] = set()
        self._known = set(workspace.finding_ids())
        self.started = self._saved = time.monotonic()

    def admit(self, target: InstalledFrontend) -> None:
        """Take verdicts of one more frontend."""
        self._frontends[target.name] = target
        self.accounts.frontends.append(target)
        self.stored[target.name] = self.workspace.verdict_names(target.name, target.environment)

    def operator(self, test: str) -> str:
        """Return the operator of a test."""
        return tests.operator(self.workspace, test)

    def store(self, verdict: Verdict) -> None:
        """Store a verdict, and count it."""
        self.keep(verdict)
        stored, outcome = self.stored[verdict.frontend], verdict.outcome
        stored[verdict.test, verdict.variant] = (outcome.verdict, outcome.stage)
        variants = self._frontends[verdict.frontend].variants
        found = {stored[verdict.test, x.name][0] for x in variants if (verdict.test, x.name) in stored}
        key = verdict.frontend, verdict.test
        if key in self.worst:
            self.tally[self.worst[key]] -= 1
        self.worst[key] = next(name for name in COMBINED if name in found)
        self.tally[self.worst[key]] += 1

    def keep(self, verdict: Verdict) -> None:
        """Store a verdict that is what it was."""
        self._verdicts[verdict.test, verdict.frontend, verdict.variant] = verdict
        if verdict.finding and verdict.finding not in self._signed:
            self._signed.add(verdict.finding)
            signature = Signature.of(verdict.frontend, self.operator(verdict.test), verdict.outcome)
            self._signatures[verdict.finding] = msgspec.json.encode(signature)

    def note_hooks(self, frontend: str, outcome: Outcome) -> None:
        """Count functions of the adapter that failed."""
        for function, text in (outcome.seen.hooks if outcome.seen else {}).items():
            self.hooks[frontend, function].append(text)

    def save(self, pool: dict[str, Account], *, force: bool) -> bool:
        """Write what has come together, once a second; return whether it was written."""
        now = time.monotonic()
        if not force and now - self._saved < SAVE_SECONDS:
            return False
        self._saved = now
        if self._verdicts:
            self.workspace.save_verdicts(self.number, self._verdicts.values(), self._signatures)
            self._verdicts, self._signatures = {}, {}
        self._save_run(pool, finished=False)
        return True

    def finish(self, pool: dict[str, Account]) -> list[str]:
        """End the run; return the findings that were not there before."""
        self._save_run(pool, finished=True)
        self.workspace.drop_empty_findings()
        return [name for name in self.workspace.finding_ids() if name not in self._known]

    def _save_run(self, pool: dict[str, Account], *, finished: bool) -> None:
        documents = self.accounts.documents(self.seconds(), pool)
        self.workspace.save_run(self.number, documents, finished=finished)

    def seconds(self) -> float:
        """Return the wall seconds since the run began."""
        return time.monotonic() - self.started

    def counts(self) -> dict[str, dict[str, int]]:
        """Return frontend → verdict → tests."""
        found: dict[str, Counter[str]] = defaultdict(Counter)
        for (frontend, _), verdict in self.worst.items():
            found[frontend][verdict] += 1
        return {name: dict(x) for name, x in found.items()}
