"""What a draft quotes: the rule that is broken, by what decides and by what a crash names."""

import numpy as np
import pytest

from opera.programs.program import Instance, Operand
from opera.programs.values import Tensor
from opera.programs.verdicts import CRASH, INCONSISTENT, Outcome
from opera.report import quoting


def quoted(operator, params, inputs, deciding, outcome):
    operands = tuple(Operand(name, Tensor.of(value)) for name, value in inputs.items())
    call = Instance("onnx", operator, params, operands, ("y",), {"opset": {"": 22}})
    return [x.text for x in quoting.quotes(call, type("Shown", (), {"deciding": deciding, "told": deciding}), outcome)]


def wrong(expected, actual, output="y"):
    details = {"output": output, "expected": expected, "actual": actual}
    return Outcome(INCONSISTENT, "infer", "value", "wrong", details=details)


@pytest.mark.parametrize(
    ("x", "outcome", "begins"),
    [
        ([1.0, 2.0], wrong(1, 2), "For `(x / y_scale)`, it rounds to the nearest even."),
        ([2.0, 2.0], wrong(1, 2), "Zero point for doing quantization"),  # no tie
        ([1.0, 2.0], wrong(1, 9), "Zero point for doing quantization"),  # rounding is not what is wrong
    ],
)
def test_how_is_rounded_is_quoted_of_a_tie_that_is_one_off(x, outcome, begins):
    inputs = {"x": np.float32(x), "y_scale": np.float32(2), "y_zero_point": np.uint16([1])[0]}
    [found] = quoted("QuantizeLinear", {}, inputs, ("input y_zero_point",), outcome)
    assert found.startswith(begins)


@pytest.mark.parametrize(
    ("deciding", "message", "told"),
    [
        (("axes given",), "no", 1),
        (("axes given", "an empty input"), "no", 0),  # what is said of axes in general says nothing of that
        (("axes given", "an input of rank 1"), "no", 0),
        (("axes given", "an empty input"), "axes are not known: 'axes'", 1),
        ((), "axes are not known: 'axes'", 1),
        ((), "axes are not known", 0),
    ],
)
def test_what_a_parameter_is_in_general_is_quoted_where_it_decides_alone_or_a_crash_names_it(deciding, message, told):
    found = quoted("Resize", {"axes": [0]}, {"X": np.float32([1])}, deciding, Outcome(CRASH, "load", "E", message))
    assert [x.startswith("If provided, it specifies a subset of axes") for x in found] == [True] * told
    assert quoted(
        "Resize", {"axes": [0]}, {"X": np.float32([1])}, ("axes given", "an input of rank 1"), wrong(1.0, 2.0)
    )


def test_that_a_dtype_is_admitted_is_no_rule_on_numbers_nor_beside_a_parameter_that_decides():
    crash = Outcome(CRASH, "load", "E", "dtype mismatch between input (int32) and attribute (1)")
    x = {"input": np.int32([[1]])}
    [about] = quoted("EyeLike", {"dtype": 1}, x, ("dtype given",), crash)
    assert about.startswith("(Optional) The data type for the elements of the output tensor.")
    assert quoted("EyeLike", {}, x, (), crash) == ["Among the types of T1 is tensor(int32)."]
    assert quoted("Abs", {}, {"X": np.float64([1])}, ("float64 inputs",), wrong(1.0, 2.0)) == []
    both = {"X": np.int32([1]), "Y": np.float32([1])}
    [types] = quoted(
        "Pow", {}, both, ("inputs of two dtypes",), Outcome(CRASH, "load", "E", "must have the same dtype")
    )
    assert types.startswith("T: Constrain input X")
