"""Disks that are full or read-only, files that others have spoilt, two commands at once: on the real command line."""

from __future__ import annotations

import os
import resource
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import OPERA, opera
from leftovers import Watched

from opera.store.schema import SCHEMA_VERSION

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
RUN = ["run", "--no-reduce", "--compiler", "onnxruntime", "--operator", "Resize"]
VERDICTS = "SELECT test, frontend, variant, verdict FROM verdicts ORDER BY 1, 2, 3"
INSTANCES = "SELECT instance, source, file, test FROM provenances ORDER BY 1, 2, 3, 4"


def rows(root: Path, sql: str) -> list[tuple[object, ...]]:
    with sqlite3.connect(root / "opera.sqlite") as database:
        return database.execute(sql).fetchall()


def mounted(script: str, place: Path) -> subprocess.CompletedProcess[str]:
    """Run a shell script that may mount file systems, which nobody else sees and which end with it; skip where it may not."""
    if subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", place], check=False).returncode:
        pytest.skip("file systems cannot be mounted here")
    text = f'opera() {{ {shlex.join(OPERA)} "$@"; echo rc=$?; }}\nset -u\ncd {shlex.quote(str(place))}\n{script}'
    return subprocess.run(["unshare", "-rm", "sh", "-c", text], capture_output=True, text=True, check=False)


FULL = """
mkdir disk && mount -t tmpfs -o size=1200k tmpfs disk
opera extract onnx --workspace disk/w
mount -o remount,size=200m disk
opera extract onnx --workspace disk/w
room() { mount -o remount,size=$(( $(du -sk disk | cut -f1) + $1 ))k disk; }
room 250
opera run --compiler onnxruntime --operator Resize --workspace disk/w
opera report --format html --output disk/report.html --workspace disk/w
opera corpus export disk/corpus.jsonl --workspace disk/w
ls -A disk
mkdir disk/tmp; room 200
TMPDIR=$PWD/disk/tmp opera extract onnx --workspace other
echo left; ls -A disk/tmp
mount -o remount,size=200m disk
opera run --compiler onnxruntime --operator Resize --workspace disk/w
cp -r disk/w kept
"""


@pytest.mark.full
def test_a_full_disk_is_told_and_the_same_command_goes_on(tmp_path: Path, extracted: Path) -> None:
    done = mounted(FULL, tmp_path)
    assert "Traceback" not in done.stderr, done.stderr
    assert [line for line in done.stdout.splitlines() if line.startswith("rc=")] == [
        *["rc=2", "rc=0"], *["rc=2"] * 3, "rc=0", "rc=0",
    ], done.stdout + done.stderr  # fmt: skip
    assert done.stderr.count("likely cause: the disk is full") == 2
    assert done.stderr.count("No space left on device") == 2, "report and export"
    assert "could not be written: No space left on device" in done.stdout, "files whose captures are lost are not done"
    listed = done.stdout.split("rc=2")[-1].split()
    assert listed[0] == "w", "no half of a report, nor of a corpus"
    assert not [name for name in done.stdout.split("left\n")[1].split("\n") if name.startswith("opera-")]
    kept = tmp_path / "kept"
    assert rows(kept, INSTANCES) == rows(extracted, INSTANCES)
    whole = tmp_path / "whole"
    shutil.copytree(extracted, whole)
    assert opera(*RUN, "--workspace", whole).returncode == 0
    assert rows(kept, VERDICTS) == rows(whole, VERDICTS)
    again = opera("extract", "onnx", "--workspace", tmp_path / "other")
    assert again.returncode == 0 and rows(tmp_path / "other", INSTANCES) == rows(extracted, INSTANCES)


READ_ONLY = """
mount --bind w w && mount -o remount,bind,ro w
opera extract onnx --workspace w
opera prioritize --workspace w
opera run --workspace w
opera corpus export w/corpus.jsonl --workspace w
opera report --output w/report.txt --workspace w
opera repro all --workspace w
opera report --workspace w
opera findings --workspace w
"""


def test_a_read_only_workspace_is_told_and_can_be_read(tmp_path: Path, extracted: Path) -> None:
    shutil.copytree(extracted, tmp_path / "w")
    done = mounted(READ_ONLY, tmp_path)
    assert "Traceback" not in done.stderr, done.stderr
    assert done.stdout.count("rc=2") == 5, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "rc=0" and done.stdout.count("rc=0") == 3
    assert "onnx instances: 18" in done.stdout


@pytest.mark.full
@pytest.mark.parametrize("command", ["extract onnx", "prioritize"])
def test_a_limit_on_files_loses_nothing(tmp_path: Path, extracted: Path, command: str) -> None:
    """A file size limit is what a full disk is, for whoever may not mount one."""
    root = tmp_path / "w"
    if not command.startswith("extract"):
        shutil.copytree(extracted, root)
    before = rows(root, INSTANCES) if root.is_dir() else []
    limit = 200 << 10

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

    done = subprocess.run(
        [*OPERA, *command.split(), "--workspace", str(root)], capture_output=True, text=True,
        preexec_fn=limited, check=False,
    )  # fmt: skip
    assert done.returncode == 2, done.stdout + done.stderr
    assert "Traceback" not in done.stderr and "what to do:" in done.stderr, done.stderr
    assert opera(*command.split(), "--workspace", root).returncode == 0
    assert rows(root, INSTANCES) == (before or rows(extracted, INSTANCES))


def test_two_commands_at_once_do_not_mix(tmp_path: Path, extracted: Path) -> None:
    root = tmp_path / "w"
    watched = Watched(tmp_path / "tmp")
    first = watched.start("extract", "onnx", "--workspace", root)
    while not (root / "opera.sqlite").is_file() or not (root / "lock").read_text():
        assert first.poll() is None
        time.sleep(0.02)
    first.send_signal(signal.SIGSTOP)  # else it may be over before the others have begun
    try:
        for command in (["extract", "onnx"], ["prioritize"], RUN, ["corpus", "import", __file__]):
            second = opera(*command, "--workspace", root)
            assert second.returncode == 2 and f"in use by another opera process (pid {first.pid})" in second.stderr
    finally:
        first.send_signal(signal.SIGCONT)
    assert opera("report", "--workspace", root).returncode == 0, "a report works meanwhile"
    assert first.wait() == 0
    first.communicate()
    assert rows(root, INSTANCES) == rows(extracted, INSTANCES)
    assert not watched.left(5)


@pytest.mark.full
def test_workspaces_of_their_own_can_be_filled_at_once(tmp_path: Path, extracted: Path) -> None:
    watched = Watched(tmp_path / "tmp")
    both = [watched.start("extract", "onnx", "--workspace", tmp_path / name) for name in ("a", "b")]
    assert [process.wait() for process in both] == [0, 0]
    for process, name in zip(both, ("a", "b"), strict=True):
        process.communicate()
        assert rows(tmp_path / name, INSTANCES) == rows(extracted, INSTANCES)
    assert not watched.left(5)


COMMANDS = [
    ["extract", "onnx"], ["prioritize"], RUN, ["report"], ["findings"], ["show", "F0"], ["repro", "all"], ["benchmark"],
    ["corpus", "export", "x.jsonl"], ["corpus", "import", "x.jsonl"],
]  # fmt: skip


SPOILT = [(how, command) for how in ("newer", "cut") for command in COMMANDS]
SPOILT += [(how, command) for how in ("noise", "empty pages") for command in (RUN, ["report"])]


@pytest.mark.parametrize(("how", "command"), SPOILT, ids=[f"{how}: {' '.join(command)}" for how, command in SPOILT])
def test_a_workspace_that_cannot_be_read_is_told_and_left_alone(
    tmp_path: Path, extracted: Path, how: str, command: list[str]
) -> None:
    root = tmp_path / "w"
    shutil.copytree(extracted, root)
    (tmp_path / "x.jsonl").write_text('{"format": "opera-corpus", "version": 1}\n')
    file = root / "opera.sqlite"
    if how == "newer":
        with sqlite3.connect(file) as database:
            database.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
        database.close()
    elif how == "cut":
        os.truncate(file, 5000)
    elif how == "noise":
        file.write_bytes(b"no database at all" * 1000)
    else:
        file.write_bytes(file.read_bytes()[:4096] + bytes(file.stat().st_size - 4096))
    before = file.read_bytes()
    done = opera(*command, "--workspace", root, cwd=tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "Traceback" not in done.stderr and "what to do:" in done.stderr
    assert str(root) in done.stderr
    assert file.read_bytes() == before


def test_a_script_that_fills_its_own_limit_is_told(tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text(
        "import resource\nfrom onnx import TensorProto, helper\nfrom onnx.reference import ReferenceEvaluator\n"
        "import numpy as np\nx = helper.make_tensor_value_info('x', TensorProto.FLOAT, [2])\n"
        "y = helper.make_tensor_value_info('y', TensorProto.FLOAT, None)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (900, 900))\n"
        "for op in ('Relu', 'Abs', 'Neg', 'Exp', 'Sign', 'Sin', 'Cos', 'Tanh', 'Ceil'):\n"
        "    node = helper.make_node(op, ['x'], ['y'])\n"
        "    model = helper.make_model(helper.make_graph([node], 'g', [x], [y]))\n"
        "    ReferenceEvaluator(model).run(None, {'x': np.array([0, 1], np.float32)})\n"
    )
    done = subprocess.run(
        [*OPERA, "extract", "--library", "onnx", "--", "python", "s.py"], cwd=tmp_path, capture_output=True, text=True,
        env=os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}, check=False,
    )  # fmt: skip
    assert done.returncode == 0 and "what was captured could not be written" in done.stdout, done.stdout + done.stderr
    assert 0 < len(rows(tmp_path / "results", "SELECT * FROM instances")) < 9
