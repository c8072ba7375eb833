"""What nobody runs any more who ran the first program is taken back."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from opera.programs.program import Instance, Program
from opera.programs.verdicts import CRASH, ERROR, PASS, Outcome
from opera.run.probe import Question
from opera.triage.reducer import asking, witness

PROGRAMS = [Instance("onnx", "Op", {"axis": n}, (), ("y",), {}) for n in range(40)]


@given(st.integers(1, 40), st.integers(1, 40))
def test_programs_at_the_end_that_are_not_passed_are_counted_by_few_questions(count: int, good: int) -> None:
    programs: list[Program] = list(PROGRAMS[:count])
    asked = []

    def passed(program: Program) -> bool:
        asked.append(program)
        return programs.index(program) < good

    assert witness.lost(programs, passed) == max(0, count - good) and len(asked) <= 7


def test_a_witness_with_nothing_to_run_is_asked_by_its_other_variant() -> None:
    """What is of the oldest opset has no form in an older one."""

    class Answers(asking.Asker):
        def _ask(self, programs: Sequence[Program], question: Question, known: dict[str, Outcome]) -> int:
            known.update((x.id, Outcome(ERROR if x in PROGRAMS[:2] else CRASH)) for x in programs)
            return len(programs)

        def _one(self, program: Program, question: Question) -> Outcome:
            return Outcome(PASS if program != PROGRAMS[1] and question.frontend == "w" else CRASH)

    beside = [Question(frontend="w", variant=x) for x in ("oldest", "plain")] + [Question(frontend="v")]
    ask = Answers(None, Question(frontend="f"), beside[0], beside)  # type: ignore[arg-type]
    assert ask.passed(PROGRAMS[:3], [True] * 3) == [True, False, False]


class Asker(asking.Asker):
    """Of whom the slow witness passes programs up to an axis."""

    def __init__(self, passes: int, agreeing: str = "") -> None:
        super().__init__(None, Question(frontend="f"))  # type: ignore[arg-type]
        self.slow = [Question(frontend="other")]
        self.passes, self.outcomes = passes, {x.id: Outcome(CRASH, details={"agreeing": agreeing}) for x in PROGRAMS}

    def _one(self, program: Program, question: Question) -> Outcome:
        axis = program.instances()[0].params["axis"]
        return Outcome(PASS if isinstance(axis, int) and axis <= self.passes else CRASH)


def test_what_a_slow_witness_does_not_run_is_taken_back_and_it_is_asked_from_then_on() -> None:
    ask, found = Asker(3), list[Program](PROGRAMS[:7])
    assert ask.withdraw(found, 1) and found == PROGRAMS[:4] and ask.witness == ask.slow[0]
    for same in (
        Asker(9),
        Asker(0),
        Asker(3, "float64"),
    ):  # it runs all, or none, or somebody confirms what is expected
        found = list[Program](PROGRAMS[:7])
        assert not same.withdraw(found, 1) and len(found) == 7 and same.witness is None


def test_what_another_route_passed_it_passes_at_the_end_and_is_asked_from_then_on() -> None:
    ask, found = Asker(3, "float64"), list[Program](PROGRAMS[:7])
    ask.routes = [Question(frontend="f", variant="other")]
    assert ask.withdraw(found, 1) and found == PROGRAMS[:4]
    assert ask.witness is None and ask.more == ask.routes
    ask.passes, found = 9, found + list[Program](PROGRAMS[7:9])
    ask.more = []
    assert not ask.withdraw(found, 1) and not ask.more
