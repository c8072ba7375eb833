"""Which part is wrong: the rule, and what is seen of real compilers whose conversion, kernel or library is wrong on purpose."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
from drafted import ABOUT, FINDING, drafted
from faults.onnx_faults import Silent

from opera import compilers
from opera.compilers import (
    APART,
    BODY,
    COUNTED,
    DECLARED,
    FILE,
    LAWFUL,
    LESS,
    MADE,
    NODE,
    OWN,
    SOURCE,
    onnxruntime,
)
from opera.compilers.onnxruntime import PLACES
from opera.compilers.shared.packing import Faulty, Made, Read, Unlawful
from opera.libraries.onnx import library
from opera.programs.program import Instance, Operand
from opera.programs.values import Tensor
from opera.programs.verdicts import (
    AGREES,
    CRASH,
    ERROR,
    INCONSISTENT,
    PASS,
    SCREENED,
    UNSUPPORTED,
    Outcome,
    Seen,
)
from opera.run import driver
from opera.run.probe import Answer, Probe, Question
from opera.store import examined, verdicts
from opera.store.workspace import Workspace
from opera.triage import blame, evidence, part
from opera.triage.blame import Blame, Subject
from opera.triage.conditions import peculiar
from opera.triage.findings import findings
from opera.triage.part import AS_FOUND, CONSTANTS, INPUTS, KERNELS, OTHER, ROUTE, WITHOUT, Tried
from opera.triage.reproducers import scripts

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


def made(digest: str) -> Outcome:
    return Outcome(ERROR, "compile", Made.__name__, digest)


def source(*unread: str) -> Outcome:
    lines = [f"f.py:{n} C._impl_v{n} never reads {x}" for n, x in enumerate(unread, 1)]
    return Outcome(ERROR, "load", Read.__name__, "\n".join(lines))


SAME = Outcome(INCONSISTENT, "infer", "value", "always one", details={"output": "y", "why": "", "drawn": "constant"})
FAULTY = Outcome(ERROR, "compile", Faulty.__name__, "RandomUniform draws the same in 4 runs")
BROKEN = Outcome(ERROR, "compile", Unlawful.__name__, "a number is none of its dtype")

RULES = [
    ("library", WRONG, [(LESS, WRONG), (BODY, WRONG), (BODY, WRONG)]),
    ("library", WRONG, [(LESS, WRONG), (BODY, WRONG), (BODY, NOTHING)]),
    ("conversion", WRONG, [(LESS, WRONG), (BODY, RIGHT), (BODY, RIGHT)]),
    ("unknown", WRONG, [(LESS, WRONG), (BODY, RIGHT), (BODY, WRONG)]),  # a kernel of what the body is made of
    ("unknown", WRONG, [(LESS, WRONG), (BODY, ANOTHER)]),
    ("conversion", crash("compile"), [(LESS, crash("compile")), (APART, RIGHT), (LAWFUL, BROKEN)]),
    ("kernel", crash("compile"), [(LESS, crash("compile")), (APART, RIGHT), (LAWFUL, NOTHING)]),
    ("kernel", WRONG, [(LESS, WRONG), (APART, RIGHT), (LAWFUL, BROKEN)]),
    ("conversion", WRONG, [(LESS, WRONG), (APART, NOTHING), (COUNTED, RIGHT)]),
    ("unknown", WRONG, [(LESS, WRONG), (APART, NOTHING), (COUNTED, ANOTHER)]),
    ("unknown", crash("compile"), [(LESS, crash("compile")), (COUNTED, RIGHT)]),  # it fails in words, of something else
    ("unknown", WRONG, [(AS_FOUND, RIGHT), (LESS, RIGHT)]),
    ("unknown", WRONG, [(AS_FOUND, crash("load"))]),
    ("library", WRONG, [(OTHER, WRONG), (OTHER, WRONG), (LESS, WRONG), (APART, WRONG)]),
    ("conversion", WRONG, [(OTHER, WRONG), (OTHER, WRONG), (OTHER, RIGHT), (APART, WRONG)]),
    ("conversion", WRONG, [(OTHER, WRONG), (OTHER, ANOTHER), (APART, WRONG)]),
    ("optimisation", WRONG, [(AS_FOUND, WRONG), (LESS, RIGHT), (APART, RIGHT)]),
    ("optimisation", crash("load"), [(AS_FOUND, crash("load")), (LESS, RIGHT)]),
    ("kernel", WRONG, [(LESS, WRONG), (APART, RIGHT)]),
    ("kernel", WRONG, [(LESS, WRONG), (APART, NOTHING), (APART, RIGHT)]),
    ("conversion", WRONG, [(LESS, WRONG), (APART, RIGHT), (APART, ANOTHER)]),
    ("type inference", crash("load"), [(LESS, crash("load")), (APART, RIGHT)]),  # of a model without shapes
    ("conversion", crash("load"), [(LESS, crash("load")), (APART, WRONG)]),
    ("kernel", crash("load", "/src/onnxruntime/core/providers/cpu/rnn/deep_cpu_gru.h:56"), []),
    ("unknown", WRONG, [(APART, NOTHING), (ROUTE, RIGHT)]),  # it may be other operators by which it is right
    ("conversion", WRONG, [(ROUTE, RIGHT), (ROUTE, RIGHT)]),
    ("conversion", WRONG, [(CONSTANTS, RIGHT), (ROUTE, RIGHT)]),
    ("unknown", WRONG, [(APART, NOTHING), (ROUTE, WRONG), (OTHER, RIGHT)]),
    ("unknown", WRONG, [(LESS, WRONG), (DECLARED, RIGHT), (CONSTANTS, RIGHT)]),
    ("kernel", SAME, [(LESS, SAME), (NODE, FAULTY), (ROUTE, RIGHT)]),
    ("unknown", SAME, [(LESS, SAME), (NODE, NOTHING), (ROUTE, RIGHT)]),
    ("unknown", WRONG, [(LESS, WRONG), (NODE, FAULTY)]),  # which is not what is wrong of it
    ("optimisation", WRONG, [(LESS, RIGHT), (CONSTANTS, RIGHT)]),
    ("kernel", WRONG, [(APART, RIGHT), (CONSTANTS, WRONG)]),
    ("kernel", WRONG, [(OWN, RIGHT), (CONSTANTS, RIGHT)]),
    ("unknown", WRONG, [(APART, NOTHING), (INPUTS, RIGHT)]),
    ("unknown", WRONG, [(LESS, WRONG), (OWN, WRONG)]),
    ("kernel", WRONG, [(LESS, WRONG), (OWN, RIGHT)]),
    ("kernel", WRONG, [(APART, RIGHT), (OWN, WRONG)]),
    ("conversion", WRONG, [(OWN, WRONG), (MADE, made("a")), (WITHOUT, made("a"))]),
    ("kernel", WRONG, [(OWN, RIGHT), (MADE, made("a")), (WITHOUT, made("b"))]),
    ("unknown", WRONG, [(MADE, NOTHING), (WITHOUT, NOTHING)]),
    ("conversion", WRONG, [(OWN, RIGHT), (SOURCE, source("mode=1, axes"))]),
    ("conversion", crash("compile", "topi"), [(SOURCE, source("axes, mode=1"))]),
    ("conversion", WRONG, [(SOURCE, source("axes makes nothing of input x, mode=1"))]),
    ("unknown", WRONG, [(SOURCE, source("axes"))]),  # which does not decide
    ("unknown", WRONG, [(SOURCE, source("mode=1", "mode=1"))]),  # of two converters one may read it
]


@pytest.mark.parametrize(("verdict", "seen", "tried"), RULES)
def test_the_first_rule_that_holds_decides(verdict: str, seen: Outcome, tried: list[tuple[str, Outcome]]) -> None:
    rows = [Tried(kind, f"way{place} 1", outcome, ("mode=1",)) for place, (kind, outcome) in enumerate(tried)]
    found, because = part.decide(seen, rows, PLACES, exporter=False, drawn=seen is SAME)
    assert found == verdict, because
    assert because


def test_what_decides_is_taken_away_on_the_same_numbers_to_see_whether_the_importer_makes_the_same() -> None:
    x, scales = np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3), np.array([1, 1, 1.5, 1], np.float32)
    inputs = Operand("X", Tensor.of(x)), Operand("scales", Tensor.of(scales))
    program = Instance("onnx", "Resize", {"mode": "linear"}, inputs, ("Y",), {"opset": {"": 19}})
    about = Subject(
        "F", "e", "tvm-onnx", "constants", "t", WRONG, ("mode='linear'", peculiar.FRACTION), program=program
    )
    (first, bare), (second, whole) = blame._lacking(about)
    assert (first, bare.params) == ("mode='linear'", {})
    assert second == peculiar.FRACTION
    assert whole.inputs[0] == inputs[0]
    assert np.allclose(whole.inputs[1].value.array() * x.shape, np.floor(scales * x.shape))


def test_where_no_importer_changes_the_model_the_kernel_is_left() -> None:
    for less, native, verdict in ((WRONG, True, "kernel"), (WRONG, False, "unknown"), (RIGHT, True, "optimisation")):
        assert part.decide(WRONG, [Tried(LESS, "plain", less)], {}, exporter=False, native=native)[0] == verdict


def test_the_converters_name_is_no_place_where_something_was_raised() -> None:
    seen = Outcome(CRASH, "infer", "TypeError", "no tensor", conversion_function="onnx_frontend:Identity._impl_v1")
    assert part.decide(seen, [], {"onnx_frontend": "conversion"}, exporter=False)[0] == "unknown"


def test_an_exporter_is_to_blame_for_its_files_and_not_for_who_runs_them() -> None:
    for outcome, verdict in ((WRONG, "exporter"), (RIGHT, "kernel"), (NOTHING, "unknown")):
        assert part.decide(WRONG, [Tried(APART, "reference", outcome)], {}, exporter=True)[0] == verdict


@pytest.mark.parametrize(
    ("seen", "apart", "says"),
    [
        (crash("load"), NOTHING, "raises while it exports"),
        (crash("compile"), crash("infer"), "writes an invalid file: it does not load"),
        (crash("infer"), crash("infer"), "writes an invalid file: it does not run"),
        (Outcome(CRASH, "compile", "InferenceError"), RIGHT, "writes an invalid file: ONNX's checker refuses it"),
    ],
)
def test_an_exporter_that_writes_a_bad_file_does_not_crash_itself(seen: Outcome, apart: Outcome, says: str) -> None:
    verdict, because = part.decide(seen, [Tried(APART, "reference", apart)], {}, exporter=True)
    assert verdict == "exporter" and says in because, because


ROUNDED = msgspec.structs.replace(WRONG, details=WRONG.details | {"expected": 0.3666094, "actual": 0.3666093})


@pytest.mark.parametrize(
    ("seen", "evaluator", "compiler", "verdict"),
    [
        (crash("infer"), crash("infer"), RIGHT, "kernel"),
        (crash("compile"), NOTHING, RIGHT, "kernel"),
        (crash("compile"), RIGHT, crash("compile"), "exporter"),  # the evaluator asks nothing of types
        (crash("load"), NOTHING, RIGHT, "exporter"),
        (Outcome(CRASH, "compile", "InferenceError"), NOTHING, RIGHT, "exporter"),  # ONNX's checker does not take it
        (WRONG, NOTHING, RIGHT, "kernel"),
        (WRONG, RIGHT, ANOTHER, "kernel"),
        (WRONG, RIGHT, WRONG, "kernel"),  # what its nodes mean is right, and two runtimes have one fault
        (WRONG, NOTHING, WRONG, "exporter"),
        (WRONG, ANOTHER, NOTHING, "exporter"),
        (ROUNDED, RIGHT, NOTHING, "unknown"),  # by chance
        (crash("compile"), RIGHT, NOTHING, "unknown"),
        (WRONG, NOTHING, NOTHING, "unknown"),
        (ROUNDED, RIGHT, ANOTHER, "exporter"),
        (ROUNDED, NOTHING, RIGHT, "unknown"),
    ],
)
def test_a_file_that_another_runtime_runs_rightly_is_the_first_ones_fault(
    seen: Outcome, evaluator: Outcome, compiler: Outcome, verdict: str
) -> None:
    tried = [Tried(APART, "the evaluator", evaluator), Tried(FILE, "OpenVINO", compiler)]
    found, because = part.decide(seen, tried, {}, exporter=True)
    assert found == verdict, because


def form(symptom: str, expected: str, actual: str, output: str = "y") -> Outcome:
    seen = "shape " if symptom == "shape" else ""
    text = f"output {output!r}: {seen}{expected} is expected, {actual} was returned"
    return Outcome(INCONSISTENT, "infer", symptom, text, details={"output": output})


@pytest.mark.parametrize(
    ("seen", "stated", "verdict"),
    [
        (form("shape", "[2]", "[3]"), form("shape", "[2]", "[3]"), "conversion"),
        (form("shape", "[2]", "[3]"), RIGHT, "kernel"),
        (form("shape", "[2, 3]", "[0, 3]"), RIGHT, "unknown"),  # the most that it can be is what is stated of it
        (form("shape", "[2, 3]", "[3]"), RIGHT, "kernel"),
        (form("shape", "[1, 3]", "[0, 3]"), form("shape", "[1, 3]", "[3, 3]"), "unknown"),
        (form("dtype", "bool", "float32"), form("dtype", "bool", "float32"), "conversion"),
        (form("dtype", "bool", "float32"), form("dtype", "bool", "float32", "other"), "kernel"),
        (form("dtype", "bool", "float32"), NOTHING, "unknown"),
        (WRONG, form("dtype", "bool", "float32", "mask"), "unknown"),
    ],
)
def test_what_is_stated_tells_of_that_output_and_of_what_is_returned(
    seen: Outcome, stated: Outcome, verdict: str
) -> None:
    assert part.decide(seen, [Tried(DECLARED, "stated", stated)], {}, exporter=False)[0] == verdict


def test_others_are_judged_by_the_output_that_the_finding_names() -> None:
    mask = form("dtype", "bool", "float32", "mask")
    many = msgspec.structs.replace(mask, details={"output": "mask", "others": ["5 more"]})
    assert part.at_output(many, WRONG).verdict == INCONSISTENT  # whether 'y' is among them is not known
    assert part.at_output(
        msgspec.structs.replace(mask, details={"output": "mask", "wrong": {"mask": "dtype"}}), WRONG
    ) == (Outcome(PASS, message="its output 'y' is right"))
    both = msgspec.structs.replace(mask, details={"output": "mask", "others": ["output 'y': value: 1 of 2"]})
    found = part.at_output(both, WRONG)
    assert (found.symptom, found.message) == ("value", "output 'y': 1 of 2")
    only = msgspec.structs.replace(mask, details={"output": "mask", "wrong": {"mask": "dtype"}})
    assert part.decide(WRONG, [Tried(LESS, "plain", only)], {}, exporter=False)[0] == "optimisation"


def test_of_drawn_numbers_only_the_screens_tell() -> None:
    legal = Outcome(SCREENED, "infer", "value", details={"screen": "nondeterministic", "output": "y"})
    told = msgspec.structs.replace(WRONG, details={**WRONG.details, "drawn": "constant"})
    for outcome, right, wrong in (
        (legal, True, False),
        (told, False, True),
        (WRONG, False, False),
        (RIGHT, False, False),
        (Outcome(PASS, details={AGREES: True}), True, False),  # the screens looked at what it draws besides
        (msgspec.structs.replace(told, details={**told.details, AGREES: True}), False, True),
    ):
        found = Tried(OTHER, "x", part.at_output(outcome, WRONG, drawn=True))
        assert (found.right, found.wrong) == (right, wrong), outcome
    seen = msgspec.structs.replace(WRONG, details={**WRONG.details, "drawn": "kept"})
    assert part.at_output(told, seen, drawn=True).verdict == PASS  # always the same number, but one that may be drawn
    assert part.at_output(seen, seen, drawn=True) == seen
    same = [Tried(AS_FOUND, "now", seen), Tried(LESS, "plain", told)]
    assert part.decide(seen, same, {}, exporter=False, drawn=True)[0] == "unknown", "it is wrong in another way"
    mask = [Tried(OTHER, "a", WRONG), Tried(OTHER, "b", WRONG)]
    assert part.decide(WRONG, mask, {}, exporter=False)[0] == "library"
    assert part.decide(WRONG, mask, {}, exporter=False, drawn=True)[0] == "unknown"


def test_what_an_independent_implementation_confirms_is_no_fault_of_the_library():
    """NonZero of a scalar: three compilers give (1, 1), the specification and PyTorch say (0, 1)."""
    alike = [Tried(OTHER, way, WRONG) for way in ("onnxruntime 1", "tvm 0")]
    confirmed = msgspec.structs.replace(WRONG, details=WRONG.details | {"agreeing": "torch"})
    assert part.decide(WRONG, alike, {}, exporter=False)[0] == "library"
    assert part.decide(confirmed, alike, {}, exporter=False)[0] == "unknown"


@pytest.mark.parametrize(("variant", "verdict"), [("saved-model", "kernel"), ("onnx", "unknown")])
def test_a_route_is_known_by_the_file_that_it_is_given(variant: str, verdict: str) -> None:
    """Of the variant by which it failed itself another's answer says nothing of a second importer."""
    about = Subject("F1", "e", "openvino-keras", variant, "t", WRONG)
    ways = {x.name: x for x in compilers.frontend("openvino", "keras").VARIANTS}
    by_onnx = blame._by_variant(about, ways["onnx"])
    tried = [Tried(AS_FOUND, "now", WRONG), Tried(part.ROUTE, by_onnx, WRONG), Tried(OTHER, "onnxexport 1", RIGHT)]
    assert blame.laid(about, tried, 0.0).verdict == verdict


def test_others_are_told_of_the_output_that_the_finding_names() -> None:
    mask = Outcome(INCONSISTENT, "infer", "dtype", "output 'm': bool", details={"output": "m", "wrong": {"m": "dtype"}})
    about = Subject("F1", "e", "tvm-onnx", "inputs", "t", WRONG)
    tried = [Tried(AS_FOUND, "now", WRONG), Tried(OTHER, "tract 1", mask), Tried(OTHER, "openvino 2", WRONG)]
    found = blame.laid(about, tried, 0.0)
    assert [(x.way, x.shows, x.remark) for x in blame.others(found)] == [
        ("tract 1", "passes", "its output 'y' is right"),
        ("openvino 2", found.evidence[0].shows, "the same answer"),
    ]


def test_of_a_wrong_form_others_are_asked_about_that_form() -> None:
    """Numbers are compared after dtypes: whose numbers are wrong, or drawn, has the dtype that is expected."""
    seen = form("dtype", "bool", "float32", "mask")
    values = msgspec.structs.replace(WRONG, details={"output": "mask", "wrong": {"mask": "value"}})
    draws = msgspec.structs.replace(WRONG, details={"why": "always one number", "drawn": "constant"})
    for outcome in (values, draws):
        assert part.at_output(outcome, seen) == Outcome(PASS, message="the dtype of its output 'mask' is right")
    for outcome in (seen, form("shape", "[1]", "[2]", "mask")):  # which comes before
        assert part.at_output(outcome, seen) == outcome
    assert part.at_output(seen, values) == seen


def test_what_a_module_has_nothing_of_is_told_as_dropped() -> None:
    line = "f.py:3 C._impl_v1 never reads a makes nothing of input x"
    shown = Outcome(ERROR, "load", Read.__name__, line)
    assert part.converter(Tried(SOURCE, "", shown, (blame._read_as("x is no constant"),))) == (
        "C._impl_v1 (f.py:3) makes nothing of input x"
    )
    assert part.converter(Tried(SOURCE, "", shown, ("a",))) == "C._impl_v1 (f.py:3) never reads a"


def test_what_is_inferred_of_unknown_sizes_is_not_what_the_importer_made() -> None:
    """Relax demands that sizes are equal which it cannot know to be."""
    places = compilers.frontend("tvm", "onnx").PLACES
    for size, stage, verdict in (("num_nonzero", "load", "type inference"), ("3", "load", "conversion")):
        says = f"ScatterND op: updates.shape: R.shape([{size}]), data.shape: R.shape([2])"
        frames = (
            "tvm.relax.frontend.onnx.onnx_frontend:ONNXGraphImporter:1",
            "/src/relax/op/tensor/manipulate.cc:<module>:2",
        )
        seen = Outcome(CRASH, stage, "ValueError", says, seen=Seen(frames=frames))
        assert part.decide(seen, [Tried(CONSTANTS, "constants", RIGHT)], places, exporter=False)[0] == verdict


def test_a_definition_that_draws_wrongly_is_the_librarys_whatever_number_it_draws() -> None:
    details = {"output": "y", "why": "", "drawn": "share", "drawn_element": "", "drawn_at": 1.0, "drawn_how": "=="}
    seen, body = (Outcome(INCONSISTENT, "infer", "value", "", details={**details, "actual": x}) for x in (0.0, 1.0))
    tried = [Tried(APART, "reference", RIGHT), Tried(BODY, onnxruntime.BODIES[0].about, body)]
    assert part.decide(seen, tried, {}, exporter=True, drawn=True)[0] == "library"
    laid = Blame("F", "e", "t", "library", "", (evidence.Evidence(onnxruntime.BODIES[0].about, "wrong", kind=BODY),))
    assert blame.runtime("onnxexport-torch", laid) == "onnxruntime", "it is its file that shows it"


def test_other_compilers_are_given_constants_where_what_is_shown_has_them(workspace: Workspace) -> None:
    """TVM pads by constants alone: of pads that are an input it says that it does not support them, which nobody asked."""
    seen = crash("load")
    test = drafted(workspace, seen)
    workspace.save_environment(ABOUT | {"compiler": "tvm", "version": "0.27"})
    own = next(iter(workspace.environments()))
    for variant, asked in (("inputs", ""), ("constants", "constants")):
        rows = blame.questions(workspace, Subject("F1", own, "onnxruntime-onnx", variant, test, seen))
        assert [(x.way, getattr(x.what, "variant", None)) for x in rows if x.kind == OTHER] == [("tvm 0.27", asked)]


def test_other_compilers_are_asked_about_crashes_too(workspace: Workspace) -> None:
    seen = crash("infer")
    test = drafted(workspace, seen)
    tvm = workspace.save_environment(ABOUT | {"compiler": "tvm", "version": "0.27"})
    own = next(name for name in workspace.environments() if name != tvm)
    rows = blame.questions(workspace, Subject("F1", own, "onnxruntime-onnx", "inputs", test, seen))
    [asked] = [row.what for row in rows if row.kind == OTHER]
    assert (asked.frontend, asked.environment, asked.test) == ("tvm-onnx", tvm, test)


@pytest.mark.parametrize(("variant", "by"), [("exported-program", ""), ("onnx", " by its ONNX file")])
def test_who_was_right_by_a_file_is_told_with_that(workspace: Workspace, variant: str, by: str) -> None:
    """TVM refuses logsumexp of an exported program, and is right of its ONNX file: that is no word on its own importer."""
    tvm = workspace.save_environment(ABOUT | {"compiler": "tvm", "version": "0.27", "library": "torch"})
    own = workspace.save_environment(ABOUT | {"compiler": "openvino", "library": "torch"})
    test = drafted(workspace, WRONG)
    passed = verdicts.Verdict(test, "tvm-torch", variant, tvm, Outcome(PASS))
    workspace.save_verdicts(workspace.start_run({"workers": 1}), [passed], {})
    rows = blame.questions(workspace, Subject("F1", own, "openvino-torch", "exported-program", test, WRONG))
    assert [x.way for x in rows if x.kind == OTHER] == [f"tvm 0.27{by}"]


def test_a_compiler_is_asked_by_each_of_its_usual_ways(workspace: Workspace) -> None:
    """What one importer of a compiler's gets wrong another may get right; both are one opinion on whose fault it is."""
    environments = {
        x: workspace.save_environment(ABOUT | {"compiler": x, "library": "torch"}) for x in ("tvm", "openvino")
    }
    test = drafted(workspace, WRONG)
    about = Subject("F1", environments["tvm"], "tvm-torch", "exported-program", test, WRONG)
    asked = {row.way.partition(" as ")[2]: row.what for row in blame.questions(workspace, about) if row.kind == OTHER}
    assert asked.keys() == {"an exported program", "TorchScript"}
    assert {getattr(x, "variant", "") for x in asked.values()} == {"exported-program", "torchscript"}
    ways = ("openvino 1 as an exported program", "openvino 1 as TorchScript", "onnxruntime 1")
    tried = [Tried(OTHER, x, WRONG) for x in ways]
    verdicts_of = [part.decide(WRONG, tried[:count], {}, exporter=False)[0] for count in (2, 3)]
    assert verdicts_of == ["unknown", "library"]


@pytest.mark.parametrize(
    ("number", "asked"), [(np.nan, ["the converted file on TFLite's reference kernels (BUILTIN_REF)"]), (1.0, [])]
)
def test_other_kernels_of_a_compiler_are_asked_what_they_make_of_nan(
    workspace: Workspace, number: float, asked: list[str]
) -> None:
    of = {x: workspace.save_environment(ABOUT | {"compiler": x, "library": "keras"}) for x in ("mnn", "tflite")}
    program = Instance("keras", "keras.ops.sign", {}, (Operand("x", Tensor.of(np.float32([number]))),), ("y",), {})
    about = Subject("F1", of["mnn"], "mnn-keras", "tflite", drafted(workspace, WRONG), WRONG, program=program)
    rows = [x for x in blame.questions(workspace, about) if x.kind == KERNELS]
    assert [x.way.partition(", ")[2] for x in rows] == asked
    assert all((x.what.frontend, x.what.way) == ("tflite-keras", "reference") for x in rows)
    laid = blame.laid(about, [Tried(part.AS_FOUND, "", WRONG), *(Tried(KERNELS, x.way, WRONG) for x in rows)], 0.0)
    assert [x.way for x in blame.kernels(laid)] == [x.way for x in rows]
    assert laid.verdict == "unknown", "it tells of no part"


def test_what_must_be_no_constant_is_named() -> None:
    tried = [Tried(CONSTANTS, "another variant", RIGHT, ("boxes", "limit"))]
    assert "where boxes and limit are constant" in part.decide(WRONG, tried, {}, exporter=False)[1]


@pytest.mark.full
def test_an_expectation_that_all_compilers_contradict_is_the_librarys_or_its_tests(workspace: Workspace) -> None:
    _, wrong = library.canaries()
    workspace.add_captured([wrong])
    driver.run(workspace, driver.Options(compilers=("onnxruntime", "openvino", "tvm"), workers=1), Silent())
    environments = {x["compiler"]: name for name, x in workspace.environments().items()}
    seen = Outcome(INCONSISTENT, "infer", "value")
    [test] = {x.test for x in verdicts.shown(workspace)}
    subjects = [
        Subject("F1", environments[x], f"{x}-onnx", "inputs", test, seen, ("mode=3",)) for x in ("tvm", "openvino")
    ]
    with Probe.of(workspace, workers=1) as probe:
        found = {x.environment: x for x in blame.ask(workspace, subjects, probe)}
    for name, other, ways in (("tvm", "openvino", 3), ("openvino", "tvm", 3)):
        told = found[environments[name]]
        assert told.verdict == "library", blame.table(told)
        rows = {row.way: row for row in told.evidence}
        assert sum(row.remark == "the same answer" for row in rows.values()) >= 4, blame.table(told)
        assert any(way.startswith(other) for way in rows) and len(rows) >= 1 + ways + 2
    blame.save(workspace, told)
    assert [x.verdict for x in blame.stored(workspace, "F1")] == ["library"]


def test_of_stated_types_the_values_are_not_told():
    zeros = Outcome(INCONSISTENT, "infer", "value", "output 'Y': 1 of 1 elements, first at []: expected 1.0, got 0.0")
    assert evidence._evidence(Tried(DECLARED, "stated", zeros)) == "shapes and dtypes are as expected"
    other = "output 'Mean': shape: shape [1] is expected, [] was returned"
    both = msgspec.structs.replace(zeros, details={"others": ["output 'Z': value: expected 1.0, got 0.0", other]})
    assert evidence._evidence(Tried(DECLARED, "stated", both)) == f"inconsistent; {other}"
    assert "expected 1.0" in evidence._evidence(Tried(LESS, "plain", zeros))


def test_what_older_rules_laid_or_was_laid_of_another_program_is_told_nobody(workspace: Workspace) -> None:
    test = drafted(workspace)
    [found] = findings(workspace)
    known = (FINDING, found.environment)
    blame.save(workspace, Blame(*known, test, "kernel", "so"))
    assert findings(workspace)[0].blame == "kernel"
    blame.save(workspace, Blame(*known, "what it was before", "kernel", "so"))
    assert findings(workspace)[0].blame == ""
    old = msgspec.json.encode(Blame(*known, test, "kernel", "so"))
    examined.save(workspace, examined.BLAME, examined.Examined(*known, test, old))
    assert [x.test for x in blame.stored(workspace)] == ["what it was before"]
    with Probe.of(workspace, workers=1) as probe:
        [now] = blame.examine(workspace, scripts.members(workspace, [FINDING]), probe)
        assert (now.test, now.verdict) == (test, "kernel")
        assert not list(blame.examine(workspace, scripts.members(workspace, [FINDING]), probe)), (
            "it is asked no more than once"
        )


def test_a_program_that_does_not_fail_any_more_is_doubtful(workspace: Workspace) -> None:
    test = drafted(workspace, crash("load"))
    environment = findings(workspace)[0].environment
    about = Subject(FINDING, environment, "onnxruntime-onnx", "inputs", test, crash("load"))
    for now, doubt in ((RIGHT, True), (NOTHING, True), (crash("infer"), False), (crash("load"), False)):
        blame.save(workspace, blame.laid(about, [Tried(AS_FOUND, "as it was found", now)], 0.0))
        assert any("does not fail as it did" in x for x in findings(workspace)[0].doubts) == doubt, now


def test_other_numbers_of_a_random_program_are_no_wrong_answer() -> None:
    about = Subject("F1", "e", "openvino-onnx", "inputs", "t", crash("load"), random=True)
    legal = Outcome(SCREENED, "infer", "value", details={"screen": "nondeterministic", "output": "y"})
    form = Outcome(INCONSISTENT, "infer", "dtype", "float32")
    answers = {"a 1": legal, "b 1": WRONG, "c 1": RIGHT, "d 1": form}
    found = blame.laid(about, [Tried(OTHER, *x) for x in answers.items()], 0.0)
    assert [(x.way, x.shows.partition(":")[0]) for x in blame.others(found)] == [
        ("a 1", "passes"), ("c 1", "passes"), ("d 1", "inconsistent"),
    ]  # fmt: skip


def test_what_an_importer_made_of_a_random_program_is_run_as_often_as_a_run_does() -> None:
    """So that what draws nothing any more is told from what drew the expected number by chance."""
    program = library.canaries()[0].program
    about = Subject("F1", "e", "tvm-onnx", "inputs", "t", WRONG, program=program, random=True, drawn=True)
    asked = {x.kind: blame._by(about, x) for x in compilers.ways(compilers.frontend("tvm", "onnx"))}
    assert asked[APART].screened and asked[LESS].screened and asked[APART].program is not None
    assert not asked[DECLARED].screened and asked[DECLARED].test == "t"


@pytest.mark.parametrize("always", [False, True])
def test_that_another_compiler_dies_is_told_if_it_dies_again(workspace: Workspace, always: bool) -> None:
    """OpenVINO died once of Cosh in float16, and in none of fifty runs after that: strangers were told that it does."""
    died, asked = Outcome("abort", "infer", "SIGSEGV", "killed"), list[Question]()

    class Once:
        def ask(self, questions: Iterable[Question]) -> Iterator[Answer]:
            asked.extend(questions)
            while asked:
                question = asked.pop(0)
                dies = question.frontend == "tvm-onnx" and (always or not question.fresh)
                yield Answer(question, died if dies else Outcome(PASS))

        def submit(self, question: Question) -> None:
            asked.append(question)

    test = drafted(workspace, WRONG)
    workspace.save_environment(ABOUT | {"compiler": "tvm", "version": "0.27"})
    own = next(name for name, of in workspace.environments().items() if of["compiler"] != "tvm")
    about = Subject("F1", own, "onnxruntime-onnx", "inputs", test, WRONG)
    [laid] = blame.ask(workspace, [about], Once())  # type: ignore[arg-type]
    [told] = [x.shows for x in laid.evidence if x.kind == OTHER]
    assert told.startswith("abort" if always else "passes")


def test_a_compiler_s_own_other_way_confirms_what_is_expected_where_nobody_else_does() -> None:
    """OpenVINO computes a QLinearConv in one operator wrongly, and node by node rightly; nobody else has it."""

    def told(*rows: tuple[str, str, str]) -> list[str]:
        made = tuple(evidence.Evidence(way, part.shows(Outcome(x)), kind=kind) for way, x, kind in rows)
        return [x.way for x in blame.witnesses(Blame("F1", "e", "t", "unknown", "", made))]

    alone, apart = ("node by node", PASS, compilers.EACH), ("on the library's own kernels", PASS, compilers.APART)
    assert told(alone, ("tvm 1", UNSUPPORTED, OTHER)) == ["tvm 1", "node by node"]
    assert told(alone, ("tvm 1", PASS, OTHER)) == ["tvm 1"] and told(apart) == []
    assert told(("optimisations off", PASS, compilers.LESS)) == []  # of the library's own kernels, it may be
    assert told(("node by node", INCONSISTENT, compilers.EACH)) == []
    held = ("openvino-onnx by its variant constants", PASS, part.CONSTANTS)  # a TopK of OpenVINO's whose K is one
    assert told(held, ("tvm 1", UNSUPPORTED, OTHER)) == ["tvm 1"], "the same importer confirms nothing"
    made = (evidence.Evidence(held[0], part.shows(Outcome(PASS)), kind=held[2]),)
    assert blame.held(Blame("F1", "e", "t", "unknown", "", made)) == [*made]


def test_several_findings_are_asked_about_at_once_and_what_is_known_is_told(monkeypatch, capsys) -> None:
    """`opera reduce` took several ids, and `opera blame` one."""

    def laid(name: str) -> blame.Blame:
        return blame.Blame(name, "e", "t", "kernel", "so it is")

    monkeypatch.setattr(blame.scripts, "members", lambda _: {"F1": ["known"], "F2": ["new"], "F3": ["other"]})
    monkeypatch.setattr(blame.causes, "named", lambda _, name, members: f"F{name}")
    monkeypatch.setattr(blame, "choose", lambda _, members: SimpleNamespace(verdict=members[0]))
    monkeypatch.setattr(blame, "stored", lambda _, name: [name])
    monkeypatch.setattr(blame, "of", lambda _, verdict: laid("F1") if verdict == "known" else None)
    monkeypatch.setattr(blame.Probe, "of", lambda *_, **__: nullcontext())
    monkeypatch.setattr(blame, "examine", lambda _, members, *__, **___: map(laid, members))
    blame.show(None, ["1", "2"], budget=None, again=False, workers=1)  # type: ignore[arg-type]
    told = capsys.readouterr().out
    assert [x.partition(":")[0] for x in told.splitlines() if x.startswith("F")] == ["F1", "F2"] and "2 kernel" in told
    blame.show(None, ["1"], budget=None, again=False, workers=1)  # type: ignore[arg-type]
    assert capsys.readouterr().out.count("kernel") == 1


@pytest.mark.parametrize(
    ("verdict", "because", "operator", "told"),
    [
        ("kernel", "the ov.Model is right; Gather (batch_dims=0) fails so by itself", "F.unfold", "at its Gather"),
        ("kernel", "Gather (axis=0) fails so by itself: compiled alone", "F.unfold", "at its Gather"),
        ("kernel", "relax.permute_dims fails so by itself: compiled alone", "torch.permute", "at its relax.permute_dims"),
        ("kernel", "Gather (axis=0) fails so by itself: compiled alone", "torch.gather", ""),
        ("kernel", "an operator fails so by itself: compiled alone", "F.unfold", ""),
        ("conversion", "Gather (axis=0) fails so by itself: compiled alone", "F.unfold", ""),
        ("kernel", "what the importer made is right: as it is", "F.unfold", ""),
    ],
)  # fmt: skip
def test_the_operator_that_fails_by_itself_is_named(verdict, because, operator, told):
    """OpenVINO's Gather of nothing dies; `unfold` only becomes one, and a title named that alone."""
    assert blame.inside(Blame("F", "e", "t", verdict, because), operator) == told
    assert blame.inside(None, operator) == ""
