"""What is told is put to the test by programs of which several things differ."""

from __future__ import annotations

import itertools
import random
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opera.programs.program import Instance, Operand
from opera.programs.values import Tensor
from opera.triage.conditions.circumstances import borne_out
from opera.triage.conditions.deciding import Decided
from opera.triage.conditions.further import TRIALS, Tried, anew, evenly, further, in_turn
from opera.triage.conditions.labels import Labelled
from opera.triage.conditions.near import near
from opera.triage.shrink import simpler, smaller
from opera.triage.shrink.minimise import Spent

DEFAULTS = {"Any": {"k": 1, "flag": False}}


def call(*shape: int, dtype: str = "float32", **params: Any) -> Instance:
    held = Operand("x", Tensor.of(np.ones(shape, dtype)))
    return Instance("onnx", "Any", params, (held,), ("y",), {"opset": {"": 22}})


def numbered(count: int) -> list[Instance]:
    return [call(2, k=n) for n in range(count)]


@given(st.text(max_size=8), st.lists(st.integers(1, 3), min_size=1, max_size=3))
def test_each_program_is_drawn_once_and_the_same_of_the_same_seed(seed, shape):
    base = call(*shape, k=2)
    drawn = list(itertools.islice(further([base], DEFAULTS, seed), 8))
    assert [x.id for x in drawn] == [x.id for x in itertools.islice(further([base], DEFAULTS, seed), 8)]
    assert len({x.id for x in drawn} - {base.id}) == len(drawn) > 0
    known = {x.id for x in drawn}
    assert not known & {x.id for x in itertools.islice(further([base], DEFAULTS, seed, known), 8)}


def test_several_things_differ():
    base = call(2, 3, k=2)
    drawn = list(itertools.islice(further([base], DEFAULTS, "seed"), 40))
    shapes = {smaller.leaves(x)[0].shape for x in drawn}
    both = [x for x in drawn if smaller.leaves(x)[0].shape != (2, 3) and x.params != base.params]
    assert len(shapes) > 3 and len(both) > 3


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float8_e4m3fn", "int8", "int4", "uint4", "int64"])
def test_numbers_are_drawn_anew_of_both_signs_where_there_are_such(dtype):
    held = simpler.numbered(np.full((2, 2), 1.0), dtype)
    base = msgspec.structs.replace(call(2, 2), inputs=(Operand("x", held),))
    drawn = [smaller.leaves(x)[0] for x in itertools.islice(further([base], DEFAULTS, "seed"), 60)]
    same = [x.numbers() for x in drawn if x.dtype == dtype]
    assert len({x for numbers in same for x in numbers.ravel().tolist()}) > 7
    assert dtype.startswith("u") or any(x.min() < 0 < x.max() for x in same)


def test_numbers_that_may_state_sizes_are_not_drawn():
    base = msgspec.structs.replace(call(2), inputs=(Operand("sizes", Tensor.of(np.array([3, 4]))),))
    assert anew(base, random.Random(0)) == base


@given(st.sets(st.integers(0, 20)))
def test_both_kinds_come_in_turn_and_none_is_lost(having):
    programs = numbered(21)
    found = [x.params["k"] for x in evenly(programs, lambda x: x.params["k"] in having, both=True)]
    assert sorted(found) == list(range(21))
    turn = 2 * min(len(having), 21 - len(having))
    assert [x in having for x in found[:turn]] == [True, False] * (turn // 2)


def test_what_tells_nothing_asks_of_all_alike():
    assert list(evenly(programs := numbered(5), lambda _: True, both=False)) == programs


def test_a_program_that_passes_for_another_reason_says_nothing():
    labelled = [Labelled(x, fails=x.params["k"] == 1) for x in numbered(4)]
    holds = lambda x: x.params["k"] < 3  # noqa: E731
    assert Tried.of(labelled, holds, lambda x: x.params["k"] == 0) == Tried(1, 1, 0, 1)
    assert Tried.of(labelled, holds, lambda _: False) == Tried(1, 2, 0, 1)


@pytest.mark.parametrize(
    ("fails", "told", "contradicted"),
    [
        (lambda x: x.params.get("k", 1) == 2, ("k=2",), False),  # it decides, whatever else differs
        (
            lambda x: smaller.leaves(x)[0].shape != (2, 2),
            (),
            False,
        ),  # nothing near passes: further ones are all as told
        (lambda x: x.params.get("k", 1) == 2 and x.params.get("flag") is not True, ("k=2",), False),  # learned, or told
    ],
)
def test_what_is_told_holds_of_further_programs(fails, told, contradicted):
    def label(programs):
        return [fails(x) for x in programs]

    found = borne_out(label, call(2, 3, k=2), DEFAULTS, Decided(told, ()))
    tried = Tried(*found.tried)
    assert tried.asked > 10
    assert (tried.as_told < tried.asked) == contradicted


def test_more_time_is_taken_for_what_puts_it_to_the_test():
    """The time was over once near programs were asked; it goes on once more than for these alone."""
    left, taken = [40], list[int]()

    def label(programs):
        if left[0] <= 0:
            raise Spent
        left[0] -= len(programs)
        return [x.params.get("k", 1) == 2 for x in programs]

    def go_on():
        taken.append(left[0])
        left[0] = 8 if len(taken) > 1 else 0  # what is told at last takes the first of it

    found = borne_out(label, call(2, 3, k=2), DEFAULTS, Decided(("k=2",), ()), go_on=go_on)
    assert len(taken) == 2 and Tried(*found.tried).asked >= TRIALS


@pytest.mark.parametrize("corpus", [[], [call(2, n, k=1, secret=True) for n in range(2, 8)]])
def test_programs_of_the_corpus_put_to_the_test_what_no_near_program_would(corpus):
    """No program near `k=2` has a parameter of which neither it nor the library's defaults tell."""

    def label(programs):
        return [x.params.get("k", 1) == 2 or "secret" in x.params for x in programs]

    found = borne_out(label, call(2, 3, k=2), DEFAULTS, Decided(("k=2",), ()), corpus=corpus)
    assert Tried(*found.tried).other_failing == len(corpus)


@given(st.integers(0, 4), st.integers(0, 4))
def test_two_kinds_come_in_turn_and_the_rest_after_them(ones, others):
    made, drawn = numbered(ones), [call(3, k=n) for n in range(others)]
    found = list(in_turn(made, iter(drawn)))
    assert [x for x in found if x in made] == made
    assert [x for x in found if x in drawn] == drawn
    assert [x in made for x in found[: 2 * min(ones, others)]] == [True, False] * min(ones, others)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_the_largest_integer_that_is_stated_has_none_beyond_it(dtype):
    """`Slice` states its end so: one more would be the least."""
    most = np.iinfo(dtype).max
    ends = Operand("ends", Tensor.of(np.array([most], dtype)))
    program = msgspec.structs.replace(call(2, 2), inputs=(*call(2, 2).inputs, ends))
    made = [x for row in near(program, {}) for x in row if isinstance(x, Instance)]
    held = {x.inputs[1].value.array().tolist()[0] for x in made if x.inputs[1].value.shape == (1,)}
    assert {1, 2} <= held and min(held) >= -most
