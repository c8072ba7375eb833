"""Programs of several calls, on the real frontends: they run, a fault in the second call is found and told, and shown."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest
from commands import opera
from faults.onnx_faults import Silent
from several_calls import EVERY

from opera import compilers
from opera.programs.program import Captured, Provenance
from opera.programs.verdicts import FAILURES, Limits
from opera.run import driver
from opera.store import tests
from opera.store.rows import Verdict
from opera.store.workspace import Workspace
from opera.triage.findings import findings
from opera.triage.reproducers import scripts

EXAMPLES = Path(__file__).parents[2] / "examples" / "programs.jsonl"
QUICK = ("onnxruntime", "openvino", "tvm")


def by_test(workspace: Workspace) -> dict[str, list[Verdict]]:
    """Return the program's name → its verdicts."""
    names = {captured_as.id: name for name, captured_as in EVERY.items()}
    instance_of = tests.instances(workspace)
    found: dict[str, list[Verdict]] = defaultdict(list)
    for verdict in workspace.verdicts():
        found[names[instance_of[verdict.test]]].append(verdict)
    return found


@pytest.mark.full
@pytest.mark.parametrize("library", ["onnx", ""])
def test_programs_run_on_every_frontend(tmp_path: Path, library: str) -> None:
    """Of ONNX; the full suite runs those of every library, on all frontends that opera has itself."""
    for package in ("tvm", "openvino", "onnxruntime") if library else ("torch", "tensorflow", "tvm", "openvino"):
        pytest.importorskip(package)
    chosen = [name for name in compilers.registered() if "-" not in name and (not library or name in QUICK)]
    root = tmp_path / "results"
    for command in (("corpus", "import", EXAMPLES), ("prioritize",)):
        done = opera(*command, "--workspace", root)
        assert done.returncode == 0, done.stderr
    asked = [word for x in chosen for word in ("--compiler", x)] + (["--library", library] if library else [])
    done = opera("run", "--workspace", root, "--workers", "2", *asked)
    assert done.returncode == 0, done.stderr
    with Workspace.open(root, write=False) as workspace:
        found = by_test(workspace)
        expected = {
            (name, f"{compiler}-{graph.library}")
            for name, graph in EVERY.items()
            for compiler in chosen
            if graph.library in compilers.get(compiler).FRONTENDS and library in ("", graph.library)
        }
        assert {(name, x.frontend) for name, verdicts in found.items() for x in verdicts} == expected
        wrong = [
            (name, x.frontend, x.outcome)
            for name, verdicts in found.items()
            for x in verdicts
            if x.outcome.verdict != "pass"
        ]
        assert all(outcome.verdict == "unsupported" for _, _, outcome in wrong), wrong
    shown = opera("show", "MatMul", "--workspace", root).stdout
    assert "MatMul" in shown and "pass" in shown


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("onnx matmul-relu", {"onnx_frontend:Relu._impl_v13"}),
        pytest.param(
            "torch matmul-relu_",
            {"base_fx_graph_translator:BaseFXGraphImporter._unary_op[relu.default]", "onnx_frontend:Relu._impl_v13"},
            marks=pytest.mark.full,
        ),
        pytest.param(
            "keras split-add",
            {"tflite_frontend:OperatorConverter._convert_unary_elemwise[EXP]", "onnx_frontend:Exp._impl_v13"},
            marks=pytest.mark.full,
        ),
    ],
)
def test_a_fault_in_a_later_call_is_found_told_and_shown(tmp_path: Path, name: str, told: set[str]) -> None:
    for package in ("tvm", {"keras": "tensorflow"}.get(EVERY[name].library, EVERY[name].library)):
        pytest.importorskip(package)
    with Workspace.open(tmp_path / "w", write=True) as workspace:
        workspace.add_captured([Captured(EVERY[name], Provenance("by-hand", "programs", name))])
        options = driver.Options(compilers=("faults.broken_tvm",), workers=1, limits=Limits(120.0))
        driver.run(workspace, options, Silent())
        found = findings(workspace)
        assert {x.conversion_function for x in found} == told
        assert {(x.verdict, x.stage, x.symptom, x.confirmed) for x in found} == {("crash", "load", "TypeError", 1)}
        assert {x.operator for x in found} == {EVERY[name].operator}
        for verdict in workspace.verdicts():
            assert verdict.outcome.verdict in FAILURES
        for finding, verdicts in scripts.members(workspace).items():
            path = scripts.write(workspace, finding, verdicts)
            assert path is not None
            text = path.read_text()
            assert len(text.splitlines()) < 150, "one script, as readable as that of one call"
            trial = scripts.verify(path, finding)
            assert (trial.code, trial.shown) == (scripts.GONE, False), "the fault is not in the TVM that scripts run"
