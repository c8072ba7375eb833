"""`opera extract --source deeprel` as a user runs it, on PyTorch: relations verified, invocations exchanged, records read."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from bson import encode
from commands import opera

from opera.programs.program import Captured, Instance, Operand, Provenance
from opera.programs.values import RandomTensor, Tensor
from opera.sources.deeprel import relations
from opera.store.workspace import Workspace


def captured(operator: str, number: int) -> Captured:
    import numpy as np

    values = np.linspace(-3, 3, 4 + number, dtype="float32")
    context = {"kind": "function", "call": {"args": ["input"], "kwargs": []}}
    instance = Instance("torch", operator, {}, (Operand("input", Tensor.of(values)),), (), context)
    return Captured(instance, Provenance("pytorch-samples", "opinfo", f"test_{number}"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("deeprel")
    with Workspace.open(root, write=True) as workspace:
        workspace.add_captured([captured(name, n) for name in ("torch.abs", "torch.linalg.inv_ex") for n in range(5)])
    return root


def test_partners_exchange_their_invocations(folder: Path) -> None:
    ran = opera("extract", "--source", "deeprel", "--library", "torch", "--workers", "1", "--workspace", str(folder))
    assert ran.returncode == 0, ran.stderr
    with Workspace.open(folder, write=False) as workspace:
        (key,) = (row[0] for row in workspace.query("SELECT key FROM extractions"))
        found = relations.pairs(relations.verified(relations.stored(workspace, key)))
        assert found["torch.abs", "torch.absolute"] == "value"
        assert found["torch.abs", "torch.special.gammaln"] == "status"
        rows = workspace.query(
            "SELECT i.operator, p.file, p.test FROM provenances p JOIN instances i ON i.id = p.instance"
            " WHERE p.source = 'deeprel' AND i.operator = 'torch.absolute'"
        )
        assert len(rows) == 5
        ids = {captured("torch.abs", n).program.id for n in range(5)}
        assert {row[1] for row in rows} == {"torch.abs -> torch.absolute"}
        assert {row[2] for row in rows} == {f"value: {name}" for name in ids}
        rows = workspace.query(
            "SELECT r.other, r.kind FROM relations r JOIN instances i ON i.id = r.one WHERE i.operator = 'torch.absolute'"
        )
        assert set(rows) == {(name, "value") for name in ids}
    again = opera("extract", "--source", "deeprel", "--library", "torch", "--workers", "1", "--workspace", str(folder))
    assert again.returncode == 0 and " 0 invocations tried" in again.stdout


def test_published_records_are_run_and_a_damaged_file_is_told(folder: Path, tmp_path: Path) -> None:
    record = {"_id": None, "parameter:0": {"shape": [2, 3], "dtype": "torch.float32"}}
    (tmp_path / "torch.erf.bson").write_bytes(encode(record))
    (tmp_path / "torch.gone_long_ago.bson").write_bytes(encode(record))
    (tmp_path / "torch.damaged.bson").write_bytes(encode(record)[:20])
    ran = opera("extract", "--source", "deeprel", str(tmp_path), "--workers", "1", "--workspace", str(folder))
    assert ran.returncode == 0, ran.stderr
    assert "torch.damaged.bson" in ran.stdout and "torch.gone_long_ago: PyTorch has it no longer" in ran.stdout
    with Workspace.open(folder, write=False) as workspace:
        rows = workspace.query("SELECT instance, file, test FROM provenances WHERE file = 'torch.erf.bson'")
        assert [(row[1], row[2]) for row in rows] == [("torch.erf.bson", "record 0")]
        shapes = [x.value.shape for x in workspace.instance(rows[0][0]).inputs]
        assert shapes == [(2, 3)]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--library", "onnx"], "no relations of 'onnx'"),
        (["--library", "torch", "--violating"], "'deeprel' has no option --violating"),
        (["missing"], "neither a library"),
    ],
)
def test_what_cannot_be_is_told(tmp_path: Path, arguments: list[str], said: str) -> None:
    ran = opera("extract", "--source", "deeprel", *arguments, "--workspace", str(tmp_path / "w"))
    assert ran.returncode == 2 and said in ran.stderr and "Traceback" not in ran.stderr
    assert not (tmp_path / "w").exists()


def test_infinity_in_a_record_is_not_lost(tmp_path: Path) -> None:
    record = {"_id": None, "parameter:0": {"shape": [3], "dtype": "torch.float32"}, "parameter:1": float("inf")}
    (tmp_path / "torch.linalg.norm.bson").write_bytes(encode(record | {"output_signature": {}}))
    ran = opera("extract", "--source", "deeprel", str(tmp_path), "--workers", "1", "--workspace", str(tmp_path / "w"))
    assert ran.returncode == 0, ran.stderr
    with Workspace.open(tmp_path / "w", write=False) as workspace:
        (row,) = workspace.query("SELECT instance FROM provenances WHERE file = 'torch.linalg.norm.bson'")
        assert workspace.instance(row[0]).params["ord"] == float("inf")


def test_a_workspace_without_instances_is_told(tmp_path: Path) -> None:
    ran = opera("extract", "--source", "deeprel", "--library", "torch", "--workspace", str(tmp_path))
    assert ran.returncode == 2 and "no instances of torch" in ran.stderr


@pytest.mark.full
def test_a_call_that_does_not_end_is_left_out_and_told(tmp_path: Path) -> None:
    context = {"kind": "function", "call": {"args": ["input"], "kwargs": []}}
    slow = RandomTensor("float64", (2000, 2000), 1, 0.0, 1.0)  # its decomposition takes seconds
    endless = Instance("torch", "torch.linalg.svdvals", {}, (Operand("input", slow),), (), context)
    with Workspace.open(tmp_path, write=True) as workspace:
        workspace.add_captured([Captured(endless, Provenance("mine", "a", "b")), captured("torch.abs", 1)])
    ran = opera(
        "extract", "--source", "deeprel", "--library", "torch", "--workers", "1", "--timeout", "1",
        "--workspace", str(tmp_path),
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert f"given the arguments of torch.linalg.svdvals {endless.id}: does not end in time" in ran.stdout
    report = opera("report", "--format", "json", "--workspace", str(tmp_path))
    crashes = msgspec.json.decode(report.stdout)["library_crashes"]
    assert [(x["where"], x["what"]) for x in crashes] == [("torch.linalg.svdvals", "does not end in time")]
