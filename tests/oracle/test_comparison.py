"""The oracle agrees with what is equal or within tolerance, and names what differs otherwise."""

from __future__ import annotations

import math

import ml_dtypes
import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opera.oracle import comparison as oracle
from opera.oracle.comparison import TOLERANCES, compare
from opera.programs.migrated import Manifest
from opera.programs.values import CONTAINERS, Optional, Sequence, Tensor

SHAPES = st.lists(st.integers(0, 4), max_size=3).map(tuple)


@st.composite
def tensors(draw: st.DrawFn, least: int = 0) -> Tensor:
    """Any bits of any dtype, strings included."""
    dtype, shape = draw(st.sampled_from(sorted(CONTAINERS))), draw(SHAPES)
    if math.prod(shape) < least:
        shape = (3, 2)
    size = math.prod(shape)
    if dtype == "string":
        items = draw(st.lists(st.binary(max_size=4), min_size=size, max_size=size))
        return Tensor.of(np.array([*items, None], dtype=object)[:-1].reshape(shape))
    if dtype == "bool" or "int" in dtype:
        bits = {"bool": 1, "int4": 3, "uint4": 4, "int2": 1, "uint2": 2}.get(dtype, 7)
        items = draw(st.lists(st.integers(0, (1 << bits) - 1), min_size=size, max_size=size))
        return Tensor.of(np.array(items, dtype=CONTAINERS[dtype]).reshape(shape), dtype)
    width = 1 if dtype == "float4_e2m1fn" else np.dtype(CONTAINERS[dtype]).itemsize
    data = draw(st.binary(min_size=size * width, max_size=size * width))
    if dtype == "float4_e2m1fn":
        data = bytes(x & 15 for x in data)
    return Tensor(dtype, shape, data)


def one(expected: object, actual: object, rtol: float | None = None, atol: float | None = None):
    return compare([expected], [actual], ("y",), rtol, atol)


@given(tensors())
def test_equal_tensors_agree_whatever_their_bits(tensor: Tensor) -> None:
    result = one(tensor, Tensor(tensor.dtype, tensor.shape, tensor.data), 1e-3, 1e-7)
    assert result.symptom == "" and result.message == ""
    assert result.details["paper_rule"] is (None if tensor.dtype == "string" else False)


def test_how_far_booleans_are_apart_is_not_said() -> None:
    result = one(Tensor.of(np.array([True, False])), Tensor.of(np.array([True, True])))
    assert result.message == "output 'y': 1 of 2 elements, first at [1]: expected False, got True"


@given(tensors(), st.integers(1, 3))
def test_another_shape_is_a_shape(tensor: Tensor, extra: int) -> None:
    other = Tensor(tensor.dtype, tensor.shape + (1,) * extra, tensor.data)
    assert one(tensor, other).symptom == "shape" and one(other, tensor).symptom == "shape"


@given(tensors(), st.sampled_from(sorted(set(CONTAINERS) - {"string"})))
def test_another_dtype_is_a_dtype(tensor: Tensor, dtype: str) -> None:
    if dtype == tensor.dtype:
        return
    other = Tensor.of(np.zeros(tensor.shape, dtype=CONTAINERS[dtype]), dtype)
    assert one(tensor, other).symptom == "dtype"


@settings(max_examples=200)
@given(st.data())
def test_one_element_beyond_tolerance_is_a_value_and_one_within_is_none(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(["float16", "float32", "float64", "complex64", "bfloat16"]))
    numpy_type = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    items = data.draw(st.lists(st.integers(-100, 100), min_size=1, max_size=12))
    place = data.draw(st.integers(0, len(items) - 1))
    test_rtol = data.draw(st.sampled_from([None, 1e-3, 1e-1]))
    array = np.array(items).astype(numpy_type)
    rtol, atol = TOLERANCES[dtype]
    allowed = max(atol, 1e-7) + max(rtol, test_rtol or 0.0) * abs(items[place])
    for factor, symptom in ((0.25, ""), (4.0, "value")):
        other = array.copy()
        other[place] = np.array(items[place] + factor * allowed).astype(numpy_type)
        moved = abs(complex(other[place]) - items[place])
        if factor < 1 and moved > allowed:  # rounding to the dtype moved it further than was asked for
            continue
        result = one(Tensor.of(array), Tensor.of(other), test_rtol, 1e-7)
        assert result.symptom == symptom
        assert result.details["differing"] == (1 if symptom else 0)
        assert result.details["chebyshev"] == pytest.approx(moved, rel=1e-6)
        assert result.details["paper_rule"] is (moved > 1e-3)
        if symptom:
            assert result.details["index"] == f"[{place}]" and "y" in result.message


@pytest.mark.filterwarnings("error")
@given(st.data(), st.sampled_from([(), (1,)]))
def test_integers_differ_exactly_even_where_floats_cannot_tell(data: st.DataObject, shape: tuple[int, ...]) -> None:
    dtype = data.draw(st.sampled_from(["int64", "uint64", "int8", "uint16"]))
    limits = np.iinfo(dtype)
    edges = st.sampled_from([int(limits.min), int(limits.max) - 1, int(limits.max), 0])
    a, b = data.draw(edges), data.draw(edges)
    result = one(*(Tensor.of(np.full(shape, x, dtype=dtype)) for x in (a, b)), 1e-1, 1e-1)
    assert result.symptom == ("" if a == b else "value")
    assert result.details["chebyshev"] == float(abs(a - b))


@pytest.mark.parametrize("special", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "complex64"])
def test_nan_and_infinities_must_be_at_the_same_places(special: float, dtype: str) -> None:
    numpy_type = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    with_it = Tensor.of(np.array([1.0, special, 2.0]).astype(numpy_type))
    without = Tensor.of(np.array([1.0, 5.0, 2.0]).astype(numpy_type))
    assert one(with_it, with_it).symptom == ""
    for pair in ((with_it, without), (without, with_it)):
        result = one(*pair)
        assert (
            result.symptom == "nan-mask" and result.details["index"] == "[1]" and result.details["paper_rule"] is None
        )


def test_infinity_of_the_other_sign_is_a_nan_mask() -> None:
    assert one(Tensor.of(np.array([np.inf])), Tensor.of(np.array([-np.inf]))).symptom == "nan-mask"


def test_number_of_outputs_comes_first() -> None:
    tensor = Tensor.of(np.zeros(3))
    result = compare([tensor], [tensor, tensor], ("y",), None, None)
    assert result.symptom == "count" and result.details["paper_rule"] is None


def test_a_tests_tiny_atol_does_not_make_rounding_near_zero_a_difference() -> None:
    assert one(Tensor.of(np.float32([0.0])), Tensor.of(np.float32([2e-6])), 1e-3, 1e-7).symptom == ""


def test_the_paper_rule_is_decided_beside_the_verdict() -> None:
    large = one(Tensor.of(np.float32([1e6])), Tensor.of(np.float32([1e6 + 10])), 1e-3, 1e-7)
    assert large.symptom == "" and large.details["paper_rule"] is True
    small = one(Tensor.of(np.float64([1e-5])), Tensor.of(np.float64([2e-5])))
    assert small.symptom == "value" and small.details["paper_rule"] is False


def test_containers() -> None:
    a, b = Tensor.of(np.float32([1, 2])), Tensor.of(np.float32([1, 3]))
    assert one(Sequence("float32", (a, b)), Sequence("", (a, b))).symptom == ""
    result = one(Sequence("float32", (a, a)), Sequence("float32", (a, b)))
    assert result.symptom == "value" and "element 1" in result.message
    assert one(Sequence("float32", (a, b)), Sequence("float32", (a,))).symptom == "count"
    assert one(Sequence("float32", (a,)), a).symptom == "dtype"
    assert one(Optional("float32", a), a).symptom == "" and one(Optional("float32", a), b).symptom == "value"
    assert one(Optional("float32", None), Optional("", None)).symptom == ""
    assert one(Optional("float32", None), a).symptom == "dtype"


def test_strings_are_compared_exactly() -> None:
    result = one(Tensor.of(np.array(["a", "b"])), Tensor.of(np.array(["a", "c"])))
    assert result.symptom == "value" and result.details["expected"] == "b" and result.details["actual"] == "c"


def test_all_outputs_are_looked_at() -> None:
    same, other = Tensor.of(np.float32([1])), Tensor.of(np.float32([2]))
    result = compare([same, same], [same, other], ("first", "second"), None, None)
    assert result.symptom == "value" and result.details["output"] == "second"


floats = st.floats(min_value=-1e6, max_value=1e6, width=32)


@given(
    st.lists(st.tuples(floats, floats), min_size=1, max_size=30),
    st.floats(min_value=0, max_value=2),
    st.floats(min_value=0, max_value=2),
)
def test_margins_tell_agreement_at_any_tolerance(pairs, rtol, atol):
    want, got = (Tensor.of(np.array(column, dtype=np.float32)) for column in zip(*pairs, strict=True))
    found = oracle.margins([want], [got])
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(oracle.TOLERANCES, "float32", (rtol, atol))
        symptom = oracle.compare([want], [got], ("y",), None, None).symptom
        agrees = oracle.within(found, None, None)
    one, other = want.array().astype(np.float64), got.array().astype(np.float64)
    slack = np.abs(other - one) - (atol + rtol * np.abs(one))
    if np.abs(slack).min() > 1e-9 * (1 + np.abs(one).max()):  # not on the line itself, where rounding decides
        assert agrees == (not symptom)


def test_margins_are_few_and_of_all_outputs():
    generator = np.random.default_rng(0)
    want = generator.normal(size=100_000).astype(np.float32)
    got = want + generator.normal(size=want.shape).astype(np.float32) * np.float32(1e-6)
    values = [Tensor.of(want), Tensor.of([1, 2]), Sequence("float32", (Tensor.of(want[:3]),))]
    others = [Tensor.of(got), Tensor.of([1, 2]), Sequence("float32", (Tensor.of(got[:3]),))]
    found = oracle.margins(values, others)
    assert [x.dtype for x in found] == ["float32", "float32"]
    assert all(len(x.corners) < 40 for x in found)
    assert oracle.margins(values, values) == ()


def test_the_worst_output_is_told_and_the_others_are_listed() -> None:
    """A dtype that differs hid indices that were all zero, a shape another element of the tuple that was wrong."""
    indices, numbers = Tensor.of(np.array([2, 0, 1])), Tensor.of(np.float32([1, 2, 3]))
    narrow, zeros = Tensor.of(np.array([2, 0, 1], np.int32)), Tensor.of(np.zeros(3, np.int32))
    off, row = Tensor.of(np.float32([1, 2, 9])), Tensor.of(np.float32([[1, 2, 3]]))

    def worst(*actual: Tensor) -> tuple[str, object]:
        found = compare([indices, numbers], list(actual), ("at", "x"), None, None)
        return found.symptom, found.details["output"]

    assert worst(narrow, off) == ("value", "x")
    assert worst(zeros, row) == ("dtype", "at"), (
        "wrong numbers, whatever their dtype, before another shape of right ones"
    )
    assert worst(narrow, row) == ("shape", "x")
    assert worst(narrow, Tensor.of(np.float32([1, 2]))) == ("shape", "x")
    found = compare([indices, numbers], [zeros, row], ("at", "x"), None, None)
    assert found.details["values_differ"] is True and found.message.endswith("values differ too")
    assert found.details["others"] == ["output 'x': shape: shape [3] is expected, [1, 3] was returned"]
    assert one(indices, narrow).details["values_differ"] is False
    pairs = [Sequence("", (indices, numbers)), Sequence("", (narrow, off))]
    assert one(*pairs).symptom == "value" and "element 1" in one(*pairs).message


def test_values_of_another_dtype_are_compared_as_numbers() -> None:
    for want, got, differ in (
        (np.array([2**63 - 1]), np.array([2**63], np.uint64), True),
        (np.array([0, 1]), np.array([False, True]), False),
        (np.float32([0.1]), np.float64([0.1]), False),
        (np.float32([np.nan]), np.float64([0.0]), True),
        (np.complex64([1 + 1j]), np.float32([1.0]), True),
        (np.float32([1.5, -2.7]), np.array([1, -2]), False),  # cut, or rounded: their dtype holds no more
        (np.float32([1.5, -2.7]), np.array([2, -3]), False),
        (np.float32([1.5, -2.7]), np.array([1, -1]), True),
        (np.float32([0.5, 0.7]), np.array([0, 0]), True),  # zeros tell nothing of what was computed
        (np.float32([1.5, 3.0]), np.float64([1.0, 3.0]), True),
    ):
        assert one(Tensor.of(want), Tensor.of(got)).details["values_differ"] is differ
    assert "values_differ" not in one(Tensor.of(np.array(["1"], object)), Tensor.of([1])).details


def test_what_outputs_conceal_is_what_others_show():
    def f32(*numbers):
        return Tensor.of(np.float32(numbers))

    def shown(*got, first=1.0):
        return compare([f32(first, 2), f32(3, 4)], list(got), ("x", "y"), None, None).details

    both = shown(f32(2, 2), f32(3, 5))
    assert both["wrong"] == {"x": "value", "y": "value"} and both["not_finite"] is False
    one, cast = shown(f32(2, 2), f32(3, 4)), shown(f32(2, 2), Tensor.of(np.int64([3, 4])))
    assert oracle.conceals(both, one) and not oracle.conceals(one, both) and not oracle.conceals(both, both)
    assert oracle.conceals(both, cast), "a wrong dtype is less than wrong values"
    assert not oracle.conceals(cast, both)
    nowhere = shown(f32(np.nan, 3), f32(3, 5), first=np.nan)
    assert oracle.conceals(both, nowhere) and not oracle.conceals(nowhere, nowhere)
    assert not oracle.conceals({}, both) and not oracle.conceals(both, {}), "a verdict of before says nothing of it"


def test_what_kind_of_value_is_returned_for_which_is_told_in_details() -> None:
    """TVM's SplitToSequence returns a tensor: the title said `? for ?`."""
    wanted, found = Sequence("float32", (Tensor.of(np.ones(2, "f4")),)), Tensor.of(np.ones(2, "f4"))
    shown = compare([wanted], [found], ["y"], None, None)
    assert (shown.details["expected"], shown.details["actual"]) == ("a sequence", "a float32 tensor")
    assert shown.symptom == "dtype" and shown.message.endswith("a sequence is expected, a float32 tensor was returned")


def _neighbour(dtype: str, number: float, steps: int) -> Tensor:
    """Return the float that is some steps from a number."""
    array = np.asarray([number], ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    bits = array.view(f"u{array.itemsize}")
    return Tensor(dtype, (1,), (bits + bits.dtype.type(steps)).tobytes())


@pytest.mark.parametrize("dtype", sorted(oracle.UNROUNDED))
@given(number=st.floats(min_value=1e-3, max_value=6e4), sign=st.sampled_from((-1, 1)))
def test_what_is_never_rounded_may_be_no_neighbour(dtype: str, number: float, sign: int) -> None:
    want, near = _neighbour(dtype, sign * number, 0), _neighbour(dtype, sign * number, 1)
    assert oracle.compare([want], [near], ("y",), None, None).symptom == ""
    assert oracle.compare([want], [near], ("y",), 1e-3, 1e-7, exact=True).symptom == "value"
    assert oracle.compare([want], [want], ("y",), None, None, exact=True).symptom == ""
    margins = oracle.margins([want], [near])
    assert oracle.within(margins, None, None) and not oracle.within(margins, None, None, True)


@pytest.mark.parametrize("dtype", sorted(oracle.UNROUNDED.keys() - {"float16"}))
def test_subnormal_numbers_may_be_flushed_to_zero(dtype: str) -> None:
    least, zero = _neighbour(dtype, 0.0, 1), _neighbour(dtype, 0.0, 0)
    assert least.numbers()[0] > 0
    assert oracle.compare([least], [zero], ("y",), None, None, exact=True).symptom == ""


def test_a_dtype_that_is_computed_in_a_narrower_one_is_rounded_by_that():
    moved = Manifest("t", "i", "onnx", "Identity", {}, (), ("y",), {}, tags=("exact",))
    one = [Tensor.of(np.zeros(1))]
    assert oracle.granted({}, one, moved) == (None, None, True)
    assert oracle.granted({"float64": "float32"}, one, moved) == (*oracle.TOLERANCES["float32"], False)
    assert oracle.granted({}, one, msgspec.structs.replace(moved, tags=())) == (None, None, False)
