"""The smallest program that fails as a member of a finding does, asked of the probe."""

from __future__ import annotations

import math
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from opera import libraries
from opera.libraries import Versioned
from opera.oracle.comparison import conceals
from opera.oracle.signature import DTYPE, Signature
from opera.pool import clock
from opera.programs import migrated, values
from opera.programs.program import Captured, Instance, Program, Provenance, parse
from opera.programs.values import Value
from opera.programs.verdicts import (
    CRASH,
    DEATHS,
    ERROR,
    INCONSISTENT,
    INVALID,
    NEWER,
    OUT_OF_MEMORY,
    PASS,
    REFUSED,
    Limits,
    Outcome,
)
from opera.run import plan
from opera.run.probe import Probe, Question
from opera.store import verdicts as stored_verdicts
from opera.store.rows import Verdict
from opera.store.workspace import Workspace
from opera.triage import choice, deciding, smaller
from opera.triage.alike import same_answer
from opera.triage.minimise import Spent, minimise
from opera.triage.reduction import Reduction

SECONDS = 60.0
"""What a finding may take, unless more or less is asked for."""
SEARCH = 0.75
"""Share of that for the search; the rest is for asking what decides, whatever the search left."""
WALL = 4.0
"""So many times as long as it may work a search may take on a busy machine, by the clock on the wall."""
PATIENCE = 10.0
"""Seconds that a candidate may take: one that is much slower than a member is no smaller."""
TRIED = 3
"""Members that are looked at, the smallest first, until one fails by the library's own reference."""
AT_A_TIME = 8
"""Programs that are asked about at a time, where an answer is quick."""
QUICK = 0.5
"""Seconds of a quick answer."""
BACK = 6
"""Programs of the search that are confirmed, the smallest first, until one fails in a fresh process."""
GROSS = 0.01
"""A deviation that is relatively larger than this may not be reduced to a smaller one: that could be rounding."""
AGREEING = "agreeing"
"""Detail of an outcome: the independent implementations that confirm what is expected (opera.oracle.screens)."""
WITNESS = 0.05
"""Seconds that a frontend may take for a test, to be asked about every smaller program, too."""
LARGEST = (448.0, 57344.0, 65504.0, 2.0**128 * (1 - 2.0**-8), 2.0**128 * (1 - 2.0**-24), sys.float_info.max)
"""The largest finite numbers of dtypes, which stand for an infinity where one is replaced."""
ALIKE = 0.6
"""Share of the words of two messages that must be in both."""


class NotReduced(Exception):
    """Nothing smaller is known of a finding; the text says why."""


class Budget:
    """What a search may work: processor seconds of this process and its workers. What a busy machine takes does not count."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.begun = seconds, time.monotonic()
        self._used, self._seen = 0.0, clock.tree(os.getpid())[0]

    def spent(self) -> bool:
        """Whether it is used up."""
        now = clock.tree(os.getpid())[0]
        self._used, self._seen = (
            self._used + max(0.0, now - self._seen),
            now,
        )  # a worker that ended takes its seconds along
        return self._used > self.seconds or time.monotonic() - self.begun > WALL * self.seconds


class _Asker:
    """Asks the probe which programs fail as a target does, each once, as long as there is a budget.

    Attributes:
        witness: Asks another frontend, that passes what the search began with; None where none is quick. What it does not pass
            may be no program at all, for a library does not check all that its specification says.
        budget: What asking may take.
        asked: Programs that were asked about.
        outcomes: Id of a program → what it showed.
    """

    def __init__(self, probe: Probe, question: Question, witness: Question | None = None) -> None:
        self.probe, self.question, self.witness = probe, question, witness
        self.budget: Budget | None = None
        self.batch, self.asked = AT_A_TIME, 0
        self.target: Outcome | None = None
        self.outcomes: dict[str, Outcome] = {}
        self._witnessed: dict[str, Outcome] = {}

    def __call__(self, programs: Sequence[Program]) -> list[bool]:
        target = self.target
        if target is None:
            raise ValueError("nobody said what is to be found")
        found = self.look(programs)
        return self.passed(programs, [self.fails(outcome) for outcome in found])

    def fails(self, outcome: Outcome, *, elsewhere: bool = False) -> bool:
        """Whether an outcome is the target's failure. Whoever confirms what is expected of the target must do so here, too."""
        target = self.target
        if target is None or (target.details.get(AGREEING) and not outcome.details.get(AGREEING)):
            return False
        return alike(self.question.frontend, target, outcome, elsewhere=elsewhere)

    def passed(self, programs: Sequence[Program], failed: Sequence[bool]) -> list[bool]:
        """Return which of the programs that failed the witness passes."""
        if self.witness is None:
            return list(failed)
        wanted = [program for program, fails in zip(programs, failed, strict=True) if fails]
        self._ask(wanted, self.witness, self._witnessed)
        return [
            fails and self._witnessed[program.id].verdict == PASS
            for program, fails in zip(programs, failed, strict=True)
        ]

    def vanished(self, program: Program) -> bool:
        """Whether the failure is gone from a program that was asked about, and its library accepts it."""
        outcome = self.outcomes.get(program.id)
        gone = outcome is not None and outcome.verdict not in (INVALID, ERROR)
        return gone and self([program]) == [False]

    def look(self, programs: Sequence[Program]) -> list[Outcome]:
        """Return what programs show. Raises Spent where there is no time left to ask."""
        begun = time.monotonic()
        new = self._ask(programs, self.question, self.outcomes)
        if new:
            self.asked += new
            quick = (time.monotonic() - begun) / new < QUICK
            self.batch = AT_A_TIME if quick else 2
        return [self.outcomes[x.id] for x in programs]

    def _ask(self, programs: Sequence[Program], question: Question, known: dict[str, Outcome]) -> int:
        """Ask about the programs that nothing is known of; return how many they are."""
        left = {x.id: x for x in programs if x.id not in known}
        if left and self.budget is not None and self.budget.spent():
            raise Spent
        known.update(dict.fromkeys(left, Outcome(ERROR, "", "opera", "nobody answered")))
        for name, program in left.items():
            self.probe.submit(msgspec.structs.replace(question, program=_captured(program)), tag=name)
        for answer in self.probe.answers():
            known[answer.tag] = answer.outcome
        return len(left)


def _captured(program: Program) -> Captured:
    """Return a program without an expectation: its reference is computed anew."""
    return Captured(program, Provenance("opera", "reduction", ""))


# ---------------------------------------------------------------------- the same failure


def alike(frontend: str, one: Outcome, other: Outcome, *, elsewhere: bool = False) -> bool:
    """Whether two outcomes are one failure: of one signature, and what a signature leaves out of a message is alike as well.

    `elsewhere`: another call of the program may be the one that fails.
    """
    if (one.verdict, one.stage, one.symptom) != (other.verdict, other.stage, other.symptom):
        return False
    if one.verdict in DEATHS:
        return True
    if not elsewhere and Signature.of(frontend, "", one) != Signature.of(frontend, "", other):
        return False
    if one.verdict in (CRASH, REFUSED):
        words, others = _words(one.message), _words(other.message)
        return len(words & others) >= ALIKE * len(words | others)
    if one.details.get("drawn") != other.details.get("drawn"):
        return False
    if "drawn" in one.details:  # how far what was drawn is off tells nothing
        return True
    if not elsewhere and (conceals(one.details, other.details) or _kinds(one) != _kinds(other)):
        return False
    return one.symptom != "value" or _severity(other) >= min(_severity(one), GROSS)


def _words(message: str) -> set[str]:
    """Return the words of a message, dtypes and numbers left out."""
    return set(re.findall(r"[A-Za-z_]{3,}", re.sub(rf"\b(?:{DTYPE})\b", " ", message)))


def _kinds(outcome: Outcome) -> tuple[str, str]:
    """Return what kind of number was expected, and what kind was returned; that of a finite one for what is no number.

    The largest finite number for an infinity is another mistake than a small one for it.
    """
    expected, actual = (_kind(outcome.details.get(name)) for name in ("expected", "actual"))
    return expected, actual


def _kind(value: object) -> str:
    try:
        number = float(value) if isinstance(value, int | float | str) else 0.0
    except ValueError:  # a shape, or a text
        return "finite"
    if not math.isfinite(number):
        return str(number)
    return "largest" if any(abs(abs(number) - x) <= 1e-6 * x for x in LARGEST) else "finite"


def _severity(outcome: Outcome) -> float:
    """Return how far values are off: relatively, or absolutely where the expected ones are nothing."""
    numbers = [outcome.details.get(name) for name in ("max_rel", "max_abs")]
    return max((float(x) for x in numbers if isinstance(x, int | float)), default=1.0)


# ---------------------------------------------------------------------- one finding


def reduce(workspace: Workspace, probe: Probe, verdicts: list[Verdict], seconds: float = SECONDS) -> Reduction:
    """Return the smallest program found that fails as one of these verdicts, its test stored. Raises NotReduced."""
    begun = time.monotonic()
    why = "its members fail only after other tests, or were deleted"
    for verdict in choice.candidates(workspace, verdicts)[:TRIED]:
        try:
            return _reduced(workspace, probe, verdict, begun, seconds)
        except NotReduced as error:
            why = str(error)
        except Spent:
            raise NotReduced("the time was over before anything was known") from None
    raise NotReduced(why)


def _reduced(workspace: Workspace, probe: Probe, verdict: Verdict, begun: float, seconds: float) -> Reduction:
    ask, program = asker(workspace, probe, verdict)
    ask.budget = Budget(SEARCH * seconds)  # a compiler that must be started first takes nobody's time
    kept, finished = [program], True
    defaults: dict[str, Mapping[str, Value]] = {}
    try:
        innermost(ask, kept, defaults)
        minimise(kept[-1], defaults, ask, kept.append)
        kept += _revealing(ask, kept[-1])
        kept += _oldest(ask, kept[-1])
    except Spent:
        finished = False
    found, outcome = _confirmed(workspace, ask, kept)
    ask.budget = Budget((1.0 - SEARCH) * seconds)
    decided = deciding.decided(ask, found, defaults)
    return Reduction(
        verdict.finding, verdict.environment, verdict.frontend, verdict.variant, verdict.test, _captured(found).form(), outcome,
        stored=plan.test_id(found.id, plan.exporter_id(found.library)),
        deciding=decided.parameters,
        besides=decided.besides,
        elements=smaller.elements(found),
        nondefault=len(smaller.nondefault(found, defaults)),
        asked=ask.asked,
        seconds=round(time.monotonic() - begun, 2),
        finished=finished,
    )  # fmt: skip


def asker(workspace: Workspace, probe: Probe, verdict: Verdict) -> tuple[_Asker, Program]:
    """Return who asks about a member, what it shows now as the target, and its program.

    Raises NotReduced where it fails no more by the library's own reference.
    """
    manifest = migrated.read_manifest(migrated.folder(workspace.tests_folder, verdict.test))
    program = workspace.instance(manifest.instance)
    question = Question(
        frontend=verdict.frontend, variant=verdict.variant, environment=verdict.environment,
        limits=_patient(probe.limits, verdict.outcome), screened=verdict.outcome.verdict == INCONSISTENT,
    )  # fmt: skip
    ask = _Asker(probe, question, _witness(workspace, verdict))
    [first] = ask.look([program])
    if not alike(verdict.frontend, verdict.outcome, first, elsewhere=not first.conversion_function):
        raise NotReduced(f"by the library's own reference it is now {_brief(first)}")
    ask.target = first
    return ask, program


def innermost(ask: _Asker, kept: list[Program], defaults: dict[str, Mapping[str, Value]]) -> None:
    """Append to `kept` the program that its last is made of and that fails so, what that is made of, and so on.

    `defaults` gets those of all operators that are called. Raises Spent.
    """
    known = ask.probe.known(kept[-1].library, kept[-1])
    defaults.update({name: {key: values.decode(x) for key, x in of.items()} for name, of in known.defaults.items()})
    while (piece := _piece(ask, known.pieces)) is not None:
        kept.append(piece)
        ask.target = ask.outcomes[piece.id]
        known = ask.probe.known(piece.library, piece)


def _patient(limits: Limits, outcome: Outcome) -> Limits:
    """Return the limits of a candidate; what takes long, or much, is asked for with those of the run."""
    if outcome.verdict == OUT_OF_MEMORY:
        return limits
    return msgspec.structs.replace(limits, seconds=min(limits.seconds, PATIENCE))


def _piece(ask: _Asker, forms: Iterable[dict[str, Any]]) -> Program | None:
    """Return the first of the programs that one is made of which fails so; which call is wrong is what we want to know."""
    target = ask.target
    pieces = [parse(form) for form in forms]
    while pieces and target is not None:
        batch, pieces = pieces[: ask.batch], pieces[ask.batch :]
        failed = [ask.fails(outcome, elsewhere=True) for outcome in ask.look(batch)]
        for piece, fails in zip(batch, ask.passed(batch, failed), strict=True):
            if fails:
                return piece
    return None


def _witness(workspace: Workspace, verdict: Verdict) -> Question | None:
    """Return the question of the frontend that passes a test in the least time, where that is little."""
    superseded = workspace.superseded()
    passing = [
        (sum(x.outcome.seconds.values()), x.frontend, x)
        for x in stored_verdicts.of_test(workspace, verdict.test)
        if x.outcome.verdict == PASS and x.environment not in superseded and x.frontend != verdict.frontend
    ]
    seconds, _, found = min(passing, key=lambda x: x[:2], default=(WITNESS, "", verdict))
    if seconds >= WITNESS:
        return None
    return Question(frontend=found.frontend, variant=found.variant, environment=found.environment)


def _revealing(ask: _Asker, program: Program) -> list[Program]:
    """Return the program with other values, with which more of its outputs are wrong, or more so; else nothing.

    Equal values hide what is mixed up, and zeros what is never computed.
    """
    made = [x for step in smaller.unlike(program) if (x := smaller.applied(step, program)) is not None and x != program]
    before = ask.outcomes.get(program.id)
    if before is None or before.verdict != INCONSISTENT or not made:
        return []
    found = [x for x, fails in zip(made, ask(made), strict=True) if fails]
    return next(([x] for x in found if conceals(ask.outcomes[x.id].details, before.details)), [])


def _oldest(ask: _Asker, program: Program) -> list[Program]:
    """Return the program in the oldest version of its operators that means the same, if it is older and fails so; else nothing.

    Which that is, the library says of a test that is made of the program (`Manifest.needs`): a version with other rules would
    show another bug, or none.
    """
    versions = program.context.get("opset") if isinstance(program, Instance) else None
    if not isinstance(program, Instance) or not isinstance(versions, dict):
        return []
    with tempfile.TemporaryDirectory() as kept:
        ask.probe(msgspec.structs.replace(ask.question, program=_captured(program), keep=Path(kept)))
        held = migrated.folder(Path(kept), plan.test_id(program.id, plan.exporter_id(program.library)))
        needs = migrated.read_manifest(held).needs if (held / "manifest.json").is_file() else {}
    older = {**versions, **{name: least for name, least in needs.items() if name in versions}}
    made: list[Program] = [msgspec.structs.replace(program, context={**program.context, "opset": older})]
    found = made if older != versions and ask(made) == [True] else []
    return found + _older(ask, *[x for x in (found or [program]) if isinstance(x, Instance)])


def _older(ask: _Asker, program: Instance) -> list[Program]:
    """Return a program of newer operators than the compiler declares to know in the oldest version in which it fails so, too.

    The words of that version may differ: so another implementation must give what is expected of it, and the wrong numbers must
    be the same.
    """
    before, library = ask.outcomes.get(program.id), libraries.get(program.library)
    if before is None or before.verdict != INCONSISTENT or NEWER not in before.details.get("tags", ()):
        return []
    made = cast(Versioned, library).older(program) if hasattr(library, "older") else []
    try:
        failing = ask(made)
    except Spent:  # what was found is no worse for it
        return []
    shown = ((x, ask.outcomes[x.id]) for x, fails in zip(made, failing, strict=True) if fails)
    expected = before.details.get("expected")
    same = [x for x, now in shown if same_answer(before, now) and now.details.get("expected") == expected]
    return [x for x in same if ask.outcomes[x.id].details.get(AGREEING)][-1:]


def _confirmed(workspace: Workspace, ask: _Asker, kept: list[Program]) -> tuple[Program, Outcome]:
    """Return the smallest program that fails so in a fresh process, by the limits of a run. Its test is kept.

    Raises NotReduced where none does.
    """
    seen = ""
    for program in list(reversed(kept))[:BACK]:
        question = msgspec.structs.replace(
            ask.question, program=_captured(program), fresh=True, unpatched=True, limits=None, keep=workspace.tests_folder
        )  # fmt: skip
        outcome = ask.probe(question)
        wanted = ask.outcomes[program.id]
        if alike(ask.question.frontend, wanted, outcome):
            return program, msgspec.structs.replace(outcome, conversion_function=wanted.conversion_function)
        seen = _brief(outcome)
    raise NotReduced(f"in a fresh process it is {seen}")


def _brief(outcome: Outcome) -> str:
    return " ".join(f"{outcome.verdict} {outcome.stage} {outcome.symptom} {outcome.message}".split())[:200]
