"""What stands in the place of a tensor, and of a string, is asked about, and told where it decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
import pytest

from opera.programs.program import Instance, Operand, Program
from opera.programs.values import NO_DEFAULT, Named, Tensor
from opera.report.programs import lines
from opera.triage.conditions import arguments, listing, near, varied
from opera.triage.conditions.circumstances import Borne, borne_out
from opera.triage.conditions.deciding import Decided
from opera.triage.conditions.labels import Labelled
from opera.triage.sentence import EMPTY
from opera.triage.shrink import smaller

I64, I32 = np.int64, np.int32


def call(*, written: bool = True, **arrays: Any) -> Instance:
    given = tuple(Operand(name, Tensor.of(np.asarray(x))) for name, x in arrays.items())
    context: dict[str, Any] = {"call": {"args": list(arrays), "kwargs": []}} if written else {"opset": {"": 22}}
    return Instance("torch", "Any", {}, given, () if written else ("y",), context)


def borne(program: Instance, fails: Callable[[Any], bool | None], told: Decided, **more: Any) -> Borne:
    return borne_out(lambda programs: [fails(x) for x in programs], program, {"Any": {}}, told, loud=True, **more)


def test_a_number_takes_the_place_of_each_tensor_beside_another_one() -> None:
    made = list(arguments.as_number(call(x=I64([1, 2]), y=np.float32([1, 2]))))
    assert [(x.params, [y.name for y in x.inputs]) for x in made] == [
        ({"x": 2}, ["y"]),
        ({"x": 2.0}, ["y"]),
        ({"y": 2.0}, ["x"]),
    ]
    assert all(x.context == call(x=0, y=0).context for x in made), "it is written in the same place"
    assert not list(arguments.as_number(call(x=I64([1]))))
    assert not list(arguments.as_number(call(x=I64([1]), y=I64([1]), written=False))), "a node takes tensors alone"


def test_a_tensor_without_axes_takes_the_place_of_a_number_where_no_other_one_is() -> None:
    """`linspace(1, 4, 3, dtype=float64)`: a compiler may read an end that is a tensor otherwise."""
    program = msgspec.structs.replace(call(), params={"start": 1, "stop": 4.0})
    program.context["call"]["args"].extend(program.params)  # type: ignore[index, call-overload]
    made = [x for x in arguments.as_tensor(program, {}) if x is not None and x.inputs]
    told = [[(y.name, y.value.dtype, y.value.shape) for y in x.inputs] for x in made]
    assert told == [[("start", "int64", ())], [("stop", "float32", ())]]
    assert list(lines(made[1])) == ["stop = float32[]: 4", "Any(stop, start=1)"]


@pytest.mark.parametrize(
    ("passes", "told"),
    [
        ((int, float), "a tensor for y"),
        ((int,), "y no integer of Python's"),  # 2.0 makes floats of integers
        ((), ""),
    ],
)
def test_that_an_input_is_a_tensor_is_told_where_a_number_in_its_place_passes(
    passes: tuple[type, ...], told: str
) -> None:
    def fails(x: Program) -> bool:
        number = x.instances()[0].params.get("y")
        integers = all("int" in leaf.dtype for leaf in smaller.leaves(x))
        return integers and type(number) not in passes

    found = borne(call(x=I32([3, 2]), y=I32([2, 1])), fails, Decided((), ("int32 inputs",)))
    assert {*found.circumstances} == {"tensors promoted to integer", told} - {""} and found.exact


def test_that_a_number_passes_is_not_told_by_the_rank_that_it_has_not() -> None:
    """`torch.narrow` cannot be exported with a tensor for `start`, which is always 0-d."""
    program = call(x=np.float32([[1, 2]]), start=I64(1))
    found = borne(program, lambda x: None if "x" in x.params else "start" not in x.params, Decided())
    assert found.circumstances == ("a tensor for start",) and found.exact


def test_that_an_operand_is_a_mask_is_told_where_indices_pass() -> None:
    """`x[key]`: TVM takes a mask for indices, and of a slice makes another operator."""
    program = call(x=np.float32([1, 2]), key=np.array([True, False]))
    sliced = msgspec.structs.replace(program, inputs=program.inputs[:1], params={"key": 0})

    def fails(x: Program) -> bool:
        return any(y.name == "key" and y.value.dtype == "bool" for y in x.inputs)  # type: ignore[union-attr]

    found = borne(program, fails, Decided((), ("input key",)), seen=[Labelled(sliced, False)])
    assert ({*found.decided.besides, *found.circumstances}, found.exact) == ({"key of bool"}, True)


def test_that_an_input_holds_0_is_told_where_it_decides() -> None:
    """PyTorch's exporter loses the `eps` of `log(x + eps)`, which shows where x is 0."""
    program = call(x=I64([0, 1]))

    def fails(x: Program) -> bool:
        [held] = smaller.leaves(x)
        return isinstance(held, Tensor) and held.dtype != "bool" and 0 in held.numbers()

    found = borne_out(lambda programs: [fails(x) for x in programs], program, {"Any": {}}, Decided())
    assert (found.circumstances, found.exact) == (("0 in an input",), True)


def test_that_a_parameter_is_given_at_its_default_is_told_where_it_decides() -> None:
    """`any(x, keepdim=False)` is another overload than `any(x)`, which OpenVINO does not read."""
    program = msgspec.structs.replace(call(x=np.float32([[1, 2]])), params={"keepdim": False})

    def label(programs: Sequence[Program]) -> list[bool | None]:
        return ["keepdim" in x.instances()[0].params for x in programs]

    left = Labelled(msgspec.structs.replace(program, params={}), False)
    found = borne_out(label, program, {"Any": {"keepdim": False}}, Decided(), [left], loud=True)
    assert (found.circumstances, found.exact) == (("keepdim given",), True)


def test_a_tensor_takes_the_place_of_a_number_that_has_no_default() -> None:
    program = msgspec.structs.replace(call(x=I64([1, 2]), y=0), inputs=(Operand("x", Tensor.of(I64([1, 2]))),))
    program = msgspec.structs.replace(program, params={"y": 3, "alpha": 2, "dim": 0})
    fraction, made = arguments.as_tensor(program, {"alpha": 1, "dim": NO_DEFAULT})
    assert isinstance(fraction, Instance) and isinstance(made, Instance) and fraction.params["y"] == 2.0
    assert made.params == {"alpha": 2, "dim": 0} and made.inputs[1] == Operand("y", Tensor.of(I64([3, 3])))
    alone = msgspec.structs.replace(program, params={"y": 3})
    found = borne(alone, lambda x: "y" not in {y.name for y in x.inputs}, Decided())
    assert found.circumstances == ("a number for y",) and found.exact


def test_nothing_but_dtypes_is_given_for_a_dtype() -> None:
    """`torch.prod(x, 0)` is a product along an axis, and "dtype 0 or left out" no condition."""
    made = [*arguments.given(call(x=I64([1, 2])), {"dtype": None, "scale": None})]
    assert made and {y for x in made if isinstance(x, Instance) for y in x.params} == {"scale"}
    assert {y for x in varied.given(call(x=I64([1, 2])), {"dtype": None, "scale": None}) for y in x.params} == {"scale"}


def test_a_number_in_the_place_of_either_of_two_operands_is_told_of_both() -> None:
    program = msgspec.structs.replace(call(x=I64([1, 2])), params={"y": 3})
    [other] = arguments.mirrored(program, {})
    assert not list(arguments.mirrored(program, {"y": 3})), "what has a default is no operand"
    assert other.params == {"x": 3} and other.inputs == (Operand("y", Tensor.of(I64([1, 2]))),)
    found = borne(program, lambda x: len(x.inputs) < 2, Decided())
    assert found.circumstances == ("a number for y or x",) and found.exact


@pytest.mark.parametrize(
    ("shapes", "fails", "told"),
    [
        (((2,), ()), lambda a, b: a > b, "y of lower rank than x"),
        (((2,), (1, 2)), lambda a, b: a < b, "y of higher rank than x"),
        (((2,), ()), lambda a, b: a != b, "y of another rank than x"),
    ],
)
def test_ranks_that_differ_are_told(
    shapes: tuple[tuple[int, ...], ...], fails: Callable[[int, int], bool], told: str
) -> None:
    def wrong(x: Program) -> bool:
        ranks = [len(leaf.shape) for leaf in smaller.leaves(x)]
        return len(ranks) == 2 and fails(*ranks)

    x, y = (np.ones(shape, np.float32) for shape in shapes)
    found = borne(call(x=x, y=y, written=False), wrong, Decided())
    assert found.circumstances == (told,) and found.exact


def test_a_fraction_of_a_number_is_told() -> None:
    program = Instance("torch", "Any", {"end": 3.1, "start": 0}, (), (), {})
    found = borne(program, lambda x: float(x.params.get("end", 0)) % 1 > 0, Decided())
    assert found.circumstances == ("end that is no whole number",) and found.exact


@pytest.mark.parametrize(
    ("fails", "told"),
    [
        (lambda x: x in ("int8", "int32"), "dtype=int8 or int32"),
        (lambda x: x not in ("float32", "float64"), "dtype other than float32 and float64"),
    ],
)
def test_which_dtype_is_asked_for_is_varied(fails: Callable[[str], bool], told: str) -> None:
    def wrong(x: Program) -> bool:
        of = x.instances()[0].params.get("dtype")
        return isinstance(of, Named) and fails(of.name)

    program = Instance("torch", "Any", {"dtype": Named("torch.dtype", "int8")}, (), (), {})
    found = borne(program, wrong, Decided(("dtype=int8",)))
    assert found.decided.parameters == (told,) and found.exact


def test_an_empty_string_is_told_and_not_what_separates() -> None:
    program = Instance(
        "onnx", "Any", {"delimiter": " "}, (Operand("X", Tensor.of(np.array(["", "b"], object))),), ("y",), {}
    )

    def fails(x: Program) -> bool:
        [leaf] = smaller.leaves(x)
        return bool(x.instances()[0].params.get("delimiter")) and isinstance(leaf, Tensor) and b"" in leaf.array()

    found = borne(program, fails, Decided(("delimiter=' '",)))
    assert (found.decided.parameters, found.circumstances) == (("delimiter given",), ("an empty string in X",))
    assert found.exact


def test_only_what_separates_is_another_string() -> None:
    for own, others in ((" ", [",", "--", "a"]), ("linear", []), ("", [])):
        made = varied.of_parameter(Instance("onnx", "Any", {"p": own}, (), ("y",), {}), "p", {})
        assert [x.params["p"] for x in made] == others


def test_that_an_operand_is_broadcast_is_told_whatever_its_rank() -> None:
    """TVM's clamp by tensors, which broadcasts these to the shape of the input, and never the input to theirs."""
    program = call(input=np.float32([[1, 2]]), max=np.float32([[1], [2]]))

    def fails(x: Program) -> bool | None:
        shapes = [y.shape for y in smaller.leaves(x)]
        try:
            return np.broadcast_shapes(*shapes) != shapes[0]
        except ValueError:
            return None

    found = borne(program, fails, Decided())
    assert found.circumstances == ("input broadcast to a larger shape",) and found.exact


def test_that_one_of_the_last_two_axes_is_empty_is_told_where_both_alone_fail() -> None:
    """OpenVINO's pixel_shuffle of pictures without height or width, which others without a batch or channels are not."""
    program = call(x=np.zeros((1, 2, 0, 2), np.float32))

    def fails(x: Program) -> bool | None:
        [shape] = [y.shape for y in smaller.leaves(x)]
        return 0 in shape[-2:] if len(shape) > 2 else None

    found = borne(program, fails, Decided((), (EMPTY,)))
    assert {*found.decided.besides, *found.circumstances} == {
        "one of the last two axes of x of length 0"
    } and found.exact


def test_an_axis_that_is_counted_from_the_end_is_so_in_other_ranks() -> None:
    """MNN's GATHER along -1 of one axis fails as it does along -2 of two: it is the first one, counted from the end."""
    program = msgspec.structs.replace(call(x=np.float32([1, 2])), params={"axis": -1})

    def fails(x: Program) -> bool:
        [shape] = [y.shape for y in smaller.leaves(x)]
        axis = x.instances()[0].params.get("axis", 0)
        return isinstance(axis, int) and axis == -len(shape)

    found = borne(program, fails, Decided(("axis=-1",)))
    assert {*found.decided.parameters, *found.circumstances} == {
        "axis < 0",
        "axis naming the first axis",
    } and found.exact


def test_a_list_that_is_required_is_not_told_to_be_left_out() -> None:
    """`torch.logsumexp` takes no call without `dim`."""
    program = msgspec.structs.replace(call(x=np.float32([1, 2])), params={"dim": ()})
    for required, says in ((["dim"], "dim empty"), ([], "dim empty or left out")):
        assert [name for name, _ in listing.empty(program, [], required)] == [says]


@pytest.mark.parametrize(
    ("shape", "target", "told"),
    [((2, 0, 4), (0, 3), True), ((2, 0, 4), (2, 0, 8), False), ((0,), (1, 0), True), ((2, 3), (3, 2), False)],
)
def test_a_0_in_the_place_of_another_length_is_told(
    shape: tuple[int, ...], target: tuple[int, ...], told: bool
) -> None:
    """ONNX's Reshape reads it as "as long as it is"."""
    params: dict[str, Any] = {"newshape": target, "axis": (0,), "pads": (0, 1), "num": 0}
    program = msgspec.structs.replace(call(x=np.zeros(shape, "f4")), params=params)
    found = [says for says, _ in listing.zeros(program, "x")]
    assert found == (["a 0 in newshape where x has another length"] if told else [])


def test_an_input_of_sizes_is_told_to_have_fewer_than_axes_and_is_given_all() -> None:
    """What TVM is given as a shape that is no constant, it hands to `broadcast_to`: a shorter one stops it."""
    program = call(input=np.ones((1, 2, 3), "f4"), shape=np.ones(0, "i8"))
    assert [says for says, _ in listing.fewer(program, "input")] == ["fewer numbers in shape than axes of input"]
    made = [x.inputs[1].value.array().tolist() for x in arguments.as_long(program) if x]  # type: ignore[union-attr]
    assert made == [[1, 2, 3], [3]]

    def fails(x: Program) -> bool | None:
        first, *others = smaller.leaves(x)
        if len(others) != 1 or others[0].dtype != "int64" or len(others[0].shape) != 1:
            return None
        return others[0].shape[0] < len(first.shape)

    found = borne(program, fails, Decided())
    assert found.circumstances == ("fewer numbers in shape than axes of input",) and found.exact


def test_data_of_several_dtypes_is_asked_of_one_too() -> None:
    program = call(x=I64([[1, 2]]), y=np.bool_([[True], [False]]), shape=I64([1, 1]))
    made = [[y.dtype for y in smaller.leaves(x)] for x in near._of_one(program) if x]
    assert made == [[x, x, "int64"] for x in ("float32", "int32", "int64", "bool")]
    assert not [*near._of_one(call(x=I64([1]), shape=I32([1])))], "that only states sizes"


def test_all_axes_of_one_length_become_longer_or_shorter_together() -> None:
    """What two tensors share is one axis of the one and another axis of the other: `(1, 2) x (2, 3)`, `(1, 1) x (1, 3)`."""
    program = call(a=np.ones((4, 2), np.float32), b=np.ones((2, 3), np.float32))
    rows = near.near(program, {"Any": {}})
    shapes = {tuple(x.shape for x in smaller.leaves(made)) for row in rows for made in row if made is not None}
    assert {((4, 1), (1, 3)), ((4, 4), (4, 3)), ((1, 2), (2, 3))} <= shapes


@pytest.mark.parametrize(("also", "wanted"), [(0, "size 0 or left out"), (7, "")], ids=["0", "another number"])
def test_a_number_that_is_0_counts_as_left_out_where_programs_of_both_fail(also: int, wanted: str) -> None:
    """ONNX Runtime reads `hidden_size` of GRU, which may be left out, as a number that must be positive."""
    program = call(x=np.ones(2, np.float32))
    given = [msgspec.structs.replace(program, params={"size": x}) for x in (also, 3)]
    seen = [Labelled(given[0], fails=True), Labelled(given[1], fails=False)]

    def fails(x: Any) -> bool | None:
        size = x.params.get("size", 0)
        return size in (0, also) if type(size) is int and len(x.inputs) == 1 else None

    known = {"Any": {"size": NO_DEFAULT}}
    found = borne_out(lambda programs: [fails(x) for x in programs], program, known, Decided(), seen, loud=True)
    assert (wanted in found.circumstances) == bool(wanted) and "size left out" not in found.circumstances


def test_what_is_left_out_before_one_that_is_given_is_told_with_it() -> None:
    """TVM takes the `stride=[]` that stands before `padding` in an exported program for what is meant."""
    program = msgspec.structs.replace(call(x=np.ones((1, 2, 2), np.float32)), params={"size": 2, "pad": 1})
    known = {"Any": {"size": NO_DEFAULT, "step": None, "pad": 0, "wide": 1, "up": False}}

    def fails(x: Any) -> bool | None:
        if (
            x.params.get("size") is None
            or any(y.name != "x" for y in x.inputs)
            or isinstance(x.params.get("step"), float)
        ):
            return None
        plain = (x.params.get("pad", 0), x.params.get("wide", 1)) == (0, 1)
        return x.params.get("step") in (None, []) and not plain

    seen = [
        msgspec.structs.replace(program, params={"size": 2, **of})
        for of in ({"wide": 2}, {"pad": 1, "step": 1}, {"up": True})
    ]
    found = borne_out(
        lambda programs: [fails(x) for x in programs], program, known, Decided(),
        [Labelled(x, fails=bool(fails(x))) for x in seen], loud=True,
    )  # fmt: skip
    assert "step left out beside pad or wide" in found.circumstances and found.exact, found


def test_a_seed_is_0_too_which_many_take_for_none() -> None:
    """OpenVINO draws twice the same with ONNX's seed of 0 as without one: it is no matter of being left out."""
    made = varied.given(call(x=I64([1, 2])), {"seed": None, "scale": None})
    assert [x.params.get("seed") for x in made if "seed" in x.params] == [1, 2.0, 0]
    assert [x.params.get("scale") for x in made if "scale" in x.params] == [1, 2.0]
