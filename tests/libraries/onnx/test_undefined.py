"""Only what ONNX's documentation leaves open is excused; what it defines is not."""

import numpy as np
import pytest

from opera.libraries.onnx import library
from opera.programs.program import Instance, Operand
from opera.programs.values import Tensor

F = np.float32
NAN, INF = np.float32("nan"), np.float32("inf")


def ask(operator, inputs, params=None, opset=21):
    operands = tuple(Operand(name, Tensor.of(np.asarray(x))) for name, x in inputs.items())
    return library.undefined(Instance("onnx", operator, params or {}, operands, ("y",), {"opset": {"": opset}}), [])


UNDEFINED = [
    ("BitShift", {"X": np.uint8([1]), "Y": np.uint8([8])}, {}, 11),
    ("Cast", {"input": F([NAN])}, {"to": 6}, 21),
    ("Cast", {"input": F([-INF])}, {"to": 7}, 21),
    ("Cast", {"input": F([256.0])}, {"to": 2}, 21),
    ("Cast", {"input": F([-1.0])}, {"to": 2}, 21),
    ("Cast", {"input": F([2.0**31])}, {"to": 6}, 21),
    ("Cast", {"input": F([-1.0])}, {"to": 24}, 25),
    ("Cast", {"input": F([1.0, NAN])}, {"to": 23}, 25),
    ("CastLike", {"input": F([1e9]), "target_type": np.int16([0])}, {}, 21),
    ("Div", {"A": np.int32([1]), "B": np.int32([0])}, {}, 14),
    ("Div", {"A": np.int8([-128]), "B": np.int8([-1])}, {}, 14),
    ("Mod", {"A": np.uint8([1, 2]), "B": np.uint8([1, 0])}, {}, 14),
    ("Pow", {"X": np.int32([2]), "Y": F([-1.0])}, {}, 15),
    ("ArgMax", {"data": F([1, 1])}, {}, 11),
    ("ArgMax", {"data": np.zeros((0, 2), F)}, {"axis": 0}, 13),
    ("ArgMin", {"data": F([1, NAN])}, {}, 13),
    ("TopK", {"X": F([3, 2, 1]), "K": np.int64([2])}, {"sorted": 0}, 11),
    ("TopK", {"X": F([3, NAN, 1]), "K": np.int64([2])}, {}, 11),
    ("ReduceMean", {"data": np.zeros((2, 0), F), "axes": np.int64([1])}, {}, 18),
    ("ReduceLogSum", {"data": np.zeros((2, 0), np.int32), "axes": np.int64([1])}, {}, 18),
    ("ScatterND", {"data": F([1, 2]), "indices": np.int64([[0], [-2]]), "updates": F([3, 4])}, {}, 16),
    ("ScatterElements", {"data": F([1, 2]), "indices": np.int64([1, 1]), "updates": F([3, 4])}, {}, 16),
    ("Clip", {"input": F([1]), "min": F(2), "max": F(1)}, {}, 12),
    ("Range", {"start": F(0), "limit": F(1), "delta": F(0)}, {}, 11),
    ("RandomUniform", {}, {"low": 2.0, "shape": [1]}, 22),
    ("RandomUniformLike", {"input": F([1])}, {"high": -1.0}, 22),
    ("QuantizeLinear", {"x": F([NAN]), "y_scale": F(1), "y_zero_point": np.uint8(0)}, {}, 13),
    ("GlobalMaxPool", {"X": np.zeros((1, 2, 0, 3), F)}, {}, 21),
    ("RoiAlign", {"X": np.ones((1, 1, 4, 4), F), "rois": F([[0, 0, 1, 1], [2, 0, 1, 1]])}, {}, 16),
    ("MaxPool", {"X": np.ones((1, 1, 2), F)}, {"auto_pad": "SAME_UPPER", "kernel_shape": [1], "strides": [3]}, 22),
    ("Conv", {"X": np.ones((1, 1, 4), F), "W": np.ones((1, 1, 1), F)}, {"auto_pad": "SAME_LOWER", "strides": [2]}, 22),
]
DEFINED = [
    ("RandomUniform", {}, {"low": 1.0, "shape": [1]}, 22),
    ("RandomUniformLike", {"input": F([1])}, {"high": -1.0, "low": -2.0}, 22),
    ("BitShift", {"X": np.uint8([1]), "Y": np.uint8([7])}, {}, 11),
    ("BitShift", {"X": np.uint8([1]), "Y": np.uint8([8])}, {}, 28),
    ("Cast", {"input": F([255.9, -0.9])}, {"to": 2}, 21),
    ("Cast", {"input": F([-(2.0**31)])}, {"to": 6}, 21),
    ("Cast", {"input": F([NAN, 1e30])}, {"to": 10}, 21),
    ("Cast", {"input": F([1e30])}, {"to": 17}, 21),
    ("Cast", {"input": F([NAN])}, {"to": 9}, 21),
    ("Cast", {"input": F([7.0, INF])}, {"to": 23}, 25),
    ("Cast", {"input": F([NAN])}, {"to": 17}, 25),
    ("Cast", {"input": np.int64([300])}, {"to": 2}, 21),
    ("Div", {"A": F([1]), "B": F([0])}, {}, 14),
    ("Div", {"A": np.int32([1]), "B": np.int32([3])}, {}, 14),
    ("Mod", {"A": np.int8([-128]), "B": np.int8([-1])}, {}, 14),
    ("Mod", {"A": F([1]), "B": F([0])}, {"fmod": 1}, 14),
    ("ArgMax", {"data": F([1, 1])}, {}, 13),
    ("TopK", {"X": F([1, 1, 1]), "K": np.int64([2])}, {}, 11),
    ("ReduceSum", {"data": np.zeros((2, 0), F), "axes": np.int64([1])}, {}, 13),
    ("ReduceLogSum", {"data": np.zeros((2, 0), F), "axes": np.int64([1])}, {}, 18),
    ("ReduceMean", {"data": np.zeros((0, 3), F), "axes": np.int64([1])}, {}, 18),
    ("ReduceMean", {"data": np.ones((2, 3), F), "axes": np.int64([1])}, {}, 18),
    ("ScatterND", {"data": F([1, 2]), "indices": np.int64([[0], [0]]), "updates": F([3, 4])}, {"reduction": "add"}, 16),
    ("ScatterElements", {"data": F([1, 2]), "indices": np.int64([1, 0]), "updates": F([3, 4])}, {}, 16),
    ("Clip", {"input": F([1]), "min": F(2), "max": F(1)}, {}, 13),
    ("QuantizeLinear", {"x": F([1e9]), "y_scale": F(1), "y_zero_point": np.uint8(0)}, {}, 13),
    ("Add", {"A": F([NAN]), "B": F([1])}, {}, 14),
    ("RoiAlign", {"X": np.ones((1, 1, 4, 4), F), "rois": F([[0, 0, 1, 1], [1, 1, 1, 1]])}, {}, 16),
    ("MaxPool", {"X": np.ones((1, 1, 4), F)}, {"auto_pad": "SAME_UPPER", "kernel_shape": [1], "strides": [3]}, 22),
    ("MaxPool", {"X": np.ones((1, 1, 2), F)}, {"kernel_shape": [1], "strides": [3]}, 22),
    ("Conv", {"X": np.ones((1, 1, 4), F), "W": np.ones((1, 1, 3), F)}, {"auto_pad": "SAME_LOWER", "strides": [2]}, 22),
]


@pytest.mark.parametrize(("operator", "inputs", "params", "opset"), UNDEFINED)
def test_what_onnx_leaves_open_is_excused_with_its_numbers(operator, inputs, params, opset):
    reason = ask(operator, inputs, params, opset)
    assert reason and any(word in reason for word in (operator, "casting"))


@pytest.mark.parametrize(("operator", "inputs", "params", "opset"), DEFINED)
def test_what_onnx_defines_is_not_excused(operator, inputs, params, opset):
    assert ask(operator, inputs, params, opset) is None


def test_a_malformed_call_excuses_nothing():
    assert ask("ScatterND", {"data": F([1]), "indices": np.int64(0)}) is None
    assert ask("Cast", {}) is None
