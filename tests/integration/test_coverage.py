"""Coverage of TVM's importer, collected in a pass of its own, and the strategies that rank by it."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import opera

from opera.programs.program import Captured, Instance, Operand, Provenance
from opera.programs.values import Tensor
from opera.store.workspace import Workspace


def unary(operator: str, *, expected: bool = True) -> Captured:
    tensor = Tensor.of([0.5, 1.0])
    instance = Instance("onnx", operator, {}, (Operand("X", tensor),), ("Y",), {"opset": {"": 13}})
    return Captured(instance, Provenance("suite", "file", operator), (tensor,) if expected else None)


@pytest.mark.full
def test_coverage_is_collected_stored_and_ranked_by(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    captured = [unary("Abs"), unary("Sqrt"), unary("Neg"), unary("Softmax")]
    with Workspace.open(root, write=True) as opened:
        opened.add_captured(captured)
    early = opera("prioritize", "--strategy", "additional", "--compiler", "tvm", "--workspace", root)
    assert (early.returncode, "opera coverage --frontend tvm-onnx" in early.stderr) == (2, True)
    done = opera("coverage", "--frontend", "tvm-onnx", "--workers", 1, "--workspace", root)
    assert done.returncode == 0, done.stderr
    assert "tvm-onnx: 4 tests traced" in done.stdout
    with Workspace.open(root, write=False) as opened:
        covered = opened.coverage("tvm-onnx")
        assert opened.coverage_seconds("tvm-onnx") > 0
    assert {file for files in covered.values() for file in files} == {"tvm.relax.frontend.onnx/onnx_frontend.py"}
    lines = {name: next(iter(files.values())) for name, files in covered.items()}
    assert len(set(lines.values())) == 4, "each operator has a converter of its own"
    common = set.intersection(*({at for at in range(8 * len(x)) if x[at // 8] >> at % 8 & 1} for x in lines.values()))
    assert len(common) > 20, "and the importer's loop is common to all"
    again = opera("coverage", "--frontend", "tvm-onnx", "--workers", 1, "--workspace", root)
    assert "0 tests traced (4 were before" in again.stdout
    unrun = opera("coverage", "--frontend", "tvm-onnx", "--only-run", "--workspace", root)
    assert (unrun.returncode, "tvm-onnx was not run yet" in unrun.stderr) == (2, True)
    for strategy in ("total", "additional"):
        ranked = opera("prioritize", "--strategy", strategy, "--compiler", "tvm", "--workspace", root)
        assert ranked.returncode == 0, ranked.stderr
        with Workspace.open(root, write=False) as opened:
            assert opened.ranking("onnx", "tvm")[0] == strategy
    with Workspace.open(root, write=True) as opened:
        opened._db.execute("DELETE FROM coverage WHERE instance IN (SELECT instance FROM coverage LIMIT 2)")
    some = opera("prioritize", "--strategy", "additional", "--compiler", "tvm", "--workspace", root)
    assert some.returncode == 0 and "is known of 2 of 4 tests; the others go last" in some.stderr


@pytest.mark.full
def test_what_was_run_is_traced_alone(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    with Workspace.open(root, write=True) as opened:
        opened.add_captured([unary("Abs"), unary("Sqrt")])
    ran = opera("run", "--compiler", "tvm", "--operator", "Abs", "--workers", 1, "--workspace", root)
    assert ran.returncode == 0, ran.stderr
    only = opera("coverage", "--frontend", "tvm-onnx", "--only-run", "--rerun", "--workers", 1, "--workspace", root)
    assert "tvm-onnx: 1 tests traced" in only.stdout, only.stderr


@pytest.mark.parametrize(
    ("name", "message"),
    [("onnxruntime-onnx", "onnxruntime-onnx is not written in Python"), ("tvm-onx", "no frontend called 'tvm-onx'")],
)
def test_compiled_and_unknown_frontends_are_told_before_anything_is_touched(
    tmp_path: Path, name: str, message: str
) -> None:
    done = opera("coverage", "--frontend", name, "--workspace", tmp_path / "none")
    assert (done.returncode, message in done.stderr, "tvm-onnx" in done.stderr) == (2, True, True)
    assert not (tmp_path / "none").exists()
