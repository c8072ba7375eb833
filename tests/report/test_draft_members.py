"""Which tests of a finding a draft counts among those that fail so, and what is told to be behind it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

from opera.programs.program import Instance, Operand
from opera.programs.values import Tensor
from opera.programs.verdicts import CRASH, INCONSISTENT, Outcome
from opera.report import draft as stage
from opera.report import issue
from opera.report.issue import Draft


@pytest.mark.parametrize(
    ("member", "alike"),
    [("index 3 is out of bounds", True), ("Type Var for scale is unsupported", False)],
)
def test_a_member_that_stops_in_other_words_is_not_counted_among_those_that_fail_so(member: str, alike: bool) -> None:
    shown = Outcome(CRASH, "load", "IndexError", "index 2 is out of bounds")
    assert stage._fails_so(msgspec.structs.replace(shown, message=member), shown) is alike
    assert not stage._fails_so(Outcome(CRASH, "load", "ValueError", shown.message), shown)
    wrong = Outcome(INCONSISTENT, "infer", "value", "off by 3")
    assert stage._fails_so(msgspec.structs.replace(wrong, message="off by another number"), wrong)


def test_a_member_that_clamps_an_infinity_is_not_counted_among_those_that_return_nan() -> None:
    """OpenVINO's Cast to float8 gives NaN for -448; that of an infinity to float32, the largest number."""
    own, alike, clamped = (
        Outcome(INCONSISTENT, "infer", "nan-mask", details={"expected": expected, "actual": actual})
        for expected, actual in ((-448.0, "nan"), ("inf", "nan"), ("inf", 3.4e38))
    )
    assert stage._fails_so(alike, own) and not stage._fails_so(clamped, own)


@pytest.mark.parametrize(
    ("deciding", "named"),
    [(("float8_e4m3fnuz or float8_e5m2fnuz inputs",), {"fnuz"}), (("to=1",), {"fnuz", "e8m0"}), ((), {"fnuz", "e8m0"})],
)
def test_tests_without_a_dtype_that_decides_are_not_counted_among_those_that_fail_so(
    monkeypatch: pytest.MonkeyPatch, deciding: tuple[str, ...], named: set[str]
) -> None:
    """TVM does not read round_mode of a cast to float8_e8m0; that was told as the bias of another float8."""
    held = {"fnuz": Tensor("float8_e4m3fnuz", (1,), b"\x40"), "e8m0": Tensor.of(np.float32([1.1]))}
    of = {x: Instance("onnx", "Cast", {"to": 1}, (Operand("X", y),), ("Y",), {}) for x, y in held.items()}
    of["stated"] = Instance("keras", "Abs", {"dtype": "float8_e4m3fnuz"}, of["e8m0"].inputs, ("Y",), {})  # may make one
    documents = [*((x, y.canonical()) for x, y in of.items()), ("old", b'{"form": "of another day"}')]
    monkeypatch.setattr(stage.tests, "documents", lambda *_: documents)
    told = stage._of_dtypes(None, {*of, "old"}, deciding)  # type: ignore[arg-type]
    assert told - {"stated", "old"} == named and "stated" in told


@pytest.mark.parametrize(("drawn", "named"), [("seed", {"seeded"}), ("constant", {"seeded", "free"})])
def test_tests_without_a_seed_are_not_counted_where_it_decides(
    monkeypatch: pytest.MonkeyPatch, drawn: str, named: set[str]
) -> None:
    """Of a seed of 0 OpenVINO draws other numbers each time, and so it may of none."""
    data = (Operand("input", Tensor.of(np.float32([1]))),)
    of = {x: Instance("onnx", "Bernoulli", y, data, ("Y",), {}) for x, y in (("seeded", {"seed": 0.0}), ("free", {}))}
    monkeypatch.setattr(stage.tests, "documents", lambda *_: [(x, y.canonical()) for x, y in of.items()])
    shown = Outcome(INCONSISTENT, "infer", "value", details={"drawn": drawn})
    assert stage._seeded(None, of, shown) == named  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({}, True),
        ({"doubts": ("file F1 first",), "follows": "F1"}, True),
        ({"doubts": ("file F2 first",), "follows": "F2"}, False),
        ({"doubts": ("it is not reduced",)}, False),
        ({"id": "F3"}, False),  # which is known upstream
        ({"id": "F4"}, False),  # which was not found so
    ],
)
def test_what_is_behind_it_is_told_if_nothing_else_speaks_against_that(
    monkeypatch: pytest.MonkeyPatch, more: dict[str, Any], told: bool
) -> None:
    """TVM's minimum of nothing is not written, and once it is begins at the largest number: a script asks for both mends."""
    own, other = (
        SimpleNamespace(id=x, environment="e", origins=(), doubts=(), follows="", sentence=f"{x} is wrong.")
        for x in ("F1", "F9")
    )
    other.__dict__.update(more)
    known: Any = SimpleNamespace(of=lambda x: "an issue" if x.id == "F3" else None)
    monkeypatch.setattr(stage.causes, "behind", lambda *_: [(x, "test_x of inf") for x in ("F3", "F9")])
    monkeypatch.setattr(stage, "findings", lambda _, environment: [own, other] if environment == "e" else [])
    found: list[Any] = list(stage._behind(None, own, known))  # type: ignore[arg-type]
    assert found == ([other] if told else [])
    shown = Outcome(INCONSISTENT, "infer", "value", "off by 3")
    drafted = Draft("F1", "tvm", "tvm", "wrong", "F1 is wrong", "ONNX", "tvm-onnx", shown)
    drafted = msgspec.structs.replace(drafted, behind=tuple(stage._in_a_row(x.sentence, ()) for x in found))
    assert ("or a bug of its own): F9 is wrong.\n" in issue.render(drafted)) is told
