"""Every planted fault is found by a whole run, as one confirmed finding, and costs the other tests nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from faults.onnx_faults import Silent, relu, unordered

from opera.programs.verdicts import Limits
from opera.run import driver as stage
from opera.store.workspace import REPRODUCERS
from opera.triage.findings import findings
from opera.triage.reproducers import scripts

pytest.importorskip("onnx")


FAULTS = {
    "wrong_value": ("inconsistent", "value"),
    "dropped_attribute": ("inconsistent", "value"),
    "wrong_shape": ("inconsistent", "shape"),
    "wrong_dtype": ("inconsistent", "dtype"),
    "wrong_count": ("inconsistent", "count"),
    "not_a_number": ("inconsistent", "nan-mask"),
    "segfault": ("abort", "SIGSEGV"),
    "hang": ("timeout", "timeout"),
    "memory": ("out-of-memory", None),
    "silent_exit": ("abort", "exit 0"),
    "crash": ("crash", "RuntimeError"),
    "random": ("unstable", "unstable"),
    "unwritten": ("unstable", "unstable"),
    "right_first": ("unstable", "unstable"),
}


def verdicts(workspace, compiler: str) -> dict[str, list]:
    options = stage.Options(compilers=(f"faults.onnx_faults:{compiler}",), limits=Limits(2.0, 256 << 20))
    stage.run(workspace, options, Silent())
    operators = dict(workspace.query("SELECT t.id, i.operator FROM tests t JOIN instances i ON i.id = t.instance"))
    found: dict[str, list] = {"Relu": [], "LeakyRelu": []}
    for verdict in workspace.verdicts():
        found[operators[verdict.test]].append(verdict)
    return found


@pytest.fixture
def filled(workspace):
    workspace.add_captured([relu(n, "Relu") for n in range(6)] + [relu(n, "LeakyRelu") for n in range(2)])
    return workspace


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(filled, fault):
    found = verdicts(filled, fault)
    verdict, symptom = FAULTS[fault]
    assert {x.outcome.verdict for x in found["Relu"]} == {"pass"}
    assert len(found["Relu"]) == 6
    assert [x.outcome.verdict for x in found["LeakyRelu"]] == [verdict] * 2
    assert symptom is None or {x.outcome.symptom for x in found["LeakyRelu"]} == {symptom}
    assert {x.confirmation for x in found["LeakyRelu"]} == {"confirmed"}
    [finding] = findings(filled)
    assert (finding.operator, finding.conversion_function) == ("LeakyRelu", "convert_LeakyRelu")
    assert len(finding.members) == 2
    assert finding.stage == "infer"


def test_a_right_compiler_passes_everything(filled):
    found = verdicts(filled, "right")
    assert {x.outcome.verdict for kind in found.values() for x in kind} == {"pass"}
    assert findings(filled) == []


def test_a_missing_output_is_found_where_the_values_are_undefined(workspace):
    workspace.add_captured([unordered(n) for n in range(5, 7)])
    options = stage.Options(compilers=("faults.onnx_faults:missing_output",), limits=Limits(2.0, 256 << 20))
    stage.run(workspace, options, Silent())
    shown = {(x.outcome.verdict, x.outcome.symptom, x.confirmation) for x in workspace.verdicts()}
    assert shown == {("inconsistent", "count", "confirmed")}


def test_a_failure_that_needs_earlier_tests_keeps_their_list(filled):
    found = verdicts(filled, "leaks_state")
    failing = [x for x in found["LeakyRelu"] if x.outcome.verdict == "inconsistent"]
    assert failing
    for verdict in failing:
        assert "state-dependent" in verdict.outcome.details["tags"]
        assert verdict.outcome.details["predecessors"]
    written, missing = scripts.write_all(filled)
    assert (written, missing) == (1, {})
    path = next((filled.root / REPRODUCERS).iterdir())
    text = path.read_text()
    path.write_text("of another program, that it showed before")
    assert scripts.write_all(filled) == (0, {}) and path.read_text() != text
    assert scripts.write_all(filled, anew={path.stem}) == (1, {}) and path.read_text() == text
    assert len(re.findall("LeakyRelu|Relu", path.read_text())) >= 2
    tests = str(Path(__file__).parents[1])
    path.write_text(f"import sys; sys.path.append({tests!r})\n" + path.read_text())
    assert scripts.verify(path, "F").shown
