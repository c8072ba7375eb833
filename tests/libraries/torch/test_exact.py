"""What numpy is declared to compute as PyTorch does, it computes so, bit for bit; it has no opinion on anything else."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from opera.libraries.torch import exact
from opera.programs.program import Instance, Operand
from opera.programs.values import Tensor

torch = pytest.importorskip("torch")
WHOLE = ("bool", "uint8", "int8", "int16", "int32", "int64")
FLOATS = ("float32", "float64")
NAMES = [(kind, name) for kind, names in exact.declared().items() for name in names]
BINARY = {name for names in exact.declared().values() for name, of in names.items() if getattr(np, of).nin == 2}


def call(name: str, *tensors: Tensor, **params) -> Instance:
    operands = tuple(Operand(x, y) for x, y in zip(("input", "other"), tensors, strict=False))
    return Instance("torch", f"torch.{name}", params, operands, (), {"kind": "function"})


def asked(name: str, *found: np.ndarray, expected: np.ndarray, **params):
    tensors = [Tensor.of(x) for x in found]
    return exact.ask(call(name, *tensors, **params), tensors, [Tensor.of(expected)])


def numbers(dtype: str, name: str):
    if dtype == "bool":
        return st.booleans()
    if "shift" in name:  # by as many bits as there are, or more, is undefined
        return st.integers(0, 6)
    if name == "lcm":  # what is beyond the dtype is undefined
        return st.integers(0 if dtype[0] == "u" else -11, 11)
    if dtype in FLOATS:
        return st.floats(width=int(dtype[5:]))
    least = int(np.iinfo(dtype).min) + (dtype[0] == "i")  # PyTorch kills the process where the least is divided by -1
    return st.integers(least, int(np.iinfo(dtype).max))


@settings(max_examples=200, deadline=None)
@given(st.data(), st.sampled_from(NAMES))
def test_each_function_computes_what_pytorch_does(data, declared):
    kind, name = declared
    dtype = data.draw(st.sampled_from(WHOLE if kind == "whole" else WHOLE + FLOATS))
    drawn = [data.draw(arrays(dtype, 3, elements=numbers(dtype, name))) for _ in range(1 + (name in BINARY))]
    try:
        expected = getattr(torch, name)(*(torch.from_numpy(x.copy()) for x in drawn)).numpy()
    except (RuntimeError, ZeroDivisionError, TypeError):  # it has no such kernel, or nothing is divided by 0
        assume(False)
    opinion = asked(name, *drawn, expected=expected)
    if opinion is not None:
        np.testing.assert_array_equal(opinion.outputs[0].array(), expected, err_msg=f"{name} {dtype} {drawn}")
        assert opinion.equivalent and opinion.independent


def test_a_negative_number_does_not_make_the_greatest_common_divisor_negative():
    opinion = asked("gcd", np.int32([-8]), np.int32([6]), expected=np.int32([2]))
    assert opinion.outputs[0].array().tolist() == [2]
    assert asked("Tensor.gcd_", np.int32([-8]), np.int32([6]), expected=np.int32([2])).outputs == opinion.outputs


def test_nothing_is_said_of_what_is_not_declared_of_two_dtypes_or_of_parameters():
    one, half = np.int32([1]), np.float32([0.5])
    assert asked("sin", half, expected=half) is None and asked("mul", half, half, expected=half) is None
    assert asked("gcd", one, np.int64([1]), expected=one) is None
    assert asked("add", one, one, expected=np.int32([3]), alpha=2) is None
    assert asked("gcd", one, one, expected=np.int64([1])) is None
