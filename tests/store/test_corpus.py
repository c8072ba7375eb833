from __future__ import annotations

import gzip
from pathlib import Path

import msgspec
import pytest
from one_instance import captured

from opera import libraries
from opera.errors import CorpusError, UsageError
from opera.programs.program import Captured, Provenance
from opera.store import corpus, examined, relations
from opera.store.workspace import Workspace

pytest.importorskip("onnx")


@pytest.fixture
def filled(workspace: Workspace) -> Workspace:
    workspace.add_captured([captured(1, "a"), captured(1, "b"), captured(2, operator="Neg")])
    workspace.add_captured([captured(3)], equipped="tvm")
    return workspace


@pytest.mark.parametrize("name", ["corpus.jsonl", "corpus.jsonl.gz"])
def test_import_is_the_inverse_of_export(filled, tmp_path, name):
    assert corpus.write(filled, tmp_path / name) == 3
    with Workspace.open(tmp_path / "other", write=True) as other:
        assert corpus.read_into(other, tmp_path / name, libraries.declares) == (3, 3)
        assert corpus.read_into(other, tmp_path / name, libraries.declares) == (3, 0)
        for table in ("provenances", "equipped"):
            assert other.query(f"SELECT * FROM {table}") == filled.query(f"SELECT * FROM {table}")
        assert [x[1:3] for x in other.documents("onnx")] == [x[1:3] for x in filled.documents("onnx")]
        assert not other.query("SELECT * FROM expectations"), "a corpus carries instances alone"


def test_what_reduce_made_is_no_part_of_what_is_exported(filled: Workspace, tmp_path: Path) -> None:
    """An instance without provenances was written, and the file refused by import and merge."""
    made = captured(7, operator="Abs").program
    examined.save_made(filled, examined.Examined("F1", "e", "t", b"a varied"), made)
    assert corpus.write(filled, tmp_path / "c.jsonl") == 3 == corpus.write(filled, tmp_path / "d.jsonl", "onnx")
    assert corpus.merge(tmp_path / "both.jsonl", [tmp_path / "c.jsonl", tmp_path / "d.jsonl"], libraries.declares) == 3


def test_relations_come_with_the_instances_that_they_made(workspace: Workspace, tmp_path: Path) -> None:
    made, other = captured(2, operator="Neg").program, captured(1).program
    told = Provenance("deeprel", "Relu -> Neg", f"value: {other.id}")
    seen = Provenance("deeprel", "Relu.bson", "value: a record's name")
    with workspace.transaction():
        relations.insert(workspace, [captured(1), Captured(made, told), Captured(other, seen)])
    corpus.write(workspace, tmp_path / "corpus")
    with Workspace.open(tmp_path / "other", write=True) as imported:
        corpus.read_into(imported, tmp_path / "corpus", libraries.declares)
        for held in (workspace, imported):
            assert held.query("SELECT * FROM relations") == [(made.id, other.id, "value")]


def test_merge_joins_provenances(filled, tmp_path):
    corpus.write(filled, tmp_path / "a")
    with Workspace.open(tmp_path / "other", write=True) as other:
        other.add_captured([captured(1, "c"), captured(9)])
        corpus.write(other, tmp_path / "b")
    assert corpus.merge(tmp_path / "merged", [tmp_path / "a", tmp_path / "b"], libraries.declares) == 4
    with Workspace.open(tmp_path / "all", write=True) as everything:
        corpus.read_into(everything, tmp_path / "merged", libraries.declares)
        assert {x.test for x in everything.provenances(captured(1).program.id)} == {"a", "b", "c"}


def spoiled(path: Path, change) -> list[bytes]:
    """Write a corpus file whose last line went through `change`, and return its lines."""
    with Workspace.open(path.parent / "source", write=True) as source:
        source.add_captured([captured(1), captured(2)])
        corpus.write(source, path)
    lines = path.read_bytes().splitlines()
    form = msgspec.json.decode(lines[-1])
    changed = change(form)
    lines[-1] = changed if isinstance(changed, bytes) else msgspec.json.encode(form, order="sorted")
    path.write_bytes(b"\n".join(lines) + b"\n")
    return lines


def put(*path_and_value):
    *path, last, value = path_and_value

    def change(form):
        for key in path:
            form = form[key]
        form[last] = value

    return change


HUGE = {"$random": {"dtype": "float64", "shape": [1 << 31], "seed": 0, "low": 0.0, "high": 1.0}}
ENEMIES = {
    "code as operator": put("instance", "operator", "__import__('os').system('true')"),
    "unknown operator": put("instance", "operator", "Frobnicate"),
    "unknown library": put("instance", "library", "../../etc/passwd"),
    "path traversal in a name": put("provenances", 0, "file", "../" * 400),
    "control characters": put("provenances", 0, "test", "a\nimport os"),
    "gigabytes declared": put("instance", "inputs", 0, "value", HUGE),
    "NaN range": put("instance", "inputs", 0, "value", {"$random": HUGE["$random"] | {"shape": [1], "high": None}}),
    "unknown tag": put("instance", "params", {"x": {"$eval": "1"}}),
    "not canonical": put("instance", "extra", 1),
    "no provenance": put("provenances", []),
    "wrong type": put("provenances", {"a": 1}),
    "JSON NaN": lambda form: b'{"instance": NaN}',
    "no JSON": lambda form: b"\x80\x04\x95pickle",
    "deep": lambda form: b"[" * 200_000,
    "name too long": put("instance", "outputs", ["x" * 1000]),
}


@pytest.mark.parametrize("name", ENEMIES)
def test_an_enemys_file_is_refused_whole(workspace, tmp_path, name):
    lines = spoiled(tmp_path / "enemy", ENEMIES[name])
    with pytest.raises(CorpusError, match=rf"enemy:{len(lines)}"):
        corpus.read_into(workspace, tmp_path / "enemy", libraries.declares)
    assert workspace.libraries() == []


def test_other_files_are_refused(workspace, tmp_path):
    path = tmp_path / "corpus.jsonl"
    for content in (b"", b"{}", b'{"format": "opera-corpus", "version": 99}\n', b"\x89PNG"):
        path.write_bytes(content)
        with pytest.raises(CorpusError):
            corpus.read_into(workspace, path, libraries.declares)
    truncated = tmp_path / "corpus.jsonl.gz"
    truncated.write_bytes(gzip.compress(b'{"format": "opera-corpus", "version": 1}\n' * 100)[:40])
    with pytest.raises(CorpusError):
        corpus.read_into(workspace, truncated, libraries.declares)
    with pytest.raises(CorpusError, match="cannot be read"):
        corpus.read_into(workspace, tmp_path / "none", libraries.declares)


def test_an_interrupted_export_leaves_no_half_of_a_file(filled, tmp_path):
    with pytest.raises(UsageError):
        corpus.write(filled, tmp_path / "missing" / "corpus.jsonl")
    assert not list(tmp_path.glob("**/*corpus*"))
