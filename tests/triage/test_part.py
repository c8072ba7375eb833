"""Which part is wrong, by the operators that an importer made, each by itself; and by who runs an exporter's file."""

from __future__ import annotations

import msgspec
import pytest

from opera.compilers import APART, BODY, DECLARED, EACH, FILE, LAWFUL, LESS, NODE, OWN, tflite
from opera.compilers.shared.packing import OF_BODY, Unlawful
from opera.oracle.randomness import RANDOM
from opera.programs.verdicts import (
    ABORT,
    AGREES,
    CRASH,
    ERROR,
    INCONSISTENT,
    PASS,
    SCREENED,
    UNSTABLE,
    UNSUPPORTED,
    Outcome,
    Seen,
)
from opera.triage import evidence, part
from opera.triage.blame import Subject
from opera.triage.part import AS_FOUND, OTHER, ROUTE, SEVERAL, Tried

WRONG = Outcome(INCONSISTENT, "infer", "value", "output 'y': 1 of 2", details={"output": "y", "actual": 3.0})
RIGHT = Outcome(PASS)


def crash(stage: str, message: str) -> Outcome:
    return Outcome(CRASH, stage, "RuntimeError", message)


def by_itself(message: str) -> Tried:
    return Tried(NODE, "an operator", Outcome(UNSUPPORTED, "infer", "Faulty", message))


def test_operators_by_themselves_tell_who_is_wrong() -> None:
    """Right by themselves: what is done to the whole. Dying alike: the operator. Wrong where numpy is right: that one."""
    odd, types = by_itself("LRN (bias=0.8) gives 1000, not 1.18"), by_itself("X is inferred to be of shape [1], not []")
    mixed = Tried(OWN, "as numpy has them", RIGHT)
    words = "Check failed: (value >= 0) is false: cannot make uint from negative value -1"
    died, alone = crash("compile", words), crash("infer", f"relax.sign by itself: {words}")
    cases: list[tuple[Outcome, list[Tried], str, str]] = [
        (WRONG, [Tried(EACH, "each", RIGHT), mixed], "optimisation", "each"),
        (WRONG, [Tried(EACH, "each", WRONG), mixed, odd], "kernel", "LRN (bias=0.8) gives 1000"),
        (WRONG, [Tried(EACH, "each", WRONG), mixed, types], "type inference", "inferred"),
        (WRONG, [Tried(EACH, "each", WRONG), odd], "unknown", "does not tell"),  # it may be what another output is of
        (died, [Tried(EACH, "each", alone)], "kernel", "by itself"),
        (
            died,
            [Tried(EACH, "each", crash("infer", "relax.sign by itself: out of memory"))],
            "unknown",
            "does not tell",
        ),
        (Outcome(ABORT, "infer", "SIGSEGV"), [Tried(EACH, "each", Outcome(ABORT, "oracle", "SIGABRT"))], "kernel", ""),
        (
            Outcome(ABORT, "infer", "SIGFPE"),
            [
                Tried(
                    EACH,
                    "each",
                    Outcome(ABORT, "infer", "SIGFPE", "RDFT by itself:\nGather (axis=0) by itself: \nFatal"),
                )
            ],
            "kernel",
            "Gather (axis=0) fails so by itself",
        ),
        (
            Outcome(ABORT, "compile", "SIGFPE"),
            [
                Tried(APART, "as numpy has it", Outcome(PASS)),
                Tried(EACH, "each", Outcome(ABORT, "infer", "SIGFPE", "Gather (axis=0) by itself: \nFatal")),
            ],
            "kernel",
            "is right: as numpy has it; Gather (axis=0) fails so by itself",
        ),
        (Outcome(UNSTABLE, "infer"), [Tried(EACH, "each", Outcome(UNSTABLE, "infer"))], "kernel", "by itself"),
        (Outcome(UNSTABLE, "infer"), [Tried(EACH, "each", WRONG)], "unknown", "does not tell"),
        (
            Outcome(UNSTABLE, "infer"),
            [Tried(LESS, "O0", Outcome(PASS)), Tried(EACH, "each", Outcome(PASS))],
            "unknown",
            "does not tell",
        ),
        (WRONG, [Tried(LESS, "O0", Outcome(PASS))], "optimisation", "it passes with O0"),
    ]
    for seen, tried, verdict, because in cases:
        found = part.decide(seen, [Tried(AS_FOUND, "now", seen), *tried], {}, exporter=False)
        assert found[0] == verdict and because in found[1], (found, seen, tried)


@pytest.mark.parametrize(
    ("expected", "stated", "verdict"),
    [("float32", "int32", "conversion"), ("int64", "int32", "kernel"), ("bfloat16", "float32", "kernel")],
)
def test_what_fails_in_words_once_an_output_is_of_another_kind_was_converted_wrongly(
    expected: str, stated: str, verdict: str
) -> None:
    """TVM's importer keeps integers where PyTorch's `atan2` returns float32; its code generator has no integer one."""
    seen = crash("compile", "unknown intrinsic tirx.atan2: src/target/llvm/codegen_llvm.cc:1532")
    text = f"output 'y': {expected} is expected, {stated} was returned"
    declared = Tried(DECLARED, "stated", Outcome(INCONSISTENT, "infer", "dtype", text, details={"output": "y"}))
    assert part.decide(seen, [declared], {r"src/target/": "kernel"}, exporter=False)[0] == verdict


def test_what_opera_cannot_compute_is_no_evidence() -> None:
    about = Subject("F1", "e1", "openvino-onnx", "inputs", "t1", WRONG)
    unknown = Tried(
        OWN, "as numpy has them", Outcome(ERROR, "infer", "NotEvaluated", "opera does not evaluate NonZero")
    )
    rows = evidence.evidence(about, [Tried(AS_FOUND, "now", WRONG), unknown])
    assert [x.way for x in rows] == ["now"]


def test_a_sentence_outvotes_compilers_that_agree() -> None:
    alike = [Tried(OTHER, way, WRONG) for way in ("onnxruntime 1", "tvm 0")]
    assert part.decide(WRONG, alike, {}, exporter=False)[0] == "library"
    assert part.decide(WRONG, alike, {}, exporter=False, settled=True)[0] == "unknown"


def test_a_death_is_one_by_any_signal_and_its_frames_are_no_place() -> None:
    seen, now = (
        Outcome(ABORT, "infer", "SIGSEGV"),
        Outcome(ABORT, "oracle", "SIGABRT", "free()\nFatal Python error\ntopi/x"),
    )
    found = part.decide(seen, [Tried(AS_FOUND, "now", now)], {"topi": "kernel"}, exporter=False)
    assert found == ("unknown", "what was tried does not tell")
    varies = part.decide(WRONG, [Tried(AS_FOUND, "now", Outcome(UNSTABLE, "infer"))], {}, exporter=False)
    assert "otherwise" not in varies[1]  # memory that nobody wrote may stay


def test_a_model_that_declares_another_dtype_was_imported_wrongly() -> None:
    """OpenVINO's plug-in refuses a bfloat16 tensor rightly: the model that was made of bfloat16 Keras says float32."""
    from opera.compilers.openvino.onnx import PLACES

    said = (
        "Exception from src/plugins/intel_cpu/src/infer_request.cpp:377:\nParameterMismatch: Failed to set tensor for input "
        "with precision: bf16, since the model input tensor precision is: f32"
    )
    seen = Outcome(CRASH, "infer", "RuntimeError", said)
    verdict, because = part.decide(seen, [Tried(AS_FOUND, "now", seen)], PLACES, exporter=False)
    assert verdict == "conversion" and "declares another dtype" in because


def test_a_place_in_its_sources_is_named_and_none_that_only_reports_one() -> None:
    """What Relax's own inference took and topi does not is lowered wrongly; OpenVINO tells where it caught an exception."""
    seen = Outcome(
        CRASH,
        "compile",
        "IndexError",
        "out of range",
        seen=Seen(frames=("tvm/relax/utils.py:f:3", "tvm/topi/scan.py:g:107", "/project/src/topi/x.cc:h:9")),
    )
    places = {r"\btopi\b": "kernel", r"frontends/": "conversion"}
    for tried in ([], [Tried(APART, "numpy", RIGHT)]):
        verdict, because = part.decide(seen, [Tried(AS_FOUND, "now", seen), *tried], places, exporter=False)
        assert verdict == "kernel" and "tvm/topi/scan.py:107" in because
    reported = "Check 'false' failed at src/frontends/report.cpp:1:\nSummary:\n-- x failed with: Check 'a < b' failed at {}:94:"
    for place, verdict in (
        ("src/core/shape_inference/pad.hpp", "type inference"),
        ("src/frontends/pad.cpp", "conversion"),
    ):
        called = Seen(frames=("openvino/frontends/frontend.py:convert:18",))  # of its Python: it called what raised
        died = msgspec.structs.replace(crash("load", reported.format(place)), seen=called)
        for apart, wanted in ((RIGHT, verdict), (WRONG, "conversion")):
            tried = [Tried(AS_FOUND, "now", died), Tried(APART, "the model without shapes", apart)]
            assert part.decide(died, tried, places, exporter=False)[0] == wanted, (place, apart)


def test_words_that_only_one_part_says_are_told_as_words() -> None:
    """ONNX Runtime's message on a kernel that it lacks names no file."""
    died = crash("load", "Could not find an implementation for Selu(22) node with name ''")
    found = part.decide(
        died, [Tried(AS_FOUND, "now", died)], {"providers/|Could not find an implementation": "kernel"}, exporter=False
    )
    assert found == ("kernel", "it says what only the kernel says: Could not find an implementation")


def test_a_module_that_calls_bindings_is_no_place() -> None:
    seen = Seen(frames=("openvino.frontend.frontend:FrontEnd.convert:18",))
    died = msgspec.structs.replace(crash("load", "Batch size is zero."), seen=seen)
    found = part.decide(died, [Tried(AS_FOUND, "now", died)], {r"openvino\.frontend": "conversion"}, exporter=False)
    assert found == ("conversion", "it names a place of the conversion in the compiler's sources")
    report = "Exception from a.cpp:84:\nCheck 'false' failed at src/frontends/report.cpp:151:\nCheck failed at src/util.cpp:1:"
    died = crash("load", report)
    found = part.decide(died, [Tried(AS_FOUND, "now", died)], {"frontends/": "conversion"}, exporter=False)
    assert found == ("conversion", "it names a place of the conversion in the compiler's sources")


def test_a_dtype_that_onnx_runtime_returns_is_the_one_that_the_exporter_wrote() -> None:
    """The evaluator asks nothing of types, and says that the file is right: LayerNormalization's mean is float32 there, too."""
    dtype = msgspec.structs.replace(WRONG, symptom="dtype", details={})
    rows = [Tried(AS_FOUND, "now", dtype), Tried(APART, "the exported file on ONNX's reference evaluator", RIGHT)]
    found = part.decide(dtype, rows, {}, exporter=True, typed=True)
    assert found[0] == "exporter" and "states that dtype" in found[1]
    assert part.decide(dtype, rows, {}, exporter=True)[0] != "exporter", "an exported program is run node by node"


@pytest.mark.parametrize(("drawn", "verdict"), [("seed", "unknown"), ("constant", "optimisation")])
def test_what_a_way_gives_seeds_is_no_optimisation_s_fault_where_a_seed_is_not_heeded(drawn: str, verdict: str) -> None:
    """OpenVINO's RandomNormalLike of seed=0.0 is made of two draws without a seed; given seeds, two models draw the same."""
    wrong = msgspec.structs.replace(WRONG, details={**WRONG.details, "drawn": drawn})
    drew = Outcome(SCREENED, "infer", "value", details={"screen": RANDOM, "runs": 9})
    rows = [Tried(AS_FOUND, "now", wrong), Tried(LESS, "a seed of its own in each operator that draws", drew)]
    assert part.decide(wrong, rows, {}, exporter=False, drawn=True)[0] == verdict


@pytest.mark.parametrize(
    "legal",
    [Outcome(SCREENED, "infer", "value", details={"screen": RANDOM, "runs": 1}), Outcome(PASS, details={AGREES: True})],
)
def test_what_is_as_constant_and_may_be_drawn_speaks_for_no_part(legal: Outcome) -> None:
    """Of a Dropout of 0.04 four elements are all kept in most runs: that does not refute that its mask is a constant."""
    constant = msgspec.structs.replace(WRONG, details={**WRONG.details, "drawn": "constant"})
    rows = [Tried(AS_FOUND, "now", constant), Tried(LESS, "ORT_DISABLE_ALL", legal)]
    assert part.decide(constant, rows, {}, exporter=True, drawn=True)[0] == "unknown"
    kept = msgspec.structs.replace(WRONG, details={**WRONG.details, "drawn": "kept"})
    assert part.at_output(legal, kept, drawn=True).verdict == PASS, "a number that may not be drawn is no such matter"


def test_what_an_exported_file_does_not_draw_of_several_elements_is_its_exporters() -> None:
    """The ONNX exporter folds the mask of AlphaDropout; of one element the file is right by luck wherever it is run."""
    constant = msgspec.structs.replace(WRONG, details={**WRONG.details, "drawn": "constant"})
    rows = [
        Tried(AS_FOUND, "now", constant),
        Tried(OTHER, "onnxexport 1", RIGHT),
        Tried(SEVERAL, "onnxexport 1", constant),
    ]
    found = part.decide(constant, rows, {}, exporter=False, drawn=True, writers=("onnxexport",))
    assert found[0] == "exporter" and "onnxexport 1" in found[1]
    for drawn, writers in ((False, ("onnxexport",)), (True, ("torchexport",))):
        assert part.decide(constant, rows, {}, exporter=False, drawn=drawn, writers=writers)[0] != "exporter"


@pytest.mark.parametrize(("kind", "other", "verdict"), [
    (FILE, WRONG, "exporter"), (APART, WRONG, "library"), (APART, RIGHT, "library"), (FILE, Outcome(ERROR, "load"), "library"),
])  # fmt: skip
def test_a_definition_is_not_at_fault_of_a_file_that_is_wrong_wherever_it_is_run(
    kind: str, other: Outcome, verdict: str
) -> None:
    """PyTorch's exporter drops `label_smoothing`; ONNX Runtime computes SoftmaxCrossEntropyLoss by ONNX's function body."""
    rows = [
        Tried(AS_FOUND, "now", WRONG),
        Tried(BODY, "ONNX's own function body", WRONG),
        Tried(kind, "the file", other),
    ]
    assert part.decide(WRONG, rows, {}, exporter=True)[0] == verdict
    assert part.decide(WRONG, rows[:2], {}, exporter=False)[0] == "library"


@pytest.mark.parametrize(("said", "raised", "stage", "verdict"), [
    ("Input 'y' of 'Pow' has type float64", "Unlawful", "load", "library"),
    ("something else altogether is wrong here", "Unlawful", "load", "exporter"),
    ("Input 'y' of 'Pow' has type float64", "Refusal", "load", "exporter"),
    ("Input 'y' of 'Pow' has type float64", "Unlawful", "infer", "unknown"),
])  # fmt: skip
def test_what_fails_before_it_is_exported_is_the_library_s(said: str, raised: str, stage: str, verdict: str) -> None:
    """TensorFlow cannot trace `keras.ops.exp2` of float64: no exporter is at fault."""
    shown = Outcome(CRASH, stage, "TypeError", "Input 'y' of 'Pow' has type float64")
    before = Outcome(CRASH, "load", raised, said)
    rows = [Tried(AS_FOUND, "now", shown), Tried(LAWFUL, "TensorFlow's trace", before)]
    assert part.decide(shown, rows, {}, exporter=True)[0] == verdict


def test_a_file_of_which_its_exporter_s_frontend_gives_the_same_wrong_answer_is_the_exporter_s() -> None:
    """TVM is given a file in which RandomPosterization is drawn once for all: what its importer makes of that is right."""
    same, other = WRONG, msgspec.structs.replace(WRONG, details={**WRONG.details, "actual": 7.0})
    for shown, runs_apart, writers, verdict in (
        (same, WRONG, ("onnxexport",), "exporter"),
        (other, WRONG, ("onnxexport",), "conversion"),
        (same, WRONG, (), "conversion"),
        (same, RIGHT, ("onnxexport",), "kernel"),
        (same, Outcome(UNSUPPORTED, "load"), ("onnxexport",), "unknown"),  # two may be wrong of a file that is right
    ):
        rows = [
            Tried(AS_FOUND, "now", WRONG),
            Tried(APART, "the module", runs_apart),
            Tried(OTHER, "onnxexport 1", shown),
        ]
        assert part.decide(WRONG, rows, {}, exporter=False, writers=writers)[0] == verdict


def test_the_same_wrong_numbers_of_a_file_of_another_format_are_the_kernel_s_if_that_file_is_right() -> None:
    """OpenVINO's Unique counts nothing where nobody asks for all of its outputs, whichever importer made it."""
    other = msgspec.structs.replace(WRONG, details={**WRONG.details, "actual": 7.0})
    by_onnx, elsewhere = "openvino-keras by its variant onnx", "onnxexport 1.23"
    for shown, of_file, files, verdict in (
        (WRONG, RIGHT, {by_onnx: ("onnxexport",)}, "kernel"),
        (other, RIGHT, {by_onnx: ("onnxexport",)}, "unknown"),
        (WRONG, WRONG, {by_onnx: ("onnxexport",)}, "unknown"),  # the library's own model may be wrong
        (WRONG, RIGHT, {}, "unknown"),  # of the same file, read by the same importer
    ):
        rows = [Tried(AS_FOUND, "now", WRONG), Tried(ROUTE, by_onnx, shown), Tried(OTHER, elsewhere, of_file)]
        assert part.decide(WRONG, rows, {}, exporter=False, files=files)[0] == verdict


def test_a_wrapper_that_hands_out_no_tensor_of_no_bytes_is_no_kernel() -> None:
    refused = Outcome(CRASH, "infer", "ValueError", "Invalid tensor size.")
    found = part.decide(refused, [Tried(AS_FOUND, "now", refused)], tflite.PLACES, exporter=False)
    assert found[0] == "interface"
    other = Outcome(CRASH, "infer", "RuntimeError", "x.cc:1 Invalid tensor size. Node number 1 (ADD) failed to invoke.")
    assert part.decide(other, [Tried(AS_FOUND, "now", other)], tflite.PLACES, exporter=False)[0] == "unknown"


@pytest.mark.parametrize(
    ("operator", "stage", "native", "verdict"),
    [
        ("Max", "load", True, "library"),
        ("Min", "load", True, "conversion"),  # the body breaks another rule than what is said
        ("Max", "infer", True, "unknown"),
        ("Max", "load", False, "conversion"),  # that is an importer's
    ],
)
def test_what_breaks_a_rule_in_onnx_s_own_body_is_onnx_s_fault(
    operator: str, stage: str, native: bool, verdict: str
) -> None:
    """CenterCropPad of int32 takes the maximum of int32 and int64, whoever runs it."""
    seen = Outcome(CRASH, stage, "Fail", f"Type parameter (T) of Optype ({operator}) bound to different types")
    broken = Outcome(ERROR, "load", Unlawful.__name__, f"{OF_BODY}Max: data_0 has inconsistent type tensor(int32)")
    tried = [Tried(AS_FOUND, "now", seen), Tried(LAWFUL, "ONNX's own shape inference", broken)]
    told, why = part.decide(seen, tried, {}, exporter=False, native=native)
    assert told == verdict and (OF_BODY in why) is (operator == "Max" and stage == "load")


@pytest.mark.parametrize(
    ("message", "native", "verdict"),
    [
        ("Node () Op (Pad) [ShapeInferenceError] type mismatch: axes", True, part.INFERENCE),
        ("Node () Op (Pad) has no kernel", True, "conversion"),  # it says something else
        ("Node () Op (Pad) [ShapeInferenceError] type mismatch: axes", False, "conversion"),
    ],
)
def test_what_the_library_infers_by_itself_is_its_own_fault(message: str, native: bool, verdict: str) -> None:
    """ONNX Runtime is built with ONNX's shape inference: what that says without it is ONNX's to mend."""
    seen = Outcome(CRASH, "load", "Fail", message)
    broken = Outcome(ERROR, "load", Unlawful.__name__, "type mismatch: axes")
    tried = [Tried(AS_FOUND, "now", seen), Tried(LAWFUL, "ONNX's own shape inference", broken)]
    told, why = part.decide(seen, tried, {"ShapeInferenceError": "conversion"}, exporter=False, native=native)
    assert told == verdict and (
        why.startswith("ONNX's own shape inference says so by itself") is (told == part.INFERENCE)
    )
