"""What is off by a narrower dtype's rounding is looked for at numbers at which it is grossly wrong."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opera.oracle.screens import AGREEING
from opera.programs.program import Instance, Operand, Program
from opera.programs.values import Tensor
from opera.programs.verdicts import INCONSISTENT, PASS, Outcome
from opera.run.probe import Question
from opera.triage.failure import GROSS, quiet, rounded
from opera.triage.reducer import asking, loud
from opera.triage.sentence import sentence
from opera.triage.shrink import smaller


def wrong(expected: float, actual: float, rel: float = 0.0, symptom: str = "value") -> Outcome:
    details = {"output": "y", "expected": expected, "actual": actual, "max_rel": rel}
    return Outcome(INCONSISTENT, "infer", symptom, "output 'y'", details=details)


def sum_of(array: np.ndarray) -> Instance:  # type: ignore[type-arg]
    return Instance("torch", "torch.sum", {"dtype": "float64"}, (Operand("x", Tensor.of(array)),), ("y",), {})


@pytest.mark.parametrize(
    ("expected", "actual", "dtype"),
    [
        (0.36660938311080454, 0.3666093349456787, "float32"),
        (0.36660938311080454, 0.5, ""),  # far off
        (0.5000000001, 0.5, ""),  # such a number is one of any dtype
        (0.36660938311080454, 0.36660938311080459, ""),
        (0.36660939455032349, 0.36669921875, "float16"),
        (3.0, 2.0, ""),
    ],
)
def test_a_number_of_a_narrower_dtype_is_known_by_its_bits(expected: float, actual: float, dtype: str) -> None:
    assert rounded(wrong(expected, actual)) == dtype


def test_it_is_told_which_dtype_a_number_is_of() -> None:
    seen = wrong(0.36660938311080454, 0.3666093349456787)
    seen.details.update(index="[4]", differing=1, elements=5)
    assert "y[4] is the float32 0.3666093, not 0.3666094 (1 of 5" in sentence("TVM", "torch.sum", seen)


@given(st.floats(1e-30, 1e30))
def test_what_float32_makes_of_a_number_is_known_or_has_few_bits(number: float) -> None:
    made = float(np.float32(number))
    few = float(np.float16(made)) == made if abs(made) < 6e4 else False
    assert rounded(wrong(number, made)) == ("float32" if made != number and not few else "")


class Compiler:
    """Computes a sum in float32; another implementation gives what is expected."""

    def __init__(self, seen: Outcome, program: Program, agrees: bool = True) -> None:
        self.outcomes, self.agrees = {program.id: seen}, agrees

    def within(self, programs: Sequence[Program]) -> list[Program]:
        return list(programs)

    def look(self, programs: Sequence[Program]) -> list[Outcome]:
        return [self.shown(x) for x in programs]

    def shown(self, program: Program) -> Outcome:
        [x] = smaller.leaves(program)
        assert isinstance(x, Tensor)
        with np.errstate(over="ignore"):
            right, got = float(x.array().sum(dtype="f8")), float(x.array().astype("f4").sum(dtype="f4"))
        if not np.isfinite(got):
            return wrong(right, got, symptom="nan-mask")
        off = abs(right - got) / (abs(right) or 1.0)
        return wrong(right, got, off) if off > 1e-7 else Outcome(PASS)

    def agreed(self, program: Program) -> bool:
        return self.agrees


def test_a_sum_in_float32_ends_where_it_overflows() -> None:
    program = sum_of(np.array([8.4783, 1.7658, 4.3228], "f4"))
    seen = wrong(0.36660938311080454, 0.3666093349456787)
    [found] = loud.louder(Compiler(seen, program), program)  # type: ignore[arg-type]
    [leaf] = smaller.leaves(found)
    assert isinstance(leaf, Tensor) and leaf.dtype == "float32" and leaf.array().max() > 1e38
    for ask in (Compiler(seen, program, agrees=False), Compiler(wrong(1.0, 2.0, 1.0), program)):
        assert loud.louder(ask, program) == []  # type: ignore[arg-type]


class LogSigmoid(Compiler):
    """Computes it as the logarithm of a sigmoid that float32 holds: minus infinity of -100."""

    def shown(self, program: Program) -> Outcome:
        [x] = smaller.leaves(program)
        assert isinstance(x, Tensor)
        number = float(x.array().ravel()[0])
        right = -float(np.logaddexp(0.0, -number))
        return wrong(right, -np.inf, symptom="nan-mask") if number <= -100 else Outcome(PASS)


def test_a_small_error_of_any_origin_ends_where_it_is_infinite() -> None:
    program = sum_of(np.array([-8.48, 1.0], "f4"))
    seen = wrong(-8.480207, -8.479, 1.4e-4)
    [found] = loud.louder(LogSigmoid(seen, program), program)  # type: ignore[arg-type]
    [leaf] = smaller.leaves(found)
    assert isinstance(leaf, Tensor) and leaf.array().tolist() == [-100.0, 100.0]
    gross = wrong(-8.48, -4.24, 0.5)
    assert loud.louder(LogSigmoid(gross, program), program) == [], "it shows itself"  # type: ignore[arg-type]


def test_what_documentation_does_not_admit_or_must_be_infinite_is_no_louder_form() -> None:
    program, seen = sum_of(np.array([-8.48, 1.0], "f4")), wrong(-8.480207, -8.479, 1.4e-4)

    class Narrow(LogSigmoid):
        def within(self, programs: Sequence[Program]) -> list[Program]:
            return [
                x
                for x in programs
                if all(abs(y.array()).max() < 50 for y in smaller.leaves(x) if isinstance(y, Tensor))
            ]

    class Infinite(LogSigmoid):
        def shown(self, program: Program) -> Outcome:
            found = super().shown(program)
            found.details["not_finite"] = True
            return found

    for ask in (Narrow(seen, program), Infinite(seen, program)):
        assert loud.louder(ask, program) == []  # type: ignore[arg-type]


@given(st.floats(1e-3, 1e3), st.floats(-1.0, 1.0))
def test_quiet_is_what_is_relatively_less_than_a_hundredth_off(expected: float, off: float) -> None:
    seen = wrong(expected, expected * (1 + off), abs(off))
    assert quiet(seen) is (0 < abs(off) < GROSS or bool(rounded(seen)))
    assert not quiet(Outcome(INCONSISTENT, "infer", "nan-mask", details=seen.details))


@pytest.mark.parametrize(("actual", "says"), [(0.3666093349456787, None), (0.5, False)])
def test_what_passes_within_rounding_may_be_as_wrong(actual: float, says: bool | None) -> None:
    class Passing(asking.Asker):
        def look(self, programs: Sequence[Program]) -> list[Outcome]:
            self.outcomes.update((x.id, Outcome(PASS)) for x in programs)
            return [Outcome(PASS) for _ in programs]

    ask = Passing(None, Question(frontend="f"))  # type: ignore[arg-type]
    ask.target = wrong(0.36660938311080454, actual, 1.0)
    ask.ordinary = [sum_of(np.ones(2, "f4"))]
    assert ask.label([sum_of(np.ones(1, "f4"))]) == [says]
    assert [x.fails for x in ask.seen()] == ([] if says is None else [False])


@pytest.mark.parametrize(("dtype", "narrow", "most"), [("int64", "float32", 2**24 + 1), ("float16", "float16", 6e4)])
def test_numbers_are_those_that_the_input_holds(dtype: str, narrow: str, most: float) -> None:
    made = list(loud.programs(sum_of(np.ones(2, dtype)), narrow))
    tops = [x.array().astype("f8").max() for y in made for x in smaller.leaves(y) if isinstance(x, Tensor)]
    assert tops and max(tops) == pytest.approx(most, rel=1e-3)
    assert list(loud.programs(sum_of(np.ones(2, "bool")), narrow)) == []


@pytest.mark.parametrize(
    ("actual", "confirmed", "made"), [(0.5, True, True), (0.999999, True, False), (0.5, False, False)]
)
def test_what_is_wrong_of_ordinary_numbers_is_filed_of_these(actual: float, confirmed: bool, made: bool) -> None:
    """TVM reads one float8 for another: a NaN that comes out as a number says less than a 1 that comes out as 0.5."""

    class Ask:
        def __init__(self) -> None:
            self.target, self.asked = wrong(np.nan, 1.0, symptom="nan-mask"), list[Program]()
            self.outcomes = dict[str, Outcome]()

        def look(self, programs: Sequence[Program]) -> list[Outcome]:
            self.asked += programs
            shown = wrong(1.0, actual, abs(1 - actual))
            shown.details.update({"not_finite": False} | ({AGREEING: "x"} if confirmed else {}))
            self.outcomes |= {x.id: shown for x in programs}
            return [shown for _ in programs]

        def admits(self, program: Program) -> bool:
            return True

        fair, turned = admits, asking.Asker.turned

    ask = Ask()
    before = ask.target
    before.details[AGREEING] = "x"
    found = loud.with_numbers(ask, sum_of(np.float32([np.nan])))  # type: ignore[arg-type]
    assert found == ([sum_of(np.float32([1]))] if made else [])
    assert (ask.target is before) is not made
    ask.target, ask.asked[:] = before, []
    assert loud.with_numbers(ask, sum_of(np.float32([2]))) == [] and not ask.asked  # type: ignore[arg-type]
