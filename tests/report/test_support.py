from __future__ import annotations

import csv
import io
import json

import pytest
from filled import HOSTILE

from opera.errors import UsageError
from opera.report import support
from opera.report.support import FORMATS, key


def rows(workspace, **asked):
    wanted = {"libraries": [], "frontends": [], "operator": "*", "shows": ""} | asked
    return support.support(workspace, **wanted)


def test_each_operator_shows_the_worst_of_its_tests_on_each_frontend(workspace, environments):
    found = rows(workspace)
    assert [x.name for x in found.frontends] == ["openvino-onnx", "tvm-onnx", "tvm-onnx"]
    assert [x.version for x in found.frontends][1:] == ["0.9.0", "0.27.0"], "older versions come first"
    shown = {row.name: [row.cells[key(x)] for x in found.frontends] for row in found.operators}
    assert shown["Conv"][2].shows == "fails" and shown["Conv"][2].fails > 0
    for cells in shown.values():
        for cell in cells:
            assert cell.passes + cell.fails + cell.unsupported + cell.other == cell.tests
            assert (cell.shows == "fails") == (cell.fails > 0) and (cell.shows == "not run") == (cell.tests == 0)
    stated = workspace.query("SELECT COUNT(DISTINCT test) FROM verdicts WHERE frontend = 'openvino-onnx'")
    assert sum(cells[0].tests for cells in shown.values()) == stated[0][0]


def test_what_is_asked_for_is_shown_alone(workspace, environments):
    found = rows(workspace, frontends=["openvino-onnx"], operator="C*")
    assert [x.name for x in found.frontends] == ["openvino-onnx"] and {x.name for x in found.operators} == {
        "Conv",
        "Cast",
    }
    failing = rows(workspace, frontends=["tvm-onnx"], shows="fails")
    assert failing.operators and all("fails" in {c.shows for c in x.cells.values()} for x in failing.operators)


@pytest.mark.parametrize(
    ("asked", "message", "meant"),
    [
        ({"frontends": ["tvm-onx"]}, "nothing of the frontend 'tvm-onx'", "did you mean tvm-onnx?"),
        ({"libraries": ["onx"]}, "nothing of the library 'onx'", "did you mean onnx?"),
        ({"operator": "Cnv"}, "no operator in the workspace matches 'Cnv'", "did you mean Conv?"),
        ({"shows": "fail"}, "operators do not show 'fail'", "did you mean fails?"),
    ],
)
def test_what_is_not_there_is_told_with_what_was_perhaps_meant(workspace, environments, asked, message, meant):
    with pytest.raises(UsageError, match=message) as error:
        rows(workspace, **asked)
    assert meant in str(error.value)


@pytest.mark.parametrize("width", ["60", "80", "200"])
def test_formats_hold_the_same(workspace, environments, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", width)
    found = rows(workspace)
    texts = {name: support.render(found, name) for name in FORMATS}
    records = list(csv.DictReader(io.StringIO(texts["csv"])))
    assert [{name: str(value) for name, value in x.items()} for x in json.loads(texts["json"])] == records
    assert len(records) == len(found.operators) * len(found.frontends)
    assert HOSTILE in {x["operator"] for x in records}
    lines = texts["markdown"].splitlines()
    assert len(lines) == len(found.operators) + 2 and len({len(x.replace("\\|", "").split("|")) for x in lines}) == 1
    assert "\x1b" not in texts["terminal"] + texts["markdown"]
    assert max(map(len, texts["terminal"].splitlines()[:-3])) <= int(width)
    for cell in {cell.text for row in found.operators for cell in row.cells.values()}:
        assert cell in texts["terminal"], "no number is cut"


def test_a_workspace_that_has_run_nothing_lists_its_operators(workspace):
    from filled import captured

    workspace.add_captured([captured(1, "Conv"), captured(2, "Conv")])
    text = support.render(rows(workspace), "terminal")
    assert "Conv  2 instances" in text and "opera prioritize && opera run" in text
    with pytest.raises(UsageError, match="no format 'cvs'") as error:
        support.render(rows(workspace), "cvs")
    assert "did you mean csv?" in str(error.value)
