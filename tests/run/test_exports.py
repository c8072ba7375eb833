"""What an exporter refuses, or dies of, is neither a compiler's failure nor asked for twice."""

from __future__ import annotations

import time
from collections import Counter

import pytest
from faults import exporting

from opera.programs.verdicts import Limits
from opera.report.summary import summarise
from opera.run import driver as stage
from opera.triage.findings import findings


class Silent:
    def say(self, text: str) -> None: ...
    def begin(self, total: int) -> None: ...
    def step(self, counts: Counter[str], done: int, efficiency: float) -> None: ...


def run(workspace, *compilers: str) -> dict[tuple[str, str, str], tuple[str, str]]:
    names = tuple(f"faults.exporting:{name}" for name in compilers)
    stage.run(workspace, stage.Options(compilers=names, limits=Limits(2.0, 256 << 20)), Silent())
    operators = dict(workspace.query("SELECT t.id, i.operator FROM tests t JOIN instances i ON i.id = t.instance"))
    return {
        (operators[x.test], x.frontend.removeprefix("faults.exporting:").partition("-")[0], x.variant): (
            x.outcome.verdict,
            x.outcome.symptom,
        )
        for x in workspace.verdicts()
    }


def exports(workspace) -> Counter[str]:
    return Counter((workspace.root / "exports.log").read_text().split("\n")[:-1])


@pytest.mark.parametrize(
    ("operator", "symptom"),
    [("Refused", "NotImplementedError"), ("Leaving", "SystemExit"), ("Deadly", "SIGSEGV"), ("Hanging", "timeout")],
)
def test_what_an_exporter_fails_at_is_charged_to_no_compiler(workspace, operator, symptom):
    workspace.add_captured([exporting.instance(operator), exporting.instance("Good")])
    found = run(workspace, "files", "both")
    assert found == {
        (operator, "files", "file"): ("unexported", symptom),
        (operator, "both", "file"): ("unexported", symptom),
        (operator, "both", "live"): ("pass", ""),
        ("Good", "files", "file"): ("pass", ""),
        ("Good", "both", "file"): ("pass", ""),
    }
    assert findings(workspace) == []
    assert set(exports(workspace).values()) == {1}, "one export serves both compilers"
    report = {x.compiler.partition(":")[2]: x for x in summarise(workspace).frontends}
    assert report["files"].verdicts == {"pass": 1, "unexported": 1}
    assert report["both"].verdicts == {"pass": 2}
    assert sum(report["files"].unexported.values()) == 1


def test_an_export_is_kept_for_later_runs(workspace):
    workspace.add_captured([exporting.instance("Refused"), exporting.instance("Good")])
    run(workspace, "files")
    run(workspace, "both")
    assert exports(workspace) == {"Refused file": 1, "Good file": 1}


def test_time_inside_the_exporter_counts_as_work(workspace):
    workspace.add_captured([exporting.instance("Hanging")])
    began = time.monotonic()
    run(workspace, "files")
    [frontend] = summarise(workspace).frontends
    assert 1.9 < frontend.seconds < time.monotonic() - began, "the limit, which a busy machine stretches"


def test_a_model_that_opera_cannot_rebuild_is_an_error_of_operas(workspace):
    workspace.add_captured([exporting.instance("Unbuildable"), exporting.instance("Good")])
    found = run(workspace, "rebuilt")
    assert found["Unbuildable", "rebuilt", "live"][0] == "error"
    assert found["Good", "rebuilt", "live"] == ("pass", "")
    assert findings(workspace) == []


def test_what_a_compilers_own_exporter_fails_at_is_its_own(workspace):
    """It is part of loading, and is made anew for each test: nothing of it is kept."""
    workspace.add_captured([exporting.instance("Odd"), exporting.instance("Good"), exporting.instance("Refused")])
    assert run(workspace, "own") == {
        ("Good", "own", "live"): ("pass", ""),
        ("Good", "own", "file"): ("pass", ""),
        ("Odd", "own", "live"): ("crash", "ValueError"),
        ("Odd", "own", "file"): ("crash", "ValueError"),
        ("Refused", "own", "live"): ("pass", ""),
        ("Refused", "own", "file"): ("unexported", "NotImplementedError"),
    }
    [failed] = [x for x in workspace.verdicts() if x.outcome.verdict == "crash" and x.variant == "live"]
    assert (failed.outcome.stage, failed.confirmation) == ("load", "confirmed")
    assert len(findings(workspace)) == 1
    assert not list(workspace.root.rglob("own.bin"))
