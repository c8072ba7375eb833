"""Who asks the probe about programs: which of them fail as a target does, each once, as long as there is a budget."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

import msgspec

from opera import compilers
from opera.compilers import LOWERED, TEXT, limits
from opera.compilers.shared.packing import Made, Read
from opera.errors import NoAnswer
from opera.libraries import bounds
from opera.oracle import declared, manner
from opera.oracle.randomness import RANDOM
from opera.oracle.screens import AGREEING, ILL_CONDITIONED, NONDETERMINISTIC
from opera.pool import clock
from opera.programs import degenerate
from opera.programs.program import Captured, Instance, Program, Provenance
from opera.programs.values import Value
from opera.programs.verdicts import (
    ABORT,
    CRASH,
    ERROR,
    INCONSISTENT,
    PASS,
    REFUSED,
    TIMEOUT,
    UNEXPORTED,
    UNSTABLE,
    UNSUPPORTED,
    Outcome,
)
from opera.run.library_side import Known
from opera.run.probe import Probe, Question
from opera.triage.conditions.labels import Labelled
from opera.triage.conditions.neighbours import Neighbours
from opera.triage.failure import alike, as_wrong, both_invalid, rounded, same_words, says_the_same
from opera.triage.reducer import witness
from opera.triage.reducer.imported import Imported, key
from opera.triage.shrink import shapes, smaller
from opera.triage.shrink.minimise import Spent

WALL = 4.0
"""So many times as long as it may work a search may take on a busy machine, by the clock on the wall."""
GO_ON = 0.5
"""Part of a budget that `go_on` takes more."""
AT_A_TIME = 8
"""Programs that are asked about at a time, where an answer is quick."""
QUICK, AT_ONCE = 0.5, 32
"""Seconds of a quick answer, and how many programs are asked about at once that are answered so quickly."""
STOPS = (CRASH, REFUSED, ABORT, TIMEOUT)
"""Verdicts of what returns nothing."""
SAY_NOTHING = (PASS, ERROR, UNEXPORTED)
"""Verdicts of who says nothing against a program."""
STAGES = ("load", "compile", "infer")
"""Stages of a frontend, one after the other."""
FORMS = ("shape", "dtype")
"""Symptoms of an output in another form, whose numbers may be right."""
SILENT = 3
"""Programs of each symptom that are remembered as wrong where the target fails in words."""


class Budget:
    """What a search may work: processor seconds of this process and its workers. What a busy machine takes does not count."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.begun = seconds, time.monotonic()
        self._used, self._seen = 0.0, clock.tree(os.getpid())[0]

    @property
    def left(self) -> float:
        """Seconds that are left of it."""
        return 0.0 if self.spent() else self.seconds - self._used

    def spent(self) -> bool:
        """Whether it is used up."""
        now = clock.tree(os.getpid())[0]
        self._used += max(0.0, now - self._seen)  # a worker that ended takes its seconds along
        self._seen = now
        return self._used > self.seconds or time.monotonic() - self.begun > WALL * self.seconds


class Asker:
    """Asks the probe which programs fail as a target does, each once, as long as there is a budget.

    Attributes:
        witness: Asks another frontend, that passes what the search began with; None where none is quick. What it does not pass
            may be no program at all, for a library does not check all that its specification says.
        slow: Ask others that pass it, too slow for every program.
        routes: Ask the same frontend by variants that pass it.
        critics: Ask others that do not run the target either, but find no fault in it: what they do find one in is no program.
        more: Routes that did not pass what a search ended with, and are asked about every program from then on.
        beside: Asks the other frontends that were asked about what the search began with, whatever they showed.
        budget: What asking may take.
        asked: Programs that were asked about.
        outcomes, programs: Id of a program → what it showed, and the program.
        neighbours: What passes beside the target.
        ordinary: Tests of the operator that pass where the target fails.
        corpus: Programs of the corpus that call the operator, whatever they show.
        plain: Whether a smaller program fails as plainly as the target, whose numbers were chosen for that (`loud`).
        axes: Parameters and inputs that name an axis, where what the search began with passes with another axis. They stay: the
            default may fail alike, and is another case.
        second: Who is asked for what is expected where the library's own reference has no answer: whoever computed that of the
            test that the search began with.
        limited: Whether a documented limit of the compiler explains the target.
        imported: Tells which part of the compiler is wrong of programs of other dtypes.
        others: Programs that fail as the target does, of other dtypes, and of another part of the compiler: the first of each.
        bounds, broken: What the library says of the size of inputs, and what of it does not hold of the target itself.
    """

    def __init__(
        self, probe: Probe, question: Question, witness: Question | None = None, beside: Sequence[Question] = ()
    ) -> None:
        self.probe, self.question, self.witness, self.beside = probe, question, witness, beside
        self.slow: Sequence[Question] = ()
        self.routes: Sequence[Question] = ()
        self.more: list[Question] = []
        self.critics: list[Question] = []
        self.budget: Budget | None = None
        self.batch, self.asked = AT_A_TIME, 0
        self.target: Outcome | None = None
        self.bounds: bounds.Bounds = {}
        self.broken: bounds.Broken = frozenset()
        self.neighbours: Neighbours | None = None
        self.ordinary: Sequence[Program] = ()
        self.corpus: Sequence[Instance] = ()
        self.plain: Callable[[Program], bool] = lambda _: True
        self.axes: list[smaller.Trait] = []
        self.second = ""
        self._defaults: smaller.Defaults = {}
        self._masked, self.limited = False, True
        self.imported, self.others = Imported(self), dict[frozenset[str], Program]()
        self.outcomes: dict[str, Outcome] = {}
        self.programs: dict[str, Program] = {}
        self._computed: dict[str, list[Value] | None] = {}
        self._elsewhere = set[str]()
        self._witnessed: dict[tuple[str, str], dict[str, Outcome]] = defaultdict(dict)

    def __call__(self, programs: Sequence[Program]) -> list[bool]:
        target = self.target
        if target is None:
            raise ValueError("nobody said what is to be found")
        within = [x for x in programs if self.admits(x)]
        failing = dict(zip((x.id for x in within), map(self.fails, self.look(within)), strict=True))
        failing = {x.id: failing[x.id] and not self.excused(x) for x in within}
        return self.passed(programs, [failing.get(x.id, False) for x in programs])

    def admits(self, program: Program) -> bool:
        """Whether a reduction may end at a program: documentation admits it as far as the target, it names its axes, and its
        numbers are as plain as they should be."""
        return bool(self.within([program])) and self._names_axes(program) and self.plain(program)

    def fails(self, outcome: Outcome, *, elsewhere: bool = False) -> bool:
        """Whether an outcome is the target's failure. Whoever confirms what is expected of the target must do so here, too."""
        target = self.target
        if target is None or (target.details.get(AGREEING) and not outcome.details.get(AGREEING)):
            return False
        return alike(self.question.frontend, target, outcome, elsewhere=elsewhere)

    def passed(self, programs: Sequence[Program], failed: Sequence[bool], *, lenient: bool = False) -> list[bool]:
        """Return which of the programs that failed all witnesses pass; `lenient`: or do not support, where they stop with the
        target's words: a kernel that the witness lacks says nothing of a dtype that the library admits.
        """
        for one in (*([self.witness] if self.witness else []), *self.more):
            wanted = [program for program, fails in zip(programs, failed, strict=True) if fails]
            self._ask(wanted, one, self._witnessed[one.frontend, one.variant])
            failed = [
                fails and (self._witnesses(x, one) or (lenient and self._lacks(x, one)))
                for x, fails in zip(programs, failed, strict=True)
            ]
        for one in self.critics:
            said = self._witnessed[one.frontend, one.variant]
            self._ask([x for x, fails in zip(programs, failed, strict=True) if fails], one, said)
            failed = [fails and not witness.unlawful(said[x.id]) for x, fails in zip(programs, failed, strict=True)]
        return list(failed)

    def _witnesses(self, program: Program, witness: Question) -> bool:
        """Whether the witness passes a program; where its variant has nothing to run (what is of the oldest opset has no form
        in an older one), whether its frontend does by another. Of what is drawn it need not draw the numbers of the library.
        """
        shown = self._witnessed[witness.frontend, witness.variant][program.id]
        if shown.verdict == UNEXPORTED:  # what writes its model for it fails, and nobody says that the program is none
            return True
        if self.target is not None and "drawn" in self.target.details and shown.symptom == "value":
            return shown.verdict == INCONSISTENT
        if shown.verdict != ERROR:
            return shown.verdict == PASS
        own = (x for x in self.beside if x.frontend == witness.frontend and x.variant != witness.variant)
        return any(self._one(program, x).verdict == PASS for x in own)

    def _lacks(self, program: Program, one: Question) -> bool:
        """Whether a witness, another compiler, does not support a program which stops with the very words of the target, and
        does not say that it is none."""
        shown = self._witnessed[one.frontend, one.variant][program.id]
        target, own = self.target, self.outcomes.get(program.id)
        lacks = shown.verdict in (UNSUPPORTED, REFUSED) and not witness.unlawful(shown)
        other = one.frontend != self.question.frontend
        return other and lacks and target is not None and own is not None and says_the_same(target, own)

    def begin(self, program: Program, known: Known, defaults: smaller.Defaults) -> None:
        """Take a program that was asked about for the target, and what its library says of it for what binds all others."""
        self.target = self.outcomes[program.id]
        self.bounds, self.broken, self._masked = known.bounds, bounds.broken(known.bounds, program), False
        self._masked = self.hides(program)
        self.limited = self.documented(program)
        self.neighbours = Neighbours(self, program, defaults)
        self._defaults = defaults
        for x in smaller.traits(program, defaults):
            if x not in self.axes and any(map(self._right, self.look(list(shapes.other_axes(program, x.name))))):
                self.axes.append(x)

    def _names_axes(self, program: Program) -> bool:
        """Whether a program has all of `axes`; what is an input may be a parameter of an older version."""
        kinds = ("param", "input")
        return all(
            any(msgspec.structs.replace(x, kind=kind).held(program, self._defaults) for kind in kinds)
            for x in self.axes
        )

    def _right(self, outcome: Outcome) -> bool:
        """Whether outputs are off by no more than rounding."""
        return outcome.verdict == PASS or outcome.details.get("screen") == ILL_CONDITIONED

    def rounded(self) -> tuple[int, int]:
        """Return how many programs that were asked about are wrong by rounding alone, and how many are wrong by more."""
        shown = self.outcomes.values()
        alone = sum(x.details.get("screen") == ILL_CONDITIONED for x in shown)
        return alone, sum(x.verdict == INCONSISTENT for x in shown)

    def vanished(self, program: Program) -> bool:
        """Whether a program that was asked about passes: where it fails of something else, nothing is known."""
        outcome = self.outcomes.get(program.id)
        return outcome is not None and outcome.verdict == PASS

    def stands(self, program: Program) -> bool:
        """Whether its values hide nothing that those of the target do not, and it has neighbours that pass, if that has."""
        return not self.hides(program) and self.neighbours is not None and self.neighbours.has(program)

    def fair(self, program: Program) -> bool:
        """Whether a program of other ranks than the target's stands, for it is no corner as that is."""
        known = self.neighbours is not None and self.neighbours.told
        return self.stands(program) if known else not self.hides(program)

    def turned(self, program: Program) -> bool:
        """Whether a program that was asked about is fair with what it shows for the target, which it is from then on. Raises
        Spent, the target as it was."""
        before, self.target, found = self.target, self.outcomes[program.id], False
        try:
            found = self.fair(program)
        finally:
            self.target = self.target if found else before
        return found

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

        What is wrong in another manner, and no less, fails alike, too: nobody knows better of it, unless a documented limit of
        the compiler explains it alone. Where the target is but
        rounded to a narrower dtype, what passes may be so within tolerance. Raises Spent.
        """
        within = self.within(programs)
        shown = dict(zip((x.id for x in within), self.look(within), strict=True))
        alike = [self._like(shown[x.id]) and not self.excused(x) for x in within]
        failed = self.passed(within, alike, lenient=True)
        found: dict[str, bool | None] = {
            x.id: True if fails else False if self.runs(x) and not self._within_rounding else None
            for x, fails in zip(within, failed, strict=True)
        }
        return [found.get(x.id) for x in programs]

    def excused(self, program: Program) -> bool:
        """Whether a documented limit of the compiler explains a program that was asked about, and not the target: int64 that it
        narrows says nothing of int8."""
        return not self.limited and self.documented(program)

    def documented(self, program: Program) -> bool:
        """Whether a documented limit of the compiler explains a program that was asked about."""
        compiler, shown = self.question.frontend.rpartition("-")[0], self.outcomes[program.id]
        return limits.met(compiler, program, smaller.leaves(program), shown) is not None

    def runs(self, program: Program) -> bool:
        """Whether a program passes; where the target ends before it returns anything, or returns another form, also whether it
        draws other numbers than the library does, as what is random may, if something is left to chance."""
        stops = self.target is not None and (self.target.verdict in STOPS or self.target.symptom in FORMS)
        shown = self.outcomes[program.id]
        random = declared.declared(program) is not None or shown.details.get(RANDOM) is True
        random &= not any(map(degenerate.holds, program.instances()))
        drawn = random and (shown.verdict, shown.symptom) == (INCONSISTENT, "value")
        drawn |= shown.details.get("screen") == NONDETERMINISTIC
        return self.vanished(program) or (stops and drawn)

    @property
    def _within_rounding(self) -> bool:
        """Whether the target is off by so little that programs as wrong as it may pass."""
        return self.target is not None and rounded(self.target) != ""

    def gets_further(self, program: Program) -> bool:
        """Whether a program that was asked about runs, with outputs that are wrong and not only drawn, where the target ends
        before it returns any; or fails, or is not supported, at a later stage than the target ends in."""
        shown = self.outcomes.get(program.id)
        if self.target is None or self.target.verdict not in STOPS or shown is None:
            return False
        wrong = shown.verdict == INCONSISTENT and not self.runs(program)
        ends = shown.verdict in (*STOPS, UNSUPPORTED) and {self.target.stage, shown.stage} <= {*STAGES}
        later = ends and STAGES.index(self.target.stage) < STAGES.index(shown.stage)
        return (wrong or later) and bool(self.within([program]))

    def otherwise(self, program: Program) -> bool:
        """Whether a program that was asked about fails in the same stage, in other words or in another respect; of another part
        of the compiler, where no form is wrong; or gets further. What says the same of an output without elements, or that
        should be NaN or infinite, as the target's is not, does neither.
        """
        target, shown = self.target, self.outcomes.get(program.id)
        if target is None or shown is None or not self.within([program]):
            return False
        if self.gets_further(program) or (program.id in self._elsewhere and target.symptom not in FORMS):
            return True
        odd = any(shown.details.get(x) and not target.details.get(x) for x in manner.ODD)
        if odd and same_words(target, shown):  # none to file, but no other failure
            return False
        return (shown.verdict, shown.stage) == (target.verdict, target.stage) and not self._like(shown)

    def apart(self, program: Program, of: Program) -> bool:
        """Whether a program that fails as another does, and of other dtypes, does so of another part of the compiler: what was
        imported is right of the one alone. Raises Spent."""
        if self.target is None or self.target.stage == "load" or not self.imported.apart(program, of):
            return False
        self._elsewhere.add(program.id)
        self.others.setdefault(key(program), program)
        return True

    def go_on(self) -> None:
        """Take a part more of the time that there was, for what is asked from now on."""
        if self.budget is not None:
            self.budget = Budget(self.budget.left + GO_ON * self.budget.seconds)

    def silent(self) -> list[Program]:
        """Return programs that were asked about and give wrong finite outputs without a word, where the target fails in words
        or ends the process, and wrong numbers where it gives another form: a few of each symptom, the smallest first.
        """
        if self.target is None or self.target.verdict == UNSTABLE:
            return []
        if self.target.verdict == INCONSISTENT and self.target.symptom not in FORMS:
            return []
        symptoms = ("value",) if self.target.verdict == INCONSISTENT else ()
        found: dict[str, list[Program]] = defaultdict(list)
        for x in self.within([self.programs[name] for name in self.outcomes if name in self.programs]):
            shown = self.outcomes[x.id]
            empty = any(0 in leaf.shape for leaf in smaller.leaves(x))  # compilers have rules of their own for such
            wrong = shown.verdict == INCONSISTENT and shown.symptom in (symptoms or (shown.symptom,))
            if wrong and not shown.details.get("not_finite") and not empty:
                found[shown.symptom].append(x)
        return [x for of in found.values() for x in sorted(of, key=smaller.elements)[:SILENT]]

    def seen(self) -> list[Labelled]:
        """Return programs that were asked about and fail, or pass where no values hide that it is wrong, or, beside what stops,
        run wrongly; tests that pass."""
        target = self.target
        hidden = target is None or (target.verdict == INCONSISTENT and target.symptom in ("value", "nan-mask"))
        known = [x for name, x in self.programs.items() if name in self.outcomes]
        failed = [(x, self._alike(self.outcomes[x.id])) for x in self.within(known)]
        asked = [
            Labelled(x, fails)
            for x, fails in failed
            if fails or (not hidden and (self.runs(x) or self.gets_further(x)))
        ]
        return [*asked, *(Labelled(x, fails=False) for x in self.ordinary if not self._within_rounding)]

    def within(self, programs: Sequence[Program]) -> list[Program]:
        """Return the programs that documentation admits as far as it does the target."""
        return [x for x in programs if bounds.broken(self.bounds, x) <= self.broken]

    def _alike(self, outcome: Outcome) -> bool:
        """Whether an outcome is the target's failure, or a crash that says the same of another place; or a file that ONNX's
        checker refuses in most of the same words: shapes may differ in rank, or in a dimension."""
        target = self.target
        if self.fails(outcome) or target is None:
            return target is not None
        return says_the_same(target, outcome) or (both_invalid(target, outcome) and same_words(target, outcome))

    def _like(self, outcome: Outcome) -> bool:
        return self._alike(outcome) or (self.target is not None and as_wrong(self.target, outcome))

    def look(self, programs: Sequence[Program]) -> list[Outcome]:
        """Return what programs show. Raises Spent where there is no time left to ask."""
        self.programs.update((x.id, x) for x in programs)
        self._ask(programs, self.question, self.outcomes)
        return [self.outcomes[x.id] for x in programs]

    def afresh(self, program: Program) -> Outcome:
        """Return what a program shows in a process of its own, where right outputs are computed again, too. Raises Spent."""
        return self._one(program, msgspec.structs.replace(self.question, fresh=True, insist=True))

    def passes_afresh(self, program: Program) -> bool:
        """Whether what passes does so in a process of its own, too, where what is looked into varies: memory that nobody wrote
        holds other bytes there, and is right but by chance. Raises Spent."""
        varies = self.target is not None and self.target.verdict == UNSTABLE
        return not varies or self.afresh(program).verdict == PASS

    def by_way(self, program: Program, way: str) -> Outcome:
        """Return what a program shows in another way to run it (opera.compilers.Way). Raises Spent."""
        return self._one(program, msgspec.structs.replace(self.question, way=way))

    def by_variant(self, program: Program, variant: str) -> Outcome:
        """Return what a program shows by another variant of the frontend. Raises Spent."""
        return self._asked(self.captured(program), msgspec.structs.replace(self.question, variant=variant))

    def agreed(self, program: Program) -> bool:
        """Whether another implementation gives what is expected of a program that was asked about."""
        if self.outcomes[program.id].details.get(AGREEING):
            return True
        return any(self._one(program, x).verdict == PASS for x in self.beside)

    def without(self, program: Program) -> list[Question]:
        """Return the others that were asked about what the search began with and do not support a program. Raises Spent."""
        return [x for x in self.beside if self._one(program, x).verdict == UNSUPPORTED]

    def passes(self, program: Program, by: Question) -> bool:
        """Whether another passes a program. Raises Spent."""
        return self._one(program, by).verdict == PASS

    def find_witness(self, program: Program) -> None:
        """Take the others that pass a program for witnesses, where there is none; the quickest of all programs, if it is quick.

        Who refused a newer version may know the older, and of what was cut of a file nobody else was asked.
        """
        if self.witness is not None or self.slow or self.outcomes[program.id].details.get(AGREEING):
            return
        asked = [(x, self._one(program, x)) for x in self.beside]
        passing = [(sum(shown.seconds.values()), x) for x, shown in asked if shown.verdict == PASS]
        ranked = sorted(passing, key=lambda x: x[0])
        self.witness = next((x for seconds, x in ranked[:1] if seconds < witness.QUICK), None)
        self.slow = [x for _, x in ranked if x != self.witness][: witness.MOST]

    def withdraw(self, found: list[Program], first: int) -> bool:
        """Take back what no slow witness passes at the end, if one passes what is at `first`; and what another route into the
        frontend does not pass that passes that: it has something else that is wrong. Return whether there was such.

        They are witnesses from then on. Raises Spent.
        """
        before = len(found)
        if self.witness is None and not self.outcomes[found[first].id].details.get(AGREEING):
            self.witness = next(iter(self._taken_back(found, first, self.slow)), None)
        for route in self.routes if self.witness not in self.routes else ():
            self.more += self._taken_back(found, first, [route])
        return len(found) < before

    def criticised(self, found: list[Program], first: int) -> bool:
        """Take back what others say to be none, of a shape that must be another, who said no such thing of what is at `first`;
        return whether there was such. They are asked about every program from then on. Raises Spent.

        Where somebody passes the last, or confirms what is expected, those alone are heard who pass what is at `first`, and do
        not stop later than while they load: that may be a fault of their own.
        """
        last = found[-1]
        if last == found[first]:
            return False
        shown = [(x, self._one(last, x)) for x in self.beside]
        known = self.witness is not None or self.slow or self.outcomes[last.id].details.get(AGREEING)
        if known or any(x.verdict == PASS for _, x in shown):
            saying = list(self._faulting(last, found[first]))
        else:
            saying = [
                x for x, now in shown if witness.unlawful(now) and not witness.unlawful(self._one(found[first], x))
            ]
        for one in saying:
            self.critics.append(one)
            count = witness.lost(found[first:], lambda x, one=one: not witness.unlawful(self._one(x, one)))  # type: ignore[misc]
            del found[len(found) - count :]
        return bool(saying)

    def faulted(self, program: Program, first: Program) -> bool:
        """Whether somebody who passes the first says of a program that it is none, while it is loaded or as a refusal."""
        return any(True for _ in self._faulting(program, first))

    def refuted(self, program: Program) -> bool:
        """Whether the witness, which passes what the search began with, says of a program that it is none. Raises Spent."""
        return self.witness is not None and witness.refuted(self._one(program, self.witness))

    def _faulting(self, program: Program, first: Program) -> Iterator[Question]:
        """Yield those who say so."""
        for x in self.beside:
            if witness.refuted(self._one(program, x)) and self._one(first, x).verdict == PASS:
                yield x

    def _taken_back(self, found: list[Program], first: int, by: Sequence[Question]) -> list[Question]:
        """Take back what none of these passes at the end who pass what is at `first`; return those if there was such."""
        passing = [x for x in by if self._one(found[first], x).verdict == PASS]
        if not passing:
            return []
        count = witness.lost(found[first:], lambda x: any(self._one(x, y).verdict in SAY_NOTHING for y in passing))
        del found[len(found) - count :]
        return passing if count else []

    def reference(self, program: Program) -> list[Value] | None:
        """Return what the library itself computes for a program, None where it rejects it. Raises Spent."""
        if program.id not in self._computed:
            if self.budget is not None and self.budget.spent():
                raise Spent
            try:
                self._computed[program.id] = self.probe.expected(self.captured(program))
            except NoAnswer:  # it ended its worker
                self._computed[program.id] = None
        return self._computed[program.id]

    def stated(self, program: Program, expected: Sequence[Value]) -> Outcome:
        """Return what a program shows if its outputs are to be these, whatever its library says of it."""
        if isinstance(program, Instance):  # its id must not be that of the test whose outputs the library states
            program = msgspec.structs.replace(program, context={**program.context, "stated": True})
        told = msgspec.structs.replace(captured(program), expected=tuple(expected))
        return self._asked(told, self.question)

    def lowered(self, program: Program) -> list[str]:
        """Return the names of the operators that a program is of once it came to the compiler, where that tells."""
        return [name for text in self._told(program, LOWERED, Made) for name in text.split()]

    def written(self, program: Program) -> str:
        """Return the file that an exporter writes of a program, as text; nothing where that is long, or no exporter is asked.
        Raises Spent.
        """
        return next(self._told(program, TEXT, Read), "")

    def _told(self, program: Program, kind: str, by: type[Exception]) -> Iterator[str]:
        """Yield what the frontend's ways of a kind say of a program, where they raise what tells it."""
        compiler, _, library = self.question.frontend.rpartition("-")
        ways = (x.name for x in compilers.ways(compilers.frontend(compiler, library)) if x.kind == kind)
        shown = (self._one(program, msgspec.structs.replace(self.question, way=x, screened=False)) for x in ways)
        return (x.message for x in shown if x.symptom == by.__name__)

    def captured(self, program: Program) -> Captured:
        """Return a program without an expectation, and who is asked for one where its library has none."""
        return msgspec.structs.replace(captured(program), reference=self.second)

    def passes_by_another(self, program: Program) -> bool:
        """Whether a program passes by another route into the same frontend. Raises Spent."""
        compiler, _, library = self.question.frontend.rpartition("-")
        others = (x.name for x in compilers.frontend(compiler, library).VARIANTS if x.after != "rejected")
        asked = (msgspec.structs.replace(self.question, variant=x) for x in others if x != self.question.variant)
        return any(self._one(program, x).verdict == PASS for x in asked)

    def _one(self, program: Program, question: Question) -> Outcome:
        shown = self._asked(self.captured(program), question)
        own = (question.frontend, question.variant) == (self.question.frontend, self.question.variant)
        return shown if own else witness.taken(shown)

    def _asked(self, asked: Captured, question: Question) -> Outcome:
        if self.budget is not None and self.budget.spent():
            raise Spent
        return self.probe(msgspec.structs.replace(question, program=asked))

    def _ask(self, programs: Sequence[Program], question: Question, known: dict[str, Outcome]) -> None:
        """Ask about the programs that nothing is known of. Raises Spent between two batches: of what is drawn, or slow, one may
        take as long as hundreds of others."""
        left = list({x.id: x for x in programs if x.id not in known}.values())
        while left:
            if self.budget is not None and self.budget.spent():
                raise Spent
            begun, size = time.monotonic(), AT_ONCE if self.asked and self.batch == AT_A_TIME else self.batch
            some, left = left[:size], left[size:]
            known.update((x.id, Outcome(ERROR, "", "opera", "nobody answered")) for x in some)
            for program in some:
                self.probe.submit(msgspec.structs.replace(question, program=self.captured(program)), tag=program.id)
            for answer in self.probe.answers():
                known[answer.tag] = answer.outcome if question is self.question else witness.taken(answer.outcome)
            if question is self.question:
                self.asked += len(some)
                self.batch = AT_A_TIME if (time.monotonic() - begun) / len(some) < QUICK else 2


def captured(program: Program) -> Captured:
    """Return a program without an expectation: its reference is computed anew."""
    return Captured(program, Provenance("opera", "reduction", ""))
