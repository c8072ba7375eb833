"""Bugs that another one hides: what a member still fails of once what decides of its finding is taken away from it.

That program becomes a test of its own, with the verdicts of all frontends that were asked about the member, so that it is
a finding like any other: of its own signature, or a member of one that is known. It is no part of the corpus.
"""

from __future__ import annotations

import msgspec

from opera.oracle.signature import Signature
from opera.programs.program import Program
from opera.programs.verdicts import FAILURES, PASS, REFUSED
from opera.run import plan
from opera.run.probe import Question
from opera.store import examined, tests
from opera.store import verdicts as stored
from opera.store.rows import Test, Verdict
from opera.store.workspace import Workspace
from opera.triage import deciding
from opera.triage.asking import Asker, captured
from opera.triage.belonging import wanted
from opera.triage.reduction import Reduction
from opera.triage.smaller import Defaults


def left(ask: Asker, member: Program, defaults: Defaults, of: Reduction) -> Program | None:
    """Return what a member is without all of what decides of a reduction, where it then fails in another way, and another
    implementation gives what is expected; else None. Raises Spent.
    """
    having = [x for x in wanted(of) if deciding.without(ask, member, x, defaults) is not None]
    shown = deciding.without_all(ask, member, having, defaults) if having else []
    if any(outcome.verdict == PASS for _, outcome in shown):
        return None
    other = (x for x, now in shown if now.verdict in FAILURES and now.verdict != REFUSED and not ask.fails(now))
    return next((x for x in other if ask.agreed(x)), None)


def store(workspace: Workspace, ask: Asker, verdict: Verdict, program: Program, of: Reduction) -> Verdict | None:
    """Store a program that is left of a member, if it fails in a fresh process, as a test; return what it shows.

    What is stored of it is returned as it is.
    """
    exporter = plan.exporter_id(program.library)
    test = plan.test_id(program.id, exporter)
    known = list(stored.of_test(workspace, test))
    if known:
        own = (verdict.frontend, verdict.environment)
        return next((x for x in known if x.finding and (x.frontend, x.environment) == own), None)
    question = msgspec.structs.replace(
        ask.question, program=captured(program), fresh=True, unpatched=True, limits=None, screened=True,
        keep=workspace.tests_folder,
    )  # fmt: skip
    outcome = ask.probe(question)
    if outcome.verdict not in FAILURES:
        return None
    signature = Signature.of(verdict.frontend, program.operator, outcome)
    found = Verdict(
        test, verdict.frontend, verdict.variant, verdict.environment, outcome, signature.id, "confirmed", verdict.rules
    )
    others = [x for question in ask.beside if (x := _beside(ask, question, program, test)) is not None]
    origin = tests.origin(workspace, verdict.test)
    told = f"{(origin and origin.test) or verdict.test} without {' and '.join(map(deciding.key, wanted(of)))}"
    examined.save_made(workspace, examined.Examined(verdict.finding, verdict.environment, test, told.encode()), program)
    workspace.save_tests(exporter, [Test(test, program.id, "valid")])
    workspace.save_verdicts(0, [found, *others], {signature.id: msgspec.json.encode(signature)})
    return found


def _beside(ask: Asker, question: Question, program: Program, test: str) -> Verdict | None:
    """Return that another frontend passes a test, None where it does not."""
    outcome = ask.probe(msgspec.structs.replace(question, program=captured(program)))
    passes = outcome.verdict == PASS
    return Verdict(test, question.frontend, question.variant, question.environment, outcome) if passes else None
