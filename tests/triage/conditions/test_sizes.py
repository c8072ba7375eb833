"""From how many elements on a program passes is told to the element, where nothing else tells what fails."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opera.programs.program import Instance, Operand, Program
from opera.programs.values import Tensor, Value
from opera.triage.conditions import sizes
from opera.triage.conditions.circumstances import borne_out
from opera.triage.conditions.deciding import Decided
from opera.triage.conditions.labels import Labelled


def call(*shapes: tuple[int, ...]) -> Instance:
    held = tuple(Operand(f"x{n}", Tensor.of(np.ones(x, "f4"))) for n, x in enumerate(shapes))
    return Instance("onnx", "Any", {}, held, ("y",), {"opset": {"": 22}})


@given(st.integers(3, sizes.FAR[-1]))
def test_the_border_is_found_to_the_element_in_few_questions(border: int) -> None:
    asked = list[int]()

    def label(programs: Sequence[Program]) -> list[Labelled]:
        made = [(x, sizes.elements(x)) for x in programs]
        asked.extend(size for _, size in made)
        return [Labelled(x, size < border) for x, size in made]

    known = [*sizes.asked_about(call((1, 2)), lambda x: label(list(x)))]
    failing, passing = ([x.program for x in known if x.fails is fails] for fails in (True, False))
    assert [x.says for x in sizes.border([call((1, 2)), *failing], passing)] == [f"fewer than {border} elements"]
    assert len(asked) <= len(sizes.FAR) + sizes.STEPS


def test_nothing_is_told_of_a_border_that_is_not_known_to_the_element() -> None:
    assert not [*sizes.border([call((2,))], [call((4,))])]
    assert not [*sizes.border([call((4,))], [call((2,))])] and not [*sizes.border([call((4,))], [])]


@pytest.mark.parametrize("shape", [(), (0,), (2, 0)])
def test_what_has_no_elements_or_no_axis_does_not_grow(shape: tuple[int, ...]) -> None:
    assert sizes.grown(call(shape), 32) is None


def test_all_tensors_of_one_shape_grow_together() -> None:
    made = sizes.grown(call((2, 3), (2, 3), (3,)), 32)
    assert made is not None and [x.value.shape for x in made.instances()[0].inputs] == [(1, 32), (1, 32), (3,)]  # type: ignore[union-attr]


def test_small_tensors_that_are_folded_are_told_by_how_many_elements_they_have() -> None:
    """TensorFlow makes a constant of `zeros_like` of fewer than 1,000 elements, whatever dtype and rank."""

    def label(programs: Sequence[Program]) -> list[bool | None]:
        return [sizes.elements(x) < 1000 for x in programs]

    for loud in (False, True):
        found = borne_out(label, call((2, 2)), {"Any": {}}, Decided(), loud=loud)
        assert found.circumstances == ("fewer than 1000 elements",) and found.exact and found.passing > 0
        assert not found.bare, "it fails of none, too"


def test_what_passes_without_elements_is_known_to_and_not_taught_by() -> None:
    """A kernel that is missing is not missed where there is nothing to compute."""
    k: dict[str, Value] = {"k": 2}

    def label(programs: Sequence[Program]) -> list[bool | None]:
        return [x.instances()[0].params.get("k") == 2 and sizes.elements(x) > 0 for x in programs]

    program = msgspec.structs.replace(call((2, 2)), params=k)
    found = borne_out(label, program, {"Any": {"k": 1}}, Decided(("k=2",), ()), loud=True)
    assert found.decided.parameters == ("k=2",) and found.circumstances == () and found.bare and found.exact


def test_what_fails_whatever_its_size_is_told_of_no_size() -> None:
    found = borne_out(lambda programs: [True for _ in programs], call((2, 2)), {"Any": {}}, Decided())
    assert found.circumstances == () and found.passing == 0


@pytest.mark.parametrize("fails", [True, False])
def test_what_is_told_of_a_border_holds_of_no_elements_where_that_was_seen(fails: bool) -> None:
    """OpenVINO has no output of what TensorFlow folds, empty or not; another compiler might pass what is empty."""
    seen = ([call((0, 2))], []) if fails else ([], [call((0, 2))])
    [found] = sizes.border([call((3,)), *seen[0]], [call((4,)), *seen[1]])
    [both] = sizes.border([call((3,)), call((0, 2))], [call((4,)), call((2, 0))])
    assert not both.holds(call((0,))), "one fails, and one passes"
    assert (found.says, found.holds(call((0,)))) == ("fewer than 4 elements", fails)
