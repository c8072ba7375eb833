"""A call that becomes several operators of an exported file is told of them, where they are wrong by themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pytest

from opera.libraries.keras import library
from opera.programs.program import Instance, Operand, Program
from opera.programs.values import Tensor
from opera.programs.verdicts import CRASH, INCONSISTENT, PASS, Outcome
from opera.triage.reducer.parts import inside, parts
from opera.triage.shrink.minimise import Spent

EDGES = "keras.ops.image.sobel_edges"
WRONG = Outcome(INCONSISTENT, "infer", "value", conversion_function="expanded sobel_edges")


class Answers:
    """Of whom calls show what a test says of their operators, and all others pass."""

    def __init__(self, becomes: Sequence[str], shown: dict[str, Outcome], spent: bool = False) -> None:
        self.becomes, self.shown, self.spent, self.met = becomes, shown, spent, list[str]()

    def lowered(self, program: Program) -> list[str]:
        return [*self.becomes]

    def look(self, programs: Sequence[Program]) -> list[Outcome]:
        if self.spent:
            raise Spent
        self.met += [x.operators[0] for x in programs]
        return [self.shown.get(x.operators[0], Outcome(PASS)) for x in programs]

    def fails(self, outcome: Outcome) -> bool:
        raise NotImplementedError

    def afresh(self, program: Program) -> Outcome:
        raise NotImplementedError


def edges(operator: str = EDGES) -> Instance:
    context: dict[str, Any] = {"kind": "function", "call": {"args": ["images"], "kwargs": []}}
    image = Operand("images", Tensor.of(np.ones((1, 2, 2, 1), "f4")))
    return Instance(library.NAME, operator, {}, (image,), (), context)


def test_each_operator_that_is_wrong_by_itself_is_told_once_with_its_plainest_call() -> None:
    ask = Answers(
        ["RESHAPE", "MIRROR_PAD", "DEPTHWISE_CONV_2D", "MIRROR_PAD"],
        {"keras.ops.pad": Outcome(INCONSISTENT, "infer", "value"), "keras.layers.DepthwiseConv2D": Outcome(CRASH)},
    )
    assert parts(ask, edges(), WRONG) == ("MIRROR_PAD (keras.ops.pad)",)
    assert set(ask.met) == {"keras.ops.pad", "keras.layers.DepthwiseConv2D"}


@pytest.mark.parametrize(("dtype", "told"), [("int64", ("CAST (keras.ops.cast)",)), ("float32", ()), ("int8", ())])
def test_a_cast_is_asked_about_to_a_dtype_of_the_program(dtype: str, told: tuple[str, ...]) -> None:
    """MNN casts to int32, and leaves what is to be int64 as it is: a layer of int64 is wrong by that."""

    class Casts(Answers):
        def look(self, programs: Sequence[Program]) -> list[Outcome]:
            return [WRONG if x.instances()[0].params.get("dtype") == "int64" else Outcome(PASS) for x in programs]

    given = edges().inputs[0].value.array().astype(dtype)  # type: ignore[union-attr]
    program = msgspec.structs.replace(edges(), inputs=(Operand("images", Tensor.of(given)),))
    assert parts(Casts(["CAST"], {}), program, WRONG) == told
    assert parts(Casts(["CAST"], {}), program, Outcome(CRASH, "infer", "Error")) == told, (
        "of a crash that names no place"
    )


@pytest.mark.parametrize(
    "shown",
    [Outcome(CRASH, "load", "Error", conversion_function="expanded sobel_edges"),
     Outcome(INCONSISTENT, "infer", "value", conversion_function="MIRROR_PAD")],
    ids=["a crash", "one operator"],
)  # fmt: skip
def test_what_crashes_or_becomes_one_operator_has_no_parts(shown: Outcome) -> None:
    ask = Answers(["MIRROR_PAD"], {"keras.ops.pad": Outcome(INCONSISTENT, "infer", "value")})
    assert parts(ask, edges(), shown) == () and not ask.met


def test_the_call_itself_and_time_that_ends_tell_nothing() -> None:
    wrong = {"keras.ops.pad": Outcome(INCONSISTENT, "infer", "value")}
    assert parts(Answers(["MIRROR_PAD"], wrong), edges("keras.ops.pad"), WRONG) == ()
    assert parts(Answers(["MIRROR_PAD"], wrong, spent=True), edges(), WRONG) == ()


def test_of_a_crash_at_one_operator_those_are_told_beside_it_that_are_wrong_by_themselves() -> None:
    """TVM says that the SELECT of `nanargmin` mixes int32 and int64, for its ARG_MIN has the wrong dtype."""
    stops = Outcome(CRASH, "load", "TypeError", conversion_function="tflite_frontend:OperatorConverter.convert_select")
    wrong = Outcome(INCONSISTENT, "infer", "dtype")
    ask = Answers(["NOT_EQUAL", "SELECT", "ARG_MIN"], {"keras.ops.argmin": wrong, "keras.ops.where": wrong})
    program = edges("keras.ops.nanargmin")
    assert parts(ask, program, stops) == ("ARG_MIN (keras.ops.argmin)",)
    assert "keras.ops.where" not in ask.met, "that it crashes there is known"
    assert not parts(ask, program, msgspec.structs.replace(stops, conversion_function="tflite_frontend:from_tflite"))


def test_calls_inside_that_return_another_form_are_what_a_crash_is_of() -> None:
    """TVM's `linear` of bfloat16 returns float32, and what calls it stops at a `where` of both."""
    stops, dtype = Outcome(CRASH, "load", "TypeError"), Outcome(INCONSISTENT, "infer", "dtype")
    calls = [(edges("keras.ops.pad"), dtype), (edges("keras.ops.log"), Outcome(INCONSISTENT, "infer", "value"))]
    assert list(inside(edges(), stops, calls)) == ["keras.ops.pad"]
    assert list(inside(edges("keras.ops.pad"), stops, calls)) == []
    assert list(inside(edges(), dtype, calls)) == []
