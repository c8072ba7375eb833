"""By which route what is shown fails, and how else it may be given: what titles tell of it."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from keras_instance import instance

from opera import compilers
from opera.compilers import BODY, GIVEN, LAWFUL, onnxruntime
from opera.compilers.shared.packing import Unlawful
from opera.programs.program import Captured, Instance, Operand, Provenance
from opera.programs.values import Tensor
from opera.programs.verdicts import CRASH, ERROR, INCONSISTENT, PASS, UNSTABLE, UNSUPPORTED, Outcome
from opera.store.rows import Verdict
from opera.triage import blame, part
from opera.triage.blame import Subject
from opera.triage.contrasts import FIRST, RESULT, UNREAD, Contrast
from opera.triage.part import AS_FOUND, OTHER, ROUTE, SEVERAL, Tried
from opera.triage.reducer.asking import captured
from opera.triage.reduction import Reduction
from opera.triage.reproducers.choice import Choice
from opera.triage.sentence import CONSTANT_RESULT, UNUSED

WRONG = Outcome(
    INCONSISTENT, "infer", "value", "output 'y': 1 of 2", details={"output": "y", "index": "[0]", "actual": 3.0}
)
ANOTHER = Outcome(
    INCONSISTENT, "infer", "value", "output 'y': 2 of 2", details={"output": "y", "index": "[0]", "actual": 4.0}
)
RIGHT = Outcome(PASS)
NOTHING = Outcome(UNSUPPORTED, "load")


def crash(stage: str, message: str = "it failed") -> Outcome:
    return Outcome(CRASH, stage, "RuntimeError", message)


def form(symptom: str, expected: str, actual: str, output: str = "y") -> Outcome:
    seen = "shape " if symptom == "shape" else ""
    text = f"output {output!r}: {seen}{expected} is expected, {actual} was returned"
    return Outcome(INCONSISTENT, "infer", symptom, text, details={"output": output})


def test_what_another_route_shows_is_told_as_far_as_the_unreduced_test_bears_it_out() -> None:
    about = Subject("F1", "e", "openvino-torch", "exported-program", "t", WRONG)
    tried = [Tried(AS_FOUND, "now", WRONG), Tried(ROUTE, "openvino-torch by its variant torchscript", RIGHT)]
    failed = Verdict("t", "openvino-torch", "exported-program", "e", WRONG, "F1", "")
    for unconfirmed, told in ((frozenset(), "; as TorchScript this model is right"), (frozenset(["torchscript"]), "")):
        laid = blame.laid(msgspec.structs.replace(about, unconfirmed=unconfirmed), tried, 0.0)
        assert blame.route(Choice(failed, failed), laid) == f"as an exported program{told}"
    tried[1] = Tried(ROUTE, tried[1].way, WRONG)
    assert blame.route(Choice(failed, failed), blame.laid(about, tried, 0.0)) == ""  # it fails alike
    stopped = msgspec.structs.replace(failed, outcome=crash("load"))
    for message, route in (("it failed", ""), ("a tensor is missing here", "as an exported program")):
        rows = [Tried(AS_FOUND, "now", crash("load")), Tried(ROUTE, tried[1].way, crash("load", message))]
        laid = blame.laid(msgspec.structs.replace(about, seen=crash("load")), rows, 0.0)
        assert blame.route(Choice(stopped, stopped), laid) == route


def test_what_is_right_of_one_element_alone_is_not_told_as_right() -> None:
    about = Subject("F1", "e", "openvino-torch", "exported-program", "t", WRONG)
    route, other = "openvino-torch by its variant torchscript", "tvm 0.27.0"
    tried = [Tried(AS_FOUND, "now", WRONG), Tried(ROUTE, route, RIGHT), Tried(OTHER, other, RIGHT)]
    failed = Verdict("t", "openvino-torch", "exported-program", "e", WRONG, "F1", "")
    for shown, lucky in ((RIGHT, False), (Outcome("invalid"), False), (NOTHING, False), (WRONG, True), (ANOTHER, True)):
        rows = [*tried, *(Tried(SEVERAL, way, x) for way in (route, other) for x in (RIGHT, shown))]
        laid = blame.laid(about, rows, 0.0)
        assert [x.lucky for x in laid.evidence if x.kind in (ROUTE, OTHER)] == [lucky, lucky]
        assert ("is right" in blame.route(Choice(failed, failed), laid)) is not lucky
        assert ("it passes by way of" in laid.because) is not lucky
        assert sum(map(len, (x.remark for x in laid.evidence))) == 0 or lucky
    apart = msgspec.structs.replace(WRONG, details={"output": "z", "wrong": {"z": "value"}})
    assert part.lost([Tried(SEVERAL, route, apart)], WRONG) == [], "it is another output"


def test_a_route_by_which_what_is_drawn_has_another_form_does_otherwise() -> None:
    constant = msgspec.structs.replace(WRONG, details={**WRONG.details, "drawn": "constant", "why": "the same"})
    about = Subject("F1", "e", "openvino-torch", "torchscript", "t", constant, random=True, drawn=True)
    failed = Verdict("t", "openvino-torch", "torchscript", "e", constant, "F1", "")
    for shown, route in ((Outcome(INCONSISTENT, "infer", "shape"), "as TorchScript"), (WRONG, "")):
        tried = [
            Tried(AS_FOUND, "now", constant),
            Tried(ROUTE, "openvino-torch by its variant exported-program", shown),
        ]
        assert blame.route(Choice(failed, failed), blame.laid(about, tried, 0.0)) == route


def test_the_rule_that_is_broken_and_the_definition_that_is_wrong_are_told() -> None:
    about = Subject("F1", "e", "tvm-onnx", "inputs", "t", crash("compile"))
    broken = Outcome(
        ERROR, "compile", Unlawful.__name__, "the body of Loop has an input (inner_3) without a dtype (layout=NHWC)"
    )
    failed = Verdict("t", "tvm-onnx", "inputs", "e", crash("compile"), "F1", "")
    laid = blame.laid(about, [Tried(AS_FOUND, "now", crash("compile")), Tried(LAWFUL, "the module", broken)], 0.0)
    assert blame.route(Choice(failed, failed), laid) == "the body of Loop has an input without a dtype (layout=NHWC)"
    assert blame.route(Choice(failed, failed), msgspec.structs.replace(laid, because="something else")) == ""
    way = onnxruntime.BODIES[0].about
    tried = [Tried(AS_FOUND, "now", WRONG), Tried(BODY, way, WRONG)]
    laid = blame.laid(Subject("F1", "e", "onnxruntime-onnx", "inputs", "t", WRONG), tried, 0.0)
    assert (laid.verdict, blame.body(laid)) == ("library", "ONNX's own function body")
    elsewhere = msgspec.structs.replace(laid, verdict="kernel")
    assert blame.body(elsewhere) == blame.body(None) == ""
    call = Instance("onnx", "Abs", {}, (Operand("X", Tensor.of(np.ones(1, "f4"))),), ("Y",), {"opset": {"": 13}})
    form = Captured(call, Provenance("s", "f", "t")).form()
    found = Reduction("F1", "e", "onnxruntime-onnx", "inputs", "t", form, WRONG, near=(15, 1), explained=False)
    shown = Choice(failed, failed, found)
    assert shown.unexplained == (15, 1) and not shown.firm
    drawn = msgspec.structs.replace(
        failed, outcome=msgspec.structs.replace(WRONG, details={"drawn": "unlike", "why": "0"})
    )
    assert shown._replace(verdict=drawn).firm  # some parameters hide how numbers are drawn


@pytest.mark.parametrize(("says", "told"), [("REFLECT demands more", False), ("out of range", True)])
def test_what_says_the_same_later_on_does_not_fail_otherwise(says: str, told: bool) -> None:
    """OpenVINO checks a pad when it converts a model of known shapes, and else when it runs it."""
    seen = Outcome(CRASH, "load", "OpConversionFailure", "REFLECT demands more")
    about = Subject("F1", "e", "openvino-torch", "torchscript", "t", seen)
    way = next(iter(compilers.given("openvino", "torch")))
    later = Outcome(CRASH, "infer", "RuntimeError", says)
    laid = blame.laid(about, [Tried(AS_FOUND, "now", seen), Tried(GIVEN, way, later)], 0.0)
    failed = Verdict("t", "openvino-torch", "torchscript", "e", seen, "F1", "")
    assert ("it fails otherwise" in blame.route(Choice(failed, failed), laid)) is told


def test_what_varies_or_is_drawn_is_right_by_no_setting() -> None:
    """Memory that nobody wrote may hold the right number, once."""
    about = Subject("F1", "e", "tvm-onnx", "inputs", "t", WRONG)
    way = next(iter(compilers.given("tvm", "onnx")))
    laid = blame.laid(about, [Tried(AS_FOUND, "now", WRONG), Tried(GIVEN, way, RIGHT)], 0.0)
    drawn = msgspec.structs.replace(WRONG, details={"drawn": "range", "why": "output 0 holds -2"})
    varies = msgspec.structs.replace(WRONG, verdict=UNSTABLE)
    for outcome, told in ((WRONG, "without keep_params_in_input this model is right"), (drawn, ""), (varies, "")):
        failed = Verdict("t", "tvm-onnx", "inputs", "e", outcome, "F1", "")
        by = blame.route(Choice(failed, failed), laid)
        assert by.endswith(told) and bool(by) is bool(told)


@pytest.mark.parametrize(
    ("operator", "dtype", "symptom", "told"),
    [
        ("zeros_like", "float32", "count", True),
        ("zeros_like", "float32", "dtype", False),
        ("zeros_like", "float16", "count", False),
        ("abs", "float32", "count", False),
    ],
)
def test_what_loses_a_constant_is_told_as_that(operator: str, dtype: str, symptom: str, told: bool) -> None:
    """OpenVINO drops an output that is a constant of TensorFlow's graph: that there are few elements makes it one."""
    shown = msgspec.structs.replace(WRONG, symptom=symptom)
    failed = Verdict("t", "openvino-keras", "live", "e", shown, "F1", "")
    form = captured(instance(f"keras.ops.{operator}", {}, x=np.ones(2, dtype))).form()
    found = Reduction("F1", "e", "openvino-keras", "live", "t", form, shown)
    assert (CONSTANT_RESULT in blame.route(Choice(failed, failed, found), None)) is told
    unread = msgspec.structs.replace(
        found, contrasts=(Contrast(UNREAD, "the only one", (FIRST,), ("the last of two",)),)
    )
    assert (
        UNUSED in blame.route(Choice(failed, failed, unread), None)
    ) is told  # it drops an input, whatever is returned
    taken = (Contrast(RESULT, "an output of the model", passes=("what negative takes",)),)
    found = msgspec.structs.replace(found, contrasts=taken)  # which hangs on no input either, and is right
    assert CONSTANT_RESULT not in blame.route(Choice(failed, failed, found), None)
