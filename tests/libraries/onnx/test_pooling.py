"""MaxPool with indices is what ONNX Runtime computes, of the evaluator's as of opera's own."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from opera.libraries.onnx import mended
from opera.libraries.onnx.pooling import max_pool

SHAPES = [
    ((1, 2, 5, 4), [2, 2]),
    ((2, 2, 4, 4), [3, 2]),
    ((2, 3, 5), [2]),
    ((1, 2, 3, 3, 3), [2, 2, 2]),
    ((1, 2, 2, 2), [1, 1]),
]
PADDING = [
    ("NOTSET", 0, 0),
    ("NOTSET", 1, 0),
    ("NOTSET", 1, 1),
    ("SAME_UPPER", 0, 0),
    ("SAME_LOWER", 0, 0),
    ("VALID", 0, 0),
]


def model(shape: tuple[int, ...], attributes: dict[str, Any]) -> Any:
    node = helper.make_node("MaxPool", ["x"], ["y", "places"], **attributes)
    found = [helper.make_tensor_value_info(*x) for x in (("y", 1, None), ("places", 7, None))]
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", 1, shape)], found)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 12)], ir_version=8)


@pytest.mark.parametrize(("shape", "kernel"), SHAPES)
def test_numbers_and_places_are_those_of_onnx_runtime(shape: tuple[int, ...], kernel: list[int]) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    x, rank, seen = (
        np.random.default_rng(0).permutation(np.prod(shape)).reshape(shape).astype("float32"),
        len(kernel),
        0,
    )
    for (auto, pad, ceil), order, stride in itertools.product(PADDING, (0, 1), (1, 2)):
        if pad >= min(kernel):
            continue
        how: dict[str, Any] = {"auto_pad": auto, "ceil_mode": ceil, "storage_order": order, "strides": [stride] * rank}
        how |= {"pads": [pad] * 2 * rank} if auto == "NOTSET" else {}
        made = model(shape, how | {"kernel_shape": kernel})
        wanted = onnxruntime.InferenceSession(made.SerializeToString()).run(None, {"x": x})
        evaluated = ReferenceEvaluator(made, new_ops=mended.operators()).run(None, {"x": x})
        for found in (max_pool(x, kernel, **how), evaluated):
            assert all(map(np.array_equal, found, wanted)), how
        seen += 1
    assert seen > 10


def test_dtypes_that_numpy_has_not_are_pooled_as_others() -> None:
    numbers, places = max_pool(np.array([[[1, 3, 2]]], ml_dtypes.bfloat16), [2], pads=[2, 0])
    assert numbers.astype("float32").tolist() == [[[-np.inf, 1, 3, 3]]] and places.tolist() == [[[-1, 0, 1, 1]]]


def test_the_first_of_equal_numbers_is_told() -> None:
    numbers, places = max_pool(np.ones((1, 1, 3), "int8"), [2])
    assert (numbers.tolist(), places.tolist()) == ([[[1, 1]]], [[[0, 1]]])
