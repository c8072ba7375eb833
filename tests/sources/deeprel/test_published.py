"""DeepREL's own files: records, candidate lists and scripts are read; scripts are never run."""

from __future__ import annotations

from pathlib import Path

import pytest
from bson import encode

from opera.errors import CorpusError, SourceError
from opera.programs.values import Named, Tensor
from opera.sources.deeprel import published, replay, scripts
from opera.sources.deeprel.apis import Unusable

RECORD = {"_id": None, "parameter:0": {"shape": [2, 3], "dtype": "torch.float32"}, "dim": 1, "output_signature": {}}
SCRIPT = b"""
import torch
results = dict()
input_tensor = torch.rand([3, 4], dtype=torch.float32)
input = input_tensor.clone()
dim = -1
size_0 = 2
size_1 = 2
size = (size_0, size_1,)
try:
  results["res_1"] = torch.sum(input, dim=dim)
except Exception as e:
  results["err_1"] = "ERROR:" + str(e)
try:
  results["res_2"] = input_tensor.clone().sum(dim, keepdim=True)
except Exception as e:
  results["err_2"] = "ERROR:" + str(e)
arg_class = torch.nn.AvgPool2d(size)
input_signature_0_tensor = torch.randint(0, 8, [1, 3, 4, 4], dtype=torch.int64)
input_signature_0 = input_signature_0_tensor.clone()
input_signature = [input_signature_0,]
results["res_3"] = arg_class(*input_signature)
results["res_4"] = torch.nn.MaxPool2d(size)(*input_signature)
print(results)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "dump").mkdir()
    (tmp_path / "dump" / "torch.sum.bson").write_bytes(encode(RECORD) * 2)
    (tmp_path / "dump" / "torch.cut.bson").write_bytes(encode(RECORD)[:-2])
    (tmp_path / "dump" / "tf.raw_ops.Add.bson").write_bytes(encode(RECORD))
    (tmp_path / "dump" / "signature.bson").write_bytes(b"no matter")
    (tmp_path / "dump" / "torch.sum.metadata.json").write_text('{"indexes": []}')
    (tmp_path / "torch-candidate").mkdir()
    (tmp_path / "torch-candidate" / "torch.sum.json").write_text(
        '["torch.sum", 1.0]\n["torch.nansum", 0.9]\n["torch.mean", 0.5]'
    )
    (tmp_path / "torch-candidate" / "torch.bad.json").write_text('["torch.sum", "x"]')
    (tmp_path / "A+B+1" / "success").mkdir(parents=True)
    (tmp_path / "A+B+1" / "success" / "7.py").write_bytes(SCRIPT)
    return tmp_path


def test_a_folder_is_read_and_what_is_not_is_listed(folder: Path) -> None:
    found = published.read_folder(folder)
    assert [(x.title, len(x.records)) for x in found.records] == [
        ("torch.sum", 1), ("torch.Tensor.sum", 1), ("torch.nn.AvgPool2d", 1), ("torch.nn.MaxPool2d", 1), ("torch.sum", 2),
    ]  # fmt: skip
    assert found.records[-1].records[0] == {"parameter:0": {"shape": [2, 3], "dtype": "torch.float32"}, "dim": 1}
    assert found.candidates == {"torch": {"torch.sum": ["torch.nansum", "torch.mean"]}}
    assert {Path(x.file).name for x in found.unread} == {"torch.cut.bson", "tf.raw_ops.Add.bson", "torch.bad.json"}


def test_a_folder_without_anything_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="nothing of DeepREL's"):
        published.read_folder(tmp_path)
    with pytest.raises(SourceError, match="neither a library"):
        published.read_folder(tmp_path / "missing")
    (tmp_path / "torch.abs.bson").write_bytes(b"\xff" * 40)
    with pytest.raises(SourceError) as caught:
        published.read_folder(tmp_path)
    assert "torch.abs" not in caught.value.what and "BSON" in caught.value.cause


def test_scripts_become_records() -> None:
    tensor = {"shape": [3, 4], "dtype": "torch.float32"}
    image = {"shape": [1, 3, 4, 4], "dtype": "torch.int64"}
    assert scripts.records(SCRIPT) == [
        ("torch.sum", {"parameter:0": tensor, "dim": -1}),
        ("torch.Tensor.sum", {"_input_tensor": tensor, "parameter:0": -1, "keepdim": True}),
        ("torch.nn.AvgPool2d", {"parameter:0": [2, 2], "input_signature": [image]}),
        ("torch.nn.MaxPool2d", {"parameter:0": [2, 2], "input_signature": [image]}),
    ]


def test_no_script_is_ever_run(tmp_path: Path) -> None:
    trace = tmp_path / "ran"
    hostile = f"import os\nresults = dict()\nx = open({str(trace)!r}, 'w')\nresults['a'] = os.system('touch {trace}')\n"
    with pytest.raises(CorpusError, match="calls nothing as DeepREL's do"):
        scripts.records(hostile.encode())
    assert not trace.exists()


@pytest.mark.parametrize("text", [b'["torch.\xe9", 1.0]', b'["torch.abs"]', b"7"])
def test_broken_candidate_lists_are_listed(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "torch.add.json").write_bytes(b'["torch.sub", 0.5]\n')
    (tmp_path / "torch.abs.json").write_bytes(text)
    found = published.read_folder(tmp_path)
    assert found.candidates == {"torch": {"torch.add": ["torch.sub"]}}
    assert [x.file for x in found.unread] == ["torch.abs.json"]


def test_what_a_script_nests_without_end_is_passed_over() -> None:
    assert scripts.records(SCRIPT + b"\nother = a" + b".a" * 1500) == scripts.records(SCRIPT)


@pytest.mark.parametrize("source", [b"x = (", b"\xff\xfe\0", b"(" * 5000, b"x = 1\n", b"#" * (scripts.MAX_SIZE + 1)])
def test_other_scripts_are_errors(source: bytes) -> None:
    with pytest.raises(CorpusError):
        scripts.records(source)


def test_records_become_arguments() -> None:
    record = {"parameter:0": {"shape": [2], "dtype": "torch.int64"}, "dtype": "torch.float64", "input_signature": [1]}
    positional, named, called = replay.parts(record, 0, 1)
    assert isinstance(positional[0], Tensor) and set(positional[0].array()) <= {0, 1}
    assert named == {"dtype": Named("dtype", "float64")} and called == [1]


@pytest.mark.parametrize(
    "record",
    [
        {"parameter:1": 1},
        {"x": "torchdtype"},
        {"x": {"type": "VarianceScaling", "value": {}}},
        {"x": {"shape": [None, 2], "dtype": "tf.float32"}},
        {"x": {"shape": [1 << 40], "dtype": "torch.float32"}},
        {"x": {"shape": [1 << 15, 1 << 15], "dtype": "torch.float32"}},
        {"x": {"shape": [2], "dtype": "__import__"}},
    ],
)
def test_records_without_what_they_need_are_not_used(record: dict[str, object]) -> None:
    with pytest.raises(Unusable):
        replay.parts(record, 0, 7)
