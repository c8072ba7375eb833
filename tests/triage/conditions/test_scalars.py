"""How two or three numbers stand to each other is told where none of them alone tells what fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opera.programs.program import Instance, Operand, Program
from opera.programs.values import Tensor
from opera.triage.conditions import scalars
from opera.triage.conditions.circumstances import borne_out
from opera.triage.conditions.deciding import Decided
from opera.triage.shrink import simpler

NUMBERS = st.integers(-4, 4)


def ranged(*numbers: float, dtype: str = "int64", **params: Any) -> Instance:
    names = ("start", "limit", "delta")[: len(numbers)]
    fed = tuple(Operand(x, Tensor.of(np.array(y, dtype))) for x, y in zip(names, numbers, strict=True))
    return Instance("onnx", "Any", params, fed, ("y",), {"opset": {"": 22}})


def read(program: Instance) -> list[float]:
    """Return the numbers of a call, none where one has an axis: no library takes such."""
    held = [simpler.numbers(x.value) for x in program.inputs if isinstance(x.value, Tensor)]
    return [float(x) for x in held] if all(x.shape == () for x in held) else []


def told(program: Instance, fails: Callable[[Instance], bool]) -> list[str]:
    def label(programs: Sequence[Program]) -> list[bool | None]:
        return [fails(x) if isinstance(x, Instance) and len(read(x)) == 3 else None for x in programs]

    found = borne_out(label, program, {"Any": {}}, Decided())
    return [*found.decided.parameters, *found.decided.besides, *found.circumstances]


@given(NUMBERS, NUMBERS, NUMBERS)
def test_what_is_told_of_three_numbers_holds_of_them(start: int, limit: int, delta: int) -> None:
    says = {x.says for x in scalars.features(ranged(start, limit, delta), {})}
    assert ("(limit - start) * delta < 0" in says) is ((limit - start) * delta < 0)
    assert ("(delta - start) * limit > 0" in says) is ((delta - start) * limit > 0)
    assert ("start > limit" in says) is (start > limit) and ("limit < delta" in says) is (limit < delta)
    assert not any(x.startswith("(") for x in {y.says for y in scalars.features(ranged(start, limit), {})})


def test_every_order_and_sign_of_three_numbers_is_asked_about() -> None:
    def sign(x: float) -> int:
        return (x > 0) - (x < 0)

    made = [read(x) for x in scalars.beside(ranged(1, 2, 3), {}) if isinstance(x, Instance)]
    assert {(sign(b - a), sign(c)) for a, b, c in made} >= {(x, y) for x in (1, -1) for y in (1, -1)}
    assert all(min(read(x)) >= 0 for x in scalars.beside(ranged(1, 2, 3, dtype="uint8"), {}) if isinstance(x, Instance))


@pytest.mark.parametrize(
    ("program", "names"),
    [
        (ranged(1, 2), ["start", "limit"]),
        (ranged(1), []),
        (ranged(1, bound=2.0), ["start", "bound"]),
        (ranged(1, 2, 3, bound=2.0), []),  # of four numbers there are too many relations
        (ranged(1, axis=1, keepdims=True, mode="x"), []),
    ],
)
def test_axes_and_flags_are_no_such_numbers(program: Instance, names: list[str]) -> None:
    assert scalars.names(program, {}) == names
    assert bool([*scalars.beside(program, {})]) is bool(names)


def test_parameters_count_as_inputs_do() -> None:
    program = Instance("torch", "Any", {"min": 3, "max": 1}, (), (), {})
    assert [x.says for x in scalars.features(program, {})] == ["min > max", "min not below max"]
    assert {(x.params["min"], x.params["max"]) for x in scalars.beside(program, {}) if isinstance(x, Instance)} >= {
        (2, 2),
        (1, 3),
    }


def test_an_empty_range_is_told_by_all_three_numbers() -> None:
    """OpenVINO takes the absolute value of what is to be the length."""

    def fails(x: Instance) -> bool:
        start, limit, delta = read(x)
        return delta != 0 and (limit - start) / delta < 0

    assert told(ranged(1, 9, -2), fails) == ["(limit - start) * delta < 0"]


@pytest.mark.parametrize("high", [1.5, 1.0])
@pytest.mark.parametrize(
    ("fails", "says"),
    [
        (lambda low, high: low == high, "low equal to high"),
        (lambda low, high: low >= high, "low not below high"),
        (lambda low, high: (low, high) == (1, 1), "low=1.0"),
    ],
)
def test_two_numbers_that_decide_may_do_so_by_how_they_stand_to_each_other(
    fails: Callable[[Any, Any], bool], says: str, high: float
) -> None:
    given = {name: 1.0 for name in ("low", "high") if name == "low" or high != 1.0}
    program = Instance("onnx", "Any", given, (), ("y",), {"opset": {"": 22}})
    defaults = {"Any": {"low": 0.0, "high": high}}

    def label(programs: Sequence[Program]) -> list[bool | None]:
        calls = [x for x in programs if isinstance(x, Instance)]
        return [fails(*(x.params.get(name, defaults["Any"][name]) for name in ("low", "high"))) for x in calls]

    decide = [x for x in ("low=1.0", "high=1.0") if x != f"high={high}"]
    found = borne_out(label, program, defaults, Decided(tuple(decide)), loud=True)
    assert [*found.decided.parameters, *found.circumstances][0] == says


def test_what_one_number_tells_is_told_of_it() -> None:
    assert not any("(" in x for x in told(ranged(1, 9, -2), lambda x: read(x)[2] < 0))


def test_a_number_that_decides_by_itself_is_not_told_by_another_that_happens_to_stand_so() -> None:
    """ONNX Runtime refuses LRN of `beta` 0 and below, whatever `alpha`: "beta < alpha" is so of these, and of others."""
    program = Instance("onnx", "Any", {"beta": 0.0}, (), ("y",), {"opset": {"": 22}})
    defaults = {"Any": {"alpha": 1e-4, "beta": 0.75}}

    def label(programs: Sequence[Program]) -> list[bool | None]:
        return [bool(x.params.get("beta", 0.75) <= 0) for x in programs if isinstance(x, Instance)]

    found = borne_out(label, program, defaults, Decided(("beta=0.0",)), loud=True)
    assert (found.decided.parameters, found.circumstances, found.exact) == (("beta <= 0",), (), True)


def test_who_takes_0_for_left_out_does_so_of_each_parameter() -> None:
    """`HardSigmoid` on OpenVINO computes with its defaults where alpha or beta is 0; what else is 0 has no other default."""
    known: dict[str, Any] = {"alpha": 0.2, "beta": 0.5, "gamma": 0.0, "axis": 1}
    program = Instance("onnx", "Any", {"beta": 0.0}, (Operand("X", Tensor.of(np.float32([1, 2]))),), ("y",), {})
    assert [x.params for x in scalars.at_zero(program, known)] == [{"beta": 0.5, "alpha": 0.0}]

    def told(zero: Sequence[str]) -> tuple[str, ...]:
        def label(programs: Sequence[Program]) -> list[bool | None]:
            return [any(x.params.get(y) == 0 for y in zero) if isinstance(x, Instance) else None for x in programs]

        found = borne_out(label, program, {"Any": known}, Decided(("beta=0.0",)))
        assert found.exact
        return (*found.decided.parameters, *found.circumstances)

    assert told(["alpha", "beta"]) == ("0 for alpha or beta",)
    assert told(["beta"]) == ("beta=0.0",)
