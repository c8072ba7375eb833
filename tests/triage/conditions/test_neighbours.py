"""What passes beside a failing program shows that a compiler takes programs of its form."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from opera.programs.program import Argument, Call, Graph, Instance, Operand, Program
from opera.programs.values import Tensor, Value
from opera.programs.verdicts import ABORT, CRASH, INVALID, PASS, Outcome
from opera.triage.conditions.neighbours import Neighbours
from opera.triage.shrink import smaller

DEFAULTS = {"Resize": {"mode": "nearest"}}


def resize(*shape: int, **params: object) -> Instance:
    operands = (Operand("X", Tensor.of(np.ones(shape, "f4"))), Operand("scales", Tensor.of(np.ones(len(shape), "f4"))))
    return Instance("onnx", "Resize", dict(params), operands, ("Y",), {"opset": {"": 19}})


class Compiler:
    """Shows of a program what a function says of whether it has a mode, and of its rank."""

    def __init__(self, shows: Callable[[bool, int], str]) -> None:
        self.shows = shows

    def look(self, programs: list[Program]) -> list[Outcome]:
        stated = [any("mode" in call.params for call in x.instances()) for x in programs]
        return [Outcome(self.shows(y, len(smaller.leaves(x)[0].shape))) for x, y in zip(programs, stated, strict=True)]

    def fails(self, outcome: Outcome) -> bool:
        return outcome.verdict == CRASH


@pytest.mark.parametrize(
    ("beside", "accepted"),
    [
        ({4: PASS, 2: PASS}, True),
        ({4: PASS, 2: CRASH}, False),  # of two axes it is refused whatever the mode
        ({4: PASS, 2: INVALID}, False),  # nobody can tell
        ({4: CRASH, 2: CRASH}, False),  # it fails with any mode: nothing shows that two axes are taken
    ],
)
def test_an_axis_less_is_taken_where_something_passes_there(beside: dict[int, str], accepted: bool) -> None:
    ask = Compiler(lambda stated, rank: CRASH if stated else beside.get(rank, INVALID))
    known = Neighbours(ask, resize(1, 1, 2, 2, mode="cubic"), DEFAULTS)  # type: ignore[arg-type]
    assert known.told == (["mode='cubic'"] if beside[4] == PASS else [])
    assert known.has(resize(1, 2, mode="cubic")) is accepted
    assert known.has(resize(1, 1, 1, 1, mode="cubic")), "fewer elements are no other rank"
    assert (
        known.chosen("an input of rank 2")
        and not known.chosen("an input of rank 4")
        and not known.chosen("NaN in an input")
    )


@pytest.mark.parametrize(("least", "stands"), [(0, True), (3, False)])
def test_what_a_parameter_less_passes_nowhere_is_taken_as_its_first_one_is(least: int, stands: bool) -> None:
    """OpenVINO takes a cdist of float64 by `compute_mode` alone, and fails of each without: the plainest is no corner."""

    class Taking(Compiler):
        def look(self, programs: list[Program]) -> list[Outcome]:
            calls = [x.instances()[0] for x in programs]
            taken = [
                "way" in x.params and "mode" not in x.params and least <= len(smaller.leaves(x)[0].shape) for x in calls
            ]
            return [Outcome(PASS if x else CRASH) for x in taken]

    known = Neighbours(Taking(lambda stated, rank: CRASH), resize(1, 1, 2, mode="cubic", way=1), DEFAULTS)  # type: ignore
    assert known.told == ["mode='cubic'"]
    assert known.has(resize(1, 2, mode="cubic")) is stands, "of two axes nothing passes that the first one is"
    assert known.has(resize(1, 1, 1, mode="cubic"))


@pytest.mark.parametrize(("beside", "spoilt"), [(PASS, False), (CRASH, False), (ABORT, True), (INVALID, False)])
def test_a_larger_program_may_have_another_failure_besides(beside: str, spoilt: bool) -> None:
    """OpenVINO's DFT of a signal of one number is right but for its shape; of a longer one the axis is another, too."""
    ask = Compiler(lambda stated, rank: CRASH if stated else PASS if rank == 1 else beside)
    known = Neighbours(ask, resize(1, mode="cubic"), DEFAULTS)  # type: ignore[arg-type]
    assert known.told and known.spoilt(resize(2, 2, mode="cubic")) is spoilt
    assert not known.spoilt(resize(2, mode="cubic"))


@pytest.mark.parametrize(("alike", "taken"), [(PASS, True), (CRASH, False)])
def test_ranks_are_taken_where_tensors_of_one_shape_pass(alike: str, taken: bool) -> None:
    """OpenVINO's GatherElements wants one shape of both, whatever their rank: no condition that it has may be left out."""

    def gather(*shapes: tuple[int, ...]) -> Instance:
        operands = (Operand(f"x{n}", Tensor.of(np.zeros(x, "i8"))) for n, x in enumerate(shapes))
        return Instance("onnx", "GatherElements", {}, tuple(operands), ("Y",), {"opset": {"": 13}})

    class Taking(Compiler):
        def look(self, programs: list[Program]) -> list[Outcome]:
            shapes = [[leaf.shape for leaf in smaller.leaves(x)] for x in programs]
            return [Outcome(alike if len(set(x)) == 1 and len(x[0]) == 2 else CRASH) for x in shapes]

        def reference(self, program: Program) -> list[Value] | None:
            return None

    known = Neighbours(Taking(lambda stated, rank: CRASH), gather((2, 2, 1), (1, 1, 1)), {})  # type: ignore[arg-type]
    assert not known.told
    assert known.has(gather((2, 2), (1, 1))) is taken and not known.has(gather((2,), (1,)))


def test_what_was_a_result_may_be_given_where_the_call_between_goes() -> None:
    """Of a program of several calls, where nothing is known to pass: a tensor of the rank that the result had, and no other."""
    rows = Operand("x", Tensor.of(np.ones((1, 2), "f4")))
    calls = (
        Call("Exp", {}, (Argument("input", "x"),), ("e",), {}),
        Call("Mul", {}, (Argument("A", "e"), Argument("B", "e")), ("y",), {}),
    )

    class Computing(Compiler):
        def look(self, programs: list[Program]) -> list[Outcome]:
            return [Outcome(CRASH) for _ in programs]

        def reference(self, program: Program) -> list[Value]:
            assert program.outputs == ("e", "y")
            return [Tensor.of(np.ones((1, 2), "f4"))] * 2

    known = Neighbours(Computing(lambda stated, rank: CRASH), Graph("onnx", (rows,), calls, ("y",)), {})
    assert not known.told

    def mul(*shape: int) -> Instance:
        held = Tensor.of(np.ones(shape, "f4"))
        return Instance("onnx", "Mul", {}, (Operand("A", held), Operand("B", held)), ("y",), {})

    assert known.has(mul(1, 2)) and not known.has(mul(2))
