"""Which programs fail as a target does."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

from opera.oracle.randomness import RANDOM
from opera.oracle.screens import ILL_CONDITIONED, NONDETERMINISTIC
from opera.programs.program import Instance, Operand, Program
from opera.programs.values import Tensor
from opera.programs.verdicts import CRASH, ERROR, INCONSISTENT, PASS, SCREENED, UNSUPPORTED, Outcome
from opera.run.probe import Question
from opera.triage.reducer import asking
from opera.triage.reducer.asking import Asker, Budget
from opera.triage.shrink.minimise import Spent

WRONG = Outcome(INCONSISTENT, "infer", "value", details={"expected": 1})


@pytest.mark.parametrize(
    ("frontend", "target", "excused"),
    [("openvino-onnx", "int8", True), ("openvino-onnx", "int64", False), ("onnxruntime-onnx", "int8", False)],
)
def test_what_a_documented_limit_explains_says_nothing_of_what_none_does(
    frontend: str, target: str, excused: bool
) -> None:
    """OpenVINO turns the least int8 into 127, and computes int64 in 32 bits: Neg told of "int8 or int64 inputs"."""
    ask = Asker(None, Question(frontend=frontend))  # type: ignore[arg-type]
    ask.look = lambda programs: [WRONG for _ in programs]  # type: ignore[method-assign]
    programs = {
        x: Instance("onnx", "Neg", {}, (Operand("X", Tensor.of(np.array([np.iinfo(x).min], x))),), ("Y",), {})
        for x in ("int8", "int64")
    }
    ask.outcomes = {x.id: WRONG for x in programs.values()}
    ask.target, ask.limited = WRONG, ask.documented(programs[target])
    assert ask(list(programs.values())) == [True, not excused]
    assert ask.label(list(programs.values())) == [True, None if excused else True]


def test_what_gets_further_beside_a_crash_is_not_what_draws_other_numbers() -> None:
    drawn = Outcome(INCONSISTENT, "infer", "value", details={RANDOM: True})
    shown = {"Abs": WRONG, "Add": drawn, "Neg": Outcome(PASS), "Exp": Outcome(CRASH, "load")}
    programs = {x: Instance("onnx", x, {}, (Operand("X", Tensor.of(np.ones(1, "f4"))),), ("Y",), {}) for x in shown}
    ask = Asker(None, Question(frontend="tvm-onnx"))  # type: ignore[arg-type]
    ask.outcomes = {programs[x].id: now for x, now in shown.items()}
    for target, wrongly in ((Outcome(CRASH, "load"), ["Abs"]), (WRONG, [])):
        ask.target = target
        assert [x for x in shown if ask.gets_further(programs[x])] == wrongly


@pytest.mark.parametrize(("probability", "runs"), [(0.5, True), (1.0, False)])
def test_other_draws_are_no_fault_where_something_is_left_to_chance(probability: float, runs: bool) -> None:
    """ONNX Runtime refuses Bernoulli 22, and its Bernoulli 15 of 1 is 0: that is not right."""
    given = (Operand("input", Tensor.of(np.full(1, probability, "f4"))),)
    program = Instance("onnx", "Bernoulli", {}, given, ("Y",), {"opset": {"": 15}})
    ask = Asker(None, Question(frontend="onnxruntime-onnx"))  # type: ignore[arg-type]
    ask.outcomes = {program.id: Outcome(INCONSISTENT, "infer", "value", details={RANDOM: True})}
    for target in (Outcome(CRASH, "load"), Outcome(INCONSISTENT, "infer", "dtype")):
        ask.target = target
        assert ask.runs(program) is runs
    ask.outcomes = {program.id: Outcome(SCREENED, "infer", "value", details={"screen": NONDETERMINISTIC})}
    assert ask.runs(program), "screens say that it is drawn as documented"
    ask.target = WRONG
    assert not ask.runs(program)


def test_what_ends_at_a_later_stage_got_past_the_one_that_the_target_ends_in() -> None:
    """TVM's converter stops at a mask of lower rank; one of equal rank is converted, and then not compiled."""
    shown = {
        "Abs": Outcome(CRASH, "compile", "ValueError", "no such updates"),
        "Add": Outcome(UNSUPPORTED, "compile"),
        "Neg": Outcome(CRASH, "load", "KeyError", "another mistake of the converter"),
        "Exp": Outcome(ERROR, "compile"),
    }
    programs = {x: Instance("onnx", x, {}, (Operand("X", Tensor.of(np.ones(1, "f4"))),), ("Y",), {}) for x in shown}
    ask = Asker(None, Question(frontend="tvm-onnx"))  # type: ignore[arg-type]
    ask.outcomes = {programs[x].id: now for x, now in shown.items()}
    for stage, further in (("load", ["Abs", "Add"]), ("compile", []), ("infer", [])):
        ask.target = Outcome(CRASH, stage, "ValueError", "the rank is too low")
        assert [x for x in shown if ask.gets_further(programs[x])] == further
        assert all(ask.otherwise(programs[x]) for x in further), "they do not run"


def test_what_says_the_same_of_an_output_without_elements_fails_not_otherwise() -> None:
    """OpenVINO's `cat` of two empty tensors: a draft said that they fail otherwise, and readers saw the very words."""
    programs = {
        x: Instance("onnx", x, {}, (Operand("X", Tensor.of(np.ones(1, "f4"))),), ("Y",), {}) for x in ("Abs", "Add")
    }
    said = ("axis 1 is out of the range of the rank", "another thing altogether is wrong with these inputs")
    ask = Asker(None, Question(frontend="tvm-onnx"))  # type: ignore[arg-type]
    ask.target = Outcome(CRASH, "load", "ValueError", said[0])
    ask.outcomes = {
        programs[name].id: Outcome(CRASH, "load", "ValueError", message, details={"nothing": True})
        for name, message in zip(programs, said, strict=True)
    }
    assert not ask.fails(ask.outcomes[programs["Abs"].id]), "it is none to file"
    assert [ask.otherwise(x) for x in programs.values()] == [False, True]


def test_files_that_the_checker_refuses_in_most_of_the_same_words_fail_alike() -> None:
    """PyTorch's exporter forgets to expand: a rank differs, or a dimension."""
    rank, size, other = (
        Outcome(CRASH, "compile", "InferenceError", f"[ShapeInferenceError] {x}")
        for x in (
            "Inferred shape and existing shape differ in rank: (0) vs (1)",
            "Inferred shape and existing shape differ in dimension 0: (1) vs (2)",
            "Input X typestr: T, has unsupported type: tensor(complex64)",
        )
    )
    ask = Asker(None, Question(frontend="onnxexport-torch"))  # type: ignore[arg-type]
    ask.target = rank
    assert [ask._alike(x) for x in (rank, size, other)] == [True, True, False]


def test_a_kernel_that_the_witness_lacks_says_nothing_of_what_stops_in_the_very_words() -> None:
    """ONNX Runtime has no Selu of float64, which TVM's converter stops at as it does of float16."""
    stops = Outcome(CRASH, "load", "TypeError", "Binary operators must have the same datatype")
    shown = {
        "float64": stops,
        "bfloat16": stops,
        "int8": msgspec.structs.replace(stops, message="no integers of any kind"),
    }
    seen = {
        "float64": Outcome(UNSUPPORTED, "load", "NotImplemented"),
        "bfloat16": Outcome(CRASH),
        "int8": Outcome(UNSUPPORTED),
    }
    programs = {x: Instance("onnx", "Selu", {}, (Operand("X", Tensor(x, (1,), b"00000000"[: n])),), ("Y",), {}) for x, n in (
        ("float64", 8), ("bfloat16", 2), ("int8", 1),
    )}  # fmt: skip
    nobody: Any = SimpleNamespace(answers=lambda: iter(()))
    ask = Asker(nobody, Question(frontend="tvm-onnx"), Question(frontend="onnxruntime-onnx"))
    ask.target, ask.outcomes = stops, {programs[x].id: y for x, y in shown.items()}
    ask._witnessed["onnxruntime-onnx", ""].update({programs[x].id: y for x, y in seen.items()})
    shape = Outcome(UNSUPPORTED, "load", "Fail", "the shape must match")
    failed, strict = [True] * 3, [*programs.values()]
    assert ask.passed(strict, failed, lenient=True) == [True, False, False]
    assert ask.passed(strict, failed) == [False] * 3
    ask._witnessed["onnxruntime-onnx", ""][programs["float64"].id] = shape
    assert ask.passed(strict, failed, lenient=True) == [False] * 3, "it says that it is no program"


def test_what_gets_further_beside_a_crash_is_known_to_run() -> None:
    """A DFT without its length has a wrong shape, and no crash: the length decides of that."""
    program, other = (Instance("onnx", x, {}, (), ("Y",), {}) for x in ("DFT", "Abs"))
    for target, known in ((Outcome(CRASH, "compile"), [False]), (Outcome(INCONSISTENT, "infer", "shape"), [])):
        ask = Asker(None, Question(frontend="openvino-onnx"))  # type: ignore[arg-type]
        ask.target, ask.programs = target, {program.id: program}
        ask.outcomes = {program.id: Outcome(INCONSISTENT, "infer", "count"), other.id: Outcome(PASS)}
        assert [x.fails for x in ask.seen()] == known


@pytest.mark.parametrize(("seconds", "most"), [(0.0, asking.AT_ONCE), (4.0, 2)])
def test_what_is_slow_is_asked_in_small_batches_so_that_no_budget_is_overrun_by_much(
    monkeypatch, seconds, most
) -> None:
    """39 programs of a layer that draws took 439 seconds of 60."""
    now, sizes, tags = [0.0], list[int](), list[str]()

    def answers() -> list[Any]:
        some, tags[:] = [*tags], []
        sizes.append(len(some))
        now[0] += seconds * len(some)
        return [SimpleNamespace(tag=x, outcome=Outcome(PASS)) for x in some]

    probe: Any = SimpleNamespace(submit=lambda _, tag: tags.append(tag), answers=answers)
    monkeypatch.setattr(asking.time, "monotonic", lambda: now[0])
    ask = Asker(probe, Question(frontend="tvm-onnx"))
    ask.budget = Budget(20.0)
    programs = [Instance("onnx", "Selu", {"n": n}, (), ("Y",), {}) for n in range(100)]
    if seconds:
        with pytest.raises(Spent):
            ask.look(programs)
    else:
        ask.look(programs)
    assert max(sizes[1:]) == most and sizes[0] <= asking.AT_A_TIME and now[0] <= asking.WALL * 20.0 + seconds * most
    assert set(ask.outcomes) <= {x.id for x in programs} and all(x.verdict == PASS for x in ask.outcomes.values())


def test_programs_that_a_screen_takes_for_rounding_are_counted_beside_those_that_fail() -> None:
    ask = Asker(None, Question(frontend="openvino-keras"))  # type: ignore[arg-type]
    ask.target = WRONG
    rounds = Outcome(SCREENED, "infer", "value", details={"screen": ILL_CONDITIONED})
    ask.outcomes = {"a": WRONG, "b": rounds, "c": Outcome(PASS), "d": rounds, "e": Outcome(SCREENED)}
    ask.outcomes["f"] = Outcome(INCONSISTENT, "infer", "shape")
    assert ask.rounded() == (2, 2)


def test_a_target_stays_as_it_was_where_there_is_no_time_to_tell_whether_another_is_fair() -> None:
    program = Instance("onnx", "Abs", {}, (Operand("X", Tensor.of(np.float32([1]))),), ("Y",), {})
    ask = Asker(None, Question(frontend="f-onnx"))  # type: ignore[arg-type]
    ask.target = before = Outcome(INCONSISTENT, "infer", "nan-mask")
    ask.outcomes = {program.id: Outcome(INCONSISTENT, "infer", "value")}

    def spent(_: Program) -> bool:
        raise Spent

    ask.fair = spent  # type: ignore[method-assign]
    with pytest.raises(Spent):
        ask.turned(program)
    assert ask.target is before
    for fair in (False, True):
        ask.fair = lambda _, fair=fair: fair  # type: ignore[method-assign,misc]
        assert ask.turned(program) is fair and (ask.target is before) is not fair
