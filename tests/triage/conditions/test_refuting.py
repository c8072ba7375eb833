"""What is told is put to the test by programs of which something wider or narrower says otherwise."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
import pytest

from opera.programs.program import Instance, Operand, Program
from opera.programs.values import Tensor
from opera.triage.conditions import refuting
from opera.triage.conditions.circumstances import Borne, borne_out
from opera.triage.conditions.deciding import Decided
from opera.triage.conditions.stated import Feature
from opera.triage.shrink import smaller

F32 = np.float32


def call(inputs: dict[str, Any], **params: Any) -> Instance:
    held = tuple(Operand(name, Tensor.of(np.asarray(x))) for name, x in inputs.items())
    return Instance("onnx", "Any", params, held, ("y",), {"opset": {"": 22}})


def borne(program: Instance, fails: Callable[[Any], bool | None], told: Decided, known: Any, **more: Any) -> Borne:
    def label(programs: Sequence[Program]) -> list[bool | None]:
        return [fails(x) if isinstance(x, Instance) else None for x in programs]

    return borne_out(label, program, {"Any": known}, told, **more)


def shapes(program: Program) -> list[tuple[int, ...]]:
    return [x.shape for x in smaller.leaves(program)]


def test_more_than_one_element_is_rivalled_by_each_axis() -> None:
    """Scores of several classes fail, not each matrix of several elements: two samples of one class are asked about."""

    def shows(x: Instance) -> bool | None:
        labels, scores = shapes(x)
        return scores[-1] > 1 if len(scores) == 2 and labels == scores[:1] else None

    found = borne(call({"target": np.int64([0]), "output": np.ones((1, 2), F32)}), shows, Decided(), {})
    assert (found.circumstances, found.exact) == (("the last axis of output longer than 1",), True)


def of_axis(x: Instance, fails: Callable[[int, int], bool]) -> bool | None:
    axis, rank = x.params.get("axis", 0), len(shapes(x)[0])
    return fails(axis, rank) if -rank <= axis < rank else None


def parts(x: Instance) -> bool | None:
    """Whether unequal parts are taken along an axis that is counted from the last; no program where they are no parts."""
    sizes: Any = x.params.get("split") or []
    axis, shape = x.params.get("axis", 0), shapes(x)[0]
    if not -len(shape) <= axis < len(shape) or len(sizes) != 2 or sum(sizes) != shape[axis]:
        return None
    return axis < 0 and sizes[0] != sizes[1]


AXIS = Decided(("axis=-1",))
TOLD: list[tuple[Any, Callable[[Instance], bool | None], Decided, Any, list[str]]] = [
    ({}, lambda x: of_axis(x, lambda axis, rank: axis % rank == rank - 1), AXIS, {"axis": 0}, ["axis naming the last axis"]),
    ({}, lambda x: of_axis(x, lambda axis, _: axis < 0), AXIS, {"axis": 0}, ["axis < 0"]),
    ({"split": [2, 4]}, parts, AXIS, {"axis": 0}, ["axis < 0", "unequal numbers in split"]),
    ({"k": 3}, lambda x: "k" in x.params if x.params.get("k", 3) == 3 else None, Decided(("k=3",)), {"k": None}, ["k given"]),
]  # fmt: skip


@pytest.mark.parametrize(("params", "fails", "told", "known", "wanted"), TOLD, ids=[" ".join(x[4]) for x in TOLD])
def test_what_is_told_of_a_parameter_is_no_narrower_than_it_need_be(params, fails, told, known, wanted) -> None:
    axis = {"axis": -1} if told is AXIS else {}
    found = borne(call({"x": np.ones((2, 6), F32)}, **params, **axis), fails, told, known)
    assert [*found.decided.parameters, *found.circumstances] == wanted and found.exact


def test_a_length_that_is_no_power_of_2_is_told() -> None:
    found = borne(call({"x": np.ones((1, 3), F32)}), lambda x: shapes(x)[0][-1:] not in ((), (0,), (1,), (2,), (4,), (8,)),
                  Decided(), {})  # fmt: skip
    assert (found.circumstances, found.exact) == (("the last axis of x no power of 2",), True)


def test_that_a_parameter_is_given_is_told_before_how_it_stands_to_a_length() -> None:
    """`repeat_interleave` fails whenever it is given the length of its output: no other is admitted."""

    def outputs(x: Program) -> list[Tensor] | None:
        [numbers] = (leaf for leaf in smaller.leaves(x) if isinstance(leaf, Tensor))
        repeats = numbers.numbers().ravel()
        fair = numbers.dtype == "int64" and (repeats >= 0).all() and repeats.sum() < 100
        return [Tensor.of(np.zeros(int(repeats.sum())))] if fair else None

    def shows(x: Instance) -> bool | None:
        made = outputs(x)
        given = x.params.get("output_size")
        return None if made is None or given not in (None, made[0].shape[0]) else given is not None

    program = msgspec.structs.replace(call({"input": np.int64([1, 2, 1])}, output_size=4), outputs=())
    found = borne(program, shows, Decided(), {}, outputs=outputs)
    assert (found.circumstances, found.exact) == (("output_size given",), True)


def least_of_int8(numbers: Any) -> Any:
    return (numbers == -128) & (numbers.dtype == "int8")


def lost_in_float32(numbers: Any) -> Any:
    return (numbers.astype("float32").astype("float64") != numbers) & (numbers.dtype.kind in "iu")


def whole(numbers: Any) -> Any:
    return np.full(numbers.shape, numbers.dtype.kind in "iu")


NUMBERS: list[tuple[Any, Callable[[Any], Any], list[str]]] = [
    (np.int8([-128, -127]), least_of_int8, ["int8 inputs", "the least number of its dtype in an input"]),
    (np.int32([16777217]), lost_in_float32, ["integer inputs", "a number that float32 does not hold in an input"]),
    (np.int32([5, 7]), whole, ["integer inputs"]),
]  # fmt: skip


@pytest.mark.parametrize(("array", "fails", "wanted"), NUMBERS, ids=[x[2][-1] for x in NUMBERS])
def test_where_a_dtype_is_told_its_numbers_are_varied(array, fails, wanted) -> None:
    """`Abs` of int8 is wrong of -128 alone, which other integers than int8 hold as well."""

    def shows(x: Instance) -> bool | None:
        [held] = smaller.leaves(x)
        plain = isinstance(held, Tensor) and held.dtype not in ("float16", "bfloat16")
        return bool(fails(held.numbers()).any()) if isinstance(held, Tensor) and plain else None

    found = borne(call({"x": array}), shows, Decided((), (wanted[0],)), {})
    assert [*found.decided.besides, *found.circumstances] == wanted and found.exact


def test_an_output_without_elements_is_told_before_what_its_inputs_are() -> None:
    """A range from 5 to 3 is empty, as is one from 3 to 3: no sign and no length decides."""

    def numbers(x: Program) -> list[float]:
        [held] = smaller.leaves(x)
        found = held.numbers().ravel().tolist() if isinstance(held, Tensor) and held.shape == (2,) else []
        return found if all(abs(y) < 1000 for y in found) else []

    def outputs(x: Program) -> list[Tensor] | None:
        ends = numbers(x)
        return [Tensor.of(np.arange(*ends))] if ends else None

    found = borne(call({"x": np.float32([5, 3])}), lambda x: made[0].shape == (0,) if (made := outputs(x)) else None,
                  Decided(), {}, outputs=outputs)  # fmt: skip
    assert (found.circumstances, found.exact) == (("an output without elements",), True)


def test_an_output_that_is_empty_for_another_reason_passes_where_a_parameter_decides() -> None:
    """ONNX Runtime says of a depth of 0 that it is negative; of no indices it has no complaint."""

    def outputs(x: Program) -> list[Tensor] | None:
        [held], depth = smaller.leaves(x), x.instances()[0].params.get("depth")
        return [Tensor.of(np.zeros((*held.shape, depth), "f4"))] if isinstance(depth, int) and depth >= 0 else None

    def fails(x: Program) -> bool | None:
        return x.instances()[0].params["depth"] == 0 if outputs(x) else None

    program = msgspec.structs.replace(call({"x": np.int64([1, 2])}), params={"depth": 0})
    found = borne(program, fails, Decided(), {}, outputs=outputs, loud=True)
    assert (found.circumstances, found.exact) == (("depth=0",), True)


def test_inputs_are_exchanged_so_that_limits_stand_the_other_way_round() -> None:
    """A range from 1 to 9 in steps of -2 is empty, as is one from 9 to 1 in steps of 2: it is no negative number."""

    def numbers(x: Program) -> list[float]:
        held = [leaf.numbers().ravel().tolist() for leaf in smaller.leaves(x) if isinstance(leaf, Tensor)]
        found = [y[0] for y in held if len(y) == 1 and abs(y[0]) < 1000]
        return found if len(found) == 3 and found[2] else []

    def outputs(x: Program) -> list[Tensor] | None:
        ends = numbers(x)
        return [Tensor.of(np.arange(*ends))] if ends else None

    program = call({"start": np.int32(1), "limit": np.int32(9), "delta": np.int32(-2)})
    found = borne(program, lambda x: made[0].shape == (0,) if (made := outputs(x)) else None,
                  Decided((), ("a negative number in an input",)), {}, outputs=outputs)  # fmt: skip
    assert (found.decided.besides, found.circumstances) == ((), ("an output without elements",))
    assert found.exact


def test_programs_are_yielded_of_which_rivals_say_otherwise_and_none_twice() -> None:
    program = call({"x": np.ones((1, 2), F32)})
    several = Feature("several", lambda x: math.prod(shapes(x)[0]) > 1)
    last = Feature("last", lambda x: shapes(x)[0][-1:] > (1,))
    asked: set[str] = set()
    made = list(refuting.programs([several], [[last]], refuting.varied([program], {}), asked))
    assert 0 < len(made) <= 2 * refuting.TRIALS
    assert all(several.holds(x) is not last.holds(x) for x in made) and asked == {x.id for x in made}
    more = [x.id for x in refuting.programs([several], [[last]], refuting.varied([program], {}), {*asked})]
    assert not asked & {*more}
    assert list(refuting.programs([several], [], refuting.varied([program], {}), set())) == []


def test_a_rival_is_what_leaves_a_thing_out_or_puts_another_in_its_place() -> None:
    one, two, three = (Feature(str(n), lambda x, n=n: len(shapes(x)[0]) >= n) for n in (1, 2, 3))  # type: ignore[misc]
    flat = call({"x": np.ones(2, F32)})
    assert [[x.says for x in of] for of in refuting.rivals([two], [one, two, three], [flat])] == [["3"]]
    assert [[x.says for x in of] for of in refuting.rivals([two], [one, three], [])] == [[], ["1"], ["3"]]
