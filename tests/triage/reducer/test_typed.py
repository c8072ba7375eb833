"""The dtypes that a reduced program is left with."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, cast

import numpy as np
import pytest

from opera.programs.program import Instance, Operand, Program
from opera.programs.values import Tensor
from opera.programs.verdicts import CRASH, INCONSISTENT, PASS, Outcome
from opera.triage.reducer import typed


def call(operator: str, *dtypes: str) -> Instance:
    inputs = tuple(Operand(f"x{n}", Tensor.of(np.ones(2, dtype))) for n, dtype in enumerate(dtypes))
    return Instance("onnx", operator, {}, inputs, ("y",), {"opset": {"": 11}})


def of(program: Program) -> tuple[str, ...]:
    return tuple(x.value.dtype for x in program.inputs if isinstance(x.value, Tensor))


class Asked:
    """A compiler that stops at these combinations of dtypes, and passes the others."""

    def __init__(self, program: Program, stops: Collection[tuple[str, ...]] | None, verdict: str = CRASH) -> None:
        self.stops, self.outcomes = stops, {program.id: Outcome(verdict, "load", "TypeError")}
        self.beside, self.documented, self.agreeing, self.witnessed = ["another"], False, True, True

    def __call__(self, programs: Sequence[Program]) -> list[bool]:
        return [self.stops is None or of(x) in self.stops for x in programs]

    def look(self, programs: Sequence[Program]) -> list[Outcome]:
        return [Outcome(CRASH if fails else PASS, "load") for fails in self(programs)]

    def fails(self, shown: Outcome) -> bool:
        return shown.verdict == CRASH

    def admits(self, program: Program) -> bool:
        return True

    stands = admits

    def excused(self, program: Program) -> bool:
        return self.documented

    def agreed(self, program: Program) -> bool:
        return self.agreeing

    def passed(self, programs: Sequence[Program], failed: Sequence[bool], *, lenient: bool) -> list[bool]:
        return [x and self.witnessed for x in failed]


@pytest.mark.parametrize(
    ("dtype", "verdict", "made"), [("float16", CRASH, "float64"), ("float16", INCONSISTENT, ""), ("float64", CRASH, "")]
)
def test_narrow_floats_that_stop_become_float64(dtype: str, verdict: str, made: str) -> None:
    """ONNX Runtime has no Attention of bfloat16, whose types are inferred wrongly of float64 as well."""
    program = call("Abs", dtype)
    found = typed.widened(cast(Any, Asked(program, None, verdict)), program)
    assert [of(x) for x in found] == ([(made,)] if made else [])


F, D, I = "float32", "float64", "int64"  # noqa: E741
ALL = (F, F, F)


@pytest.mark.parametrize(("own", "stops", "made"), [
    (ALL, [ALL, (I, F, I)], [(I, F, I)]),  # its depth alone decides
    (ALL, [ALL], []),  # no one of them does alone
    (ALL, [ALL, (I, F, I), (F, I, I)], []),  # two do, each alone
    (ALL, [ALL, (I, F, I), (I, I, I)], []),  # no dtype decides
    ((I, I), [(I, I), (I, F)], [(I, F)]),
    ((F, I), [(F, I), (I, F)], []),
    ((D, D, D), [(D, D, D), (F, F, D)], [(F, F, D)]),  # Attention of float64, at its mask
    ((D, D), [(D, D), (F, F), (I, D)], [(I, D)]),
])  # fmt: skip
def test_the_dtype_is_left_to_the_one_input_that_needs_it(
    own: tuple[str, ...], stops: list[tuple[str, ...]], made: list[tuple[str, ...]]
) -> None:
    """TVM's OneHot of floats stops at its depth; of indices and values that are floats other things are wrong."""
    program = call("OneHot", *own)
    assert [of(x) for x in typed.odd_one(cast(Any, Asked(program, stops)), program)] == made
    assert typed.odd_one(cast(Any, Asked(program, stops, INCONSISTENT)), program) == []


def test_each_of_several_dtypes_of_floats_is_asked_about_alone() -> None:
    """Attention of float64 fails at its mask: with that in float32 it runs, and with all others in float32 it does not."""
    assert [of(x) for x in typed.mixed(call("Attention", D, D, D))] == [
        (F, D, D), (D, F, F), (D, F, D), (F, D, F), (D, D, F), (F, F, D),
    ]  # fmt: skip
    assert {of(x) for x in typed.mixed(call("Add", F, F))} == {(D, F), (F, D)}
    assert not [x for given in ((F,), (I, I), (F, I), (F,) * 7) for x in typed.mixed(call("Any", *given))]


@pytest.mark.parametrize("guard", ["beside", "documented", "agreeing", "witnessed"])
def test_the_dtype_stays_where_nobody_runs_it_otherwise_or_a_limit_is_documented(guard: str) -> None:
    program = call("OneHot", *ALL)
    asked = Asked(program, [ALL, (I, F, I)])
    assert typed.odd_one(cast(Any, asked), program)
    setattr(asked, guard, {"beside": [], "documented": True}.get(guard, False))
    assert typed.odd_one(cast(Any, asked), program) == []


@pytest.mark.parametrize(
    ("stops", "made"),
    [
        ([(I, F), (F, I), (I, I)], (F, I)),  # a Pow of TVM's, which has none of integers
        ([(I, F), (F, I)], None),  # with the first alone it runs as it is
        ([(I, F), (F, I), (I, I), (F, F)], None),
        ([(I, F), (I, I)], None),  # the other way round it does not stop
    ],
)
def test_two_dtypes_are_exchanged_where_it_runs_with_the_second_alone(
    stops: Collection[tuple[str, ...]], made: tuple[str, ...] | None
) -> None:
    program = call("Pow", I, F)
    found = typed.swapped(cast(Any, Asked(program, stops)), program)
    assert [of(x) for x in found] == ([made] if made else [])
