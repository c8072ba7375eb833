"""Which numbers a conversion gets wrong: members are asked with one kind of number alone, and that divides findings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest
from faults.onnx_faults import Silent
from hypothesis import given
from hypothesis import strategies as st

from opera.programs.program import Captured, Instance, Operand, Program, Provenance
from opera.programs.values import CONTAINERS, Tensor
from opera.programs.verdicts import INCONSISTENT, INVALID, PASS, SCREENED, Limits, Outcome
from opera.run import driver as stage
from opera.store.workspace import Workspace
from opera.triage.distinct import causes, dividing, numbers
from opera.triage.distinct.causes import conclude
from opera.triage.distinct.dividing import Called, Reduced
from opera.triage.distinct.numbers import OF_NARROW, ORDINARY, SPECIAL
from opera.triage.findings import findings
from opera.triage.reducer import reducing
from opera.triage.reduction import Reduction
from opera.triage.reproducers import scripts

WRONG = Outcome(INCONSISTENT, "infer", "nan-mask", "output 'y': expected nan, got 1.0")
FLOATS = sorted(x for x in CONTAINERS if "float" in x)


def cast(dtype: str = "float32", shape: tuple[int, ...] = (2, 3), to: int = 17) -> Instance:
    held = Tensor.of(np.zeros(shape, CONTAINERS[dtype]), dtype)
    return Instance("onnx", "Cast", {"to": to}, (Operand("input", held),), ("output",), {"opset": {"": 19}})


def first(program: Program) -> Any:
    held = program.inputs[0].value
    assert isinstance(held, Tensor)
    return held.numbers()


class Compiler:
    """Shows of a program what a function says of its numbers: a verdict, or whether they go wrong."""

    def __init__(self, shows: Callable[[Any], bool | str]) -> None:
        self.shows = shows

    def look(self, programs):
        said = (self.shows(first(x)) for x in programs)
        return [Outcome(x) if isinstance(x, str) else WRONG if x else Outcome(PASS) for x in said]


@pytest.mark.parametrize(
    ("dtype", "shows", "says"),
    [
        ("float32", lambda x: True, ORDINARY),
        ("float8_e5m2", lambda x: True, ORDINARY),
        ("float32", lambda x: np.isnan(x).any(), SPECIAL),
        ("float32", lambda x: (np.abs(x) > 500).any(), SPECIAL),
        ("float16", lambda x: np.isinf(x).any(), SPECIAL),
        ("float8_e4m3fn", lambda x: np.isnan(x).any(), OF_NARROW),
        ("float8_e4m3fn", lambda x: np.isinf(x).any(), ""),  # it has none
        ("float32", lambda x: False, ""),
        ("float32", lambda x: SCREENED if not np.isfinite(x).all() else False, ""),
        ("float32", lambda x: INVALID, ""),
        ("int32", lambda x: True, ""),
    ],
)
def test_each_kind_of_number_is_asked_about_alone(dtype: str, shows: Callable[[Any], bool], says: str) -> None:
    assert numbers.wrong(Compiler(shows), cast(dtype)) == says  # type: ignore[arg-type]


@given(st.sampled_from(FLOATS), st.lists(st.integers(0, 3), max_size=3).map(tuple))
def test_ordinary_numbers_are_such_in_every_dtype(dtype: str, shape: tuple[int, ...]) -> None:
    made = numbers.ordinary(cast(dtype, shape))
    if made is None:
        assert 0 in shape
    else:
        held = first(made)
        assert held.shape == shape and set(held.ravel().tolist()) <= set(numbers.USUAL)


@pytest.mark.parametrize(
    ("operator", "outcome", "asked"),
    [
        ("CastLike", WRONG, True),
        ("torch.Tensor.to", msgspec.structs.replace(WRONG, symptom="value"), True),
        ("Resize", WRONG, False),
        ("Cast", msgspec.structs.replace(WRONG, symptom="shape"), False),
    ],
)
def test_wrong_values_of_conversions_are_asked_about(operator: str, outcome: Outcome, asked: bool) -> None:
    assert numbers.converts([operator], outcome) is asked


# ---------------------------------------------------------------------- what follows


def reduced(test: str, dtype: str = "float32", *deciding: str, finding: str = "F1") -> Reduced:
    program = cast(dtype)
    captured = Captured(program, Provenance("s", "f", "t")).form()
    at = Reduction(finding, "e", "a-onnx", "inputs", test, captured, WRONG, stored=f"of {program.id}")
    return Reduced(finding, msgspec.structs.replace(at, deciding=deciding, nondefault=1))


CAST = Called(("Cast",), frozenset({("input 0", "float32")}))
TESTS = ("t0", "t1", "t2", "t3", "t4")
KNOWN = {("F1", "t0"): SPECIAL, ("F1", "t1"): ORDINARY, ("F1", "t2"): ORDINARY, ("F1", "t3"): OF_NARROW}
ONES = [reduced("t0"), reduced("t1", "float8_e4m3fnuz")]


def test_other_numbers_that_go_wrong_are_other_causes() -> None:
    """Neither t2 nor t3 was reduced: one goes with t1, the other is a part of its own; nobody asked t4."""
    told = conclude(
        ONES, {"F1": TESTS}, dict.fromkeys(TESTS, CAST), {"F1": 1.0}, {}, wrong={"F1": {}}, of_numbers=KNOWN
    )
    assert told.of("F1", "t0") == told.of("F1", "t4") == "F1"
    assert len({told.of("F1", x) for x in ("t0", "t1", "t3")}) == 3 and told.of("F1", "t2") == told.of("F1", "t1")


def test_the_same_numbers_tell_nothing() -> None:
    known = dict.fromkeys(KNOWN, SPECIAL)
    assert not numbers.telling(known) and len(numbers.telling(KNOWN)) == len(KNOWN)
    assert dividing.kinds_of(ONES, of_numbers=numbers.telling(known)) == dividing.kinds_of(ONES)


def test_what_is_made_of_a_member_with_ordinary_numbers_has_its_cause() -> None:
    found = [*ONES, reduced("made", finding="F2")]
    known, created = {**KNOWN, ("F2", "made"): ORDINARY}, {"F1": 1.0, "F2": 2.0}
    for origin, one in (({"made": "F1"}, True), ({}, False)):
        told = conclude(
            found,
            {"F1": TESTS},
            dict.fromkeys(TESTS, CAST),
            created,
            {},
            wrong={"F1": {}},
            of_numbers=known,
            made_of=origin,
        )
        assert (told.of("F2", "made") == told.of("F1", "t1")) is one and told.of("F1", "t0") == "F1"


def castlike(number: int, target: str) -> Captured:
    """Return a test of NaN, infinity and ordinary numbers at once."""
    x = np.array([1.0, 2.0, np.nan], np.float32)
    inputs = (Operand("input", Tensor.of(x)), Operand("target_type", Tensor.of(np.zeros(1, np.uint8), target)))
    call = Instance("onnx", "CastLike", {}, inputs, ("output",), {"opset": {"": 19}})
    return Captured(call, Provenance("suite", "file", f"cast{number}"))


@pytest.mark.full
def test_a_wrong_bias_is_no_forgotten_nan(workspace: Workspace) -> None:
    """TVM computes every number of float8_e4m3fnuz wrongly, and NaN of float8_e4m3fn."""
    pytest.importorskip("tvm")
    pytest.importorskip("onnx")
    workspace.add_captured([castlike(0, "float8_e4m3fn"), castlike(1, "float8_e4m3fnuz")])
    stage.run(workspace, stage.Options(compilers=("tvm", "onnxruntime"), workers=1, limits=Limits(120.0)), Silent())
    [whole] = [x for x in findings(workspace) if x.frontend == "tvm-onnx"]
    assert len(whole.members) == 2
    reducing.reduce_all(workspace, [whole.id], 60.0, 600.0, lambda _: None, workers=1)
    assert {SPECIAL, ORDINARY} <= set(numbers.stored(workspace).values())
    found = [x for x in findings(workspace) if x.frontend == "tvm-onnx"]
    assert {x.symptom for x in found} == {"nan-mask"} and len(found) == 2
    [plain] = [x for x in found if "cast1 with ordinary numbers" in x.origins]
    assert "nan" not in plain.sentence and scripts.members(workspace).keys() >= {x.id for x in found}
    assert all(causes.behind(workspace, x.id, x.origins) == [] for x in found)
