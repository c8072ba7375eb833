"""What a loop carries has the dtype that its body states: both are changed together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opera.programs.program import Instance, Operand
from opera.programs.values import Message, Tensor
from opera.triage.conditions import removable
from opera.triage.shrink import smaller

onnx = pytest.importorskip("onnx")


def loop() -> Instance:
    """Return a loop that hands strings through, and has one of its own."""
    kind = onnx.TensorProto.STRING
    helper = onnx.helper
    held = helper.make_tensor("held", kind, [1], [b"a"])
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["go_on"], ["goes_on"]),
            helper.make_node("Constant", [], ["own"], value=held),
            helper.make_node("Where", ["go_on", "state", "own"], ["made"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("round", onnx.TensorProto.INT64, []),
            helper.make_tensor_value_info("go_on", onnx.TensorProto.BOOL, []),
            helper.make_tensor_value_info("state", kind, [1]),
        ],
        [
            helper.make_tensor_value_info("goes_on", onnx.TensorProto.BOOL, []),
            helper.make_tensor_value_info("made", kind, [1]),
        ],
    )
    values: dict[str, Any] = {"M": np.int64(1), "cond": np.bool_(True)}
    inputs = [Operand(name, Tensor.of(np.asarray(x))) for name, x in values.items()]
    inputs += [Operand("v_initial", Tensor.of(np.array(["a"], object), "string"))]
    params = {"body": Message("onnx.GraphProto", body.SerializeToString())}
    return Instance("onnx", "Loop", params, tuple(inputs), ("y",), {"opset": {"": 16}})


@pytest.mark.parametrize("other", ["float32", "int64", "bfloat16"])
def test_a_loop_of_strings_becomes_one_of_numbers_that_the_checker_takes(other: str) -> None:
    from opera.libraries.onnx import library, wrap

    made = smaller.as_dtype(loop(), "string", other)
    parts = wrap.parts(made)
    types, [value], *_ = library._reference(made, parts)
    wrap.checked(wrap.model(made, parts, types), inference=True)
    assert isinstance(value, Tensor) and value.dtype == other
    assert {x.dtype for x in smaller.leaves(made)} == {"int64", "bool", other}


def test_it_is_asked_whether_strings_decide_though_they_are_not_the_first_input() -> None:
    [strings] = [x for x in removable.conditions(loop(), {}) if x.says == "string inputs"]
    made = [x for x in strings.others() if x is not None]
    assert [smaller.leaves(x)[-1].dtype for x in made] == ["float32", "int64", "int32"]


def test_what_holds_no_body_stays() -> None:
    program = Instance("onnx", "Identity", {}, (Operand("x", Tensor.of(np.float64([1]))),), ("y",), {"opset": {"": 16}})
    assert smaller.as_dtype(program, "int8", "int64") == program


def test_what_is_no_body_stays_as_it_is() -> None:
    program = Instance("onnx", "If", {"then_branch": Message("onnx.GraphProto", b"?")}, loop().inputs, ("y",), {})
    assert smaller.as_dtype(program, "string", "int64").instances()[0].params == program.params
