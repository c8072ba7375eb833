"""What schemas admit: the points of an operator, those that a call is at, and those at which a reference runs anything."""

import msgspec
import numpy as np
import pytest

from opera.libraries import INPUT, TYPE, VALUE, Point, bounds
from opera.libraries.onnx import admitted, probing, schemas
from opera.programs.program import Instance, Operand
from opera.programs.values import Message, Sequence, Tensor

F32 = Tensor.of(np.float32([1.5, -2]))


def call(
    operator: str, values: dict, params: dict | None = None, opset: int = 21, outputs=("y",), **context
) -> Instance:
    inputs = tuple(Operand(name, value) for name, value in values.items())
    return Instance("onnx", operator, params or {}, inputs, outputs, {"opset": {"": opset}, **context})


def told(points) -> set[tuple[str, str, str]]:
    return {(x.kind, x.name, x.value) for x in points}


def test_the_points_of_an_operator_are_those_of_its_newest_schema() -> None:
    clip = told(admitted.admitted()["Clip"])
    assert {x for x in clip if x[0] == INPUT} == {
        (INPUT, name, value) for name in ("min", "max") for value in ("given", "left out")
    }
    assert (TYPE, "T", "tensor(int8)") in clip and (TYPE, "T", "tensor(string)") not in clip
    assert {x[1:] for x in told(admitted.admitted()["LeakyRelu"]) if x[0] == VALUE} == {
        ("alpha", "left out"), ("alpha", "default"), ("alpha", "negative"), ("alpha", "0"), ("alpha", "positive"),
    }  # fmt: skip
    assert "Upsample" not in admitted.admitted(), "deprecated"
    assert {x.operator for x in admitted.admitted()["ai.onnx.ml::Scaler"]} == {"ai.onnx.ml::Scaler"}


@pytest.mark.parametrize(
    ("operator", "flag", "other"),
    [
        ("DFT", "onesided", "inverse"), ("GRU", "layout", "linear_before_reset"), ("Reshape", "allowzero", ""),
        ("NonMaxSuppression", "center_point_box", ""), ("Cast", "saturate", ""), ("ReverseSequence", "time_axis", ""),
    ],
)  # fmt: skip
def test_a_flag_of_another_number_is_no_program(operator: str, flag: str, other: str) -> None:
    made = call(operator, {"x": F32}, {flag: 1} | ({other: 0} if other else {}), opset=21)
    bound = bounds.read(schemas.described(made), ["x"])
    broken = [bounds.broken({operator: bound}, msgspec.structs.replace(made, params={flag: x})) for x in (0, 1, 2, -1)]
    assert broken == [frozenset(), frozenset(), *[{(operator, flag, "range")}] * 2]
    assert not other or bound[other].range == bound[flag].range


def test_what_has_more_values_is_no_flag() -> None:
    for operator, names in {
        "Attention": ["qk_matmul_output_mode"], "Softmax": ["axis"], "RoiAlign": ["sampling_ratio", "output_height"],
        "BlackmanWindow": ["output_datatype"], "Conv": ["group"], "LayerNormalization": ["stash_type", "axis"],
    }.items():  # fmt: skip
        found = admitted.newest()[operator].attributes
        assert [name for name in names if schemas.is_flag(found[name])] == [], operator


def test_flags_have_no_other_numbers_and_words_are_those_of_the_documentation() -> None:
    assert {x[2] for x in told(admitted.admitted()["ReduceSum"]) if x[1] == "keepdims"} == {"left out", "default", "0"}
    mode = {x[2] for x in told(admitted.admitted()["ScatterElements"]) if x[1] == "reduction"}
    assert mode >= {"left out", "default", "add", "mul", "max", "min"}
    resize = {x[2] for x in told(admitted.admitted()["Resize"]) if x[1] == "coordinate_transformation_mode"}
    assert "asymmetric" in resize and "x_resized" not in resize, "in backticks where values are in quotes: a variable"
    pad = {x[2] for x in told(admitted.admitted()["Conv"]) if x[1] == "auto_pad"}
    assert pad == {"left out", "default", "SAME_UPPER", "SAME_LOWER", "VALID"}, "in capitals, without quotes"


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (
            call("Clip", {"input": F32, "min": None, "max": Tensor.of(np.float32(1))}, outputs=("output",)),
            {(TYPE, "T", "tensor(float)"), (INPUT, "min", "left out"), (INPUT, "max", "given")},
        ),
        (
            call("LeakyRelu", {"X": F32}, {"alpha": 0.0}, outputs=("Y",)),
            {(TYPE, "T", "tensor(float)"), (VALUE, "alpha", "0")},
        ),
        (
            call("LeakyRelu", {"X": F32}, {"alpha": float(np.float32(0.01))}, outputs=("Y",)),
            {(TYPE, "T", "tensor(float)"), (VALUE, "alpha", "default")},
        ),
        (  # what Cast makes follows from an attribute
            call("Cast", {"input": F32}, {"to": 7}, outputs=("output",)),
            {
                (TYPE, "T1", "tensor(float)"), (TYPE, "T2", "tensor(int64)"), (VALUE, "to", "larger"),
                (VALUE, "saturate", "left out"), (VALUE, "round_mode", "left out"),
            },
        ),
        (
            call("SequenceLength", {"input_sequence": Sequence("float32", (F32,))}, outputs=("length",)),
            {(TYPE, "S", "seq(tensor(float))"), (TYPE, "I", "tensor(int64)")},
        ),
        (
            call("Max", {"data_0": F32, "data_0_1": F32}, outputs=("max",)),
            {(TYPE, "T", "tensor(float)")},
        ),
        (call("Max", {"data_0": F32}, outputs=("max",), body=Message("onnx.GraphProto", b"")), set()),
        (call("Nonsense", {"x": F32}), set()),
    ],
)  # fmt: skip
def test_a_call_is_at_points(made, expected) -> None:
    assert told(admitted.reached(made)) == expected


def test_references_are_asked_what_they_run() -> None:
    base = call("Clip", {"input": F32, "min": Tensor.of(np.float32(0))}, outputs=("output",))
    wanted = [
        Point(TYPE, "Clip", "T", "tensor(int8)"),
        Point(TYPE, "Clip", "T", "tensor(bfloat16)"),
        Point(INPUT, "Clip", "min", "left out"),
        Point(INPUT, "Clip", "max", "given"),  # nothing that could be given is known
    ]
    assert probing.probe(wanted, [base]) == wanted[:3]
    cast = call("Cast", {"input": F32}, {"to": 7}, outputs=("output",))
    wanted = [Point(TYPE, "Cast", "T2", "tensor(string)"), Point(TYPE, "Cast", "T1", "tensor(int4)")]
    assert probing.probe(wanted, [cast]) == wanted
    pool = call(
        "AveragePool", {"X": Tensor.of(np.ones((1, 1, 4, 4), np.float32))}, {"kernel_shape": [2, 2]}, outputs=("Y",)
    )
    wanted = [
        Point(VALUE, "AveragePool", "count_include_pad", "1"),
        Point(VALUE, "AveragePool", "ceil_mode", "default"),
    ]
    assert probing.probe(wanted, [pool]) == wanted
    assert not probing.probe([Point(VALUE, "AveragePool", "kernel_shape", "left out")], [pool]), "it is required"


def test_what_no_reference_runs_is_none() -> None:
    assert not probing.runs(
        call("Reshape", {"data": F32, "shape": Tensor.of(np.int64([3, -1]))}, outputs=("reshaped",))
    )
    assert probing.runs(call("Reshape", {"data": F32, "shape": Tensor.of(np.int64([2, -1]))}, outputs=("reshaped",)))
