"""What is declared of PyTorch's equivalents is held against the outputs that ONNX's own node tests expect."""

import importlib
import pkgutil
import warnings

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.backend.test.case import node as node_tests

from opera.errors import InvalidTest
from opera.libraries.onnx import codec, equivalents, references
from opera.oracle import comparison
from opera.programs.values import Tensor

pytest.importorskip("torch")

WRONG = {"test_maxunpool_export_with_output_shape"}
"""Tests that are wrong themselves: ONNX's evaluator scatters into the inferred shape, and pads to `output_shape` afterwards."""
FEW = ("maxunpool", "mod", "bitshift", "cast", "gridsample", "lstm", "rnn", "convtranspose", "onehot")
"""Modules of node tests that are quick, of operators whose equivalents are no mere names."""


def told(modules):
    """Yield (test, symptom) of the node tests of these modules whose operators are declared, and which PyTorch computes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in modules:
            importlib.import_module(f"{node_tests.__name__}.{name}")
    for case in node_tests._NodeTestCases:
        graph = case.model.graph
        if "_expanded" in case.name or not equivalents.declared().keys() >= {x.op_type for x in graph.node}:
            continue
        for given, stated in case.data_sets:
            named = zip((*graph.input, *graph.output), (*given, *stated), strict=True)
            values = [value(x, codec.type_name(of.type)) for of, x in named]
            feeds = dict(zip((x.name for x in graph.input), values, strict=False))
            expected = values[len(graph.input) :]
            shown = equivalents.ask(case.model, feeds).outputs
            names = tuple(x.name for x in graph.output)
            if shown is not None:
                found = comparison.compare(expected, shown, names, case.rtol, case.atol)
                yield graph.node[-1].op_type, case.name, found.symptom


def value(item, name):
    return codec.from_tensor_proto(item) if isinstance(item, TensorProto) else codec.from_evaluator(item, name)


def test_pytorch_computes_what_node_tests_expect():
    found = list(told(FEW))
    assert {name for _, name, symptom in found if symptom} == WRONG
    assert {operator for operator, *_ in found} >= {"MaxUnpool", "Mod", "BitShift", "Cast", "LSTM", "RNN", "OneHot"}


@pytest.mark.full
def test_pytorch_computes_what_all_node_tests_expect():
    """Nothing is declared that no test bears out."""
    found = list(told(x.name for x in pkgutil.iter_modules(node_tests.__path__)))
    assert {name for _, name, symptom in found if symptom} == WRONG
    assert equivalents.declared().keys() == {operator for operator, *_ in found}


def unpooling(shape):
    types = [("X", TensorProto.FLOAT, [1, 1, 2, 2]), ("I", TensorProto.INT64, [1, 1, 2, 2])]
    types += [("S", TensorProto.INT64, [4])] * shape
    node = helper.make_node("MaxUnpool", [name for name, *_ in types], ["Y"], kernel_shape=[2, 2], strides=[2, 2])
    inputs = [helper.make_tensor_value_info(*x) for x in types]
    graph = helper.make_graph([node], "g", inputs, [helper.make_tensor_value_info("Y", TensorProto.FLOAT, None)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)])


def test_what_is_unpooled_gives_back_the_pooled_when_it_is_pooled_again():
    """As the documentation says, with `output_shape` as without."""
    import torch

    x = torch.tensor([[[[float((7 * n) % 25) for n in range(5 * row, 5 * row + 5)] for row in range(5)]]])
    pooled, indices = torch.nn.functional.max_pool2d(x, 2, 2, return_indices=True)
    feeds = {"X": Tensor.of(pooled.numpy()), "I": Tensor.of(indices.numpy()), "S": Tensor.of(np.int64([1, 1, 5, 5]))}
    [made] = references.evaluate(unpooling(True), feeds)
    again = torch.nn.functional.max_pool2d(torch.from_numpy(made.array()), 2, 2)
    assert again.equal(pooled)
    [shown] = equivalents.ask(unpooling(True), feeds).outputs
    assert shown == made
    for odd in ({"I": Tensor.of(np.int64([[[[0]]]]))}, {"S": Tensor.of(np.int64([1, 2, 5, 5]))}):
        with pytest.raises(InvalidTest, match="do not go with"):
            references.evaluate(unpooling(True), feeds | odd)
    small = {"X": feeds["X"], "I": Tensor.of(np.int64([[[[0, 3], [9, 14]]]]))}
    assert references.evaluate(unpooling(False), small) == equivalents.ask(unpooling(False), small).outputs


@pytest.mark.parametrize(
    ("operator", "attributes", "opset", "why"),
    [
        ("Softmax", {}, 11, "no equivalent of this Softmax"),  # flattens to two dimensions
        ("TopK", {}, 11, "no equivalent of TopK is declared"),
        ("Elu", {}, 22, ""),
    ],
)
def test_what_is_not_equivalent_has_no_opinion(operator, attributes, opset, why):
    x = Tensor.of(np.float32([[1.0, -1.0]]))
    node = helper.make_node(operator, ["X"], ["Y"], **attributes)
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "XY"]
    graph = helper.make_graph([node], "g", info[:1], info[1:])
    found = equivalents.ask(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)]), {"X": x})
    assert found.equivalent and found.independent and why in found.error and (found.outputs is None) == bool(why)


@pytest.mark.parametrize("operator", [x for x in equivalents.declared() if x.startswith("Reduce")])
@pytest.mark.parametrize("noop", [0, 1])
def test_a_reduction_of_no_axes_does_what_is_done_beside_it(operator, noop):
    x = Tensor.of(np.float32([[1.0, 2.0], [3.0, 4.0]]))
    node = helper.make_node(operator, ["x"], ["y"], noop_with_empty_axes=noop)
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "xy"]
    graph = helper.make_graph([node], "g", info[:1], info[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    [found], [right] = equivalents.ask(model, {"x": x}).outputs, references.evaluate(model, {"x": x})
    assert found.shape == right.shape
    assert found.array() == pytest.approx(right.array(), rel=1e-5)


@pytest.mark.parametrize(
    ("operator", "mode"), [("DepthToSpace", "DCR"), ("DepthToSpace", "CRD"), ("SpaceToDepth", None)]
)
@pytest.mark.parametrize("blocksize", [1, 2])
def test_strings_are_moved_as_numbers_are(operator, mode, blocksize):
    """Few have strings: of a DepthToSpace that returns empty ones nobody else could say what is right."""
    given = {"blocksize": blocksize} | ({"mode": mode} if mode else {})
    info = [helper.make_tensor_value_info(x, TensorProto.STRING, None) for x in "xy"]
    graph = helper.make_graph([helper.make_node(operator, ["x"], ["y"], **given)], "g", info[:1], info[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    shape = (1, 8, 2, 3) if operator == "DepthToSpace" else (1, 2, 4, 6)
    words = np.array([f"w{n % 29}é" for n in range(48)], dtype=object).reshape(shape)
    feeds = {"x": Tensor.of(words)}
    assert equivalents.ask(model, feeds).outputs == references.evaluate(model, feeds)
    joined = helper.make_node("StringConcat", ["x", "x"], ["y"])
    other = helper.make_model(helper.make_graph([joined], "g", info[:1], info[1:]))
    assert equivalents.ask(other, feeds).outputs is None
