"""Bugs that another one hides: what a member still fails of once what decides of its finding is taken away from it, and how
else a reduced program fails by another route into its frontend, which its member may not have come to, or given numbers where
it has none; what is computed wrongly, without a word, beside what crashes or is refused; and what fails alike of other dtypes,
of which another part of the compiler is wrong.

That program becomes a test of its own, with the verdicts of all frontends that were asked about the member, so that it is
a finding like any other: of its own signature, or a member of one that is known. It is no part of the corpus.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

import msgspec

from opera import compilers
from opera.errors import OperaError
from opera.oracle import location, manner
from opera.oracle.signature import EXCUSED, Signature
from opera.programs import values
from opera.programs.program import Program, parse_captured
from opera.programs.verdicts import FAILURES, INCONSISTENT, PASS, REFUSED, Outcome
from opera.run import plan
from opera.run.probe import Probe, Question
from opera.store import examined, tests
from opera.store import verdicts as stored
from opera.store.rows import Test, Verdict
from opera.store.workspace import Workspace
from opera.triage import failure
from opera.triage.conditions import deciding, peculiar, removable, telling
from opera.triage.distinct import belonging, causes
from opera.triage.distinct.belonging import wanted
from opera.triage.reducer import witness
from opera.triage.reducer.asking import Asker, Budget
from opera.triage.reducer.reduce import about
from opera.triage.reduction import Reduction
from opera.triage.sentence import EMPTY
from opera.triage.shrink.minimise import Spent
from opera.triage.shrink.smaller import Defaults

KEY = ("frontend", "variant", "environment")
"""What tells the verdicts of a test apart."""


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


def by_other_routes(workspace: Workspace, probe: Probe, of: Reduction, seconds: float) -> Iterator[Verdict]:
    """Yield what a reduced program fails of by other routes into its frontend and that nobody knows of: tests of their own.

    Where it has but one element, or they are all alike, programs of several are asked about as well, by these routes and by
    other compilers that take it: it hides what they get wrong. Of wrong outputs it is asked of compilers that passed its
    member: its numbers may be louder.

    Args:
        seconds: What each may take.
    """
    verdicts = [x for x in stored.of_test(workspace, of.test) if all(getattr(x, y) == getattr(of, y) for y in KEY)]
    program, several = of.program().program, list[Program]()
    with suppress(OperaError):
        several = telling.beside(probe, program) if verdicts else []
        several = several[:1] if "drawn" in of.outcome.details else several  # that is run many times
    known = [x for _, x in causes.reduced(workspace)] if verdicts else []
    of_member = stored.of_test(workspace, of.test) if of.outcome.verdict == INCONSISTENT else []
    passed = {(x.frontend, x.variant) for x in of_member if x.outcome.verdict == PASS and x.frontend != of.frontend}
    for question in _elsewhere(workspace, of, verdicts, others=bool(several or passed)):
        there = {x: getattr(question, x) for x in KEY}
        at = msgspec.structs.replace(of, **there)
        ask = about(probe, at, Budget(seconds))
        ask.question = msgspec.structs.replace(ask.question, screened=True)
        ask.beside = witness.beside(workspace, verdicts[0])
        own = of.frontend == at.frontend
        with suppress(Spent, OperaError):
            [shown] = [Outcome(PASS)] if own else ask.look([program])
            at_last = shown.verdict == INCONSISTENT and (question.frontend, question.variant) in passed
            wrong = at_last and ask.agreed(program)
            if not wrong and shown.verdict != PASS:
                continue  # what it fails of is told of the member, or nobody
            for tried in [program] if wrong else (*([program] if own else []), *several):
                if otherwise(ask, at, [of, *known], tried):
                    signature = Signature.of(at.frontend, tried.operator, ask.look([tried])[0])
                    if not own and signature.id in stored.signatures(workspace):
                        break  # it is found there already, and is reduced with that finding
                    how = "reduced" if tried is program else "reduced, with several elements"
                    by = f", as {at.variant}" if own else ""
                    found = store(workspace, ask, msgspec.structs.replace(verdicts[0], **there), tried, how + by)
                    if found is not None:
                        yield found
                        break


def _elsewhere(workspace: Workspace, of: Reduction, verdicts: Sequence[Verdict], *, others: bool) -> Iterator[Question]:
    """Yield a question for each other route into the frontend, and into those of other compilers."""
    compiler, _, library = of.frontend.rpartition("-")
    for x in compilers.frontend(compiler, library).VARIANTS if verdicts else ():
        if x.after != "rejected" and x.name != of.variant:
            yield Question(frontend=of.frontend, variant=x.name, environment=of.environment)
    if others and verdicts:
        yield from witness.beside(workspace, verdicts[0])


def by_its_answer(workspace: Workspace, probe: Probe, of: Reduction, seconds: float) -> Iterator[Verdict]:
    """Yield what a program that computes nothing fails of if it is given what is expected of nothing: a test of its own.

    The maximum of nothing is minus infinity, and so is that of minus infinity, which a compiler may not know either.

    Args:
        seconds: What it may take.
    """
    wanted = {x.partition(">")[0] for x in manner.special(of.outcome.details.get("manner") or {})}
    verdicts = [x for x in stored.of_test(workspace, of.test) if all(getattr(x, y) == getattr(of, y) for y in KEY)]
    for says in sorted(wanted & {"-inf", "inf", "nan"}) if EMPTY in of.besides and verdicts else ():
        program = peculiar.filled(of.program().program, float(says))
        ask = about(probe, of, Budget(seconds))
        ask.beside = witness.beside(workspace, verdicts[0])
        with suppress(Spent, OperaError):
            if program is not None and ask.look([program])[0].verdict in FAILURES and ask.agreed(program):
                found = store(workspace, ask, verdicts[0], program, f"of {says} in place of nothing")
                yield from [found] if found is not None else []


def beside_it(workspace: Workspace, probe: Probe, of: Reduction, seconds: float) -> Iterator[Verdict]:
    """Yield what programs that were asked about compute wrongly, where the reduced one crashes or is refused, and that nobody
    knows of: tests of their own, one of each symptom.

    The screens explain none of it, another implementation gives what is expected, and it has not what decides of reductions
    that are as wrong. Nor is a parameter infinite or NaN that is finite in the reduced one:
    a search set it so, and nobody else.

    Args:
        seconds: What all may take.
    """
    verdicts = [x for x in stored.of_test(workspace, of.test) if all(getattr(x, y) == getattr(of, y) for y in KEY)]
    if not of.silent or not verdicts:
        return
    ask, told = about(probe, of, Budget(seconds)), set[str]()
    ask.question = msgspec.structs.replace(ask.question, screened=True)
    ask.beside = witness.beside(workspace, verdicts[0])
    known = [x for _, x in causes.reduced(workspace)]
    with suppress(Spent, OperaError):
        for program in (parse_captured(x).program for x in of.silent):
            if unbounded(program) - unbounded(of.program().program):
                continue
            [shown] = ask.look([program])
            if shown.verdict == INCONSISTENT and shown.symptom not in told and ask.agreed(program):
                ask.target = shown
                if not _lacking(workspace, ask, list(_alike(ask, of, known, program)), program):
                    continue
                if (found := store(workspace, ask, verdicts[0], program, "varied")) is not None:
                    told.add(shown.symptom)
                    yield found


def of_other_dtypes(workspace: Workspace, probe: Probe, of: Reduction, seconds: float) -> Iterator[Verdict]:
    """Yield what programs fail of that have other dtypes, and are wrong in another part of the compiler: a test of its own.

    Args:
        seconds: What it may take.
    """
    verdicts = [x for x in stored.of_test(workspace, of.test) if all(getattr(x, y) == getattr(of, y) for y in KEY)]
    if not of.apart or not verdicts:
        return
    ask = about(probe, of, Budget(seconds))
    ask.beside = witness.beside(workspace, verdicts[0])
    with suppress(Spent, OperaError):
        for program in (parse_captured(x).program for x in of.apart):
            if ask.label([program]) == [True] and ask.agreed(program):
                found = store(workspace, ask, verdicts[0], program, "of other dtypes")
                if found is not None:
                    yield found
                    return


def unbounded(program: Program) -> set[str]:
    """Return the parameters that are infinite or NaN."""
    params = (x for call in program.instances() for x in call.params.items())
    return {name for name, value in params if isinstance(value, float) and not math.isfinite(value)}


def _lacking(workspace: Workspace, ask: Asker, alike: Sequence[Reduction], program: Program) -> bool:
    """Whether a program that is wrong in itself has not the cause of reductions that are alike, and is of no finding that has
    none. Raises Spent.
    """
    signature = Signature.of(ask.question.frontend, program.operator, ask.outcomes[program.id]).id
    if not alike:
        return signature not in stored.signatures(workspace)
    known = ask.probe.known(program.library, program).defaults
    defaults = {name: {key: values.decode(x) for key, x in of.items()} for name, of in known.items()}
    own = ask.outcomes[program.id]
    return all(belonging.answer(ask, program, defaults, x, own) in belonging.APART for x in alike)


def otherwise(ask: Asker, of: Reduction, known: Iterable[Reduction], program: Program) -> bool:
    """Whether a program fails where it is asked, and as no known reduction of that frontend that calls the same, or stops at
    the same place. Raises Spent.

    Args:
        of: What it was made of, where it is asked: `known` holds it as it fails itself.
    """
    [shown] = ask.look([program])
    if shown.verdict not in FAILURES or shown.verdict == REFUSED:
        return False
    return not any(_alike(ask, of, known, program))


def _alike(ask: Asker, of: Reduction, known: Iterable[Reduction], program: Program) -> Iterator[Reduction]:
    """Yield the known reductions of a frontend that fail as a program does, and call the same or stop at the same place."""
    [shown] = ask.look([program])

    def place(x: Outcome) -> str:
        return x.line

    def called(x: Program) -> set[str]:
        return {location.canonical(name) for name in x.operators}

    for x in known:
        here = (x.frontend, x.environment) == (of.frontend, of.environment)
        if here and failure.alike(of.frontend, x.outcome, shown, elsewhere=True):
            same = place(shown) and place(x.outcome) == place(shown)
            if same or called(x.program().program) == called(program):
                yield x


def store(
    workspace: Workspace, ask: Asker, verdict: Verdict, program: Program, how: str, *, excused: bool = False
) -> Verdict | None:
    """Store a program that was made of a member, if it fails in a fresh process, as a test; return what it shows.

    What is stored of it is returned as it is. Of a compiler that the workspace has not run, which was asked as a witness alone,
    nothing is stored: nobody would know its environment.

    Args:
        how: What was done to the member: "without alpha".
        excused: Whether a screen excuses the member, so that what fails is a finding apart from others of its operator.
    """
    if verdict.environment not in workspace.environments():
        return None
    exporter = plan.exporter_id(program.library)
    test = plan.test_id(program.id, exporter)
    for known in stored.of_test(workspace, test):
        if all(getattr(known, x) == getattr(verdict, x) for x in KEY):
            return known if known.finding else None
    question = msgspec.structs.replace(
        ask.question, program=ask.captured(program), fresh=True, unpatched=True, limits=None, screened=True,
        keep=workspace.tests_folder,
    )  # fmt: skip
    outcome = ask.probe(question)
    if outcome.verdict not in FAILURES:
        return None
    if excused:
        outcome = msgspec.structs.replace(outcome, details={**outcome.details, EXCUSED: how})
    signature = Signature.of(verdict.frontend, program.operator, outcome)
    found = Verdict(
        test, verdict.frontend, verdict.variant, verdict.environment, outcome, signature.id, "confirmed", verdict.rules
    )
    beside = [x for x in ask.beside if x.environment in workspace.environments()]
    others = [x for question in beside if (x := _beside(ask, question, program, test)) is not None]
    origin = tests.origin(workspace, verdict.test)
    told = f"{(origin and origin.test) or verdict.test} {how}"
    if not workspace.provenances(program.id):  # one of the corpus is its own, which was not run yet
        examined.save_made(
            workspace, examined.Examined(verdict.finding, verdict.environment, test, told.encode()), program
        )
    workspace.save_tests(exporter, [Test(test, program.id, "valid")])
    workspace.save_verdicts(0, [found, *others], {signature.id: msgspec.json.encode(signature)})
    return found


def lacking(of: Reduction) -> str:
    """Return what `left` does to a member, in words."""
    return f"without {' and '.join(map(removable.key, wanted(of)))}"


def _beside(ask: Asker, question: Question, program: Program, test: str) -> Verdict | None:
    """Return that another frontend passes a test, None where it does not."""
    outcome = ask.probe(msgspec.structs.replace(question, program=ask.captured(program)))
    passes = outcome.verdict == PASS
    return Verdict(test, question.frontend, question.variant, question.environment, outcome) if passes else None
