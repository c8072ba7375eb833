"""Confirming failures: in a fresh fork, unpatched where opera patches the exporter, and after what ran before them.

A fork of the preloaded server is as good as a fresh process: its parent never runs a compiler. What is asked is a question of
the probe; what follows from the answers is said by pure functions.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from opera.pool.pool import SENT
from opera.programs.verdicts import (
    ABORT,
    AGAIN,
    DEATHS,
    ERROR,
    FAILURES,
    FLAKY,
    OUT_OF_MEMORY,
    TIMEOUT,
    UNSTABLE,
    Limits,
    Outcome,
)
from opera.run.ledger import detailed, tagged, verdict_of
from opera.run.plan import Item
from opera.run.probe import Question
from opera.run.tasks import Confirm, Replay, Step, Store, Suspect, Suspicion
from opera.store import verdicts
from opera.store.rows import Verdict
from opera.store.workspace import Workspace

MEMBERS = 3
"""So many members of each finding are confirmed; later ones are stored as unconfirmed."""
CONFIRMED = ("confirmed", "pending")
"""What is stored of those that are confirmed, or will be."""
PATCHED = "fails only with the patches that opera makes to the exporter for speed (OPERA_UNPATCHED=1 leaves them out)"
MORE_TIME, MORE_MEMORY = 3, 2
"""How many times both a confirmation has of what ran out of one of them."""


class Members:
    """Decides which failing verdicts are confirmed: every death, and as many members of each finding as make MEMBERS."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace, self._confirmed = workspace, Counter(verdicts.confirmed(workspace))

    def wanted(self, verdict: Verdict) -> str:
        """Return `pending` where a verdict that is to be stored is a failure to be confirmed, `unconfirmed` where it is another
        failure, else nothing. The verdict in whose place it comes is none that counts any more."""
        finding, confirmation = verdicts.standing(self._workspace, verdict)
        if confirmation in CONFIRMED:
            self._confirmed[finding, verdict.environment] -= 1
        if verdict.outcome.verdict not in FAILURES:
            return ""
        key = (verdict.finding, verdict.environment)
        if verdict.outcome.verdict not in DEATHS and self._confirmed[key] >= MEMBERS:
            return "unconfirmed"
        self._confirmed[key] += 1
        return "pending"


def question(task: Confirm | Replay, limits: Limits) -> Question:
    """Return what a fresh fork is asked: an exporter first as its users have it, without opera's patches.

    What varies may well be right the first time: it is computed again there, too, before it counts as passing.
    """
    verdict = task.verdict
    asked = Question(
        frontend=verdict.frontend,
        variant=verdict.variant,
        test=verdict.test,
        environment=verdict.environment,
        fresh=True,
        insist=verdict.outcome.verdict == UNSTABLE,
    )
    if isinstance(task, Replay):
        return msgspec.structs.replace(asked, after=task.origin.predecessors)
    if verdict.outcome.verdict in (TIMEOUT, OUT_OF_MEMORY):
        limits = Limits(limits.seconds * MORE_TIME, limits.memory * MORE_MEMORY)
    return msgspec.structs.replace(asked, unpatched=not task.patched, limits=limits)


def confirmed(task: Confirm, outcome: Outcome, *, has_patches: bool) -> list[Step]:
    """Go on with what a fresh fork showed. Where it had no time, the verdict stays pending, for the next run.

    What fails only with opera's patches is opera's error; what fails with neither may need its predecessors.
    """
    if AGAIN in outcome.details:
        return []
    again = _again(task.item, task.verdict, outcome)
    if again is not None and not task.patched:
        return [Store(again)]
    if again is not None:
        failed = task.verdict.outcome
        told = msgspec.structs.replace(failed, verdict=ERROR, message=f"{PATCHED}: {failed.message}")
        return [Store(msgspec.structs.replace(task.verdict, outcome=told, finding="", confirmation=""))]
    if has_patches and not task.patched:
        return [msgspec.structs.replace(task, patched=True)]
    if task.origin.predecessors:
        return [Replay(task.item, task.verdict, task.origin, outcome)]
    return [Store(_flaky(task.item, task.verdict, outcome))]


def replayed(task: Replay, outcome: Outcome, *, reached: bool) -> list[Step]:
    """Go on with what a test showed after its predecessors; `reached` is false where one of them ended the process."""
    if AGAIN in outcome.details:
        return []
    again = _again(task.item, task.verdict, outcome) if reached else None
    if again is None:
        return [Store(_flaky(task.item, task.verdict, task.alone))]
    told = detailed(tagged(again.outcome, "state-dependent"), predecessors=list(task.origin.predecessors))
    again = msgspec.structs.replace(again, outcome=told)
    return [Store(again), Suspect(Suspicion(task.item.frontend, again, task.origin))]


def _again(item: Item, verdict: Verdict, outcome: Outcome) -> Verdict | None:
    """Return the verdict confirmed, or None where the test does not fail this time.

    Where it fails in another way, what the fresh fork showed counts: it had no predecessors to be confused by.
    """
    if outcome.verdict not in FAILURES:
        return None
    was = verdict.outcome
    if outcome.verdict in DEATHS and not outcome.conversion_function:
        outcome = msgspec.structs.replace(outcome, conversion_function=was.conversion_function)
    new = verdict_of(item.frontend, item.test, item.operator, verdict.variant, outcome)
    if new.finding == verdict.finding:
        return msgspec.structs.replace(verdict, confirmation="confirmed")
    kept = {key: value for key, value in was.details.items() if key in ("screen", "tags")}
    return msgspec.structs.replace(new, outcome=detailed(new.outcome, **kept), confirmation="confirmed")


def _flaky(item: Item, verdict: Verdict, alone: Outcome) -> Verdict:
    """Return what does not fail again as flaky; but a death by a signal that somebody sent says nothing of the test."""
    was = verdict.outcome
    if was.verdict == ABORT and was.symptom in SENT:
        return verdict_of(item.frontend, item.test, item.operator, verdict.variant, alone)
    told = detailed(msgspec.structs.replace(was, verdict=FLAKY), was=was.verdict, finding=verdict.finding)
    return msgspec.structs.replace(verdict, outcome=told, finding="", confirmation="")
