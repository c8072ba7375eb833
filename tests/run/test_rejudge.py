"""Verdicts are judged anew when rules change: without the compiler where what was seen is enough, else by running again."""

from __future__ import annotations

from pathlib import Path

import pytest
from faults import onnx_faults
from faults.onnx_faults import Silent, relu
from filled import judged

from opera.compilers.shared.messages import Claimed
from opera.oracle import comparison as oracle
from opera.programs.verdicts import AGAIN, Limits
from opera.run import driver as stage
from opera.run import rules
from opera.run.rules import Rules
from opera.store import folders
from opera.store.rows import Verdict
from opera.store.workspace import Workspace
from opera.triage.findings import findings

pytest.importorskip("onnx")


@pytest.fixture
def filled(workspace: Workspace) -> Workspace:
    workspace.add_captured([relu(n, "Relu") for n in range(3)] + [relu(n, "LeakyRelu") for n in range(2)])
    return workspace


def run(workspace: Workspace, compiler: str) -> tuple[stage.Summary, list[str], dict[str, list[Verdict]]]:
    """Run; return the summary, what was said, and operator → verdicts."""
    watcher = Silent()
    options = stage.Options(compilers=(f"faults.onnx_faults:{compiler}",), limits=Limits(20.0))
    summary = stage.run(workspace, options, watcher)
    operators = dict(workspace.query("SELECT t.id, i.operator FROM tests t JOIN instances i ON i.id = t.instance"))
    found: dict[str, list[Verdict]] = {"Relu": [], "LeakyRelu": []}
    for verdict in workspace.verdicts(seen=True):
        found[operators[verdict.test]].append(verdict)
    return summary, [line for line in watcher.said if "unranked" not in line], found


def kept(workspace: Workspace) -> list[Path]:
    """Return the files of outputs that were kept."""
    return sorted(workspace.outputs_folder.rglob("*.msgpack"))


def changed(monkeypatch: pytest.MonkeyPatch, **digests: str) -> None:
    """Make opera believe that rules have other digests from now on; the rules are changed by the test."""
    before = rules.of

    def of(compiler: str, library: str, device: str = "") -> Rules:
        found = before(compiler, library)
        return Rules(**{name: digests.get(name, getattr(found, name)) for name in Rules.__struct_fields__})

    monkeypatch.setattr(rules, "of", of)


def test_what_was_seen_is_stored_with_the_rules_that_judged_it(filled):
    _, _, found = run(filled, "crash")
    now = str(rules.of("faults.onnx_faults:crash", "onnx"))
    assert {x.rules for kind in found.values() for x in kind} == {now}
    assert [(x.outcome.seen.identical, x.outcome.seen.margins) for x in found["Relu"]] == [(True, ())] * 3
    [raised] = found["LeakyRelu"][0].outcome.seen.raised
    assert raised.kinds[0] == "builtins:RuntimeError"
    assert "is not understood" in raised.text
    assert found["LeakyRelu"][0].outcome.seen.blame == "compiler"
    assert found["LeakyRelu"][0].outcome.seen.frames[-1].startswith("faults.engine:fail:")


def test_nothing_is_judged_where_no_rule_changed(filled, monkeypatch):
    run(filled, "crash")
    monkeypatch.setattr(stage._Run, "_execute", lambda *_: pytest.fail("a test was executed"))
    summary, said, _ = run(filled, "crash")
    assert (summary.counts, said) == ({}, [])


def test_a_crash_becomes_unsupported_without_the_compiler_and_back(filled, monkeypatch):
    run(filled, "crash")
    [before] = findings(filled)
    monkeypatch.setattr(stage._Run, "_execute", lambda *_: pytest.fail("a test was executed"))
    names = ("onnx", "LeakyRelu", "inputs", "onnx")  # what is left of a case that was run long ago

    def unsupported(case, stage, error):
        assert (case.library, case.operator, case.variant, case.artefact) == names
        return "it" if "understood" in str(error) else None

    monkeypatch.setattr(onnx_faults.crash, "unsupported", unsupported)
    changed(monkeypatch, refusals="other")
    summary, said, found = run(filled, "crash")
    assert {(x.outcome.verdict, x.outcome.message, x.finding) for x in found["LeakyRelu"]} == {
        ("unsupported", "it", "")
    }
    assert findings(filled) == []
    assert filled.query("SELECT COUNT(*) FROM findings") == [(0,)]
    assert said[0].startswith("rules have changed since 2 verdicts were stored: 2 moved (2 crash → unsupported)")
    assert summary.counts == {"faults.onnx_faults:crash-onnx": {"unsupported": 2}}
    monkeypatch.undo()  # the old rules are back, and the crashes with them: as a finding that is confirmed anew
    summary, said, found = run(filled, "crash")
    assert {(x.outcome.verdict, x.confirmation) for x in found["LeakyRelu"]} == {("crash", "confirmed")}
    assert "2 unsupported → crash" in said[0]
    assert [x.id for x in findings(filled)] == [before.id]
    assert summary.new_findings == [before.id]


def test_a_refusal_that_contradicts_is_the_finding_that_the_crash_was(filled, monkeypatch):
    run(filled, "crash")
    [before] = findings(filled)

    def unsupported(case, stage, error):
        return Claimed("declares it") if "understood" in str(error) else None

    monkeypatch.setattr(onnx_faults.crash, "unsupported", unsupported)
    changed(monkeypatch, refusals="other")
    _, said, found = run(filled, "crash")
    assert "2 crash → refused-claimed" in said[0]
    shown = {(x.outcome.verdict, x.outcome.details["claimed"], x.confirmation) for x in found["LeakyRelu"]}
    assert shown == {("refused-claimed", "declares it", "confirmed")}
    [now] = findings(filled)
    assert (now.id, now.message, now.numbers["claimed"]) == (before.id, before.message, "declares it")


def test_passes_are_judged_by_their_margins(filled, monkeypatch):
    _, _, found = run(filled, "nearly")
    assert {x.outcome.verdict for x in found["LeakyRelu"]} == {"pass"}
    assert all(x.outcome.seen.margins for x in found["LeakyRelu"])
    executed: list[str] = []
    execute = stage._Run._execute
    monkeypatch.setattr(
        stage._Run, "_execute", lambda self, task: (executed.append(task.item.operator), execute(self, task))
    )
    monkeypatch.setitem(oracle.TOLERANCES, "float32", (1e-3, 1e-4))
    _, said, found = run(filled, "nearly")
    assert {x.outcome.verdict for kind in found.values() for x in kind} == {"pass"}
    assert said == ["rules have changed since 5 verdicts were stored: none moved"]
    assert executed == []
    monkeypatch.setitem(oracle.TOLERANCES, "float32", (1e-9, 1e-9))
    _, said, found = run(filled, "nearly")
    assert executed == ["LeakyRelu"] * 2  # their outputs were not kept
    assert "2 hold too little to be judged, and their tests are run again" in said[0]


def test_another_comparison_spares_identical_outputs_alone(filled, monkeypatch):
    run(filled, "nearly")
    changed(monkeypatch, comparison="other")
    _, said, _ = run(filled, "nearly")
    assert said == [
        "rules have changed since 5 verdicts were stored: none moved; 2 hold too little to be judged, and their tests are"
        " run again"
    ]


def test_inconsistent_outputs_are_kept_and_screened_again(filled, monkeypatch):
    _, _, found = run(filled, "wrong_value")
    assert {x.outcome.verdict for x in found["LeakyRelu"]} == {"inconsistent"}
    assert len(kept(filled)) == 2
    monkeypatch.setattr(stage._Run, "_execute", lambda *_: pytest.fail("a test was executed"))
    changed(monkeypatch, screens="other")
    _, said, found = run(filled, "wrong_value")
    assert said == ["rules have changed since 2 verdicts were stored: none moved"]
    assert {(x.outcome.verdict, x.confirmation) for x in found["LeakyRelu"]} == {("inconsistent", "confirmed")}
    assert {x.rules.split()[-1] for x in found["LeakyRelu"]} == {"other"}


def test_without_their_outputs_they_are_run_again(filled, monkeypatch):
    _, _, found = run(filled, "wrong_value")
    for path in kept(filled):
        path.unlink()
    changed(monkeypatch, screens="other")
    _, said, found = run(filled, "wrong_value")
    assert "2 hold too little" in said[0]
    assert {x.outcome.verdict for x in found["LeakyRelu"]} == {"inconsistent"}
    assert len(kept(filled)) == 2


def test_a_screened_verdict_is_compared_again(filled, monkeypatch):
    """The library's side says what comparing and screening kept outputs shows: here that they agree."""
    from opera.programs.verdicts import Outcome
    from opera.run import library_side

    _, _, found = run(filled, "wrong_value")
    verdict = found["LeakyRelu"][0]
    monkeypatch.setattr(folders, "TOLD", str(filled.root))
    folder = filled.files.test(verdict.test).relative_to(filled.root)
    [(instance,)] = filled.query("SELECT instance FROM tests WHERE id = ?", (verdict.test,))
    request = library_side.ScreenRequest(
        "onnx", "faults.onnx_faults:wrong_value", verdict.test, filled.instance(instance).canonical(),
        f"{folder}/expected.msgpack", Outcome("screened", "infer", "value"), anew=True,
    )  # fmt: skip
    assert library_side.screen(request).status == library_side.AGREES
    wrong = library_side.screen(
        library_side.ScreenRequest(
            "onnx",
            "faults.onnx_faults:wrong_value",
            verdict.test,
            filled.instance(instance).canonical(),
            str(next(x for x in kept(filled) if x.name.startswith(verdict.test)).relative_to(filled.root)),
            Outcome("screened", "infer", ""),
            anew=True,
        )
    )
    assert (wrong.status, wrong.outcome.symptom) == (library_side.KEPT, "value")


def test_verdicts_of_an_earlier_opera_are_run_again(filled):
    run(filled, "wrong_value")
    with filled.transaction():
        filled._db.execute("UPDATE verdicts SET rules = '', seen = NULL")
    for path in kept(filled):
        path.unlink()
    summary, said, found = run(filled, "wrong_value")
    assert "5 hold too little" in said[0]
    assert all(x.rules and x.outcome.seen is not None for kind in found.values() for x in kind)
    assert summary.new_findings == []


def test_an_error_for_want_of_time_is_tried_again(filled):
    run(filled, "right")
    [name] = filled.query("SELECT DISTINCT test FROM verdicts LIMIT 1")[0]
    [verdict] = filled.verdicts("test = ?", (name,), seen=True)
    late = judged(
        name, verdict.frontend, verdict.variant, verdict.environment, "error", "load", "starved",
        details={AGAIN: True}, rules=verdict.rules,
    )  # fmt: skip
    filled.save_verdicts(1, [late], {})
    _, said, found = run(filled, "right")
    assert {x.outcome.verdict for kind in found.values() for x in kind} == {"pass"}
    assert "1 hold too little" in said[0]


def test_what_agrees_by_new_rules_is_run_again_by_newer_ones(filled, monkeypatch):
    """Of outputs that only comparing again found to agree, no margins are known."""
    run(filled, "wrong_value")
    for path in kept(filled):
        path.write_bytes(
            (filled.tests_folder / path.name[:2] / path.name.split("-")[0] / "expected.msgpack").read_bytes()
        )
    monkeypatch.setitem(oracle.TOLERANCES, "float32", (1e-3, 1e-4))
    _, said, found = run(filled, "wrong_value")
    assert "2 inconsistent → pass" in said[0]
    assert {(x.outcome.verdict, x.outcome.seen, x.finding) for x in found["LeakyRelu"]} == {("pass", None, "")}
    monkeypatch.setitem(oracle.TOLERANCES, "float32", (1e-9, 1e-9))
    _, said, found = run(filled, "wrong_value")
    assert "2 hold too little" in said[0]
    assert {x.outcome.verdict for x in found["LeakyRelu"]} == {"inconsistent"}


def test_what_holds_is_not_read(filled, monkeypatch):
    """A workspace whose passes are of older screens costs a later run nothing."""
    run(filled, "right")
    changed(monkeypatch, screens="other")
    asked: list[str] = []
    verdicts = Workspace.verdicts

    def counting(self, where="1", *rest, **more):
        for verdict in verdicts(self, where, *rest, **more):
            asked.append(where)
            yield verdict

    monkeypatch.setattr(Workspace, "verdicts", counting)
    _, said, _ = run(filled, "right")
    assert said == [] and len(asked) == 5, "those that this test's own run() reads"
