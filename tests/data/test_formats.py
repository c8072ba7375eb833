"""`opera report --format csv|parquet`: tables as files."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path

import pandas as pd
import pytest
from commands import opera
from filled import HOSTILE, fill

import opera as package
from opera.cli.results import report
from opera.data import formats, tables
from opera.data.query import Query, query
from opera.errors import NotInstalled, UsageError


@pytest.fixture
def filled(workspace):
    fill(workspace)
    return workspace


@pytest.mark.parametrize("table", formats.WRITTEN)
def test_files_hold_what_the_frames_hold(filled, table, tmp_path):
    with package.open(filled.root) as results:
        frame = getattr(results, table)()
    for format, read in (("csv", pd.read_csv), ("parquet", pd.read_parquet)):
        file = tmp_path / f"{table}.{format}"
        assert formats.write(filled, table, Query(), format, file) == len(frame) > 0
        found = read(file)
        assert list(found.columns) == list(frame.columns)
        for name in frame.columns:
            held = pd.to_datetime(found[name]) if name == "found" else found[name]
            assert held.isna().equals(frame[name].isna()), name
            assert held.dropna().astype("str").tolist() == frame[name].dropna().astype("str").tolist(), name
    assert pd.read_parquet(tmp_path / f"{table}.parquet").dtypes.astype("str").to_dict() == {
        name: str(dtype) for name, dtype in frame.dtypes.items()
    }


def test_parquet_is_written_in_parts(filled, tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "BATCH", 5)
    file = tmp_path / "verdicts.parquet"
    assert formats.write(filled, "verdicts", query(frontend="tvm-onnx"), "parquet", file) == 14
    with package.open(filled.root) as results:
        assert pd.read_parquet(file).test.tolist() == results.verdicts(frontend="tvm-onnx").test.tolist()


def test_the_command_writes_to_standard_output_and_to_a_file(filled, tmp_path):
    at = ("--workspace", str(filled.root))
    told = opera("report", "--format", "csv", *at)
    rows = list(csv.DictReader(io.StringIO(told.stdout)))
    assert told.returncode == 0 and len(rows) == 16 and rows[1]["message"] == HOSTILE and rows[0]["message"] == ""
    file = tmp_path / "findings.csv"
    said = opera("report", "--format", "csv", "--table", "findings", "--output", str(file), *at)
    assert said.stdout == f"6 rows of findings written to {file}\n"
    assert len(list(csv.DictReader(file.open(encoding="utf-8", newline="")))) == 6


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"format": "parquet"}, "add --output verdicts.parquet"),
        ({"format": "csv", "table": "operators"}, "choose from verdicts, findings, instances, rankings"),
        ({"table": "findings"}, "--table goes with --format csv and parquet"),
        ({"format": "csv", "balance": True}, "--balance compares sources"),
        ({"format": "csv", "output": Path("none/such/file.csv")}, "cannot be written: No such file or directory"),
        ({"format": "xlsx"}, "choose from .*csv, parquet"),
    ],
)
def test_mistakes_are_told(filled, asked, told):
    default = {"format": "terminal", "output": None, "balance": False, "table": "", "workspace": filled.root}
    with pytest.raises(UsageError, match=told):
        report(**default | asked)


def test_without_pyarrow_it_says_what_to_install(filled, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(NotInstalled, match=r'pip install "opera\[parquet\]"'):
        formats.write(filled, "verdicts", Query(), "parquet", tmp_path / "x.parquet")


def test_a_wrong_query_leaves_the_file_as_it_was(filled, tmp_path):
    file = tmp_path / "x.csv"
    file.write_text("mine", encoding="utf-8")
    with pytest.raises(UsageError):
        formats.write(filled, "verdicts", query(frontend="none"), "csv", file)
    assert file.read_text(encoding="utf-8") == "mine" and list(tmp_path.glob(".x*")) == []
