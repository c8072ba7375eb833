"""Whatever a value holds, its source is a literal that gives the value back, and nothing else."""

import ast
import base64
import zlib

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opera.libraries.onnx import codec as onnx_values
from opera.programs import literals
from opera.programs.values import CONTAINERS, Optional, Sequence, Tensor

NASTY = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        ['"""', "'''", "\\", "\n import os", "{{ 7 * 7 }}", "{% raw %}", "\r", "\u2028", "#", "');x=('", "\x00"]
    ),
)
NAMES = {
    "np",
    "array",
    "zeros",
    "full",
    "arange",
    "nan",
    "inf",
    "reshape",
    "view",
    "astype",
    "dtype",
    "object",
    "unpack",
}
NAMES |= {"ml_dtypes", "float", "complex", "bool_", *CONTAINERS, *CONTAINERS.values()}


def unpack(text, dtype, shape):
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype).reshape(shape).copy()


def evaluate(text):
    for node in ast.walk(ast.parse(text, mode="eval")):
        if isinstance(node, ast.Name):
            assert node.id in NAMES
        if isinstance(node, ast.Attribute):
            assert node.attr in NAMES
        assert not isinstance(node, ast.Lambda | ast.comprehension | ast.JoinedStr | ast.NamedExpr)
    return eval(text, {"np": np, "ml_dtypes": ml_dtypes, "unpack": unpack})


PLAIN = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), NASTY, st.binary(max_size=20)),
    lambda inner: st.one_of(st.lists(inner, max_size=5), st.lists(inner, max_size=4).map(tuple)),
    max_leaves=12,
)


@given(PLAIN)
def test_literals_give_the_value_back(value):
    assert repr(evaluate(literals.literal(value))) == repr(value)
    assert literals.literal(value).isascii()


def test_what_is_no_plain_value_has_no_literal():
    for value in (object(), {"a": 1}, print):
        with pytest.raises(TypeError):
            literals.literal(value)


@given(st.sampled_from([x for x in CONTAINERS if x != "string"]), st.data())
@settings(max_examples=150)
def test_tensors_come_back_bit_for_bit(dtype, data):
    shape = tuple(data.draw(st.lists(st.integers(0, 4), max_size=3)))
    size = int(np.prod(shape)) * np.dtype(CONTAINERS[dtype]).itemsize
    raw = np.frombuffer(data.draw(st.binary(min_size=size, max_size=size)), dtype=np.uint8)
    limit = {"bool": 2, "float4_e2m1fn": 16, "uint4": 16, "uint2": 4}.get(dtype)
    raw = raw % np.uint8(limit) if limit else raw
    if dtype in ("int4", "int2"):
        raw = (raw % 2 - 1).astype(np.int8)
    tensor = Tensor(dtype, shape, raw.tobytes())
    assert onnx_values.from_array(evaluate(literals.source(tensor))) == tensor


@given(st.lists(NASTY, max_size=6))
def test_string_tensors_and_sequences_come_back(texts):
    tensor = Tensor.of(np.array(texts, dtype=object).reshape(len(texts)))
    assert onnx_values.from_array(evaluate(literals.source(tensor))).data == tensor.data
    both = Sequence("string", (tensor, tensor))
    assert len(evaluate(literals.source(both))) == 2
    assert evaluate(literals.source(Optional("float32", None))) is None


def test_large_tensors_are_packed():
    tensor = Tensor.of(np.random.default_rng(1).random(5000, dtype=np.float32))
    text = literals.source(tensor)
    assert "unpack(" in text and literals.needs(text) == ["unpack"]
    assert max(map(len, text.splitlines())) <= literals.WIDTH
    np.testing.assert_array_equal(evaluate(text), tensor.array())


@given(NASTY)
def test_comments_stay_on_their_line(text):
    line = "# " + literals.comment(text)
    assert line.isascii() and line.isprintable()
    assert not ast.parse(line).body


def test_what_is_cut_is_readable_in_a_comment():
    assert literals.comment("RNN(X=float32[2], …): wrong") == "RNN(X=float32[2], ...): wrong"
