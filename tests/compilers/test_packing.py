"""Packed bytes are ONNX's own, and unpacking is the inverse of packing."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

from opera.compilers.shared.messages import Rule, last_location, unsupported
from opera.compilers.shared.packing import BITS, CannotCarry, of_numpy, pack, unpack
from opera.programs.values import CONTAINERS, Tensor

NUMBERS = {"int4": onnx.TensorProto.INT4, "uint4": onnx.TensorProto.UINT4}


@given(st.sampled_from(sorted(BITS)), st.data())
def test_unpack_is_the_inverse_of_pack(dtype: str, data: st.DataObject) -> None:
    bits = BITS[dtype]
    low = -(1 << (bits - 1)) if dtype.startswith("int") else 0
    items = data.draw(st.lists(st.integers(low, low + (1 << bits) - 1), max_size=9))
    tensor = Tensor.of(np.array(items, dtype=CONTAINERS[dtype]), dtype)
    assert unpack(dtype, tensor.shape, pack(tensor)) == tensor
    assert len(pack(tensor)) == (len(items) * bits + 7) // 8


@pytest.mark.parametrize("dtype", sorted(NUMBERS))
def test_packing_is_that_of_onnx(dtype: str) -> None:
    items = [1, -2, 7] if dtype == "int4" else [1, 14, 7]
    proto = helper.make_tensor("t", NUMBERS[dtype], [3], items)
    packed = proto.raw_data or bytes(x & 255 for x in proto.int32_data)
    assert pack(Tensor.of(np.array(items, dtype=CONTAINERS[dtype]), dtype)) == packed


def test_what_cannot_be_carried_is_unsupported_and_named() -> None:
    with pytest.raises(CannotCarry, match="datetime64") as caught:
        of_numpy(np.array(["2020-01-01"], dtype="datetime64[D]"))
    assert "datetime64" in str(unsupported((), "infer", caught.value))


def test_a_rule_holds_in_its_stage_only() -> None:
    rules = (Rule(r"no (\w+) here", r"lacks \1", "load"),)
    assert unsupported(rules, "load", ValueError("no kernel here")) == "lacks kernel"
    assert unsupported(rules, "infer", ValueError("no kernel here")) is None


def test_last_location_skips_generic_files_and_folders() -> None:
    message = "Check at src/op/split.cpp:35: while at src/core/node.cpp:9"
    assert last_location(message, "core/node") == "split.cpp:35"
    assert last_location("nothing", "x") == ""
