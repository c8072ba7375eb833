"""Who says that a program is none, or a feature that is wanting, and whose word settles it."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from filled import judged

from opera.compilers import NODE
from opera.compilers.limits import limits
from opera.libraries.documented import Wrong
from opera.libraries.onnx import schemas
from opera.programs.program import Instance, Operand
from opera.programs.values import Tensor
from opera.programs.verdicts import CRASH, UNEXPORTED, Outcome
from opera.store.rows import Verdict
from opera.triage.blame import Blame
from opera.triage.evidence import Evidence
from opera.triage.lawful import arising, by_route, dying, invalid, optional, refused, unexported
from opera.triage.part import OTHER, ROUTE, shows
from opera.triage.reducer.asking import captured
from opera.triage.reduction import Reduction
from opera.triage.reproducers.choice import Choice


def blamed(*rows: tuple[str, str, str]) -> Blame:
    """Return what was asked: of each row the way, the verdict, and its kind."""
    return Blame(
        "F1", "e", "t", "unknown", "", tuple(Evidence(way, shows(Outcome(x)), kind=kind) for way, x, kind in rows)
    )


def shown(frontend: str, verdict: str = CRASH, says: str = "the rank must be greater than 0") -> Choice:
    failed = judged("t", frontend, "inputs", "e", verdict, "load")
    failed = msgspec.structs.replace(failed, outcome=msgspec.structs.replace(failed.outcome, message=says))
    return Choice(failed, failed)


def test_who_fails_on_what_nobody_runs_is_told_where_no_library_s_own_word_stands() -> None:
    def told(frontend: str, *seen: str, verdict: str = CRASH) -> str:
        ways = ("onnxruntime 1", "tvm 0")
        return dying(shown(frontend, verdict), blamed(*((way, x, OTHER) for way, x in zip(ways, seen, strict=False))))

    assert told("openvino-onnx", "abort", "crash") == "onnxruntime 1" == told("openvino-onnx", "refused-claimed")
    assert told("openvino-onnx", "inconsistent"), "it runs, and gives another answer"
    assert not told("openvino-onnx", "abort", "pass") and not told("openvino-onnx", "unsupported", "crash")
    assert not told("openvino-onnx", "abort", verdict="inconsistent"), "it may give the same wrong answer"
    assert not told("openvino-torch", "abort"), "its own word stands"
    assert not dying(shown("openvino-onnx"), None)


def test_what_the_library_cannot_write_down_itself_is_not_laid_on_an_exporter() -> None:
    """TensorFlow's freezing adds a function twice of `ctc_loss`: its SavedModel says so, too."""
    says = "Attempting to add a duplicate function with name: body_Jy"

    def of(frontend: str, variant: str, message: str, verdict: str = UNEXPORTED, symptom: str = "Invalid") -> Verdict:
        found = judged("t", frontend, variant, "e", verdict, "export")
        return msgspec.structs.replace(found, outcome=Outcome(verdict, "export", symptom, message))

    crash = of("onnxexport-keras", "live", says, CRASH)
    saved = of("openvino-keras", "saved-model", f"saved_model: {says[:-2]}xP")
    assert unexported(crash, lambda: [saved]) == "a SavedModel"
    for others in (
        [of("openvino-keras", "onnx", f"onnx: {says}")],  # the exporter again
        [of("openvino-keras", "saved-model", "saved_model: no such layer")],
        [of("openvino-keras", "saved-model", saved.outcome.message, symptom="ValueError")],
        [],
    ):
        assert not unexported(crash, lambda of=others: of)
    assert not unexported(of("openvino-keras", "live", says, CRASH), lambda: [saved]), "it exports nothing"


def test_what_a_library_runs_itself_is_valid_and_what_an_evaluator_takes_is_asked_about() -> None:
    """PyTorch takes the k largest of a 0-d tensor, as its own samples do; of an exporter its file is refused."""
    rows = blamed(("onnxruntime 1", CRASH, OTHER))
    assert invalid(shown("openvino-onnx"), rows) and not invalid(shown("openvino-onnx", says="no such key"), rows)
    assert not invalid(shown("openvino-onnx"), blamed(("onnxruntime 1", "pass", OTHER)))
    for own in ("openvino-torch", "openvino-keras", "onnxexport-torch"):
        assert not invalid(shown(own), rows)


@pytest.mark.parametrize(
    ("operator", "told", "admitted"),
    [
        ("LSTM", ("hidden_size left out",), True),
        ("LSTM", ("hidden_size left out", "float64 inputs"), True),
        ("LSTM", ("float64 inputs",), False),
        ("Concat", ("axis left out",), False),
        ("Clip", ("min or max left out",), True),
    ],
)
def test_what_a_schema_does_not_require_may_be_left_out(operator: str, told: tuple[str, ...], admitted: bool) -> None:
    """Without `hidden_size` two compilers load no LSTM: "required: False" answers whether the documentation admits that."""
    call = Instance("onnx", operator, {}, (Operand("X", Tensor.of(np.ones(2, "f4"))),), ("Y",), {"opset": {"": 22}})
    of = Reduction("F1", "e", "openvino-onnx", "inputs", "t", captured(call).form(), Outcome(CRASH), besides=told)
    chosen = shown("openvino-onnx")._replace(reduction=of)
    rows = blamed(("onnxruntime 1", CRASH, OTHER))
    assert optional(chosen) is admitted
    assert invalid(chosen, rows) is not admitted and bool(dying(chosen, rows)) is not admitted


@pytest.mark.parametrize(
    ("routes", "told"),
    [
        (("unsupported", "unsupported"), "as an exported program and by its ONNX file"),
        (("of f64", "error"), "as an exported program"),
        (("unsupported", "error"), ""),
        (("of f64",), "as an exported program"),
        (("unsupported",), ""),
        (("no rule",), ""),
        (("no rule", "unsupported"), "as an exported program and by its ONNX file"),
        (("of f64", "unexported"), "as an exported program"),
        (("pass", "of f64"), ""),
        (("error", "of f64"), ""),  # what it says is of the exporter's file
        (("unsupported", "pass"), ""),
        (("unsupported", "crash"), ""),
        ((), ""),
    ],
)
def test_what_no_other_route_supports_asks_for_a_feature(routes: tuple[str, ...], told: str) -> None:
    """A 5-d `grid_sample`: one route has no rule for it, one refuses it, and the third was called ready. One alone that has no
    rule is no word of what the compiler supports; one that refuses a dtype is (`fft2` of float64)."""
    words = {
        "no rule": "no conversion rule for aten::grid_sampler",
        "of f64": "input element type must be f32, f16 or bf16",
    }
    outcomes = {x: Outcome("unsupported", "load", "RuntimeError", says) for x, says in words.items()}
    shows_ = [shows(outcomes.get(x, Outcome(x))) for x in routes]
    rows = zip(("exported-program", "onnx"), shows_, strict=False)
    evidence = (Evidence(f"openvino-torch by its variant {x}", says, kind=ROUTE) for x, says in rows)
    laid = msgspec.structs.replace(blamed(), evidence=tuple(evidence))
    chosen = shown("openvino-torch")
    assert refused(chosen, laid) == told
    assert not refused(shown("openvino-onnx"), laid) and not refused(shown("openvino-torch", "inconsistent"), laid)
    assert not refused(chosen._replace(whole=Reduction("F", "e", "f", "v", "t", {}, Outcome(CRASH))), laid)


def test_complex_inputs_are_no_type_of_the_cpu_plugin_whatever_it_says_of_them() -> None:
    crash = Outcome(CRASH, "load", "OpConversionFailure", "Axis 1 out of the tensor rank range [-1, 0].")
    held = [x for x in limits("openvino") if x.holds(["torch.imag"], [Tensor.of(np.complex64([1j]))], crash)]
    assert [x.means.partition(" are")[0] for x in held] == ["complex numbers"]
    assert not [x for x in limits("openvino") if x.holds(["torch.imag"], [Tensor.of(np.float32([1]))], crash)]


def test_that_a_schema_does_not_require_what_is_left_out_is_quoted() -> None:
    """`hidden_size` has no default, and no sentence says what becomes of it: "required: False" is the answer."""
    call = Instance(
        "onnx", "LSTM", {}, (Operand("X", Tensor.of(np.ones((1, 1, 1), "f4"))),), ("Y",), {"opset": {"": 22}}
    )
    [said] = [
        x for x in schemas.quotes(call, ["hidden_size"], Wrong(omitted=("hidden_size",))) if "hidden_size" in x.about
    ]
    assert said.text == "Number of neurons in the hidden layer (required: False)" and not said.general
    [said] = [x for x in schemas.quotes(call, ["initial_h"], Wrong(omitted=("initial_h",))) if "initial_h" in x.about]
    assert "not specified" in said.text, "where a sentence says what becomes of it, that is quoted"
    concat = Instance("onnx", "Concat", {}, (), ("y",), {"opset": {"": 13}})
    assert not [x for x in schemas.quotes(concat, ["axis"], Wrong(omitted=("axis",))) if "required" in x.text]


def test_what_the_same_frontend_runs_when_it_is_given_the_model_otherwise_it_supports() -> None:
    def runs(route: str, verdict: str, variant: str = "live", remark: str = "") -> bool:
        chosen = shown("openvino-keras", says="No conversion rule found for operations: ComplexTypeMark")
        failed = msgspec.structs.replace(chosen.verdict, variant=variant)
        row = Evidence(f"openvino-keras by its variant {route}", shows(Outcome(verdict)), remark, ROUTE)
        return by_route(Choice(failed, failed), Blame("F1", "e", "t", "unknown", "", (row,)))

    assert runs("saved-model", "pass") and not runs("saved-model", "crash") and not runs("saved-model", "unsupported")
    assert not runs("saved-model", "pass", remark="with several elements it fails: wrong"), "of one element it is luck"
    assert not runs("onnx", "pass") and not runs("saved-model", "pass", "onnx"), (
        "an exporter made other operators of it"
    )
    assert not by_route(shown("openvino-keras"), None)


@pytest.mark.parametrize(
    ("number", "remark", "not_finite", "told"),
    [
        (1.0, "Minimum () gives 255, not nan", False, True),
        (1.0, "Minimum () gives 255, not 2", False, False),
        (np.nan, "Minimum () gives 255, not nan", False, False),
        (1.0, "Minimum () gives 255, not nan", True, False),
    ],
)
def test_a_nan_that_arises_inside_of_finite_numbers_is_told(number, remark, not_finite, told) -> None:
    program = Instance("keras", "keras.ops.abs", {}, (Operand("x", Tensor.of(np.float32([number]))),), ("y",), {})
    outcome = Outcome("inconsistent", "infer", "value", details={"not_finite": not_finite})
    failed = msgspec.structs.replace(judged("t", "openvino-keras", "live", "e", "inconsistent"), outcome=outcome)
    of = Reduction("F1", "e", "openvino-keras", "live", "t", captured(program).form(), outcome)
    laid = Blame("F1", "e", "t", "kernel", "", (Evidence("an operator", "is wrong by itself", remark, NODE),))
    assert arising(Choice(failed, failed, of), laid) == (remark if told else "")
    assert not arising(Choice(failed, failed, of), None) and not arising(Choice(failed, failed), laid)
