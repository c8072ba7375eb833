"""References that disagree: what extractions stored of them, in every format of a report."""

import msgspec

from opera.report import html, json, markdown, terminal
from opera.report.summary import summarise
from opera.store.rows import Disagreement

MESSAGE = "output 'y': shape [0] is expected, [1] was returned"


def disagreement(number: int, operator: str = "Shape", other: str = "onnxruntime") -> Disagreement:
    return Disagreement(f"{number:020}", operator, f"{operator} {number}", "evaluator", other, "shape", MESSAGE)


def stored(workspace, file: str, found: list[Disagreement]) -> None:
    document = {"reason": "", "tests": 1, "disagreements": msgspec.to_builtins(found)}
    workspace.save_extraction_file("key", file, "done", document)


def test_they_are_told_by_operator_and_pair_of_references(workspace) -> None:
    workspace.extraction("key", {"target": "", "name": "s", "version": "", "installed": "", "equipped": ""})
    stored(workspace, "a", [disagreement(1), disagreement(2), disagreement(2), disagreement(3, "Slice", "<algorithm>")])
    stored(workspace, "b", [])
    report = summarise(workspace)
    assert [(x.operator, x.other, x.count, x.test) for x in report.disagreements] == [
        ("Shape", "onnxruntime", 2, "Shape 1"),
        ("Slice", "<algorithm>", 1, "Slice 3"),
    ]
    assert report.disagreements[0].instances == (f"{1:020}", f"{2:020}")
    assert "References disagree on 3 generated programs of 2 operators" in terminal.render(report)
    assert "evaluator and onnxruntime disagree on 2 programs" in terminal.render(report)
    assert "## References that disagree" in markdown.render(report), "also before anything was run"
    text = html.render(report)
    assert "References that disagree" in text and "<algorithm>" not in text and "&lt;algorithm&gt;" in text
    assert len(msgspec.json.decode(json.render(report))["disagreements"]) == 2


def test_a_workspace_without_any_tells_none(workspace, environments) -> None:
    report = summarise(workspace)
    assert report.disagreements == []
    assert all("disagree" not in x.render(report) for x in (terminal, markdown))
