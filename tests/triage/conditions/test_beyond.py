"""A number that the dtype of a tensor beside it does not hold, from either side; and which of several outputs is asked for."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
import pytest
from bearing import F32, borne, call, dtype

from opera.programs.values import Tensor
from opera.triage.conditions import varied
from opera.triage.conditions.deciding import Decided
from opera.triage.conditions.labels import Labelled


def beyond(x: Any, *, cut: bool) -> bool | None:
    other, ends = x.params.get("other"), varied.ends(dtype(x))
    if not isinstance(other, int | float) or isinstance(other, bool):
        return None
    whole = math.trunc(other) if cut and isinstance(other, float) and math.isfinite(other) else other
    return bool(ends) and not min(ends) <= whole <= max(ends)


@pytest.mark.parametrize("cut", [True, False])
def test_a_number_is_told_to_be_beyond_the_dtype_of_an_input_from_either_side(cut: bool) -> None:
    """TVM makes a constant of a number of Python's in the dtype of the tensor beside it, OpenVINO of an attribute, whatever
    integers it has."""
    program = call(np.uint8([1, 2]), other=-1 if cut else -0.5)
    told = Decided((), ("unsigned inputs",))
    found = borne(program, lambda x: beyond(x, cut=cut), told, loud=True)
    assert (found.decided.besides, found.circumstances) == ((), ("other beyond the dtype of x0",)) and found.exact


def test_an_integer_beyond_a_dtype_is_told_where_a_float_passes() -> None:
    program = call(np.uint8([1, 2]), other=-1)
    found = borne(
        program, lambda x: beyond(x, cut=True) and type(x.params["other"]) is int, Decided(("other=-1",)), loud=True
    )
    assert (found.decided.parameters, found.circumstances) == ((), ("an integer other beyond the dtype of x0",))
    assert found.exact


@pytest.mark.parametrize(("places", "says"), [((2,), "a third output"), ((1, 2), "a second or third output")])
def test_which_output_is_asked_for_is_told_by_its_place(places: tuple[int, ...], says: str) -> None:
    """TVM's `Unique` is right of its indices, and wrong of the inverse."""
    program = msgspec.structs.replace(call(F32([1, 2])), outputs=("y", "a", "b", "c"))
    found = borne(program, lambda x: any(any(x.outputs[y : y + 1]) for y in places), loud=True)
    assert found.circumstances == (says,) and found.exact


def test_what_overflows_is_right_by_a_wrong_formula_too() -> None:
    """OpenVINO's `cdist` takes no notice of `p`; of p=100 both the sum and what it computes are infinite."""

    def norm(x: Any) -> float:
        with np.errstate(over="ignore"):
            p = np.float32(x.params.get("p", 2.0))
            return float(np.float32((np.float32([3, 3]) ** p).sum()) ** (1 / p)) if p > 0 else 0.0

    def fails(x: Any) -> bool:
        return x.params.get("p", 2.0) != 2.0 and math.isfinite(norm(x))

    def outputs(x: Any) -> list[Tensor]:
        return [Tensor.of(np.float32([norm(x)]))]

    program, told = call(F32([3, 3]), p=1.0), Decided(("p=1.0",))
    found = borne(program, fails, told, {"p": 2.0}, seen=[Labelled(call(F32([3, 3]), p=100.0), False)], outputs=outputs)
    assert found.decided.parameters == ("p other than 2.0",) and found.exact
    loud = borne(
        program, fails, told, {"p": 2.0}, seen=[Labelled(call(F32([3, 3]), p=100.0), False)], outputs=outputs, loud=True
    )
    assert loud.decided.parameters != ("p other than 2.0",) or not loud.exact, "a crash does not hide so"
