from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from filled import judged
from one_instance import captured

from opera.errors import WorkspaceError
from opera.programs.program import Captured, Instance, Provenance, parse_captured
from opera.store.rows import Covered, Crash
from opera.store.rows import Test as MigratedTest
from opera.store.schema import SCHEMA, SCHEMA_VERSION
from opera.store.workspace import Workspace


def test_duplicates_collapse_and_every_provenance_stays(workspace):
    assert workspace.add_captured([captured(1, "a"), captured(1, "b"), captured(2, "c")]) == 2
    assert workspace.add_captured([captured(1, "a")]) == 0
    assert [x.test for x in workspace.provenances(captured(1).program.id)] == ["a", "b"]
    assert [row[1] for row in workspace.documents("onnx")] == [captured(1).program.id, captured(2).program.id]


def test_equipped_instances_are_no_tests(workspace):
    workspace.add_captured([captured(1)])
    workspace.add_captured([captured(1), captured(2)], equipped="tvm")
    assert len(list(workspace.documents("onnx"))) == 1
    assert len(list(workspace.documents("onnx", equipped="tvm"))) == 2
    assert not list(workspace.documents("onnx", equipped="openvino"))


def test_ranking_puts_unranked_instances_last_in_corpus_order(workspace):
    workspace.add_captured([captured(n) for n in range(3)])
    workspace.save_ranking("onnx", "tvm", "opera", {}, [3, 1])
    strategy, order, unranked = workspace.ranking("onnx", "tvm")
    assert (strategy, unranked) == ("opera", 1)
    assert [x[0] for x in order] == [captured(n).program.id for n in (2, 0, 1)]
    workspace.save_ranking("onnx", "tvm", "random", {}, [2, 1, 3])
    assert workspace.ranking("onnx", "tvm")[0] == "random"
    assert workspace.query("SELECT COUNT(*) FROM ranks") == [(3,)]


def test_a_verdict_written_twice_is_one(workspace):
    verdict = judged("t", "tvm-onnx", "inputs", "e", "crash", "load", finding="F1", confirmation="pending")
    workspace.save_verdicts(1, [verdict], {"F1": b"{}"})
    workspace.save_verdicts(1, [judged("t", "tvm-onnx", "inputs", "e", "pass")], {})
    assert [x.outcome.verdict for x in workspace.verdicts()] == ["pass"]
    assert workspace.verdict_names("tvm-onnx", "e") == {("t", "inputs"): ("pass", "")}


def test_tests_are_found_by_exporter(workspace):
    workspace.save_tests("x", [MigratedTest("t1", "i1", "valid"), MigratedTest("t2", "i2", "invalid", "why")])
    assert workspace.tests("x")["i2"].reason == "why"
    assert workspace.tests("y") == {}


def test_a_failed_batch_leaves_nothing_behind(workspace):
    def broken():
        yield captured(1)
        raise RuntimeError

    with pytest.raises(RuntimeError):
        workspace.add_captured(broken())
    assert workspace.libraries() == []


def test_no_workspace_is_told(tmp_path):
    with pytest.raises(WorkspaceError, match="there is no workspace"):
        Workspace.open(tmp_path / "none", write=True, make=False)
    assert not (tmp_path / "none").exists()
    (tmp_path / "file").touch()
    for write in (True, False):
        with pytest.raises(WorkspaceError, match="file is a file"):
            Workspace.open(tmp_path / "file", write=write)
    with pytest.raises(WorkspaceError, match="there is no workspace"):
        Workspace.open(tmp_path, write=False)


def test_an_empty_file_is_told_to_a_reader_and_filled_by_a_writer(tmp_path):
    (tmp_path / "opera.sqlite").touch()
    with pytest.raises(WorkspaceError, match="is empty"):
        Workspace.open(tmp_path, write=False)
    with Workspace.open(tmp_path, write=True) as opened:
        assert opened.libraries() == []


def test_a_newer_schema_is_refused_and_left_alone(tmp_path):
    Workspace.open(tmp_path, write=True).close()
    with sqlite3.connect(tmp_path / "opera.sqlite") as database:
        database.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    before = (tmp_path / "opera.sqlite").read_bytes()
    for write in (True, False):
        with pytest.raises(WorkspaceError, match="schema"):
            Workspace.open(tmp_path, write=write)
    assert (tmp_path / "opera.sqlite").read_bytes() == before


def test_coverage_of_the_largest_collection_is_told(workspace):
    assert (workspace.coverage("tvm-onnx"), workspace.coverage_seconds("tvm-onnx")) == ({}, 0.0)
    workspace.save_coverage("tvm-onnx", "e", [Covered("i", {"a.py": b"\x06"}, 0.5)])
    assert workspace.coverage("tvm-onnx") == workspace.coverage("tvm-onnx", "e") == {"i": {"a.py": b"\x06"}}
    assert workspace.coverage_seconds("tvm-onnx") == 0.5


def test_what_is_told_of_a_file_goes_with_it(workspace):
    def save(file: str, *, instead_of: str = "") -> None:
        workspace.save_extraction_file(
            "k", file, "done", {}, instead_of=instead_of,
            crashes=[Crash("killed by SIGFPE", "f", {"n": 1})], candidates=[("f", "g", {}), ("f", "g", {}), ("f", "h", {})],
        )  # fmt: skip

    def held() -> list[int]:
        return [workspace.query(f"SELECT COUNT(*) FROM {table}")[0][0] for table in ("crashes", "candidates")]

    workspace.extraction("k", {})
    save("f@1")
    save("f@1")
    assert held() == [1, 2], "a file stored again"
    save("f@2", instead_of="f@")
    assert held() == [1, 2], "a file in place of another"
    assert list(workspace.crashes()) == [Crash("killed by SIGFPE", "f", {"n": 1})]
    workspace.forget_extraction("k")
    assert held() == [0, 0], "an extraction that begins anew"


def test_a_foreign_database_is_refused(tmp_path):
    with sqlite3.connect(tmp_path / "opera.sqlite") as database:
        database.execute("CREATE TABLE other (x)")
    before = (tmp_path / "opera.sqlite").read_bytes()
    with pytest.raises(WorkspaceError, match="no opera workspace"):
        Workspace.open(tmp_path, write=True)
    assert (tmp_path / "opera.sqlite").read_bytes() == before, "it is left as it is"


@pytest.mark.parametrize("keep", [10, 100, 5000])
def test_a_truncated_file_is_told_and_not_overwritten(tmp_path, keep):
    with Workspace.open(tmp_path, write=True) as opened:
        opened.add_captured([captured(n) for n in range(50)])
    path = tmp_path / "opera.sqlite"
    for extra in tmp_path.glob("opera.sqlite-*"):
        extra.unlink()
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(WorkspaceError, match="failed"), Workspace.open(tmp_path, write=True) as opened:
        list(opened.documents("onnx"))
    assert path.stat().st_size == keep


def test_two_writers_do_not_share_a_workspace_but_a_reader_may_look(workspace):
    workspace.add_captured([captured(1)])
    with pytest.raises(WorkspaceError, match=rf"in use .*{os.getpid()}"):
        Workspace.open(workspace.root, write=True)
    with Workspace.open(workspace.root, write=False) as reader:
        assert reader.libraries() == ["onnx"]


def test_a_read_only_workspace_can_be_read(tmp_path):
    with Workspace.open(tmp_path / "w", write=True) as opened:
        opened.add_captured([captured(1)])
    folder = tmp_path / "w"
    for path in (*folder.iterdir(), folder):
        path.chmod(0o555 if path.is_dir() else 0o444)
    code = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from opera.store.workspace import Workspace\n"
        "from opera.errors import WorkspaceError\n"
        "os.setuid(65534) if os.getuid() == 0 else None\n"
        "with Workspace.open(Path(sys.argv[1]), write=False) as w: print(w.libraries())\n"
        "try: Workspace.open(Path(sys.argv[1]), write=True)\n"
        "except WorkspaceError as error: print(error)\n"
    )
    for parent in (tmp_path, *tmp_path.parents):
        if parent.stat().st_uid == os.getuid() and parent != Path("/"):
            parent.chmod(parent.stat().st_mode | 0o055)
    done = subprocess.run([sys.executable, "-c", code, folder], capture_output=True, text=True, cwd="/")
    assert "['onnx']" in done.stdout, done.stderr
    assert "cannot be written" in done.stdout


def test_a_full_disk_loses_nothing_that_was_stored(tmp_path):
    with Workspace.open(tmp_path, write=True) as opened:
        opened.add_captured([captured(1)])
        pages = opened.query("PRAGMA page_count")[0][0]
        opened.query(f"PRAGMA max_page_count = {pages + 1}")
        with pytest.raises(WorkspaceError, match="full"):
            opened.add_captured([captured(n % 256, test=f"{n}" * 50) for n in range(3000)])
    with Workspace.open(tmp_path, write=True) as opened:
        assert len(list(opened.documents("onnx"))) == 1
        assert opened.add_captured([captured(2)]) == 1


def test_a_killed_writer_leaves_whole_transactions_and_no_lock(tmp_path):
    code = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[2])\n"
        "from one_instance import captured; from opera.store.workspace import Workspace\n"
        "w = Workspace.open(Path(sys.argv[1]), write=True); n = 0\n"
        "while True:\n"
        "    w.add_captured([captured(n % 256, f'{n}-{k}') for k in range(10)]); n += 1; print(n, flush=True)\n"
    )
    writer = subprocess.Popen(
        [sys.executable, "-c", code, tmp_path / "w", Path(__file__).parents[1]], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    done = 0
    while done < 20:
        done = int(writer.stdout.readline())
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    time.sleep(0.05)
    with Workspace.open(tmp_path / "w", write=True) as opened:
        count = opened.query("SELECT COUNT(*) FROM provenances")[0][0]
    assert count >= done * 10
    assert count % 10 == 0


def test_the_documented_schema_is_the_schema():
    text = (Path(__file__).parents[2] / "docs" / "workspace.md").read_text()
    assert SCHEMA.strip() in text


BASE = {"compiler": "tvm", "version": "0.27", "library": "onnx", "oracle": "1"}


@pytest.mark.parametrize(
    ("older", "newer", "replaced"),
    [
        ({}, {}, True),
        ({"opt": "3"}, {"opt": "3"}, True),
        ({}, {"opt": "3"}, True),
        ({"opt": "3"}, {"opt": "3", "threads": "1"}, True),
        ({"opt": "3"}, {"opt": "2", "threads": "1"}, False),
        ({"opt": "3"}, {"threads": "1"}, False),
        ({"opt": "3", "threads": "1"}, {"opt": "3"}, False),
    ],
)
def test_a_later_environment_replaces_what_stated_no_more_options(workspace, older, newer, replaced):
    old = workspace.save_environment(BASE | {"options": older})
    new = workspace.save_environment(BASE | {"options": newer, "oracle": "2"})
    elsewhere = workspace.save_environment(BASE | {"options": newer, "version": "0.28"})
    for run, name in enumerate((elsewhere, old, new), 1):
        workspace.save_verdicts(run, [judged("t", "tvm-onnx", "inputs", name, "pass")], {})
    assert workspace.superseded() == ({old} if replaced else set())


def test_an_environment_of_fewer_options_that_was_run_again_since_is_shown_too(workspace):
    fewer = workspace.save_environment(BASE | {"options": {}})
    more = workspace.save_environment(BASE | {"options": {"opt": "3"}})
    for run, name in enumerate((more, fewer), 1):
        workspace.save_verdicts(run, [judged("t", "tvm-onnx", "inputs", name, "pass")], {})
    assert workspace.superseded() == set()


def test_what_a_test_states_outweighs_what_was_computed(tmp_path):
    """Generated: outputs that somebody computed, or facts alone. A test's own word stands, whichever came first."""
    instance = Instance("onnx", "Relu", {}, (), ("Y",), {})
    at = Provenance("suite", "f", "t")
    stated = Captured(instance, at, (1.0,), 0.5)
    computed = Captured(instance, at, (2.0,), reference="onnxruntime", tags=("reference-disputed",))
    tagged = Captured(instance, at, tags=("reference-disputed",))

    def held(*records):
        with Workspace.open(tmp_path / str(len(list(tmp_path.iterdir()))), write=True) as workspace:
            for record in records:
                workspace.add_captured([record])
            return parse_captured(workspace.captured_form(instance.id))

    assert held(stated) == held(stated, computed) == held(computed, stated) == held(tagged, stated) == stated
    assert held(computed) == held(computed, tagged) == computed
    assert held(tagged) == tagged and not tagged.stated and not computed.stated and stated.stated
