"""Steps of a reduction yield well-formed programs, each accepted one is smaller, and the search ends."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import keras_instance
import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from several_calls import ONNX, TORCH
from strategies import INSTANCES, tensors

from opera.errors import CorpusError
from opera.programs import values
from opera.programs.program import Argument, Call, Graph, Instance, Operand, Program, parse
from opera.programs.values import DESCRIBED, NO_DEFAULT, Named, RandomTensor, Tensor
from opera.triage.shrink import shapes, simpler, smaller
from opera.triage.shrink.minimise import PASSES, minimise

GRAPHS = st.sampled_from([*ONNX.values(), *TORCH.values()])


class Told:
    """Says of programs what a function says; what the library would reject is never asked about."""

    batch = 4

    def __init__(self, fails: Callable[[Program], bool], hides: Callable[[Program], bool] = lambda _: False) -> None:
        self.fails, self.hides, self.asked = fails, hides, 0

    def stands(self, program: Program) -> bool:
        return not self.hides(program)

    def __call__(self, programs: Sequence[Program]) -> list[bool]:
        self.asked += len(programs)
        return [self.fails(program) for program in programs]

    def vanished(self, program: Program) -> bool:
        return not self.fails(program)


def onnx(operator: str, inputs: dict[str, object], outputs: tuple[str, ...] = ("y",), **params: object) -> Instance:
    operands = tuple(Operand(name, Tensor.of(x) if isinstance(x, np.ndarray) else x) for name, x in inputs.items())
    return Instance("onnx", operator, dict(params), operands, outputs, {"opset": {"": 21}})


def smallest(program: Program, fails: Callable[[Program], bool], defaults: smaller.Defaults | None = None) -> Program:
    """Return what is left; the first input must be given, as a library has it."""

    def asked(p: Program) -> bool:
        return (
            bool(p.inputs) and p.inputs[0].name == program.inputs[0].name and p.inputs[0].value is not None and fails(p)
        )

    return minimise(program, defaults or {}, Told(asked), lambda _: None)


@given(INSTANCES | GRAPHS)
@settings(max_examples=25)
def test_every_step_yields_a_program_that_can_be_stored(program: Program) -> None:
    for steps in PASSES:
        for step in list(steps(program, {}))[:40]:
            made = smaller.applied(step, program)
            if made is not None:
                assert parse(made.canonical()).canonical() == made.canonical()
                assert smaller.elements(made) <= smaller.elements(program), "nothing grows"


@given(INSTANCES | GRAPHS)
@settings(max_examples=10)
def test_a_search_ends_though_everything_fails_and_each_program_is_smaller(program: Program) -> None:
    kept = [program]
    last = minimise(program, {}, Told(lambda _: True), kept.append)
    order = [smaller.measure(x, {}) for x in kept]
    assert order == sorted(order, reverse=True) and len(set(order)) == len(order)
    assert last == kept[-1]
    odd = shapes.corners(program)
    assert not any(x and odd.get(name) is False for name, x in shapes.corners(last).items()), (
        "0-d and empty is another case"
    )


def test_classes_and_labels_lose_an_axis_together() -> None:
    program = onnx("SoftmaxCrossEntropyLoss", {"x": np.ones((1, 2, 1, 1), "f4"), "y": np.ones((1, 1, 1), "i8")})
    found = smallest(program, lambda p: len({len(x.shape) for x in smaller.leaves(p)}) == 2)
    assert [x.shape for x in smaller.leaves(found)] == [(1, 1), (1,)]


@given(tensors())
def test_the_cost_of_a_tensor_is_that_of_what_it_shows(tensor: Tensor) -> None:
    assert simpler.cost(tensor) >= 0
    zeros = simpler.ZERO(tensor)
    assert isinstance(zeros, Tensor) and zeros.shape == tensor.shape and zeros.dtype == tensor.dtype
    if tensor.dtype not in ("string", "float8_e8m0fnu"):
        first = "int" in tensor.dtype and tensor.array().all()
        assert zeros == tensor if first else simpler.cost(zeros) <= 1, "an integer tensor gets no first 0"


def test_the_one_element_that_matters_is_left_wherever_it_is() -> None:
    x = np.linspace(0.1, 4.7, 60, dtype=np.float32).reshape(3, 4, 5)
    x[1, 2, 3] = np.nan
    found = smallest(onnx("Abs", {"X": x}), lambda p: bool(np.isnan(smaller.leaves(p)[0].array()).any()))
    [left] = smaller.leaves(found)
    assert left.shape == (1,) and np.isnan(left.array())


def test_tensors_that_share_a_size_shrink_together_and_with_what_states_it() -> None:
    program = onnx(
        "RNN", {"X": np.ones((3, 2, 5), "f4"), "W": np.ones((1, 8, 5), "f4"), "R": np.ones((1, 8, 8), "f4")},
        hidden_size=8,
    )  # fmt: skip

    def consistent(p: Program) -> bool:
        shapes = [leaf.shape for leaf in smaller.leaves(p)]
        if len(shapes) != 3:
            return False
        x, w, r = shapes
        hidden = p.instances()[0].params.get("hidden_size")
        return len(x) == len(w) == len(r) == 3 and w[1] == r[1] == r[2] == hidden and x[2] == w[2]

    found = smallest(program, consistent)
    assert [leaf.shape for leaf in smaller.leaves(found)] == [(1, 1, 1)] * 3
    assert found.instances()[0].params == {"hidden_size": 1}


def test_a_parameter_that_decides_at_first_stays_though_others_would_do() -> None:
    program = onnx("RoiAlign", {"X": np.ones((1, 1, 4, 4), "f4")}, mode="max", output_height=3)

    def fails(p: Program) -> bool:  # a second failure hides behind the first: it comes with tiny inputs alone
        return p.instances()[0].params.get("mode") == "max" or smaller.elements(p) == 1

    found = smallest(program, fails, {"RoiAlign": {"mode": "avg", "output_height": 1}})
    assert found.instances()[0].params == {"mode": "max"} and smaller.elements(found) == 1


def test_axes_and_lists_with_an_entry_for_each_axis_go_together() -> None:
    program = onnx("MaxPool", {"X": np.ones((1, 1, 1, 3), "f4")}, kernel_shape=[1, 2], pads=[0, 1, 0, 1])

    def fails(p: Program) -> bool:
        [leaf], params = smaller.leaves(p), p.instances()[0].params
        spatial = len(leaf.shape) - 2
        kernel, pads = params.get("kernel_shape", []), params.get("pads", [])
        return spatial > 0 and len(kernel) == spatial and len(pads) == 2 * spatial and pads[-1] == 1

    found = smallest(program, fails)
    assert [leaf.shape for leaf in smaller.leaves(found)] == [(1, 1, 1)]
    assert len(found.instances()[0].params["pads"]) == 2


@pytest.mark.parametrize(("axes", "wanted"), [([2, 3], [1, 2]), ([3, 2], [2, 1]), ([-1, -2], [-1, -2])])
@pytest.mark.parametrize("as_input", [False, True])
def test_axes_move_with_the_tensor_and_are_no_sizes(axes: list[int], wanted: list[int], as_input: bool) -> None:
    inputs: dict[str, object] = {"X": np.ones((1, 1, 3, 3), "f4"), "scales": np.full(2, 0.5, "f4")}
    inputs |= {"axes": np.int64(axes)} if as_input else {}
    program = onnx("Resize", inputs, **({} if as_input else {"axes": axes}))

    def stated(p: Program) -> list[int]:
        held = [x.value.array().tolist() for x in p.inputs if x.name == "axes" and isinstance(x.value, Tensor)]
        return held[0] if held else p.instances()[0].params.get("axes", [])  # type: ignore[return-value]

    def fails(p: Program) -> bool:
        [rank, *_], given = [len(x.shape) for x in smaller.leaves(p)], {x.name for x in p.inputs if x.value is not None}
        fair = "scales" in given and len(stated(p)) == len(smaller.leaves(p)[1].array()) == 2
        return fair and rank > 2 and 0 not in [x % rank for x in stated(p)]

    found = smallest(program, fails)
    assert smaller.leaves(found)[0].shape == (1, 1, 1) and stated(found) == wanted


def test_arguments_leave_the_lists_that_say_how_a_call_was_written() -> None:
    context = {"kind": "function", "call": {"args": ["input", "kernel_size", "stride"], "kwargs": ["ceil_mode"]}}
    pool = Instance(
        "torch", "torch.nn.functional.max_pool2d", {"kernel_size": 2, "stride": 1, "ceil_mode": True},
        (Operand("input", Tensor.of(np.ones((1, 2, 2), "f4"))),), (), context,
    )  # fmt: skip
    known = {"torch.nn.functional.max_pool2d": {"stride": None, "ceil_mode": False}}
    found = smallest(pool, lambda p: "kernel_size" in p.instances()[0].params, known).instances()[0]
    assert found.params == {"kernel_size": 1}
    assert found.context["call"] == {"args": ["input", "kernel_size"], "kwargs": []}
    assert smaller.without(pool, "kernel_size") is None, "another argument stands behind it"


def test_floats_become_float32_with_what_names_their_dtype() -> None:
    context = {"kind": "function", "call": {"args": ["input"], "kwargs": ["dtype"]}}
    total = Instance(
        "torch", "torch.sum", {"dtype": Named("torch.dtype", "float64")},
        (Operand("input", Tensor.of(np.ones(2, "f8"))),), (), context,
    )  # fmt: skip
    found = smallest(total, lambda p: "dtype" in p.instances()[0].params).instances()[0]
    assert found.params == {"dtype": Named("torch.dtype", "float32")}
    assert [x.dtype for x in smaller.leaves(found)] == ["float32"]
    half = smallest(total, lambda p: any(x.dtype == "float64" for x in smaller.leaves(p)))
    assert [x.dtype for x in smaller.leaves(half)] == ["float64"], "a dtype that matters stays"


def test_a_random_tensor_is_written_out_once_it_is_small() -> None:
    program = onnx("Abs", {"X": RandomTensor("float32", (500, 3), 1, -2.0, 2.0)})
    found = smallest(program, lambda p: math.prod(smaller.leaves(p)[0].shape) >= 2)
    [left] = smaller.leaves(found)
    assert isinstance(left, Tensor) and left.array().tolist() == [1.0, 1.0]


def test_a_program_whose_values_hide_another_failure_is_passed_over() -> None:
    program = onnx("Abs", {"X": np.ones((4, 3), "f4")})

    def flat(p: Program) -> bool:
        return smaller.leaves(p)[0].shape[0] < 2

    found = minimise(
        program, {}, Told(lambda p: bool(p.inputs) and len(smaller.leaves(p)[0].shape) == 2, flat), lambda _: None
    )
    assert smaller.leaves(found)[0].shape == (2, 1)


def test_numbers_that_differ_take_the_place_of_equal_ones_alone() -> None:
    program = onnx(
        "Where", {"c": np.ones(2, "?"), "X": np.ones(2, "f4"), "Y": np.float32([5, 1]), "Z": np.ones((), "f4")}
    )
    held = [x.array().tolist() for x in smaller.leaves(smaller.differing(program))]
    assert held == [[True, True], [1.0, 2.0], [5.0, 1.0], 1.0]


def test_axes_of_one_size_shrink_in_line_with_those_of_other_tensors() -> None:
    program = onnx("LayerNormalization", {"X": np.ones((2, 3, 2), "f4"), "Scale": np.ones((3, 2), "f4")})

    def fails(p: Program) -> bool:
        shapes = [leaf.shape for leaf in smaller.leaves(p)]
        return len(shapes) == 2 and len(shapes[0]) == 3 and shapes[0][0] == 2 and shapes[0][1:] == shapes[1]

    assert [leaf.shape for leaf in smaller.leaves(smallest(program, fails))] == [(2, 1, 1), (1, 1)]


def test_unused_outputs_and_inputs_go() -> None:
    top = onnx(
        "TopK",
        {"X": np.ones(3, "f4"), "K": np.ones(1, "i8"), "more": None, "last": np.ones(1, "f4")},
        ("values", "indices"),
    )
    found = smallest(top, lambda p: sum(x.value is not None for x in p.inputs) >= 2).instances()[0]
    assert found.outputs in (("values",), ("", "indices")) and len(found.inputs) <= 3
    graph = ONNX["split-add-concat"]
    left = smallest(graph, lambda p: len(p.instances()) == 3)
    assert len(left.outputs) == 1 and msgspec.structs.replace(left, outputs=graph.outputs).calls


def test_what_two_calls_have_both_go_without() -> None:
    def relu(of: str, result: str, **params: float) -> Call:
        return Call("LeakyRelu", dict(params), (Argument("X", of),), (result,), {"opset": {"": 14}})

    defaults = {"LeakyRelu": {"alpha": 0.01}}
    given = (Operand("x", Tensor.of(np.ones(2, np.float32))),)
    for first in ({"alpha": 0.5}, {}):
        calls = (relu("x", "one", **first), relu("one", "y", alpha=0.25))
        program = Graph("onnx", given, calls, ("y",))
        (trait,) = [x for x in smaller.traits(program, defaults) if x.kind == "param"]
        assert trait.held(program, defaults)
        made = trait.without(program)
        assert made is not None and not trait.held(made, defaults)
        assert trait.without(made) is None


def test_a_positive_parameter_stays_positive() -> None:
    for value in (1e-5, 0.5, 7, (3, 4), [0.25]):
        items = [
            x for made in simpler.of_param("p", value) for x in (made if isinstance(made, list | tuple) else [made])
        ]
        assert all(x > 0 for x in items), (value, items)
    assert 0.0 in simpler.of_param("p", -2.5) and 1.0 in simpler.of_param("p", 0.5)


@given(st.sampled_from(["float32", "float16", "bfloat16", "int8"]), st.floats(0.1, 4.0))
def test_what_may_divide_stays_positive(dtype: str, scale: float) -> None:
    """A scale of 0.3 is no 0, nor rounded to it; the numbers that are scaled are what they please."""
    x = Operand("x", Tensor.of(np.float32([0.3, 2.5])))
    held = simpler.numbered(np.float64([scale, 1.5]), dtype)
    program = Instance("onnx", "Div", {}, (x, Operand("y", held)), ("o",), {})
    made = [y for step in smaller.values_of_tensors(program, {}) if (y := step(program)) is not None]
    zero = [smaller.leaves(y) for y in made]
    assert dtype == "int8" or all((simpler.numbers(y) > 0).all() for _, y in zero)
    assert any(not simpler.numbers(of).any() for of, _ in zero)


@given(st.lists(st.integers(-3, 9), min_size=1, max_size=4))
def test_a_list_keeps_an_element(value: list[int]) -> None:
    """Nothing to repeat is a case of its own, as is a tensor without elements."""
    made = list(simpler.of_param("repeats", value))
    assert all(made) and (len(value) == 1 or any(len(x) < len(value) for x in made))


@pytest.mark.parametrize(
    ("name", "axis", "size"),
    [
        ("axis", True, False), ("dim", True, False), ("start_dim", True, False), ("dim0", True, False), ("axes", True, False),
        ("keyword.batch_axis", True, False), ("embed_dim", False, True), ("key_dim", False, True), ("kdim", False, True),
        ("hidden_size", False, True), ("dimension_names", False, False),
    ],
)  # fmt: skip
def test_an_axis_is_no_size(name: str, axis: bool, size: bool) -> None:
    assert (smaller.is_axes(name), smaller.SIZED.search(name.rpartition(".")[2]) is not None) == (axis, size)


@given(st.integers(2, 500), st.data())
def test_a_limit_of_a_size_is_soon_found(size: int, data: st.DataObject) -> None:
    """Of the sizes that are tried, the first that is no smaller than the limit is taken, as a search does."""
    limit, taken = data.draw(st.integers(1, size)), 0
    while size > limit:
        tried = shapes.smaller_sizes(size)
        assert all(0 < x < size for x in tried) and len(set(tried)) == len(tried)
        size, taken = next(x for x in tried if x >= limit), taken + 1
    assert size == limit and taken <= 9


def test_all_defaults_go_at_once_though_a_parameter_is_required() -> None:
    given = {"units": 1, "activation": "tanh", "seed": None, "unroll": False}
    layer = keras_instance.instance("keras.layers.GRU", given, x=np.ones(1))
    known = {"keras.layers.GRU": {**given, "units": NO_DEFAULT}}
    left = [made.params for step in smaller.structure(layer, known) if (made := step(layer)) is not None]
    assert {} in left and {"units": 1} in left


def test_strings_that_do_not_matter_become_numbers() -> None:
    parts = values.Sequence("seq(tensor(string))", (Tensor.of(np.array(["a", "b"])),))
    program = Instance("onnx", "SequenceErase", {}, (Operand("s", parts),), ("y",), {})
    [step, *_] = smaller.dtypes(program, {})
    made = smaller.applied(step, program)
    assert made is not None and smaller.measure(made, {}) < smaller.measure(program, {})
    [leaf] = smaller.leaves(made)
    assert leaf == Tensor.of(np.array([1, 2], "f4")) and "seq(tensor(float32))" in str(made.inputs[0].value)


@pytest.mark.parametrize(
    ("dtype", "made"), [("complex128", True), ("int8", True), ("string", True), ("float32", False)]
)
def test_an_empty_sequence_of_an_exotic_dtype_becomes_one_of_floats(dtype: str, made: bool) -> None:
    """TVM stops at any sequence; of complex numbers nobody else runs it."""
    program = Instance("onnx", "SequenceLength", {}, (Operand("s", values.Sequence(dtype, ())),), ("y",), {})
    found = [smaller.applied(step, program) for step in smaller.dtypes(program, {})]
    fewer = [x for x in found if x is not None and smaller.measure(x, {}) < smaller.measure(program, {})]
    assert any(x.inputs[0].value.type == "float32" for x in fewer) is made


def test_floats_become_those_that_numpy_has_not_as_well() -> None:
    made = simpler.as_dtype(Tensor.of(np.float32([1.5, -2.0])), "float32", "bfloat16")
    assert made.dtype == "bfloat16" and isinstance(made, Tensor) and made.numbers().tolist() == [1.5, -2.0]


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float4_e2m1fn"])
def test_numbers_of_few_bits_are_finite_whatever_is_asked_for(dtype: str) -> None:
    made = simpler.numbered(np.array([np.inf, -np.inf, np.nan, 1.0]), dtype)
    numbers = simpler.numbers(made)
    assert np.isfinite(numbers).all() and numbers[3] == 1
    assert numbers[0] == numbers.max() > 1


@given(GRAPHS)
def test_a_call_whose_result_nothing_takes_goes_and_no_other(graph: Graph) -> None:
    assert smaller.unread_left_out(graph) in (graph, None)
    alone = Call("Constant", {"value": Tensor.of(np.ones(1, "f4"))}, (), ("nobody",), {"opset": {"": 21}})
    longer = msgspec.structs.replace(graph, calls=(alone, *graph.calls))
    assert smaller.unread_left_out(longer) == graph


def test_a_constant_goes_with_the_input_that_it_was() -> None:
    context = {"opset": {"": 20}}
    calls = (
        Call("Constant", {"value": Tensor.of(np.int64(2))}, (), ("n",), context),
        Call("DFT", {"inverse": 1}, (Argument("input", "x"), Argument("dft_length", "n")), ("y",), context),
    )
    program = Graph("onnx", (Operand("x", Tensor.of(np.ones((1, 2, 2), "f4"))),), calls, ("y",))
    fails = Told(lambda x: "DFT" in x.operators and [y.value is not None for y in x.inputs[:1]] == [True])
    found = minimise(program, {}, fails, lambda _: None)
    assert isinstance(found, Instance) and found.operators == ("DFT",)


def test_what_is_exotic_becomes_ordinary_all_at_once_and_before_all_else() -> None:
    asked: list[Program] = []

    def never(program: Program) -> bool:
        asked.append(program)
        return False

    added = onnx("Add", {"A": np.full((2, 2), 3, "u8"), "B": np.full((2, 2), 3, "u8")})
    smallest(added, never)
    whole = [dtypes for x in asked if (dtypes := {leaf.dtype for leaf in smaller.leaves(x)})]
    assert whole[0] == {"int64"} and all(len(x) == 1 for x in whole)
    parts = (Tensor.of(np.ones(2, "c16")), Tensor.of(np.ones(3, "c16")))
    found = smallest(onnx("SequenceAt", {"S": values.Sequence("complex128", parts)}), lambda _: True)
    [held] = (x.value for x in found.inputs)
    assert isinstance(held, values.Sequence) and (held.type, held.items[0].dtype) == ("float32", "float32")


def test_data_becomes_float32_where_that_fails_as_well_and_what_states_sizes_stays() -> None:
    """`matmul` of integers and truth values was read as a refusal of types."""
    mixed = onnx("MatMul", {"A": np.full((2, 2), 3), "B": np.full((2, 2), True), "axes": np.array([1])})
    found = smallest(mixed, lambda x: len([y for y in x.inputs if y.value is not None]) == 3)
    assert {x.name: getattr(x.value, "dtype", "") for x in found.inputs} == {
        "A": "float32",
        "B": "float32",
        "axes": "int64",
    }
    kept = smallest(mixed, lambda x: [getattr(y.value, "dtype", "") for y in x.inputs] == ["int64", "bool", "int64"])
    assert [getattr(x.value, "dtype", "") for x in kept.inputs] == ["int64", "bool", "int64"]


def test_inputs_that_belong_together_go_with_the_outputs_that_hang_on_them() -> None:
    """Attention wants a past key with a past value, and has what is present only of these."""
    held = Tensor.of(np.ones(2, np.float32))
    names = ("Q", "past_key", "past_value")
    call = Instance("onnx", "Attention", {}, tuple(Operand(x, held) for x in names), ("Y", "present_key", "qk"), {})
    made = [x for step in smaller.structure(call, {}) if isinstance(x := step(call), Instance)]
    without = [x.outputs for x in made if [y.name for y in x.inputs if y.value is not None] == ["Q"]]
    assert without == [("Y", "present_key", "qk"), ("Y",), ("", "present_key"), ("", "", "qk")]


@pytest.mark.parametrize("batch", [2, 8, 32])
def test_an_output_that_is_gone_is_kept_by_no_later_step(batch: int) -> None:
    held = Tensor.of(np.ones(2, np.float32))
    names = ("Q", "past_key", "past_value")
    call = Instance("onnx", "Attention", {}, tuple(Operand(x, held) for x in names), ("Y", "present_key", "qk"), {})
    told = Told(lambda x: {"past_key", "past_value"} <= {y.name for y in x.inputs if y.value is not None})
    told.batch = batch
    found = [call]
    minimise(call, {}, told, found.append)
    assert sum(map(bool, found[-1].outputs)) == 1


@given(
    st.sampled_from(sorted(DESCRIBED)), st.sampled_from(sorted(DESCRIBED)), st.floats(-1e20, 1e20), st.floats(0, 1e20)
)
def test_a_random_tensor_in_another_dtype_has_a_range_that_this_holds(
    one: str, other: str, low: float, wide: float
) -> None:
    """`opera reduce` ended in "a random bool tensor cannot have seed 0 and range 0..99"."""
    try:
        drawn = RandomTensor(one, (2,), 0, low, low + wide)
    except CorpusError:
        return
    made = simpler.as_dtype(drawn, one, other)
    assert isinstance(made, RandomTensor) and made.dtype in (one, other) and made.tensor().shape == (2,)
    assert made.dtype == other or not (low <= 0 <= low + wide)
