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
from opera.store.workspace import Verdict, Workspace
from opera.triage import scripts
from opera.triage.findings import findings

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


@pytest.mark.parametrize(
    "chosen", [QUICK, pytest.param(tuple(sorted(set(compilers.registered()) - set(QUICK))), marks=pytest.mark.full)]
)
def test_programs_run_on_every_frontend(tmp_path: Path, chosen: tuple[str, ...]) -> None:
    for library in ("torch", "tensorflow", "tvm", "openvino"):
        pytest.importorskip(library)
    chosen = tuple(name for name in chosen if "-" not in name)  # not those of examples/
    root = tmp_path / "results"
    for command in (("corpus", "import", EXAMPLES), ("prioritize",)):
        done = opera(*command, "--workspace", root)
        assert done.returncode == 0, done.stderr
    done = opera("run", "--workspace", root, "--workers", "2", *(word for x in chosen for word in ("--compiler", x)))
    assert done.returncode == 0, done.stderr
    with Workspace.open(root, write=False) as workspace:
        found = by_test(workspace)
        expected = {
            (name, f"{compiler}-{graph.library}")
            for name, graph in EVERY.items()
            for compiler in chosen
            if graph.library in compilers.get(compiler).FRONTENDS
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
    assert "MatMul" in shown and ("pass" in shown or "onnxruntime" not in chosen)


def test_a_fault_in_the_second_call_is_found_told_and_shown(tmp_path: Path) -> None:
    for library in ("torch", "tensorflow", "tvm"):
        pytest.importorskip(library)
    with Workspace.open(tmp_path / "w", write=True) as workspace:
        for name in ("onnx matmul-relu", "torch matmul-relu_", "keras dense-relu"):
            workspace.add_captured([Captured(EVERY[name], Provenance("by-hand", "programs", name))])
        options = driver.Options(compilers=("faults.broken_tvm",), workers=1, limits=Limits(120.0))
        driver.run(workspace, options, Silent())
        found = {x.frontend: x for x in findings(workspace)}
        told = {frontend: (x.verdict, x.stage, x.conversion_function) for frontend, x in found.items()}
        assert told == {
            "broken-tvm-onnx": ("crash", "load", "onnx_frontend:Relu._impl_v1"),
            "broken-tvm-torch": ("crash", "load", told["broken-tvm-torch"][2]),
            "broken-tvm-keras": ("crash", "load", told["broken-tvm-keras"][2]),
        }
        assert "relu" in told["broken-tvm-torch"][2].lower() and "matmul" not in told["broken-tvm-torch"][2].lower()
        assert "tflite_frontend" in told["broken-tvm-keras"][2]
        assert all(x.confirmed for x in found.values())
        assert found["broken-tvm-onnx"].operator == "MatMul + Relu"
        for verdict in workspace.verdicts():
            assert verdict.outcome.verdict in FAILURES
        for finding, verdicts in scripts.members(workspace).items():
            path = scripts.write(workspace, finding, verdicts)
            assert path is not None
            text = path.read_text()
            assert len(text.splitlines()) < 200
            compile(text, str(path), "exec")
