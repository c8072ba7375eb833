"""ONNX's own suite, as its wheel ships it, from end to end of the capture side."""

from __future__ import annotations

import pytest
from commands import cpu_seconds_of_children
from suite_reports import damaged, reports

from opera.libraries.onnx.wrap import parts
from opera.programs.program import Captured
from opera.programs.values import Message
from opera.sources.suites.suites import recognise


@pytest.fixture(scope="module")
def captured() -> list[Captured]:
    start = cpu_seconds_of_children()
    found: list[Captured] = []
    for report in reports(recognise("onnx"), workers=2):
        assert (report.status, report.reason, report.left_out, damaged(report)) == ("done", "", {}, 0), report.file
        found.extend(report.records())
    assert cpu_seconds_of_children() - start < 60
    return found


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_every_node_test_of_the_wheel_is_captured(captured: list[Captured]) -> None:
    import onnx.backend.test.case.node as node

    stated = {case.name for case in node.collect_testcases(None)}
    assert {record.provenance.test for record in captured} == stated
    assert len(captured) == len(stated) >= 1884
    assert len({record.program.id for record in captured}) >= len(stated) - 20


def test_expanded_cases_keep_the_operator_and_carry_its_body(captured: list[Captured]) -> None:
    from onnx import GraphProto

    by_test = {record.provenance.test: record for record in captured}
    plain, expanded = by_test["test_clip"].program, by_test["test_clip_expanded"].program
    assert plain.operator == expanded.operator == "Clip"
    assert plain.inputs == expanded.inputs
    assert "body" not in plain.context
    body = expanded.context["body"]
    assert isinstance(body, Message) and "test_clip" not in str(GraphProto.FromString(body.data))


def test_every_capture_states_its_outputs_and_makes_a_model(captured: list[Captured]) -> None:
    for record in captured:
        assert record.expected is not None and (record.rtol, record.atol) == (1e-3, 1e-7)
        made = parts(record.program)
        assert len(made.outputs) == len(record.expected)


def test_a_second_extraction_sees_the_same(captured: list[Captured]) -> None:
    target = recognise("onnx")
    chosen = ("dropout.py", "randn.py", "lstm.py", "sequence_map.py", "adam.py")
    every = {record.provenance.file for record in captured}
    again = [
        record.program.id
        for report in reports(target, done={file for file in every if not file.endswith(chosen)})
        for record in report.records()
    ]
    assert again
    assert again == [record.program.id for record in captured if record.provenance.file.endswith(chosen)]
