"""Equal failures get one signature, whatever numbers, shapes and names they came with."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from opera.oracle.signature import EXCUSED, LIMIT, Signature, normalise
from opera.programs.verdicts import ABORT, CRASH, INCONSISTENT, REFUSED, TIMEOUT, Outcome

PIECES = st.sampled_from(
    ["shape [1, 2]", "(3,)", "0x7ffe12", "'conv_1'", '"x"', "/a/b/c.cpp:12", "lv12", "float32", "1.5e-3", "node: x", "-7",
     "{?,3}", "[]", "()", "2x3x4", "\n", " ", "T.int64(3)", "@", "#", "[#]", "<", ">", "foo", "'", '"', "`", "a.b/c",
     "R.add(lv4, x)", "a.b(", "opset1::Add Add_1", "util::X"]
)  # fmt: skip


@given(st.one_of(st.text(max_size=120), st.lists(PIECES, max_size=15).map(" ".join), st.lists(PIECES).map("".join)))
@example("a" * (LIMIT - 2) + " 'x y'")
def test_normalising_is_idempotent_and_bounded(message):
    once = normalise(message)
    assert normalise(once) == once
    assert len(once) <= LIMIT and "\n" not in once


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=4), st.integers(-(10**9), 10**9), st.floats(0, 1e9))
def test_numbers_and_shapes_do_not_matter(shape, number, real):
    def message(shape, number, real):
        return (
            f"Check failed: shape {shape} of 'x{number}' at 0x{abs(number):x} is not {tuple(shape)}: {number} > {real}"
        )

    assert normalise(message(shape, number, real)) == normalise(message([7], 3, 0.5))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("cannot broadcast [1,2] with [3]", "cannot broadcast [1,2,5] with [31,2]"),
        (
            "While validating node 'opset1::Add Add_12 (a[0]:f32[2,3])'",
            "While validating node 'opset1::Add Add_3 (b[0]:f32[4])'",
        ),
        ("failed at /home/a/src/core/node.cpp:123", "failed at D:\\b\\core\\node.cpp:9"),
        ("Name:'Conv_1' Status: axis 3 out of range", "Name:'Conv_7' Status: axis -1 out of range"),
        ("R.Tensor((1, 3), dtype=float32) lv3", "R.Tensor((4, 5, 6), dtype=float32) lv17"),
        ("R.power(X, Y) uses T.int32 and T.float32", "R.power(X, Y) uses T.float32 and T.int64"),
        (
            "('a': tensor(float),'b','c': tensor(bool),) -> ('d': tensor(float),)",
            "('x': tensor(float16),) -> ('z','y',)",
        ),
        ("R.add(p_layer_bias, lv4) differ", "R.add(input, lv) differ"),
        (
            'Offending call: R.nn.conv2d_transpose(lv, metadata["ir.GenericConst"][0], strides=[1, 3], out_dtype=None)',
            'Offending call: R.nn.conv2d_transpose(inputs, R.const(0.0, "float32"), strides=[3, 3], out_dtype="float32")',
        ),
        (
            "Consumer: opset1::Result Result_1 (util::ComplexTypeMark fft/ComplexTypeMark[0]:dynamic[...])",
            "Consumer: opset1::Result Result_1 (util::ComplexTypeMark ComplexTypeMark_22[0]:dynamic[...])",
        ),
        ("scalar of shape [] or ()", "scalar of shape [1] or (2, 3)"),
    ],
)
def test_the_same_failure_reads_the_same(one, other):
    assert normalise(one) == normalise(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("axis out of range", "rank out of range"),
        ("failed at a/node.cpp:1", "failed at a/graph.cpp:1"),
    ],
)
def test_another_failure_reads_otherwise(one, other):
    assert normalise(one) != normalise(other)


def sign(operator="Conv", **fields):
    base = {"verdict": CRASH, "stage": "load", "symptom": "ValueError", "message": "bad shape [1]"}
    return Signature.of("tvm-onnx", operator, Outcome(**(base | fields)))


def test_what_tells_findings_apart():
    assert sign().id == sign(message="bad shape [1, 2, 3]").id
    assert sign().id != sign(message="bad rank").id
    assert sign().id != sign(stage="infer").id
    assert sign().id != sign(symptom="TypeError").id
    assert sign().id != sign("Add").id
    assert sign("Conv", conversion_function="f:Conv._impl").id == sign("Add", conversion_function="f:Conv._impl").id
    located = sign(conversion_function="Conv@conv.cpp:12")
    assert located.id == sign(conversion_function="Conv@conv.cpp:12", message="anything").id and located.message == ""
    assert sign().id.startswith("F") and len(sign().id) == 9
    assert sign(details={EXCUSED: "longer"}).id != sign().id, "what an excuse hid is another failure"


def test_only_a_crash_is_told_by_its_message():
    for verdict, symptom in ((INCONSISTENT, "value"), (ABORT, "SIGSEGV"), (TIMEOUT, "")):
        one = sign(verdict=verdict, symptom=symptom, message="this")
        assert one.id == sign(verdict=verdict, symptom=symptom, message="that").id
        assert one.symptom == (symptom or verdict)
    assert sign(verdict=INCONSISTENT, symptom="value").id != sign(verdict=INCONSISTENT, symptom="shape").id


def test_the_words_of_a_refusal_that_contradicts_count_as_those_of_a_crash():
    base = {"stage": "load", "symptom": "ValueError", "message": "no value in Constant 12", "conversion_function": "f"}
    refused = Signature.of("tvm-onnx", "Constant", Outcome(REFUSED, **base))
    assert refused == Signature.of("tvm-onnx", "Constant", Outcome(CRASH, **base))
    assert refused.message == "no value in Constant #"


@given(st.text("abcdefghijklmnopqrstuvwxyz0123456789_", min_size=8, max_size=8))
@example("ab0x1f3c")
def test_no_name_of_a_temporary_folder_makes_another_message(name: str) -> None:
    """`tmpab0x1f3c` holds what an address looks like."""
    assert normalise(f"no rule, /tmp/tmp{name}/own.bin is not written") == "no rule, own.bin is not written"
    assert normalise("object at 0x7f0a12") == "object at #"
