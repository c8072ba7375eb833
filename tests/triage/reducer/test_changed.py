"""What is told of one thing that is changed alone is what the probe shows, and what a script would say."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from opera.oracle import draws
from opera.programs.program import Instance, Operand, Program
from opera.programs.values import Tensor
from opera.programs.verdicts import ABORT, CRASH, ERROR, INCONSISTENT, PASS, UNSTABLE, Outcome, Raised, Seen
from opera.run.probe import Question
from opera.triage import contrasts, refilled
from opera.triage.contrasts import FAILS, LIKEWISE, OTHERWISE, PASSES, WRONG
from opera.triage.failure import clearly
from opera.triage.reducer import changed
from opera.triage.reducer.asking import Asker, Budget
from opera.triage.reducer.changed import alone, outputs
from opera.triage.sentence import RETURNED
from opera.triage.shrink.minimise import Spent


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
    told = {x.params["k"]: how for x, how in alone(ask, own, ask.target)}
    assert told == {1.0: FAILS, 2.0: FAILS, 4.0: OTHERWISE, 5.0: PASSES}


@pytest.mark.parametrize(
    ("off", "told"),
    [
        (
            {"max_rel": 4e-3, "max_abs": 3e-6},
            False,
        ),  # the peephole that OpenVINO leaves out, of a gate that is nearly shut
        ({"max_rel": 6e-5, "max_abs": 6e-5}, False),
        ({"max_rel": 8e-6, "max_abs": 8e-6}, True),
        ({"max_rel": 0.5, "max_abs": 1e-8}, True),  # what is expected is nearly 0
        ({"max_rel": 4e-5, "max_abs": 4e-3}, True),  # a thousandth of what the wrong one is off by
        ({"max_rel": 0.0, "max_abs": 9e-6}, False),  # where 0 is expected
        ({}, True),
    ],
)
def test_right_is_what_is_clearly_so_beside_a_wrong_one(off, told) -> None:
    wrong = Outcome(INCONSISTENT, "infer", "value", details={"max_rel": 0.047})
    assert clearly(wrong, Outcome(PASS, details={**off, "rtol": 1e-4, "atol": 1e-5})) is told
    share = Outcome(PASS, details={"max_rel": 4e-5, "max_abs": 4e-3, "rtol": 1e-4, "atol": 1e-5})
    assert not clearly(wrong, share, small=0.0), "of more numbers a wrong divisor tells less"
    slight = Outcome(INCONSISTENT, "infer", "value", details={"max_rel": 2e-7})
    assert not clearly(slight, Outcome(PASS, details={"max_rel": 2e-7, "rtol": 1e-4})), "float32's tolerance hides it"
    assert clearly(Outcome(CRASH, "load", "TypeError"), Outcome(PASS, details={**off, "rtol": 1e-4, "atol": 1e-5}))


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
    assert (programs[2], PASSES) in alone(ask, programs[0], ask.target)
    assert (programs[1], PASSES) not in alone(ask, programs[0], ask.target), "1 may be drawn, too"


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
    assert [x for x, how in alone(ask, programs[0], ask.target) if how == PASSES] == [programs[1]]


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
    assert alone(ask, programs["u8"], ask.target) == [(programs["f32"], LIKEWISE)]


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
    assert {x.params["k"]: how for x, how in alone(ask, own, ask.target)} == wanted


def test_which_other_outputs_are_wrong_in_the_same_respect_is_told() -> None:
    """TVM's LayerNormalization has a placeholder for Mean, and one for InvStdDev."""
    names = ("Y", "Mean", "InvStdDev", "More")
    whole = Instance("onnx", "LayerNormalization", {}, (Operand("X", Tensor.of(np.float32([1, 2]))),), names, {})
    each = {x: msgspec.structs.replace(whole, outputs=(*("",) * n, x)) for n, x in enumerate(names)}
    ask = Asker(None, Question(frontend="tvm-onnx"))  # type: ignore[arg-type]
    ask.look = lambda asked: [ask.outcomes[x.id] for x in asked]  # type: ignore[method-assign]
    ask.beside = [Question(frontend="onnxruntime-onnx")]
    ask.agreed = lambda x: x.outputs[-1] != "More"  # type: ignore[method-assign]
    ask.passes_afresh = lambda _: True  # type: ignore[method-assign]
    expected = [Tensor.of(np.float32([1, 2]))]
    ask.reference = lambda _: expected  # type: ignore[method-assign]
    unnamed = msgspec.structs.replace(whole, outputs=("output_0",))  # as one is asked for that is no node's own
    ask.programs = {x.id: x for x in (whole, each["Mean"], unnamed)}
    wrong = {x: Outcome(INCONSISTENT, "infer", how, details={"output": x})
             for x, how in (("Mean", "shape"), ("InvStdDev", "shape"), ("More", "shape"), ("Y", "value"))}  # fmt: skip
    ask.outcomes = {
        whole.id: wrong["Mean"],
        **{each[x].id: now for x, now in wrong.items()},
        unnamed.id: Outcome(CRASH),
    }
    assert [*outputs(ask, each["Mean"], ())] == [
        contrasts.Contrast("output that is asked for", "Mean", ("InvStdDev",), otherwise=("Y",))
    ], "what nobody confirms is told of none"
    ask.outcomes[each["Y"].id] = Outcome(PASS)
    [row] = outputs(ask, each["Mean"], ())
    assert [*contrasts.rows([row], wrong=True)] == ["output that is asked for: wrong for Mean, InvStdDev; right for Y"]
    assert contrasts.OUTPUT not in [x.what for x in outputs(ask, whole, ())], "it is asked for all"
    expected[0] = Tensor.of(np.float32([0, 0]))
    [row] = outputs(ask, each["Mean"], ())
    assert not row.passes, "zeros are right of a placeholder, too"
    ask.outcomes[each["Mean"].id] = Outcome(CRASH, "load", "E", "no Mean at all")
    ask.outcomes[each["Y"].id] = wrong["Y"]
    [row] = outputs(ask, each["Mean"], ())
    assert (row.fails, row.wrong) == ((), ("Y", "InvStdDev")), "it runs, and is wrong"


def test_what_becomes_of_another_output_and_of_a_result_that_goes_on_is_told_if_it_was_seen() -> None:
    """`native_layer_norm` fails of its second output; `abs` of float16 has a wrong dtype as an output of the model alone."""
    call = Instance("torch", "torch.abs", {}, (Operand("input", Tensor.of(np.float32([1, 2]))),), (), {})
    second = msgspec.structs.replace(call, outputs=("", "output_1"))
    ask = Asker(None, Question(frontend="openvino-torch"))  # type: ignore[arg-type]
    ask.look = lambda asked: [ask.outcomes.get(x.id, Outcome(PASS)) for x in asked]  # type: ignore[method-assign]
    ask.outcomes = {second.id: Outcome(CRASH)}
    assert not [*outputs(ask, second, ())], "the first alone was not asked about"
    ask.outcomes[msgspec.structs.replace(call, outputs=("output_0",)).id] = Outcome(PASS)
    [row] = outputs(ask, second, ())
    assert (row.own, row.passes) == ("the second alone", ("the first alone",))
    assert [x.what for x in outputs(ask, call, (RETURNED,))] == ["its result", "outputs that are returned"]
    constant = msgspec.structs.replace(call, operator="torch.zeros_like")
    assert [x.what for x in outputs(ask, constant, ())] == ["its result"], "whether what hangs on no input is lost"
    node = msgspec.structs.replace(call, outputs=("Y", "", ""))
    ask.outcomes[msgspec.structs.replace(node, outputs=("Y",)).id] = Outcome(PASS)
    assert [x.own for x in outputs(ask, node, ())] == ["the first of 3, the others without a name"]
    drawn = msgspec.structs.replace(call, library="torch", operator="torch.rand_like")
    assert not [*outputs(ask, drawn, (RETURNED,))], "that may be right by chance"


def test_what_was_asked_for_all_outputs_is_asked_again_for_the_one_of_the_program() -> None:
    call = Instance("torch", "torch.topk", {"k": 1}, (Operand("input", Tensor.of(np.float32([1, 2]))),), (), {})
    own, other = msgspec.structs.replace(call, outputs=("", "output_1")), msgspec.structs.replace(call, params={"k": 2})
    target = Outcome(CRASH, "load", "RuntimeError", "no rule for this output")
    ask = Asker(None, Question(frontend="openvino-torch"))  # type: ignore[arg-type]

    def look(asked):
        ask.programs.update((x.id, x) for x in asked)
        return [ask.outcomes.setdefault(x.id, Outcome(PASS)) for x in asked]

    ask.look = look  # type: ignore[method-assign]
    ask.programs, ask.outcomes, ask.target = {other.id: other}, {other.id: target}, target
    told = alone(ask, own, target)
    assert told == [(msgspec.structs.replace(other, outputs=own.outputs), PASSES)]


def test_what_varies_is_never_told_to_fail_otherwise_by_what_one_run_returned() -> None:
    """TVM leaves the sum of nothing unwritten: a NaN of another `ord` was "otherwise", and is unwritten, too."""
    programs = [
        Instance("onnx", "Norm", {"p": p}, (Operand("X", Tensor.of(np.float32([]))),), ("Y",), {}) for p in (1, 2, 3)
    ]
    ask = Asker(None, Question(frontend="tvm-onnx"))  # type: ignore[arg-type]
    ask.look = lambda asked: [ask.outcomes[x.id] for x in asked]  # type: ignore[method-assign]
    ask.otherwise = lambda asked: True  # type: ignore[method-assign]
    ask.target = Outcome(UNSTABLE, "infer", UNSTABLE)
    ask.programs = {x.id: x for x in programs}
    shown = (
        ask.target,
        Outcome(INCONSISTENT, "infer", "nan-mask"),
        Outcome(CRASH, "load", "ValueError", "no such order"),
    )
    ask.outcomes = dict(zip(ask.programs, shown, strict=True))
    assert alone(ask, programs[0], ask.target) == [(programs[2], OTHERWISE)]


@pytest.mark.parametrize(("operator", "told"), [("RandomUniformLike", False), ("Neg", True)])
def test_what_draws_is_not_told_to_give_wrong_outputs_where_another_dtype_stops(operator: str, told: bool) -> None:
    """OpenVINO cannot load it of float64; of float32 it draws, as it should, other numbers than the reference does."""
    programs = [
        Instance("onnx", operator, {}, (Operand("X", Tensor.of(np.ones(2, x))),), ("Y",), {}) for x in ("f8", "f4")
    ]
    ask = Asker(None, Question(frontend="openvino-onnx"))  # type: ignore[arg-type]
    ask.look = lambda asked: [ask.outcomes[x.id] for x in asked]  # type: ignore[method-assign]
    ask.label = lambda asked: [x.id == programs[0].id for x in asked]  # type: ignore[method-assign]
    ask.otherwise = ask.within = lambda asked: True  # type: ignore[assignment, method-assign]
    ask.runs = lambda program: False  # type: ignore[method-assign]
    ask.programs = {x.id: x for x in programs}
    ask.target = Outcome(CRASH, "load", "RuntimeError", "the same type as out_type")
    ask.outcomes = {programs[0].id: ask.target, programs[1].id: Outcome(INCONSISTENT, "infer", "value", "output 'Y'")}
    found = alone(ask, programs[0], ask.target)
    assert found == ([(programs[1], WRONG)] if told else [])


def test_what_ends_its_process_is_no_contrast_of_what_does_not() -> None:
    """The program before it may have overwritten memory: OpenVINO's Resize does. Or a worker's settings end it, which a script
    has not: with one thread OpenVINO raises nothing, and returns what is no output."""
    own, other = (
        Instance("onnx", "Resize", {"k": k}, (Operand("X", Tensor.of(np.float32([1]))),), ("Y",), {}) for k in (0, 1)
    )
    ask = Asker(None, Question(frontend="openvino-onnx"))  # type: ignore[arg-type]
    ask.look = lambda asked: [ask.outcomes.get(x.id, Outcome(ERROR)) for x in asked]  # type: ignore[method-assign]
    ask.programs = {x.id: x for x in (own, other)}
    ask.target = Outcome(INCONSISTENT, "infer", "value", details={"output": "Y"})
    ask.outcomes = {own.id: ask.target, other.id: Outcome(ABORT, "infer", "SIGABRT")}
    assert alone(ask, own, ask.target) == []


def test_what_is_given_no_seed_promises_no_numbers() -> None:
    """With seed=0.0 two models must draw the same; without one they need not."""
    given = (Operand("input", Tensor.of(np.float32([1]))),)
    own, other, without = (
        Instance("onnx", "RandomNormalLike", x, given, ("Y",), {"opset": {"": 22}})
        for x in ({"seed": 0.0}, {"seed": 2.0}, {})
    )
    ask = Asker(None, Question(frontend="openvino-onnx"))  # type: ignore[arg-type]
    ask.look = lambda asked: [ask.outcomes.get(x.id, Outcome(ERROR)) for x in asked]  # type: ignore[method-assign]
    ask.label = lambda asked: [True for _ in asked]  # type: ignore[method-assign]
    ask.passed = lambda asked, failed, **_: list(failed)  # type: ignore[method-assign]
    ask.programs = {x.id: x for x in (own, other, without)}
    ask.target = Outcome(INCONSISTENT, "infer", "value", details={"output": "Y", "drawn": draws.SEED})
    ask.outcomes = {x.id: ask.target for x in (own, other, without)}
    assert alone(ask, own, ask.target) == [(other, FAILS)]


@pytest.mark.parametrize(
    ("numbers", "uniform"),
    [([0.0, 0.0], True), ([0.0, 1.0], False), ([2.0], False), ([np.nan, np.nan], False), ([], False)],
)
def test_what_is_one_number_again_and_again_may_be_right_by_chance(numbers: list[float], uniform: bool) -> None:
    """TVM's grid_sample takes a grid's axes for others, which padding alone does not show."""
    assert changed._is_uniform([Tensor.of(np.float32(numbers))]) is uniform
    assert not changed._is_uniform([Tensor.of(np.int64([0, 0]))]) and not changed._is_uniform(None)
    assert changed._is_uniform([Tensor.of(np.int64([1, 1]))], whole=True), "counts of another output tell nothing"


def test_an_answer_that_nobody_confirms_is_no_contrast() -> None:
    """ONNX's evaluator computes Resize of fractional scales otherwise than all compilers do."""
    own, wrong, other = (
        Instance("onnx", "Any", {"k": k}, (Operand("X", Tensor.of(np.float32([1]))),), ("Y",), {})
        for k in (0.0, 1.0, 2.0)
    )
    ask = Asker(None, Question(frontend="tvm-onnx"))  # type: ignore[arg-type]
    ask.look = lambda asked: [ask.outcomes[x.id] for x in asked]  # type: ignore[method-assign]
    ask.programs = {x.id: x for x in (wrong, other)}
    shown = Outcome(INCONSISTENT, "infer", "value", "off")
    ask.outcomes = {x.id: shown for x in (wrong, other)}
    ask.target = Outcome(CRASH, "compile", "InternalError", "Divide by zero in the kernel of it")
    assert {x.params["k"]: how for x, how in alone(ask, own, ask.target)} == {1.0: WRONG, 2.0: WRONG}
    ask.beside = [Question(frontend="onnxruntime-onnx")]
    ask.agreed = lambda program: program is other  # type: ignore[method-assign]
    assert {x.params["k"]: how for x, how in alone(ask, own, ask.target)} == {2.0: WRONG}


@pytest.mark.parametrize(
    ("operator", "symptom", "told"),
    [("torch.abs", "shape", False), ("torch.abs", "dtype", True), ("torch.zeros_like", "shape", True)],
)
def test_a_shape_whose_outputs_are_all_one_number_is_not_told_as_right(operator: str, symptom: str, told: bool) -> None:
    """What hangs on no input is one number by its nature."""
    own, other = (
        Instance("torch", operator, {}, (Operand("input", Tensor.of(np.ones(shape, np.float32))),), ("",), {})
        for shape in ((2,), (3,))
    )
    ask = Asker(None, Question(frontend="tvm-torch"))  # type: ignore[arg-type]
    ask.reference = lambda program: [Tensor.of(np.float32([0, 0]))]  # type: ignore[method-assign]
    ask.passes_afresh = lambda program: True  # type: ignore[method-assign]
    change = contrasts.change(other, own)
    assert change is not None and change.form == contrasts.SHAPE
    assert changed._surely(ask, Outcome(INCONSISTENT, "infer", symptom), own, other, change) is told


@pytest.mark.parametrize(
    ("off", "dtype", "told"), [(0.08, "int32", False), (1.5, "int32", True), (0.08, "float64", True)]
)
def test_what_is_rounded_to_whole_numbers_is_not_told_as_right(off: float, dtype: str, told: bool) -> None:
    """A resized image of integers is 0 where 0.39 is expected, and 0.31 is returned, of floats."""
    own, other = (
        Instance("onnx", "Resize", {}, (Operand("X", Tensor.of(np.array([0, 1], x))),), ("Y",), {})
        for x in ("float32", dtype)
    )
    ask = Asker(None, Question(frontend="openvino-onnx"))  # type: ignore[arg-type]
    ask.reference = lambda x: [Tensor.of(np.array([0.39, 1], x.inputs[0].value.dtype))]  # type: ignore
    ask.passes_afresh = lambda program: True  # type: ignore[method-assign]
    change = contrasts.change(other, own)
    assert change is not None and change.form == contrasts.DTYPE
    target = Outcome(INCONSISTENT, "infer", "value", details={"max_abs": off})
    assert changed._surely(ask, target, own, other, change) is told


@pytest.mark.parametrize("signed", [True, False])
def test_what_is_right_by_its_whole_numbers_alone_is_no_contrast(signed: bool) -> None:
    """MNN's cast to an integer does nothing, which 1.0 does not show: with fractions it fails as its own does."""
    own, other = (
        Instance("keras", "Cast", {"dtype": x}, (Operand("x", Tensor.of(np.float32([1]))),), ("",), {}) for x in "ab"
    )
    fractions = refilled.signed(other)
    assert fractions is not None and fractions.inputs[0].value == Tensor.of(np.float32(refilled.SIGNED[:1]))
    assert refilled.signed(fractions) is None
    ask = Asker(None, Question(frontend="mnn-keras"))  # type: ignore[arg-type]
    ask.look = lambda asked: [ask.outcomes.setdefault(x.id, Outcome(PASS)) for x in asked]  # type: ignore[method-assign]
    ask.programs = {x.id: x for x in (own, other)}
    ask.target = Outcome(INCONSISTENT, "infer", "value", details={"output": "Y"})
    ask.outcomes = {own.id: ask.target, other.id: Outcome(PASS)}
    if signed:
        ask.outcomes[fractions.id] = ask.target
    assert [x for x, how in alone(ask, own, ask.target) if how == PASSES and x is other] == ([] if signed else [other])


@pytest.mark.parametrize(
    ("line", "told"),
    [("resize.py:154", True), ("resize.py:150", False), ("", True)],
    ids=["there", "elsewhere", "nowhere"],
)
def test_what_stops_at_another_line_does_not_fail_so(line: str, told: bool) -> None:
    """TVM divides by an output length of 1 less 1, and by one of 0 elsewhere: its words are the same."""
    own, other = (
        Instance("onnx", "Resize", {}, (Operand("X", Tensor.of(np.ones(x, np.float32))),), ("Y",), {}) for x in (2, 1)
    )
    stops = Outcome(CRASH, "compile", "ValueError", "Divide by zero", conversion_function="Resize@resize.py:154")
    ask = Asker(None, Question(frontend="tvm-onnx"))  # type: ignore[arg-type]
    ask.look = lambda asked: [ask.outcomes.setdefault(x.id, Outcome(PASS)) for x in asked]  # type: ignore[method-assign]
    ask.programs, ask.target = {x.id: x for x in (own, other)}, stops
    ask.outcomes = {own.id: stops, other.id: msgspec.structs.replace(stops, conversion_function=f"Resize@{line}")}
    assert [how for x, how in alone(ask, own, stops) if x is other] == ([contrasts.FAILS] if told else [])
    native = (
        "tvm/relax/pipeline.py:<module>:1",
        f"tvm/topi/{line.replace(':', ':<module>:')}",
        "/src/ir/fold.h:<module>:254",
    )
    seen = Seen((Raised(("builtins:ValueError",), "Divide by zero"),), "compiler", native)
    here = Seen(seen.raised, "compiler", (native[0], "tvm/topi/resize.py:<module>:154", native[2]))
    ways = [msgspec.structs.replace(stops, conversion_function="onnx_frontend:Resize", seen=x) for x in (here, seen)]
    assert not line or changed._elsewhere(*ways) is not told, "below what its operators are converted to"


def test_what_is_right_of_zero_by_its_dtype_alone_is_no_contrast() -> None:
    """OpenVINO's MaxPool loses the index of the least number of any dtype: int8 was told as right, of 0."""
    own, other, least = (
        Instance("onnx", "MaxPool", {}, (Operand("X", Tensor.of(np.array([[[x]]], dtype))),), ("Y",), {})
        for x, dtype in ((0, "uint8"), (0, "int8"), (-128, "int8"))
    )
    ask = Asker(None, Question(frontend="openvino-onnx"))  # type: ignore[arg-type]
    ask.look = lambda asked: [ask.outcomes.setdefault(x.id, Outcome(PASS)) for x in asked]  # type: ignore[method-assign]
    ask.within = bool  # type: ignore[method-assign, assignment]
    assert changed._borne(ask, [(other, PASSES)], own) == [(other, PASSES)]
    ask.outcomes[least.id] = Outcome(INCONSISTENT, "infer", "value")
    assert not changed._borne(ask, [(other, PASSES)], own)


def test_numbers_are_asked_about_though_the_time_for_others_is_over() -> None:
    """Of cdist on OpenVINO it was told as right what fails of negative differences, where there was no time to ask."""
    own, other = (
        Instance("torch", "Cdist", {"p": x}, (Operand("x", Tensor.of(np.float32([1]))),), ("",), {}) for x in (1.0, 2.0)
    )
    ask = Asker(None, Question(frontend="openvino-torch"))  # type: ignore[arg-type]
    ask.programs = {x.id: x for x in (own, other)}
    ask.target = Outcome(INCONSISTENT, "infer", "value", details={"output": "Y"})
    ask.outcomes = {own.id: ask.target, other.id: Outcome(PASS)}
    ask.budget = Budget(1e9)
    ask.budget.spent = lambda: True  # type: ignore[method-assign]

    def look(asked: list[Program]) -> list[Outcome]:
        if asked and ask.budget is not None and ask.budget.spent():
            raise Spent
        ask.outcomes |= {x.id: msgspec.structs.replace(ask.target, symptom="nan-mask") for x in asked}
        return [ask.outcomes[x.id] for x in asked]

    ask.look = look  # type: ignore[method-assign, assignment]
    assert not [x for x, how in changed._borne(ask, [(other, PASSES)], own) if how == PASSES]


@pytest.mark.parametrize(
    ("own", "other", "told"),
    [("ABS", "NO_OPERATOR", False), ("ABS", "ABS", True), ("NO_OPERATOR", "NO_OPERATOR", True)],
)
def test_what_is_right_since_no_operator_is_left_of_it_is_no_contrast(own: str, other: str, told: bool) -> None:
    """TensorFlow Lite's abs of unsigned integers is its input."""
    given, typed = (
        Instance("keras", "keras.ops.abs", {}, (Operand("x", Tensor.of(np.ones(2, x))),), ("",), {})
        for x in ("float32", "uint8")
    )
    ask = Asker(None, Question(frontend="tflite-keras"))  # type: ignore[arg-type]
    ask.look = lambda asked: [ask.outcomes.setdefault(x.id, Outcome(PASS)) for x in asked]  # type: ignore[method-assign]
    ask.lowered = lambda program: [own if program is given else other]  # type: ignore[method-assign]
    ask.programs = {x.id: x for x in (given, typed)}
    ask.target = Outcome(CRASH, "infer", "RuntimeError", "it has no tensor of that")
    ask.outcomes = {given.id: ask.target, typed.id: Outcome(PASS)}
    assert alone(ask, given, ask.target) == ([(typed, PASSES)] if told else [])


@pytest.mark.parametrize(("own", "told"), [(False, False), (True, True)])
def test_what_is_wrong_beyond_its_dtype_is_no_contrast_of_what_is_not(own: bool, told: bool, monkeypatch: Any) -> None:
    """OpenVINO's power of int64 is rounded to float32; that of int8 ends at 127."""
    given, other = (
        Instance("torch", "torch.pow", {}, (Operand("x", Tensor.of(np.ones(2, x))),), ("",), {})
        for x in ("int64", "int8")
    )
    monkeypatch.setattr(
        changed.exact, "beyond", lambda _, x, shown: "243, which int8 does not hold" if own or x is other else ""
    )
    ask = Asker(None, Question(frontend="openvino-torch"))  # type: ignore[arg-type]
    ask.outcomes = {x.id: Outcome(INCONSISTENT, "infer", "value") for x in (given, other)}
    found = changed._within_bounds(ask, [(other, FAILS)], given, ask.outcomes[given.id])
    assert found == ([(other, FAILS)] if told else [])


@pytest.mark.parametrize(
    ("without", "right", "told"), [(1.94, True, ("antialias",)), (1.94, False, ()), (1.0, True, ())]
)
def test_of_what_it_is_as_if_it_were_not_given_is_told(without: float, right: bool, told: tuple[str, ...]) -> None:
    """OpenVINO resizes as without `antialias`; where that is 1 it may be so by chance."""
    own = Instance("onnx", "Resize", {"antialias": 1}, (Operand("X", Tensor.of(np.float32([1]))),), ("Y",), {})
    ask = Asker(None, Question(frontend="openvino-onnx"))  # type: ignore[arg-type]
    expected = [Tensor.of(np.float32([without]))]
    ask.outcomes[own.id] = Outcome(INCONSISTENT, "infer", "value")
    ask.look = lambda asked: [Outcome(ERROR if "antialias" in x.params else PASS) for x in asked]  # type: ignore
    ask.reference = lambda program: expected  # type: ignore[method-assign, return-value, assignment]
    ask.stated = lambda of, told: Outcome(PASS if right and (of, told) == (own, expected) else ERROR)  # type: ignore
    assert changed.unheeded(ask, own, {"Resize": {"antialias": 0}}) == told
    ask.outcomes[own.id] = Outcome(CRASH, "load")
    assert changed.unheeded(ask, own, {}) == ()


@pytest.mark.parametrize(
    ("verdict", "returns", "told"), [(PASS, 3.0, ()), (PASS, 2.0, ("bias",)), (INCONSISTENT, 3.0, ("bias",))]
)
def test_what_is_right_with_another_value_is_read(verdict: str, returns: float, told: tuple[str, ...]) -> None:
    """OpenVINO cuts the bias of an LRN off: 1.7 is as if none were given, and 2 is right."""
    x = (Operand("X", Tensor.of(np.float32([1]))),)
    own, other, none = (Instance("onnx", "LRN", p, x, ("Y",), {}) for p in ({"bias": 1.7}, {"bias": 2.0}, {}))
    of = {none.id: [Tensor.of(np.float32([2]))], other.id: [Tensor.of(np.float32([returns]))]}
    ask = Asker(None, Question(frontend="openvino-onnx"))  # type: ignore[arg-type]
    ask.outcomes = {own.id: Outcome(INCONSISTENT, "infer", "value"), other.id: Outcome(verdict, "infer", "value")}
    ask.programs = {own.id: own, other.id: other}
    ask.look = lambda asked: [Outcome(PASS if x == none else INCONSISTENT, "infer", "value") for x in asked]  # type: ignore
    ask.reference = lambda program: of[program.id]  # type: ignore[method-assign, return-value, assignment]
    ask.stated = lambda x, told: Outcome(PASS if x == own or of[x.id] == told else ERROR)  # type: ignore
    assert changed.unheeded(ask, own, {"LRN": {"bias": 1.0}}) == told


@pytest.mark.parametrize(
    ("verdict", "operator", "sure", "told"),
    [
        (PASS, "DFT", False, "passes"),
        (INCONSISTENT, "DFT", True, "wrong"),
        (INCONSISTENT, "DFT", False, ""),  # nobody confirms what is expected
        (CRASH, "DFT", True, ""),
        ("screened", "RandomUniformLike", False, "passes"),
        ("screened", "DFT", False, ""),
    ],
)
def test_how_an_input_comes_is_right_only_if_it_was_seen(
    verdict: str, operator: str, sure: bool, told: str, monkeypatch: Any
) -> None:
    """OpenVINO's DFT takes a length that is a constant, and returns a wrong shape."""
    own = Instance("onnx", operator, {}, (Operand("length", Tensor.of(np.int64([1]))),), ("Y",), {})
    monkeypatch.setattr(changed.deciding, "without", lambda *_: [(own, Outcome(verdict))])
    ask = Asker(None, Question(frontend="f"))  # type: ignore[arg-type]
    ask.agreed = lambda program: sure  # type: ignore[method-assign]
    rows = [*changed.comes(ask, own, ["length is no constant", "k=1"], {})]
    assert [(bool(x.passes), bool(x.wrong), x.own) for x in rows] == [
        (told == "passes", told == "wrong", "an input") for _ in filter(None, [told])
    ]


@pytest.mark.parametrize(("first", "second", "told"), [(CRASH, PASS, True), (CRASH, CRASH, False), (PASS, PASS, False)])
def test_that_a_first_input_is_not_used_is_told_of_what_hangs_on_none(first: str, second: str, told: bool) -> None:
    """OpenVINO takes the first input of an exported program for the module itself where nothing uses it."""
    ones = (Operand("input", Tensor.of(np.float32([1, 2]))),)
    call = Instance("torch", "torch.Tensor.new_ones", {"size": 1}, ones, (), {"kind": "method"})
    ask = Asker(None, Question(frontend="openvino-torch"))  # type: ignore[arg-type]
    said = "Type/shape was set to non-existent input"
    ask.outcomes = {call.id: Outcome(CRASH, "load", "OpConversionFailure", said)}

    def shows(x: Any) -> Outcome:
        assert [y.operator == call.operator for y in x.calls].count(True) == 1 and x.outputs == ("result", "negated")
        own = next(y for y in x.calls if y.operator == call.operator)
        return Outcome(first if own.inputs[0].of == "first" else second, "load", "GeneralFailure", said)

    ask.look = lambda asked: [*map(shows, asked)]  # type: ignore[method-assign]
    rows = [*changed._unread(ask, call)]
    assert [(x.what, x.fails) for x in rows] == [(contrasts.UNREAD, (contrasts.FIRST,))] * told
    assert not [*changed._unread(Asker(None, Question(frontend="f")), call)], "it was not asked about"  # type: ignore


def test_of_a_seed_that_promises_nothing_others_are_asked_about() -> None:
    """OpenVINO takes a seed of 0 for none: what draws as it may, of each other one, is right."""
    data = (Operand("input", Tensor.of(np.float32([1, 2]))),)
    own = Instance("onnx", "RandomUniformLike", {"seed": 0.0}, data, ("Y",), {"opset": {"": 22}})
    wrong = Outcome(INCONSISTENT, "infer", "value", details={"drawn": draws.SEED})
    ask = Asker(None, Question(frontend="openvino-onnx"))  # type: ignore[arg-type]

    def look(asked: Any) -> list[Outcome]:
        ask.programs.update((x.id, x) for x in asked)
        for x in asked:
            right = Outcome("screened", "infer", "value", details={"screen": "nondeterministic"})
            ask.outcomes.setdefault(x.id, wrong if x.params["seed"] == 0 else right)
        return [ask.outcomes[x.id] for x in asked]

    ask.look = look  # type: ignore[method-assign]
    ask.look([own])
    ask.target = wrong
    told = {x.params["seed"]: how for x, how in alone(ask, own, wrong) if x != own}
    assert told == {1.0: PASSES, 2.0: PASSES}
