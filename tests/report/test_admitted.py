"""How much of what the schemas admit the instances of a workspace are at, by family of sources."""

import msgspec
import numpy as np
import pytest
from commands import opera

from opera.errors import UsageError
from opera.libraries import TYPE, Point
from opera.programs.program import Captured, Instance, Operand, Provenance
from opera.programs.values import Tensor
from opera.report import admitted, html, json, markdown, terminal
from opera.report.summary import summarise
from opera.store.rows import Test as MigratedTest
from opera.store.workspace import Workspace


def relu(dtype: type, source: str) -> Captured:
    tensor = Tensor.of(np.ones(2, dtype))
    instance = Instance("onnx", "Relu", {}, (Operand("X", tensor),), ("Y",), {"opset": {"": 14}})
    return Captured(instance, Provenance(source, "file", "test"))


@pytest.fixture
def filled(workspace: Workspace) -> Workspace:
    found = [
        relu(np.float32, "onnx-node-tests"), relu(np.float32, "sionnx"), relu(np.int8, "sionnx"), relu(np.int16, "sionnx"),
    ]  # fmt: skip
    workspace.add_captured(found)
    workspace.save_tests("exporter", [MigratedTest("t", found[3].program.id, "invalid", "rejected")])
    return workspace


def test_points_are_counted_by_family(filled) -> None:
    (found,) = admitted.admitted(filled)
    (types,) = found.operators["Relu"]
    assert (types.kind, types.runs, types.reached) == (TYPE, 2, {"tests": 1, "sionnx": 2}), "int16 is rejected"
    assert types.admitted == len(admitted.specified("onnx").admitted()["Relu"])
    assert found.totals[0].runs == 2 and not found.probed
    head, *lines = admitted.rows(found)
    assert head == ("", "admitted", "tests", "sionnx", "any")
    assert [line[0] for line in lines][-1] == "together"
    assert int(lines[-1][1]) == sum(int(line[1]) for line in lines[:-1])


def test_a_probe_extends_what_runs(filled) -> None:
    library = admitted.specified("onnx")
    points = {"Relu": library.admitted()["Relu"]}
    more = Point(TYPE, "Relu", "T", "tensor(double)")
    found = admitted.summed("onnx", points, admitted.reached(filled, library, "onnx"), {more})
    (types,) = found.operators["Relu"]
    assert (types.runs, types.lacking) == (3, ("T tensor(double)",))
    assert admitted.rows(found)[1][2:] == (
        f"3 ({300 / types.admitted:.1f} %)",
        "1 (33.3 %)",
        "2 (66.7 %)",
        "2 (66.7 %)",
    )


def test_reports_have_a_section_of_it(filled) -> None:
    report = summarise(filled)
    assert "What the schemas of onnx admit" in terminal.render(report)
    assert "## What the schemas of onnx admit" in markdown.render(report)
    assert "What the schemas of onnx admit" in html.render(report)
    (form,) = msgspec.json.decode(json.render(report))["admitted"]
    assert form["operators"]["Relu"][0]["reached"] == {"tests": 1, "sionnx": 2}


def test_the_command_asks_references(filled) -> None:
    ended = opera("coverage", "--library", "onnx", "--operator", "Relu", "--workspace", filled.root, "--workers", 1)
    assert ended.returncode == 0, ended.stderr
    assert "type T tensor(double)" in ended.stdout and "a reference runs" in ended.stdout
    ended = opera("coverage", "--workspace", filled.root)
    assert ended.returncode == 2 and "--frontend or --library" in ended.stderr


def test_what_cannot_be_told_is_said(filled) -> None:
    for name, glob, format, said in (
        ("torch", "*", "terminal", "does not say what its operators admit"),
        ("onnx", "relu", "terminal", "no operator of onnx matches"),
        ("onnx", "*", "html", "no format 'html'"),
    ):
        with pytest.raises(UsageError, match=said):
            admitted.show(filled, name, glob, probe=False, workers=1, format=format)
