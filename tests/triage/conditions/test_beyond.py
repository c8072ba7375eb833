"""A number that the dtype of a tensor beside it does not hold, from either side; and which of several outputs is asked for."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
import pytest
from bearing import F32, borne, call, dtype

from opera.triage.conditions import varied
from opera.triage.conditions.deciding import Decided


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
