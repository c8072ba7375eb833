"""A reduction ends at an ordinary program where that fails as the smallest one does."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from opera.programs.program import Instance, Operand, Program
from opera.programs.values import Tensor
from opera.programs.verdicts import INCONSISTENT, UNSTABLE, Outcome
from opera.triage.conditions import readable
from opera.triage.reducer import reduce
from opera.triage.shrink import simpler, smaller

SHAPES = arrays.array_shapes(min_dims=0, max_dims=5, min_side=1, max_side=3)


def add(*values: np.ndarray[Any, Any]) -> Instance:
    operands = tuple(Operand(f"x{n}", Tensor.of(x)) for n, x in enumerate(values))
    return Instance("onnx", "Add", {}, operands, ("y",), {})


@given(SHAPES, SHAPES, st.sampled_from(("f4", "f8", "i8")))
def test_ordinary_programs_are_small_and_only_axes_of_1_and_no_indices_grow(
    one: tuple[int, ...], other: tuple[int, ...], kind: str
) -> None:
    program = add(np.ones(one, "f4"), np.ones(other, kind))
    made = readable.sized(program)
    assert len({x.id for x in made} | {program.id}) == len(made) + 1 <= readable.TRIED + 1
    for x in made:
        shapes = [leaf.shape for leaf in smaller.leaves(x)]
        assert max(map(math.prod, shapes)) <= readable.MOST
        assert all(b in (a, 2, 3) if a == 1 else a == b for a, b in zip((*one, *other), sum(shapes, ()), strict=True))
        assert kind != "i8" or x.inputs[1] == program.inputs[1]


def test_one_number_goes_on_and_numbers_differ_from_those_of_other_tensors() -> None:
    [first, *_] = readable.sized(add(np.float32([[1.5]])))
    assert simpler.numbers(smaller.leaves(first)[0]).tolist() == [[1.5, 2.5, 3.5], [4.5, 5.5, 6.5]]
    every, alone = readable.counted(add(np.ones(2, "f4"), np.ones(2, "f4")))
    assert [x.array().tolist() for x in smaller.leaves(every)] == [[1, 2], [2, 3]]
    assert [x.array().tolist() for x in smaller.leaves(alone)] == [[1, 2], [1, 1]]


@given(SHAPES)
def test_strings_of_an_ordinary_program_differ(shape: tuple[int, ...]) -> None:
    made = list(readable.sized(Instance("onnx", "Identity", {}, (Operand("x", readable.lettered(shape)),), ("y",), {})))
    assert bool(made) == (math.prod(shape) < readable.FEW and 1 in shape)
    for x in made:
        [letters] = smaller.leaves(x)
        assert len(set(letters.array().ravel().tolist())) == math.prod(letters.shape) > 1  # type: ignore[union-attr]


@given(SHAPES | st.just((2, 0)) | st.just((0,)), SHAPES)
def test_what_is_0_d_or_empty_gets_elements_and_nothing_else_does(one: tuple[int, ...], other: tuple[int, ...]) -> None:
    program = add(np.ones(one, "f4"), np.ones(other, "i8"))
    made = [[leaf.shape for leaf in smaller.leaves(x)] for x in readable.filled(program)]
    assert bool(made) == (not one or 0 in one)
    for first, second in made:
        assert len(first) == max(len(one), 1) and 0 not in first
        assert second == ((1,) if () == one == other else other), "`scatter_reduce` wants one rank of all"
        assert all(now == old for now, old in zip(first, one, strict=False) if old), "axes that are there stay"
    alone = [smaller.leaves(x)[1].shape for x in readable.filled(program, level=False)]
    assert set(alone) <= {other}, "the bounds of a Clip are scalars"


def test_scales_are_those_of_the_test_and_are_not_counted() -> None:
    def upsample(*scales: float, x: float = 1.0) -> Instance:
        held = {"X": np.full((1, 1, 1, 1), x, "f4"), "scales": np.array(scales, "f4")}
        return Instance("onnx", "Upsample", {}, tuple(Operand(n, Tensor.of(v)) for n, v in held.items()), ("y",), {})

    plain = upsample(1, 1, 1, 1)
    assert list(readable.scaled(plain, upsample(1, 1, 2, 3, x=5.0))) == [upsample(1, 1, 2, 3)]
    assert list(readable.scaled(plain, plain)) == list(readable.scaled(plain, add(np.ones(4)))) == []
    assert next(readable.counted(upsample(1, 1, 2, 3, x=5.0))) == upsample(1, 1, 2, 3)
    assert readable.sized(upsample(1, 1, 2, 3)), "four scales are no large tensor"


class Asker:
    """Answers as a compiler that fails on what `fails` says."""

    def __init__(self, fails: Callable[[tuple[int, ...]], bool], verdict: str = INCONSISTENT) -> None:
        self.fails, self.outcomes, self.verdict = fails, dict[str, Outcome](), verdict

    def __call__(self, programs: Sequence[Program]) -> list[bool]:
        self.outcomes.update((x.id, Outcome(self.verdict)) for x in programs)
        return [self.fails(smaller.leaves(x)[0].shape) for x in programs]

    def stands(self, program: Program) -> bool:
        return True

    fair = stands

    neighbours = None

    def faulted(self, program: Program, first: Program) -> bool:
        return False


def test_a_corner_is_kept_only_where_nothing_ordinary_fails() -> None:
    program = add(np.ones((1, 1, 1), "f4"))

    def left(ask: Any) -> list[tuple[int, ...]]:
        ask([program])
        return [smaller.leaves(x)[0].shape for x in reduce._ordinary(ask, program, program)]

    assert left(Asker(lambda _: True)) == [(1, 2, 3)]
    assert left(Asker(lambda shape: shape[1] == 1)) == [(1, 1, 2)]
    assert left(Asker(lambda shape: max(shape) == 1)) == []
    assert left(Asker(lambda _: True, UNSTABLE)) == [], "what varies is not the same failure twice"


def test_another_tensor_of_nothing_gets_elements_too() -> None:
    """OpenVINO's `cdist` takes an axis of the second for one of the first, whatever it holds; it was filed of an empty one."""
    held = [Tensor.of(np.ones(x, y)) for x, y in (((2, 3), "f4"), ((0, 2, 3), "f4"), ((0,), "i8"), ((0, 1), "i4"))]
    call = Instance("torch", "torch.cdist", {}, tuple(Operand(f"x{n}", x) for n, x in enumerate(held)), (), {})
    made = [[x.shape for x in smaller.leaves(x)] for x in readable.filled(call)]
    assert made == [[(2, 3), (n, 2, 3), (0,), (0, 1)] for n in (2, 1, 3, 5)]


def filled_by(*shape: int) -> Instance:
    held = (Operand("input", Tensor.of(np.array(shape, "i8"))),)
    return Instance("onnx", "ConstantOfShape", {}, held, ("y",), {"opset": {"": 9}})


@given(st.lists(st.integers(0, 3), min_size=1, max_size=8))
def test_lengths_of_0_become_2_or_all_lengths_differ(shape: list[int]) -> None:
    made = [smaller.leaves(x)[0].array().tolist() for x in readable.occupied(filled_by(*shape))]
    assert bool(made) == (0 in shape) and all(0 not in x for x in made)
    assert not made or made == [list(range(2, 2 + len(shape))), [x or 2 for x in shape]]


def test_a_0_of_a_parameter_becomes_1_or_2_where_it_names_no_axis() -> None:
    """A crop of width 0 is a corner of one that leaves all as it is."""
    x = (Operand("x", Tensor.of(np.ones((1, 2), "f4"))),)
    call = Instance("keras", "crop", {"width": 0, "height": 1, "sizes": (0, 3), "axis": 0, "flag": False}, x, (), {})
    made = [y.params for y in readable.occupied(call)]  # type: ignore[union-attr]
    assert made == [{**call.params, "width": n, "sizes": (n, 3)} for n in (1, 2)]


def test_only_what_computes_nothing_gets_other_lengths() -> None:
    class Empty(Asker):
        def __init__(self, empty: bool) -> None:
            super().__init__(lambda _: True)
            self.empty = empty

        def reference(self, _: Program) -> list[Tensor]:
            return [Tensor.of(np.zeros((0, 1) if self.empty else 1, "f4"))]

    def left(empty: bool) -> list[list[int]]:
        program, ask = filled_by(0, 1), Empty(empty)
        ask([program])
        return [smaller.leaves(x)[0].array().tolist() for x in reduce._ordinary(ask, program, program)]  # type: ignore[arg-type]

    assert left(True) == [[2, 3]] and left(False) == []


@pytest.mark.parametrize(("shape", "told"), [((0,), True), ((), False)])
def test_what_is_empty_gets_infinities_at_last(shape: tuple[int, ...], told: bool) -> None:
    """OpenVINO begins a maximum at the lowest float: it is wrong of nothing, and of a row that is masked out."""
    held = Instance("onnx", "ReduceMax", {}, (Operand("data", Tensor.of(np.ones(shape, "f4"))),), ("y",), {})
    numbers = [smaller.leaves(x)[0].numbers().ravel().tolist() for x in readable.filled(held)]  # type: ignore[union-attr]
    assert (numbers[-2:] == [[-np.inf, -np.inf], [np.inf, np.inf]]) is told


def test_an_axis_of_channels_or_of_parts_may_stay() -> None:
    """A DFT of real numbers has one of 1 at its end, of complex ones of 2: no longer signal has another."""
    signal = Tensor.of(np.ones((1, 1, 1, 1), np.float32))
    call = Instance("onnx", "DFT", {}, (Operand("input", signal),), ("output",), {"opset": {"": 20}})
    assert (2, 2, 3, 1) in [x.inputs[0].value.shape for x in readable.sized(call)]  # type: ignore[union-attr]
