from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from opera.capture.recorder import LeftOut
from opera.libraries.onnx import nodes
from opera.programs.values import Message, Optional, RandomTensor, Sequence, Tensor

FLOATS = helper.make_tensor_type_proto(TensorProto.FLOAT, [2])
OPSET = {"": 18, "ai.onnx.ml": 3}


def tensor(*shape: int) -> Tensor:
    return Tensor.of(np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape))


def test_formal_names_take_the_place_of_edges() -> None:
    node = helper.make_node(
        "Conv", ["in", "weights", ""], ["out"], name="n", doc_string="d", kernel_shape=[3, 3], auto_pad="VALID"
    )
    found = nodes.instance(node, {"in": tensor(1, 1, 4, 4), "weights": tensor(1, 1, 3, 3)}, OPSET)
    assert (found.library, found.operator, found.outputs) == ("onnx", "Conv", ("Y",))
    assert [(x.name, x.value is None) for x in found.inputs] == [("X", False), ("W", False), ("B", True)]
    assert found.params == {"kernel_shape": [3, 3], "auto_pad": "VALID"}
    assert found.context == {"opset": {"": 18}}


def test_variadic_inputs_get_a_name_each() -> None:
    node = helper.make_node("Concat", ["a", "b", "a"], ["c"], axis=0)
    found = nodes.instance(node, {"a": tensor(1), "b": tensor(2)}, OPSET)
    assert [x.name for x in found.inputs] == ["inputs", "inputs_1", "inputs_2"]
    assert found.inputs[0].value == found.inputs[2].value != found.inputs[1].value


def test_omitted_outputs_and_other_domains() -> None:
    pool = helper.make_node("BatchNormalization", ["x"] * 5, ["y", ""], domain="ai.onnx")
    with pytest.raises(LeftOut, match="unknown value"):
        nodes.instance(pool, {}, OPSET)
    dropout = nodes.instance(helper.make_node("Dropout", ["x"], ["", "m"]), {"x": tensor(2)}, OPSET)
    assert dropout.outputs == ("", "mask")
    scaler = helper.make_node("Scaler", ["x"], ["y"], domain="ai.onnx.ml", scale=[0.1])
    found = nodes.instance(scaler, {"x": tensor(2)}, OPSET)
    assert (found.operator, found.context) == ("ai.onnx.ml::Scaler", {"opset": {"ai.onnx.ml": 3}})
    assert found.params == {"scale": [float(np.float32(0.1))]}


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (0.1, float(np.float32(0.1))),
        (7, 7),
        ("text", "text"),
        (b"\xff", b"\xff"),
        ([1, 2], [1, 2]),
        ([1.0, 2.0], [1.0, 2.0]),
        (["a", "b"], ["a", "b"]),
        (onnx.numpy_helper.from_array(np.array([1, -8], ml_dtypes.int4)), Tensor("int4", (2,), b"\x01\xf8")),
        (FLOATS, Message("onnx.TypeProto", FLOATS.SerializeToString())),
    ],
)  # fmt: skip
def test_attributes_become_plain_values(made: object, expected: object) -> None:
    assert nodes.plain(helper.make_attribute("a", made)) == expected
    assert type(nodes.plain(helper.make_attribute("a", made))) is type(expected)


def test_an_attribute_bound_by_a_function_is_left_out() -> None:
    with pytest.raises(LeftOut, match="bound by a function"):
        nodes.plain(onnx.AttributeProto(name="axis", ref_attr_name="outer", type=onnx.AttributeProto.INT))


def branch(name: str, source: str) -> onnx.GraphProto:
    out = helper.make_tensor_value_info("o", TensorProto.FLOAT, [2])
    return helper.make_graph([helper.make_node("Identity", [source], ["o"])], name, [], [out])


def test_outer_scope_values_become_operands() -> None:
    node = helper.make_node("If", ["c"], ["y"], then_branch=branch("t", "x"), else_branch=branch("e", "z"))
    edges = {"c": Tensor.of(np.array(True)), "x": tensor(2), "z": tensor(2), "other": tensor(1)}
    found = nodes.instance(node, edges, OPSET)
    assert [x.name for x in found.inputs] == ["cond", "x", "z"]
    assert found.context["captured"] == ["x", "z"]
    assert found.params["then_branch"].type == "onnx.GraphProto"
    clash = helper.make_node("If", ["c"], ["y"], then_branch=branch("t", "cond"), else_branch=branch("e", "z"))
    with pytest.raises(LeftOut, match="also a formal name"):
        nodes.instance(clash, edges | {"cond": tensor(2)}, OPSET)


def test_unknown_operators_are_left_out() -> None:
    for node in (helper.make_node("Nope", [], ["y"]), helper.make_node("Scaler", ["x"], ["y"], domain="ai.onnx.ml")):
        with pytest.raises(LeftOut):
            nodes.instance(node, {"x": tensor(1)}, {"": 18})
    with pytest.raises(LeftOut, match="more inputs"):
        nodes.instance(helper.make_node("Relu", ["x", "x"], ["y"]), {"x": tensor(1)}, OPSET)


def test_declared_types_decide_sequences_and_optionals() -> None:
    one = helper.make_tensor_type_proto(TensorProto.FLOAT, [2])
    many = helper.make_sequence_type_proto(one)
    assert nodes.value([], many) == Sequence("float32", ())
    assert nodes.value(None, helper.make_optional_type_proto(many)) == Optional("sequence(float32)", None)
    array = np.array([1, 2], np.float32)
    assert nodes.value([array], helper.make_optional_type_proto(many)).value == Sequence("float32", (Tensor.of(array),))
    proto = onnx.numpy_helper.from_array(np.array([1.5, -2], ml_dtypes.bfloat16))
    found = nodes.value(proto, helper.make_tensor_type_proto(TensorProto.BFLOAT16, [2]))
    assert (found.dtype, found.numbers().tolist()) == ("bfloat16", [1.5, -2.0])


def test_specification_ignores_float_values_but_not_integers() -> None:
    def gather(data: np.ndarray, index: int) -> bytes:
        edges = {"d": Tensor.of(data), "i": Tensor.of(np.array([index]))}
        return nodes.specification(
            nodes.instance(helper.make_node("Gather", ["d", "i"], ["y"]), edges, OPSET), values=True
        )

    ones = np.ones(3, np.float32)
    assert gather(ones, 1) == gather(ones * 2, 1)
    assert gather(ones, 1) != gather(ones, 2)
    assert gather(ones, 1) != gather(ones * np.nan, 1)
    assert gather(ones, 1) != gather(ones.astype(np.float64), 1)


def test_large_floats_are_kept_by_range() -> None:
    node = helper.make_node("Add", ["a", "b"], ["y"])
    large = np.linspace(-1, 3, nodes.EXACT_ELEMENTS + 1, dtype=np.float32)
    found = nodes.compact(nodes.instance(node, {"a": Tensor.of(large), "b": tensor(1)}, OPSET))
    assert found.inputs[0].value == RandomTensor("float32", large.shape, large.size, -1.0, 3.0)
    assert found.inputs[1].value == tensor(1)
    large[0] = np.nan
    kept = nodes.compact(nodes.instance(node, {"a": Tensor.of(large), "b": tensor(1)}, OPSET))
    assert isinstance(kept.inputs[0].value, Tensor)
