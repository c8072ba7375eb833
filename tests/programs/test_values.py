from __future__ import annotations

import math
import struct
from fractions import Fraction

import ml_dtypes
import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import RANDOM, VALUES, tensors

from opera.errors import CorpusError
from opera.programs import values
from opera.programs.values import LOW_PRECISION, RandomTensor, Tensor


def same(left: object, right: object) -> bool:
    """Equality that tells 1 from 1.0 and True, and takes NaN as equal to NaN."""
    if type(left) is not type(right):
        return False
    if isinstance(left, float):
        both_nan = math.isnan(left) and math.isnan(right)
        return both_nan or struct.pack("d", left) == struct.pack("d", right)
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return len(left) == len(right) and all(map(same, left.items(), right.items()))
    if isinstance(left, msgspec.Struct):
        return same(msgspec.structs.astuple(left), msgspec.structs.astuple(right))
    return left == right


@given(VALUES)
def test_decoding_is_the_inverse_of_encoding(value):
    assert same(values.decode(values.encode(value)), value)


@given(VALUES)
def test_the_canonical_bytes_are_json_and_round_trip(value):
    data = values.dumps(value)
    assert same(values.loads(data), value)
    assert values.dumps(values.loads(data)) == data


@given(tensors())
def test_a_tensor_survives_numpy(tensor):
    assert Tensor.of(tensor.array(), tensor.dtype if tensor.dtype != "string" else None) == tensor


EVERY_LOW_PRECISION = pytest.mark.parametrize("dtype", [*sorted(LOW_PRECISION), "float8_e8m0fnu"])


def codes_of(dtype):
    container = np.dtype(values.CONTAINERS[dtype])
    return np.arange(16 if dtype == "float4_e2m1fn" else 1 << 8 * container.itemsize, dtype=container)


def bits_of(array):
    """The bits of float32, so that zeros differ by their sign; all NaN are one."""
    return np.where(np.isnan(array), np.uint32(0x7FC00000), np.asarray(array, np.float32).view(np.uint32))


def exact(code, dtype):
    """Return the number that a code stands for by its fields alone, with no arithmetic that rounds; None for NaN."""
    if dtype == "float8_e8m0fnu":
        return None if code == 255 else Fraction(2) ** (code - 127)
    exponent_bits, mantissa_bits, bias, *_ = LOW_PRECISION[dtype]
    negative, rest = divmod(code, 1 << exponent_bits + mantissa_bits)
    exponent, mantissa = divmod(rest, 1 << mantissa_bits)
    last = exponent == (1 << exponent_bits) - 1
    if dtype.endswith("fnuz") and (negative, rest) == (1, 0):
        return None
    if dtype in ("bfloat16", "float8_e5m2") and last:
        return None if mantissa else (-math.inf if negative else math.inf)
    if dtype == "float8_e4m3fn" and last and mantissa == (1 << mantissa_bits) - 1:
        return None
    scaled = mantissa if exponent == 0 else mantissa + (1 << mantissa_bits)
    size = Fraction(scaled) * Fraction(2) ** (max(exponent, 1) - bias - mantissa_bits)
    return -size if negative else size


@EVERY_LOW_PRECISION
def test_every_low_precision_code_decodes_as_ml_dtypes_says(dtype):
    codes = codes_of(dtype)
    told = codes.view(np.dtype(getattr(ml_dtypes, dtype))).astype(np.float32)
    np.testing.assert_array_equal(bits_of(values.widen(codes, dtype)), bits_of(told))


@EVERY_LOW_PRECISION
def test_every_low_precision_code_decodes_to_the_exact_number(dtype):
    decoded = values.widen(codes_of(dtype), dtype)
    assert decoded.dtype == np.float32
    for code, found in enumerate(decoded.tolist()):
        wanted = exact(code, dtype)
        told = None if math.isnan(found) else found if math.isinf(found) else Fraction(found)
        assert told == wanted, (code, found)


def test_decoding_needs_no_function_that_cpus_round_differently(monkeypatch):
    """On an Intel CPU with AVX-512 np.exp2 of 127 in float32 is one unit in the last place too small."""
    rounded = np.exp2
    monkeypatch.setattr(np, "exp2", lambda x: np.nextafter(rounded(x), np.float32(0)))
    np.testing.assert_array_equal(values.widen(np.uint8([0, 127, 254]), "float8_e8m0fnu"), [2.0**-127, 1, 2.0**127])


@pytest.mark.parametrize("dtype", ["int4", "uint4", "int2", "uint2", "bfloat16", "float8_e5m2", "float4_e2m1fn"])
def test_ml_dtypes_arrays_are_taken_exactly(dtype):
    array = np.array([[1, 0], [1, 1]], dtype=getattr(ml_dtypes, dtype))
    tensor = Tensor.of(array)
    assert tensor.dtype == dtype
    np.testing.assert_array_equal(tensor.numbers().astype(np.float32), array.astype(np.float32))


def test_a_scalar_stays_a_scalar():
    assert Tensor.of(np.float32(3)).shape == ()


def test_a_transposed_array_keeps_its_elements():
    array = np.arange(6, dtype=np.int32).reshape(2, 3).T
    np.testing.assert_array_equal(Tensor.of(array).array(), array)


@given(RANDOM)
def test_a_random_tensor_is_reproducible_and_in_its_range(random):
    tensor = random.tensor()
    assert tensor == random.tensor()
    numbers = tensor.numbers().astype(np.float64)
    slack = 1e-2 * max(abs(random.low), abs(random.high))
    assert ((numbers >= random.low - slack) & (numbers <= random.high + slack)).all()


HOSTILE = [
    {"$tensor": {"dtype": "float32", "shape": [1 << 40], "data": ""}},
    {"$tensor": {"dtype": "float32", "shape": [0, 1 << 40], "data": ""}},
    {"$tensor": {"dtype": "float32", "shape": [-1], "data": ""}},
    {"$tensor": {"dtype": "float32", "shape": [True], "data": "AAAAAA=="}},
    {"$tensor": {"dtype": "float32", "shape": [2], "data": "AAAA"}},
    {"$tensor": {"dtype": "float32", "shape": "22", "data": "AAAA"}},
    {"$tensor": {"dtype": "object", "shape": [1], "data": "AAAA"}},
    {"$tensor": {"dtype": "string", "shape": [2], "strings": ["one"]}},
    {"$tensor": {"dtype": "string", "shape": [1], "strings": [1]}},
    {"$random": {"dtype": "float32", "shape": [1 << 20, 1 << 20], "seed": 0, "low": 0, "high": 1}},
    {"$random": {"dtype": "float32", "shape": [1], "seed": 0, "low": 0, "high": math.nan}},
    {"$random": {"dtype": "int32", "shape": [1], "seed": 0, "low": 0, "high": 0.5}},
    {"$random": {"dtype": "int8", "shape": [1], "seed": 0, "low": 0, "high": 128}},
    {"$random": {"dtype": "bool", "shape": [1], "seed": 0, "low": 0, "high": 2}},
    {"$random": {"dtype": "int64", "shape": [1], "seed": 0, "low": 0, "high": 1e18}},
    {"$random": {"dtype": "complex64", "shape": [1], "seed": 0, "low": 0, "high": 1}},
    {"$random": {"dtype": "string", "shape": [1], "seed": 0, "low": 0, "high": 1}},
    {"$random": {"dtype": "float32", "shape": [1], "seed": -1, "low": 0, "high": 1}},
    {"$int": "1" * 5000},
    {"$int": "__import__('os')"},
    {"$float": "1.0"},
    {"$bytes": "not base64!"},
    {"$eval": "1"},
    {"$tuple": 3},
    {"$dict": [[[1], 2]]},
    {"a": 1, "b": 2},
    {},
]


@pytest.mark.parametrize("form", HOSTILE, ids=str)
def test_what_encode_never_writes_is_refused(form):
    with pytest.raises(CorpusError):
        values.decode(form)


@given(st.recursive(st.none() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)))
def test_arbitrary_json_is_decoded_or_refused_but_never_crashes(form):
    try:
        value = values.decode(form)
    except CorpusError:
        return
    assert same(values.decode(values.encode(value)), value)


def test_a_container_that_holds_itself_is_refused():
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(CorpusError, match="nested"):
        values.encode(loop)
    deep = b"[" * 100_000 + b"]" * 100_000
    with pytest.raises(CorpusError):
        values.loads(deep)


def test_objects_of_other_classes_have_no_encoding():
    with pytest.raises(CorpusError, match="no encoding"):
        values.encode(object())
    with pytest.raises(CorpusError):
        Tensor.of(np.array([1], dtype="datetime64[s]"))


def test_described_integers_reach_both_ends():
    assert set(RandomTensor("int8", (500,), 1, -1.0, 2.0).tensor().array()) == {-1, 0, 1, 2}
    assert set(RandomTensor("bool", (50,), 1, 0.0, 1.0).tensor().array()) == {False, True}


def test_a_gigabyte_declared_costs_no_memory():
    large = RandomTensor("float64", (1 << 30,), 0, 0.0, 1.0)
    assert values.loads(values.dumps(large)) == large
    with pytest.raises(CorpusError, match="more than"):
        large.tensor()
    with pytest.raises(CorpusError, match="more than"):
        RandomTensor("float64", (2, 1 << 30), 0, 0.0, 1.0)
