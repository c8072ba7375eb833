"""The verdicts of a run: made of outcomes, gathered, and written every second."""

from __future__ import annotations

import time
from collections import Counter, defaultdict

import msgspec

from opera.oracle.signature import Signature
from opera.pool.workers import Account
from opera.programs.verdicts import FAILURES, Outcome
from opera.run.accounts import Accounts
from opera.run.plan import Frontend
from opera.store import tests
from opera.store.workspace import COMBINED, Verdict, Workspace

SAVE_SECONDS = 1.0
"""Verdicts are written at least this often."""
ADAPTER_FAILED = "adapter-failed"
"""Tag of a finding whose signature lacks what a failing function of the adapter should have said."""


class Ledger:
    """Gathers verdicts.

    Attributes:
        stored: frontend → (test, variant) → (verdict, stage) of all that have a verdict in today's environments.
        worst: (frontend, test) → worst verdict over its variants, of those that this run stored.
        hooks: (frontend, function of the adapter) → how it failed, each time.
    """

    def __init__(self, workspace: Workspace, frontends: list[Frontend], accounts: Accounts, number: int) -> None:
        self.workspace, self.accounts, self.number = workspace, accounts, number
        self.stored = {x.name: workspace.verdict_names(x.name, x.environment) for x in frontends}
        self.worst: dict[tuple[str, str], str] = {}
        self.hooks: dict[tuple[str, str], list[str]] = defaultdict(list)
        self._frontends = {x.name: x for x in frontends}
        self._verdicts: dict[tuple[str, str, str], Verdict] = {}  # to be written
        self._signatures: dict[str, bytes] = {}
        self._known = set(workspace.finding_ids())
        self.started = self._saved = time.monotonic()

    def verdict(self, target: Frontend, test: str, operator: str, variant: str, outcome: Outcome) -> Verdict:
        """Return the verdict of an outcome; where it is a failure, with its finding."""
        failed, details = outcome.verdict in FAILURES, outcome.details
        hooks = outcome.seen.hooks if outcome.seen else {}
        if failed and hooks:
            tags = details.get("tags")
            details = details | {"tags": [*(tags if isinstance(tags, list) else []), ADAPTER_FAILED]}
        return Verdict(
            test=test, frontend=target.name, variant=variant, environment=target.environment,
            verdict=outcome.verdict, stage=outcome.stage, symptom=outcome.symptom, message=outcome.message,
            location=outcome.location, conversion_function=outcome.conversion_function,
            finding=self.finding(target, operator, outcome) if failed else "",
            seconds=outcome.seconds, details=details, rules=str(target.rules), seen=outcome.seen,
        )  # fmt: skip

    def finding(self, target: Frontend, operator: str, outcome: Outcome) -> str:
        """Return the id of the finding that a failing outcome belongs to."""
        found = Signature.of(target.name, operator, outcome)
        self._signatures.setdefault(found.id, msgspec.json.encode(found))
        return found.id

    def operator(self, test: str) -> str:
        """Return the operator of a test."""
        return tests.operator(self.workspace, test)

    def store(self, verdict: Verdict) -> None:
        """Store a verdict, and count it."""
        self.keep(verdict)
        stored = self.stored[verdict.frontend]
        stored[verdict.test, verdict.variant] = (verdict.verdict, verdict.stage)
        variants = self._frontends[verdict.frontend].variants
        found = {stored[verdict.test, x.name][0] for x in variants if (verdict.test, x.name) in stored}
        self.worst[verdict.frontend, verdict.test] = next(name for name in COMBINED if name in found)

    def keep(self, verdict: Verdict) -> None:
        """Store a verdict that is what it was."""
        self._verdicts[verdict.test, verdict.frontend, verdict.variant] = verdict

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


def outcome_again(verdict: Verdict) -> Outcome:
    """Return what a verdict was made of."""
    return Outcome(
        verdict.verdict, verdict.stage, verdict.symptom, verdict.message, verdict.location,
        verdict.conversion_function, verdict.seconds, verdict.details, verdict.seen,
    )  # fmt: skip
