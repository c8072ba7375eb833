"""Which findings are filed after another, of which they may be a second sight."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import msgspec
import numpy as np
import pytest
from caused import VALUE, program, reduced, tensor
from hypothesis import given
from hypothesis import strategies as st

from opera.programs.values import Tensor
from opera.programs.verdicts import ABORT, CRASH, INCONSISTENT, REFUSED, Outcome, Seen
from opera.triage.distinct.dividing import Reduced
from opera.triage.distinct.following import First, GivenOtherwise, Sight, Turn, by_one_way, closure, conclude, standing
from opera.triage.sentence import RETURNED

E = "e"
KILLED = Outcome(ABORT, "infer", "SIGSEGV", "")


def crash(message: str, place: str = "", operator: str = "Conv", **more: object) -> Reduced:
    shown = Outcome(CRASH, "load", "RuntimeError", message, conversion_function=place)
    return reduced("F2", "t2", program(operator), outcome=shown, **more)  # type: ignore[arg-type]


def following(found: Sequence[Reduced], origins: Mapping[str, Collection[str]] | None = None) -> dict[str, list[str]]:
    """Return finding → those before it; the order of `found` is that in which they were found."""
    sights = [
        Sight(x.finding, (not x.reduction.whatever, float(n), x.finding), x.reduction) for n, x in enumerate(found)
    ]
    made = {(name, E): of for name, of in (origins or {}).items()}
    return {name: [x.finding for x in of] for (name, _), of in conclude(sights, made).items()}


@pytest.mark.parametrize(
    ("one", "other", "follows"),
    [
        (reduced("F1", "t1", program()), reduced("F2", "t2", program()), True),
        (reduced("F1", "t1", program("Conv1d")), reduced("F2", "t2", program("Conv2d")), True),
        (reduced("F1", "t1", program()), reduced("F2", "t2", program("Pad")), False),
        (reduced("F1", "t1", program()), reduced("F2", "t2", program(), outcome=KILLED), False),
        (reduced("F1", "t1", program()), reduced("F2", "t2", program(), environment="another"), False),
        (
            reduced("F1", "t1", program("Abs"), besides=("bfloat16 inputs",)),
            reduced("F2", "t2", program("Cast"), circumstances=("bfloat16 dtype (stated, or the input's)",)),
            True,
        ),
        (
            reduced("F1", "t1", program("Abs"), besides=("bfloat16 inputs",)),
            reduced("F2", "t2", program("Cast"), besides=("float16 inputs",)),
            False,
        ),
    ],
)
def test_what_was_found_beside_another_follows_it_by_operator_or_dtype(
    one: Reduced, other: Reduced, follows: bool
) -> None:
    assert following([one, other], {"F2": ["F1"]}) == ({"F2": ["F1"]} if follows else {})
    assert following([one, other]) == {}, "what a test of the library's shows by itself follows nothing"


@pytest.mark.parametrize(("dtype", "variant", "follows"), [
    ("bfloat16 inputs", "inputs", True), ("float16 inputs", "inputs", False), ("bfloat16 inputs", "constants", False),
])  # fmt: skip
def test_what_a_dtype_decides_that_a_route_does_not_know_follows_that(dtype: str, variant: str, follows: bool) -> None:
    """It does so though it was found first."""
    whatever = reduced("F1", "t1", program("Abs"), besides=("bfloat16 inputs",), whatever=True,
                       outcome=Outcome(CRASH, "infer", "RuntimeError", "set a tensor"))  # fmt: skip
    other = reduced("F2", "t2", program("Round", decimals=1), "decimals=1", besides=(dtype,),
                    outcome=Outcome(CRASH, "compile", "RuntimeError", "no type"))  # fmt: skip
    other = other._replace(reduction=msgspec.structs.replace(other.reduction, variant=variant))
    assert following([other, whatever]) == ({"F2": ["F1"]} if follows else {})


@pytest.mark.parametrize(
    ("operator", "symptom", "says", "follows"),
    [
        ("Conv2d", "dtype", "non-float32 inputs", True),
        ("Conv2d", "shape", "non-float32 inputs", False),
        ("Conv2d", "dtype", "float16 inputs", False),
        ("Pad", "dtype", "non-float32 inputs", False),
    ],
)
def test_what_stops_where_dtypes_decide_follows_a_wrong_dtype_of_the_same(
    operator: str, symptom: str, says: str, follows: bool
) -> None:
    """TVM's convolutions return float32 of float64: without a bias that is wrong, with one it stops at the sum of both."""
    wrong = Outcome(INCONSISTENT, "infer", symptom, "float64 is expected, float32 was returned")
    stops = Outcome(CRASH, "load", "TypeError", "both must have the same datatype")
    found = [
        reduced("F1", "t1", program("Conv1d"), besides=("non-float32 inputs",), outcome=wrong),
        reduced("F2", "t2", program(operator), besides=(says, "input bias"), outcome=stops),
    ]
    assert following(found) == ({"F2": ["F1"]} if follows else {})


@pytest.mark.parametrize(
    ("other", "follows"),
    [
        (crash("min and max differ", "Conv@conv.cpp:56"), True),
        (crash("min and max differ", "Other@conv.cpp:56"), True),
        (crash("min and max differ", "Conv@conv.cpp:57"), False),
        (crash("ranks differ", "Conv@conv.cpp:56"), False),
        (crash("min and max differ", "Pad@conv.cpp:56", "Pad"), False),
    ],
)
def test_what_stops_at_one_place_in_the_same_words_follows_the_first(other: Reduced, follows: bool) -> None:
    shown = Outcome(CRASH, "load", "RuntimeError", "min and max differ", conversion_function="Conv@conv.cpp:56")
    first = reduced("F1", "t1", program(value=Tensor.of(np.ones((2, 3), np.float32))), "mode=1", outcome=shown)
    assert following([first, other]) == ({"F2": ["F1"]} if follows else {})


@pytest.mark.parametrize(("becomes", "says", "follows"), [
    ("FULLY_CONNECTED", "Reshape error: 40 -> 5 in onForward", True),
    ("BATCH_MATMUL", "Reshape error: 40 -> 5 in onForward", False),
    ("FULLY_CONNECTED", "a constant tensor is no input", False),
])  # fmt: skip
def test_what_stops_at_one_operator_of_a_file_follows_the_first(becomes: str, says: str, follows: bool) -> None:
    """MNN's Reshape before FULLY_CONNECTED stops Dense, matmul, and the two that Keras makes of these."""
    first = crash("Reshape error: 768 -> 64 in onForward", "FULLY_CONNECTED", "Dense")
    first = first._replace(finding="F1")
    other = crash(says, becomes, "matmul")
    assert following([first, other]) == ({"F2": ["F1"]} if follows else {})


@pytest.mark.parametrize(
    ("types", "besides", "follows"),
    [(("f64", "f32"), (), True), (("i64", "i32"), (), False), (("f64", "f32"), ("an empty input",), False)],
)
def test_what_stops_in_the_same_words_follows_the_first_whatever_its_operator(
    types: tuple[str, str], besides: tuple[str, ...], follows: bool
) -> None:
    """`cdist` and `pairwise_distance` of float64 on OpenVINO have one helper."""
    said = "Arguments do not have the same element type (arg0 element type: {}, arg1 element type: {})"
    first, says = crash(said.format("f64", "f32"), "aten::cdist", "cdist")._replace(finding="F1"), said.format(*types)
    assert following([first, crash(says, "aten::pairwise", "pairwise", besides=besides)]) == (
        {"F2": ["F1"]} if follows else {}
    )


@pytest.mark.parametrize(("node", "follows"), [("MaxPool", True), ("Pad", False)])
def test_what_a_checker_refuses_at_nodes_of_one_operator_follows_the_first(node: str, follows: bool) -> None:
    """`max_pool2d` and `max_pool3d` of integers, which ONNX's MaxPool does not take."""
    says = "(op_type:{}, node name: f/1): X typestr: T, has unsupported type: tensor(int64)"
    first, other = (
        reduced(f"F{n}", f"t{n}", program(f"max_pool{n}d", mode=n), frontend="onnxexport-torch",
                outcome=Outcome(CRASH, "compile", "InferenceError", says.format(name)))
        for n, name in ((1, "MaxPool"), (2, node))
    )  # fmt: skip
    assert following([first, other]) == ({"F2": ["F1"]} if follows else {})


def test_of_wrong_answers_the_words_are_opera_s_own_and_tell_nothing() -> None:
    found = [reduced("F1", "t1", program(mode=1), outcome=VALUE), reduced("F2", "t2", program(value=tensor(2.0)))]
    assert following(found) == {}


def test_only_what_is_ready_comes_before_another_and_what_stands_before_that() -> None:
    firsts = {("F3", E): (First("F2", "beside"),), ("F2", E): (First("F1", "at one place"),)}
    assert standing(("F3", E), firsts, {("F1", E)}) == [First("F1", "F2 may be of one cause with both")]
    assert standing(("F3", E), firsts, {("F1", E), ("F2", E)})[0] == First("F2", "beside")
    assert standing(("F3", E), firsts, {("F1", "another")}) == []
    assert standing(("F1", E), firsts, {("F1", E), ("F2", E)}) == []
    assert closure("F3", firsts) == {"F1", "F2", "F3"}


def test_of_several_at_one_place_the_next_is_first_where_something_speaks_against_the_first() -> None:
    shown = Outcome(CRASH, "load", "RuntimeError", "min and max differ", conversion_function="Conv@conv.cpp:56")
    found = [reduced(f"F{n}", f"t{n}", program(mode=n), f"mode={n}", outcome=shown) for n in range(3)]
    sights = [Sight(x.finding, (True, float(n), x.finding), x.reduction) for n, x in enumerate(found)]
    firsts = conclude(sights, {})
    told = [x.finding for x in standing(("F2", E), firsts, {("F1", E), ("F2", E)})]
    assert (told, standing(("F1", E), firsts, {("F1", E), ("F2", E)})) == (["F1"], [])


def test_what_runs_as_soon_as_the_model_is_given_otherwise_follows_the_one_before() -> None:
    """OpenVINO drops an unused input of an exported program, and hands the shapes of `input=` to those that are left."""
    ages = {name: (True, age, name) for name, age in (("F2", 1.0), ("F1", 2.0), ("F3", 3.0), ("F4", 4.0))}
    way = "without input="
    given = [
        GivenOtherwise("F1", E, "openvino-torch", way), GivenOtherwise("F2", E, "openvino-torch", way),
        GivenOtherwise("F4", E, "openvino-torch", way), GivenOtherwise("F3", E, "openvino-onnx", way),
        GivenOtherwise("F3", "other", "openvino-torch", way),
    ]  # fmt: skip
    found = by_one_way(Turn({("F3", E): (First("F1", "beside"),)}, ages), given)
    says = f"both run by {way}"
    assert found == {
        ("F1", E): (First("F2", says),), ("F4", E): (First("F1", says),), ("F3", E): (First("F1", "beside"),)
    }  # fmt: skip
    known = {("F1", E): (First("F2", "beside"),)}
    assert by_one_way(Turn(known, ages), given[:2]) == known, "once is enough"


@pytest.mark.parametrize(
    ("says", "symptom", "follows"),
    [(RETURNED, "dtype", True), (RETURNED, "shape", False), ("float16 inputs", "dtype", False)],
)
def test_what_is_wrong_of_what_a_model_returns_alone_follows_another_such(
    says: str, symptom: str, follows: bool
) -> None:
    """PyTorch's exporter takes outputs by the names that they had before it cast them back: of `abs` and of `any`."""
    one, other = (Outcome(INCONSISTENT, "infer", x, "wrong") for x in ("dtype", symptom))
    found = [
        reduced("F1", "t1", program("Abs"), besides=(RETURNED, "float16 inputs"), outcome=one),
        reduced("F2", "t2", program("Any"), besides=(says,), outcome=other),
    ]
    assert following(found) == ({"F2": ["F1"]} if follows else {})


@pytest.mark.parametrize(("other", "follows"), [("_max_pool3d", True), ("_avg_pool2d", False)])
def test_converters_of_one_name_but_for_dimensions_are_one_place(other: str, follows: bool) -> None:
    """`stride=[]` is taken for a stride by both, and one line in each is to be mended."""
    found = [
        reduced(f"F{n}", f"t{n}", program(f"MaxPool{n + 1}d"),
                outcome=Outcome(CRASH, "load", "E", "strides are ()", conversion_function=f"base:Importer.{at}"))
        for n, at in ((1, "_max_pool2d"), (2, other))
    ]  # fmt: skip
    assert following(found) == ({"F2": ["F1"]} if follows else {})


@pytest.mark.parametrize(
    ("stage", "lines", "says", "follows"),
    [
        ("compile", (249, 258), "power applies to float", True),
        ("compile", (249, 259), "power applies to float", False),
        ("compile", (250, 258), "power applies to float", False),  # a check that several call
        ("compile", (249, 258), "power applies to int", False),
        ("load", (249, 258), "power applies to float", False),  # one check of what each converter hands to it
    ],
)
def test_what_stops_at_one_line_below_what_operators_become_follows_the_first(
    stage: str, lines: tuple[int, int], says: str, follows: bool
) -> None:
    """TVM's norm of bfloat16 is a power of it, which pow of integers stops at, too: who mends the one mends the other."""

    def frames(python: int, native: int) -> tuple[str, ...]:
        between = ("tvm/relax/utils.py:<module>:344", f"tvm/topi/broadcast.py:<module>:{python}", "?:<module>:0")
        return ("tvm.relax.vm_build:build:270", *between, f"/project/src/op.cc:<module>:{native}")

    found = [
        reduced(f"F{n}", f"t{n}", program(operator), besides=(decides,),
                outcome=Outcome(CRASH, stage, "InternalError", message, conversion_function=f"base:Importer.{operator}",
                                seen=Seen(frames=frames(*at))))
        for n, operator, decides, message, at in (
            (1, "Pow", "exponent no integer", "power applies to float", (249, 258)),
            (2, "Norm", "bfloat16 inputs", says, lines),
        )
    ]  # fmt: skip
    assert following(found) == ({"F2": ["F1"]} if follows else {})


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans(), st.sampled_from(["x", "y"])), max_size=8))
def test_of_findings_that_are_all_ready_one_is_always_first(made: list[tuple[str, bool, str]]) -> None:
    found = [
        reduced(f"F{n}", f"t{n}", program(operator.upper()), besides=("bfloat16 inputs",), whatever=whatever,
                outcome=Outcome(CRASH, "load", "RuntimeError", f"it is no {said} at all", conversion_function="C@c.cpp:1"))
        for n, (operator, whatever, said) in enumerate(made)
    ]  # fmt: skip
    names = [x.finding for x in found]
    sights = [
        Sight(x.finding, (not x.reduction.whatever, float(n), x.finding), x.reduction) for n, x in enumerate(found)
    ]
    origins = {(name, E): names[n + 1 :] + names[:n] for n, name in enumerate(names)}
    turn = Turn(conclude(sights, origins), {x.name: x.age for x in sights})
    way = [GivenOtherwise(name, E, "f", said) for name, (_, _, said) in zip(names, made, strict=True)]
    firsts, ready = by_one_way(turn, way), {(name, E) for name in names}
    assert not names or any(not standing((name, E), firsts, ready) for name in names)
    assert all(standing((name, E), firsts, ready) for name, _ in firsts)


@pytest.mark.parametrize(
    ("test", "line", "follows"),
    [("t1", "shape_util.cpp:66", True), ("t2", "shape_util.cpp:66", False), ("t1", "shape_util.cpp:67", False),
     ("t1", "frontend.py:66", False)],
)  # fmt: skip
def test_what_stops_at_one_native_line_and_came_of_one_test_follows_the_first(
    test: str, line: str, follows: bool
) -> None:
    """OpenVINO's maximum of a scalar, and its logsumexp, which is made of it: one route says more of it than another."""
    found = [
        reduced(name, of, program(operator),
                outcome=Outcome(CRASH, "load", "OpConversionFailure", says, conversion_function=f"aten::{operator}@{at}"))
        for name, of, operator, says, at in (
            ("F1", "t1", "amax", "normalize step failed: dimension", line if line.endswith(".py:66") else "shape_util.cpp:66"),
            ("F2", test, "logsumexp", "out of range", line),
        )
    ]  # fmt: skip
    assert following(found) == ({"F2": ["F1"]} if follows else {})


@pytest.mark.parametrize(
    ("lines", "besides", "follows"),
    [
        (("node.cpp:1626", "reduce.cpp:2095", "reference.cpp:36"), ("axes is no constant", "integer inputs"), True),
        (("node.cpp:1626", "eltwise.cpp:20", "reference.cpp:36"), ("axes is no constant",), False),
        (("node.cpp:1626", "reduce.cpp:2095", "reference.cpp:36"), ("integer inputs",), False),
        (("reduce.cpp:2095", "reference.cpp:36"), ("axes is no constant",), False),
    ],
)
def test_what_stops_by_the_same_way_down_follows_the_first(
    lines: tuple[str, ...], besides: tuple[str, ...], follows: bool
) -> None:
    """OpenVINO's ReduceL2 of integers and ReduceProd of bfloat16 fall back on a reference that wants constant axes."""
    first = ("node.cpp:1626", "reduce.cpp:2095", "reference.cpp:36") if len(lines) == 3 else lines
    found = [
        reduced(name, name, program(operator), besides=of,
                outcome=Outcome(REFUSED, "compile", "Error", "\n".join(f"{operator}: from src/{x}: not" for x in way)))
        for name, operator, of, way in (
            ("F1", "ReduceL2", ("axes is no constant", "integer inputs"), first), ("F2", "ReduceProd", besides, lines),
        )
    ]  # fmt: skip
    assert following(found) == ({"F2": ["F1"]} if follows else {})
