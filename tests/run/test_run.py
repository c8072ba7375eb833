"""A whole run over compilers that fail in ways of their own: what is stored, what is a finding, what the next run tries."""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from faults.onnx_faults import Silent, relu

from opera.errors import NoAnswer
from opera.pool import pool
from opera.programs.verdicts import PASS, Limits, Outcome
from opera.run import driver as stage
from opera.run import show
from opera.run.confirm import MEMBERS, Members
from opera.run.plan import Selection
from opera.store.rows import Verdict
from opera.store.workspace import Workspace
from opera.triage.distinct import causes
from opera.triage.findings import findings
from opera.triage.reproducers import scripts

pytest.importorskip("onnx")


@pytest.fixture
def filled(workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.setenv("OPERA_TEST_MARKS", str(tmp_path))
    workspace.add_captured([relu(n, "Relu") for n in range(4)] + [relu(n, "LeakyRelu") for n in range(2)])
    return workspace


def run(workspace: Workspace, *compilers: str, **options: object) -> tuple[stage.Summary, dict[str, list[Verdict]]]:
    """Run in one worker; return the summary and operator → verdicts."""
    asked = {"workers": 1, "limits": Limits(20.0), **options}
    names = tuple(f"faults.onnx_faults:{name}" for name in compilers)
    summary = stage.run(workspace, stage.Options(compilers=names, **asked), Silent())  # type: ignore[arg-type]
    operators = dict(workspace.query("SELECT t.id, i.operator FROM tests t JOIN instances i ON i.id = t.instance"))
    found: dict[str, list[Verdict]] = {"Relu": [], "LeakyRelu": []}
    for verdict in workspace.verdicts():
        found[operators[verdict.test]].append(verdict)
    return summary, found


def test_a_flaky_member_takes_nothing_from_a_finding_that_others_confirm(filled):
    summary, found = run(filled, "fails_once_for_one")
    assert sorted(x.outcome.verdict for x in found["LeakyRelu"]) == ["crash", "flaky"]
    [finding] = findings(filled)
    assert summary.new_findings == [finding.id]
    assert (len(finding.members), finding.confirmed) == (1, 1)


def test_a_finding_without_members_is_none(filled):
    summary, found = run(filled, "fails_once")
    assert {x.outcome.verdict for x in found["LeakyRelu"]} == {"flaky"}
    assert (summary.new_findings, findings(filled), filled.query("SELECT * FROM findings")) == ([], [], [])
    for mark in (filled.root.parent).glob("mark-*"):
        mark.unlink()
    (filled.root.parent / "always").touch()
    summary, _ = run(filled, "fails_once", selection=Selection(rerun=True))
    assert len(summary.new_findings) == 1, "it was never known"


def test_what_is_run_again_is_confirmed_again(filled: Workspace) -> None:
    """Stored members counted beside themselves: none of a finding of three or more was confirmed any more."""
    filled.add_captured([relu(n, "LeakyRelu") for n in range(2, 6)])
    for rerun in (False, True, True):
        run(filled, "crash", selection=Selection(rerun=rerun))
        [finding] = findings(filled)
        assert (len(finding.members), finding.confirmed) == (6, MEMBERS)


def test_a_verdict_that_is_replaced_is_no_member_any_more(filled: Workspace) -> None:
    """Rules that change have tests run again, too."""
    filled.add_captured([relu(n, "LeakyRelu") for n in range(2, 6)])
    _, found = run(filled, "crash")
    assert Counter(x.confirmation for x in found["LeakyRelu"]) == {"confirmed": MEMBERS, "unconfirmed": 6 - MEMBERS}
    again = Members(filled)
    assert Counter(map(again.wanted, found["LeakyRelu"])) == {"pending": MEMBERS, "unconfirmed": 6 - MEMBERS}
    members, first = Members(filled), next(x for x in found["LeakyRelu"] if x.confirmation == "confirmed")
    other = next(x for x in found["LeakyRelu"] if x.confirmation == "unconfirmed")
    assert members.wanted(other) == "unconfirmed"
    assert members.wanted(msgspec.structs.replace(first, outcome=Outcome(PASS), finding="")) == ""
    assert members.wanted(other) == "pending", "one that is confirmed is gone"


def test_a_failure_that_a_fresh_process_shows_otherwise_is_that_other_one(filled):
    summary, found = run(filled, "fails_otherwise")
    assert {(x.outcome.symptom, x.confirmation) for x in found["LeakyRelu"]} == {("KeyError", "confirmed")}
    [finding] = findings(filled)
    assert (summary.new_findings, finding.symptom) == ([finding.id], "KeyError")


def test_predecessors_are_replayed_through_the_variants_they_ran_in(filled):
    _, found = run(filled, "leaks_through_second")
    failing = [x for x in found["LeakyRelu"] if x.outcome.verdict != "pass"]
    assert failing
    for verdict in failing:
        assert verdict.outcome.verdict == "inconsistent"
        assert "state-dependent" in verdict.outcome.details["tags"]
        assert any(name.endswith("/second") for name in verdict.outcome.details["predecessors"])
    assert {x.outcome.verdict for x in found["Relu"]} == {"pass"}


def test_a_lost_group_ends_its_own_frontends_alone(filled, monkeypatch, capsys):
    monkeypatch.setattr(pool, "DEATHS", 1)
    summary, found = run(filled, "kills_parent", "right")
    assert set(summary.lost) == {"faults.onnx_faults:kills_parent-onnx"}
    right = [x for kind in found.values() for x in kind if x.frontend.endswith("right-onnx")]
    assert len(right) == 6 and {x.outcome.verdict for x in right} == {"pass"}
    options = stage.Options(compilers=("faults.onnx_faults:kills_parent",), workers=1)
    with pytest.raises(NoAnswer, match="not all frontends were run to the end"):
        show.run(filled, options, scripts.write_all, causes.distinct)


def test_a_time_budget_drops_what_is_queued_and_what_hangs(filled):
    summary, found = run(filled, "hang", limits=Limits(6000.0), time_budget=5.0)
    assert summary.stopped
    assert {x.outcome.verdict for x in found["Relu"]} <= {"pass"}
    assert found["LeakyRelu"] == []
    summary, found = run(filled, "hang", limits=Limits(1.0))
    assert {x.outcome.verdict for x in found["LeakyRelu"]} == {"timeout"}
    assert len(found["Relu"]) == 4


def test_an_unconfirmed_time_out_is_no_finding(filled):
    run(filled, "hang", limits=Limits(1.0))
    [finding] = findings(filled)
    assert finding.symptom == "timeout"
    with filled.transaction():
        filled._db.execute("UPDATE verdicts SET confirmation = 'pending' WHERE verdict = 'timeout'")
    assert (findings(filled), filled.finding_ids(), scripts.members(filled)) == ([], [], {})


def test_what_only_operas_patches_break_is_operas_error(filled):
    summary, found = run(filled, "patched")
    assert {x.outcome.verdict for x in found["LeakyRelu"]} == {"error"}
    assert all("patches that opera makes" in x.outcome.message for x in found["LeakyRelu"])
    assert (summary.new_findings, findings(filled)) == ([], [])
    assert {x.outcome.verdict for x in found["Relu"]} == {"pass"}


def test_an_environment_knows_its_interpreter(filled, monkeypatch, capsys):
    tests = Path(__file__).parents[1]
    monkeypatch.setenv("PYTHONPATH", f"{tests.parent}{os.pathsep}{tests}")
    summary, found = run(filled, "wrong_value", python=sys.executable)
    environment = found["LeakyRelu"][0].environment
    assert filled.interpreter(environment) == sys.executable
    [name] = summary.new_findings
    used: list[str] = []
    monkeypatch.setattr(
        scripts, "verify", lambda path, finding, python="": used.append(python) or scripts.Trial(finding, 1, "", True)
    )
    assert scripts.show(filled, name, None, check=True)
    assert used == [sys.executable]
    assert f"run with {sys.executable}" in capsys.readouterr().out
    run(filled, "wrong_value", selection=Selection(rerun=True))
    assert filled.interpreter(environment) == "", "the newest run counts"


def test_a_compiler_may_have_an_interpreter_of_its_own(filled, monkeypatch):
    tests = Path(__file__).parents[1]
    monkeypatch.setenv("PYTHONPATH", f"{tests.parent}{os.pathsep}{tests}")
    own, other = "faults.onnx_faults:wrong_value", "faults.onnx_faults:patched"
    _, found = run(filled, "wrong_value", "patched", pythons={own: sys.executable})
    with_own = {(filled.environments()[x.environment]["compiler"], x.confirmation) for x in found["LeakyRelu"]}
    assert (own, "confirmed") in with_own, "it was asked again where it runs"
    used = {x["compiler"]: filled.interpreter(name) for name, x in filled.environments().items()}
    assert used == {own: sys.executable, other: ""}


def test_adapters_that_cannot_say_are_counted(filled):
    watcher = Silent()
    options = stage.Options(compilers=("faults.onnx_faults:speechless",), workers=1)
    stage.run(filled, options, watcher)
    told = [line for line in watcher.said if "conversion_function of the adapter failed in 2 tests" in line]
    assert len(told) == 1 and "renamed" in told[0]
    [finding] = findings(filled)
    assert "adapter-failed" in finding.tags
