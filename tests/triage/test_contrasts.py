"""What becomes of a program when one thing of it is changed alone."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opera.programs.program import Argument, Call, Graph, Instance, Operand
from opera.programs.values import Message, Optional, Sequence, Tensor
from opera.triage import contrasts
from opera.triage.contrasts import FAILS, LIKEWISE, OTHERWISE, PASSES, WRONG, Contrast, change, rows


def call(*arrays: Any, opset: int = 22, **params: Any) -> Instance:
    held = tuple(Operand(f"x{n}", None if x is None else Tensor.of(np.asarray(x))) for n, x in enumerate(arrays))
    return Instance("onnx", "Any", params, held, ("y",), {"opset": {"": opset}})


DATA = np.array([[1, 2, 3]], np.float32)
OWN = call(DATA, bias=0.8)


@pytest.mark.parametrize(
    ("program", "wanted"),
    [
        (call(DATA, bias=1.0), ("bias", "0.8", "1.0", True)),
        (call(DATA), ("bias", "0.8", "left out", True)),
        (call(DATA, bias=0.8, size=3), ("size", "left out", "3", True)),
        (call(DATA, bias=0.8, opset=21), ("opset", "22", "21", True)),
        (call(DATA + 1, bias=1.0), ("bias", "0.8", "1.0", False)),  # its numbers are others, too
        (call(DATA.astype(np.int8), bias=0.8), ("dtype", "float32", "int8", True)),
        (call(np.int8([[7, 7, 7]]), bias=0.8), ("dtype", "float32", "int8", False)),
        (call(np.ones((2, 2), np.float32), bias=0.8), ("shape", "1x3", "2x2", True)),
        (call(np.float32(1), bias=0.8), ("shape", "1x3", "0-d", True)),
        (call(np.float32([[4, 4, 4]]), bias=0.8), ("x0", "[1, 2, 3]", "all 4", True)),
        (call(DATA, np.int64([1]), bias=0.8), ("x1", "left out", "int64([1])", True)),
        (call(DATA, bias=1.0, size=3), None),
        (call(DATA.astype(np.int8), bias=1.0), None),
        (call(np.ones((2, 2), np.int8), bias=0.8), None),
        (OWN, None),
        (call(DATA.astype(np.int8), to=3), None),  # of another dtype by a parameter as well
    ],
)
def test_the_one_thing_in_which_programs_differ_is_told(program, wanted):
    found = change(program, OWN)
    assert (found and (found.what, found.own, found.now, found.alone)) == wanted


def test_of_wrong_numbers_no_dtype_is_told_that_does_not_hold_them():
    own = call(np.int8([-1, -2]))
    shown = [(call(np.uint8([7, 7])), FAILS), (call(np.int16([-1, -2])), FAILS)]
    assert contrasts.contrasts(own, shown, value=True) == (Contrast("dtype", "int8", ("int16",)),)
    assert change(call(np.uint8([255, 254])), own).alone
    small = call(np.float32([-0.6, 1]))
    assert not contrasts.contrasts(small, [(call(np.int64([-1, 1])), PASSES)], value=True), "0 it is, or -1"
    shown[0] = call(np.uint8([255, 254])), FAILS
    assert contrasts.contrasts(own, shown) == (Contrast("dtype", "int8", ("int16", "uint8")),)
    assert contrasts.contrasts(own, shown, value=True) == (Contrast("dtype", "int8", ("int16",)),)


@pytest.mark.parametrize("others", [np.int64([1]), np.array(["b"], object)])
def test_texts_are_no_numbers(others):
    own, program = call(np.array(["a"], object)), call(others)
    for one, other in ((own, program), (program, own)):
        contrasts.contrasts(one, [(other, FAILS)], value=True)
        list(contrasts.alone(one, [other], wrong=True))
    found = change(program, own)
    assert (found and found.what) == (None if others.dtype == object else "dtype")


def test_of_several_tensors_it_is_told_which():
    own = call(DATA, DATA)
    assert change(call(DATA.astype("f8"), DATA), own)[:3] == ("dtype of x0", "float32", "float64")
    assert change(call(DATA.astype("f8"), DATA.astype("f8")), own)[:3] == ("dtypes of x0, x1", "float32", "float64")
    assert change(call(DATA, DATA[:, :1]), own)[:3] == ("shape of x1", "1x3", "1x1")
    assert change(call(DATA[0], DATA[0]), own)[:3] == ("shapes of x0, x1", "1x3", "3")


def test_a_parameter_may_be_called_as_what_a_tensor_has():
    own = call(DATA, shape=[3])
    shown = [
        (call(DATA, shape=[1, 3]), FAILS), (call(DATA[0], shape=[3]), FAILS), (call(DATA * 5, shape=[3]), PASSES),
        (call(DATA.astype("f8"), shape=[3]), FAILS), (call(DATA, shape=[3], dtype="int8"), FAILS),
    ]  # fmt: skip
    told = contrasts.contrasts(own, shown)
    assert {x.what: x.fails for x in told if x.fails} == {
        "shape": ("[1, 3]",), "shape of x0": ("3",), "dtype": ("'int8'",), "dtype of x0": ("float64",),
    }  # fmt: skip
    told = contrasts.contrasts(own, shown, value=True)
    assert [x.what for x in told if "shape" in x.what] == ["shape"], "with other numbers it passes: no shape is told"


@pytest.mark.parametrize(
    ("number", "told"),
    [(16777217, "[16777217]"), (2.0**31, "[2147483648]"), (0.1234567, "[0.123457]"), (1e30, "[1e+30]")],
)
def test_whole_numbers_are_told_in_full(number, told):
    assert change(call(np.array([number])), call(np.array([number * 0 + 1]))).now == told


def test_another_body_is_no_change_that_anybody_could_read():
    """TVM's branch of `If` that returns an empty optional: its bytes were told."""
    one, other = (Message("onnx.GraphProto", x) for x in (b"one", b"other"))
    assert change(call(DATA, then_branch=one), call(DATA, then_branch=other)) is None


def test_a_number_may_stand_for_a_tensor():
    own = Instance(
        "torch", "torch.eq", {}, (Operand("input", Tensor.of(DATA)), Operand("other", Tensor.of(DATA))), ("y",), {}
    )
    made = Instance("torch", "torch.eq", {"other": 2}, own.inputs[:1], ("y",), {})
    assert change(made, own)[:3] == ("other", "float32[1, 3]", "the number 2")


def test_how_a_call_is_written_is_no_change_of_its_own():
    """A parameter of PyTorch's that is given stands among the names of its call."""

    def combinations(**params: int) -> Instance:
        context = {"kind": "function", "call": {"args": ["input"], "kwargs": [*params]}}
        held = (Operand("input", Tensor.of(np.float32([0, 1]))),)
        return Instance("torch", "torch.combinations", dict(params), held, (), context)

    assert change(combinations(r=0), combinations())[:3] == ("r", "left out", "0")
    held = (Operand("input", Tensor.of(np.float32([5, 6]))),)
    seen = msgspec.structs.replace(combinations(r=0), inputs=held)
    assert [*contrasts.alone(combinations(), [seen])] == [combinations(r=0)], "its call names what it is given"


def test_a_list_is_a_tuple_and_an_integer_no_float():
    assert change(call(DATA, axes=(1, 2), size=2), call(DATA, axes=[1, 2], size=1))[:3] == ("size", "1", "2")
    assert change(call(DATA, other=2.0), call(DATA, other=2))[:3] == ("other", "2", "2.0")


def test_of_several_calls_it_is_told_whose_parameter_it_is():
    def graph(axis: int) -> Graph:
        calls = (
            Call("Relu", {}, (Argument("X", "x"),), ("y",), {}),
            Call("Softmax", {"axis": axis}, (Argument("input", "y"),), ("z",), {}),
        )
        return Graph("onnx", (Operand("x", Tensor.of(DATA)),), calls, ("z",))

    assert change(graph(1), graph(0))[:3] == ("axis of Softmax", "0", "1")
    other = msgspec.structs.replace(graph(0), calls=graph(0).calls[:1], outputs=("y",))
    assert change(other, graph(0)) is None


def test_what_differs_in_numbers_besides_is_asked_about_with_those_of_the_program():
    seen = [
        call(DATA + 1, bias=1.0),
        call(DATA + 2, bias=1.0),
        call(DATA, bias=2.0),
        call((DATA + 1).astype("i4"), bias=0.8),
    ]
    assert [*contrasts.alone(OWN, seen)] == [call(DATA, bias=1.0), call(DATA.astype("i4"), bias=0.8)]


def test_a_wrong_output_of_another_shape_is_asked_about_with_several_numbers():
    ones = call(np.ones((1, 2), np.float32), bias=0.8)
    opposite = call(np.float32([[3, 2, 1]]), bias=0.8)
    negative = call(-DATA, bias=0.8)
    assert [*contrasts.alone(OWN, [ones], wrong=True)] == [opposite, negative, call(np.float32([[1, 2]]), bias=0.8)]
    other = call(DATA, np.float32([1, 0.5]))
    made = [y.value.array().tolist() for x in contrasts.alone(other, [], wrong=True) for y in x.inputs[1:]]
    assert made == [[1, 1]] + [[1, 0.5]] * 2 + [[0.5, 1], [-1, -0.5], [1, 0.25], [1, 1]]
    assert [*contrasts.alone(OWN, [ones])] == [call(np.float32([[1, 2]]), bias=0.8)], "its own numbers, of a crash"
    several = [
        x.inputs[0].value.array() for x in contrasts.alone(OWN, [call(np.ones((2, 3, 4), "f4"), bias=0.8)], wrong=True)
    ]
    assert any(x.shape == (2, 3, 4) and (x[0] != x[1]).all() for x in several), "along no axis all are equal"
    shown = [(ones, PASSES), (call(np.float32([[1, 2]]), bias=0.8), FAILS), (ones, PASSES)]
    assert contrasts.contrasts(OWN, shown) == (Contrast("shape", "1x3", ("1x2",)),)


@pytest.mark.filterwarnings("error")
def test_numbers_that_cannot_be_twice_as_large_are_not_asked_about():
    """The largest float64, twice: NumPy warned, and users saw it."""
    own = call(DATA, np.float64([1.7976931348623157e308]))
    seconds = [x.inputs[1].value.array().tolist() for x in contrasts.alone(own, [], wrong=True)]
    assert [8.988465674311579e307] in seconds and not any(np.isinf(seconds))


def test_of_a_constant_that_the_model_holds_the_numbers_are_told():
    own, other = (call(DATA, value=Tensor.of(np.float32([1, x]))) for x in (0.75, 0.375))
    assert change(other, own)[:3] == ("value", "[1, 0.75]", "[1, 0.375]")


def test_other_texts_of_the_corpus_are_asked_about_the_shortest_first():
    """`einsum` of one equation may be wrong, and right of another."""
    own, corpus = call(DATA, equation="ij->"), [call(DATA, equation=x) for x in ("ij->ji", "ij->", "ij")]
    found = list(contrasts.alone(own, [], corpus=corpus))
    assert [x.params["equation"] for x in found] == ["ij", "ij->ji"]
    many = [call(DATA, equation="i" * n) for n in range(100)]
    assert len([*contrasts.alone(own, [], corpus=many)]) == contrasts.TEXTS


def test_what_a_call_leaves_out_is_asked_about_as_tests_of_the_corpus_give_it():
    """`take_along_dim` fails where `dim` is left out alone: nothing told so."""
    corpus = [call(DATA, dim=x, other=None, x0=2) for x in (1, 0, -1, 1)]  # of a name that is an input's
    found = list(contrasts.alone(call(DATA, bias=0.8), [], corpus=corpus))
    assert [x.params for x in found] == [{"bias": 0.8, "dim": 0}, {"bias": 0.8, "dim": 1}]
    shown = [(x, PASSES) for x in found]
    assert [(x.what, x.own, x.passes) for x in contrasts.contrasts(call(DATA, bias=0.8), shown)] == [
        ("dim", "left out", ("0", "1"))
    ]


def test_the_opposite_order_of_its_numbers_is_told_before_others():
    others = [(call(np.full((1, 3), n, np.float32), bias=0.8), PASSES) for n in range(7)]
    [found] = contrasts.contrasts(OWN, [*others, (call(DATA[:, ::-1], bias=0.8), PASSES)])
    assert len(found.passes) == 6 and "[3, 2, 1]" in found.passes


def test_each_thing_is_a_row_and_what_passes_comes_first():
    shown = [
        (call(np.ones((2, 2), np.float32), bias=0.8), FAILS),
        (call(DATA, bias=1.5), FAILS),
        (call(DATA, bias=2.0), PASSES),
        (call(DATA, bias=10.0), PASSES),
        (call(DATA), OTHERWISE),
        (call(DATA + 1, bias=3.0), PASSES),
    ]
    found = contrasts.contrasts(OWN, shown)
    assert found == (
        Contrast("bias", "0.8", ("1.5",), ("2.0", "10.0"), ("left out",)),
        Contrast("shape", "1x3", ("2x2",)),
    )
    assert [*rows(found, wrong=True)] == [
        "bias: wrong for 0.8, 1.5; right for 2.0, 10.0; wrong otherwise where left out",
        "wrong with all others that were tried of shape (2x2)",
    ]
    assert [*rows((Contrast("dtype", "int8", ("int16",)),), wrong=False)] == ["dtype: fails so for int8, int16"]
    worded = (Contrast("dtype", "uint8", (), ("int64",), (), ("float16", "float32")),)
    assert [*rows(worded, wrong=False)] == [
        "dtype: fails so for uint8; likewise, with other dtypes or numbers in the message, for float16, float32; runs for int64"
    ]
    finer = (
        Contrast("dtype", "float64", passes=("float16", "float32")),
        Contrast("dtype", "float32", passes=("float64",)),
    )
    assert [*rows(finer, wrong=True, value=True)] == [
        "dtype: wrong for float64; right, each within its own tolerance, for float16, float32",
        "dtype: wrong for float32; right for float64",
    ]
    assert next(rows(finer, wrong=True)) == "dtype: wrong for float64; right for float16, float32", "a shape has none"
    assert [*rows((Contrast("k", "1"),), wrong=True)] == [], "what an older opera stored, with another thing in it"
    worse = (Contrast("factor", "1", passes=("2",), wrong=("5",)),)
    assert [*rows(worse, wrong=False)] == ["factor: fails so for 1; runs for 2; gives wrong outputs for 5"]
    assert next(rows(found, wrong=True, within=1e-07)).startswith(
        "bias: wrong for 0.8, 1.5; right within 1e-07 for 2.0"
    )
    of_lists = (Contrast("axes", "[1, 2]", (), ("[1]", "left out")),)
    assert next(rows(of_lists, wrong=False)) == "axes: fails so for [1, 2]; runs for [1] and where left out"


@pytest.mark.parametrize(
    ("what", "name"),
    [("dilation", "dilation"), ("dtype of x", "x"), ("shapes of x, w", "w"), ("axis of Softmax", "Softmax")],
)
def test_what_a_row_is_about_has_a_name(what, name):
    assert Contrast(what, "1").name == name


def test_how_an_input_comes_to_the_model_is_told_as_such():
    assert [*contrasts.comes(["indices is no constant", "a negative number in x"], OWN)] == [
        Contrast("how indices comes to the model", "an input", passes=("a constant written into the call",))
    ]
    held = (Tensor.of(DATA),)
    for items, made in (
        ((), "SequenceEmpty"),
        (held, "SequenceConstruct"),
    ):  # of what SplitToSequence makes it may fail
        listed = msgspec.structs.replace(OWN, inputs=(Operand("xs", Sequence("float32", items)),))
        assert [x.passes for x in contrasts.comes(["xs is a graph input"], listed)] == [(f"what {made} makes",)]
    assert [x.passes for x in contrasts.comes(["x is a graph input"], OWN)] == [("what a negation makes",)]


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (Optional("float32", Tensor.of(np.ones((2, 3), np.float32))), "an optional that holds float32[2, 3]"),
        (Optional("int32", None), "an optional that holds no int32"),
        (Sequence("float32", (Tensor.of(DATA),) * 2), "a sequence of 2 float32"),
    ],
)
def test_what_is_no_tensor_is_told_in_words(value: Any, told: str) -> None:
    """The beginning of a representation (`Optional(type='float32', value=Tensor(dtype=…`) was printed in drafts."""
    empty = Instance("onnx", "OptionalHasElement", {}, (Operand("input", None),), ("y",), {"opset": {"": 18}})
    made = msgspec.structs.replace(empty, inputs=(Operand("input", value),))
    assert change(made, empty) == contrasts.Change("input", "left out", told)


def test_a_call_that_is_not_made_in_training_mode_is_told_as_such():
    """Keras calls `RandomInvert` in training mode where nothing is said: "right where left out" read as that."""
    trains = msgspec.structs.replace(OWN, context={**OWN.context, "training": True})
    assert [*change(OWN, trains)[:3]] == ["training", "True", "False"]


def test_of_another_shape_its_own_numbers_are_asked_about():
    """A division by 0 was told to run for shapes whose numbers had none."""
    own, other = call(np.float32([1, 0])), call(np.float32([[1, 2, 3]]))
    [made] = contrasts.alone(own, [other])
    assert made.inputs[0].value.array().tolist() == [[1, 0, 1]]
    shown = [(other, PASSES), (made, FAILS)]
    assert contrasts.contrasts(own, shown) == (Contrast("shape", "2", ("1x3",)),)
    small = call(np.int64([1, 2]), np.int64([0, 0]))
    [made] = contrasts.alone(small, [call(np.int64([[1, 2, 3]]), np.int64([[3, 3, 3]]))])
    assert [x.value.array().tolist() for x in made.inputs] == [[[1, 2, 1]], [[0, 0, 0]]], "integers, too"


def test_of_wrong_numbers_neither_nothing_nor_other_shapes_of_many_numbers_are_told_to_be_right():
    few, many = call(np.float32([1, 2])), call(np.arange(8, dtype=np.float32))
    empty, other = call(np.zeros((0, 2), np.float32)), call(np.float32([3]))
    assert not contrasts.contrasts(few, [(empty, PASSES)], value=True)
    assert contrasts.contrasts(few, [(other, PASSES), (empty, FAILS)], value=True)[0].fails == ("0x2",)
    nothing = call(np.zeros((0,), np.float32))
    assert contrasts.contrasts(nothing, [(empty, PASSES)], value=True)[0].passes == ("0x2",), (
        "of nothing it says something"
    )
    assert not contrasts.contrasts(many, [(other, PASSES)], value=True) and contrasts.contrasts(many, [(other, PASSES)])


def test_what_is_left_out_is_asked_about_with_its_default_written_out() -> None:
    """TVM's HardSigmoid of float64 takes a double 0.2 for an alpha that the schema holds in float32."""
    defaults = {OWN.operator: {"bias": 1.0, "size": 5, "alpha": 0.2, "axis": None, "mode": "x"}}
    found = list(contrasts.alone(OWN, [], defaults=defaults))
    assert [x.params for x in found] == [{**OWN.params, "alpha": 0.2}, {**OWN.params, "size": 5}]
    assert contrasts.contrasts(OWN, [(found[0], PASSES)]) == (Contrast("alpha", "left out", passes=("0.2",)),)


def test_numbers_that_are_about_the_same_are_told_once():
    """`amax` was told to be wrong for [nan, 3.61161], [nan, 3.61], [nan, 3.6] and [nan, 4]."""
    shown = [(call(DATA, bias=x), FAILS) for x in (3.61161, 3.61, 3.6, 4.0, -3.6)]
    [row] = contrasts.contrasts(OWN, shown)
    assert row.fails == ("-3.6", "3.6", "4.0")
    [row] = contrasts.contrasts(OWN, [(call(DATA, bias=1), FAILS), (call(DATA, bias=1.0), FAILS)])
    assert row.fails == ("1", "1.0"), "which are two"


def test_a_shape_that_is_right_with_some_numbers_says_nothing_where_its_own_is_right_with_others():
    shown = [
        (call(np.ones((1, 2), np.float32), bias=0.8), PASSES),
        (call(np.ones((2, 2), np.float32), bias=0.8), FAILS),
    ]
    numbers_matter = [*shown, (call(DATA * 2, bias=0.8), PASSES)]
    by_what = {x.what: x for x in contrasts.contrasts(OWN, numbers_matter, value=True)}
    assert by_what.keys() == {"x0"} and by_what["x0"].passes
    assert contrasts.contrasts(OWN, shown, value=True)[0].passes == ("1x2",)
    zeros = [*shown, (call(np.zeros((1, 3), np.float32), bias=0.8), PASSES)]
    assert contrasts.contrasts(OWN, zeros, value=True)[0].passes == ("1x2",)
    assert contrasts.contrasts(OWN, numbers_matter)[0].passes


numbers = st.integers(-3, 3)


@given(st.lists(st.tuples(numbers, numbers, st.sampled_from([FAILS, PASSES, OTHERWISE, LIKEWISE, WRONG])), max_size=12))
def test_nothing_is_told_that_was_not_seen(tried):
    """No value stands on two sides, and each was seen to do as is said, all else being as it is."""
    own = call(DATA, a=0, b=0)
    shown = {call(DATA, a=a, b=b).id: (call(DATA, a=a, b=b), how) for a, b, how in tried}
    found = contrasts.contrasts(own, shown.values())
    for x in found:
        told = (
            (x.fails, FAILS),
            (x.passes, PASSES),
            (x.otherwise, OTHERWISE),
            (x.likewise, LIKEWISE),
            (x.wrong, WRONG),
        )
        for values, how in told:
            for value in values:
                of = call(DATA, **{"a": 0, "b": 0, x.what: int(value)})
                assert shown[of.id] == (of, how)
    assert len({x.what for x in found}) == len(found)


def test_of_many_sizes_those_are_told_between_which_it_passes_no_more():
    shown = [(call(np.ones((1, n), np.float32)), FAILS) for n in (*range(1, 12), 500, 750, 999)]
    shown += [(call(np.ones((1, n), np.float32)), PASSES) for n in (1000, 1016, 1048, 2064, 4096)]
    [row] = contrasts.contrasts(call(np.ones((1, 32), np.float32)), shown)
    assert row.fails == ("1x1", "1x2", "1x3", "1x4", "1x5", "1x999") and "1x1000" in row.passes


def test_what_is_no_number_has_no_border():
    """NaN is as close to nothing as to anything: `min` would keep whichever pair comes first."""
    told = {str(x): (how, change(call(DATA, bias=x), OWN)) for x, how in (
        (np.nan, FAILS), (np.inf, PASSES), (5.0, FAILS), (4.0, PASSES), (-np.inf, PASSES),
    )}  # fmt: skip
    assert contrasts._border(told) == ("5.0", "4.0")
