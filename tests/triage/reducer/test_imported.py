"""Of dtypes with which a call fails alike, those are told apart of which another part of the compiler is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from opera.programs.program import Instance, Operand
from opera.programs.values import Tensor
from opera.programs.verdicts import CRASH, INCONSISTENT, PASS, Outcome
from opera.run.probe import Probe, Question
from opera.triage.reducer.asking import Asker, Budget
from opera.triage.reducer.imported import Imported

FAILS = Outcome(CRASH, "compile", "InternalError", "unknown intrinsic atan2")
MISTYPED, VALUES = Outcome(INCONSISTENT, "infer", "dtype"), Outcome(INCONSISTENT, "infer", "value")


def call(*dtypes: str) -> Instance:
    given = [Operand(f"x{n}", Tensor.of(np.array([1, 2], x))) for n, x in enumerate(dtypes)]
    return Instance("torch", "torch.atan2", {}, tuple(given), (), {"call": {"args": ["x0", "x1"], "kwargs": []}})


class Ask:
    """Answers of each dtype as `shows` says, by what is stated and by what is run apart."""

    def __init__(self, **shows: tuple[Outcome, Outcome]) -> None:
        self.question, self.shows, self.asked = Question(frontend="tvm-torch"), shows, 0

    def by_way(self, program: Instance, way: str) -> Outcome:
        self.asked += 1
        value: Any = program.inputs[0].value
        return self.shows[value.dtype][way == "relax"]


@pytest.mark.parametrize(
    ("own", "other", "apart"),
    [
        ((MISTYPED, FAILS), (VALUES, FAILS), True),  # what is stated of values says nothing
        ((VALUES, FAILS), (MISTYPED, FAILS), True),
        ((VALUES, Outcome(PASS)), (VALUES, VALUES), True),
        ((MISTYPED, FAILS), (FAILS, Outcome(PASS)), False),  # by no way both are known
        ((MISTYPED, VALUES), (MISTYPED, VALUES), False),
        ((FAILS, FAILS), (MISTYPED, VALUES), False),
    ],
)
def test_what_is_imported_rightly_of_one_dtype_alone_tells_them_apart(own: Any, other: Any, apart: bool) -> None:
    ask: Any = Ask(int32=own, float16=other)
    imported = Imported(ask)
    assert imported.apart(call("float16", "float16"), call("int32", "int32")) is apart
    assert not imported.apart(call("int32", "int32"), call("int32", "int32"))
    before = ask.asked
    imported.apart(call("float16", "float32"), call("int32", "int32"))  # of another dtype once they are promoted
    assert ask.asked > before or own == (FAILS, FAILS)


@pytest.mark.full
def test_two_dtypes_that_tvm_has_no_kernel_for_and_imports_unlike_are_two_faults() -> None:
    """The importer keeps integers where PyTorch returns float32; what it makes of float16 is right, and no code is made."""
    pytest.importorskip("tvm")
    own, alike, other = call("int32", "int32"), call("int64", "int64"), call("float16", "float16")
    with Probe(workers=1) as probe:
        ask = Asker(probe, Question(frontend="tvm-torch"))
        ask.budget = Budget(300.0)
        [ask.target, *more] = ask.look([own, alike, other])
        assert [x.verdict for x in (ask.target, *more)] == [CRASH] * 3 and all(map(ask.fails, more))
        assert not ask.apart(alike, own) and ask.apart(other, own)
        assert ask.otherwise(other) and not ask.otherwise(alike)
        assert list(ask.others.values()) == [other] and ask.imported.right(own, beside=other) is False


def test_what_ends_while_it_is_imported_is_told_apart_by_nobody() -> None:
    class Stopped(Asker):
        def by_way(self, program: Any, way: str) -> Outcome:
            raise AssertionError("nobody is asked")

    probe: Any = None
    ask = Stopped(probe, Question(frontend="tvm-torch"))
    ask.target = Outcome(CRASH, "load", "TypeError", "no such dtype")
    programs: Sequence[Instance] = (call("float16", "float16"), call("int32", "int32"))
    assert not ask.apart(*programs)
