"""Findings that say the same of another operator."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from opera.programs.program import Captured, Instance, Provenance
from opera.programs.verdicts import CRASH, INCONSISTENT, Outcome
from opera.triage.distinct import twins
from opera.triage.reduction import Reduction

LEFT = "cannot emit this Relax operator directly. Run the lowering pass first. Offending call: R.nn.{}(x)"
TYPES = (
    "Arguments do not have the same element type (arg0 element type: {}, arg1 element type: {}) which they must have"
)
SCALAR = "input can't be a scalar"


def reduced(operator: str, message: str, place: str = "", **more: Any) -> Reduction:
    program = Captured(Instance("keras", f"keras.layers.{operator}", {}, (), ("y",), {}), Provenance("t", "", ""))
    outcome = Outcome(CRASH, "compile", "InternalError", message, conversion_function=f"{operator}{place}")
    found = Reduction("F1", "e0", "tvm-keras", "tflite", "t0", program.form(), outcome)
    return msgspec.structs.replace(found, **more)


CONV2D = reduced("Conv2DTranspose", LEFT.format("conv2d_transpose"))


@pytest.mark.parametrize(
    ("one", "other", "twin"),
    [
        (CONV2D, reduced("Conv3DTranspose", LEFT.format("conv3d_transpose")), True),
        (CONV2D, reduced("CategoryEncoding", LEFT.format("broadcast_to")), False),
        (CONV2D, reduced("Conv3DTranspose", LEFT.format("conv3d_transpose"), besides=("an empty input",)), False),
        (CONV2D, reduced("Conv3DTranspose", LEFT.format("conv3d_transpose"), frontend="mnn-keras"), False),
        (CONV2D, reduced("Conv3DTranspose", "", outcome=Outcome(INCONSISTENT, "infer", "value", "")), False),
        (reduced("Add", SCALAR), reduced("Mul", SCALAR), False),  # few words are Python's own as well
        (reduced("Add", SCALAR, "@slice.hpp:66"), reduced("Mul", SCALAR, "@slice.hpp:66"), True),
        (reduced("Add", SCALAR, "@slice.hpp:66"), reduced("Mul", SCALAR, "@slice.hpp:77"), False),
        (reduced("cdist", TYPES.format("f64", "f32")), reduced("add", TYPES.format("bfloat16", "float64")), True),
        (reduced("cdist", TYPES.format("f64", "f32")), reduced("slice", TYPES.format("i64", "i32")), False),
    ],
)
def test_twins_say_the_same_but_for_their_names(one: Reduction, other: Reduction, twin: bool) -> None:
    assert twins.alike(one, other) == twins.alike(other, one) == twin


@pytest.mark.parametrize(
    ("says", "twin"),
    [
        ("[ShapeInferenceError] Inferred shape and existing shape differ in rank: (0) vs (1)", False),
        ("[TypeInferenceError] (op_type:Neg, node name: n): X typestr: T, has unsupported type: tensor(uint8)", True),
    ],
)
def test_what_the_checker_says_of_any_file_tells_of_no_twin(says: str, twin: bool) -> None:
    """A norm drops an axis that it should keep, and a copy does not widen: both files differ in rank from what they state."""
    invalid = Outcome(CRASH, "compile", "InferenceError", says)
    one, other = (reduced(x, "", frontend="onnxexport-keras", outcome=invalid) for x in ("Normalization", "Copy"))
    assert twins.alike(one, other) is twin


def wrong(operator: str, symptom: str = "value", *deciding: str) -> Reduction:
    return reduced(operator, "", outcome=Outcome(INCONSISTENT, "infer", symptom, "it is off"), deciding=deciding)


@pytest.mark.parametrize(
    ("other", "twin"),
    [
        (wrong("ReduceL1", "value", "noop_with_empty_axes=1"), True),
        (wrong("ReduceL1", "shape", "noop_with_empty_axes=1"), False),
        (wrong("ReduceL1", "value", "keepdims=0"), False),
        (wrong("ReduceL1"), False),
    ],
)
def test_twins_are_wrong_by_one_value_of_a_parameter(other: Reduction, twin: bool) -> None:
    one = wrong("ReduceL2", "value", "noop_with_empty_axes=1")
    assert twins.alike(one, other) == twins.alike(other, one) == twin
    assert not twins.alike(wrong("ReduceL2"), wrong("ReduceL1")), "nothing is told to decide"
    assert not twins.alike(*(wrong(x, "value", "axes left out") for x in ("ReduceL2", "ReduceL1")))
