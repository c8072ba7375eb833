"""From which number on a program fails: it is asked about between those that pass and those that fail."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opera.programs.program import Instance, Operand, Program
from opera.programs.values import Tensor
from opera.triage.conditions import edges, features, removable, wider
from opera.triage.conditions.labels import Labelled
from opera.triage.shrink import smaller

F32 = np.float32


def call(array: Any, **params: Any) -> Instance:
    return Instance("onnx", "Any", params, (Operand("x", Tensor.of(np.asarray(array))),), ("y",), {"opset": {"": 22}})


def numbers(program: Program) -> Any:
    held = smaller.leaves(program)[0]
    return held.numbers().astype("float64") if isinstance(held, Tensor) else np.ones(1)


def asking(fails: Callable[[Instance], bool]) -> Callable[[Iterable[Program]], list[Labelled]]:
    return lambda programs: [Labelled(x, fails(x)) for x in programs if isinstance(x, Instance)]


def found(program: Instance, fails: Callable[[Any], bool]) -> edges.Edge | None:
    said = list(edges.of_input(program, "x", asking(lambda x: bool(fails(numbers(x)).any()))))  # type: ignore[attr-defined]
    assert sum(isinstance(x, edges.Edge) for x in said) < 2 and len(said) < 60
    return next((x for x in said if isinstance(x, edges.Edge)), None)


CASES: list[tuple[Any, Callable[[Any], Any], str]] = [
    (F32([0.5, -0.9972]), lambda x: (np.abs(x) > 0.9966) & (np.abs(x) < 1), "a number of absolute value between about 0.99"),
    (F32([3.0]), lambda x: x > 1.25, "a number above about 1.2 in an input"),
    (F32([-3.0]), lambda x: x < 0, "a negative number in an input"),
    (F32([3.0]), lambda x: x > 0, "a positive number in an input"),
    (F32([3.0]), lambda x: np.abs(x) > 0.5, "a number of absolute value above about 0.5 in an input"),
    (np.int32([100]), lambda x: x > 37, "a number above about 37 in an input"),
]  # fmt: skip


@pytest.mark.parametrize(("array", "fails", "wanted"), CASES, ids=[x[2][:40] for x in CASES])
def test_where_failing_begins_is_told_as_the_numbers_say(array: Any, fails: Callable[[Any], Any], wanted: str) -> None:
    program = call(array)
    edge = found(program, fails)
    assert edge is not None and edge.feature("x").says.startswith(wanted) and edge.feature("x").holds(program)


def test_nothing_is_told_where_no_number_decides_alone() -> None:
    assert found(call(F32([1, 2])), lambda x: x == np.max(x) if len(set(x.tolist())) > 1 else x != x) is None
    assert found(call(F32([1, 2])), lambda x: x == x) is None
    assert found(call(F32([1.5])), lambda x: x % 1 != 0) is None, "whole numbers pass in between"


def test_a_loss_that_grows_has_no_border() -> None:
    """Between what passes and what is grossly wrong are numbers that are a little wrong: nobody is told where that begins."""

    def asked(programs: Iterable[Program]) -> list[Labelled]:
        said = [(x, float(numbers(x).max())) for x in programs]
        return [Labelled(x, worst > 3.2) for x, worst in said if not 2.6 < worst <= 3.2]

    told = [x for x in edges.of_input(call(F32([14])), "x", asked) if isinstance(x, edges.Edge)]  # type: ignore[arg-type]
    assert [x.feature("x").says for x in told] == ["a large number in an input"]
    assert told[0].feature("x").holds(call(F32([4]))) and not told[0].feature("x").holds(call(F32([1, 2])))


def test_a_sign_is_told_only_where_small_numbers_of_it_fail_too() -> None:
    edge = found(call(F32([-20, 1])), lambda x: x < -4.5)
    assert edge is not None and edge.feature("x").says == "a number below about -4.5 in an input"


def test_integers_that_float32_holds_pass_in_between() -> None:
    """Beyond 2**24 it is no border that decides but whether float32 holds the number."""
    assert found(call(np.int32([16777217])), lambda x: x.astype("float32").astype("float64") != x) is None
    edge = found(call(np.int32([16777217])), lambda x: x > 16777216)
    assert edge is not None and edge.feature("x").says == "a number above about 16777216 in an input", (
        "digits that tell"
    )


def test_of_a_parameter_other_numbers_are_asked_about_too() -> None:
    program = call(F32([1]), beta=4.0)
    said = list(edges.of_parameter(program, "beta", 1.0, asking(lambda x: bool(x.params["beta"] > 2.2))))  # type: ignore[operator]
    labels = {x.program.params["beta"]: x.fails for x in said if isinstance(x, Labelled)}  # type: ignore[union-attr]
    assert min(x for x, fails in labels.items() if fails) - max(x for x, fails in labels.items() if not fails) < 0.02


@given(st.floats(-8, 8, width=16), st.floats(0.125, 8, width=16))
def test_what_is_told_holds_of_all_that_fail_and_of_none_that_passes(edge: float, more: float) -> None:
    said = list(edges.of_input(call(F32([edge + more])), "x", asking(lambda x: bool(numbers(x)[0] > edge))))
    told = [x.feature("x") for x in said if isinstance(x, edges.Edge)]
    assert all(of.holds(x.program) is x.fails for of in told for x in said if isinstance(x, Labelled))


@pytest.mark.parametrize(
    ("bad", "good", "wanted"),
    [
        ([-1.0, -2.0], [-0.9995, 0.0, 1.0], "alpha <= -1"),
        ([4.0, 5.5], [3.999, 0.0, 2.0], "alpha >= 4"),
        ([5.0, 9.0], [3.5, 0.0, 2.0], "alpha > 3.5"),  # where between the two is not known
        ([4, 5], [3, 0, 2], "alpha > 3"),
    ],
)
def test_a_whole_number_at_which_it_begins_is_told_and_not_the_fraction_beside_it(bad, good, wanted):
    told = [(words, holds) for words, holds in wider._told("alpha", 0.25, bad, good) if not any(map(holds, good))]
    words, _ = next(x for x in told if all(map(x[1], bad)))
    assert words == wanted and removable.named(words) == "alpha"


def test_the_edge_of_a_parameter_at_its_default_is_told_of_both_sides() -> None:
    """PyTorch's exporter takes an `eps` of 1e-8 or less for 0, which it may add nowhere."""
    default = 1e-8

    def fails(x: Instance) -> bool:
        return 0 < float(x.params.get("eps", default)) <= 1e-8  # type: ignore[arg-type]

    said = list(edges.of_parameter(call(F32([1])), "eps", default, asking(fails)))
    [edge] = [x for x in said if isinstance(x, edges.Edge)]
    told = edge.of("eps", lambda x: x.params.get("eps", default))  # type: ignore[union-attr]
    assert told is not None and removable.named(told.says) == "eps"
    assert told.says.startswith("eps > 0 and < 1.0") and told.says.endswith("e-08")
    assert told.holds(call(F32([1]))) and told.holds(call(F32([1]), eps=5e-9))
    assert not any(told.holds(call(F32([1]), eps=x)) for x in (0.0, -1.0, 2e-8, 1.0))


def test_of_a_fraction_on_whose_side_of_one_that_passes_it_is_is_told() -> None:
    known: dict[str, Any] = {"Any": {"eps": 1e-8, "mode": "a"}}
    passing = [call(F32([1]), eps=x) for x in (1e-3, -1.0)]
    told = {x.says: x for x in features.as_left(call(F32([1])), known, passing)}
    assert {"eps < 0.001", "eps > -1", "eps=1e-08"} <= told.keys()
    assert told["eps < 0.001"].holds(call(F32([1]), eps=1e-4)) and not told["eps < 0.001"].holds(passing[0])


def test_of_a_default_beyond_a_number_that_passes_the_side_is_told_and_none_of_axes() -> None:
    known: dict[str, Any] = {"Any": {"r": 2, "axis": 1}}
    passing = [call(F32([1]), r=1), call(F32([1]), r=4), call(F32([1]), axis=0)]
    told = {x.says: x for x in features.as_left(call(F32([1])), known, passing)}
    assert {"r > 1", "r < 4", "r other than 1", "axis other than 0"} <= told.keys() and "axis > 0" not in told
    assert [told["r > 1"].holds(call(F32([1]), r=x)) for x in (0, 1, 3, True)] == [False, False, True, False]


def test_of_two_signs_the_size_of_a_parameter_is_told_by_comparisons() -> None:
    value = read_k
    far, close = edges.Edge(edges.SIZE, 3.0, 3.1, 9.0, np.inf), edges.Edge(edges.SIZE, -np.inf, 0.0, 2.9, 3.0)
    told = [x.of("k", value) for x in (far, close)]
    assert [x.says for x in told if x] == ["k > 3 or < -3", "k > -3 and < 3"]
    assert [[x.holds(call(F32([1]), k=k)) for k in (-5.0, -1.0, 1.0, 5.0)] for x in told if x] == [
        [True, False, False, True], [False, True, True, False],
    ]  # fmt: skip
    assert edges.Edge(edges.SIZE, 1.0, 1.1, 2.9, 3.0).of("k", value) is None
    assert not any(x.holds(call(F32([1]), k=True)) for x in told if x)


def read_k(program: Program) -> object:
    return program.instances()[0].params["k"]
