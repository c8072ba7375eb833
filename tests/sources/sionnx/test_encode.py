"""A call that a node test makes and one that is generated alike are one instance."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx.backend.test.case import node as cases  # noqa: E402

from opera.libraries.onnx import nodes  # noqa: E402
from opera.programs.program import Instance  # noqa: E402
from opera.programs.values import RandomTensor  # noqa: E402
from opera.sources.sionnx import encode  # noqa: E402
from opera.sources.sionnx.case import Case, Given, Input  # noqa: E402

MODULES = (
    "clip", "concat", "identity", "if_", "lstm", "onehot", "optionalgetelement", "castlike", "sequenceinsert", "topk", "loop",
    "quantizelinear", "constant", "label_encoder", "bitcast",
)  # fmt: skip
"""Attributes of all kinds, inputs left out, variadic, sequences and optionals, low precision, subgraphs, another domain."""


def node_tests(module: str) -> Iterator[Any]:
    package = "onnx.backend.test.case.node"
    before = len(cases._NodeTestCases)
    cases._existing_names.clear()  # other tests may have made these cases in this process before
    for name in (f"{package}.{module}", f"{package}.ai_onnx_ml.{module}"):
        sys.modules.pop(name, None)
        with suppress(ModuleNotFoundError):
            importlib.import_module(name)
    yield from cases._NodeTestCases[before:]


def type_name(kind: Any) -> str:
    from opera.libraries.onnx import codec

    if kind.HasField("optional_type"):
        return f"optional({codec.type_name(kind.optional_type.elem_type)})"
    return codec.type_name(kind)


def given(attribute: Any) -> Given:
    """Return an attribute as the generator gives it."""
    from onnx import AttributeProto, helper, numpy_helper

    kind = AttributeProto.AttributeType.Name(attribute.type).lower()
    value = helper.get_attribute_value(attribute)
    if kind == "tensor":
        value = numpy_helper.to_array(value)
    elif kind in ("graph", "type_proto", "sparse_tensor"):
        value = value.SerializeToString(deterministic=True)
    elif kind == "string":
        value = value.decode()
    elif kind == "strings":
        value = [x.decode() for x in value]
    elif kind.endswith("s"):
        value = list(value)
    return Given(kind, value)


def as_case(model: Any, data: tuple[Any, Any], hooked: Instance) -> Case:
    graph = model.graph
    node = graph.node[0]
    fed = {info.name: (type_name(info.type), item) for info, item in zip(graph.input, data[0], strict=True)}

    def value(item: Any) -> Any:
        return onnx.numpy_helper.to_array(item) if isinstance(item, onnx.TensorProto) else item

    inputs = [
        Input(operand.name, fed[edge][0], value(fed[edge][1])) if edge else None
        for edge, operand in zip(node.input, hooked.inputs, strict=False)
    ]
    opset = hooked.context["opset"]
    assert isinstance(opset, dict)
    return Case(
        operator=node.op_type, domain=node.domain, since=opset[node.domain],  # type: ignore[arg-type]
        attributes={x.name: given(x) for x in node.attribute}, inputs=tuple(inputs),
        outputs=tuple(node.output), boundaries={}, target=("", ""), number=0,
    )  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("module", MODULES)
def test_a_node_test_and_the_same_case_are_one_instance(module: str) -> None:
    compared = 0
    for test in node_tests(module):
        graph = test.model.graph
        if len(graph.node) != 1:
            continue
        for data in test.data_sets:
            pairs = zip(graph.input, data[0], strict=True)
            edges = {info.name: nodes.value(item, info.type) for info, item in pairs}
            hooked = nodes.instance(graph.node[0], edges, nodes.opset_of(test.model))
            assert encode.instance(as_case(test.model, data, hooked)).id == hooked.id, test.name
            compared += 1
    assert compared


def test_large_tensors_are_described_where_their_elements_do_not_matter() -> None:
    large = np.random.default_rng(0).normal(size=(200, 200)).astype("float32")
    inputs = (Input("A", "float32", large), Input("B", "float32", large[:2, :2]))
    case = Case("Add", "", 14, {}, inputs, ("C",), {}, ("", ""), 0)
    instance = encode.instance(case)
    assert encode.described(instance).inputs[1] == instance.inputs[1]
    value = encode.described(instance).inputs[0].value
    assert isinstance(value, RandomTensor) and (value.shape, value.low) == ((200, 200), float(large.min()))
