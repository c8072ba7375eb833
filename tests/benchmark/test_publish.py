"""Published rows, labels and costs say of every strategy what the workspace says."""

from __future__ import annotations

import gzip
import shlex
from pathlib import Path

import msgspec
import pytest
from commands import opera
from filled import captured, fill, judged
from several_calls import ONNX

from opera.benchmark import labels as labelling
from opera.benchmark import result
from opera.benchmark.command import corpus
from opera.benchmark.publish import publish
from opera.benchmark.result import Settings
from opera.benchmark.subjects import Subject, live
from opera.errors import CorpusError, UsageError
from opera.prioritize.labelled import load, record
from opera.prioritize.subspaces import Row
from opera.programs.program import Captured, Instance, Operand, Provenance
from opera.programs.values import Named, Sequence, Tensor
from opera.store.rows import Test as MigratedTest
from opera.store.workspace import Workspace

STRATEGIES = ["opera", "opera-wide", "opera-paper", "random", "round-robin", "fast-pw"]


@pytest.fixture
def subjects(workspace: Workspace) -> list[Subject]:
    """Frontends of a workspace, with tests whose values JSON has no words for."""
    environment = fill(workspace)["tvm"]
    tensor = Tensor("float32", (2, 1), bytes(8))
    odd = [
        Instance("onnx", "Odd", {"a": (1, 2), "b": float("nan"), "c": Named("t", "x"), "d": tensor}, (), ("Y",), {}),
        Instance("onnx", "Concat", {}, (Operand("X", Sequence("tensor", (tensor, tensor))), Operand("Z", None)), ("Y",), {}),
        ONNX["matmul-relu"],
    ]  # fmt: skip
    workspace.add_captured([Captured(x, Provenance("s", "f.py", "t"), None) for x in odd])
    workspace.save_tests("exporter", [MigratedTest(f"odd{at}", x.id, "valid") for at, x in enumerate(odd)])
    crash = {"finding": "Faaaaaaaa", "confirmation": "confirmed"}
    found = [judged(f"odd{at}", "tvm-onnx", "inputs", environment, "crash", "load", "E", **crash) for at in range(3)]
    workspace.save_verdicts(2, found, {})
    workspace.add_captured([captured(4, "Pad")], equipped="tvm")
    return live([workspace], labelling.freeze([workspace]))


def test_scores_are_those_of_the_workspace(subjects: list[Subject], tmp_path: Path) -> None:
    assert len(subjects) == 2 and max(len(x.rows) for x in subjects) == 13
    for subject in subjects:
        folder = tmp_path / subject.name
        folder.mkdir()
        commands = list(publish(subject, folder))
        expected = result.run([subject], Settings(STRATEGIES, True, 3, 1), labels="", environments={}).scores
        scores = {(x.strategy, x.granularity): x.metrics for x in expected}
        assert len(commands) == 2
        for command, granularity in zip(commands, subject.faults, strict=True):
            words = shlex.split(command)
            files = {words[at]: Path(words[at + 1]) for at in range(2, len(words), 2)}
            equipped = files.get("--equipped")
            assert (equipped is not None) == bool(subject.equipped)
            loaded = load(files["--instances"], equipped, files["--labels"], files["--costs"])
            again = [record("", subject.library, row) for row in (*loaded.rows, *loaded.equipped)]
            assert again == [record("", subject.library, row) for row in (*subject.rows, *subject.equipped)]
            assert loaded.library == "onnx"
            found = corpus(loaded, "x", subject.defaults, STRATEGIES, seeds=3)
            assert {(x.strategy, granularity): x.metrics for x in found.scores} == {
                key: metrics for key, metrics in scores.items() if key[1] == granularity
            }


def test_values_that_json_has_no_words_for_come_back(tmp_path: Path) -> None:
    call = Row(
        "Odd", {"a": (1, [2.5]), "b": float("inf"), "c": Named("t", "x")}, [(2, 3), None, ()], ["int8", None, "int"]
    )
    lists = Row("Cat", {"axis": 1}, [[(2,), (3, 4)]], [["float32", "int8"]])
    for row in (call, lists, Row("Odd + Cat", {}, calls=(call, lists))):
        line = msgspec.json.encode(record("t", "torch", row))
        (tmp_path / "i.jsonl.gz").write_bytes(gzip.compress(line))
        (tmp_path / "l.json").write_text('{"bug": ["t"]}')
        loaded = load(tmp_path / "i.jsonl.gz", None, tmp_path / "l.json")
        assert loaded.rows == [row] and loaded.library == "torch"


def test_the_command_publishes_what_the_other_scores(workspace: Workspace, tmp_path: Path) -> None:
    fill(workspace)
    workspace.close()
    folder = tmp_path / "published"
    told = opera("benchmark", "--publish", str(folder), "--workspace", str(workspace.root))
    assert told.returncode == 0, told.stderr
    commands = told.stdout.splitlines()
    assert len(commands) == 4 and all(x.startswith("opera benchmark --instances ") for x in commands)
    again = opera("benchmark", "--publish", str(folder), "--workspace", str(workspace.root))
    assert again.returncode == 2 and "frozen labels do not change" in again.stderr
    scored = opera(*shlex.split(commands[-1])[1:], "--strategy", "opera", "--repeat", "2", "--workers", "1")
    assert scored.returncode == 0 and "opera" in scored.stdout, scored.stderr


def test_damaged_files_are_told(tmp_path: Path) -> None:
    labels = tmp_path / "l.json"
    labels.write_text('{"bug": [1]}')
    packed, mixed, wrong = tmp_path / "i.jsonl.gz", tmp_path / "m.jsonl", tmp_path / "w.jsonl"
    packed.write_bytes(b"no gzip")
    mixed.write_text('{"id": 1, "op": "A", "library": "torch"}\n{"id": 2, "op": "B"}')
    wrong.write_text('{"id": 1, "op": "A", "library": "torch", "params": {"p": {"$int": []}}}')
    for file, message in (
        (packed, "gz"),
        (mixed, r"m\.jsonl:2: an operator of 'onnx' among those of 'torch'"),
        (wrong, r"w\.jsonl:1"),
    ):
        with pytest.raises(CorpusError, match=message):
            load(file, None, labels)
    with pytest.raises(UsageError, match="cannot be written"):
        list(publish(Subject("x", "x", [], [], {}, {}), tmp_path / "absent"))
