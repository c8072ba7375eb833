"""A program as it is called."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st
from msgspec import structs
from onnx import helper

from opera.programs.program import Captured, Instance, Operand, Provenance
from opera.programs.values import Message, Named, Tensor
from opera.programs.verdicts import INCONSISTENT, Outcome
from opera.store.rows import Verdict
from opera.triage.given import LONG, given
from opera.triage.reduction import Reduction
from opera.triage.reproducers.choice import Choice
from opera.triage.sentence import sentence, title

WRONG = Outcome(
    INCONSISTENT, "infer", "value", "", details={"expected": 1.0, "actual": 2.0, "index": "[0]", "output": "Y"}
)


def call(params: dict, *arrays: np.ndarray) -> Instance:
    operands = tuple(Operand(f"x{i}", Tensor.of(x)) for i, x in enumerate(arrays))
    return Instance("onnx", "LRN", params, operands, ("Y",), {"opset": {"": 13}})


@pytest.mark.parametrize(
    ("params", "arrays", "wanted"),
    [
        ({}, [np.array([-0.5, 2], "f4")], "x0=float32([-0.5, 2])"),
        ({}, [np.array(7)], "x0=int64(7)"),
        ({"bias": 0.8}, [np.ones((1, 2, 3, 4), "f4")], "x0=float32[1, 2, 3, 4], bias=0.8"),
        ({}, [np.ones((1, 2), "f8"), np.zeros((0,), "i4")], "x0=float64([[1, 1]]), x1=int32[0]"),
        ({"tensors": [Named("value.input", "x0")], "dim": 0}, [np.ones(4, "f4")], "x0=float32[4], dim=0"),
    ],
)
def test_inputs_and_parameters_are_told_as_in_a_call(params, arrays, wanted):
    assert given(call(params, *arrays)) == wanted


def test_where_there_is_little_room_what_matters_is_told():
    made = call({"a": None, "kernel": [1, 6], "mode": "x", "ceil": True}, np.ones((1, 4), "f4"), np.ones((9, 9), "f4"))
    assert given(made, (), 70) == "x0=float32[1, 4], x1=float32[9, 9], kernel=[1, 6], mode='x', …"
    assert given(made, ("ceil", "kernel"), 50) == "x0=float32[1, 4], kernel=[1, 6], ceil=True, …"
    assert given(made, ("ceil", "kernel"), 36) == "x0=float32[1, 4], ceil=True, …"


def test_what_a_body_reads_from_outside_is_no_argument():
    made = call({"num_scan_inputs": 1}, np.ones(1, "f4"), np.array(3, "f4"))
    made = structs.replace(made, context={**made.context, "captured": ["x1"]})
    assert given(made) == "x0=float32([1]), x1=float32(3) of the outer scope, num_scan_inputs=1"


@drawn(st.lists(st.integers(0, 9), max_size=8), st.integers(0, 9))
def test_it_is_short_whatever_is_given(shapes, parameters):
    arrays = [np.ones((1,) * (x % 5) + (x,), "f4") for x in shapes]
    told = given(call({f"p{i}": [i] * 30 for i in range(parameters)}, *arrays))
    assert len(told) <= LONG + 3 and "\n" not in told
    assert (told == "") is not bool(arrays or parameters)


@pytest.mark.parametrize(
    ("near", "despite", "firm"), [((32, 6), 0, True), ((35, 13), 2, False), ((9, 30), 20, False), ((30, 0), 0, True)]
)
def test_a_program_is_told_as_it_is_and_what_seems_to_decide_only_where_near_ones_bear_it_out(near, despite, firm):
    program = call({"bias": 0.8}, np.ones((1, 1, 2, 3), "f4"))
    form = Captured(program, Provenance("s", "f", "t")).form()
    found = Reduction(
        "F",
        "e",
        "openvino-onnx",
        "inputs",
        "t",
        form,
        WRONG,
        deciding=("bias other than 1.0",),
        near=near,
        despite=despite,
        tried=(4, 0, 0, 4),
    )
    shown = Verdict("t", "openvino-onnx", "inputs", "e", WRONG, "F", "confirmed")
    of = Choice(shown, shown, found)
    assert of.firm is firm
    told = title(of.called("LRN"), WRONG, of.sure)
    assert told == "LRN(x0=float32[1, 1, 2, 3], bias=0.8): wrong value, Y[0] is 2 instead of 1"
    assert "LRN(x0=float32[1, 1, 2, 3], bias=0.8)" in sentence("OpenVINO", of.called("LRN"), WRONG, of.sure)
    assert of.seems == (("bias other than 1.0",) if firm else ())


def test_a_program_of_several_calls_is_told_by_its_inputs():
    told = title("Neg + Add (x=float32([1]))", WRONG, alike=["Add", "Sub"])
    assert told.startswith("Neg + Add (x=float32([1])) (also seen in programs of Sub):")


def test_what_matters_is_named_where_its_value_has_no_room():
    made = call({"a": 1}, np.ones((1, 4), "f4"), np.ones((9, 9), "f4"))
    assert given(made, ("x1",), 26) == "x0=float32[1, 4], x1, …"
    assert given(made, (), 26) == "x0=float32[1, 4], a=1, …"


def test_a_body_is_told_by_its_operators():
    """TVM stops at an Optional without an input in a branch, whatever the If."""
    branch = helper.make_graph(
        [helper.make_node("Constant", [], ["c"], value_float=1.0), helper.make_node("Optional", ["c"], ["o"])],
        "branch", [], [helper.make_value_info("o", helper.make_optional_type_proto(helper.make_tensor_type_proto(1, [])))],
    )  # fmt: skip
    body = Message("onnx.GraphProto", branch.SerializeToString())
    cond = Operand("cond", Tensor.of(np.array(True)))
    params = {"then_branch": body, "else_branch": body}
    made = Instance("onnx", "If", params, (cond,), ("Y",), {"opset": {"": 16}})
    assert given(made) == "cond=bool(True), then_branch=<Constant, Optional>, else_branch=<Constant, Optional>"
    assert (
        given(Instance("none", "If", params, (cond,), ("Y",), {}))
        == "cond=bool(True), then_branch=<GraphProto>, else_branch=<GraphProto>"
    )
    inner = helper.make_graph(
        [
            helper.make_node("If", ["c"], ["y"], then_branch=branch),
            helper.make_node("LabelEncoder", ["y"], ["z"], domain="ai.onnx.ml"),
        ],
        "outer", [], [],
    )  # fmt: skip
    body = Message("onnx.GraphProto", inner.SerializeToString())
    nested = Instance("onnx", "Loop", {"body": body}, (cond,), ("Y",), {})
    assert given(nested) == "cond=bool(True), body=<If, Constant, Optional, ai.onnx.ml.LabelEncoder>"
