"""One sentence says what is wrong, whatever the failure."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opera import resources
from opera.programs.verdicts import ABORT, CRASH, FAILURES, INCONSISTENT, REFUSED, TIMEOUT, UNSTABLE, Outcome
from opera.triage.route import OTHERWISE, RIGHT, route
from opera.triage.sentence import (
    CONSTANT_RESULT,
    SHORT,
    UNUSED,
    apart,
    reads_as_invalid,
    reads_as_refusal,
    sentence,
    title,
    together,
    untouched,
    unwritten,
)

VALUE = {"differing": 3, "elements": 4, "index": "[0, 1]", "expected": 2.875, "actual": 2.6666665077, "output": "Y"}
SHAPE = {"expected": "(1, 2)", "actual": "(1, 3)", "output": "Y"}
CASES = [
    (Outcome(INCONSISTENT, "infer", "value", details=VALUE), (), "computes Resize wrongly: Y[0, 1] is 2.66667, not 2.875 (3"),
    (Outcome(INCONSISTENT, "infer", "value", details=VALUE), ("antialias=1",), "computes Resize with antialias=1 wrongly: Y[0"),
    (Outcome(INCONSISTENT, "infer", "shape", details=SHAPE), (), "returns a wrong shape from Resize: (1, 3) for (1, 2) (Y)"),
    (Outcome(INCONSISTENT, "infer", "count", details={"expected": 2, "actual": 1}), (), "returns 1 outputs of Resize, not 2"),
    (Outcome(CRASH, "load", "KeyError", "'axes'"), (), "cannot load Resize: KeyError: 'axes'"),
    (Outcome(CRASH, "infer", "RuntimeError", "bad rank"), (), "cannot run Resize: bad rank"),
    (
        Outcome(CRASH, "load", "RuntimeError", "bad rank", conversion_function="Split@split.cpp:35"), (),
        "cannot load Resize (at its Split): bad rank",
    ),
    (Outcome(ABORT, "compile", "SIGFPE"), (), "kills the process (SIGFPE) compiling Resize"),
    (Outcome(TIMEOUT, "infer", "timeout"), (), "does not end running Resize"),
    (Outcome(UNSTABLE, "infer", "value"), (), "returns other outputs of Resize from run to run"),
    (Outcome(REFUSED, "load", "ValueError", "no Resize"), (), "refuses Resize, against what it declares: no Resize"),
]  # fmt: skip


@pytest.mark.parametrize(("outcome", "deciding", "wanted"), CASES)
def test_it_names_the_compiler_the_operator_and_the_numbers(outcome, deciding, wanted):
    assert sentence("OpenVINO", "Resize", outcome, deciding).startswith(f"OpenVINO {wanted}")


@pytest.mark.parametrize("verdict", FAILURES)
def test_it_is_one_line_even_of_what_is_hardly_known(verdict):
    said = sentence("TVM", "Add", Outcome(verdict, message="a\nb" * 500))
    assert "\n" not in said and "TVM" in said and "Add" in said and len(said) < 300


def test_an_exporter_cannot_load_nothing() -> None:
    for stage, wanted in (
        ("load", "cannot export Resize: bad"),
        ("compile", "makes of Resize a model that does not load: bad"),
    ):
        outcome = Outcome(CRASH, stage, "RuntimeError", "bad")
        assert sentence("The exporter", "Resize", outcome, exporter=True) == f"The exporter {wanted}"
        assert "load" in sentence("TVM", "Resize", Outcome(CRASH, "load", "RuntimeError", "bad"))
    assert (
        title("Resize", Outcome(CRASH, "infer", "Fail", "bad"), exporter=True)
        == "Resize: exported model does not run: bad"
    )


def test_a_file_that_declares_another_dtype_was_exported() -> None:
    """The exporter raises nothing: the class is opera's own, and no word of anybody's issue."""
    shown = Outcome(CRASH, "load", "DeclaredOtherwise", "the file declares float16 for an input of bfloat16")
    assert title("Abs", shown, exporter=True) == "Abs: the file declares float16 for an input of bfloat16"
    told = "E writes a model of Abs that declares another dtype: the file declares float16 for an input of bfloat16"
    assert sentence("E", "Abs", shown, exporter=True) == told
    draft = (resources.content("templates") / "issues" / "parts.j2").read_text()
    assert '"DeclaredOtherwise"' in draft and '"exported file" if x.exporter else "loaded model"' in draft
    loaded = Outcome(CRASH, "load", "DeclaredOtherwise", "the loaded model declares float32 for an input of complex64")
    assert sentence("OpenVINO", "abs", loaded) == f"OpenVINO loads abs with another dtype: {loaded.message}"
    assert title("abs", loaded) == f"abs: {loaded.message}"


@pytest.mark.parametrize(("outcome", "deciding", "_"), CASES)
def test_a_title_names_operator_parameter_and_symptom_but_no_compiler(outcome, deciding, _):
    told = title("Resize", outcome, deciding)
    assert told.startswith("Resize") and all(x in told for x in deciding) and "OpenVINO" not in told and ": " in told
    assert len(told) < 120 and "\n" not in told


def test_a_title_ends_with_a_sentence_or_a_word() -> None:
    cut = title("Add", Outcome(CRASH, "load", "RuntimeError", f"No such pass here. {'more ' * 40}"))
    assert cut == "Add: fails to load: No such pass here"
    cut = title("Add", Outcome(CRASH, "load", "RuntimeError", "word " * 60))
    assert cut.endswith("word…") and len(cut) < SHORT + 25


def test_several_calls_have_no_function_body():
    outcome = Outcome(CRASH, "load", "ValueError", "no", conversion_function="expanded Shape + Max")
    assert sentence("TVM", "Shape + Max", outcome) == "TVM cannot load Shape + Max: no"
    assert "expanded" in sentence("TVM", "Elu", msgspec.structs.replace(outcome, conversion_function="expanded Elu"))


def test_what_was_drawn_at_random_is_not_told():
    """The numbers of one run say nothing: what is wrong with them does."""
    why = "y is the same in every run of a compiled model; 9 runs of the reference give 9 different answers"
    details = {"expected": 0.7, "actual": 0.3, "index": "[0]", "output": "y", "why": why, "drawn": "constant"}
    outcome = Outcome("inconsistent", "infer", "value", "y: 1 of 1", details=details)
    trains = ("training mode", "rate=0.5")
    assert sentence("TVM", "Dropout", outcome) == f"TVM does not draw Dropout at random: {why}"
    assert title("Dropout", outcome) == "Dropout: y is the same in every run"
    assert title("Dropout", outcome, trains).startswith("Dropout in training mode with rate=0.5: y is")
    outcome = Outcome("inconsistent", "infer", "value", "y: 1 of 1", details={**details, "drawn": "share"})
    assert sentence("TVM", "Dropout", outcome) == f"TVM draws Dropout wrongly: {why}"


def test_relations_of_a_small_program_are_not_told():
    crash = Outcome("crash", "load", "RuntimeError", "output_size must have 2 elements")
    for relation in ("length 1 of axis 0",):
        assert relation not in sentence("OpenVINO", "Col2Im", crash, [relation])
        assert title("Col2Im", crash, [relation, "group=2"]).startswith("Col2Im with group=2: ")


def test_what_is_wrong_comes_before_which_operator_it_is_of_in_a_title():
    """OpenVINO names the operator by its type and name, and tells why only in the details, after which it tells more."""
    message = (
        "Exception from src/inference/src/cpp/core.cpp:117:\nCheck 'newNode' failed at src/node.cpp:1626:\n"
        "Unsupported operation of type: Convert name: output\nDetails:\n"
        "Exception from src/convert.cpp:61:\nNot Implemented:\n"
        "cpu_convert can't convert from: string precision to: f32\n\nException from src/reference.cpp:36:\nNot Implemented:\n"
        "Cannot fallback on ngraph reference implementation. Ngraph::Node::evaluate() is not implemented\n"
    )
    refused = Outcome("refused-claimed", "compile", "RuntimeError", message)
    told = "Cast: is refused: cpu_convert can't convert from: string precision to: f32"
    assert title("Cast", refused) == told
    bare = message.partition("Exception from src/convert")[0]
    assert "operation of type: Convert" in title("Cast", msgspec.structs.replace(refused, message=bare))


def test_operators_that_fail_alike_are_named_once_each_in_whatever_form():
    crash = Outcome("crash", "load", "RuntimeError", "no")
    assert (
        title("Shape + Size", crash, alike=("Div", "Sub"))
        == "Shape + Size (also seen in programs of Div, Sub): fails to load: no"
    )
    assert title("torch.add (float64)", crash, alike=("torch.nn.Add", "torch.Tensor.add_")).count("dd") == 1
    assert title("torch.add", crash, alike=("torch.Tensor.add_",)) == "torch.add: fails to load: no"
    assert "(also seen in programs of a, b, c, d, …)" in sentence("TVM", "x", crash, alike=tuple("abcde"), route="")
    assert "(by its ONNX file; also seen in programs of Sub)" in sentence(
        "TVM", "x", crash, alike=("Sub",), route="by its ONNX file"
    )
    told = sentence("TVM", "x", crash, alike=("k.Sub", "k.Div"), route="seen in k.Sub")
    assert "(seen in k.Sub; also seen in programs of k.Div)" in told, "who is named by the route is named once"


def test_of_many_operators_the_first_and_the_last_are_named():
    crash = Outcome("crash", "load", "RuntimeError", "no", conversion_function="Scan@scan.cpp:189")
    many = " + ".join(["Shape"] * 30 + ["Scan"])
    assert sentence("OpenVINO", many, crash) == "OpenVINO cannot load Shape + … + Scan (31 operators): no"
    assert sentence("OpenVINO", many.replace("Shape", "Constant"), crash) == "OpenVINO cannot load Scan: no"
    assert sentence("OpenVINO", "Shape + Max", crash).startswith("OpenVINO cannot load Shape + Max (at its Scan): ")


@pytest.mark.parametrize(
    ("deciding", "wanted"),
    [
        (("X is no constant",), "Resize where X is no constant wrongly"),
        (
            ("antialias=1", "input roi", "X is no constant"),
            "Resize with antialias=1 and input roi where X is no constant",
        ),
        (
            ("s is a graph input", "t is a graph input"),
            "Resize where s is a graph input and t is a graph input wrongly",
        ),
        (("length 1 of axis 0",), "Resize wrongly"),
    ],
)
def test_where_an_input_comes_from_is_told_after_what_is_given(deciding, wanted):
    assert wanted in sentence("TVM", "Resize", Outcome(INCONSISTENT, "infer", "value", details=VALUE), deciding)
    shape = Outcome(INCONSISTENT, "infer", "shape", details=SHAPE)
    assert wanted.removesuffix(" wrongly") in title("Resize", shape, deciding)


@pytest.mark.parametrize(
    ("one", "other", "told"),
    [
        (22.076072655462724, 22.076069934843595, ("22.076073", "22.07607")),
        (2.875, 2.6666665077, ("2.875", "2.66667")),
        (0.1, 0.1, ("0.1", "0.1")),
        (float("nan"), 1.0, ("nan", "1")),
        ("(1, 2)", "(1, 3)", ("(1, 2)", "(1, 3)")),
    ],
)
def test_two_numbers_have_as_many_digits_as_tell_them_apart(one, other, told):
    assert apart(one, other) == told


def test_what_the_checker_forbids_is_no_refusal():
    says = "indices typestr: tensor(int64), has unsupported type: tensor(int32)"
    for symptom, refuses in (("InferenceError", False), ("ValidationError", False), ("RuntimeError", True)):
        assert reads_as_refusal(Outcome(CRASH, "compile", symptom=symptom, message=says)) is refuses


@pytest.mark.parametrize(
    ("frontend", "variant", "shown", "wanted"),
    [
        ("tvm-keras", "tflite", {"onnx": RIGHT}, "by TFLite"),
        ("openvino-keras", "onnx", {"live": OTHERWISE}, "by its ONNX file"),
        ("openvino-keras", "live", {"saved-model": RIGHT}, "given as an object; as a SavedModel this model is right"),
        ("openvino-keras", "live", {"saved-model": OTHERWISE, "onnx": RIGHT}, "given as an object"),
        ("openvino-keras", "live", {"onnx": RIGHT}, ""),
        (
            "openvino-torch",
            "exported-program",
            {"torchscript": RIGHT},
            "as an exported program; as TorchScript this model is right",
        ),
        ("openvino-torch", "torchscript", {}, ""),
        ("tvm-onnx", "constants", {"inputs": RIGHT}, ""),
    ],
)  # fmt: skip
def test_the_route_is_told_where_it_matters(frontend, variant, shown, wanted):
    assert route(frontend, variant, shown) == wanted


def test_of_a_crash_other_routes_tell_that_the_model_runs_and_settings_are_told_beside_the_route():
    """That its numbers are right is more than a program tells that was reduced to crash."""
    paths = ("read by path", "from the file's bytes")
    assert (
        route("openvino-onnx", "inputs", {}, [paths], crashes=True)
        == "read by path; from the file's bytes this model runs"
    )
    otherwise = "read by path; from the file's bytes it fails otherwise"
    assert route("openvino-onnx", "inputs", {}, (), [paths], crashes=True) == otherwise
    assert route("openvino-keras", "onnx", {"live": RIGHT}, [paths]) == (
        "by its ONNX file, read by path; as an object and from the file's bytes this model is right"
    )


@pytest.mark.parametrize("frontend", ["xla-onnx", "gone-torch"])
def test_a_stored_frontend_that_is_not_here_has_no_route(frontend):
    assert route(frontend, "live", {"onnx": RIGHT}) == ""


@pytest.mark.parametrize(
    ("operator", "function", "wanted"),
    [
        (
            "keras.layers.SimpleRNN",
            "tflite_frontend:OperatorConverter.convert_slice",
            " (where it becomes SLICE, by TFLite)",
        ),
        (
            "keras.layers.Add",
            "tflite_frontend:OperatorConverter._convert_elemwise[MUL]",
            " (where it becomes MUL, by TFLite)",
        ),
        ("keras.layers.Conv1DTranspose", "TRANSPOSE_CONV", " (where it becomes TRANSPOSE_CONV, by TFLite)"),
        ("keras.layers.DepthwiseConv2D", "DEPTHWISE_CONV_2D", " (by TFLite)"),
        ("keras.layers.LSTM", "expanded LSTM", " (by TFLite)"),
        ("keras.ops.zeros_like", "NO_OPERATOR", " (where no operator is left of it, by TFLite)"),
    ],
)
def test_the_operator_of_tflite_is_named_where_it_is_another(operator, function, wanted):
    outcome = Outcome(CRASH, "load", "TypeError", "no bytes", conversion_function=function)
    assert title(operator, outcome, route="by TFLite") == f"{operator}{wanted}: fails to load: TypeError: no bytes"


def test_integers_that_were_read_as_floats_are_told():
    details = {"output": "y", "index": "[0]", "expected": 0.5, "actual": 7 * 2.0**-149, "differing": 1, "elements": 1}
    outcome = Outcome("inconsistent", "infer", "value", "", details=details)
    assert title("Conv", outcome) == "Conv: wrong value, y[0] holds the bits of the integer 7 instead of 0.5"


def test_numbers_of_unwritten_memory_are_not_told():
    details = {"expected": 0.5, "actual": 1.4e-45, "index": "[0]", "output": "y", "differing": 1, "elements": 1}
    outcome = Outcome(INCONSISTENT, "infer", "value", details=details)
    assert title("Conv", outcome) == "Conv: wrong value, y[0] looks like unwritten memory instead of 0.5"
    assert "e-45" not in sentence("MNN", "Conv", outcome)


@given(
    st.floats(-1e6, 1e6, width=32), st.floats(2.0**-120, 1e19) | st.sampled_from([3.4028234663852886e38, 2.0**90, 0.0])
)
def test_numbers_that_a_computation_may_come_to_are_told(expected, actual):
    assert not unwritten(expected, actual) and not unwritten(expected, -actual)
    assert not unwritten(expected, float("nan")) and not unwritten(expected, float("inf"))


@pytest.mark.parametrize("differ", [True, False, None])
def test_wrong_numbers_beneath_a_wrong_dtype_are_told(differ: bool | None) -> None:
    """MNN's CAST of 2.0 to bool is 2.0: who returned it as bool would still not see it right."""
    details = {"expected": "bool", "actual": "float32", "output": "y"} | (
        {} if differ is None else {"values_differ": differ}
    )
    outcome = Outcome(INCONSISTENT, "infer", "dtype", details=details)
    told = title("cast", outcome), sentence("MNN", "cast", outcome)
    assert told == (
        ("cast: wrong numbers and dtype of y, float32 instead of bool", WRONG_NUMBERS)
        if differ
        else (
            "cast: wrong dtype of y, float32 instead of bool",
            "MNN returns a wrong dtype from cast: float32 for bool (y)",
        )
    )


WRONG_NUMBERS = "MNN returns wrong numbers, and of another dtype, from cast: float32 for bool (y)"


def test_all_zeros_are_told_at_once():
    details = VALUE | {"expected": 2.5, "actual": 0.0, "manner": {"Y": ["wrong", "all", "finite>zero", "zero"]}}
    assert title("Conv", Outcome(INCONSISTENT, "infer", "value", details=details)) == (
        "Conv: wrong value, Y is all zeros instead of 2.5"
    )
    details = {"expected": "int64", "actual": "float32", "output": "Y", "manner": details["manner"]}
    assert title("Pool", Outcome(INCONSISTENT, "infer", "dtype", details=details)).endswith("of int64, and all zeros")
    for words, ends in (
        (["wrong", "some", "zero"], "of int64"),
        (["wrong", "some", "zero", "constant"], "and all zeros"),
    ):
        seen = details | {"manner": {"Y": words}}  # 0 and 1 for 0.5 and 1; 0 and 0 for 0 and 1
        assert title("Pool", Outcome(INCONSISTENT, "infer", "dtype", details=seen)).endswith(ends)


@pytest.mark.parametrize(
    ("message", "wanted"),
    [
        (f"Required inputs ([{', '.join(['functional_1/Sub/y:0'] * 4)}]) are missing from input feed ([x]).",
         "Required inputs (…) are missing from input feed ([x])"),
        ("Reshape error: 8 -> 4\nCompute Shape Error for functional_1/multi_head_attention_1/key_1/MatMul1\ncode=3 onForward",
         "Reshape error: 8 -> 4 Compute Shape Error code=3 onForward"),
        ("Error for Reshape: bad axis", "Error for Reshape: bad axis"),
        ("Don't support type [BatchMatMul]\nDon't support type [BatchMatMul]", "Don't support type [BatchMatMul]"),
    ],
)  # fmt: skip
def test_a_message_is_cut_where_it_is_understood(message, wanted):
    told = title("Add", Outcome(CRASH, "infer", "RuntimeError", message))
    assert told == f"Add: fails to run: {wanted}"


def test_a_name_that_is_looked_up_in_vain_is_no_operator():
    outcome = Outcome(CRASH, "load", "KeyError", "'arith.constant'", location="tflite_frontend.py:get_expr")
    assert sentence("TVM", "Dense", outcome).endswith("KeyError: 'arith.constant', the name of a tensor, is not found")
    other = msgspec.structs.replace(outcome, message="'num_heads'", location="onnx_frontend.py:_impl_v1")
    assert sentence("TVM", "Attention", other).endswith("KeyError: 'num_heads'")


def test_what_is_of_one_tensor_is_one_phrase_and_a_title_has_room_for_three():
    outcome = Outcome(CRASH, "load", "KeyError", "'axes'")
    both = ("an empty input", "a 1-d input")
    assert sentence("TVM", "Concat", outcome, both).startswith("TVM cannot load Concat with an empty 1-d input: ")
    assert together(["an empty input", "an input of rank 2 or more"]) == ["an empty input of rank 2 or more"]
    two = ["an empty input", "a 0-d input"]
    assert together(two) == two, "what has no axes is not empty"
    assert together(["a 1-d input", "bool inputs"]) == ["a 1-d input", "bool inputs"]
    many = ("dim given", "keepdim=True", "a 0-d input", "k is an input")
    assert "Sum with dim given, keepdim=True and a 0-d input where k is an input:" in sentence(
        "TVM", "Sum", outcome, many
    )
    assert title("Sum", outcome, many).startswith(
        "Sum with dim given, keepdim=True and a 0-d input where k is an input: "
    )
    more = ("dim given", "keepdim=True", "axis < 0", "a 0-d input")
    assert title("Sum", outcome, more).startswith("Sum with dim given, keepdim=True and axis < 0: ")


@given(
    st.lists(
        st.sampled_from(["an empty input", "a 0-d input", "an input of rank 3", "bool inputs", "axis=2"]), unique=True
    )
)
def test_nothing_that_is_told_is_lost_where_phrases_are_joined(told):
    joined = together(told)
    assert all(x in joined or x.split()[1] in " ".join(joined) for x in told)
    assert len(told) - len(joined) in (0, 1)


def test_a_parameter_is_told_once():
    why = "with seed=0.0, two models draw differently"
    outcome = Outcome(INCONSISTENT, "infer", "value", details={"drawn": "seed", "why": why})
    assert title("RandomUniform", outcome, ["seed=0.0"]) == "RandomUniform with seed=0.0: two models draw differently"
    assert title("RandomUniform", outcome) == f"RandomUniform: {why}"


@pytest.mark.parametrize(
    ("actual", "verdict", "differing", "told"),
    [
        (float(np.frombuffer(b"\x7a" * 4, np.float32)[0]), UNSTABLE, 2, True),
        (float(np.frombuffer(b"\x2c" * 8, np.float64)[0]), UNSTABLE, 2, True),
        (0x7A7A7A7A, UNSTABLE, 2, True),
        (0x7A, UNSTABLE, 2, False),  # one byte may be anything
        (
            float(np.frombuffer(b"\x7a" * 4, np.float32)[0]),
            UNSTABLE,
            1,
            False,
        ),  # some elements are as they are expected
        (float(np.frombuffer(b"\x7a" * 4, np.float32)[0]), INCONSISTENT, 2, False),
        (1.5, UNSTABLE, 2, False),
    ],
)
def test_an_output_that_holds_what_fresh_memory_was_filled_with_was_never_written(actual, verdict, differing, told):
    seen = {"output": "y", "actual": actual, "expected": 0, "differing": differing, "elements": 2, "index": "[0]"}
    outcome = Outcome(verdict, "infer", "unstable", details=seen)
    assert untouched(outcome) is told
    assert ("y is made of memory that nobody wrote" in title("Tile", outcome)) is told
    assert ("returns y of Tile out of memory that nobody wrote" in sentence("TVM", "Tile", outcome)) is told


@pytest.mark.parametrize(
    ("says", "refuses"),
    [
        ("CPU plugin does not support string for use with oneDNN.", True),
        ("These operators don't support it", True),
        ("The kernel only supports float", True),
        ("Only sum and mean mode supported for aten::embedding_bag", True),
        ("Element type must be f32, f16, i8", True),
        ("The frontend doesn't allow complex type", True),
        ("The supported shape of the input data tensor is 4D.", True),
        ("only the first is wrong. It is supported", False),
        ("the type must be that of X", False),
        ("get_attribute is not implemented for this FrontEnd class", False),
        ("power only applies to float", False),
        ("supports float and double", False),
    ],
)
def test_who_says_what_it_does_not_support_refuses(says: str, refuses: bool) -> None:
    assert reads_as_refusal(Outcome(CRASH, "compile", symptom="RuntimeError", message=says)) is refuses


def test_who_raises_what_nobody_raises_but_on_purpose_refuses():
    for symptom in ("NotImplementedError", "builtins.NotImplementedError"):
        assert reads_as_refusal(Outcome(CRASH, "load", symptom=symptom, message="float16 alone"))
    assert not reads_as_refusal(Outcome(CRASH, "load", symptom="RuntimeError", message="float16 alone"))


def test_a_title_ends_before_a_quotation_that_would_not_be_closed():
    says = (
        "The number of dequantization scale elements '1' must match the input shape dimension '2', or else it must be 1"
    )
    told = title("QLinearConv", Outcome(CRASH, "load", "RuntimeError", says))
    assert told.endswith("must match the input shape dimension '2'…")


def test_what_the_checker_refuses_is_invalid_for_a_runtime_may_load_it():
    outcome = Outcome(CRASH, "compile", "InferenceError", "ranks differ")
    assert "makes of Resize a model that ONNX's checker refuses: Inf" in sentence(
        "It", "Resize", outcome, exporter=True
    )
    assert title("Resize", outcome, exporter=True).startswith("Resize: exported model is invalid: InferenceError")


@pytest.mark.parametrize(
    ("says", "invalid"),
    [
        ("Dimension `num_directions` doesn't match to other inputs", True),
        ("zero points should be 0", True),
        ("Input element types do not match.", False),
        ("Unknown type", False),
        ("object of type 'Var' has no len()", False),
    ],
)
def test_who_says_what_an_input_ought_to_be_calls_it_invalid(says, invalid):
    assert reads_as_invalid(Outcome(CRASH, "load", "RuntimeError", says)) is invalid
    assert not reads_as_invalid(Outcome(REFUSED, "load", "RuntimeError", says))


@pytest.mark.parametrize(
    ("symptom", "message", "says", "titled"),
    [
        ("out-of-memory", "", "needs more memory than it is given running Slice", "Slice: running takes all memory"),
        (
            "tvm.error.InternalError",
            "std::bad_alloc",
            "asks for more memory than there is running Slice: std::bad_alloc",
            "Slice: running asks for more memory than there is: std::bad_alloc",
        ),
    ],
)
def test_memory_that_is_asked_for_at_once_is_not_taken(symptom, message, says, titled):
    """A negative length throws std::bad_alloc, and nothing grows."""
    outcome = Outcome("out-of-memory", "infer", symptom, message)
    assert sentence("TVM", "Slice", outcome) == f"TVM {says}"
    assert title("Slice", outcome) == titled


def test_an_empty_string_is_seen():
    outcome = Outcome(
        "inconsistent", "infer", "value", "", details={"output": "Y", "index": "[1]", "expected": "b", "actual": ""}
    )
    assert title("Gather", outcome) == "Gather: wrong value, Y[1] is '' instead of b"


@pytest.mark.parametrize(
    ("message", "dtypes", "refusal"),
    [
        ("FFT op input element type must be f32, f16, or bf16", {"float32"}, False),
        ("FFT op input element type must be f32, f16, or bf16", {"float64"}, True),
        ("FFT op input element type must be f32, f16, or bf16", {"float32", "int32"}, True),
        ("FFT op input element type must be f32, f16, or bf16", set(), True),
        ("Input element type must be f32, f16, i8, bf16, u8, i64, i32, f64", {"int16"}, True),
        ("complex is not supported", {"float32"}, True),
    ],
)
def test_types_that_are_taken_are_no_refusal_of_a_program_that_has_no_others(message, dtypes, refusal):
    assert reads_as_refusal(Outcome(CRASH, "load", "OpConversionFailure", message), dtypes) is refusal


def test_a_title_has_the_first_part_of_a_long_route():
    route = (
        "by its ONNX file, with keep_params_in_input=True; without keep_params_in_input this model runs; and much more"
    )
    wrong = Outcome(CRASH, "load", "ValueError", "no")
    assert "keep_params_in_input=True)" in title("Range", wrong, route=route) and route in sentence(
        "TVM", "Range", wrong, route=route
    )
    assert "as TorchScript this model is right" in title(
        "Range", wrong, route="as an exported program; as TorchScript this model is right"
    )


@pytest.mark.parametrize(
    ("says", "told"),
    [
        (
            "tflite/kernels/rfft.cc:1 IsPowerOfTwo(fft_length_data[1]) was not true.Node number 1 (RFFT2D) failed to prepare.",
            "IsPowerOfTwo(fft_length_data[1]) was not true",
        ),
        ("Node number 1 (RFFT2D) failed to prepare.", "RFFT2D failed to prepare"),
    ],
)
def test_a_title_has_no_number_of_a_node_nor_a_line_of_the_compilers(says, told):
    assert title("rfft", Outcome("crash", "compile", "RuntimeError", says)) == f"rfft: fails to compile: {told}"


def test_what_is_given_comes_before_an_operator_that_is_incidental() -> None:
    shown = Outcome(CRASH, "infer", "RuntimeError", "no such precision")

    def told(*deciding: str, of: tuple[str, ...] = ("UpSampling3D", "Flatten")) -> str:
        return title("keras.ops.abs", shown, deciding, alike=of, incidental=True).partition(": ")[0]

    assert told("bfloat16 inputs") == "bfloat16 inputs of several operators (keras.ops.abs, UpSampling3D, …)"
    assert told("an empty input") == "an empty input of several operators (keras.ops.abs, UpSampling3D, …)"
    assert told("mode=1").startswith("keras.ops.abs with mode=1 (") and told().startswith("keras.ops.abs (")
    assert sentence(
        "OpenVINO", "Abs", shown, ["float64 inputs"], alike=("Tile",), incidental=True, route="by its file"
    ) == ("OpenVINO cannot run float64 inputs of several operators (Abs, Tile; by its file): no such precision")


def test_of_a_model_whose_result_hangs_on_no_input_that_comes_first() -> None:
    """OpenVINO loads no exported program that does not use its input, whatever it calls."""
    shown = Outcome(CRASH, "load", "RuntimeError", "Input 0 is not found in the graph")
    where = "a model whose result hangs on no input (zeros_like; as an exported program)"
    route_ = f"as an exported program; {CONSTANT_RESULT}"
    lines = [
        sentence("OpenVINO", "zeros_like", shown, route=route_),
        title("zeros_like", shown, route=route_),
    ]
    assert all(where in x and x.count("no input") == 1 for x in lines)
    unused = sentence("OpenVINO", "new_ones", shown, route=f"as an exported program; {UNUSED}")
    assert "a model whose first input is not used (new_ones; as an exported program)" in unused
    told = title("zeros_like", shown, ["dtype=torch.int8"], route=CONSTANT_RESULT)
    assert told.startswith("zeros_like with dtype=torch.int8 (its result hangs on no input)")
