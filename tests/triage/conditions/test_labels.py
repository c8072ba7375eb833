"""Near programs are asked about in rows, from an ordinary one that fails; chance and other outputs tell nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np

from opera.libraries.bounds import Bounds
from opera.oracle import declared
from opera.programs.program import Argument, Call, Graph, Instance, Operand, Program
from opera.programs.values import Tensor, Value
from opera.programs.verdicts import INCONSISTENT, INVALID, PASS, SCREENED, UNSTABLE, Outcome
from opera.triage.conditions import circumstances, labels, near
from opera.triage.conditions.deciding import Decided
from opera.triage.conditions.labels import Labelled
from opera.triage.shrink import smaller

F32 = np.float32
FAILS, RIGHT, NONE = (
    Outcome(INCONSISTENT, symptom="value", details={"output": "output_0"}),
    Outcome(PASS),
    Outcome(INVALID),
)


def call(*arrays: Any, outputs: tuple[str, ...] = (), operator: str = "torch.any", **params: Any) -> Instance:
    given = tuple(Operand(f"x{n}", Tensor.of(np.asarray(x))) for n, x in enumerate(arrays))
    context: dict[str, Value] = {"call": {"args": [x.name for x in given], "kwargs": [*params]}}
    return Instance("torch", operator, params, given, outputs, context)


class Asking:
    """Answers as a function of programs says; what is asked afresh passes as often as `luck` says."""

    def __init__(self, shows: Callable[[Program], Outcome], seen: Sequence[Labelled] = (), luck: bool = True) -> None:
        self.shows, self.known, self.luck, self.asked = shows, list(seen), luck, list[Program]()
        self.bounds: Bounds = {}
        self.corpus: list[Instance] = []

    def look(self, programs: Sequence[Program]) -> list[Outcome]:
        return list(map(self.shows, programs))

    def fails(self, outcome: Outcome) -> bool:
        return outcome.verdict in (INCONSISTENT, UNSTABLE)

    def afresh(self, program: Program) -> Outcome:
        return self.shows(program) if self.luck else Outcome(UNSTABLE)

    def label(self, programs: Sequence[Program]) -> list[bool | None]:
        self.asked += programs
        said = {INCONSISTENT: True, UNSTABLE: True, PASS: False}
        return [said.get(x.verdict) for x in self.look(programs)]

    def go_on(self) -> None:
        pass

    def gets_further(self, program: Program) -> bool:
        return False

    def otherwise(self, program: Program) -> bool:
        return False

    def apart(self, program: Program, of: Program) -> bool:
        return False

    def lowered(self, program: Program) -> list[str]:
        return []

    def seen(self) -> list[Labelled]:
        return self.known

    def shapes(self, program: Program) -> None:
        return None

    def reference(self, program: Program) -> None:
        return None


def borne(ask: Asking, program: Program) -> circumstances.Borne:
    return circumstances.of(ask, program, {}, Decided())


def sums(program: Program) -> int:
    return sum(sum(x.shape) for x in smaller.leaves(program))


def test_the_first_output_alone_is_asked_about_and_is_what_others_are_near_to_if_it_fails():
    program = call(np.ones(2, F32))
    failing = Asking(lambda x: FAILS)
    borne(failing, program)
    assert failing.asked[0].outputs == ("output_0",)
    assert all(x.outputs == ("output_0",) for x in failing.asked)
    passing = Asking(lambda x: Outcome("crash") if not x.outputs else RIGHT)
    passing.label = lambda programs: [not x.outputs for x in programs]  # type: ignore[method-assign]
    assert borne(passing, program).circumstances == ("an output beside the first",)


def test_that_a_program_passes_without_the_wrong_output_tells_nothing():
    wrong = msgspec.structs.replace(FAILS, details={"output": "output_1"})
    found = borne(Asking(lambda x: RIGHT if x.outputs else wrong), call(np.ones(2, F32)))
    assert (found.passing, found.circumstances) == (0, ())


def test_rows_that_say_nothing_give_way_to_others():
    """Of what no other size is valid, more is asked about parameters."""
    program = call(np.ones((1, 1, 1), F32), a=1, b=1, c=1, d=1)
    sizes: Callable[[Program], bool] = lambda x: [y.shape for y in smaller.leaves(x)] == [(1, 1, 1)]  # noqa: E731
    ask = Asking(lambda x: FAILS if sizes(x) else NONE)
    asked = [x for x in labels.labelled(ask.label, program, {}, []) if isinstance(x.program, Instance)]
    assert {x.program.params.get("d", 1) for x in asked if isinstance(x.program, Instance)} == {-1, 0, 1, 2, 3}
    assert len(ask.asked) < 90


def test_nothing_is_asked_twice_and_no_more_than_there_is_room_for():
    ask = Asking(lambda x: FAILS)
    labels.labelled(ask.label, call(np.ones((2, 1, 3), F32), np.ones((2, 3), F32), a=1, b=2.0, axes=[1]), {}, [])
    assert len({x.id for x in ask.asked}) == len(ask.asked) <= 85


def test_what_passes_by_chance_tells_nothing():
    def shows(x: Program) -> Outcome:
        return Outcome(UNSTABLE) if sums(x) > 3 else RIGHT

    program = call(np.ones((3, 2), F32))
    assert borne(Asking(shows), program).passing > 0
    assert borne(Asking(shows, luck=False), program).passing == 0


def test_what_is_drawn_passes_only_by_a_law_that_is_declared():
    drawn = msgspec.structs.replace(FAILS, details={"drawn": "constant"})
    right = Outcome(SCREENED, details={"screen": "nondeterministic"})
    ask = Asking(lambda x: drawn if sums(x) > 3 else right)
    assert borne(ask, call(np.ones((3, 2), F32))).passing == 0
    dropout = call(np.ones((3, 2), F32), operator="torch.nn.functional.dropout")
    assert declared.declared(dropout)
    assert borne(ask, dropout).passing > 0
    assert borne(Asking(lambda x: drawn if sums(x) > 3 else RIGHT), dropout).passing == 0, (
        "what draws nothing is right anyway"
    )


def test_a_passing_test_of_the_operator_is_a_near_program_and_programs_between_are():
    program, test = call(np.ones((1, 1), F32), a=1), call(np.ones((3, 2), F32), np.ones(2, F32), a=2)

    def shows(x: Program) -> Outcome:
        return NONE if "x1" in x.instances()[0].params else RIGHT if any(y.name == "x1" for y in x.inputs) else FAILS

    ask = Asking(shows, [Labelled(test, fails=False)])
    found = borne(ask, program)
    assert found.circumstances == ("x1 left out",)
    assert any([x.shape for x in smaller.leaves(y)] == [(1, 1), (1,)] for y in ask.asked)
    other = msgspec.structs.replace(test, context={**test.context, "kind": "method"})
    found = labels.labelled(lambda x: [None] * len(x), program, {}, [Labelled(other, fails=False)])
    assert found == []


def test_that_a_parameter_has_its_default_is_told_where_another_value_alone_passes():
    program, test = call(F32([[1.0]])), call(np.int64([[1, 2]]), fmod=1)

    def shows(x: Program) -> Outcome:
        return FAILS if "float" in smaller.leaves(x)[0].dtype and not x.instances()[0].params.get("fmod") else RIGHT

    ask = Asking(shows, [Labelled(test, fails=False)])
    found = circumstances.of(ask, program, {program.operator: {"fmod": 0}}, Decided())
    assert found.circumstances == ("floating-point inputs", "fmod=0")


def test_programs_of_several_calls_have_near_ones():
    calls = (
        Call("torch.abs", {}, (Argument("input", "x"),), ("a",), {}),
        Call("torch.sum", {"dim": 1, "correction": 3}, (Argument("input", "a"),), ("b",), {}),
    )
    program = Graph("torch", (Operand("x", Tensor.of(np.ones((1, 2), "float64"))),), calls, ("b",))
    ask = Asking(lambda x: FAILS if smaller.leaves(x)[0].dtype == "float64" else RIGHT)
    found = borne(ask, program)
    assert found.circumstances == ("float64 inputs",)
    assert {x.calls[1].params["correction"] for x in ask.asked if isinstance(x, Graph)} >= {1, 2, 4}


def test_numbers_in_and_out_of_ranges_are_tried_where_numbers_are_converted():
    cast = call(F32([1.0]), operator="torch.Tensor.to")
    made = [simple(x) for x in near._magnitudes(cast)]
    assert 500.0 in made and np.inf in made and any(np.isnan(x) for x in made)
    assert 1e300 not in made, "float32 holds no such number"
    assert 1e300 in map(simple, near._magnitudes(call(np.float64([1.0]), operator="torch.Tensor.to")))
    assert list(near._magnitudes(call(F32([1.0]), operator="torch.abs"))) == []
    assert list(near._magnitudes(call(F32([np.inf]), operator="torch.abs")))


def test_an_axis_less_takes_its_entry_along():
    made = [
        x for row in near.near(call(np.ones((2, 3, 1), F32), np.int64([4, 5, 6])), {}) for x in row if x is not None
    ]
    held = [[x.array().tolist() if n else x.shape for n, x in enumerate(smaller.leaves(x))] for x in made]  # type: ignore[union-attr]
    assert [(2, 3), [4, 5]] in held


def simple(program: Program | None) -> float:
    assert program is not None
    [held] = smaller.leaves(program)
    assert isinstance(held, Tensor)
    return float(held.array().ravel()[0])


def test_what_passes_as_another_operator_of_an_exported_file_tells_nothing():
    """MNN runs a matrix product that becomes FULLY_CONNECTED, and no BATCH_MATMUL of two axes."""
    crash = Outcome("crash", "infer", "RuntimeError", "no such type", conversion_function="BATCH_MATMUL")
    program = call(np.ones((1, 2), F32))
    ask = Asking(
        lambda x: crash if len(smaller.leaves(x)[0].shape) == 2 and smaller.leaves(x)[0].shape[1] > 1 else RIGHT
    )
    ask.label = lambda programs: [x.verdict == "crash" for x in map(ask.shows, programs)]  # type: ignore[method-assign]
    short = borne(ask, program)
    assert short.circumstances == ("an input of rank 2", "the last axis of x0 longer than 1")
    ask.lowered = (
        lambda x: [  # type: ignore[method-assign]
            "BATCH_MATMUL" if smaller.leaves(x)[0].shape[-1:] != (1,) else "FULLY_CONNECTED"
        ]
    )
    assert borne(ask, program).circumstances == ("an input of rank 2",)


def test_a_program_of_another_form_that_is_wrong_with_other_numbers_does_not_pass():
    """OpenVINO subtracts 0 for a minimum: what has a 0 there passes, whatever its shape."""
    program = call(np.int64([[1, 2], [3, 4]]))

    def shows(x: Program) -> Outcome:
        held = smaller.leaves(x)[0]
        return FAILS if len(held.shape) == 2 and (held.shape == (2, 2) or held.numbers().max() > 2) else RIGHT

    lucky = [call(np.int64(x)) for x in ([[1], [2]], [[1], [2], [1]], [[1, 2]])]
    ask = Asking(shows)
    ask.known = [Labelled(x, fails=False) for x in lucky]
    found = borne(ask, program)
    assert found.circumstances == ("an input of rank 2",) and found.exact
