"""What is told to decide is varied first, and told as widely and as narrowly as the answers say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from opera.programs.program import Instance, Operand, Program
from opera.programs.values import NO_DEFAULT, Tensor
from opera.triage.conditions import dtypes, varied
from opera.triage.conditions.circumstances import Borne, borne_out
from opera.triage.conditions.deciding import Decided
from opera.triage.conditions.removable import key, named
from opera.triage.shrink import smaller

F32 = np.float32


def call(*arrays: Any, **params: Any) -> Instance:
    held = tuple(Operand(f"x{n}", Tensor.of(np.asarray(x))) for n, x in enumerate(arrays))
    return Instance("onnx", "Any", params, held, ("y",), {"opset": {"": 22}})


def borne(program: Instance, fails: Callable[[Any], bool | None], told: Decided, known: Any, **more: Any) -> Borne:
    def label(programs: Sequence[Program]) -> list[bool | None]:
        return [fails(x) if isinstance(x, Instance) else None for x in programs]

    return borne_out(label, program, {"Any": known}, told, **more)


def shape(program: Program) -> tuple[int, ...]:
    return smaller.leaves(program)[0].shape


DATA = np.ones((2, 3), F32)
NUMBERS: list[tuple[Any, Any, Callable[[Any], bool], str]] = [
    (0.8, 1.0, lambda x: x % 1 > 0, "k that is no whole number"),
    (-0.5, 0.5, lambda x: x < 0, "k < 0"),
    (3.0, 1.0, lambda x: x != 1, "k other than 1.0"),
    (3, 1, lambda x: x > 1, "k > 1"),
    (5, 0, lambda x: x > 3, "k > 3"),
]


@pytest.mark.parametrize(("own", "default", "fails", "wanted"), NUMBERS, ids=[x[3] for x in NUMBERS])
def test_a_number_is_told_as_what_separates_those_that_fail(own, default, fails, wanted):
    program = call(DATA, k=own)
    found = borne(program, lambda x: fails(x.params.get("k", default)), Decided((f"k={own}",)), {"k": default})
    assert (found.decided.parameters, found.exact, found.despite) == ((wanted,), True, 0)
    assert key(wanted) == named(wanted) == "k"


def test_other_values_of_a_default_that_decides_are_asked_about():
    """`combinations` of its default, two of each, is not exported; of one or none it is."""
    program = call(DATA)
    asked = set[object]()

    def fails(x: Program) -> bool:
        asked.add(x.params.get("r"))
        return x.params.get("r", 2) > 1

    assert borne(program, fails, Decided(), {"r": 2}).circumstances == ("r > 1",)
    assert {0, 3} <= asked


def test_another_than_the_default_is_told_only_where_several_on_both_sides_of_it_fail():
    """Of a number of which no more than two are taken both are named."""
    program = call(DATA, k=3)
    found = borne(program, lambda x: x.params.get("k", 1) != 1 if x.params.get("k", 1) in (-1, 1, 3) else None,
                  Decided(("k=3",)), {"k": 1})  # fmt: skip
    assert found.decided.parameters == ("k=3 or -1",)


def test_a_flag_is_turned_and_is_no_number():
    made = list(
        varied.of_parameter(call(DATA, noop_with_empty_axes=1), "noop_with_empty_axes", {"noop_with_empty_axes": 0})
    )
    assert [x.params["noop_with_empty_axes"] for x in made] == [0]


def test_axes_that_pass_all_in_order_are_told_so():
    """Sizes are read as those of the first axes, so that all of them in order are right."""
    named_inputs = (Operand("X", Tensor.of(np.ones((1, 1, 4), F32))), Operand("sizes", Tensor.of(np.int64([6]))))
    program = Instance("onnx", "Any", {"axes": [2]}, named_inputs, ("y",), {"opset": {"": 22}})

    def shows(x: Instance) -> bool | None:
        axes = [y % len(shape(x)) for y in x.params.get("axes") or range(len(shape(x)))]
        sizes: Any = x.inputs[1].value
        return None if sizes.shape != (len(axes),) or len({*axes}) != len(axes) else axes != [*range(len(shape(x)))]

    found = borne(program, shows, Decided(("axes=[2]",)), {"axes": None}, loud=True)
    assert found.decided.parameters == ("axes other than all axes in order",) and found.exact


def test_pads_of_an_input_without_a_batch_are_told_whatever_its_rank():
    """Two pads of a matrix fail, and four of a rank 3 input: there is no batch axis."""

    def shows(x: Instance) -> bool | None:
        pads, rank = x.params.get("pad", ()), len(shape(x))
        return None if len(pads) % 2 or not pads or rank - len(pads) // 2 not in (1, 2) else rank == len(pads) // 2 + 1

    found = borne(call(DATA, pad=[1, 1]), shows, Decided((), ("an input of rank 2",)), {"pad": NO_DEFAULT})
    assert found.circumstances == ("two numbers in pad for each axis but one",) and found.exact


def test_what_hands_its_input_through_does_not_speak_against_what_is_told():
    """A mean over no axes is its input, whatever is wrong with the mean."""
    program = call(np.int32([[1, 2], [3, 4]]), keep=1)
    first: Any = lambda x: smaller.leaves(x)[0]  # noqa: E731

    def shows(x: Instance) -> bool:
        return first(x).dtype == "int32" and x.params.get("noop", 0) == 0

    def outputs(x: Instance) -> list[Any]:
        return [first(x)] if x.params.get("noop", 0) else [Tensor.of(np.zeros(1, first(x).dtype))]

    found = borne(program, shows, Decided((), ("int32 inputs",)), {"keep": 1, "noop": 0}, outputs=outputs)
    assert (found.decided.besides, found.circumstances, found.despite) == (("int32 inputs",), (), 0)


def test_what_is_left_out_is_given_a_length_where_its_name_says_that_it_is_a_size():
    made = varied.given(call(np.ones((1, 7), F32)), {"clip": None, "hidden_size": None, "alpha": None, "beta": None})
    assert {x.params["hidden_size"] for x in made if "hidden_size" in x.params} == {1, 7}


def test_dtypes_are_told_by_what_passes_where_that_is_less_and_by_their_width():
    asked = set(dtypes.ASKED)
    words = dtypes.told(asked - {"int64", "float64"}, {"int64", "float64", "bool"})
    assert words == "numeric inputs other than float64 and int64"
    assert dtypes.members(words) & asked == asked - {"int64", "float64"}
    assert dtypes.told({"int32", "uint8"}, {"int64", "float32"}) == dtypes.NARROW
    assert dtypes.told({"int32", "uint8"}, {"float32"}) == dtypes.INTEGER, "nobody asked of int64"
    assert dtypes.told({"float32", "int8"}, {"int64"}) == ""
