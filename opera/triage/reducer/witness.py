"""Who else runs the programs of a search: what nobody takes who took the first may be no program at all.

A library does not check all that its specification says: an evaluator takes an index that is out of range.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import msgspec

from opera.programs.program import Program
from opera.programs.verdicts import AGREES, CRASH, PASS, REFUSED, UNSUPPORTED, Outcome
from opera.run.probe import Question
from opera.store import verdicts as stored_verdicts
from opera.store.rows import Verdict
from opera.store.workspace import Workspace
from opera.triage import others

QUICK = 0.05
"""Seconds that a frontend may take for a test, to be asked about every smaller program, too."""
MOST = 2
"""Of those that take longer so many are asked, the quickest first, about what a search ends with."""

_OF, _SAYS = (
    r"\b(?:shape|dimension|dim|rank|size|length)s?\b",
    r"\b(?:must|expect\w*|should|invalid|mismatch\w*|match|incompatible|actual)\b",
)
UNLAWFUL = re.compile(rf"{_OF}[^\n]*{_SAYS}|{_SAYS}[^\n]*{_OF}|\b(?:invalid|ill-formed) (?:model|input|node)\b", re.I)
"""How an implementation says that a program is none: of a shape that must be another."""


def unlawful(outcome: Outcome) -> bool:
    """Whether who was asked refuses a program for what it is, and not for want of a feature."""
    return outcome.verdict in (CRASH, REFUSED, UNSUPPORTED) and UNLAWFUL.search(outcome.message) is not None


def refuted(outcome: Outcome) -> bool:
    """Whether who was asked refuses a program for what it is, and says so in words of a refusal, or while it is loaded."""
    return unlawful(outcome) and (outcome.verdict != CRASH or outcome.stage == "load")


def taken(outcome: Outcome) -> Outcome:
    """Return what a witness shows: of a random program it passes what it runs and returns as expected the first time."""
    return msgspec.structs.replace(outcome, verdict=PASS) if outcome.details.get(AGREES) else outcome


def beside(workspace: Workspace, verdict: Verdict) -> list[Question]:
    """Return a question for each other frontend that has a verdict on a test; where none has, for those that are here."""
    found = [_question(x) for x in _verdicts(workspace, verdict) if x.frontend != verdict.frontend]
    return found or [x for _, x in others.here(verdict.frontend)]


def passing(workspace: Workspace, verdict: Verdict) -> tuple[Question | None, list[Question]]:
    """Return the question of who passes a test in the least time, where that is little, and of others that pass it.

    The same frontend by another variant counts where no other frontend passes it quickly.
    """
    found = [
        (x.frontend == verdict.frontend, sum(x.outcome.seconds.values()), _question(x))
        for x in _verdicts(workspace, verdict)
        if x.outcome.verdict == PASS and (x.frontend, x.variant) != (verdict.frontend, verdict.variant)
    ]
    found.sort(key=lambda x: (*x[:2], x[2].frontend, x[2].variant))
    quick = next((question for _, seconds, question in found if seconds < QUICK), None)
    return quick, [question for own, _, question in found if not own and question != quick][:MOST]


def routes(workspace: Workspace, verdict: Verdict) -> list[Question]:
    """Return a question for each other variant of the same frontend that passes a test: another way of the model to it."""
    found = [x for x in _verdicts(workspace, verdict) if x.frontend == verdict.frontend]
    return [_question(x) for x in found if x.variant != verdict.variant and x.outcome.verdict == PASS]


def lost(programs: Sequence[Program], passed: Callable[[Program], bool]) -> int:
    """Return how many programs at the end are not passed, by bisection; the first one is known to be."""
    if passed(programs[-1]):
        return 0
    good, bad = 0, len(programs) - 1
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if passed(programs[middle]) else (good, middle)
    return len(programs) - bad


def _verdicts(workspace: Workspace, verdict: Verdict) -> list[Verdict]:
    superseded = workspace.superseded()
    return [x for x in stored_verdicts.of_test(workspace, verdict.test) if x.environment not in superseded]


def _question(x: Verdict) -> Question:
    return Question(frontend=x.frontend, variant=x.variant, environment=x.environment)
