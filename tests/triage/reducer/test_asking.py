"""Which programs fail as a target does."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

from opera.oracle.randomness import RANDOM
from opera.programs.program import Instance, Operand
from opera.programs.values import Tensor
from opera.programs.verdicts import CRASH, ERROR, INCONSISTENT, PASS, UNSTABLE, UNSUPPORTED, Outcome
from opera.run.probe import Question
from opera.triage.contrasts import FAILS, LIKEWISE, OTHERWISE, PASSES
from opera.triage.reducer.asking import Asker

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


def test_what_is_told_of_one_thing_that_is_changed_is_what_the_script_would_say() -> None:
    """The checker names one error by itself, and several behind a heading: `copy_` of a number fails as that of a tensor."""
    rank = "Inferred shape and existing shape differ in rank: (0) vs (1)"
    words = {
        1.0: f"(op_type:Cast, node name: node_Cast_0): {rank}",
        2.0: f"Inference error(s): (op_type:Cast, node name: node_Cast_0): {rank}",
        3.0: "Inferred shape and existing shape differ in dimension 0: (1) vs (2)",  # mostly the same: it is not told
        4.0: "Data type of input is wrong, and must be one that the operator takes",
    }
    shown = {x: Outcome(CRASH, "compile", "InferenceError", text) for x, text in words.items()} | {5.0: Outcome(PASS)}
    programs = {
        x: Instance("onnx", "Any", {"k": x}, (Operand("X", Tensor.of(np.float32([1]))),), ("Y",), {}) for x in shown
    }
    ask = Asker(None, Question(frontend="onnxexport-torch"))  # type: ignore[arg-type]
    ask.look = lambda asked: [ask.outcomes[x.id] for x in asked]  # type: ignore[method-assign]
    ask.programs = {x.id: x for x in programs.values()}
    ask.outcomes = {programs[x].id: outcome for x, outcome in shown.items()}
    ask.target = Outcome(CRASH, "compile", "InferenceError", rank)
    own = Instance("onnx", "Any", {"k": 0.0}, (Operand("X", Tensor.of(np.float32([1]))),), ("Y",), {})
    told = {x.params["k"]: how for x, how in ask.alone(own)}
    assert told == {1.0: FAILS, 2.0: FAILS, 4.0: OTHERWISE, 5.0: PASSES}


def test_of_what_is_not_drawn_other_numbers_are_never_told_to_be_right() -> None:
    programs = [
        Instance("onnx", "Bernoulli", {"k": k}, (Operand("X", Tensor.of(np.float32([x]))),), ("Y",), {})
        for k, x in ((0, 0.1), (0, 1.0), (1, 0.1))
    ]
    ask = Asker(None, Question(frontend="tvm-onnx"))  # type: ignore[arg-type]
    ask.look = lambda asked: [ask.outcomes[x.id] for x in asked]  # type: ignore[method-assign]
    ask.programs = {x.id: x for x in programs}
    drawn = Outcome(INCONSISTENT, "infer", "value", details={"drawn": "constant"})
    ask.outcomes = {x.id: Outcome(PASS) for x in programs} | {programs[0].id: drawn}
    ask.target = drawn
    ask.probe = lambda question: Outcome(PASS)  # type: ignore[assignment]
    assert (programs[2], PASSES) in ask.alone(programs[0])
    assert (programs[1], PASSES) not in ask.alone(programs[0]), "1 may be drawn, too"


def test_of_unwritten_memory_booleans_are_never_told_to_be_right() -> None:
    """Whatever byte stands there is true."""
    kinds = ("f4", "f2", "?")
    programs = [Instance("onnx", "Tile", {}, (Operand("X", Tensor.of(np.ones(2, x))),), ("Y",), {}) for x in kinds]
    ask = Asker(None, Question(frontend="openvino-onnx"))  # type: ignore[arg-type]
    ask.look = lambda asked: [ask.outcomes[x.id] for x in asked]  # type: ignore[method-assign]
    ask.afresh = lambda asked: Outcome(PASS)  # type: ignore[method-assign]
    ask.programs = {x.id: x for x in programs}
    ask.target = Outcome(UNSTABLE, "infer", UNSTABLE)
    ask.outcomes = {x.id: Outcome(PASS) for x in programs} | {programs[0].id: ask.target}
    assert [x for x, how in ask.alone(programs[0]) if how == PASSES] == [programs[1]]


def test_a_message_that_names_other_dtypes_is_told_likewise() -> None:
    text = "Data type and updates type are required to be the same. Got: {} and: i64"
    programs = {
        x: Instance("onnx", "Any", {"k": n}, (Operand("X", Tensor.of(np.float32([1]))),), ("Y",), {})
        for n, x in enumerate(("u8", "f32"))
    }
    ask = Asker(None, Question(frontend="openvino-torch"))  # type: ignore[arg-type]
    ask.look = lambda asked: [ask.outcomes[x.id] for x in asked]  # type: ignore[method-assign]
    ask.programs = {x.id: x for x in programs.values()}
    ask.outcomes = {y.id: Outcome(CRASH, "load", "OpConversionFailure", text.format(x)) for x, y in programs.items()}
    ask.target = ask.outcomes[programs["u8"].id]
    assert ask.alone(programs["u8"]) == [(programs["f32"], LIKEWISE)]


@pytest.mark.parametrize(
    ("target", "wanted"),
    [
        (
            Outcome(INCONSISTENT, "infer", "value", details={"output": "Y"}),
            {1.0: FAILS, 3.0: OTHERWISE, 4.0: PASSES, 5.0: PASSES},
        ),
        (Outcome(UNSTABLE, "infer", UNSTABLE), {5.0: PASSES}),
    ],
)
def test_wrong_outputs_are_wrong_otherwise_in_another_respect_and_what_varies_may_be_right_by_chance(
    target: Outcome, wanted: dict[float, str]
) -> None:
    shown = {
        1.0: Outcome(INCONSISTENT, "infer", "value", details={"output": "Y", "manner": {"Y": ["wrong", "another"]}}),
        3.0: Outcome(INCONSISTENT, "infer", "shape", details={"output": "Y"}),
        4.0: Outcome(PASS),
        5.0: Outcome(PASS),
    }
    programs = {
        x: Instance("onnx", "Any", {"k": x}, (Operand("X", Tensor.of(np.float32([1]))),), ("Y",), {}) for x in shown
    }
    ask = Asker(None, Question(frontend="openvino-onnx"))  # type: ignore[arg-type]
    ask.look = lambda asked: [ask.outcomes.get(x.id, Outcome(ERROR)) for x in asked]  # type: ignore[method-assign]
    ask.label = lambda asked: [None for _ in asked]  # type: ignore[method-assign]
    again = {programs[4.0].id: Outcome(UNSTABLE, "infer", UNSTABLE), programs[5.0].id: Outcome(PASS)}
    ask.afresh = lambda asked: again[asked.id]  # type: ignore[method-assign]
    ask.programs = {x.id: x for x in programs.values()}
    ask.outcomes = {programs[x].id: outcome for x, outcome in shown.items()}
    ask.target = target
    own = Instance("onnx", "Any", {"k": 0.0}, (Operand("X", Tensor.of(np.float32([1]))),), ("Y",), {})
    assert {x.params["k"]: how for x, how in ask.alone(own)} == wanted
