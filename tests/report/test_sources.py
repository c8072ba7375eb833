"""Migration sources compared: what each brought and found, and what they share."""

from __future__ import annotations

import json
import re

import jsonschema
import pytest
from filled import HOSTILE, captured, document, judged

from opera import report as reports
from opera.errors import UsageError
from opera.programs.program import Captured, Provenance
from opera.report.html import render
from opera.report.json import schema
from opera.report.sources import Comparison, Yield
from opera.report.summary import Report, summarise
from opera.report.venn import venn
from opera.sources import record as command
from opera.store.families import TESTS, family, ordered
from opera.store.rows import Test as MigratedTest
from opera.store.workspace import Workspace

A, B, C, D = "Faaaaaaaa", "Fbbbbbbbb", "Fcccccccc", "Fdddddddd"
NODE, PYTEST, DOCTER, DEEPREL = "onnx-node-tests", "onnx-pytest", "docter", "deeprel"
RECORDS = (  # (operator, sources, finding or verdict), in rank order
    ("Conv", (NODE,), A),
    ("Conv", (NODE, PYTEST), "pass"),
    ("Conv", (DOCTER,), A),
    ("Relu", (NODE,), "unsupported"),
    ("Relu", (NODE, DOCTER), B),
    ("Relu", (DEEPREL,), C),
    ("Gemm", (DEEPREL,), D),
    ("Gemm", (DEEPREL, DOCTER), D),
    ("Loop", (DEEPREL,), "pass"),
    ("Loop", (PYTEST,), "pass"),
    ("Scan", (DEEPREL,), ""),  # not run
)


def fill(workspace: Workspace, records=RECORDS) -> None:
    """Store instances of several sources, a test of each, and its verdict on one frontend."""
    made = [captured(number, operator) for number, (operator, _, _) in enumerate(records)]
    workspace.add_captured(
        Captured(record.program, Provenance(source, "file", "test"))
        for record, (_, sources, _) in zip(made, records, strict=True)
        for source in sources
    )
    workspace.save_tests("x", [MigratedTest(f"t{n}", record.program.id, "valid") for n, record in enumerate(made)])
    environment = workspace.save_environment(document("tvm", "0.27.0"))
    verdicts = [
        judged(f"t{n}", "tvm-onnx", "inputs", environment, "crash", "load", "E", finding=shown)
        if shown.startswith("F")
        else judged(f"t{n}", "tvm-onnx", "inputs", environment, shown)
        for n, (_, _, shown) in enumerate(records)
        if shown
    ]
    workspace.save_verdicts(1, verdicts, {x.finding: b"{}" for x in verdicts if x.finding})


@pytest.fixture
def compared(workspace) -> Report:
    fill(workspace)
    return summarise(workspace)


def areas(comparison: Comparison) -> dict[tuple[str, ...], tuple[str, ...]]:
    return {x.sources: x.findings for x in comparison.overlaps}


def test_what_people_wrote_is_one_family_and_all_else_is_its_own():
    for source in (
        "onnx-node-tests",
        "onnx-pytest",
        "pytorch-samples",
        "pytorch-pytest",
        "keras-tests",
        command.SOURCE,
    ):
        assert family(source) == TESTS
    assert [family(source) for source in ("docter", "deeprel", "a fuzzer")] == ["docter", "deeprel", "a fuzzer"]
    assert ordered(["docter", "onnx-pytest", "deeprel", "command"]) == ("tests", "deeprel", "docter")


def test_what_each_family_brought(compared):
    assert compared.instances == {"onnx": {NODE: 4, PYTEST: 2, DOCTER: 3, DEEPREL: 5}}
    brought = {x.name: x for x in compared.sources["onnx"]}
    assert list(brought) == ["tests", "deeprel", "docter"]
    assert brought["tests"].members == (NODE, PYTEST)
    assert {name: (x.instances, x.operators, x.operators_alone) for name, x in brought.items()} == {
        "tests": (5, 3, 0),  # Conv, Relu, Loop: the instance of both suites once
        "deeprel": (5, 4, 1),  # Relu, Gemm, Loop, Scan: Scan
        "docter": (3, 3, 0),  # Conv, Relu, Gemm
    }


def test_what_only_a_compilers_own_suite_covers_is_nobodys(workspace):
    fill(workspace)
    before = summarise(workspace).sources
    workspace.add_captured([captured(50, "Elu"), captured(0, "Conv"), captured(4, "Relu")], equipped="tvm")
    after = summarise(workspace)
    assert after.sources == before
    assert [x.corpus for x in after.frontends] == [len(RECORDS)]


def test_a_finding_belongs_to_every_family_that_a_failing_test_of_it_came_from(compared):
    [comparison] = compared.comparisons
    assert (comparison.frontend, comparison.tests_each) == ("tvm-onnx 0.27.0", None)
    assert comparison.yields == [
        Yield("tests", tests=5, failing=2, findings=2, findings_alone=0),
        Yield("deeprel", tests=4, failing=3, findings=2, findings_alone=1),
        Yield("docter", tests=3, failing=3, findings=3, findings_alone=0),
    ]
    assert areas(comparison) == {("deeprel",): (C,), ("tests", "docter"): (A, B), ("deeprel", "docter"): (D,)}


def test_balance_counts_as_many_of_each_as_the_family_with_fewest_has(workspace):
    fill(workspace)
    with_all = summarise(workspace).comparisons[0]
    [comparison] = summarise(workspace, balance=True).comparisons
    assert comparison.tests_each == 3
    assert comparison.yields == [
        Yield("tests", tests=3, failing=1, findings=1, findings_alone=0),  # its first three in corpus order: A
        Yield("deeprel", tests=3, failing=3, findings=2, findings_alone=1),
        Yield("docter", tests=3, failing=3, findings=3, findings_alone=1),  # B, for the tests' own comes too late
    ]
    assert areas(comparison) == {
        ("deeprel",): (C,),
        ("docter",): (B,),
        ("tests", "docter"): (A,),
        ("deeprel", "docter"): (D,),
    }
    seqs = [seq for (seq,) in workspace.query("SELECT seq FROM instances ORDER BY seq")]
    workspace.save_ranking("onnx", "tvm", "by-hand", {}, [seqs[4], *(seq for seq in seqs if seq != seqs[4])])
    ranked = summarise(workspace, balance=True).comparisons[0]
    assert areas(ranked) == areas(with_all), "what ranks first is what counts"


def test_balance_with_nothing_to_compare_is_told(workspace):
    fill(workspace, [x for x in RECORDS if not {DOCTER, DEEPREL} & set(x[1])])
    assert [x.findings for x in summarise(workspace).comparisons[0].yields] == [1]
    with pytest.raises(UsageError, match="no frontend has run tests of two sources"):
        summarise(workspace, balance=True)


def test_a_family_of_which_nothing_was_run_is_listed_and_not_drawn(workspace):
    fill(
        workspace,
        [(operator, sources, shown if DEEPREL not in sources else "") for operator, sources, shown in RECORDS],
    )
    [comparison] = summarise(workspace).comparisons
    assert comparison.yields[1] == Yield("deeprel", 0, 0, 0, 0)
    figure = venn(comparison)
    assert [x.name for x in figure.circles] == ["tests", "docter"]
    assert summarise(workspace, balance=True).comparisons[0].tests_each == 2


def comparison(findings: dict[tuple[str, ...], int], *names: str) -> Comparison:
    from opera.report.sources import Overlap

    overlaps = [Overlap(area, tuple(f"F{n}" for n in range(count))) for area, count in findings.items()]
    totals = {name: sum(count for area, count in findings.items() if name in area) for name in names}
    return Comparison("f", "onnx", None, [Yield(name, 9, 9, totals[name], 0) for name in names], overlaps)


@pytest.mark.parametrize("names", [("a", "b"), ("a", "b", "c")])
def test_each_number_stands_in_the_area_that_it_counts(names):
    figure = venn(comparison({(names[0],): 7, names: 2}, *names))
    assert len(figure.areas) == 2 ** len(names) - 1
    assert {x.sources: x.count for x in figure.areas if x.count} == {(names[0],): 7, names: 2}
    for area in figure.areas:
        inside = {
            circle.name
            for circle in figure.circles
            if (circle.x - area.x) ** 2 + (circle.y - area.y) ** 2 < figure.radius**2
        }
        assert inside == set(area.sources)
        edges = [abs(((x.x - area.x) ** 2 + (x.y - area.y) ** 2) ** 0.5 - figure.radius) for x in figure.circles]
        assert min(edges) > 14, "no number lies on a line"
    assert [x.total for x in figure.circles][:2] == [9, 2]


def test_more_than_three_sources_are_rows_and_one_is_no_figure():
    figure = venn(comparison({("a", "d"): 1, ("b",): 5, ("a", "b", "c", "d"): 1}, "a", "b", "c", "d"))
    assert figure.circles == []
    assert [x.sources for x in figure.areas] == [("b",), ("a", "b", "c", "d"), ("a", "d")]
    assert venn(comparison({("a",): 5}, "a")) is None


def test_every_format_shows_it(compared, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    text = reports.get("terminal").render(compared)
    assert re.search(r"deeprel +5 +4 +1 +4 +3 +2 +1\n", text)
    assert "findings of several: 2 by tests and docter, 1 by deeprel and docter" in text
    text = reports.get("markdown").render(compared)
    assert "| deeprel | 5 | 4 | 1 | 4 | 3 | 2 | 1 |" in text
    assert "| tests and docter | 2 |" in text
    page = render(compared)
    assert page.count("<circle") == 3
    assert 'aria-label="findings: 0 by tests only, 1 by deeprel only' in page
    found = json.loads(reports.get("json").render(compared))
    jsonschema.validate(found, schema())
    assert found["comparisons"][0]["overlaps"][0] == {"sources": ["deeprel"], "findings": [C]}


def test_names_of_sources_are_shown_as_text(workspace, monkeypatch):
    """A corpus of somebody else's may name its source anything."""
    records = [
        (name, tuple(HOSTILE + "," if x == DOCTER else x for x in sources), shown) for name, sources, shown in RECORDS
    ]
    fill(workspace, [*records, ("Conv", ("fourth",), A)])
    report = summarise(workspace)
    assert [x.name for x in report.sources["onnx"]] == ["tests", HOSTILE + ",", "deeprel", "fourth"]
    assert report.comparisons[0].yields[1].findings == 3
    for columns in ("80", "120"):
        monkeypatch.setenv("COLUMNS", columns)
        text = reports.get("terminal").render(report)
        assert "\x1b" not in text
        assert max(map(len, text.splitlines())) <= int(columns)
    page = render(report)
    assert "<img" not in page
    assert '<table class="overlaps">' in page
    assert "<img" not in reports.get("markdown").render(report)


def test_a_library_of_one_family_has_nothing_to_compare(report):
    assert [len(x.yields) for x in report.comparisons] == [1, 1, 1]
    assert "<figure>" not in render(report)
    assert "Sources on" not in reports.get("markdown").render(report)
