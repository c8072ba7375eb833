"""Numbers that stand for something else, the ends of integers, are told apart from their neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from opera.programs.program import Instance, Operand, Program
from opera.programs.values import Tensor
from opera.triage.conditions import literals
from opera.triage.conditions.circumstances import borne_out
from opera.triage.conditions.deciding import Decided
from opera.triage.shrink import smaller

INT32, INT64 = 2**31 - 1, 2**63 - 1
VALID = [[(x, (1,))] * 3 for x in ("int32", "int64")]


def cut(ends: int, dtype: str = "int64", step: int = -1) -> Instance:
    arrays = {
        "data": np.float32([1, 2]),
        "starts": np.array([2], dtype),
        "ends": np.array([ends], dtype),
        "steps": np.array([step], dtype),
    }
    inputs = tuple(Operand(name, Tensor.of(x)) for name, x in arrays.items())
    return Instance("onnx", "Slice", {}, inputs, ("y",), {"opset": {"": 13}})


def held(program: Program, name: str) -> list[Any]:
    value = next((x.value for x in program.inputs if x.name == name), None)
    return value.array().ravel().tolist() if isinstance(value, Tensor) and value.shape == (1,) else [0]


@pytest.mark.parametrize(
    ("wrong", "wanted"),
    [
        ({INT64}, "INT64_MAX in ends"),
        ({INT64, INT32}, "INT32_MAX or INT64_MAX in ends"),
    ],
)
def test_a_slice_that_is_wrong_of_an_end_of_integers_is_told_by_it(wrong: set[int], wanted: str) -> None:
    """ONNX Runtime takes INT32_MAX and INT64_MAX for "to the end", also of a slice that goes backwards."""

    def label(programs: Sequence[Program]) -> list[bool | None]:
        return [
            held(x, "ends")[0] in wrong and held(x, "steps")[0] < 0
            if [(y.dtype, y.shape) for y in smaller.leaves(x)[1:]] in VALID
            else None
            for x in programs
        ]

    told = Decided((), ("a number beyond int32 in an input", "a negative number in an input", "int64 inputs"))
    found = borne_out(label, cut(INT64), {"Slice": {}}, told)
    said = [*found.decided.besides, *found.circumstances]
    assert "a negative number in steps" in said and wanted in said and found.exact
    assert not any("beyond" in x or "in an input" in x for x in said)


def test_neighbours_of_an_end_are_asked_about_first_and_no_dtype_overflows() -> None:
    asked = [held(x, "ends")[0] for x in literals.beside(cut(INT64))]
    assert asked[0] == INT64 - 1 and INT32 in asked and INT64 + 1 not in asked
    narrow = [x.dtype for made in literals.beside(cut(INT64)) for x in smaller.leaves(made)]
    assert "int32" in narrow, "int64 may be but what holds the number"
    assert list(literals.beside(cut(3))) == []


def test_data_that_is_the_largest_of_its_dtype_is_no_such_number() -> None:
    data = Tensor.of(np.int64([INT64]))
    program = Instance("onnx", "Abs", {}, (Operand("x", data),), ("y",), {"opset": {"": 13}})
    assert list(literals.beside(program)) == [] and list(literals.features(program, [])) == []


def test_parameters_have_such_numbers_too() -> None:
    program = Instance("torch", "torch.Tensor.narrow", {"end": INT64}, (), ("y",), {})
    asked = [x.params["end"] for x in literals.beside(program)]
    assert asked[:2] == [INT64 - 1, INT64 + 1] and INT32 in asked
    [told, *_] = literals.features(program, [])
    assert told.says == "INT64_MAX in end" and told.holds(program)
    assert not any(map(told.holds, literals.beside(program)))
