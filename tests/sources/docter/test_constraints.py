from __future__ import annotations

import pytest

from opera.errors import CorpusError
from opera.sources.docter import constraints
from opera.sources.docter.constraints import Dtype, Number, Operation, Reference, Rest, Shape, Variable, references


def test_terms_are_read_with_their_precedence() -> None:
    assert constraints.term("in_channels/&groups - 1") == Operation(
        "-", Operation("/", Variable("in_channels"), Reference("value", "groups")), Number(1)
    )
    assert constraints.term("2*(n+1)") == Operation("*", Number(2), Operation("+", Variable("n"), Number(1)))


def test_shapes_hold_references_and_rests() -> None:
    assert constraints.shape("[N,...,len:&weight]") == Shape((Variable("N"), Rest(), Reference("len", "weight")))
    assert constraints.shape("[]") == Shape(())
    assert constraints.shape("&input") == Shape((Reference("shape", "input"),))


@pytest.mark.parametrize(
    ("text", "low", "high", "closed", "whole"),
    [("[0,inf)", 0, float("inf"), (True, False), False), ("int:(0, 5]", 0, 5, (False, True), True)],
)
def test_ranges(text: str, low: float, high: float, closed: tuple[bool, bool], whole: bool) -> None:
    made = constraints.interval(text)
    assert (made.low, made.high, made.closed, made.whole) == (low, high, closed, whole)


def test_dtypes_have_one_name() -> None:
    names = ["torch.bool", "tf.bool", "boolean", "bool"]
    assert {constraints.dtype(x) for x in names} == {Dtype("bool")}
    assert constraints.dtype("dtype:&input") == Dtype("", "input")


@pytest.mark.parametrize("text", ["[0,1", "[1,0]", "0,1", "[0;1]"])
def test_bad_ranges_are_refused(text: str) -> None:
    with pytest.raises(CorpusError):
        constraints.interval(text)


@pytest.mark.parametrize("text", ["1 2", "(" * 50 + "1" + ")" * 50, "x" * 300, "__import__('os')", "a..b", ""])
def test_bad_terms_are_refused(text: str) -> None:
    with pytest.raises(CorpusError):
        constraints.term(text)


def test_references_name_parameters_and_variables() -> None:
    made = constraints.parameter("x", {"dtype": ["dtype:&y"], "shape": ["[N,&c]"], "ndim": ["ndim:&z"]}, None, "")
    assert references(made) == {"y", "N", "c", "z"}
