"""What a message says of the cause: real messages of compilers, and what every such text must keep to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opera.oracle.messages import GAP, LONGEST, cause, identifying, of_operator, one_line, says, several, short

OPENVINO = """Exception from src/inference/src/cpp/core.cpp:84:
Check 'false' failed at src/frontends/common_translators/src/unconverted_ops_report.cpp:151:
FrontEnd API failed with OpConversionFailure:
Model wasn't fully converted. Failed operations detailed log:
-- Celu-28 with a message:
While validating ONNX node '<Node(Celu): Y>': Check 'element::Type::merge(a, b)' failed at src/core/elementwise_args.cpp:18:
While validating node 'opset1::Maximum Maximum_368797 (opset1::Parameter X[0]:f16[5])' with friendly_name 'Maximum_368797':
Arguments do not have the same element type (arg0 element type: f16, arg1 element type: f32).

Summary:
-- Conversion is failed for: Celu-28

"""
EXPORTER = """Failed to convert the exported program to an ONNX model. \x1b[96mThis is step 3/3\x1b[0m. Next steps:
- If there is a missing ONNX function, implement it and register it to the registry.

## Exception summary

<class 'AssertionError'>: only 4D query, key, and value are supported
\u2b06\ufe0f
<class 'RuntimeError'>: Error when calling function 'TracedOnnxFunction(<function f at 0x7f6d9f3296c0>)' with args '[]'

(Refer to the full stack trace above for more information.)"""
REAL = [
    (OPENVINO, "Arguments do not have the same element type (arg ... element type: f16, arg ... element type: f32)."),
    (EXPORTER, "only 4D query, key, and value are supported"),
    (
        "[ONNXRuntimeError] : 1 : FAIL : Non-zero status code returned while running Attention node. Name:'' Status Message:"
        " /onnxruntime_src/core/attention_helper.h:159 onnxruntime::common::Status onnxruntime::f(const onnxruntime::Tensor*,"
        " bool) mask == nullptr was false. inconsistent total_sequence_length\n",
        "inconsistent total_sequence_length",
    ),
    ("Check failed: fb->value != 0 (0 vs. 0) : Divide by zero", "Divide by zero"),
    ("Check failed: dtype.bits % 8 == 0 (2 vs. 0) : ", "Check failed: dtype.bits % ... == ... ( ... vs. ... )"),
    ("Unsupported input dtype: uint64", "Unsupported input dtype: uint64"),
    (
        "cannot emit this operator.\nOffending call:\nR.f(metadata[0], lv12)\n# Metadata omitted. Use show_meta=True.",
        "cannot emit this operator. ... Offending call ... R.f(metadata[ ... ], lv ... )",
    ),
    ("'num_heads'", "'num_heads'"),
    ('Traceback (most recent call last):\n  File "/a/b.py", line 3, in f\n    g()\nTVMError: no such op', "no such op"),
    (
        "Exception encountered when calling Dense.call().\n\n\x1b[1mno rank\x1b[0m\n\nArguments received by D:\n  x",
        "no rank",
    ),
    (
        "OpenCV(5.0.0) /io/opencv/onnx_importer.cpp:1114: error: (-2:Unspecified error) in function 'handleNode'\n> Node"
        " [Reshape@ai.onnx]:(onnx_node_output_0!y) parse error: OpenCV(5.0.0) /io/opencv/reshape_layer.cpp:150: error:"
        " (-1:Backtrace) Can't infer a dim denoted by -1 in function 'computeShape'\n> \n",
        "( ... :Backtrace) Can't infer a dim denoted by ... in function 'computeShape'",
    ),
    (
        'running pass codegen\n\nCaused by:\n    0: codegen node #6 "Y.sdpa" SDPA\n    1: Mask must be floating point',
        'codegen node # ... "Y.sdpa" SDPA ... Mask must be floating point',
    ),
    ("loading\n\nCaused by:\n    expected axes as a constant", "expected axes as a constant"),
    ("", ""),
    ("12 (3)", ""),
    ("Check 'rank > 0' failed at src/a.cpp:66:", "Check 'rank > ... ' failed"),
]


@pytest.mark.parametrize(("message", "wanted"), REAL)
def test_boilerplate_is_cut_and_the_cause_stays(message, wanted):
    found = identifying(message)
    assert [part.strip() for part in found.split(GAP)] == [part.strip() for part in wanted.split(GAP)]
    assert says(message, found)


def test_the_same_failure_is_known_with_other_numbers_and_another_one_is_not():
    found = identifying(OPENVINO)
    assert says(OPENVINO.replace("368797", "41").replace(":18:", ":23:"), found)
    assert not says(OPENVINO.replace("f32)", "i64)"), found)
    assert not says("Exception from src/inference/src/cpp/core.cpp:84:\nCelu is not supported", found)


def test_what_is_listed_in_the_order_of_a_set_may_be_listed_in_another() -> None:
    """onnxscript lists the types of a signature so, and a script that insists on one order sees another failure each time."""
    said = "Required attribute 'to' is not provided: Cast(input: T1) -> (T2) where {}, {}. It is one of {}"
    one = said.format("T1=UINT64 | STRING | FLOAT16", "T2=BFLOAT16 | INT8 | UINT4", "{'a', 'b', 'c'}")
    other = said.format("T1=STRING | FLOAT16 | UINT64", "T2=UINT4 | BFLOAT16 | INT8", "{'c', 'a', 'b'}")
    assert says(other, identifying(one)) and says(one, identifying(other))
    assert "Required attribute" in identifying(one)
    assert not says(other.replace("'to'", "'axis'"), identifying(one))


def test_every_message_keeps_something_where_it_holds_more_than_boilerplate():
    assert cause("Exception from src/inference/src/cpp/core.cpp:84:") == ""
    assert cause("Summary:\n-- No conversion rule found for operations: aten::x") != ""


@given(st.text(alphabet=st.sampled_from("ab1 .:\n'()[]/\\x-"), max_size=200))
def test_an_identifying_text_is_said_by_its_own_message(message):
    found = identifying(message)
    assert says(message, found)
    assert len(found) <= LONGEST * (1 + len(GAP)) and found == one_line(found).strip()


def test_the_callers_line_is_no_part_of_what_mlir_says() -> None:
    """The adapter runs as a module, a script as a file: the same failure names two callers."""
    said = "'tfl.fully_connected' op operand #0 must be tensor of 32-bit float values"
    for caller in ("<frozen runpy>:198:1", "/tmp/F1.py:61:12", "<unknown>:0:0"):
        for before in ("", "Could not translate MLIR to FlatBuffer."):
            assert cause(f"{before}{caller}: error: {said}").splitlines()[0] == said


def test_what_is_logged_and_where_threads_were_is_no_part_of_what_kills_a_process() -> None:
    log = "W1124 02:54:48.951000 6786 lib/torch/onnx/_registration.py:107] torchvision is not installed. Skipping nms"
    died = "random.h:2138: Assertion '_M_stddev > _RealType(0)' failed."
    where = (
        'Fatal Python error: Aborted\n\nThread 0x00007f0f (most recent call first):\n  File "x.py", line 331 in wait'
    )
    assert cause(f"{log}\n{log}\n{died}\n{where}") == died
    assert cause(where) == "Fatal Python error: Aborted", "where nothing else is said, it is told without its threads"
    assert cause(log) == "" and cause(f"E1124 02:54:48.951000 6786 x.py:1] {died}") != "", (
        "an error that is logged is told"
    )


def test_the_callers_module_is_no_part_of_what_mlir_says() -> None:
    """LiteRT Torch names the module and the node, and the line where there is a file: a script's are others than a worker's."""
    ours = """Verification failed:\nerror: "builtins.Model;"("index_select"): 'func.call' op expected 1, but got 2"""
    theirs = ours.replace('"builtins.Model;"("index_select")', '"__main__.Model;"("index_select"("/tmp/F1.py":17:0))')
    assert says(theirs, identifying(ours)) and says(ours, identifying(theirs)) and "func.call" in identifying(ours)
    at = "Failed to run converter passes: {} failed to legalize operation 'tfl.pow' that was explicitly marked illegal"
    ours, theirs = (
        at.format('<unknown>:0: error: loc("builtins.Model;"("pow_1")):'),
        at.format("/tmp/F1.py:17:0: error:"),
    )
    assert says(theirs, identifying(ours)) and says(ours, identifying(theirs)) and "tfl.pow" in identifying(ours)


LEFT_OVER = """-- SequenceMark with a message:
This is OpenVINO internal type. Consumer: util::PtFrameworkNode aten::normal
-- aten::normal with a message:
[PyTorch Frontend] Couldn't get dtype input

-- prim::Constant with a message:
None constant cannot be converted to OpenVINO opset and should be removed by consuming operation.
Summary:
-- Conversion is failed for: SequenceMark, aten::normal, prim::Constant
"""


SEVERAL = """FrontEnd API failed with OpConversionFailure:
Model wasn't fully converted. Failed operations detailed log:
-- FFT with a message:
FFT op input element type must be f32

-- Imag with a message:
Imag operation expects complex type tensor on input.

Summary:
-- Conversion is failed for: FFT, Imag
"""


def test_of_several_operators_that_fail_what_is_said_of_one_is_told():
    assert cause(of_operator(SEVERAL, "FFT")) == "FFT op input element type must be f32"
    assert cause(of_operator(SEVERAL, "Imag")) == "Imag operation expects complex type tensor on input."
    assert of_operator(SEVERAL, "Real") == SEVERAL and of_operator(LEFT_OVER, "") == LEFT_OVER


def test_what_is_left_over_of_an_operator_says_nothing_beside_the_operator_that_failed():
    assert cause(LEFT_OVER) == "[PyTorch Frontend] Couldn't get dtype input"
    outputs = "-- <built-in function getitem> with a message:\nIndex: 1 is out of bounds of input list of len: 1\n"
    assert cause(outputs + LEFT_OVER) == "[PyTorch Frontend] Couldn't get dtype input"
    assert cause(outputs).startswith("Index: 1 is out of bounds")
    assert [several(x) for x in (LEFT_OVER, outputs, outputs + LEFT_OVER, "")] == [0, 0, 1, 0]
    alone = LEFT_OVER.partition("-- aten")[0]
    assert cause(alone).startswith("This is OpenVINO internal type")


@pytest.mark.parametrize(
    ("says", "wanted"),
    [
        (
            'ir.Op(span=None, ty=ir.Type(span=None), name="relax.sqrt", arguments=(ir.ArgumentInfo(name="x", info="T"),),'
            " level=10) requires the input tensor to have float dtype",
            "relax.sqrt requires the input tensor to have float dtype",
        ),
        ("got <openvino.frontend._Type.Complex object at 0x7fd9c4918670>", "got Complex"),
        (
            'R.multiply(lv1, X) of R.Tensor((3,), dtype="float32")',
            'R.multiply(lv1, X) of R.Tensor((3,), dtype="float32")',
        ),
        ('no op (name="x") here', 'no op (name="x") here'),
    ],
)
def test_an_object_that_is_printed_with_all_its_fields_is_named(says, wanted):
    assert short(says) == wanted


@given(st.text('a(=,) "name.', max_size=60))
def test_a_text_without_objects_stays_and_none_grows(text):
    assert len(short(text)) <= len(text)


def test_what_is_left_over_of_an_operator_names_nothing_that_failed() -> None:
    """Readers of the first audit called "at its SequenceMark" noise, and those of the thirty-first."""
    listed = (
        "-- getitem with a message:\nIndex: 2 is out of bounds\n-- SequenceMark with a message:\nThis is internal\n"
    )
    assert of_operator(listed, "SequenceMark") == listed and "internal" not in of_operator(listed, "getitem")


def test_sizes_that_an_exporter_does_not_know_are_no_dtypes() -> None:
    """torch.export numbers them as it meets them."""
    said = "Pending unbacked symbols {u%d} not in returned outputs FakeTensor(..., size=(1,)) ((1,), u%d)."
    assert says(said % (7, 9), identifying(said % (0, 2)))
    several = "Pending unbacked symbols {u3, u1, u2} not in returned outputs FakeTensor(..., size=(1,)) ((1,), u4)."
    assert says(several, identifying(said % (0, 2))), "how many there are, and in which order, changes from run to run"
    wrong = "type %s is none of these"
    assert not says(wrong % "u8", identifying(wrong % "u16")), "of other messages they are"
