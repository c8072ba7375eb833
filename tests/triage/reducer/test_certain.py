"""What is drawn wrongly is shown where nothing is left to chance, if it is wrong there in the same way."""

import numpy as np
import pytest

from opera.oracle import draws
from opera.programs import degenerate
from opera.programs.program import Instance, Operand
from opera.programs.values import Tensor
from opera.programs.verdicts import INCONSISTENT, PASS, Outcome
from opera.store.rows import Verdict
from opera.triage.reducer import certain
from opera.triage.reducer.asking import captured
from opera.triage.reduction import Reduction
from opera.triage.reproducers.choice import Choice

X = (Operand("input", Tensor.of(np.full(2, 0.5, np.float32))),)


def test_what_a_call_does_not_state_is_given():
    call = {"args": ["input"], "kwargs": []}
    plain = Instance("torch", "torch.nn.functional.dropout", {}, X, (), {"kind": "function", "call": call})
    made = list(certain.forms(plain))
    assert [x.params for x in made] == [{"p": 0.0}, {"p": 1.0}]
    assert all(x.context["call"]["kwargs"] == ["p"] and degenerate.holds(x) for x in made)
    assert [x.params for x in certain.forms(made[1])] == [{"p": 0.0}], "it is there already"
    opset = {"opset": {"": 15}}
    [none, all_] = certain.forms(Instance("onnx", "Bernoulli", {}, X, ("y",), opset))
    assert none.inputs[0].value.numbers().max() == 0 and all_.params == {}, "an input is filled"
    assert list(certain.forms(Instance("onnx", "Abs", {}, X, ("y",), opset))) == []


def drawn(kind, why=""):
    return Outcome(INCONSISTENT, "infer", "value", details={"drawn": kind, "why": why})


def wrong(actual, *words):
    details = {"output": "y", "actual": actual, "manner": {"y": ["wrong", *words]}}
    return Outcome(INCONSISTENT, "infer", "value", details=details)


SAME = f"y is {draws.UNCHANGED} in every run"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (drawn("constant", SAME), wrong(1.0, "all", "input"), True),
        (drawn("constant", SAME), wrong(1.0, "all", "input?"), True),
        (drawn("constant", SAME), wrong(2.0, "all"), False),
        (drawn("constant", "y is the same in every run"), wrong(1.0, "input"), False),
        (drawn("share"), wrong(1.0), True),
        (drawn("share"), wrong("nan"), False),
        (drawn("range"), wrong(1.0), False),
        (drawn("constant", SAME), drawn("constant", SAME), False),
        (drawn("share"), Outcome(PASS), False),
    ],
)
def test_another_mistake_is_no_certain_form(one, other, same):
    assert certain.as_drawn(one, other) is same


def test_the_settings_are_told():
    call = {"args": ["input"], "kwargs": []}
    plain = Instance("torch", "torch.nn.functional.dropout", {}, X, (), {"kind": "function", "call": call})
    bernoulli = Instance("onnx", "Bernoulli", {}, X, ("y",), {"opset": {"": 15}})
    for program, told in ((plain, "p=1.0"), (bernoulli, "input=1.0")):
        whole, form = (
            Reduction("F", "e", f"openvino-{x.library}", "v", "t", captured(x).form(), Outcome(INCONSISTENT))
            for x in (program, list(certain.forms(program))[-1])
        )
        shown = Verdict("t", form.frontend, "v", "e", Outcome(INCONSISTENT), "F")
        chosen = Choice(shown, shown, form, whole=whole)
        assert (chosen.told, chosen.at) == ((), (told,)), "it does not decide"
        assert Choice(shown, shown, whole).at == ()
