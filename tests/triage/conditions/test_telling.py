"""Programs of several elements beside one that hides what these tell."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from strategies import INSTANCES

from opera.programs.program import Instance, Operand
from opera.programs.values import Tensor
from opera.triage.conditions import telling
from opera.triage.shrink import smaller


@given(INSTANCES)
def test_programs_of_several_elements_differ_from_what_hides_in_numbers_and_lengths_alone(program: Instance) -> None:
    made = list(telling.several(program)) if telling.hides(program) else []
    assert len({x.id for x in made} | {program.id}) == len(made) + 1
    for x in made:
        assert not telling.hides(x) and x.operators == program.operators and x.context == program.context
        for old, new in zip(smaller.leaves(program), smaller.leaves(x), strict=True):
            assert old.dtype == new.dtype and len(new.shape) == (len(old.shape) or len(new.shape)) < len(old.shape) + 2


@given(st.integers(0, 6), st.integers(1, 3), st.sampled_from(("int64", "int32", "uint8")))
def test_indices_stay_within_those_that_there_are_and_0(number: int, length: int, dtype: str) -> None:
    of = Operand("input", Tensor.of(np.full(length, number, dtype)))
    weight = Operand("weight", Tensor.of(np.ones((number + 1, 2), "f4")))
    made = list(telling.several(Instance("torch", "embedding", {}, (of, weight), (), {})))
    assert made
    for x in made:
        found = smaller.leaves(x)[0]
        assert isinstance(found, Tensor) and found.array().min() >= 0
        assert found.array().max() <= max(number, 1) and math.prod(found.shape) > 1


def test_what_is_beyond_the_integers_of_numpy_is_counted_down_from_less() -> None:
    program = Instance("onnx", "Any", {}, (Operand("x", Tensor.of(np.uint64(2**63))),), (), {})
    assert list(telling.several(program))


def test_a_bag_of_one_index_is_asked_about_with_the_one_that_is_left_out() -> None:
    inputs = (
        Operand("input", Tensor.of(np.ones(1, "i8"))),
        Operand("weight", Tensor.of(np.ones((2, 1), "f4"))),
        Operand("offsets", Tensor.of(np.zeros(1, "i8"))),
    )
    bag = Instance("torch", "torch.nn.functional.embedding_bag", {"padding_idx": 0}, inputs, (), {})
    first = next(telling.several(bag))
    values = [x.array().tolist() for x in smaller.leaves(first) if isinstance(x, Tensor)]
    assert values[0] == [1, 0] and values[2] == [0]
    assert len(set(np.ravel(values[1]))) == len(np.ravel(values[1])) > 1
    assert not telling.hides(Instance("torch", "f", {}, (Operand("x", Tensor.of(np.arange(2.0))),), (), {}))
    scalar = Instance("torch", "f", {}, (Operand("x", Tensor.of(np.array(1.0, "f4"))),), (), {})
    shapes = [smaller.leaves(x)[0].shape for x in telling.several(scalar)]
    assert telling.hides(scalar) and shapes == [(2,)]
