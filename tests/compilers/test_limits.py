"""What compilers document that they do not do: the rows, and which programs meet them."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opera.compilers import registered
from opera.compilers.limits import FOLDER, limits, met
from opera.programs import values
from opera.programs.program import Instance
from opera.programs.values import RandomTensor, Tensor
from opera.programs.verdicts import CRASH, INCONSISTENT, REFUSED, Outcome

WRONG = Outcome(INCONSISTENT, "infer", "value", details={"expected": 1})


def held(compiler: str, operator: str, outcome: Outcome, *tensors: Tensor | RandomTensor) -> bool:
    return any(x.holds((operator,), tensors, outcome) for x in limits(compiler))


@pytest.mark.parametrize("name", sorted(x.stem for x in FOLDER.glob("*.toml")))
def test_each_row_has_a_sentence_its_source_and_something_that_it_explains(name):
    assert name in registered() and limits(name)
    for row in limits(name):
        assert (
            row.says and row.means and (row.source.startswith("https://") or re.search(r"(?:TVM|MNN) \d", row.source))
        )
        assert row.verdicts and (row.dtypes or row.operators or row.words or row.fed)
        assert all(isinstance(getattr(values, x), type) for x in row.fed)
        assert all(re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", x) for x in row.issues)
        assert row.says in row.told and row.source in row.told


@given(st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1), st.integers(2**31, 2**63 - 1), st.sampled_from([-1, 1]))
def test_integers_that_openvino_narrows_are_those_beyond_32_bits_and_no_others(numbers, large, sign):
    few = Tensor.of(np.array(numbers, np.int64))
    assert not held("openvino", "ReduceMin", WRONG, few)
    beyond = Tensor.of(np.array([*numbers, sign * large - (sign < 0)], np.int64))
    assert held("openvino", "ReduceMin", WRONG, beyond)
    assert not held("openvino", "ReduceMin", Outcome(INCONSISTENT, "infer", "shape"), beyond)
    assert not held("onnxruntime", "ReduceMin", WRONG, beyond)


def test_a_large_result_of_small_integers_is_narrowed_and_a_large_float_beside_indices_is_none():
    one = Tensor.of(np.array([1], np.int64))
    assert held("openvino", "Mul", Outcome(INCONSISTENT, "infer", "value", details={"expected": 2**40}), one)
    assert not held("openvino", "Gather", Outcome(INCONSISTENT, "infer", "value", details={"expected": 1e20}), one)
    assert held("mnn", "keras.ops.prod", Outcome(INCONSISTENT, "infer", "value", details={"expected": 5**14}), one)
    assert not held("openvino", "Gather", WRONG, RandomTensor("int64", (2,), 0, 0, 9))
    assert held("openvino", "Max", WRONG, RandomTensor("int64", (2,), 0, 0, 2.0**40))


@pytest.mark.parametrize(
    ("number", "wanted"), [(1e300, True), (-1e39, True), (3e38, False), (np.inf, False), (np.nan, False)]
)
def test_float64_is_narrowed_beyond_the_numbers_of_float32(number, wanted):
    assert held("openvino", "Add", WRONG, Tensor.of(np.array([number]))) is wanted


@pytest.mark.parametrize("infinity", ["inf", -np.inf])
@pytest.mark.parametrize(("actual", "wanted"), [(float(np.finfo("f4").max), True), (1e308, False), ("nan", False)])
def test_the_largest_number_of_float32_for_an_infinity_is_the_narrowing_again(infinity, actual, wanted):
    wrong = Outcome(INCONSISTENT, "infer", "nan-mask", details={"expected": infinity, "actual": actual})
    assert held("openvino", "Exp", wrong, Tensor.of(np.array([1000.0]))) is wanted
    assert not held("openvino", "Exp", wrong, Tensor.of(np.float32([1000.0])))


def test_words_operators_and_dtypes_are_asked_for():
    text = Tensor("string", (1,), Tensor.of(np.array([b"a"], dtype=object), "string").data)
    assert held("openvino", "Trilu", Outcome(CRASH, "load", "RuntimeError", "Unknown type"), text)
    assert held("openvino", "SequenceAt", Outcome(CRASH, "load", "RuntimeError", "no"))
    assert not held("openvino", "SplitToSequence", Outcome(CRASH, "load", "RuntimeError", "no"))
    wants = Outcome(REFUSED, "load", "ValueError", "no", details={"claimed": "it wants a constant, and k is one"})
    assert held("tvm", "TopK", wants) and not held("tvm", "TopK", Outcome(REFUSED, "load", "ValueError", "no"))


@pytest.mark.parametrize(
    ("operator", "says", "wanted"),
    [
        ("Col2Im", "output_size must be a 1D input of shape [2]. Got: [3]", True),
        ("Col2Im", "Col2Im 'pads' attribute must have size [4]. Got: 6", True),
        ("Col2Im", "channels must be divisible by the kernel size product", False),
        ("Other", "output_size must be a 1D input of shape [2]. Got: [3]", False),
    ],
)
def test_openvino_s_col2im_has_two_spatial_axes(operator, says, wanted):
    assert held("openvino", operator, Outcome(CRASH, "load", "RuntimeError", says)) is wanted


def test_openvino_s_topk_is_undefined_of_no_elements():
    says = "TopK node with name 'functional_1/TopKV2' K (0) must be greater or equal to 1."
    assert held("openvino", "keras.ops.top_k", Outcome(CRASH, "compile", "RuntimeError", says))
    beyond = says.replace("K (0) must be greater or equal to 1", "K (3) cannot be greater than 2")
    assert not held("openvino", "keras.ops.top_k", Outcome(CRASH, "compile", "RuntimeError", beyond))


def test_tensorflow_lite_transforms_lengths_that_are_powers_of_two():
    says = "tflite/kernels/rfft2d.cc:121 IsPowerOfTwo(fft_length_data[1]) was not true."
    assert held("tflite", "keras.ops.rfft", Outcome(CRASH, "compile", "RuntimeError", says))
    other = says.replace("IsPowerOfTwo(fft_length_data[1])", "NumElements(fft_length) == 2")
    assert not held("tflite", "keras.ops.rfft", Outcome(CRASH, "compile", "RuntimeError", other))


def test_xla_compiles_both_branches_of_a_conditional_which_return_one_shape():
    """`keras.ops.inner` makes one of a product and a sum of products, whose ranks differ."""
    says = (
        "Failed getting HLO text: 'left_branch_shape.dimensions_size() != right_branch_shape.dimensions_size() (1 vs 0)"
    )
    assert held("xla", "keras.ops.inner", Outcome(CRASH, "load", "InvalidArgumentError", says))
    assert not held(
        "xla", "keras.ops.inner", Outcome(CRASH, "load", "InvalidArgumentError", "Failed getting HLO text: 'x'")
    )


@pytest.mark.parametrize(
    ("operator", "symptom", "given", "wanted"),
    [
        ("torch.nn.functional.dropout", "value", {}, True),
        ("torch.nn.functional.dropout2d", "value", {"training": True}, True),
        ("torch.nn.functional.dropout", "value", {"training": False}, False),
        ("torch.native_dropout", "value", {"train": False}, False),
        ("torch.native_dropout", "shape", {"train": True}, False),
        ("torch.nn.functional.rrelu", "value", {}, False),
    ],
)
def test_openvino_drops_nothing_for_training_is_not_planned(operator, symptom, given, wanted):
    """What is wrong of a dropout in inference, which returns what it is given, no such sentence explains."""
    program = Instance("torch", operator, given, (), (), {})
    assert (met("openvino", program, (), Outcome(INCONSISTENT, "infer", symptom)) is not None) is wanted


def test_a_range_of_one_number_is_empty_to_openvino():
    says = "Min value must be less than max value. Got min value: 0, max value: 0"
    assert held("openvino", "RandomUniformLike", Outcome(CRASH, "load", "RuntimeError", says))
    assert not held("openvino", "RandomUniformLike", Outcome(CRASH, "load", "RuntimeError", "no"))
    assert not held("openvino", "RandomNormal", Outcome(CRASH, "load", "RuntimeError", says))


@pytest.mark.parametrize(("seed", "wanted"), [("0.0", True), ("0", True), ("0.5", False), ("7.0", False)])
def test_a_seed_of_zero_is_none_to_openvino(seed, wanted):
    """ONNX promises the same numbers of any seed that is given; OpenVINO's own operator, of one that is not 0."""
    drawn = {"drawn": "seed", "why": f"with seed={seed}, two models that are compiled draw different numbers"}
    shown = Outcome(INCONSISTENT, "infer", "value", details=drawn)
    assert held("openvino", "RandomNormalLike", shown) is wanted
    assert not held("onnxruntime", "RandomNormalLike", shown) and not held("openvino", "Dropout", shown)
