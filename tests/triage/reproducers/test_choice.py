"""What is told of a finding holds of all its reductions of one operator."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

from opera.programs.program import Instance, Operand
from opera.programs.values import Tensor, Value
from opera.programs.verdicts import CRASH, INCONSISTENT, Outcome
from opera.report import draft
from opera.triage.reducer.asking import captured
from opera.triage.reduction import Reduction
from opera.triage.reproducers.choice import Choice, _about, _needs, _shared, _worst


def reduction(
    told: tuple[str, ...], near: tuple[int, int] = (9, 3), sizes: tuple[int, ...] = (2,), **params: Value
) -> Reduction:
    program = Instance(
        "onnx", "Resize", params, (Operand("X", Tensor.of(np.ones(sizes, "f4"))),), ("Y",), {"opset": {"": 19}}
    )
    form = captured(program).form()
    return Reduction("F", "e", "f", "v", "t", form, Outcome(CRASH), stored=program.id, deciding=told, near=near)


LINEAR = reduction(("mode='linear'",), mode="linear")


@pytest.mark.parametrize(
    ("others", "wanted"),
    [
        ([], ("mode='linear'",)),
        ([reduction((), mode="cubic")], ()),
        ([reduction((), mode="linear")], ("mode='linear'",)),
        ([reduction(("axes=[1]",), axes=[1])], ("mode='linear'",)),
        ([reduction((), (0, 0), mode="cubic")], ("mode='linear'",)),
        ([reduction(("mode='cubic'",), mode="cubic")], ("mode given",)),
        ([reduction(("mode other than 'nearest'",), mode="cubic")], ("mode other than 'nearest'",)),
    ],
)
def test_a_value_is_told_to_decide_if_no_reduction_of_the_finding_fails_with_another(others, wanted):
    assert _shared(LINEAR, [LINEAR, *others]).deciding == wanted


def test_of_several_words_for_numbers_the_widest_are_told():
    below, other = reduction(("alpha < 0",), alpha=-1.0), reduction(("alpha other than 0.5",), alpha=2.0)
    assert _shared(below, [below, other]).deciding == ("alpha other than 0.5",)


def test_numbers_of_one_dtype_and_of_another_that_are_beyond_it_are_told_of_both():
    """`CastLike` saturates to no float8: each has a largest number of its own."""
    beyond = ["a number beyond float8_e4m3fn in an input", "a number beyond float8_e5m2 in an input", "a 1-d input"]
    one, other, third = (msgspec.structs.replace(LINEAR, stored=x, circumstances=(x,)) for x in beyond)
    assert _shared(one, [one, other]).circumstances == one.circumstances
    assert _shared(one, [one, third]).circumstances == ()


def test_of_two_reductions_to_one_program_one_is_told():
    """OpenVINO's QuantizeLinear in blocks without a zero point: "block_size > 1", and "an axis of x longer than y_scale's"."""
    first, again = (
        msgspec.structs.replace(LINEAR, circumstances=("y_zero_point left out", x))
        for x in ("block_size > 1", "an axis")
    )
    assert _shared(first, [first, again]).circumstances == first.circumstances


def test_what_one_of_two_reductions_tells_in_other_words_is_told() -> None:
    """OpenVINO's `logspace` of a tensor: with steps=0, or an output without elements; that it is a tensor is not all."""
    told = [("a tensor for start", "steps=0"), ("a tensor for start", "an output without elements"), ("a 1-d input",)]
    first, again, other = (
        msgspec.structs.replace(LINEAR, stored=x[-1], deciding=(), circumstances=x, near=(9, 9)) for x in told
    )
    assert _shared(first, [first, again]).circumstances == first.circumstances
    assert _shared(first, [first, again, other]).circumstances == ()


def test_since_which_version_a_program_fails_need_not_be_known_of_another():
    since = msgspec.structs.replace(LINEAR, circumstances=("opset 22",))
    assert _shared(since, [since, msgspec.structs.replace(LINEAR, stored="2")]).circumstances == ("opset 22",)


def test_a_title_has_a_reduced_program_as_it_is_called():
    found = reduction((), (9, 0), sizes=(0, 2))
    page: Any = SimpleNamespace(parameters=(), reduced=True, blame=None)
    verdict: Any = SimpleNamespace(outcome=found.outcome)
    assert draft._what(found.program().program, page, Choice(verdict, verdict, found)) == "Resize(X=float32[0, 2])"


def test_where_a_title_has_little_room_the_input_that_seems_to_decide_stays():
    """TVM passes a `depth` of floats on as one: what is of that dtype beside it is no matter."""
    inputs = [Operand(x, Tensor.of(np.arange(8, dtype="f4"))) for x in ("indices", "values", "depth")]
    program = Instance("onnx", "OneHot", {}, tuple(inputs), ("Y",), {"opset": {"": 19}})
    found = msgspec.structs.replace(
        LINEAR, captured=captured(program).form(), circumstances=("a floating-point depth",)
    )
    verdict: Any = SimpleNamespace(outcome=found.outcome)
    assert Choice(verdict, verdict, found).called("OneHot", 40) == "OneHot(indices=float32[8], depth=float32[8], …)"
    assert not _about("a", "a floating-point depth") and _about("x", "x of rank 3") and _about("x", "length 1 of x")


@pytest.mark.parametrize(
    ("told", "other", "fits"),
    [
        (("a > 1", "more than one input channel"), ("a=6", "more than one input channel"), True),
        (("a > 1", "more than one input channel"), ("a=6",), False),
        (("non-float32 inputs",), ("float16 or float64 inputs",), True),
        (("x of rank 2 or more",), ("an input of rank 3",), True),
        (("an empty input",), (), False),
        (("length 1 of axis 0",), (), True),
        ((), ("a=6",), True),
    ],
)
def test_an_operator_is_told_as_alike_where_what_is_told_decides_of_it_too(told, other, fits):
    one, two = (msgspec.structs.replace(LINEAR, deciding=(), besides=x) for x in (told, other))
    assert (_needs(one) <= _needs(two)) is fits


def test_of_small_programs_one_of_tensors_with_elements_and_axes_is_shown() -> None:
    """`acosh` of no bool stood for all that TVM does not promote."""
    empty, single, several, large = (
        msgspec.structs.replace(reduction((), sizes=x), elements=int(np.prod(x))) for x in ((0,), (), (3,), (50, 50))
    )
    assert sorted((large, empty, several, single), key=_worst)[0] is several
    assert sorted((large, empty), key=_worst)[0] is empty


@pytest.mark.parametrize("drawn", [True, False])
def test_of_layers_that_draw_alike_the_one_that_becomes_few_operations_is_shown(drawn: bool) -> None:
    """The seed of every random layer of Keras's is frozen in its ONNX file: GaussianNoise shows it as well as a blur does."""
    outcome = Outcome(INCONSISTENT, "infer", "value", details={"drawn": "constant"} if drawn else {})
    blur, noise = (
        msgspec.structs.replace(reduction((), sizes=(3,)), outcome=outcome, operations=x, elements=y)
        for x, y in ((60, 1), (5, 3))
    )
    assert min((blur, noise), key=_worst) is (noise if drawn else blur)
