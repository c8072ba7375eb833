"""Another form and other numbers are two questions: a reduced program asks one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opera.programs.program import Graph, Instance, Operand, Program
from opera.programs.values import Sequence as Items
from opera.programs.values import Tensor, Value
from opera.programs.verdicts import INCONSISTENT, INVALID, PASS, REFUSED, Outcome
from opera.run.library_side import Known
from opera.run.probe import Question
from opera.triage.failure import alike
from opera.triage.reducer import asking, reduce, single
from opera.triage.shrink import smaller

DEFAULTS = {"Scale": {"scale": 1.0}}


def scale(numbers: Sequence[float], dtype: str = "float16", **params: Value) -> Instance:
    return Instance("onnx", "Scale", params, (Operand("X", Tensor.of(np.array(numbers, dtype))),), ("Y",), {})


def form(differ: bool, symptom: str = "dtype") -> Outcome:
    wrong = {"Y": f"{symptom} and values" if differ else symptom}
    details = {"output": "Y", "expected": "float16", "actual": "float32", "values_differ": differ, "wrong": wrong}
    return Outcome(INCONSISTENT, "infer", symptom, "output 'Y'", details=details)


class Wrong(asking.Asker):
    """Of what is not float32 the dtype is wrong; numbers are wrong where there is a scale, or one is beyond 100."""

    def __init__(self) -> None:
        super().__init__(None, Question(frontend="f"))  # type: ignore[arg-type]

    def look(self, programs: Sequence[Program]) -> list[Outcome]:
        for x in programs:
            if not smaller.leaves(x):
                self.outcomes[x.id] = Outcome(INVALID)
                continue
            [leaf] = smaller.leaves(x)
            params = x.instances()[0].params
            differ = bool(params.get("scale")) or max(leaf.numbers()) > 100  # type: ignore[union-attr]
            value = Outcome(INCONSISTENT, "infer", "value", details={"output": "Y"})
            self.programs[x.id] = x
            self.outcomes[x.id] = form(differ) if leaf.dtype != "float32" else value if differ else Outcome(PASS)
        return [self.outcomes[x.id] for x in programs]


@pytest.mark.parametrize(
    ("program", "params", "most"),
    [(scale([3, 4], scale=2.0), {}, 4), (scale([3, 1000]), {}, 6), (scale([3, 1000], scale=2.0), {}, 6)],
)
def test_the_form_alone_is_wrong_of_plainer_numbers_and_without_what_need_not_be_given(
    program: Instance, params: Mapping[str, Value], most: float
) -> None:
    ask = Wrong()
    ask.target = ask.look([program])[0]
    [found] = single.form_alone(ask, program, DEFAULTS)
    assert found.instances()[0].params == params and not single.twofold(ask.outcomes[found.id])
    assert max(found.inputs[0].value.numbers()) <= most  # type: ignore[union-attr]
    ask.target = ask.outcomes[found.id]
    [numbers, *_] = ask.silent()
    assert smaller.leaves(numbers)[0].dtype == "float32", (
        "its numbers are wrong in a dtype whose form is right: a finding"
    )


class Whole(asking.Asker):
    """A half of each number is returned as an integer."""

    def __init__(self) -> None:
        super().__init__(None, Question(frontend="f"))  # type: ignore[arg-type]

    def __call__(self, programs: Sequence[Program]) -> list[bool]:
        return [x.verdict == INCONSISTENT for x in self.look(programs)]

    def look(self, programs: Sequence[Program]) -> list[Outcome]:
        details = {"output": "Y", "expected": "float32", "actual": "int64"}
        self.outcomes.update((x.id, Outcome(INCONSISTENT, "infer", "dtype", details=details)) for x in programs)
        return [self.outcomes[x.id] for x in programs]

    def reference(self, program: Program) -> list[Value] | None:
        [leaf] = smaller.leaves(program)
        return [Tensor.of(np.float32(leaf.numbers() / 2))]  # type: ignore[union-attr]

    def stands(self, program: Program) -> bool:
        return True


def test_a_fraction_is_expected_where_integers_are_returned_for_floats() -> None:
    ask, program = Whole(), scale([2, 4], "int64")
    assert single.fractions(ask, program) == [], "nobody has asked about it"
    ask.look([program])
    [found] = single.fractions(ask, program)
    assert found.inputs[0].value.numbers().tolist() == [1, 2]  # type: ignore[union-attr]
    ask.look([found])
    assert single.fractions(ask, found) == [], "one is expected there"
    ask.outcomes[program.id] = form(differ=False)
    assert single.fractions(ask, program) == [], "float32 for float16"


def test_a_program_of_one_fault_is_left_as_it_is() -> None:
    ask = Wrong()
    for program in (scale([3, 4]), scale([3, 4], "float32", scale=2.0)):
        ask.look([program])
        assert single.form_alone(ask, program, DEFAULTS) == []


@given(st.booleans(), st.booleans(), st.sampled_from(["dtype", "shape"]))
def test_a_smaller_program_never_has_a_second_fault(before: bool, then: bool, symptom: str) -> None:
    """Nor does it lose one on the way: that is asked once, before all else."""
    assert alike("f", form(before, symptom), form(then, symptom)) is (before is then)


def test_a_sequence_that_is_fed_is_made_in_the_model_where_it_fails_so_too() -> None:
    pytest.importorskip("onnx")
    items = Items("float32", (Tensor.of(np.ones(2, "f4")), Tensor.of(np.ones(3, "f4"))))
    fed = Instance("onnx", "SequenceLength", {}, (Operand("input_sequence", items),), ("length",), {"opset": {"": 11}})

    class Refused(asking.Asker):
        fails_of_several = True

        def look(self, programs: Sequence[Program]) -> list[Outcome]:
            for x in programs:
                failing = isinstance(x, Instance) or self.fails_of_several
                self.outcomes[x.id] = Outcome(REFUSED, "load", "E", "no") if failing else Outcome(PASS)
            return [self.outcomes[x.id] for x in programs]

        def begin(self, program: Program, known: Known, defaults: smaller.Defaults) -> None:
            self.target = self.outcomes[program.id]

    for several in (True, False):
        probe = type("Knows", (), {"known": lambda *_: Known({})})()
        ask = Refused(probe, Question(frontend="tvm-onnx"))
        ask.fails_of_several = several
        ask.target = ask.look([fed])[0]
        kept: list[Program] = [fed]
        assert reduce._constructed(ask, kept, {}) is several
        made = kept[-1]
        assert (isinstance(made, Graph) and made.operators == ("SequenceConstruct", "SequenceLength")) is several
