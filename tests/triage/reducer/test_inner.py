"""What an operator is exported to is the suspect: a call that is wrong alone, whatever the others make of its numbers."""

from __future__ import annotations

import types
from collections.abc import Sequence
from typing import Any

import pytest

from opera.programs.program import Instance, Program
from opera.programs.verdicts import CRASH, INCONSISTENT, PASS, UNSTABLE, Outcome
from opera.run.library_side import Known
from opera.run.probe import Probe, Question
from opera.triage.reducer import asking, inner
from opera.triage.reducer.asking import Asker, Budget


@pytest.mark.parametrize(
    ("operator", "given", "symptom"),
    [
        ("torch.gradient", {"spacing": [1.0, 2.0, 4.0, 8.0]}, "nan-mask"),
        pytest.param("torch.trapz", {"dx": 2.0}, "value", marks=pytest.mark.full),
    ],
)
def test_an_index_from_the_end_is_what_tvm_gets_wrong_in_all_that_is_exported_to_it(
    operator: str, given: dict[str, Any], symptom: str
) -> None:
    """One gives a number for a number, the other none, for it divides by what is not there. Both are the same call."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("tvm")
    from opera.libraries.torch import calls

    named = {name: (torch.tensor(x),) if isinstance(x, list) else x for name, x in given.items()}
    program = calls.instance(operator, (torch.tensor([1.0, 3.0, 7.0, 13.0]),), named)
    with Probe(workers=1) as probe:
        ask = Asker(probe, Question(frontend="tvm-torch", variant="exported-program", screened=True))
        ask.budget = Budget(60.0)
        [ask.target] = ask.look([program])
        kept: list[Program] = [program]
        inner.innermost(ask, kept, {})
        [call] = kept[-1].instances()
        assert ask.outcomes[program.id].symptom == symptom
        assert (call.operator, call.params["index"]) == ("torch.select", -1)


class Answers(asking.Asker):
    """Of whom calls show what a test says."""

    def __init__(self, target: Outcome, shown: dict[str, Outcome]) -> None:
        super().__init__(None, Question(frontend="f"))  # type: ignore[arg-type]
        self.target, self._shown = target, shown

    def look(self, programs: Sequence[Program]) -> list[Outcome]:
        self.outcomes.update({x.id: self._shown[x.operator] for x in programs})
        return [self.outcomes[x.id] for x in programs]


def wrong(symptom: str, place: str = "", verdict: str = INCONSISTENT, **details: Any) -> Outcome:
    found = {"agreeing": "float64", "max_rel": 0.5, **details}
    return Outcome(verdict, "infer", symptom, "it is wrong", conversion_function=place, details=found)


@pytest.mark.parametrize(
    ("of", "found"),
    [
        ({"exp": wrong("value")}, "exp"),
        ({"exp": wrong(UNSTABLE, verdict=UNSTABLE)}, "exp"),
        ({"exp": wrong("value", "t:I._exp"), "log": wrong("value", "t:I._exp")}, "exp"),  # two names of one
        ({"exp": wrong("value"), "log": wrong("value")}, None),  # any of the two may be it
        ({"exp": wrong("value", agreeing="")}, None),
        ({"exp": wrong("value", max_rel=1e-4)}, None),  # that may be rounding
        ({"exp": wrong("value", not_finite=True)}, None),
        ({"exp": wrong("value", drawn="range")}, None),
        ({"exp": wrong("dtype")}, None),
    ],
)
def test_one_operator_is_wrong_alone_where_the_whole_is_wrong_in_another_manner(
    of: dict[str, Outcome], found: str | None
) -> None:
    calls = [Instance("torch", x, {}, (), (), {}) for x in ("neg", "exp", "log")]
    shown = {x.operator: Outcome(PASS) for x in calls} | of
    whole, ask = Instance("torch", "whole", {}, (), (), {}), Answers(wrong("nan-mask", "expanded whole"), shown)
    told = inner._piece(ask, whole, calls)
    assert (told and told.operator) == found


def test_two_that_are_made_of_each_other_come_to_an_end() -> None:
    """PyTorch's `linalg.norm` calls `linalg.vector_norm`, and that was told to call `linalg.norm`: the search never ended."""
    one, other, third = (Instance("torch", x, {}, (), (), {}) for x in ("norm", "vector_norm", "abs"))
    pieces = {one.id: [other], other.id: [one, third], third.id: []}
    fails = Outcome(CRASH, "load", "E", "words that tell much")
    ask = Answers(fails, {"norm": fails, "vector_norm": fails, "abs": Outcome(PASS)})
    ask.probe = types.SimpleNamespace(known=lambda _, x: Known({}, tuple(y.form() for y in pieces[x.id])))  # type: ignore
    ask.look([one])
    kept: list[Program] = [one]
    inner.innermost(ask, kept, {})
    assert kept == [one, other]


def test_a_function_is_told_by_the_name_that_documentation_has() -> None:
    pytest.importorskip("torch")
    from opera.libraries.torch import expansion

    assert expansion._public("relu", ("input",)) == "torch.nn.functional.relu"
    assert expansion._public("tanh", ("input",)) == "torch.tanh"


@pytest.mark.parametrize(
    ("of", "finite", "found"),
    [
        ({"exp": wrong("nan-mask", not_finite=True)}, True, "exp"),
        ({"exp": wrong("nan-mask", not_finite=True)}, False, None),  # nobody knows that it need not be so in the whole
        ({"exp": wrong("nan-mask", not_finite=True), "log": wrong("value")}, True, "log"),  # that tells more
        ({"exp": wrong("nan-mask", not_finite=True), "log": wrong("nan-mask", not_finite=True)}, True, None),
        ({"exp": wrong("nan-mask", not_finite=True, agreeing="")}, True, None),
    ],
)
def test_what_makes_a_number_of_a_nan_that_arises_inside_is_the_suspect(
    of: dict[str, Outcome], finite: bool, found: str | None
) -> None:
    calls = [Instance("torch", x, {}, (), (), {}) for x in ("neg", "exp", "log")]
    shown = {x.operator: Outcome(PASS) for x in calls} | of
    target = wrong("value", "expanded whole", **({"not_finite": False} if finite else {}))
    told = inner._piece(Answers(target, shown), Instance("torch", "whole", {}, (), (), {}), calls)
    assert (told and told.operator) == found


def invalid(says: str, place: str = "", symptom: str = "InferenceError") -> Outcome:
    return Outcome(CRASH, "compile", symptom, says, conversion_function=place)


@pytest.mark.parametrize(
    ("of", "found"),
    [
        ({"exp": invalid("Inferred shape and existing shape differ")}, "exp"),
        ({"exp": invalid("of another dimension", symptom="ValidationError")}, "exp"),
        ({"exp": invalid("Inferred shape"), "log": invalid("of another dimension")}, None),  # any of the two may be it
        ({"exp": invalid("no such kernel", symptom="NotImplemented")}, None),  # not the checker says so, but a runtime
    ],
)
def test_the_one_operator_of_which_no_valid_file_is_made_is_what_makes_the_whole_invalid(
    of: dict[str, Outcome], found: str | None
) -> None:
    """A Reshape with a 0 in its target says nothing by itself where an Add that reads it is what the checker comes to."""
    calls = [Instance("torch", x, {}, (), (), {}) for x in ("neg", "exp", "log")]
    ask = Answers(invalid("Incompatible dimensions (op_type:Add)"), {x.operator: Outcome(PASS) for x in calls} | of)
    told = inner._piece(ask, Instance("torch", "whole", {}, (), (), {}), calls)
    assert (told and told.operator) == found
