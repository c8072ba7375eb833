"""What Keras calls inside a call: sublayers and functions, with what they were given; Keras is left as it was."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keras_instance import instance

pytest.importorskip("keras")
pytest.importorskip("tensorflow")

from opera.libraries.keras import inner, library
from opera.libraries.keras import wrap as keras_model
from opera.programs.program import Captured, Instance, Operand, Provenance
from opera.programs.values import Tensor

SEEN = Provenance("suite", "file", "test")


def attention(heads: int = 2, size: int = 3) -> Instance:
    given = {"query": np.ones((1, 2, 4), "f4"), "value": np.ones((1, 3, 4), "f4")}
    return instance("keras.layers.MultiHeadAttention", {"num_heads": heads, "key_dim": size}, **given)


def test_sublayers_and_functions_are_calls_of_their_own_a_function_before_its_layer(tmp_path) -> None:
    import keras

    before = keras.Layer.__call__, keras.ops.einsum, keras.src.ops.einsum
    found = library.expanded(attention())
    assert (keras.Layer.__call__, keras.ops.einsum, keras.src.ops.einsum) == before
    names = [x.operator for x in found]
    assert {"keras.layers.EinsumDense", "keras.ops.einsum"} <= set(
        names
    ) and "keras.layers.MultiHeadAttention" not in names
    dense = [place for place, x in enumerate(names) if x == "keras.layers.EinsumDense"]
    assert all("keras.ops.einsum" in names[a:b] for a, b in pairwise([0, *dense]))
    assert all("inside" not in x.context for x in found), "it is a call like any other"
    for place, x in enumerate(found):
        library.wrap(Captured(x, SEEN), f"{place:020}", tmp_path / str(place))


@given(st.integers(1, 3), st.integers(1, 3))
@settings(max_examples=4, deadline=None)
def test_a_function_inside_computes_what_it_did(heads: int, size: int) -> None:
    """The last one makes the output of the layer, so its numbers are that layer's."""
    whole = attention(heads, size)
    last = next(x for x in inner.expanded(whole) if x.operator == "keras.ops.add")
    one, other = (keras_model.build(x).run() for x in (whole, last))
    np.testing.assert_allclose(one[0], other[0], rtol=1e-6)


def test_what_a_cell_draws_is_a_layer_in_training() -> None:
    drawn = {"units": 2, "dropout": 0.5}
    whole = instance("keras.layers.GRU", drawn, {"training": True}, sequences=np.ones((1, 2, 3), "f4"))
    found = [x for x in library.expanded(whole) if x.operator == "keras.layers.Dropout"]
    assert [(x.params["rate"], x.context["training"], x.inputs[0].value.shape) for x in found] == [(0.5, True, (1, 3))]


def test_what_a_layer_calls_of_the_backend_is_the_function_of_that_name() -> None:
    """A channel of one number is 0/0 to AutoContrast, which clips it: who takes NaN for a number fails of `clip` alone."""
    whole = instance("keras.layers.AutoContrast", {}, data=np.full((1, 2, 1), 3, "i4"))
    found = {x.operator: x for x in library.expanded(whole)}
    assert {"keras.ops.min", "keras.ops.max", "keras.ops.isnan"} <= found.keys()
    assert np.isnan(found["keras.ops.clip"].inputs[0].value.array()).all()
    np.testing.assert_array_equal(keras_model.build(found["keras.ops.clip"]).run()[0], np.full((1, 1, 2, 1), np.nan))


def test_a_cast_to_the_dtype_that_is_there_already_is_no_call() -> None:
    assert library.expanded(instance("keras.ops.average", {}, x=np.ones(2, "f4"))) == []


def test_one_call_stays_one() -> None:
    assert library.expanded(instance("keras.ops.sin", {}, x=np.ones(2, "f4"))) == []


def test_what_a_function_calls_of_the_backend_is_a_call_of_its_own_and_what_it_is_itself_is_none() -> None:
    """A bfloat16 is normalised in float32 and cast back: who has no such cast fails of that alone."""
    whole = instance("keras.ops.layer_normalization", {}, x=np.ones((2, 3), "f4"))
    one = msgspec.structs.replace(whole, inputs=(Operand("x", Tensor("bfloat16", (2, 3), b"\x80\x3f" * 6)),))
    found = library.expanded(one)
    assert [x.operator for x in found] == ["keras.ops.cast", "keras.ops.rsqrt", "keras.ops.moments"]
    assert found[0].params == {"dtype": "bfloat16"}
    assert not library.expanded(instance("keras.ops.rsqrt", {}, x=np.ones(2, "f4"))), "the backend's is the same call"
