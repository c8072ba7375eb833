"""What is undefined of a result excuses what is wrong there, and nothing else."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opera.libraries.onnx import library as onnx_library
from opera.oracle import comparison as oracle
from opera.oracle import undefined
from opera.oracle.undefined import Undefined
from opera.programs.migrated import Manifest
from opera.programs.program import Instance, Operand
from opera.programs.values import Tensor

F = np.float32
NAN = F("nan")


def excused(why, expected, actual):
    """Whether all that is wrong is undefined, of outputs a, b, ..."""
    wanted, got = ([Tensor.of(np.asarray(x)) for x in one] for one in (expected, actual))
    of = Manifest("t", "i", "Operator", "onnx", {}, (), tuple("abc"[: len(wanted)]), {})
    details = oracle.compare(wanted, got, of.outputs, None, None).details
    return not undefined.wrong(of, wanted, undefined.mended(why, wanted, got), details)


@given(st.lists(st.tuples(st.booleans(), st.integers(-9, 9)), min_size=1, max_size=9))
def test_what_is_wrong_elsewhere_is_wrong_all_the_same(elements):
    mask = np.array([left_open for left_open, _ in elements])
    off = np.array([move for _, move in elements])
    expected = np.arange(len(elements))
    assert excused(Undefined("why", mask), [expected], [expected + off]) == bool((off[~mask] == 0).all())
    assert excused("why", [expected], [expected + off]), "where it is not known which, all of them are"
    assert excused(Undefined("why", mask[None, None]), [expected], [expected + off]), (
        "nor where the shapes do not go together"
    )


def test_outputs_that_nothing_is_said_of_are_undefined():
    why = Undefined("why", False)
    assert excused(why, [F([1]), F([2])], [F([1]), F([3])])
    assert not excused(why, [F([1]), F([2])], [F([4]), F([3])])


def onnx(operator, inputs, params=None, opset=21):
    operands = tuple(Operand(name, Tensor.of(np.asarray(x))) for name, x in inputs.items())
    return onnx_library.undefined(
        Instance("onnx", operator, params or {}, operands, ("y",), {"opset": {"": opset}}), []
    )


@pytest.mark.parametrize(
    ("operator", "inputs", "params", "opset", "expected", "free"),
    [
        ("Cast", {"input": F([[1, NAN], [3, 1e30]])}, {"to": 6}, 21, np.int32([[1, 0], [3, 0]]), [1, 3]),
        ("BitShift", {"X": np.uint8([[1], [2]]), "Y": np.uint8([8, 1])}, {}, 11, np.uint8([[0, 2], [0, 4]]), [0, 2]),
        ("Div", {"A": np.int8([-128, 6, 1]), "B": np.int8([-1, 2, 0])}, {}, 14, np.int8([0, 3, 0]), [0, 2]),
        ("Pow", {"X": np.int32([2, 2]), "Y": F([-1, 3])}, {}, 15, np.int32([0, 8]), [0]),
        (
            "QuantizeLinear",
            {"x": F([NAN, 2]), "y_scale": F(1), "y_zero_point": np.uint8(0)},
            {},
            13,
            np.uint8([0, 2]),
            [0],
        ),
        (
            "ScatterND",
            {"data": F([1, 2, 3]), "indices": np.int64([[0], [-3], [1]]), "updates": F([3, 4, 5])},
            {},
            16,
            F([4, 5, 3]),
            [0],
        ),
    ],
)
def test_onnx_leaves_elements_open(operator, inputs, params, opset, expected, free):
    why = onnx(operator, inputs, params, opset)
    for place in range(expected.size):
        actual = expected.copy()
        actual.flat[place] += 1
        assert excused(why, [expected], [actual]) == (place in free), place


def test_a_cast_without_a_type_says_nothing():
    assert onnx("Cast", {"input": F([-0.0])}, {"to": 24}, 25), "minus zero is unspecified, too"
    assert onnx("Cast", {"input": F([NAN])}, {"to": 24}, 25) is None


torch = pytest.importorskip("torch")

from opera.libraries.torch import calls as torch_calls  # noqa: E402
from opera.libraries.torch import library as torch_library  # noqa: E402
from opera.libraries.torch import wrap as torch_module  # noqa: E402

X = torch.tensor([3.0, 1.0, 3.0, 2.0])
TWO, THREE = torch.tensor([5.0, 6.0, 7.0]), torch.zeros(3, 2)
DOUBLED = torch.tensor([0, 2, 2])


@pytest.mark.parametrize(
    ("operator", "args", "options", "free"),
    [
        ("sort", (X,), {}, [[], [2, 3]]),
        ("sort", (X,), {"descending": True}, [[], [0, 1]]),
        ("argsort", (X,), {}, [[2, 3]]),
        ("topk", (X, 3), {}, [[], [0, 1]]),
        ("median", (X, 0), {}, [[], [0]]),
        ("Tensor.to", (torch.tensor([1.0, 1e20]), torch.int32), {}, [[1]]),
        ("bitwise_left_shift", (torch.tensor([[1], [2]]), torch.tensor([1, 64])), {}, [[1, 3]]),
        ("Tensor.index_copy_", (THREE.T.clone(), 1, DOUBLED, torch.ones(2, 3)), {}, [[2, 5]]),
        ("index_put", (THREE, (DOUBLED,), torch.ones(3, 2)), {}, [[4, 5]]),
        ("Tensor.put_", (THREE, DOUBLED, TWO), {}, [[2]]),
        ("scatter", (torch.zeros(3), 0, DOUBLED, TWO), {}, [[2]]),
        ("polar", (torch.tensor([1.0, -1.0]), torch.tensor([0.5, 0.5])), {}, None),
    ],
)
def test_pytorch_leaves_elements_open(operator, args, options, free):
    call = torch_calls.instance(f"torch.{operator}", args, options)
    expected = torch_module.run(call).expected
    why = torch_library.undefined(call, expected)
    arrays = [x.array() for x in expected]
    free = [[1]] if free is None else free
    for output, places in enumerate(free):
        for place in range(arrays[output].size):
            actual = [x.copy() for x in arrays]
            actual[output].flat[place] += 1
            assert excused(why, arrays, actual) == (place in places), (output, place)
