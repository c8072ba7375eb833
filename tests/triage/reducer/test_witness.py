"""What nobody runs any more who ran the first program is taken back."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opera.programs.program import Instance, Operand, Program
from opera.programs.values import Tensor
from opera.programs.verdicts import CRASH, ERROR, INCONSISTENT, PASS, UNEXPORTED, UNSUPPORTED, Outcome
from opera.run.library_side import Known
from opera.run.probe import Question
from opera.triage import others
from opera.triage.reducer import asking, witness
from opera.triage.shrink import shapes

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


def test_a_witness_whose_model_is_not_written_or_that_draws_other_numbers_says_nothing_against_a_program() -> None:
    shows = [Outcome(UNEXPORTED), Outcome(INCONSISTENT, symptom="value"), Outcome(INCONSISTENT, symptom="shape")]

    class Answers(asking.Asker):
        def _ask(self, programs: Sequence[Program], question: Question, known: dict[str, Outcome]) -> int:
            known.update(zip((x.id for x in programs), shows, strict=True))
            return len(programs)

    ask = Answers(None, Question(frontend="f"), Question(frontend="w"))  # type: ignore[arg-type]
    assert ask.passed(PROGRAMS[:3], [True] * 3) == [True, False, False]
    ask.target = Outcome(INCONSISTENT, symptom="value", details={"drawn": "constant"})
    assert ask.passed(PROGRAMS[:3], [True] * 3) == [True, True, False]


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


class Critic(Asker):
    """Nobody runs the programs: one says that it has no such operator, and of an axis beyond some that the shape is wrong."""

    stage = "load"

    def __init__(self, lawful: int) -> None:
        super().__init__(lawful)
        self.slow, self.beside = [], [Question(frontend="critic")]

    def _one(self, program: Program, question: Question) -> Outcome:
        axis = program.instances()[0].params["axis"]
        lawful = isinstance(axis, int) and axis <= self.passes
        said = "no kernel of Op" if lawful else "Input c must have shape {1,1,2}. Actual:{2,1,2}"
        return Outcome(CRASH, self.stage, message=said)

    def _ask(self, programs: Sequence[Program], question: Question, known: dict[str, Outcome]) -> int:
        known.update((x.id, self._one(x, question)) for x in programs)
        return len(programs)


def test_a_program_that_others_say_is_none_is_taken_back_though_none_of_them_runs_the_first() -> None:
    ask, found = Critic(3), list[Program](PROGRAMS[:7])
    assert ask.criticised(found, 1) and found == PROGRAMS[:4]
    assert ask.passed(PROGRAMS[2:6], [True] * 4) == [True, True, False, False], "it is asked from then on"
    for lawful in (0, 9):  # it says so of the first, too, or of none
        found = list[Program](PROGRAMS[:7])
        same = Critic(lawful)
        assert not same.criticised(found, 1) and len(found) == 7 and not same.critics


@pytest.mark.parametrize(
    ("before", "ends", "heard"), [(PASS, "load", True), (UNSUPPORTED, "load", False), (PASS, "infer", False)]
)
def test_who_passed_the_first_is_heard_though_another_passes_the_last(before: str, ends: str, heard: bool) -> None:
    """A LayerNormalization of the last axis was filed with a scale for both, which ONNX Runtime alone takes."""

    class Second(Critic):
        def _one(self, program: Program, question: Question) -> Outcome:
            told = super()._one(program, question)
            if question.frontend == "witness":
                return Outcome(PASS)
            return told if witness.unlawful(told) else Outcome(before)

    ask, found = Second(3), list[Program](PROGRAMS[:7])
    ask.stage = ends
    ask.witness = Question(frontend="witness")
    assert [ask.faulted(x, PROGRAMS[1]) for x in (PROGRAMS[3], PROGRAMS[4])] == [False, heard]
    assert ask.criticised(found, 1) is heard and found == PROGRAMS[: 4 if heard else 7]


@pytest.mark.parametrize(
    ("says", "wrong"),
    [
        ("Input initial_c must have shape {1,1,2}. Actual:{2,1,2}", True),
        ("Dimension mismatch in unidirectional broadcast", True),
        ("Invalid node: it has no input", True),
        ("[ONNXRuntimeError] : 9 : NOT_IMPLEMENTED : Could not find an implementation for Op(22)", False),
        ("Position must be a constant.", False),
        ("INVALID_GRAPH: type tensor(bfloat16) of input parameter X is invalid", False),
    ],
)
def test_a_program_is_said_to_be_none_by_its_shapes_and_not_for_want_of_a_feature(says: str, wrong: bool) -> None:
    assert witness.unlawful(Outcome(CRASH, message=says)) is wrong


def test_of_a_program_that_nobody_else_was_asked_about_those_are_asked_that_run_here() -> None:
    """As of what was cut of a file: its library asks others for second opinions; where its own word stands, nobody is."""
    pytest.importorskip("onnxruntime")
    told = dict(others.here("openvino-onnx"))
    assert [x.frontend for x in told.values()] == ["onnxruntime-onnx"] and not any(x.environment for x in told.values())
    assert "onnxruntime-onnx" not in [x.frontend for _, x in others.here("onnxruntime-onnx")]
    assert not list(others.here("tvm-torch")) and not list(others.here("mnn-keras"))


class Passing(asking.Asker):
    """Of whom those named pass, each in its seconds."""

    def __init__(self, takes: dict[str, float]) -> None:
        super().__init__(None, Question(frontend="f"), None, [Question(frontend=x) for x in "abc"])  # type: ignore[arg-type]
        self.takes, self.outcomes = takes, {PROGRAMS[0].id: Outcome(CRASH)}

    def _one(self, program: Program, question: Question) -> Outcome:
        seconds = self.takes.get(question.frontend)
        return Outcome(CRASH) if seconds is None else Outcome(PASS, seconds={"infer": seconds})


def test_the_quickest_of_those_that_pass_is_asked_about_all_programs_if_it_is_quick_and_others_at_the_end() -> None:
    for takes, quick, slow in (({"a": 0.01, "b": 3.0}, "a", "b"), ({"b": 3.0, "c": 2.0}, "", "cb"), ({}, "", "")):
        ask = Passing(takes)
        ask.find_witness(PROGRAMS[0])
        assert (ask.witness.frontend if ask.witness else "") == quick and "".join(x.frontend for x in ask.slow) == slow
    ask.takes, ask.outcomes = {"a": 0.01}, {PROGRAMS[0].id: Outcome(CRASH, details={"agreeing": "float64"})}
    ask.find_witness(PROGRAMS[0])
    assert ask.witness is None, "somebody confirms what is expected"


def test_an_axis_stays_named_where_another_one_passes() -> None:
    """`DFT` is wrong along each axis but 1, and by its default, which is another case. What fails along any needs no axis."""
    operands = (Operand("x", Tensor.of(np.ones((2, 3, 5), "f4"))), Operand("axis", Tensor.of(np.array(2))))
    program = Instance("onnx", "Op", {}, operands, ("y",), {"opset": {"": 20}})

    class Answers(asking.Asker):
        length = 0

        def _ask(self, programs: Sequence[Program], question: Question, known: dict[str, Outcome]) -> int:
            known.update((x.id, Outcome(PASS if self.passes(x) else CRASH)) for x in programs)
            return len(programs)

        def passes(self, program: Program) -> bool:
            first, axes = program.inputs[0].value, [y.value for y in program.inputs[1:] if y.value is not None]
            if first is None or not axes:
                return first is None
            axis = int(axes[0].array())
            return first.shape[axis] != self.length if self.length else axis == 1

    without = msgspec.structs.replace(program, inputs=operands[:1])
    older = msgspec.structs.replace(without, params={"axis": 2})
    for length, kept in ((0, True), (5, False)):
        ask = Answers(None, Question(frontend="f"))  # type: ignore[arg-type]
        ask.length = length
        ask.look([program])
        ask.begin(program, Known({}), {})
        assert ask([program, without, older]) == [True, not kept, True]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=4), st.integers(-4, 3), st.booleans())
def test_along_another_axis_tensors_are_turned_with_it(shape: list[int], axis: int, fed: bool) -> None:
    x = np.arange(np.prod(shape), dtype="f4").reshape(shape)
    given = (Operand("axis", Tensor.of(np.array([axis]))),) if fed else ()
    call = Instance("onnx", "Op", {} if fed else {"axis": axis}, (Operand("x", Tensor.of(x)), *given), ("y",), {})
    made = list(shapes.other_axes(call, "axis"))
    assert len(made) == (len(shape) - 1 if -len(shape) <= axis < len(shape) else 0)
    for y in made:
        [held] = [int(z.value.array()[0]) for z in y.inputs[1:]] or [y.instances()[0].params["axis"]]
        assert held != axis % len(shape) and np.array_equal(y.inputs[0].value.array().swapaxes(held, axis), x)
    assert not list(shapes.other_axes(call, "keepdims"))


@pytest.mark.parametrize(("details", "verdict"), [({"agrees": True}, "pass"), ({}, "inconsistent")])
def test_who_draws_what_may_be_expected_the_first_time_passes_a_random_program(details, verdict):
    assert witness.taken(Outcome("inconsistent", "infer", "value", "", details=details)).verdict == verdict
