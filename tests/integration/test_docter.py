"""The whole way with the real PyTorch: constraints or inputs in, instances out."""

from __future__ import annotations

import pickle
from pathlib import Path

import msgspec
import pytest

from opera import sources
from opera.errors import SourceError, UsageError
from opera.sources import Request, engine
from opera.sources.docter import extraction
from opera.store.workspace import Workspace

pytest.importorskip("torch")
SUM = """
title: torch.cumsum
package: torch
inputs: {required: [input, dim], optional: []}
constraints:
  input: {tensor_t: [torch.tensor], dtype: [torch.float32], ndim: ['2']}
  dim: {dtype: [int], ndim: ['0'], range: ['[0,1]']}
"""
GONE = "title: torch.rfft\npackage: torch\ninputs: {required: [input]}\n"
EMPTY = SUM.replace("cumsum", "cumprod").replace("'[0,1]'", "'(0,1)'")
HANGS = """
title: torch.special.legendre_polynomial_p
package: torch
inputs: {required: [input, n]}
constraints:
  input: {tensor_t: [torch.tensor], dtype: [torch.float64], shape: ['[16]'], range: ['[0.2,0.8]']}
  n: {dtype: [int], ndim: ['0'], range: ['[1000000000000,1000000000009]']}
"""


def extract(request: Request, at: Path, workers: int = 1, **options: object) -> bool:
    begin = sources.begin("docter", request, options)
    with Workspace.open(at, write=True) as workspace:
        return engine.run(workspace, begin(workspace), workers=workers)


def documents(at: Path) -> dict[str, dict[str, object]]:
    with Workspace.open(at, write=False) as workspace:
        rows = workspace.query("SELECT file, document FROM extraction_files")
    return {file.rpartition("@")[0]: msgspec.json.decode(document) for file, document in rows}


def crashes(at: Path) -> list[str]:
    with Workspace.open(at, write=False) as workspace:
        return [x.operator for x in workspace.crashes()]


def test_constraints_become_instances_and_the_rest_is_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "constraints"
    folder.mkdir()
    for name, text in (("cumsum", SUM), ("rfft", GONE), ("cumprod", EMPTY), ("hangs", HANGS), ("bad", "- [")):
        (folder / f"{name}.yaml").write_text(text)
    request = Request(str(folder), timeout=1)
    assert extract(request, tmp_path / "w", count=2)
    told = capsys.readouterr().out
    assert "that opera cannot call" in told and "rfft: PyTorch has it no longer" in told
    assert "cumprod: no number of dim lies in its range" in told and "bad.yaml: no YAML" in told
    assert (
        "2 crashes of the library itself" in told
        and "torch.special.legendre_polynomial_p: does not end in time" in told
    )
    with Workspace.open(tmp_path / "w", write=False) as workspace:
        assert workspace.operators("torch") == {"torch.cumsum"}
        (name,) = {x[1] for x in list(workspace.documents("torch"))[:1]}
        assert workspace.provenances(name)[0].source == "docter"
    assert crashes(tmp_path / "w") == ["torch.special.legendre_polynomial_p"] * 2

    assert extract(request, tmp_path / "w", count=2)
    assert "4 APIs were done before" in capsys.readouterr().err
    (folder / "cumsum.yaml").write_text(SUM.replace("'2'", "'3'"))
    assert extract(request, tmp_path / "w", count=2)
    assert "3 APIs were done before" in capsys.readouterr().err


@pytest.mark.full
def test_a_batch_that_runs_out_of_time_blames_no_input_and_is_tried_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "constraints").mkdir()
    (tmp_path / "constraints" / "hangs.yaml").write_text(HANGS)
    monkeypatch.setattr(extraction, "PATIENCE", -1999.0)  # one second for two inputs that may take a thousand each
    extract(Request(str(tmp_path / "constraints"), timeout=1000), tmp_path / "w", count=2)
    told = capsys.readouterr().out
    assert "crash" not in told and "timeout: still running after 1 s" in told
    assert not crashes(tmp_path / "w")
    monkeypatch.undo()
    extract(Request(str(tmp_path / "constraints"), timeout=1), tmp_path / "w", count=2)
    assert "done before" not in capsys.readouterr().err
    assert crashes(tmp_path / "w") == ["torch.special.legendre_polynomial_p"] * 2
    with Workspace.open(tmp_path / "w", write=False) as workspace:
        assert [row[0] for row in workspace.query("SELECT status FROM extraction_files")] == ["done"]


def test_violating_inputs_make_no_instances(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "constraints").mkdir()
    (tmp_path / "constraints" / "cumsum.yaml").write_text(SUM)
    assert extract(Request(str(tmp_path / "constraints")), tmp_path / "w", count=8, violating=True)
    assert "0 new instances" in capsys.readouterr().out
    result = documents(tmp_path / "w")["cumsum"]["result"]
    assert isinstance(result, dict) and result["taken"] + result["refused"] > 4 and result["refused"] > 0


def test_inputs_that_docter_saved_are_run_under_todays_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import torch

    place = tmp_path / "out" / "torch.nn.Linear.yaml_workdir"
    place.mkdir(parents=True)
    (place / "a.p").write_bytes(pickle.dumps({"in_features": 3, "out_features": 2, "bias": True, "unheard_of": 1}))
    other = tmp_path / "out" / "torch.abs.yaml_workdir"
    other.mkdir()
    (other / "a.p").write_bytes(pickle.dumps({"input": torch.ones(2, 3)}))
    assert extract(Request(str(tmp_path / "out")), tmp_path / "w")
    with Workspace.open(tmp_path / "w", write=False) as workspace:
        assert workspace.operators("torch") == {"torch.nn.Linear", "torch.abs"}
    with pytest.raises(UsageError, match="--violating"):
        extract(Request(str(tmp_path / "out")), tmp_path / "w", violating=True)


def test_layers_and_functions_of_keras_become_instances(tmp_path: Path) -> None:
    pytest.importorskip("keras")
    (tmp_path / "abs.yaml").write_text(
        "title: tf.keras.backend.abs\npackage: tensorflow\ninputs: {required: [x]}\nconstraints: {x: {tensor_t: [tensor]}}\n"
    )
    (tmp_path / "dense.yaml").write_text(
        "title: tf.keras.layers.Dense\npackage: tensorflow\ninputs: {required: [units]}\n"
        "constraints: {units: {dtype: [int], ndim: ['0'], range: ['[1,4]']}}\n"
    )
    assert extract(Request(str(tmp_path)), tmp_path / "w", count=5)
    with Workspace.open(tmp_path / "w", write=False) as workspace:
        assert workspace.operators("keras") == {"keras.layers.Dense", "keras.ops.abs"}


def test_bad_requests_make_no_workspace(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no constraints for"):
        extract(Request(library="numpy"), tmp_path / "w")
    with pytest.raises(SourceError, match="no folder"):
        extract(Request(str(tmp_path / "nowhere")), tmp_path / "w")
    (tmp_path / "mx.yaml").write_text("title: mxnet.np.abs\npackage: mxnet\n")
    with pytest.raises(SourceError, match="nothing of a library that opera calls"):
        extract(Request(str(tmp_path)), tmp_path / "w")
    assert not (tmp_path / "w").exists()
