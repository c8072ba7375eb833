"""Which part is wrong: the rule, and what is seen of real compilers whose conversion, kernel or library is wrong on purpose."""

from __future__ import annotations

import msgspec
import pytest
from faults.onnx_faults import Silent

from opera.compilers import APART, DECLARED, LESS
from opera.compilers.onnxruntime import PLACES
from opera.libraries.onnx import library
from opera.programs.verdicts import CRASH, INCONSISTENT, PASS, UNSUPPORTED, Outcome
from opera.run import driver
from opera.run.probe import Probe
from opera.store import verdicts
from opera.store.workspace import Workspace
from opera.triage import blame
from opera.triage.blame import AS_FOUND, CONSTANTS, INPUTS, OTHER, ROUTE, Subject, Tried

WRONG = Outcome(
    INCONSISTENT, "infer", "value", "output 'y': 1 of 2", details={"output": "y", "index": "[0]", "actual": 3.0}
)
ANOTHER = Outcome(
    INCONSISTENT, "infer", "value", "output 'y': 2 of 2", details={"output": "y", "index": "[0]", "actual": 4.0}
)
RIGHT = Outcome(PASS)
NOTHING = Outcome(UNSUPPORTED, "load")


def crash(stage: str, message: str = "it failed") -> Outcome:
    return Outcome(CRASH, stage, "RuntimeError", message)


RULES = [
    ("unknown", WRONG, [(AS_FOUND, RIGHT), (LESS, RIGHT)]),
    ("unknown", WRONG, [(AS_FOUND, crash("load"))]),
    ("library", WRONG, [(OTHER, WRONG), (OTHER, WRONG), (LESS, WRONG), (APART, WRONG)]),
    ("conversion", WRONG, [(OTHER, WRONG), (OTHER, WRONG), (OTHER, RIGHT), (APART, WRONG)]),
    ("conversion", WRONG, [(OTHER, WRONG), (OTHER, ANOTHER), (APART, WRONG)]),
    ("optimisation", WRONG, [(AS_FOUND, WRONG), (LESS, RIGHT), (APART, RIGHT)]),
    ("optimisation", crash("load"), [(AS_FOUND, crash("load")), (LESS, RIGHT)]),
    ("kernel", WRONG, [(LESS, WRONG), (APART, RIGHT)]),
    ("kernel", WRONG, [(LESS, WRONG), (APART, NOTHING), (APART, RIGHT)]),
    ("conversion", WRONG, [(LESS, WRONG), (APART, RIGHT), (APART, ANOTHER)]),
    ("conversion", crash("load"), [(LESS, crash("load")), (APART, RIGHT)]),
    ("kernel", crash("load", "/src/onnxruntime/core/providers/cpu/rnn/deep_cpu_gru.h:56"), []),
    ("conversion", WRONG, [(APART, NOTHING), (ROUTE, RIGHT)]),
    ("unknown", WRONG, [(APART, NOTHING), (ROUTE, WRONG), (OTHER, RIGHT)]),
    ("conversion", WRONG, [(LESS, WRONG), (DECLARED, RIGHT), (CONSTANTS, RIGHT)]),
    ("optimisation", WRONG, [(LESS, RIGHT), (CONSTANTS, RIGHT)]),
    ("kernel", WRONG, [(APART, RIGHT), (CONSTANTS, WRONG)]),
    ("unknown", WRONG, [(APART, NOTHING), (INPUTS, RIGHT)]),
]


@pytest.mark.parametrize(("verdict", "seen", "tried"), RULES)
def test_the_first_rule_that_holds_decides(verdict: str, seen: Outcome, tried: list[tuple[str, Outcome]]) -> None:
    rows = [Tried(kind, f"way {place}", outcome) for place, (kind, outcome) in enumerate(tried)]
    found, because = blame.decide(seen, rows, PLACES, exporter=False)
    assert found == verdict, because
    assert because


def test_where_no_importer_changes_the_model_the_kernel_is_left() -> None:
    for less, native, verdict in ((WRONG, True, "kernel"), (WRONG, False, "unknown"), (RIGHT, True, "optimisation")):
        assert blame.decide(WRONG, [Tried(LESS, "plain", less)], {}, exporter=False, native=native)[0] == verdict


def test_the_converters_name_is_no_place_where_something_was_raised() -> None:
    seen = Outcome(CRASH, "infer", "TypeError", "no tensor", conversion_function="onnx_frontend:Identity._impl_v1")
    assert blame.decide(seen, [], {"onnx_frontend": "conversion"}, exporter=False)[0] == "unknown"


def test_an_exporter_is_to_blame_for_its_files_and_not_for_who_runs_them() -> None:
    for outcome, verdict in ((WRONG, "exporter"), (RIGHT, "kernel"), (NOTHING, "exporter")):
        assert blame.decide(WRONG, [Tried(APART, "reference", outcome)], {}, exporter=True)[0] == verdict


def test_shapes_that_are_stated_tell_whether_the_importer_had_them_wrong() -> None:
    text = "output 'y': shape [2] is expected, [3] was returned"
    seen = Outcome(INCONSISTENT, "infer", "shape", text)
    other = Outcome(
        INCONSISTENT, "infer", "value", "output 'x': 2 of 2", details={"others": [f"output 'y': shape: {text[12:]}"]}
    )
    for stated, verdict in ((other, "conversion"), (ANOTHER, "kernel"), (RIGHT, "kernel"), (NOTHING, "unknown")):
        assert blame.decide(seen, [Tried(DECLARED, "stated", stated)], {}, exporter=False)[0] == verdict


@pytest.mark.full
def test_an_expectation_that_all_compilers_contradict_is_the_librarys_or_its_tests(workspace: Workspace) -> None:
    _, wrong = library.canaries()
    workspace.add_captured([wrong])
    driver.run(workspace, driver.Options(compilers=("onnxruntime", "openvino", "tvm"), workers=1), Silent())
    environments = {x["compiler"]: name for name, x in workspace.environments().items()}
    seen = Outcome(INCONSISTENT, "infer", "value")
    [test] = {x.test for x in verdicts.shown(workspace)}
    subjects = [
        Subject("F1", environments[x], f"{x}-onnx", "inputs", test, seen, ("mode=3",)) for x in ("tvm", "openvino")
    ]
    with Probe.of(workspace, workers=1) as probe:
        found = {x.environment: x for x in blame.ask(workspace, subjects, probe)}
    for name, other, ways in (("tvm", "openvino", 3), ("openvino", "tvm", 3)):
        told = found[environments[name]]
        assert told.verdict == "library" and told.because.endswith("; fails only with mode=3"), blame.table(told)
        rows = {row.way: row for row in told.evidence}
        assert sum(row.remark == "the same answer" for row in rows.values()) >= 4, blame.table(told)
        assert any(way.startswith(other) for way in rows) and len(rows) >= 1 + ways + 2
    blame.save(workspace, told)
    assert blame.stored(workspace, "F1") == [told]
    assert blame.line(workspace, "F1").startswith("library: ") and blame.line(workspace, "F2") == ""


def test_of_stated_types_the_values_are_not_told():
    zeros = Outcome(INCONSISTENT, "infer", "value", "output 'Y': 1 of 1 elements, first at []: expected 1.0, got 0.0")
    assert blame._evidence(Tried(DECLARED, "stated", zeros)) == "shapes and dtypes are as expected"
    other = "output 'Mean': shape: shape [1] is expected, [] was returned"
    both = msgspec.structs.replace(zeros, details={"others": ["output 'Z': value: expected 1.0, got 0.0", other]})
    assert blame._evidence(Tried(DECLARED, "stated", both)) == f"inconsistent; {other}"
    assert "expected 1.0" in blame._evidence(Tried(LESS, "plain", zeros))
