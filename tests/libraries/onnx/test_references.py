"""Where ONNX's evaluator is too lenient, opera's own is not."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from opera.errors import InvalidTest
from opera.programs.program import Captured, Instance, Operand, Provenance
from opera.programs.values import Tensor

onnx = pytest.importorskip("onnx")

from opera.libraries.onnx import library, references  # noqa: E402
from opera.triage.shrink import simpler  # noqa: E402


@pytest.mark.parametrize("opset", [19, 21, 23])
@pytest.mark.parametrize(("zero", "lawful"), [(0.0, True), (-0.0, True), (0.75, False), (1.0, False)])
def test_a_zero_point_of_small_floats_that_is_not_subtracted_is_refused(opset: int, zero: float, lawful: bool) -> None:
    """ONNX's evaluator takes 0.75 for 0, and leaves it out."""
    small, helper = "float8_e4m3fn", onnx.helper
    of = {"x": (17, [2]), "s": (1, []), "z": (17, []), "y": (1, [2])}
    told = {name: helper.make_tensor_value_info(name, *x) for name, x in of.items()}
    node = helper.make_node("DequantizeLinear", ["x", "s", "z"], ["y"])
    graph = helper.make_graph([node], "g", [told[x] for x in "xsz"], [told["y"]])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    scale = Tensor.of(np.float32(1.0).reshape(()))
    feeds = {"x": simpler.numbered(np.float64([1, 2]), small), "s": scale, "z": simpler.numbered(np.array(zero), small)}
    if lawful:
        [found] = references.evaluate(model, feeds)
        assert isinstance(found, Tensor) and found.array().tolist() == [1.0, 2.0]
    else:
        with pytest.raises(InvalidTest, match="zero"):
            references.evaluate(model, feeds)


def run(operator: str, opset: int, x: Any, **params: Any) -> Any:
    helper = onnx.helper
    told = [helper.make_tensor_value_info(name, 1, shape) for name, shape in (("x", x.shape), ("y", None))]
    graph = helper.make_graph([helper.make_node(operator, ["x"], ["y"], **params)], "g", told[:1], told[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    [found] = references.evaluate(model, {"x": Tensor.of(x)})
    assert isinstance(found, Tensor)
    return found.array()


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 3), st.integers(1, 6), st.integers(1, 5))
def test_lrn_sums_over_the_channels_beside(pictures: int, channels: int, size: int) -> None:
    """The evaluator went through as many channels as there are pictures."""
    x = np.arange(1, 1 + pictures * channels * 2, dtype=np.float32).reshape(pictures, channels, 1, 2)
    found = run("LRN", 13, x, size=size, alpha=0.5, beta=0.75, bias=1.5)
    for c in range(channels):
        low, high = max(0, c - (size - 1) // 2), min(channels - 1, c + size // 2)
        squares = (x[:, low : high + 1].astype(np.float64) ** 2).sum(axis=1)
        np.testing.assert_allclose(found[:, c], x[:, c] / (1.5 + 0.5 / size * squares) ** 0.75, rtol=1e-5)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_lp_pool_is_the_norm_of_what_a_window_holds(data: Any) -> None:
    """The evaluator's was an average times the window's size: it scaled up windows that hang over."""
    length, kernel = data.draw(st.integers(1, 7)), data.draw(st.integers(1, 3))
    stride, dilation = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 2))
    pads = data.draw(st.lists(st.integers(0, kernel - 1), min_size=2, max_size=2))
    p, ceil = data.draw(st.sampled_from([1, 2, 3])), data.draw(st.sampled_from([0, 1]))
    span = (kernel - 1) * dilation + 1
    assume(length + sum(pads) >= span)
    x = np.arange(1, length + 1, dtype=np.float32).reshape(1, 1, length) - 3
    params = {"kernel_shape": [kernel], "strides": [stride], "dilations": [dilation], "pads": pads, "p": p}
    found = run("LpPool", 18, x, ceil_mode=ceil, **params)[0, 0]
    for n, value in enumerate(found):
        at = range(n * stride - pads[0], n * stride - pads[0] + span, dilation)
        held = [abs(float(x[0, 0, i])) ** p for i in at if 0 <= i < length]
        assert value == pytest.approx(sum(held) ** (1 / p), rel=1e-5, abs=1e-6)


def model_of(operator: str, opset: int, inputs: dict[str, Any], outputs: int = 1, **params: Any) -> tuple[Any, Any]:
    helper = onnx.helper
    told = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for name, x in inputs.items()
    ]
    names = [f"y{k}" for k in range(outputs)]
    node = helper.make_node(operator, list(inputs), names, **params)
    results = [helper.make_tensor_value_info(x, onnx.TensorProto.UNDEFINED, None) for x in names]
    graph = helper.make_graph([node], "g", told, results)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    return onnx.shape_inference.infer_shapes(model), {name: Tensor.of(x) for name, x in inputs.items()}


def test_the_function_body_of_an_operator_is_what_it_computes() -> None:
    """stash_type says float32, in which 3e38 squared is infinite; the evaluator's own code squares in float64."""
    big = {"X": np.array([[3e38, 3e38]]), "S": np.ones(2)}
    [found] = references.evaluate(*model_of("RMSNormalization", 23, big))
    assert isinstance(found, Tensor) and (found.dtype, found.array().tolist()) == ("float64", [[0, 0]])
    few = {"X": np.ones((1, 2), np.int32), "axes": np.zeros(0, np.int64)}
    [found] = references.evaluate(*model_of("ReduceSumSquare", 18, few, noop_with_empty_axes=1))
    assert isinstance(found, Tensor) and found.dtype == "int32"  # as the input is, and not int64
    half = {"X": np.ones((2, 3), np.float16), "S": np.ones(3, np.float16)}
    _, mean = references.evaluate(*model_of("LayerNormalization", 17, half, 2))
    assert isinstance(mean, Tensor) and mean.dtype == "float32"


def test_a_compiler_that_takes_no_newer_opset_is_asked_with_the_oldest_that_means_the_same(tmp_path: Path) -> None:
    """ONNX Runtime had no say of an operator of opset 28, though its kernel is that of opset 18: what it would have said
    confirmed that two compilers are wrong in the same way."""
    pytest.importorskip("onnxruntime")
    newest = onnx.defs.onnx_opset_version()
    given = (Operand("data", Tensor.of(np.float32([10]))),)
    program = Instance(
        "onnx", "ReduceLogSum", {"noop_with_empty_axes": 1}, given, ("reduced",), {"opset": {"": newest}}
    )
    manifest = library.wrap(Captured(program, Provenance("s", "f", "t")), "t" * 20, tmp_path)
    asked = partial(
        references.ask_compiler, "onnxruntime", path=tmp_path / "model.onnx", feeds={"data": given[0].value}
    )
    refused = asked(manifest=msgspec.structs.replace(manifest, offers=()))
    assert refused.outputs is None and "Opset" in refused.error
    [found] = asked(manifest=manifest).outputs or []
    assert isinstance(found, Tensor) and found.array() == pytest.approx([math.log(10)])


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_who_has_no_kernel_of_a_narrow_dtype_is_asked_in_float32(tmp_path: Path, dtype: str) -> None:
    """OpenVINO and TVM, both without the logarithm, excused each other: ONNX Runtime has no ReduceLogSum of bfloat16."""
    pytest.importorskip("onnxruntime")
    newest = onnx.defs.onnx_opset_version()
    given = (Operand("data", simpler.numbered(np.float64([10, 3]), dtype)),)
    program = Instance(
        "onnx", "ReduceLogSum", {"noop_with_empty_axes": 1}, given, ("reduced",), {"opset": {"": newest}}
    )
    manifest = library.wrap(Captured(program, Provenance("s", "f", "t")), "t" * 20, tmp_path)
    inputs = [given[0].value]
    told = {x.name: x for x in references.further(manifest, tmp_path, inputs, "tvm")}
    wider = told["onnxruntime-float32"]
    assert wider.confirming and wider.outputs is not None
    [found] = wider.outputs
    assert isinstance(found, Tensor) and found.dtype == dtype
    assert found.numbers() == pytest.approx([math.log(10), math.log(3)], rel=1e-2)
    assert "onnxruntime-float32" not in {x.name for x in references.further(manifest, tmp_path, inputs, "onnxruntime")}


def test_what_a_body_and_the_evaluator_round_differently_is_no_reference() -> None:
    thirds = {"X": np.arange(1.0, 401).reshape(4, 100) / 3, "S": np.arange(1.0, 101) / 7}
    with pytest.raises(InvalidTest, match="no reference: ONNX's function body"):
        references.evaluate(*model_of("RMSNormalization", 23, thirds))
    [found] = references.evaluate(
        *model_of("RMSNormalization", 23, {k: x.astype(np.float32) for k, x in thirds.items()})
    )
    assert isinstance(found, Tensor) and found.dtype == "float32"


def test_defaults_of_attributes_are_those_of_the_body() -> None:
    """ONNX's inliner leaves out what refers to an attribute that is not stated."""
    from opera.libraries.onnx import bodies

    model, feeds = model_of("Selu", 22, {"X": np.float32([-1, 1])})
    body = bodies.inlined(model)
    assert body is not None and len(body.graph.node) > 1
    np.testing.assert_allclose(
        references.evaluate(body, feeds)[0].array(), references.evaluate(model, feeds)[0].array(), 1e-5
    )
    helper = onnx.helper
    drawn = onnx.ModelProto.FromString(model.SerializeToString())
    drawn.graph.node.append(helper.make_node("RandomNormalLike", ["X"], ["z"]))
    assert bodies.inlined(drawn) is None  # of other numbers nothing can be compared
    assert bodies.inlined(model_of("Abs", 13, {"X": np.float32([-1])})[0]) is None


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64", "float16"])
def test_pixels_are_not_weighed_in_their_own_dtype(dtype: str) -> None:
    """Between two pixels of ones is a one, by reflection or at half a pixel; the evaluator's weights of integers were 0."""
    x, grid = np.full((1, 1, 2, 2), 7, dtype), np.zeros((1, 1, 2, 2), np.float32)
    [found] = references.evaluate(*model_of("GridSample", 22, {"X": x, "grid": grid}, padding_mode="border"))
    assert isinstance(found, Tensor) and (found.dtype, set(found.array().ravel().tolist())) == (dtype, {7})
    half = {"X": np.arange(4).reshape(1, 1, 2, 2).astype(dtype), "grid": grid}
    if dtype == "float16":
        assert references.evaluate(*model_of("GridSample", 22, half))[0].array().tolist() == [[[[1.5, 1.5]]]]
    else:
        with pytest.raises(InvalidTest, match="no reference"):  # 1.5, of which nobody says how it is cut
            references.evaluate(*model_of("GridSample", 22, half))


@pytest.mark.parametrize(("operator", "opset"), [("Erf", 13), ("Gelu", 20)])
def test_an_error_function_of_float64_is_that(operator: str, opset: int) -> None:
    """The evaluator computes Erf in float32 whatever it is given: Gelu of -5.8 was expected to be 0, and TVM right."""
    x = np.array([-5.7869, -4.0, 0.3])
    [found] = references.evaluate(*model_of(operator, opset, {"X" if operator == "Gelu" else "input": x}))
    erf = np.vectorize(math.erf, otypes=["d"])
    wanted = erf(x) if operator == "Erf" else 0.5 * x * (1 + erf(x / math.sqrt(2)))
    assert isinstance(found, Tensor) and found.dtype == "float64"
    np.testing.assert_allclose(found.array(), wanted, rtol=1e-6, atol=0)


def test_a_grid_has_the_dtype_of_theta_and_an_optional_is_no_list() -> None:
    theta = np.array([[[1, 0, 1 / 3], [0, 1, 0]]])
    [found] = references.evaluate(*model_of("AffineGrid", 20, {"theta": theta, "size": np.array([1, 1, 2, 2])}))
    assert isinstance(found, Tensor) and found.dtype == "float64" and found.array()[0, 0, 0, 0] == -0.5 + 1 / 3
    helper = onnx.helper
    told = [helper.make_tensor_value_info("x", 1, [1]), helper.make_tensor_value_info("y", 1, [1])]
    nodes = [helper.make_node("Optional", ["x"], ["o"]), helper.make_node("OptionalGetElement", ["o"], ["y"])]
    graph = helper.make_graph(nodes, "g", told[:1], told[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    assert references.evaluate(model, {"x": Tensor.of(np.float32([3]))})[0].array().tolist() == [3]


def test_scatter_is_what_scatter_elements_was_called_before() -> None:
    """The evaluator has no class of the old name: nothing of it could be reduced."""
    inputs = [onnx.helper.make_tensor_value_info(*x) for x in (("d", 1, [1, 5]), ("i", 7, [1, 2]), ("u", 1, [1, 2]))]
    node = onnx.helper.make_node("Scatter", ["d", "i", "u"], ["y"], axis=1)
    graph = onnx.helper.make_graph([node], "g", inputs, [onnx.helper.make_tensor_value_info("y", 1, [1, 5])])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 9)])
    fed = {"d": np.float32([[1, 2, 3, 4, 5]]), "i": np.int64([[1, -2]]), "u": np.float32([[1.5, 2.5]])}
    [found] = references.evaluate(model, {name: Tensor.of(x) for name, x in fed.items()})
    assert found.numbers().tolist() == [[1, 1.5, 3, 2.5, 5]]


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_a_zero_point_for_each_filter_is_subtracted_from_filters_of_any_rank(rank: int) -> None:
    """The evaluator took each for that of a channel, where filters have three axes besides."""
    x, w = (
        np.array([[64, 1]], np.int8).reshape(1, 2, *[1] * rank),
        np.uint8([[57, 1], [57, 1]]).reshape(2, 2, *[1] * rank),
    )
    zeros = {"x_zero_point": np.array(1, np.int8), "w_zero_point": np.uint8([1, 2])}
    model, feeds = model_of("ConvInteger", 10, {"x": x, "w": w} | zeros)
    [found] = references.evaluate(model, feeds)
    assert isinstance(found, Tensor) and found.array().ravel().tolist() == [3528, 3465]


@pytest.mark.parametrize(
    ("shape", "perm", "valid"), [((), [], True), ((2,), [], False), ((2, 3), [0], False), ((2, 3), None, True)]
)
def test_axes_that_are_not_all_are_no_permutation(shape: tuple[int, ...], perm: list[int] | None, valid: bool) -> None:
    """The evaluator takes an empty list for none: "Its length must be equal to the rank of the input"."""
    from onnx import AttributeProto, helper
    from onnx.reference import ReferenceEvaluator

    from opera.libraries.onnx import mended

    node = helper.make_node("Transpose", ["x"], ["y"])
    if perm is not None:
        node.attribute.append(AttributeProto(name="perm", type=AttributeProto.INTS, ints=perm))
    given, made = (helper.make_tensor_value_info(x, 1, None) for x in "xy")
    model = helper.make_model(
        helper.make_graph([node], "g", [given], [made]), opset_imports=[helper.make_opsetid("", 21)]
    )
    asked = ReferenceEvaluator(model, new_ops=mended.operators())
    if not valid:
        with pytest.raises(ValueError, match="not permuted by"):
            asked.run(None, {"x": np.ones(shape, np.float32)})
    else:
        assert asked.run(None, {"x": np.ones(shape, np.float32)})[0].shape == shape[::-1]


@pytest.mark.parametrize("operator", ["Cast", "CastLike"])
@pytest.mark.parametrize(("dtype", "narrow"), [("INT4", True), ("UINT4", True), ("INT2", True), ("INT8", False)])
@pytest.mark.parametrize("given", ["FLOAT", "FLOAT16", "BFLOAT16", "DOUBLE"])
def test_a_cast_to_a_few_bits_rounds_ties_to_even(operator: str, dtype: str, narrow: bool, given: str) -> None:
    """docs/technical/int4.md: "Cast to a 4 bit type is done by rounding to the nearest-integer (with ties to even)"."""
    from onnx import TensorProto, helper
    from onnx.reference import ReferenceEvaluator

    from opera.libraries.onnx import mended

    kind, of = TensorProto.DataType.Value(dtype), TensorProto.DataType.Value(given)
    to, like = helper.tensor_dtype_to_np_dtype(kind), ["x", "t"] if operator == "CastLike" else ["x"]
    node = helper.make_node(operator, like, ["y"], **({} if operator == "CastLike" else {"to": kind}))
    inputs = [helper.make_tensor_value_info("x", of, [4]), helper.make_tensor_value_info("t", kind, [1])]
    graph = helper.make_graph([node], "g", inputs[: len(like)], [helper.make_tensor_value_info("y", kind, [4])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)])
    feeds = {
        "x": np.array([0.5, 1.5, 0.75, 0.0]).astype(helper.tensor_dtype_to_np_dtype(of)),
        "t": np.ones(1).astype(to),
    }
    [found] = ReferenceEvaluator(model, new_ops=mended.operators()).run(None, {x: feeds[x] for x in like})
    assert found.dtype == to
    expected = np.array([0, 2, 1, 0] if narrow else [0, 1, 0, 0]).astype(to)  # two bits hold no 2, which is -2
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("opset", [2, 11, 13, 18])
@pytest.mark.parametrize(("parts", "whole"), [([1, 2], True), ([0, 3], True), ([0, 0], False), ([4, -1], False)])
def test_parts_of_a_split_are_the_whole(opset: int, parts: list[int], whole: bool) -> None:
    """The evaluator splits 3 into [0, 0] without a word, which ONNX's checker and ONNX Runtime refuse."""
    from onnx import helper
    from onnx.reference import ReferenceEvaluator

    from opera.libraries.onnx import mended

    names, given = (["x"], {"split": parts}) if opset < 13 else (["x", "split"], {})
    node = helper.make_node("Split", names, ["a", "b"], axis=0, **given)
    inputs = [helper.make_tensor_value_info("x", 1, [3])]
    inputs += [helper.make_tensor_value_info("split", 7, [2])] if opset >= 13 else []
    outputs = [helper.make_tensor_value_info(x, 1, None) for x in "ab"]
    model = helper.make_model(
        helper.make_graph([node], "g", inputs, outputs), opset_imports=[helper.make_opsetid("", opset)]
    )
    feeds = {"x": np.float32([1, 2, 3]), **({"split": np.int64(parts)} if opset >= 13 else {})}
    asked = ReferenceEvaluator(model, new_ops=mended.operators())
    if not whole:
        with pytest.raises(ValueError, match="not split into"):
            asked.run(None, feeds)
    else:
        assert [x.tolist() for x in asked.run(None, feeds)] == [[1, 2, 3][: parts[0]], [1, 2, 3][parts[0] :]]
