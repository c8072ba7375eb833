"""What is told to decide holds of ordinary programs: they are asked first, and what fails in other words counts as well."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opera.programs.program import Instance, Operand, Program
from opera.programs.values import Tensor
from opera.programs.verdicts import CRASH, INCONSISTENT, Outcome
from opera.run.probe import Question
from opera.triage.conditions import arguments, circumstances, forms, near, removable
from opera.triage.conditions.circumstances import Borne, Labelled, borne_out
from opera.triage.conditions.deciding import Decided
from opera.triage.conditions.features import features
from opera.triage.reducer.asking import Asker
from opera.triage.shrink import smaller
from opera.triage.shrink.minimise import Spent

F32 = np.float32


def call(*arrays: Any, **params: Any) -> Instance:
    given = tuple(Operand(f"x{n}", Tensor.of(np.asarray(x))) for n, x in enumerate(arrays))
    return Instance("onnx", "Any", params, given, ("y",), {"opset": {"": 22}})


def shape(program: Program, place: int = 0) -> tuple[int, ...]:
    return smaller.leaves(program)[place].shape


def borne(
    program: Instance, shows: Callable[[Instance], bool | str | None], told: Decided, known: Any = None, **more: Any
) -> Borne:
    """What is told where programs fail (True), pass (False), fail in other words ("otherwise") or say nothing (None)."""

    def label(programs: Sequence[Program]) -> list[bool | None]:
        return [None if (says := shows(x)) == "otherwise" else says for x in programs if isinstance(x, Instance)]  # type: ignore[misc]

    def otherwise(x: Program) -> bool:
        return isinstance(x, Instance) and shows(x) == "otherwise"

    return borne_out(label, program, {"Any": known or {}}, told, otherwise=otherwise, **more)


@settings(max_examples=30)
@given(st.lists(st.integers(0, 3), max_size=4), st.sampled_from(["float32", "int64", "float64"]))
def test_ordinary_programs_differ_in_lengths_and_ranks_alone(sizes, dtype):
    program = call(np.ones(sizes, dtype), np.ones(sizes, dtype), axis=1)
    made = forms.plain(program)
    assert len({x.id for x in (program, *made)}) == len(made) + 1
    assert all(isinstance(x, Instance) and x.params == program.params for x in made)
    assert all({y.dtype for y in smaller.leaves(x)} == {dtype} for x in made)
    assert all(min(shape(x)) > 1 for x in made)
    assert {(3,), (2, 3), (3, 3), (2, 3, 4)} <= {shape(x) for x in (program, *made)}


def test_what_fails_in_other_words_at_ordinary_places_speaks_against_what_is_told():
    """`unique` of NumPy 2 has a flat inverse: 0-d and 2-d inputs fail, each in words of its own."""

    def shows(x: Instance) -> bool | str:
        return {0: True, 1: False}.get(len(shape(x)), "otherwise")

    found = borne(call(F32(1.0)), shows, Decided((), ("a 0-d input",)))
    assert (found.decided, found.circumstances) == (Decided(), ("an input of another rank than 1",))
    assert found.exact


def test_one_that_fails_in_other_words_contradicts_nothing_that_more_ordinary_ones_bear_out():
    def shows(x: Instance) -> bool | str | None:
        return {4: 0 in shape(x), 3: "otherwise"}.get(len(shape(x)))

    told = Decided((), ("an empty input",))
    assert borne(call(np.ones((0, 2, 2, 2), F32)), shows, told).decided == told


def test_another_value_of_a_parameter_that_has_its_default_is_asked_about():
    """A padding is right below the stride, which nobody gave."""

    def shows(x: Instance) -> bool:
        return x.params.get("padding", 0) >= x.params.get("stride", 1)

    found = borne(call(np.ones((1, 2), F32), padding=2), shows, Decided(("padding=2",)), {"padding": 0, "stride": 1})
    assert (found.decided, found.circumstances) == (Decided(), ("padding not below stride",))
    flag = borne(
        call(np.ones((1, 2), F32)), lambda x: x.params.get("center", True) is True, Decided(), {"center": True}
    )
    assert flag.circumstances == ("center=True",)


def test_that_one_of_several_is_left_out_is_told_only_where_all_of_them_given_pass():
    def shows(x: Instance) -> bool | None:
        given = x.params.get("window", next((y.value for y in x.inputs if y.name == "window"), None))
        return None if given is not None else x.params.get("hop") is None or shape(x) == (3, 3)

    told, known = Decided(("hop left out",)), {"hop": None, "window": None}
    failing = Labelled(call(np.ones((3, 3), F32), hop=4, size=4), True)
    found = borne(call(np.ones((1, 2), F32), hop=None, size=4), shows, told, known, seen=[failing])
    assert found.decided.parameters == ()


def test_where_a_result_is_written_is_never_told():
    program, known = call(np.ones(2, F32), out=None, alpha=1), {"Any": {"out": None}}
    assert arguments.unstated(program, known["Any"]) == []
    assert not any("out" in x.says for x in features(program, known))
    assert not any("out" in x.says.split() or "out=" in x.says for x in removable.conditions(program, known))


def test_what_fails_without_a_parameter_as_well_fails_of_something_else_wherever_it_comes_from():
    """Of most programs without it passes, so that one that fails and has it not, a passing test's neighbour, tells nothing."""
    program, told = call(np.ones((2, 3), F32), policy=1), Decided(("policy=1",))
    other = Labelled(call(np.ones((7, 5), F32)), True)

    def shows(x: Instance) -> bool:
        return x.params.get("policy", 0) == 1 or shape(x) == (7, 5)

    found = borne(program, shows, told, {"policy": 0}, seen=[other])
    assert (found.decided, found.exact) == (told, True)


def test_a_call_without_inputs_is_told_as_that():
    given_one = Labelled(call(F32([1.0])), False)
    found = borne(call(), lambda x: not x.inputs, Decided(), seen=[given_one])
    assert (found.circumstances, found.exact) == (("no tensor given",), True)


def test_where_there_was_no_time_to_see_why_most_pass_it_is_not_known_what_decides():
    """Of those that have what is told more pass than fail."""
    program, told = call(np.ones((2, 2), F32), dims=1), Decided(("dims=1",))

    def shows(x: Instance) -> bool | None:
        fails = x.params.get("dims", 0) == 1 and shape(x) == (2, 2)
        return fails if smaller.leaves(x)[0].dtype == "float32" else None

    found = borne(program, shows, told, {"dims": 0}, moot=lambda _: None)
    assert not found.exact and found.despite > found.failing
    assert borne(program, shows, told, {"dims": 0}, moot=lambda _: True).despite == 0


def test_what_a_program_has_no_use_for_may_be_any_thing_that_decides():
    """A mask that masks nothing shows nothing of what becomes of masked elements, though the mode that shows them is given."""

    class Library:
        def reference(self, program: Program) -> list[Any]:
            [x] = program.instances()
            return [x.params.get("mode", 0), x.params.get("causal", 0) and shape(x)[0] > 1]

    known = {"Any": {"mode": 0, "causal": 0}}
    one, several = (call(np.ones((n, 2), F32), mode=2, causal=1) for n in (1, 2))
    ask: Any = Library()
    assert circumstances._moot(ask, ("causal=1", "mode=2"), known, one) is True
    assert circumstances._moot(ask, ("causal=1", "mode=2"), known, several) is False

    def spent(_: Program) -> list[Any]:
        raise Spent

    ask.reference = spent
    assert circumstances._moot(ask, ("causal=1",), known, one) is None


def test_an_axis_less_goes_with_the_number_of_the_axis_that_is_left():
    """Blocks along the second axis of two become blocks along the only one."""
    program = call(np.ones((1, 4), F32), np.ones((1, 2), F32), block_size=2)
    made = [x for row in near.near(program, {"Any": {"axis": 1}}) for x in row if isinstance(x, Instance)]
    assert ((4,), (2,), 0) in [(shape(x), shape(x, 1), x.params.get("axis")) for x in made if len(x.inputs) == 2]


@pytest.mark.parametrize(
    ("before", "now", "wanted"),
    [
        (Outcome(CRASH, "infer", "ValueError", "ndim"), Outcome(CRASH, "infer", "Error", "no such shape"), True),
        (Outcome(CRASH, "infer", "ValueError", "ndim"), Outcome(CRASH, "load", "Error", "no such shape"), False),
        (Outcome(CRASH, "infer", "ValueError", "ndim"), Outcome("pass"), False),
        (Outcome(CRASH, "infer", "ValueError", "ndim"), Outcome(CRASH, "infer", "ValueError", "ndim"), False),
        (Outcome(INCONSISTENT, "infer", "value"), Outcome(INCONSISTENT, "infer", "shape"), True),
    ],
)
def test_what_fails_otherwise_does_so_in_the_same_stage(before, now, wanted):
    ask: Any = Asker(None, Question(frontend="tvm-onnx"))  # type: ignore[arg-type]
    program = call(F32([1.0]))
    ask.target, ask.outcomes = before, {program.id: now}
    assert ask.otherwise(program) is wanted
    assert not ask.otherwise(call(F32([2.0])))
