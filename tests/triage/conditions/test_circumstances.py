"""What near programs contradict is not told, and what they have in common is."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
import pytest
from bearing import F32, NOTHING, ONE, borne, call, dtype, listed, number, shape
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from opera.programs.program import Argument, Call, Graph, Instance, Operand, Program
from opera.programs.values import NO_DEFAULT, Tensor
from opera.programs.verdicts import Outcome
from opera.triage.conditions import dtypes, features, removable
from opera.triage.conditions.circumstances import Borne, Labelled, borne_out
from opera.triage.conditions.deciding import Decided
from opera.triage.conditions.learner import Learner, renumbered
from opera.triage.reduction import Reduction
from opera.triage.reproducers.choice import Choice
from opera.triage.shrink import smaller
from opera.triage.shrink.minimise import Spent


def lacks(program: Instance, *names: str) -> bool:
    given = {x.name for x in program.inputs}
    return any(x not in given and program.params.get(x) is None for x in names)


def first_axis(x: Instance) -> bool | None:
    axis, rank = number(x, "axis"), len(shape(x))
    return axis % rank == 0 if rank and -rank <= axis < rank else None


def strided(x: Instance) -> bool | None:
    found = x.params.get("strides", [1])
    return found[0] > 1 if isinstance(found, list | tuple) and len(found) == 1 else None


BOUNDS = {"min": None, "max": None}
ZERO = {"axes": [0]}
AFFINE = {"weight": None, "bias": None}
KEPT = [
    (call(np.ones((1, 2), F32), multiplier=6), lambda x: number(x) > 1, ("multiplier=6",), ONE, ["multiplier > 1"]),
    (call(np.ones(2, F32), axes=[2]), lambda x: "axes" in x.params, ("axes=[2]",), {"axes": None}, ["axes given"]),
    (call(np.ones(2, F32), axes=[2]), lambda x: number(x, "axes", [0]) != [0], ("axes=[2]",), ZERO, ["axes other than [0]"]),
    (call(np.ones(2, F32), strides=[3]), strided, ("strides=[3]",), {"strides": [1]}, ["strides > 1"]),
    (call(np.ones(2, F32), size=6), lambda x: number(x, "size") == 6, ("size=6",), {"size": 1}, ["size=6"]),
    (call(np.ones(2, F32), mode="a"), lambda x: number(x, "mode") == "a", ("mode='a'",), {"mode": "b"}, ["mode='a'"]),
    (
        call(np.int64([1]), min=None, max=1),
        lambda x: lacks(x, "min", "max"),
        ("min left out",),
        BOUNDS,
        ["min or max left out"],
    ),
    (call(np.ones((2, 1), "float64")), lambda x: dtype(x) == "float64", (), {}, ["float64 inputs"]),
    (call(np.ones((2, 1), "float64")), lambda x: dtype(x) in ("float16", "float64"), (), {}, ["float16 or float64 inputs"]),
    (call(np.ones((2, 1), "float64")), lambda x: dtype(x) != "float32", (), {}, ["non-float32 inputs"]),
    (call(np.ones((2, 1), "float64")), lambda x: True, (), {}, []),
]  # fmt: skip


@pytest.mark.parametrize(
    ("program", "fails", "parameters", "defaults", "wanted"), KEPT, ids=[" ".join(x[4]) or "-" for x in KEPT]
)
def test_what_decides_is_told_as_widely_as_near_programs_fail(program, fails, parameters, defaults, wanted):
    told = Decided(parameters, () if parameters else ("float64 inputs",))
    found = borne(program, fails, told, defaults)
    assert [*found.decided.parameters, *found.decided.besides] == wanted
    assert found.exact


@pytest.mark.parametrize(
    "says", ["an empty input", "an input of rank 3", "length 1 of axis 1", "equal elements in an input"]
)
def test_nothing_is_told_of_forms_where_an_ordinary_input_fails_alike(says):
    program = call(np.ones((0, 1, 2), F32))
    found = borne(program, lambda x: True, Decided((), (says,)))
    assert found == Borne(Decided(), (), found.failing, 0, True, 0, usual=True)
    assert found.failing > 20


def differ(x: Instance) -> bool | None:
    one, other = shape(x), shape(x, 1)
    return one[-2] != other[-2] if min(len(one), len(other)) > 1 else None


def not_below(x: Instance) -> bool:
    return number(x, "padding", 0) >= number(x, "stride", 1)


def several(x: Instance) -> bool:
    return math.prod(shape(x, 1)) > 1


def other_filters(x: Instance) -> bool | None:
    if "filters" not in x.params:
        return None
    return number(x, "filters") != shape(x)[-1] if shape(x) else False


def floats(x: Program) -> Any:
    leaf = smaller.leaves(x)[0]
    return leaf.numbers().astype("float64") if isinstance(leaf, Tensor) else np.ones(1)


NEEDED = {"filters": NO_DEFAULT}
SQUARES = np.ones((2, 2), F32), np.ones((2, 2), F32)
MORE: list[tuple[Instance, Callable[[Instance], bool | None], Any, list[str]]] = [
    (call(np.ones(2, F32), np.int64(1)), lambda x: len(shape(x)) == 1, {}, ["a 1-d input"]),
    (call(np.ones((1, 2, 2), F32)), lambda x: len(shape(x)) == 3, {}, ["an input of rank 3"]),
    (call(np.ones((1, 2, 2, 2), F32)), lambda x: len(shape(x)) > 3, {}, ["an input of rank 4 or more"]),
    (listed(np.ones((1, 1, 1), F32)), lambda x: lacks(x, *AFFINE), AFFINE, ["weight or bias left out"]),
    (call(np.ones((1, 1), F32), axis=-2), first_axis, {"axis": -1}, ["axis naming the first axis"]),
    (call(np.ones((1, 2), F32), multiplier=2), lambda x: shape(x)[-1:] > (1,), {}, ["the last axis of x0 longer than 1"]),
    (call(np.ones((2, 3), F32)), lambda x: "float" in dtype(x), {}, ["floating-point inputs"]),
    (call(np.int64([1, 2]), F32(4)), lambda x: "float" in smaller.leaves(x)[1].dtype, {}, ["a floating-point x1"]),
    (call(np.ones((2, 3), F32)), lambda x: True, {}, []),
    (call(*SQUARES), lambda x: {len(shape(x)), len(shape(x, 1))} == {2}, {}, ["both inputs of rank 2"]),
    (call(np.ones((4, 1), F32), np.ones((1, 2), F32)), several, {}, ["more than one element in x1"]),
    (call(np.ones((1, 1), F32), np.ones((2, 1), F32)), differ, {}, ["the last axis but one of x0 not as long as that of x1"]),
    (call(np.ones((1, 1), F32), padding=2, stride=2), not_below, {"padding": 0, "stride": 1}, ["padding not below stride"]),
    (call(np.ones((1, 3), F32), filters=2), other_filters, NEEDED, ["filters not the length of the last axis of x0"]),
    (call(np.ones((2, 3), F32)), lambda x: dtype(x) in ("float32", "float64"), {}, ["float32 or float64 inputs"]),
    (call(F32([-1, 2])), lambda x: bool((floats(x) < 0).any()), {}, ["a negative number in an input"]),
]  # fmt: skip


def outgrown(x: Instance) -> bool | None:
    """Whether an axis other than `axis` is longer in the data than in the indices; no program where one is shorter."""
    data, indices, axis = shape(x), shape(x, 1), number(x, "axis", 0)
    if (
        len(data) != len(indices)
        or not -len(data) <= axis < len(data)
        or any(a < b for a, b in zip(data, indices, strict=True))
    ):
        return None
    return any(a > b for n, (a, b) in enumerate(zip(data, indices, strict=True)) if n != axis % len(data))


@pytest.mark.parametrize("sizes", [((2, 2), (1, 1)), ((2, 2, 2), (1, 2, 1)), ((3, 2), (2, 1))])
def test_an_axis_longer_than_that_of_another_tensor_is_told_whichever_it_is(sizes):
    """ScatterElements of fewer indices than the data is long along an axis that is not scattered."""
    program = call(*(np.ones(x, F32) for x in sizes))
    found = borne(program, outgrown, defaults={"axis": 0})
    assert (found.circumstances, found.exact) == (("an axis other than axis of x0 longer than that of x1",), True)


def test_a_constant_of_a_model_is_not_what_a_call_is_given():
    """`ConstantOfShape` of no axes fails where it is given a `value`, as each constant is; without it passes."""
    calls = (
        Call("Constant", {"value": Tensor.of(np.zeros(0, "int64"))}, (), ("shape",), {"opset": {"": 20}}),
        Call("Any", {"value": Tensor.of(F32([4]))}, (Argument("input", "shape"),), ("y",), {"opset": {"": 20}}),
    )

    def label(programs: Sequence[Program]) -> list[bool | None]:
        return [0 in shape(x) and x.instances()[-1].params.get("value") is not None for x in programs]

    told = Decided((f"value={removable.said(calls[1].params['value'])}",), ("an empty input",))
    found = borne_out(label, Graph("onnx", (), calls, ("y",)), {"Any": {"value": None}}, told)
    assert (found.decided.besides, found.exact) == (("an empty input",), True)
    assert found.decided.parameters in (told.parameters, ("value given",)) and found.passing_one is not None


def test_a_program_of_several_calls_that_passes_may_differ_in_one_parameter_alone():
    """The nodes of Keras's `segment_prod`: reducing it ended with an internal error."""

    def nodes(operator: str = "ConstantOfShape", **params: Any) -> Graph:
        calls = (
            Call("Neg", {}, (Argument("X", "x"),), ("y",), {}),
            Call(operator, params, (Argument("input", "y"),), ("z",), {}),
        )
        return Graph("onnx", (Operand("x", Tensor.of(np.int64([2]))),), calls, ("z",))

    value = features.Feature("value given", lambda x: "value" in x.instances()[-1].params)
    made: Any = Learner(nodes(value=1, k=2), {}, Decided(), lambda _: None, lambda _: None, True)  # type: ignore[arg-type]
    assert made._alone([value], [nodes(k=2)]) == [value]
    assert made._alone([value], [nodes(k=3), nodes("Expand", k=2)]) == []
    rewired = msgspec.structs.replace(nodes(k=2).calls[1], inputs=(Argument("input", "x"),))
    assert made._alone([value], [msgspec.structs.replace(nodes(k=2), calls=(nodes().calls[0], rewired))]) == []


def test_of_several_calls_no_axis_is_told_that_one_of_them_names():
    """The file of Keras's `linspace` is several nodes of an empty tensor; one that passes is empty elsewhere."""
    calls = (
        Call("Neg", {}, (Argument("X", "x"),), ("y",), {"opset": {"": 20}}),
        Call("Any", {"axis": 0}, (Argument("input", "y"),), ("z",), {"opset": {"": 20}}),
    )
    program = Graph("onnx", (Operand("x", Tensor.of(np.zeros((0, 2), "f4"))),), calls, ("z",))

    def label(programs: Sequence[Program]) -> list[bool | None]:
        return [shape(x)[:1] == (0,) for x in programs]

    seen = [
        Labelled(msgspec.structs.replace(program, inputs=(Operand("x", Tensor.of(np.zeros(sizes, "f4"))),)), fails)
        for sizes, fails in (((2, 0), False), ((0, 3), True), ((2, 2), False))
    ]
    found = borne_out(label, program, {"Any": {"axis": 0}}, Decided((), ("an empty input",)), seen)
    assert found.decided.besides in (("an empty input",), ()) and found.failing


def test_a_rank_is_told_of_the_input_that_has_it():
    """A scale for each channel is refused; the zero point has its rank, too, and the picture any."""
    program = call(np.ones((1, 2, 3), F32), F32([2]), np.uint8([1]))
    found = borne(program, lambda x: len(shape(x, 1)) == 1, Decided((), ("a 1-d input",)))
    assert (found.decided.besides, found.exact) == (("x1 of rank 1",), True)
    assert removable.is_of("a 1-d input", "x1 of rank 1") and not removable.is_of("a 0-d input", "x1 of rank 1")


def stated(x: Instance) -> bool | None:
    sizes = smaller.leaves(x)[1]
    return None if not isinstance(sizes, Tensor) else len(sizes.shape) == 1 and math.prod(sizes.shape) > 2


def below(x: Instance) -> bool | None:
    sizes: Any = x.inputs[1].value
    return None if sizes.shape != (1,) else bool(shape(x)) and int(sizes.numbers()[0]) < shape(x)[-1]


def test_how_many_sizes_are_stated_is_told():
    """Col2Im of three axes: two pass, as a test has them."""
    program, test = (call(np.ones((1, 1, 4), F32), np.int64([2] * n)) for n in (3, 2))
    found = borne(program, stated, seen=[Labelled(test, False)])
    assert found.circumstances == ("3 or more elements in x1",) and found.exact


def test_a_size_that_is_stated_is_compared_with_the_axis_that_it_is_of():
    """Expand by a shape that has 1 where the input is longer."""
    named = tuple(Operand(x, Tensor.of(y)) for x, y in (("data", np.ones(3, F32)), ("shape", np.int64([2]))))
    found = borne(msgspec.structs.replace(call(), inputs=named), below)
    assert found.circumstances == ("a size in shape below that of data",) and found.exact


def test_a_whole_number_changes_together_with_the_lengths_that_are_multiples_of_it():
    """Blocks of 2 are rejected where nothing else is as long: of 3 they fail, too, of 1 they pass."""

    def shows(x: Instance) -> bool | None:
        blocks = x.params.get("block_size", 0)
        return None if not blocks or shape(x)[-1:] != (2 * blocks,) else blocks > 1

    found = borne(call(np.ones((3, 4), F32), block_size=2), shows, defaults={"block_size": 0})
    assert found.circumstances == ("block_size > 1",) and found.exact


def test_what_separates_all_but_a_few_of_many_is_told_and_these_are_counted():
    """Cast to a dtype of powers of 2 by rounding down: what is near the next one is right."""

    def shows(x: Instance) -> bool | None:
        return None if "to" not in x.params else x.params["to"] == 24 and bool((floats(x) != 500.0).all())

    others = [Labelled(call(np.ones((2, n), F32), to=x), False) for n in (2, 3, 5) for x in (1, 10, 16, 17)]
    right = Labelled(call(F32([[500.0, 500.0]]), to=24), False)
    found = borne(call(F32([[1.5, 1.5]]), to=24), shows, defaults={"to": NO_DEFAULT}, seen=[*others, right])
    assert (found.circumstances, found.exact, found.despite) == (("to=24",), False, 1)


def test_what_is_expected_may_be_what_decides():
    """The maximum of nothing is minus infinity, as that of minus infinity is."""

    def shows(x: Instance) -> bool:
        return bool(np.isneginf(floats(x).max(initial=-np.inf)))

    found = borne(
        call(F32([-np.inf])),
        shows,
        Decided((), ("infinity in an input",)),
        seen=[Labelled(call(np.ones(0, F32)), True), Labelled(call(F32([np.inf])), False)],
        outputs=lambda x: [Tensor.of(F32(floats(x).max(initial=-np.inf)))],
    )
    assert (found.decided, found.circumstances) == (NOTHING, ("minus infinity in the expected output",))


def test_a_truth_value_is_not_compared_with_a_size():
    known = {"ceil_mode": 0, "padding": 0}
    says = {
        x.says
        for of in ({"ceil_mode": 1}, {"padding": 1})
        for x in features.features(call(np.ones((1, 1), F32), kernel_shape=[1], **of), {"Any": known})
    }
    assert "padding not below kernel_shape" in says and "ceil_mode not below kernel_shape" not in says


@pytest.mark.parametrize(("program", "fails", "defaults", "wanted"), MORE, ids=[" ".join(x[3]) or "-" for x in MORE])
def test_what_all_failing_programs_have_and_no_passing_one_is_told(program, fails, defaults, wanted):
    found = borne(program, fails, defaults=defaults)
    assert list(found.circumstances) == wanted
    assert found.exact


def test_of_what_no_words_fit_nothing_is_told_but_that_it_is_not_known():
    found = borne(call(np.ones((1, 1), F32)), lambda x: sum(shape(x)) % 3 != 0)
    assert found.circumstances == ()
    assert not found.exact
    assert found.failing > 0 < found.passing


def test_a_length_of_the_output_is_told_where_inputs_tell_nothing():
    program = call(np.ones((1, 1, 2, 2), F32), F32([1, 1, 1, 0.5]))

    def outputs(x: Program) -> list[Tensor] | None:
        scales = smaller.leaves(x)[1]
        sizes = shape(x)
        if not isinstance(scales, Tensor) or scales.shape != (len(sizes),) or (scales.numbers() < 0).any():
            return None
        if (scales.numbers() > 9).any():  # more than there is memory for
            return None
        return [Tensor.of(np.ones([int(y) for y in np.floor(np.array(sizes) * scales.numbers())], "float32"))]

    def fails(x: Instance) -> bool | None:
        return 1 in made[0].shape[2:] if (made := outputs(x)) and len(made[0].shape) == 4 else None

    assert borne(program, fails, outputs=outputs).circumstances == ("an output axis of length 1 after the first two",)


@pytest.mark.parametrize(
    ("number", "to", "fails", "wanted"),
    [
        (1e6, "float16", lambda x: np.abs(x) > 65504, "a number beyond float16 in an input"),
        (1.5, "int32", lambda x: x != np.trunc(x), "a number that int32 does not hold in an input"),
        (1.1, "float8_e8m0fnu", lambda x: np.frexp(x)[0] != 0.5, "a number that float8_e8m0fnu does not hold in an input"),
    ],
)  # fmt: skip
def test_numbers_are_told_that_the_dtype_of_an_output_does_not_hold(number, to, fails, wanted):
    found = borne(
        call(
            F32([[number]]), Tensor.of(np.zeros(0, "uint8" if "float8" in to else to), to)
        ),  # as CastLike is told its dtype
        lambda x: bool(np.any(fails(floats(x)))),
        outputs=lambda x: [Tensor.of(np.zeros(shape(x), "uint8" if "float8" in to else to), to)],
    )
    assert found.circumstances == (wanted,)
    assert found.exact


def test_what_passes_without_what_decides_by_itself_asks_for_nothing_more():
    """A parameter that changes no output shows nothing, whatever the shape."""

    def fails(x: Instance) -> bool:
        return number(x, "policy", 0) == 1 and shape(x)[-1:] != (4,)

    program, told = call(np.ones((2, 3), F32), policy=1), Decided(("policy=1",))
    assert not borne(program, fails, told, {"policy": 0}).exact
    found = borne(program, fails, told, {"policy": 0}, moot=lambda x: shape(x)[-1:] == (4,))
    assert found == Borne(told, (), found.failing, found.passing, True, 0, usual=False)
    assert found.failing > 0 < found.passing


def test_what_passes_with_these_numbers_alone_passes_by_chance():
    """The mean of a row and a number of another tensor that is its mean: a wrong answer that is right."""
    program = call(np.zeros((1, 2), F32), F32([1.5]))
    found = borne(
        program, lambda x: smaller.leaves(x)[1] != program.inputs[1].value or floats(x).sum() != 1.5 * floats(x).size
    )
    assert found.circumstances == ()
    assert found.exact


def test_what_rounds_to_the_right_integer_passes_by_chance():
    """A compiler that cuts off what a parameter has behind the point: 1 - 2.5 is -1 by either way, 4 - 2.5 is not."""

    def fails(x: Instance) -> bool | None:
        numbers, bias = x.inputs[0].value.numbers(), number(x, "bias", 0.0)
        if "int" not in dtype(x) or not isinstance(bias, float):
            return False
        return bool((np.trunc(numbers - bias) != numbers - np.trunc(bias)).any())

    found = borne(call(np.int64([4, 5]), bias=0.5), fails, Decided(("bias=0.5",)), {"bias": 0.0})
    assert renumbered(call(np.int64([1, 1]))).inputs[0].value.numbers().tolist() == [2, -3]
    assert renumbered(call(F32([1]), np.int64([1]))).inputs[1].value.numbers().tolist() == [1]  # they may be indices
    assert found.decided.parameters == ("bias that is no whole number",)


def test_what_decided_is_not_told_once_a_program_that_lacks_it_fails_alike():
    """Of three ordinary ones that lack a negative number one is large, and fails: no negative number is needed."""
    program, told = call(F32([-30.0, 2])), Decided((), ("a negative number in an input",))
    large = Labelled(call(F32([2, 100])), True)
    assert borne(program, lambda x: bool((floats(x) < 0).any()), told).decided == told
    found = borne(program, lambda x: bool((floats(x) < 0).any()), told, seen=[large])
    assert found.decided == Decided()
    assert not found.exact


def test_what_fails_of_something_else_contradicts_nothing():
    """Inputs of rank 3 fail without the parameter as well, of another bug: most others pass without it."""

    def fails(x: Instance) -> bool:
        return number(x, "keep", 0) == 1 or len(shape(x)) == 3

    found = borne(call(np.ones((2, 2), F32), keep=1), fails, Decided(("keep=1",)), {"keep": 0})
    assert found.decided.parameters == ("keep=1",)


def test_a_number_at_a_limit_is_told_and_not_that_others_are_equal():
    program = call(F32([2, 2]), F32([0.5]))
    told = Decided((), ("equal elements in an input", "a number equal to x1"))
    found = borne(program, lambda x: smaller.leaves(x)[1] == smaller.leaves(program)[1], told)
    assert found.decided.besides == ("a number equal to x1",)


def test_that_a_parameter_does_nothing_where_an_axis_has_length_1_is_not_told():
    """A layout that is not read shows in no batch of one; that of two channels one is right does show."""
    program, told = call(np.ones((2, 3), F32), layout=1), Decided(("layout=1",))

    def fails(x: Instance) -> bool | None:
        return number(x, "layout", 0) == 1 and shape(x)[0] > 1

    assert borne(program, fails, told, {"layout": 0}).circumstances == ("the first axis of x0 longer than 1",)
    for unknown in (False, None):

        def moot(x: Program, unknown: bool | None = unknown) -> bool | None:
            return shape(x)[0] == 1 if unknown is False else None

        assert borne(program, fails, told, {"layout": 0}, moot=moot).circumstances == ()


def test_what_is_shorter_hides_a_mistake_and_decides_nothing_more():
    """A transposed output is right where an axis of it has length 1."""
    found = borne(
        call(np.ones((1, 2, 2), F32)),
        lambda x: len(shape(x)) == 3 and min(shape(x)[1:]) > 1,
        Decided((), ("an input of rank 3",)),
    )
    assert found.decided.besides == ("an input of rank 3",)
    assert found.circumstances == ()
    assert found.exact


def test_a_crash_that_axes_of_length_1_avoid_is_not_explained_where_nothing_is_told():
    program = call(np.ones((2, 3), F32))

    def fails(x: Instance) -> bool:
        return 1 not in shape(x)[:2]

    silent, loud = borne(program, fails), borne(program, fails, loud=True)
    assert silent.exact and not loud.exact
    assert silent.circumstances == loud.circumstances == ()
    assert borne(program, lambda x: len(shape(x)) == 2 and fails(x), loud=True).circumstances == ("an input of rank 2",)


def test_what_a_search_has_seen_counts_though_there_is_no_time_to_ask():
    def label(programs: Sequence[Program]) -> list[bool | None]:
        raise Spent

    program, member = call(np.ones((0, 1), F32)), call(np.ones((3, 4), F32))
    seen = [Labelled(member, True)]
    assert borne_out(label, program, {}, Decided((), ("an empty input",)), seen).decided == Decided()
    of_another = [Labelled(Instance("onnx", "Other", {}, member.inputs, ("y",), {}), True)]
    assert borne_out(label, program, {}, Decided((), ("an empty input",)), of_another).decided.besides == (
        "an empty input",
    )


RULES: list[Callable[[Instance], bool]] = [
    lambda x: len(shape(x)) > 1, lambda x: 1 in shape(x), lambda x: 0 in shape(x), lambda x: dtype(x) != "float32",
    lambda x: number(x) > 1, lambda x: number(x) > 1 and shape(x)[-1:] > (1,), lambda x: sum(shape(x)) % 2 == 0, lambda x: True,
]  # fmt: skip


@settings(max_examples=20)
@given(
    st.lists(st.integers(0, 3), max_size=3),
    st.sampled_from(["float32", "float64"]),
    st.integers(1, 3),
    st.sampled_from(RULES),
)
def test_nothing_that_is_told_is_contradicted_by_a_near_program(sizes, of, multiplier, fails):
    """All that fail have what is told; where that is all that decides, none that passes has all of it, but what hides it."""
    program, known = call(np.ones(sizes, of), multiplier=multiplier), {"Any": {"multiplier": 1}}
    assume(fails(program))
    asked: list[Instance] = []

    def shows(x: Instance) -> bool:
        asked.append(x)
        return fails(x)

    told = Decided(
        (f"multiplier={multiplier}",) if multiplier > 1 else (), (f"{of} inputs",) if of != "float32" else ()
    )
    found = borne(program, shows, told, {"multiplier": 1})
    failed = [x for x in asked if fails(x)]
    held = {x.says: x for x in features.features(program, known, failed, passing=[x for x in asked if not fails(x)])}
    assert all(held[says].holds(x) for says in found.circumstances for x in asked if fails(x))
    for says in found.decided.besides:
        assert all(dtype(x) in dtypes.members(says) or not dtypes.members(says) for x in asked if fails(x))
    if found.decided.parameters:
        assert all(number(x) > 1 for x in asked if fails(x))
    if found.exact and not found.decided.parameters + found.decided.besides + found.circumstances:
        assert all(fails(x) or 1 in shape(x) for x in asked)


@pytest.mark.parametrize(
    ("says", "told", "wanted"),
    [
        ("float64 inputs", "float16 or float64 inputs", True), ("float32 inputs", "float16 or float64 inputs", False),
        ("max left out", "min or max left out", True), ("axis=2", "axis > 1", True), ("axis=2", "axis given", True),
        ("axes=2", "axis=2", False), ("input B", "input B", True), ("float16 inputs", "float16, float64 or int8 inputs", True),
    ],
)  # fmt: skip
def test_a_condition_is_known_again_however_widely_it_is_told(says, told, wanted):
    assert removable.is_of(says, told) is wanted


def test_a_parameter_is_told_to_be_beyond_a_number_though_one_beyond_passes_for_another_reason():
    """A multiplier that is read wrongly shows of several channels alone."""
    program, told = call(np.ones((1, 2), F32), multiplier=6), Decided(("multiplier=6",))
    found = borne(program, lambda x: number(x) > 1 and shape(x)[-1:] > (1,), told, ONE)
    assert found.decided.parameters == ("multiplier > 1",)


def test_that_one_input_is_of_a_rank_is_not_told_beside_that_both_are():
    fails = MORE[[x[3] for x in MORE].index(["both inputs of rank 2"])][1]
    found = borne(call(*SQUARES), fails, Decided((), ("an input of rank 2",)))
    assert (found.decided, found.circumstances) == (NOTHING, ("both inputs of rank 2",))


def test_a_longer_axis_is_told_only_where_another_one_is_not_enough():
    """Scales [1, 2] and [2, 1] fail alike, [1, 1] passes: neither axis matters more."""
    program, told = call(np.ones((1, 2), F32), layout=1), Decided(("layout=1",))

    def fails(x: Instance) -> bool | None:
        return number(x, "layout", 0) == 1 and max(shape(x), default=1) > 1

    assert borne(program, fails, told, {"layout": 0}).circumstances == ()


@pytest.mark.parametrize(("near", "explained", "wanted"), [((4, 3), True, 1), ((4, 2), True, 0), ((4, 9), False, 0)])
@pytest.mark.parametrize("says", ["a number equal to k", "equal elements in an input"])
def test_a_number_at_a_limit_is_in_the_sentence_where_near_programs_bear_it_out(says, near, explained, wanted):
    found = Reduction("F", "e", "f", "v", "t", {}, Outcome("crash"), besides=(says,), near=near, explained=explained)
    assert len(Choice(None, None, found).deciding) == wanted  # type: ignore[arg-type]


def test_that_not_all_inputs_have_the_rank_that_passes_is_told():
    """A product of two matrices is right; whatever has an input of another rank is not."""
    program = call(np.ones(2, F32), np.ones(2, F32))
    found = borne(program, lambda x: {len(shape(x)), len(shape(x, 1))} != {2})
    assert (found.circumstances, found.exact) == (("an input of another rank than 2",), True)
