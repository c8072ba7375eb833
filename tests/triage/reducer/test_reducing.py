"""A mistake of opera's own in one reduction costs the others nothing, and is not hidden."""

from __future__ import annotations

from typing import Any

import pytest
from faults.onnx_faults import Silent, relu

from opera.programs.verdicts import Limits
from opera.run import driver as stage
from opera.store.workspace import REPRODUCERS, Workspace
from opera.triage import reduction
from opera.triage.conditions import circumstances
from opera.triage.findings import findings
from opera.triage.reducer import reduce, reducing
from opera.triage.reducer.reduce import NotReduced
from opera.triage.reproducers import scripts


def test_a_mistake_in_one_reduction_is_raised_once_the_others_are_done(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnx")
    workspace.add_captured([relu(1, "LeakyRelu")])
    options = stage.Options(
        compilers=("faults.onnx_faults:routes",), workers=1, limits=Limits(20.0)
    )  # two routes, two failures
    stage.run(workspace, options, Silent())
    [one, other] = sorted(x.id for x in findings(workspace))

    def reduce(_: Workspace, probe: Any, verdicts: Any, *rest: Any) -> Any:
        if verdicts[0].finding == one:
            raise KeyError("actual")
        raise NotReduced("it passes now")

    monkeypatch.setattr(reducing, "reduce", reduce)
    told = list[str]()
    with pytest.raises(KeyError, match="actual"):
        reducing.reduce_all(workspace, [one, other], 20.0, 60.0, told.append, workers=1)
    wanted = [f"{one} is not reduced: opera itself failed with KeyError", f"{other} is not reduced: it passes now"]
    assert told[:2] == wanted

    def none(*_: Any) -> Any:
        raise NotReduced("it passes now")

    monkeypatch.setattr(reducing, "reduce", none)
    for names in ([one, other], [other, one]):
        told.clear()
        reducing.reduce_all(workspace, names, 20.0, 60.0, told.append, workers=1)
        assert [x.partition(" ")[0] for x in told] == names, "in the order in which they are named"


def test_a_mistake_in_a_plain_form_costs_no_reduction(monkeypatch: pytest.MonkeyPatch) -> None:
    def renew(*_: object) -> None:
        raise AttributeError("params")

    monkeypatch.setattr(reducing.cut, "renew", renew)
    told, mistakes = list[str](), list[Exception]()
    nothing: Any = None
    reducing._cut(nothing, nothing, "F1", nothing, 1.0, told.append, mistakes)
    assert told == ["F1 has no plain form: opera itself failed with AttributeError"]
    assert [str(x) for x in mistakes] == ["params"]


@pytest.mark.full
def test_a_finding_of_which_another_ones_member_was_reduced_has_the_script_of_that(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The draft of a finding told of `mm`, and its script, which a run had written, of `multi_dot`."""
    pytest.importorskip("onnx")
    workspace.add_captured([relu(7, "LeakyRelu")])
    options = stage.Options(compilers=("faults.onnx_faults:routes",), workers=1, limits=Limits(20.0))
    stage.run(workspace, options, Silent())
    of = scripts.members(workspace)
    one, other = sorted(of)
    scripts.write_all(workspace)
    before = {x: (workspace.root / REPRODUCERS / f"{x}.py").read_text() for x in (one, other)}
    monkeypatch.setattr(reducing, "_others", lambda *_: iter(of[other]))
    reducing.reduce_all(workspace, [one], 20.0, 120.0, lambda _: None, workers=1)
    after = {x: (workspace.root / REPRODUCERS / f"{x}.py").read_text() for x in (one, other)}
    assert [after[x] != before[x] for x in (one, other)] == [True, True]


def test_what_is_told_of_a_program_is_asked_once(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several members end at the very program of the first, and only the search tells that."""
    pytest.importorskip("onnx")
    workspace.add_captured([relu(n, "LeakyRelu") for n in (7, 9)])
    options = stage.Options(compilers=("faults.onnx_faults:routes",), workers=1, limits=Limits(20.0))
    stage.run(workspace, options, Silent())
    name, members = next(
        (x, of) for x, of in sorted(scripts.members(workspace).items()) if len({y.test for y in of}) == 2
    )
    asked = list[str]()

    def of(ask: Any, program: Any, *rest: Any) -> Any:
        asked.append(program.id)
        return circumstances.of(ask, program, *rest)

    monkeypatch.setattr(reduce, "circumstances", type("Asked", (), {"of": staticmethod(of)}))
    monkeypatch.setattr(reducing, "_others", lambda *_: iter(members))
    reducing.reduce_all(workspace, [name], 20.0, 6000.0, lambda _: None, workers=1)
    one, other = [x for x in reduction.stored(workspace) if x.finding == name]
    assert one.test != other.test and one.stored == other.stored
    assert len(asked) == len(set(asked))  # what fails by another route is a program of its own
    assert (one.besides, one.contrasts, one.near) == (other.besides, other.contrasts, other.near)
