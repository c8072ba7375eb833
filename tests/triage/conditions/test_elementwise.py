"""How the numbers of two operands stand to each other at one place is told where neither of them alone tells what fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opera.programs.program import Instance, Operand, Program
from opera.programs.values import NO_DEFAULT, Tensor, Value
from opera.triage.conditions import elementwise, separating
from opera.triage.conditions.circumstances import borne_out
from opera.triage.conditions.deciding import Decided
from opera.triage.conditions.lengths import broadcast
from opera.triage.conditions.stated import Feature
from opera.triage.shrink import simpler

WHOLE = st.lists(st.integers(-9, 9), min_size=1, max_size=3)
Pairs = list[tuple[float, float]]


def call(a: Any, b: Any, /, **params: Any) -> Instance:
    fed = tuple(Operand(name, Tensor.of(np.asarray(x))) for name, x in (("a", a), ("b", b)) if x is not None)
    return Instance("torch", "Any", params, fed, ("y",), {})


def pairs(program: Program) -> Pairs | None:
    """Return the numbers of two operands that stand at one place, None where they are not two numeric tensors."""
    held = [simpler.numbers(x.value) for x in program.inputs if isinstance(x.value, Tensor)]
    if len(held) != 2:
        return None
    try:
        one, other = np.broadcast_arrays(*held)
    except ValueError:
        return None
    return [*zip(one.ravel().tolist(), other.ravel().tolist(), strict=True)]


def told(program: Instance, fails: Callable[[Program, Pairs], bool | None], decided: Decided) -> list[str]:
    def label(programs: Sequence[Program]) -> list[bool | None]:
        return [fails(x, found) if (found := pairs(x)) else None for x in programs]

    found = borne_out(label, program, {"Any": {}}, decided)
    assert found.exact
    return [*found.decided.besides, *found.circumstances]


@given(WHOLE, WHOLE.map(lambda x: x[:1]))
def test_what_is_told_of_two_operands_holds_at_some_place(one: list[int], other: list[int]) -> None:
    says = {x.says for x in elementwise.features(call(np.array(one), np.array(other)), {})}
    b = other[0]
    assert ("numbers of different signs in a and b" in says) is any(a * b < 0 for a in one)
    assert ("negative numbers in both a and b" in says) is any(a < 0 and b < 0 for a in one)
    assert ("equal numbers in a and b" in says) is any(a == b for a in one)
    assert ("a number in a that is no multiple of that in b" in says) is any(b != 0 and a % b != 0 for a in one)


@pytest.mark.parametrize("dtype", ["int64", "float32", "uint8"])
def test_both_signs_and_multiples_are_asked_about(dtype: str) -> None:
    made = [pairs(x) for x in elementwise.beside(call(np.ones(2, dtype), np.ones((2, 1), dtype)), {})]
    signs = {tuple(np.sign(x[0])) for x in made if x}
    assert signs == ({(1, 1)} if dtype == "uint8" else {(x, y) for x in (1, -1) for y in (1, -1)})
    assert {a % b == 0 for x in made if x for a, b in x} == {True, False}


def test_a_number_of_python_is_an_operand_beside_one_tensor() -> None:
    known: dict[str, Value] = {"b": NO_DEFAULT, "alpha": 1}
    program = call(np.array([-3]), None, b=2, alpha=1)
    assert "numbers of different signs in a and b" in {x.says for x in elementwise.features(program, known)}
    assert {x.params["b"] for x in elementwise.beside(program, known) if isinstance(x, Instance)} == {
        2,
        -2,
        7,
        -7,
        3,
        -3,
    }


def test_a_quotient_that_is_rounded_towards_zero() -> None:
    """`div` with `rounding_mode='floor'` on OpenVINO: -1 // 2 is 0, as no quotient of one sign and no exact one shows."""

    def fails(program: Program, found: Pairs) -> bool | None:
        kinds = {x.value.dtype for x in program.inputs if isinstance(x.value, Tensor)}
        whole = all("int" in x for x in kinds)
        return whole and any(b and a % b and a * b < 0 for a, b in found) if len(kinds) == 1 else None

    says = told(call(np.int64([1]), np.int64([-2])), fails, Decided((), ("a negative number in an input",)))
    assert "a number in a that is no multiple of that in b, and has the other sign" in says
    assert "a negative number in an input" not in says


def test_floats_whose_bits_are_compared_where_both_are_broadcast() -> None:
    """`less_equal` on MNN: of two different negative numbers, where both tensors are broadcast."""

    def fails(program: Program, found: Pairs) -> bool | None:
        shapes = [x.value.shape for x in program.inputs if isinstance(x.value, Tensor)]
        whole = np.broadcast_shapes(*shapes)
        return whole not in shapes and any(a < 0 and b < 0 and a != b for a, b in found)

    says = told(call(np.float32([[1], [-4]]), np.float32([-5, 1])), fails, Decided())
    assert says == ["unequal negative numbers in a and b", "a and b broadcast to a larger shape"]


def test_several_that_are_broadcast_are_told_each_and_together() -> None:
    says = [x.says for x in broadcast(call(np.ones((2, 1)), np.ones(3)))]
    assert says == [f"{x} broadcast to a larger shape" for x in ("a", "b", "a and b")]


def test_three_things_separate_what_no_two_do_where_several_lack_each() -> None:
    """Of each three no program that passes has all; a dtype may be lacked by one."""

    def has(name: str, says: str = "") -> Feature:
        return Feature(says or name, lambda x: name in x.operator)

    passing = [Instance("onnx", x, {}, (), ("y",), {}) for x in ("ab", "ab", "ac", "ac", "bc", "bc", "abd", "acd")]
    candidates = [has(x) for x in "dabc"]
    assert separating.one(candidates, passing) == separating.pairs(candidates, passing) == []
    assert [[x.says for x in of] for of in separating.triples(candidates, passing)] == [["a", "b", "c"]]
    assert not separating.triples(candidates, passing[2:]), "one program lacks c alone, but for d"
    typed = [has("c", "int8 inputs"), has("a"), has("b")]
    assert len(separating.triples(typed, passing[1:6])) == 1
    assert not separating.triples(candidates, [])


@pytest.mark.parametrize("dtype", ["int2", "uint2"])
def test_what_no_operand_can_hold_is_not_asked_about(dtype: str) -> None:
    held = simpler.numbered(np.array([1, 0]), dtype)
    program = Instance("onnx", "Any", {}, (Operand("a", held), Operand("b", held)), ("y",), {})
    assert not [*elementwise.beside(program, {})] and not [*elementwise.features(program, {})]
    truth = call(np.array([1]), None, b=2)
    [same] = [
        x for x in elementwise.features(call(np.array([2]), None, b=2), {"b": NO_DEFAULT}) if x.says.startswith("equal")
    ]
    assert not same.holds(truth) and not same.holds(call(np.array([1]), None, b=True)), "a truth value is no number"
    huge = call(np.array([1]), None, b=2**70)
    assert not [*elementwise.features(huge, {"b": NO_DEFAULT})]
