"""The smallest program that fails as a member of a finding does, asked of the probe."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from opera import compilers
from opera.compilers import LOWERED
from opera.compilers.shared.packing import Made
from opera.libraries import bounds
from opera.oracle import manner
from opera.oracle.comparison import conceals
from opera.pool import clock
from opera.programs import migrated, values
from opera.programs.program import Captured, Instance, Program, Provenance, parse
from opera.programs.values import Tensor, Value
from opera.programs.verdicts import (
    ERROR,
    INCONSISTENT,
    OUT_OF_MEMORY,
    PASS,
    Limits,
    Outcome,
    newer,
)
from opera.run import plan
from opera.run.library_side import Known
from opera.run.probe import Probe, Question
from opera.store.rows import Verdict
from opera.store.workspace import Workspace
from opera.triage import choice, circumstances, deciding, smaller, witness
from opera.triage.alike import same_answer
from opera.triage.circumstances import Labelled
from opera.triage.failure import alike, as_wrong
from opera.triage.minimise import Spent, minimise
from opera.triage.neighbours import Neighbours
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
AGREEING = "agreeing"
"""Detail of an outcome: the independent implementations that confirm what is expected (opera.oracle.screens)."""
INTEGERS = {f"{kind}{bits}": bits for kind in ("uint", "int") for bits in (8, 16, 32, 64)}
"""Integer dtypes → their bits."""


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


class Asker:
    """Asks the probe which programs fail as a target does, each once, as long as there is a budget.

    Attributes:
        witness: Asks another frontend, that passes what the search began with; None where none is quick. What it does not pass
            may be no program at all, for a library does not check all that its specification says.
        slow: Ask others that pass it, too slow for every program.
        beside: Asks the other frontends that were asked about what the search began with, whatever they showed.
        budget: What asking may take.
        asked: Programs that were asked about.
        outcomes, programs: Id of a program → what it showed, and the program.
        neighbours: What passes beside the target.
        bounds, broken: What the library says of the size of inputs, and what of it does not hold of the target itself.
    """

    def __init__(
        self, probe: Probe, question: Question, witness: Question | None = None, beside: Sequence[Question] = ()
    ) -> None:
        self.probe, self.question, self.witness, self.beside = probe, question, witness, beside
        self.slow: Sequence[Question] = ()
        self.budget: Budget | None = None
        self.batch, self.asked = AT_A_TIME, 0
        self.target: Outcome | None = None
        self.bounds: bounds.Bounds = {}
        self.broken: bounds.Broken = frozenset()
        self.neighbours: Neighbours | None = None
        self._masked = False
        self.outcomes: dict[str, Outcome] = {}
        self.programs: dict[str, Program] = {}
        self._witnessed: dict[str, Outcome] = {}

    def __call__(self, programs: Sequence[Program]) -> list[bool]:
        target = self.target
        if target is None:
            raise ValueError("nobody said what is to be found")
        within = self._within(programs)
        failing = dict(zip((x.id for x in within), map(self.fails, self.look(within)), strict=True))
        return self.passed(programs, [failing.get(x.id, False) for x in programs])

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

    def begin(self, program: Program, known: Known, defaults: smaller.Defaults) -> None:
        """Take a program that was asked about for the target, and what its library says of it for what binds all others."""
        self.target = self.outcomes[program.id]
        self.bounds, self.broken, self._masked = known.bounds, bounds.broken(known.bounds, program), False
        self._masked = self.hides(program)
        self.neighbours = Neighbours(self, program, defaults)

    def vanished(self, program: Program) -> bool:
        """Whether a program that was asked about passes: where it fails of something else, nothing is known."""
        outcome = self.outcomes.get(program.id)
        return outcome is not None and outcome.verdict == PASS

    def stands(self, program: Program) -> bool:
        """Whether its values hide nothing that those of the target do not, and it has neighbours that pass, if that has."""
        return not self.hides(program) and self.neighbours is not None and self.neighbours.has(program)

    def hides(self, program: Program) -> bool:
        """Whether an output is wrong with numbers that differ that is right in the target, whose own numbers hide none."""
        target, changed = self.target, smaller.differing(program)
        if self._masked or target is None or target.verdict != INCONSISTENT or changed == program:
            return False
        [shown] = self.look([changed])
        odd = shown.verdict != INCONSISTENT or shown.details.get("not_finite")
        return not odd and manner.more(target.details.get("manner") or {}, shown.details.get("manner") or {})

    def label(self, programs: Sequence[Program]) -> list[bool | None]:
        """Return of each whether it fails alike, None where it neither does so nor passes, or is not what documentation admits.

        What is wrong in another manner, and no less, fails alike, too: nobody knows better of it. Raises Spent.
        """
        within = self._within(programs)
        shown = dict(zip((x.id for x in within), self.look(within), strict=True))
        failed = self.passed(within, [self._like(shown[x.id]) for x in within])
        found: dict[str, bool | None] = {
            x.id: True if fails else False if self.vanished(x) else None
            for x, fails in zip(within, failed, strict=True)
        }
        return [found.get(x.id) for x in programs]

    def seen(self) -> list[Labelled]:
        """Return the programs of one call that were asked about and fail, or pass where no values hide that it is wrong."""
        target = self.target
        hidden = target is None or (target.verdict == INCONSISTENT and target.symptom in ("value", "nan-mask"))
        known = [x for name, x in self.programs.items() if name in self.outcomes]
        asked = [x for x in self._within(known) if isinstance(x, Instance)]
        failed = [(x, self.fails(self.outcomes[x.id])) for x in asked]
        return [Labelled(x, fails) for x, fails in failed if fails or (not hidden and self.vanished(x))]

    def shapes(self, program: Program) -> list[tuple[int, ...]] | None:
        """Return the shapes of the outputs that the library computes, None where it computes none. Raises Spent."""
        found = self.reference(program)
        return [x.shape for x in found if isinstance(x, Tensor)] if found is not None else None

    def _within(self, programs: Sequence[Program]) -> list[Program]:
        return [x for x in programs if bounds.broken(self.bounds, x) <= self.broken]

    def _like(self, outcome: Outcome) -> bool:
        return self.fails(outcome) or (self.target is not None and as_wrong(self.target, outcome))

    def look(self, programs: Sequence[Program]) -> list[Outcome]:
        """Return what programs show. Raises Spent where there is no time left to ask."""
        begun = time.monotonic()
        self.programs.update((x.id, x) for x in programs)
        new = self._ask(programs, self.question, self.outcomes)
        if new:
            self.asked += new
            quick = (time.monotonic() - begun) / new < QUICK
            self.batch = AT_A_TIME if quick else 2
        return [self.outcomes[x.id] for x in programs]

    def afresh(self, program: Program) -> Outcome:
        """Return what a program shows in a process of its own, where right outputs are computed again, too. Raises Spent."""
        return self._one(program, msgspec.structs.replace(self.question, fresh=True, insist=True))

    def agreed(self, program: Program) -> bool:
        """Whether another implementation gives what is expected of a program that was asked about."""
        if self.outcomes[program.id].details.get(AGREEING):
            return True
        return any(self._one(program, x).verdict == PASS for x in self.beside)

    def find_witness(self, program: Program) -> None:
        """Take the quickest of the others that pass a program for the witness, where there is none.

        Who refused a newer version may know the older.
        """
        asked = [(x, self._one(program, x)) for x in (self.beside if self.witness is None else ())]
        passing = [(sum(shown.seconds.values()), x) for x, shown in asked if shown.verdict == PASS]
        self.witness = min(passing, key=lambda x: x[0])[1] if passing else self.witness

    def withdraw(self, found: list[Program], first: int) -> bool:
        """Take back what no slow witness passes at the end, if one passes what is at `first`; return whether there was such.

        It is the witness from then on. Raises Spent.
        """
        if self.witness is not None or self.outcomes[found[first].id].details.get(AGREEING):
            return False
        passing = [x for x in self.slow if self._one(found[first], x).verdict == PASS]
        if not passing:
            return False
        count = witness.lost(found[first:], lambda x: any(self._one(x, y).verdict == PASS for y in passing))
        del found[len(found) - count :]
        self.witness = passing[0] if count else None
        return count > 0

    def reference(self, program: Program) -> list[Value] | None:
        """Return what the library itself computes for a program, None where it rejects it."""
        with tempfile.TemporaryDirectory() as kept:
            self._one(program, msgspec.structs.replace(self.question, keep=Path(kept)))
            held = migrated.folder(Path(kept), plan.test_id(program.id, plan.exporter_id(program.library)))
            return migrated.read_values(held, "expected") if (held / "manifest.json").is_file() else None

    def stated(self, program: Program, expected: Sequence[Value]) -> Outcome:
        """Return what a program shows if its outputs are to be these, whatever its library says of it."""
        if isinstance(program, Instance):  # its id must not be that of the test whose outputs the library states
            program = msgspec.structs.replace(program, context={**program.context, "stated": True})
        told = msgspec.structs.replace(captured(program), expected=tuple(expected))
        return self._asked(told, self.question)

    def lowered(self, program: Program) -> list[str]:
        """Return the names of the operators that a program is of once it came to the compiler, where that tells."""
        compiler, _, library = self.question.frontend.rpartition("-")
        ways = (x.name for x in compilers.ways(compilers.frontend(compiler, library)) if x.kind == LOWERED)
        shown = (self._one(program, msgspec.structs.replace(self.question, way=x, screened=False)) for x in ways)
        return [name for outcome in shown if outcome.symptom == Made.__name__ for name in outcome.message.split()]

    def _one(self, program: Program, question: Question) -> Outcome:
        return self._asked(captured(program), question)

    def _asked(self, asked: Captured, question: Question) -> Outcome:
        if self.budget is not None and self.budget.spent():
            raise Spent
        return self.probe(msgspec.structs.replace(question, program=asked))

    def _ask(self, programs: Sequence[Program], question: Question, known: dict[str, Outcome]) -> int:
        """Ask about the programs that nothing is known of; return how many they are."""
        left = {x.id: x for x in programs if x.id not in known}
        if left and self.budget is not None and self.budget.spent():
            raise Spent
        known.update(dict.fromkeys(left, Outcome(ERROR, "", "opera", "nobody answered")))
        for name, program in left.items():
            self.probe.submit(msgspec.structs.replace(question, program=captured(program)), tag=name)
        for answer in self.probe.answers():
            known[answer.tag] = answer.outcome
        return len(left)


def captured(program: Program) -> Captured:
    """Return a program without an expectation: its reference is computed anew."""
    return Captured(program, Provenance("opera", "reduction", ""))


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
    kept, first, finished = [program], 0, True
    defaults: dict[str, Mapping[str, Value]] = {}
    try:
        known = innermost(ask, kept, defaults)
        ask.begin(kept[-1], known, defaults)
        if newer(ask.outcomes[kept[-1].id]) and (made := _as_of_older(ask, kept[-1])):
            kept += made
            ask.begin(kept[-1], known, defaults)
            ask.find_witness(kept[-1])
        first = len(kept) - 1
        minimise(kept[-1], defaults, ask, kept.append)
        if ask.withdraw(kept, first):
            minimise(kept[-1], defaults, ask, kept.append)
        _spare(ask, defaults, kept)
        kept += _revealing(ask, kept[-1])
        kept += _as_of_older(ask, kept[-1])
    except Spent:
        finished = False
        ask.budget = Budget((1.0 - SEARCH) * seconds)
        with suppress(Spent):
            ask.withdraw(kept, first)
    found, outcome = _confirmed(workspace, ask, kept)
    ask.budget = Budget((1.0 - SEARCH) * seconds)
    borne = circumstances.of(ask, found, defaults, deciding.decided(ask, found, defaults))
    return Reduction(
        verdict.finding, verdict.environment, verdict.frontend, verdict.variant, verdict.test, captured(found).form(), outcome,
        stored=plan.test_id(found.id, plan.exporter_id(found.library)),
        deciding=borne.decided.parameters,
        besides=tuple(x for x in borne.decided.besides if ask.neighbours is None or not ask.neighbours.chosen(x)),
        circumstances=borne.circumstances,
        near=(borne.failing, borne.passing),
        explained=borne.exact,
        elements=smaller.elements(found),
        nondefault=len(smaller.nondefault(found, defaults)),
        asked=ask.asked,
        seconds=round(time.monotonic() - begun, 2),
        finished=finished,
    )  # fmt: skip


def asker(workspace: Workspace, probe: Probe, verdict: Verdict) -> tuple[Asker, Program]:
    """Return who asks about a member, what it shows now as the target, and its program.

    Raises NotReduced where it fails no more by the library's own reference.
    """
    manifest = migrated.read_manifest(migrated.folder(workspace.tests_folder, verdict.test))
    program = workspace.instance(manifest.instance)
    question = Question(
        frontend=verdict.frontend, variant=verdict.variant, environment=verdict.environment,
        limits=_patient(probe.limits, verdict.outcome), screened=verdict.outcome.verdict == INCONSISTENT,
    )  # fmt: skip
    quick, slow = witness.passing(workspace, verdict)
    ask = Asker(probe, question, quick, witness.beside(workspace, verdict))
    ask.slow = slow
    [first] = ask.look([program])
    odd = {
        name: x for name, x in first.details.items() if name in manner.ODD
    }  # of its outputs, which older verdicts do not tell
    seen = msgspec.structs.replace(verdict.outcome, details=odd | verdict.outcome.details)
    if not alike(verdict.frontend, seen, first, elsewhere=not first.conversion_function):
        raise NotReduced(f"by the library's own reference it is now {_brief(first)}")
    ask.target = first
    return ask, program


def about(probe: Probe, found: Reduction, budget: Budget) -> Asker:
    """Return who asks about programs that are like a reduced one; what that showed is the target."""
    question = Question(
        frontend=found.frontend, variant=found.variant, environment=found.environment,
        limits=_patient(probe.limits, found.outcome), screened=found.outcome.verdict == INCONSISTENT,
    )  # fmt: skip
    ask = Asker(probe, question)
    ask.target, ask.budget = found.outcome, budget
    return ask


def innermost(ask: Asker, kept: list[Program], defaults: dict[str, Mapping[str, Value]]) -> Known:
    """Append to `kept` the program that its last is made of and that fails so, what that is made of, and so on.

    What the library knows of the last is returned; `defaults` gets those of all operators that are called. Raises Spent.
    """
    known = ask.probe.known(kept[-1].library, kept[-1])
    defaults.update({name: {key: values.decode(x) for key, x in of.items()} for name, of in known.defaults.items()})
    while (piece := _piece(ask, known.pieces)) is not None:
        kept.append(piece)
        ask.target = ask.outcomes[piece.id]
        known = ask.probe.known(piece.library, piece)
    return known


def _patient(limits: Limits, outcome: Outcome) -> Limits:
    """Return the limits of a candidate; what takes long, or much, is asked for with those of the run."""
    if outcome.verdict == OUT_OF_MEMORY:
        return limits
    return msgspec.structs.replace(limits, seconds=min(limits.seconds, PATIENCE))


def _piece(ask: Asker, forms: Iterable[dict[str, Any]]) -> Program | None:
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


def _spare(ask: Asker, defaults: smaller.Defaults, kept: list[Program]) -> None:
    """Leave out what a failure needed at first, and the smaller program means the same without: `axis=0` of one axis.

    So it is where the library computes the same without it, bit for bit, and the compiler says the same.
    """
    for trait in smaller.traits(kept[-1], defaults):
        made = None if trait.kind == "dtype" else smaller.applied(trait.without, kept[-1])
        if made is None or ask([made]) != [True]:
            continue
        before, now = (ask.outcomes[x.id] for x in (kept[-1], made))
        if before.message == now.message and ask.reference(made) == ask.reference(kept[-1]):
            kept.append(made)


def _revealing(ask: Asker, program: Program) -> list[Program]:
    """Return the program with other values, with which more is wrong, or what is wrong tells more; else nothing.

    Equal values hide what is mixed up, and zeros what is never computed.
    """
    made = [x for step in smaller.unlike(program) if (x := smaller.applied(step, program)) is not None and x != program]
    before = ask.outcomes.get(program.id)
    if before is None or before.verdict != INCONSISTENT or not made:
        return []
    found = [x for x, fails in zip(made, ask(made), strict=True) if fails]
    return next(([x] for x in found if _tells_more(before, ask.outcomes[x.id])), [])


def _tells_more(before: Outcome, now: Outcome) -> bool:
    said = [manner.tells(x.details.get("manner") or {}) for x in (before, now)]
    return conceals(now.details, before.details) or said[1] > said[0]


def _as_of_older(ask: Asker, program: Program) -> list[Program]:
    """Return the program as of older versions of its operators, in which it fails so, too, the oldest last; else nothing.

    Where the compiler knows none that admits its types, other integers than these are tried, of which the same bits or numbers
    are expected: a shift that takes signed integers today may have been as wrong of unsigned ones before.
    """

    def older(of: Program) -> tuple[tuple[dict[str, Any], bool], ...]:
        return ask.probe.known(of.library, of).older

    found = _oldest(ask, program, older(program))
    if not newer(ask.outcomes[(found or [program])[-1].id]):
        return found
    with suppress(Spent):
        expected = ask.reference(program)
        for made in _other_integers(program):
            forms = [parse(form) for form, _ in older(made)]
            failing = [x for x, fails in zip(forms, ask(forms), strict=True) if fails and not newer(ask.outcomes[x.id])]
            if told := [x for x in failing if _equal(ask.reference(x), expected) and ask.agreed(x)]:
                return told[-1:]
    return found


def _other_integers(program: Program) -> Iterator[Program]:
    """Yield the program with another integer dtype in place of each, those of as many bits first, which keep the bits."""
    for dtype in sorted({x.dtype for x in smaller.leaves(program)} & INTEGERS.keys()):
        for other in sorted(INTEGERS.keys() - {dtype}, key=lambda x: (abs(INTEGERS[x] - INTEGERS[dtype]), x)):
            yield smaller.as_dtype(program, dtype, other)


def _equal(ones: list[Value] | None, others: list[Value] | None) -> bool:
    """Whether two lists of values are the same bits or the same numbers, whatever the dtypes."""
    if ones is None or others is None or len(ones) != len(others):
        return False
    pairs = list(zip(ones, others, strict=True))
    if not all(isinstance(x, Tensor) and isinstance(y, Tensor) and x.shape == y.shape for x, y in pairs):
        return ones == others
    return all(x.data == y.data or np.array_equal(x.array(), y.array()) for x, y in pairs)


def _oldest(ask: Asker, program: Program, older: Sequence[tuple[dict[str, Any], bool]]) -> list[Program]:
    """Return the program as of older versions of its operators, in which it fails so, too, the oldest last; else nothing.

    First the oldest that its library says the same of; then any other, if the library's reference computes the same there, bit
    for bit, and another implementation confirms that: a version with other words may have other rules.

    Args:
        older: Forms of the program, the newest first, and whether the library says the same of them (opera.libraries.Older).
    """
    same = [parse(form) for form, alike in older if alike][-1:]
    found = [x for x, fails in zip(same, ask(same), strict=True) if fails]
    newest = (found or [program])[0]
    others = [parse(form) for form, alike in older if not alike]
    try:
        failing = [x for x, shown in zip(others, ask.look(others), strict=True) if _as_before(ask, newest, shown)]
        expected = ask.reference(newest) if failing else None
        return found + [x for x in failing if ask.reference(x) == expected and ask.agreed(x)][-1:]
    except Spent:  # what was found is no worse for it
        return found


def _as_before(ask: Asker, program: Program, shown: Outcome) -> bool:
    """Whether an outcome is that of a program: one answer, or one crash; of what is newer, whichever converter raises it."""
    before = ask.outcomes[program.id]
    if before.verdict == INCONSISTENT:
        return ask.fails(shown) and same_answer(before, shown)
    return ask.fails(shown, elsewhere=newer(before))


def _confirmed(workspace: Workspace, ask: Asker, kept: list[Program]) -> tuple[Program, Outcome]:
    """Return the smallest program that fails so in a fresh process, by the limits of a run. Its test is kept.

    Raises NotReduced where none does.
    """
    seen = ""
    for program in list(reversed(kept))[:BACK]:
        question = msgspec.structs.replace(
            ask.question, program=captured(program), fresh=True, unpatched=True, limits=None, keep=workspace.tests_folder
        )  # fmt: skip
        outcome = ask.probe(question)
        wanted = ask.outcomes[program.id]
        if alike(ask.question.frontend, wanted, outcome):
            return program, msgspec.structs.replace(outcome, conversion_function=wanted.conversion_function)
        seen = _brief(outcome)
    raise NotReduced(f"in a fresh process it is {seen}")


def _brief(outcome: Outcome) -> str:
    return " ".join(f"{outcome.verdict} {outcome.stage} {outcome.symptom} {outcome.message}".split())[:200]
