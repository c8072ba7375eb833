"""Crashes of several operators that are one cause, for it lies in code which they share: and such as are not."""

from __future__ import annotations

import msgspec
import pytest
from caused import concluded, program, reduced, tensor

from opera.programs.values import Sequence, Value
from opera.programs.verdicts import CRASH, REFUSED, Outcome, Seen
from opera.triage.distinct.dividing import Reduced

FED = "input_sequence is a graph input"
PARTS = Sequence("float32", (tensor(1.0),))
NO_LENGTH = "object of type 'Var' has no len()"


def crash(operator: str, message: str, raised: str = "", verdict: str = CRASH) -> Outcome:
    place = f"onnx_frontend:{operator}._impl_v11"
    at = f"onnx_frontend.py:{raised or '_impl_v11'}"
    return Outcome(verdict, "load", "ValueError", message, conversion_function=place, location=at)


def attribute(name: str, kind: str) -> str:
    return f'Cannot parse attribute: \nname: "{name}"\ntype: {kind}\n\n.'


def one(*found: Reduced) -> bool:
    return len({concluded(found, {"F1": ["t1"], "F2": ["t2"]}).of(x.finding, x.reduction.test) for x in found}) == 1


@pytest.mark.parametrize(
    ("message", "besides", "alike"),
    [
        (NO_LENGTH, (FED,), True),
        ("object of type 'Var' has no shape()", (FED,), False),
        (NO_LENGTH, (), False),  # any converter may say that of what it makes itself
        (NO_LENGTH, ("float16 inputs",), False),
        (NO_LENGTH, (FED, "an empty input"), False),
    ],
)
def test_a_sequence_that_is_fed_is_no_operators_own(message: str, besides: tuple[str, ...], alike: bool) -> None:
    def of(finding: str, operator: str, says: str, also: tuple[str, ...]) -> Reduced:
        shown = program(operator, "input_sequence", PARTS)
        return reduced(finding, f"t{finding[1]}", shown, outcome=crash(operator, says), besides=also)

    length, erased = of("F1", "SequenceLength", NO_LENGTH, (FED,)), of("F2", "SequenceErase", message, besides)
    assert one(length, erased) is alike


@pytest.mark.parametrize(
    ("frames", "message", "besides", "alike"),
    [
        (("from_tflite", "_decode_type"), "10", ("float64 inputs",), True),
        (("from_tflite", "_decode_type"), "10", (), True),
        (("from_tflite", "_decode_type"), "17", ("float64 inputs",), False),
        (("from_tflite", "_decode_type"), "10", ("an empty input",), False),
        (("from_tflite", "Flatten._impl_v11", "_decode_type"), "10", ("float64 inputs",), False),  # the converter asked
    ],
)
def test_what_stops_before_any_operator_is_converted_is_no_operators_own(
    frames: tuple[str, ...], message: str, besides: tuple[str, ...], alike: bool
) -> None:
    """TVM's table of TFLite's dtypes has no float64: whatever is given one fails, in eleven findings of one workspace."""

    def of(finding: str, operator: str, says: str, also: tuple[str, ...], through: tuple[str, ...]) -> Reduced:
        called = tuple(f"tvm.frontend:{x}:1" for x in through)
        seen = Seen(frames=("opera.run.worker:_timed:276", *called))
        shown = msgspec.structs.replace(crash(operator, says, "_decode_type"), symptom="KeyError", seen=seen)
        return reduced(finding, f"t{finding[1]}", program(operator, "x", tensor(1.0)), outcome=shown, besides=also)

    usual = ("from_tflite", "_decode_type")
    first = of("F1", "Masking", "10", ("float64 inputs",), usual)
    assert one(first, of("F2", "Flatten", message, besides, frames)) is alike


@pytest.mark.parametrize(
    ("frame", "message", "told", "alike"),
    [
        ("/project/src/codegen_llvm.cc:<module>:1614", "no sum", "inputs promoted to bool", True),
        ("/project/src/codegen_llvm.cc:<module>:1635", "no sum", "inputs promoted to bool", False),
        ("/project/src/codegen_llvm.cc:<module>:1614", "no order", "bool inputs", False),
        ("/project/src/codegen_llvm.cc:<module>:1614", "no sum", "uint8 inputs", False),
        ("/project/src/codegen_llvm.cc:<module>:1614", "no sum", "an empty input", False),
    ],
)
def test_one_line_of_a_code_generator_that_has_no_dtype_is_one_cause(
    frame: str, message: str, told: str, alike: bool
) -> None:
    """TVM's LLVM has no sum of bool, whether `add` or `scatter_reduce` wants one."""

    def of(finding: str, operator: str, at: str, says: str, also: str) -> Reduced:
        shown = msgspec.structs.replace(
            crash(operator, says), stage="compile", seen=Seen(frames=("tvm.build:_f:1", at))
        )
        return reduced(finding, f"t{finding[1]}", program(operator, "x", tensor(1.0)), outcome=shown, besides=(also,))

    first = of("F1", "Scatter", "/project/src/codegen_llvm.cc:<module>:1614", "no sum", "bool inputs")
    assert one(first, of("F2", "Add", frame, message, told)) is alike
    checks = "/project/src/relax/struct_info.cc:<module>:16"  # what each converter made
    assert not one(
        *(of(name, operator, checks, "no sum", "bool inputs") for name, operator in (("F1", "A"), ("F2", "B")))
    )


@pytest.mark.parametrize(
    ("dtype", "frontend", "says", "alike"),
    [
        ("complex128", "onnxexport-keras", "complex64 or complex128 inputs", True),
        ("complex128", "onnxexport-keras", "non-float32 inputs", False),
        ("bfloat16", "onnxexport-keras", "bfloat16 inputs", False),
        ("complex128", "onnxruntime-onnx", "complex128 inputs", False),  # nobody exported it
    ],
)
def test_operators_of_complex_numbers_that_an_exporter_writes_are_one_cause(
    dtype: str, frontend: str, says: str, alike: bool
) -> None:
    """ONNX computes with none; of bfloat16 each operator has its own version from which on it takes them. A Conv of what is not
    float32, whose weight always is, has another cause.
    """

    def of(finding: str, operator: str, input_name: str, kind: str) -> Reduced:
        text = f"{input_name} typestr: T, has unsupported type: tensor({kind})"
        shown = msgspec.structs.replace(crash(operator, text), stage="compile", symptom="InferenceError")
        of_one = program(operator, "x", tensor(1.0))
        told = (f"{kind} inputs",) if finding == "F1" else (says,)
        return reduced(finding, f"t{finding[1]}", of_one, outcome=shown, besides=told, frontend=frontend)

    assert one(of("F1", "Add", "A", dtype.replace("128", "64")), of("F2", "Sqrt", "X", dtype)) is alike


@pytest.mark.parametrize(
    ("message", "besides", "incidental", "alike"),
    [
        ("precision bf16 is not f32", "bfloat16 inputs", ("Tile",), True),
        ("precision bf16 is not f32", "bfloat16 inputs", (), False),
        ("precision bf16 is not f32", "float64 inputs", ("Tile",), False),
        ("another matter altogether", "bfloat16 inputs", ("Tile",), False),
    ],
)
def test_what_fails_of_an_input_whatever_the_operator_is_one(
    message: str, besides: str, incidental: tuple[str, ...], alike: bool
) -> None:
    def of(finding: str, operator: str, says: str, also: str, others: tuple[str, ...]) -> Reduced:
        shown = Outcome(CRASH, "infer", "RuntimeError", says, conversion_function=f"{operator}@infer_request.cpp:377")
        made = program(operator, "x", tensor(1.0))
        return reduced(finding, f"t{finding[1]}", made, outcome=shown, besides=(also,), incidental=others)

    first = of("F1", "Abs", "precision bf16 is not f32", "bfloat16 inputs", ("Add",))
    assert one(first, of("F2", "Identity", message, besides, incidental)) is alike


@pytest.mark.parametrize(
    ("raised", "params", "deciding", "alike"),
    [
        ("_parse_attr", {"perm": []}, ("perm=[]",), True),
        ("_parse_attr", {"perm": []}, (), True),  # the message names it
        ("_impl_v11", {"perm": []}, ("perm=[]",), False),  # each converter's own
        ("_check", {"perm": []}, ("perm=[]",), False),
        ("_parse_attr", {"perm": [0]}, ("perm=[0]",), False),
        ("_parse_attr", {"perm": [], "mode": "a"}, ("perm=[]", "mode=a"), False),
    ],
)
def test_one_function_of_several_converters_that_knows_no_empty_list(
    raised: str, params: dict[str, Value], deciding: tuple[str, ...], alike: bool
) -> None:
    """What names a type besides (`INTS`) is no other words."""
    constant = crash("Constant", attribute("value_floats", "FLOATS"), "_parse_attr")
    other = crash("Transpose", attribute("perm", "INTS"), raised)
    found = [
        reduced("F1", "t1", program("Constant", value_floats=[]), outcome=constant),
        reduced("F2", "t2", program("Transpose", **params), *deciding, outcome=other),
    ]
    assert one(*found) is alike


def test_a_refusal_is_each_operators_own() -> None:
    found = [
        reduced(f"F{n}", f"t{n}", program(x, "input_sequence", PARTS), outcome=crash(x, NO_LENGTH, verdict=REFUSED),
                besides=(FED,))
        for n, x in enumerate(("SequenceLength", "SequenceErase"), 1)
    ]  # fmt: skip
    assert not one(*found)


@pytest.mark.parametrize(
    ("omissions", "alike"), [(("has X of old",) * 2, True), (("has X of old", "lists X"), False), (("", ""), False)]
)
def test_a_list_that_nobody_renewed_is_one_omission(omissions: tuple[str, str], alike: bool) -> None:
    def of(finding: str, operator: str, omission: str) -> Reduced:
        shown = crash(operator, f"no implementation for {operator}(22)", operator, REFUSED)
        shown = msgspec.structs.replace(shown, details={"claimed": f"has {operator}", "omission": omission})
        return reduced(finding, f"t{finding[1]}", program(operator, "X", tensor(1.0)), outcome=shown)

    assert one(of("F1", "RoiAlign", omissions[0]), of("F2", "Multinomial", omissions[1])) is alike


@pytest.mark.parametrize(
    ("frontend", "variant", "drawn", "converter", "alike"),
    [
        ("onnxexport-keras", "onnx", "constant", "keras.layers.Dropout", True),
        ("onnxexport-keras", "onnx", "share", "keras.layers.Dropout", False),  # numbers of another law are drawn
        ("onnxexport-keras", "onnx", "constant", "convert_random@ops.py:7", False),  # whose converter it may be
        ("openvino-keras", "onnx", "constant", "keras.layers.Dropout", True),  # of the same file
        (
            "openvino-keras",
            "saved_model",
            "constant",
            "keras.layers.Dropout",
            False,
        ),  # it draws by operators of its own
    ],
)
def test_what_an_exporter_draws_once_is_one_whatever_layer_draws(
    frontend: str, variant: str, drawn: str, converter: str, alike: bool
) -> None:
    def of(finding: str, layer: str, place: str) -> Reduced:
        shown = Outcome("inconsistent", "infer", "value", "", conversion_function=place, details={"drawn": drawn})
        found = reduced(finding, f"t{finding[1]}", program(layer, rate=0.5), outcome=shown, frontend=frontend)
        return found._replace(reduction=msgspec.structs.replace(found.reduction, variant=variant))

    assert (
        one(of("F1", "keras.layers.CutMix", "keras.layers.CutMix"), of("F2", "keras.layers.Dropout", converter))
        is alike
    )


@pytest.mark.parametrize(
    ("void", "says", "converter", "alike"),
    [
        (True, "Invalid tensor size.", "", True),
        (False, "Invalid tensor size.", "", False),
        (True, "Another size.", "", False),
        (True, "Invalid tensor size.", "tflite_frontend:convert_abs", False),
    ],
)
def test_a_runtime_that_hands_out_nothing_without_elements_is_one_cause(
    void: bool, says: str, converter: str, alike: bool
) -> None:
    """TensorFlow Lite runs `linspace` of no numbers, and does not return it; so it is with `abs` of none."""

    def of(finding: str, operator: str, text: str, made_by: str, nothing: bool) -> Reduced:
        shown = Outcome(CRASH, "infer", "ValueError", text, conversion_function=made_by or operator)
        return reduced(finding, f"t{finding[1]}", program(operator, "x", tensor(1.0)), outcome=shown,
                       frontend="tflite-keras", void=nothing)  # fmt: skip

    first = of("F1", "keras.ops.abs", "Invalid tensor size.", "", True)
    assert one(first, of("F2", "keras.ops.linspace", says, converter, void)) is alike
