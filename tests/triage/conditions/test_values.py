"""What is given may decide by its value alone: the default given passes. Channels are told as such."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opera.libraries import bounds
from opera.programs.program import Instance, Operand, Program
from opera.programs.values import NO_DEFAULT, Tensor
from opera.programs.verdicts import CRASH, PASS, Outcome
from opera.triage.conditions import arguments, circumstances, removable, varied, wider
from opera.triage.conditions.circumstances import Borne, borne_out
from opera.triage.conditions.deciding import Decided
from opera.triage.conditions.features import features
from opera.triage.conditions.labels import Labelled
from opera.triage.conditions.lengths import is_longer
from opera.triage.sentence import together
from opera.triage.shrink import simpler, smaller

F32 = np.float32


def call(*arrays: Any, **params: Any) -> Instance:
    given = tuple(Operand(f"x{n}", Tensor.of(np.asarray(x))) for n, x in enumerate(arrays))
    return Instance("onnx", "Any", params, given, ("y",), {"opset": {"": 22}})


def borne(program: Instance, shows: Callable[[Instance], bool | None], told: Decided, known: Any, **more: Any) -> Borne:
    def label(programs: Sequence[Program]) -> list[bool | None]:
        return [shows(x) for x in programs if isinstance(x, Instance)]

    return borne_out(label, program, {"Any": known}, told, **more)


def second(program: Program) -> Any:
    found = smaller.leaves(program)[1:]
    return simpler.numbers(found[0]).ravel().tolist() if found and isinstance(found[0], Tensor) else []


def test_a_list_that_is_given_and_passes_where_it_states_the_default_decides_by_its_value():
    program, told = call(np.ones((2, 2), F32), steps=[2, 2]), Decided(("steps=[2, 2]",))
    fails: Any = lambda x: bool((np.ravel(x.params.get("steps", [1])) != 1).any())  # noqa: E731
    moot: Any = lambda x: not fails(x)  # noqa: E731
    found = borne(program, fails, told, {"steps": NO_DEFAULT}, moot=moot, loud=True)
    assert found.decided.parameters == ("steps other than [1, 1]",) and found.exact


def test_a_list_that_may_not_be_given_at_all_is_told_as_that():
    program, told = call(np.ones((2, 2), F32), steps=[2, 2]), Decided(("steps=[2, 2]",))
    found = borne(
        program,
        lambda x: "steps" in x.params,
        told,
        {"steps": NO_DEFAULT},
        moot=lambda x: x.params.get("steps", [1, 1]) == [1, 1],
        loud=True,
    )
    assert found.decided.parameters == ("steps given",)


def test_a_dtype_that_passes_where_it_is_that_of_the_input_is_told_against_it():
    """`EyeLike` of int32 to float32 is refused; of float32 it is not."""
    program, told = call(np.ones((2, 2), np.int32), dtype=1), Decided(("dtype=1",))
    own: Any = lambda x: x.params.get("dtype", 1) == 1 and smaller.leaves(x)[0].dtype == "float32"  # noqa: E731

    def shows(x: Instance) -> bool:
        return "dtype" in x.params and not own(x)

    found = borne(program, shows, told, {"dtype": NO_DEFAULT}, moot=own, loud=True)
    assert found.decided.parameters == ("dtype other than that of the input",) and found.exact


def test_an_input_that_passes_as_zeros_decides_by_its_value_where_that_is_what_is_left_out():
    program, told = call(np.ones(3, F32), F32([2.0])), Decided((), ("input x1",))

    def shows(x: Instance) -> bool:
        return any(second(x))

    found = borne(program, shows, told, {}, moot=lambda x: not shows(x), loud=True)
    assert found.decided.besides == ("input x1 other than 0",) and found.exact
    all_moot = borne(
        program, shows, told, {}, moot=lambda _: True, loud=True
    )  # a reference that rounds the number to 0
    assert all_moot.decided.besides == ("input x1 other than 0",) and all_moot.exact
    of_outputs = borne(program, shows, told, {}, moot=lambda x: not shows(x))  # what is not read is right then
    assert of_outputs.decided.besides == ("input x1",)


def test_that_an_integer_is_odd_is_told_where_several_odd_ones_fail_and_even_ones_pass():
    """A tie is rounded after an odd zero point was added."""
    program, told = call(np.ones(3, F32), np.uint16([1])), Decided((), ("input x1",))

    def shows(x: Program) -> bool | None:
        return bool(second(x)[0] % 2) if [type(y) for y in second(x)] == [int] else None if second(x) else False

    found = borne(program, shows, told, {}, moot=lambda x: second(x) == [0])
    assert (found.decided.besides, found.circumstances, found.exact) == (("input x1",), ("an odd x1",), True)
    assert together([*found.decided.besides, *found.circumstances]) == ["an odd x1"]
    one = borne(program, lambda x: second(x) == [1], told, {}, moot=lambda x: second(x) == [0])
    assert "an odd x1" not in one.circumstances
    sizes = call(np.ones(3, F32), np.int64([1]))
    found = borne(sizes, lambda x: bool(second(x)) and second(x)[0] % 2 == 1, told, {}, moot=lambda x: second(x) == [0])
    assert "an odd x1" not in found.circumstances


def test_what_is_left_out_is_of_no_other_dtype():
    """An optional input of integers decides by being there, and not by being one of integers."""
    program, without, other = call(F32([1]), np.int64([1])), call(F32([1])), call(F32([1]), F32([1]))
    [kind] = [x for x in features(program, {}) if x.says == "an integer x1"]
    assert [kind.holds(x) for x in (program, without, other)] == [True, True, False]


@given(st.lists(st.integers(1, 3), max_size=3), st.sampled_from(["float32", "uint8", "int64", "bool"]))
def test_an_input_is_tried_with_other_numbers_of_its_shape_and_dtype(sizes, dtype):
    program = call(np.ones(2, F32), np.ones(sizes, dtype))
    made = list(varied.of_input(program, "x1"))
    assert len(made) >= (0 if dtype == "bool" else 3) and bool(made) is (dtype != "bool" and 0 not in sizes)
    assert all(smaller.leaves(x)[1].dtype == dtype for x in made)
    if not smaller.states(smaller.leaves(program)[1]):
        assert all(smaller.leaves(x)[1].shape == tuple(sizes) for x in made)
    assert all(smaller.leaves(x)[0] == smaller.leaves(program)[0] for x in made)


@pytest.mark.parametrize(
    ("layout", "at"), [({"data_format": "channels_first"}, 1), ({"data_format": "channels_last"}, 2), ({}, 2)]
)
def test_an_axis_of_channels_is_told_as_such_by_the_layout(layout, at):
    shape = [1, 1, 1]
    shape[at] = 2
    program = call(np.ones(shape, F32), filters=3, **layout)
    told = {x.says: x for x in features(program, {"Any": {"filters": NO_DEFAULT, "data_format": None}})}
    assert told["more than one input channel"].holds(program) and is_longer("more than one input channel")
    assert not told["more than one input channel"].holds(call(np.ones((1, 1, 1), F32), **layout))
    assert told["not as many input channels as filters"].holds(program)
    assert not any(f"axis {at}" in x or "last axis of x0 longer" in x for x in told)


def test_an_axis_of_channels_is_told_as_such_by_documentation_and_else_as_an_axis():
    program = call(np.ones((1, 2), F32))
    said = bounds.read({"x0": "Input; has size (N x C x H x W), where C is the number of channels.", "s": "A scale."})
    assert {name: x.channels for name, x in said.items()} == {"x0": 1}
    assert "more than one input channel" in [x.says for x in features(program, {}, channels={"x0": 1})]
    plain = [x.says for x in features(program, {})]
    assert "axis 1 of x0 longer than 1" in plain and "more than one input channel" not in plain


def test_the_axis_that_a_parameter_names_by_default_is_told_by_that_name():
    """`normalize` divides along `dim`, and nothing is to be spread where that has length 1."""
    known = {"dim": 1}

    def shows(x: Instance) -> bool | None:
        dim, sizes = x.params.get("dim", 1), smaller.leaves(x)[0].shape
        return sizes[dim] > 1 if type(dim) is int and -len(sizes) <= dim < len(sizes) else None

    found = borne(call(np.ones((1, 2, 2), F32)), shows, Decided(), known, loud=True)
    assert (found.circumstances, found.exact) == (("the axis that dim names longer than 1",), True)


def test_a_vector_has_no_channels_where_none_are_told():
    assert not any("channel" in x.says for x in features(call(np.ones(2, F32)), {}))


def test_what_can_be_left_out_together_alone_is_told_where_programs_without_it_pass():
    """Blocks need a scale for each: neither can be changed alone."""
    program, known = call(np.ones((1, 4), F32), np.ones((1, 2), F32), block_size=2), {"block_size": 0, "axis": 1}

    def shows(x: Instance) -> bool | None:
        blocks = [y.shape for y in smaller.leaves(x)]
        if x.params.get("block_size", 0) < 0:
            return None
        if x.params.get("block_size", 0):
            return True if blocks[1:] == [(*blocks[0][:-1], blocks[0][-1:][0] // 2)] else None
        return False if blocks[1:] in ([()], [(1,)]) else None

    found = borne(program, shows, Decided(), known)
    assert (found.circumstances, found.exact) == (("block_size > 0",), True)


def test_more_than_two_things_are_told_where_each_parameter_passes_with_another_value():
    """Numbers beyond a narrow dtype do not saturate: of another dtype they do, and without the flag they need not."""
    program, known = call(F32([-1e6]), to=17), {"saturate": 1, "to": NO_DEFAULT}

    def shows(x: Instance) -> bool | None:
        big = bool((np.abs(simpler.numbers(smaller.leaves(x)[0]).astype("float64")) > 448).any())
        return None if "to" not in x.params else x.params["to"] == 17 and x.params.get("saturate", 1) != 0 and big

    other = Labelled(msgspec.structs.replace(program, params={"to": 10}), False)
    made: Any = lambda x: [Tensor("float8_e4m3fn", (1,), b"1")]  # noqa: E731
    found = borne(program, shows, Decided(), known, seen=[other], outputs=made)
    assert found.circumstances == ("a number beyond float8_e4m3fn in an input", "to=17", "saturate=1")
    assert found.exact
    found = borne(program, lambda x: shows(x) or x.params.get("to") == 10, Decided(), known, seen=[other], outputs=made)
    assert "to=17" not in found.circumstances


def test_the_simplest_call_has_no_parameters_and_one_element_beside_its_first_input():
    program = call(np.ones((2, 4), F32), np.ones(2, F32), block_size=2, axis=0, to=1)
    made = [
        x
        for x in arguments.simplest(program, {"block_size": 0, "axis": 1, "to": NO_DEFAULT})
        if isinstance(x, Instance)
    ]
    assert {tuple(x.params) for x in made} == {("to",), ()}
    assert {smaller.leaves(x)[1].shape for x in made} == {(2,), (), (1,), (4,)}
    assert {smaller.leaves(x)[0].shape for x in made} == {(2, 4)}
    assert {x.id for x in arguments.simplest(call(), {}) if x is not None} == {call().id}


def test_a_value_of_an_input_that_is_told_is_of_that_input_and_no_parameter():
    assert removable.key("input B other than 0") == "input B" and removable.is_of("input B", "input B other than 0")
    assert (
        removable.named("input B other than 0") == ""
        and removable.named("dtype other than that of the input") == "dtype"
    )


def test_only_calls_of_the_same_operator_tell_which_inputs_may_be_left_out():
    """`clamp` has no `other`, though a passing `add` inside it has."""
    program = call(np.ones(2, F32), low=None, high=1)
    inner = Instance("onnx", "Other", {}, (Operand("other", Tensor.of(np.ones(2, F32))),), ("y",), {})
    ask: Any = SimpleNamespace(
        look=lambda programs: [Outcome(CRASH if x.params.get("low") is None else PASS, "load") for x in programs],
        label=lambda programs: [x.params.get("low") is None for x in programs],
        seen=lambda: [Labelled(inner, False)],
        apart=lambda *_: False,
        reference=lambda _: None,
        otherwise=lambda _: False,
        gets_further=lambda _: False,
        go_on=lambda: None,
        corpus=(),
        bounds={},
    )
    known = {"Any": {"low": None, "high": None}}
    found = circumstances.of(ask, program, known, Decided(("low left out",)))
    assert found.decided.parameters == ("low left out",)


@pytest.mark.parametrize(
    ("fails", "wanted"),
    [
        (lambda x: x > 1, "beta > 1"),
        (lambda x: x != 1, "beta other than 1"),
        (lambda x: x not in (0, 1), "beta other than 1"),
    ],
)
@pytest.mark.parametrize("value", [2, 2.0])
def test_a_number_that_decides_is_asked_on_both_sides_of_its_default(fails, wanted, value):
    program = call(F32([[1, 2]]), beta=value)
    found = borne(program, lambda x: fails(x.params.get("beta", 1)), Decided((f"beta={value}",)), {"beta": 1})
    assert found.decided.parameters == (wanted,)


@given(st.integers(-3, 3) | st.floats(-3, 3, width=16), st.integers(-2, 2))
def test_other_numbers_are_of_the_same_type_of_both_signs_and_on_both_sides_of_the_default(value, default):
    made: Any = varied.numbers(value, default)
    assert all(type(x) is type(value) and x != value for x in made) and len(set(made)) == len(made)
    assert {x < 0 for x in (*made, value)} == {True, False} and {x < default for x in (*made, value)} == {True, False}
    assert isinstance(value, int) or any(x % 1 for x in made)


@given(st.lists(st.integers(0, 2), max_size=3, unique=True), st.booleans())
def test_other_lists_are_longer_and_shorter_in_another_order_and_none(value, axes):
    made = varied.lists(value, 3, axes=axes)
    assert value not in made and len({tuple(x) for x in made}) == len(made)
    assert not value or {len(value) - 1, 0} <= set(map(len, made))
    assert len(value) == 3 or any(len(x) == len(value) + 1 for x in made)
    assert not axes or value == [0, 1, 2] or [0, 1, 2] in made


def test_values_that_read_alike_are_told_once() -> None:
    ones = [Tensor.of(np.full(1, x, np.float16)) for x in (1, 2)]
    assert wider._either(ones) == "float16[1]" and wider._either([1, 2, 3]) == "1, 2 or 3"


def test_an_operand_that_is_called_input_may_be_no_constant() -> None:
    """TVM compiles ConstantOfShape of a shape that the model holds alone: it was taken for "input" that is given."""
    given = (Operand("input", Tensor.of(np.int64([1, 2]))),)
    program = Instance("onnx", "ConstantOfShape", {}, given, ("output",), {"opset": {"": 9}})
    found = borne_out(lambda x: [True] * len(x), program, {}, Decided((), ("input is no constant",)), loud=True)
    assert found.decided.besides == ("input is no constant",)
