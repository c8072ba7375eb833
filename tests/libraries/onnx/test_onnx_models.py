from __future__ import annotations

import tomllib
from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import helper

from opera import resources
from opera.capture.recorder import LeftOut
from opera.libraries.onnx.codec import ELEMENT_TYPES
from opera.libraries.onnx.models import instances_of_model, made_up
from opera.programs.program import Instance
from opera.programs.values import CONTAINERS, RandomTensor, Tensor


def parsed(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17, "custom" : 1]>\n{text}')


def test_types_follow_from_concrete_sizes() -> None:
    model = parsed("g (float[N, 3] x, float[N, 3] z) => (float[M, 6] y) { t = Concat<axis=1>(x, z)  y = Relu(t) }")
    before = model.SerializeToString(deterministic=True)
    concat, relu = instances_of_model(model)
    assert isinstance(concat, Instance) and isinstance(relu, Instance)
    x, z = (operand.value for operand in concat.inputs)
    assert x.shape == z.shape and x.shape[0] > 0 and x.shape[1] == 3
    assert relu.inputs[0].value.shape == (x.shape[0], 6)
    assert isinstance(x, RandomTensor) and x != z
    assert model.SerializeToString(deterministic=True) == before
    assert [concat, relu] == list(instances_of_model(model))


def test_initializers_and_constants_keep_their_values() -> None:
    model = parsed(
        "g (float[2, 3] x) => (float[3, 2] y) <int64[2] s = {3, 2}> { r = Reshape(x, s)"
        " c = Constant<value_ints = [1]>() y = ReduceSum<keepdims=0>(r, c) }"
    )
    reshape, _, reduce = instances_of_model(model)
    assert isinstance(reshape, Instance) and isinstance(reduce, Instance)
    assert reshape.inputs[1].value == Tensor.of(np.array([3, 2]))
    assert reduce.inputs[1].value == Tensor.of(np.array([1]))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("g (float[2] x) => (float[2] y) { y = custom.Thing(x) }", "without a schema"),
        ("g (float[2] x) => (float[2] y) { y = other.Thing(x) }", "cannot be inferred"),
        ("g (float[2] x) => (float y) { y = Relu(absent) }", "unknown value or type"),
        ("g (float[4096, 4096] x) => (float y) { y = Relu(x) }", "too large"),
        ("g (float x) => (float y) { y = Relu(x) }", ""),
    ],
)
def test_what_cannot_be_an_instance_says_why(text: str, reason: str) -> None:
    model = parsed(text)
    if not reason:
        model.graph.input[0].type.tensor_type.ClearField("shape")
        reason = "unknown rank"
    (found,) = instances_of_model(model)
    assert isinstance(found, LeftOut)
    assert reason in str(found)


@pytest.mark.parametrize("dtype", CONTAINERS)
def test_every_dtype_can_be_made_up(dtype: str) -> None:
    kind = helper.make_tensor_type_proto(ELEMENT_TYPES[dtype], [2, 3])
    first, again = (made_up(kind, 5, (-1.0, 1.0)) for _ in range(2))
    assert first == again
    assert (first.dtype, first.shape) == (dtype, (2, 3))


def test_made_up_indices_are_in_range() -> None:
    text = "g (float[2,3,8,8] x, float[5,4] r, int64[5] b) => (float[5,3,1,1] y) { y = RoiAlign(x, r, b) }"
    (found,) = instances_of_model(parsed(text))
    assert found.inputs[2].name == "batch_indices"
    np.testing.assert_array_equal(found.inputs[2].value.array(), np.zeros(5))


def test_declared_ranges_are_used() -> None:
    (found,) = instances_of_model(parsed("g (float[9] x) => (float[9] y) { y = Acosh(x) }"))
    assert isinstance(found, Instance)
    assert found.inputs[0].value.low == 1.0


def declared() -> dict[str, dict[str, object]]:
    return tomllib.loads((resources.content("instrumentation") / "onnx.toml").read_text())


def inputs_by_operator() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        found.setdefault(schema.name, set()).update(item.name for item in schema.inputs)
    return found


def _constants(operators: dict[str, set[str]], content: dict[str, dict[str, object]]) -> None:
    every = set().union(*operators.values())
    assert set(content["constants"]["default"]) <= every  # type: ignore[arg-type]
    for operator, names in content["constants"]["operators"].items():  # type: ignore[attr-defined]
        assert set(names) <= operators[operator], operator


def _random(operators: dict[str, set[str]], content: dict[str, dict[str, object]]) -> None:
    assert set(content["nondeterministic"]["operators"]) <= set(operators)  # type: ignore[arg-type]
    for operator, name in content["nondeterministic"]["when"].items():  # type: ignore[attr-defined]
        assert name in operators[operator]


def _ranges(operators: dict[str, set[str]], content: dict[str, dict[str, object]]) -> None:
    assert set(content["ranges"]) - {"default"} <= set(operators)


@pytest.mark.parametrize("check", [_constants, _random, _ranges])
def test_the_declaration_names_things_that_onnx_has(check: Callable[..., None]) -> None:
    check(inputs_by_operator(), declared())
