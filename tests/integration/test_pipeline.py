"""The whole way, with the real library and the real compilers."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import time
import venv
from pathlib import Path

import msgspec
import pytest
from commands import OPERA, opera

from opera.store.workspace import Workspace

COMPILERS = ("onnxruntime", "openvino", "tvm")


def report(root: Path) -> dict:
    done = opera("report", "--format", "json", "--workspace", root)
    assert done.returncode == 0, done.stderr
    return msgspec.json.decode(done.stdout)


def verdicts(root: Path) -> dict[tuple[str, str, str], tuple[str, str]]:
    with Workspace.open(root, write=False) as opened:
        rows = opened.query("SELECT test, frontend, variant, verdict, finding FROM verdicts")
    return {row[:3]: row[3:] for row in rows}


def test_extract_prioritize_run_report(filled):
    root = filled()
    arguments = [x for name in COMPILERS for x in ("--compiler", name)]
    done = opera("run", "--no-reduce", *arguments, "--limit", 30, "--workspace", root)
    assert done.returncode == 0, done.stderr
    seen = report(root)
    assert sorted(x["name"] for x in seen["frontends"]) == [f"{name}-onnx" for name in COMPILERS]
    for frontend in seen["frontends"]:
        assert frontend["tests"] == sum(frontend["verdicts"].values()) == 30
        assert frontend["strategy"] == "opera-wide"
        assert frontend["verdicts"]["pass"] > 5
        assert not frontend["verdicts"].get("error")
        assert 0 < frontend["efficiency"] <= 1
        assert 0 < frontend["seconds"] <= frontend["wall_seconds"] * frontend["workers"]
    assert seen["instances"]["onnx"]["onnx-node-tests"] > 1800
    found = [x for x in seen["findings"] if x["reproducer"]]
    assert found
    for finding in found:
        assert (root / finding["reproducer"]).is_file()
        assert finding["members"]

    before = verdicts(root)
    again = opera("run", "--no-reduce", *arguments, "--limit", 30, "--workspace", root)
    assert "nothing left to run" in again.stdout
    assert verdicts(root) == before

    more = opera("run", "--no-reduce", "--compiler", "onnxruntime", "--operator", "Conv*", "--workspace", root)
    assert more.returncode == 0, more.stderr
    assert len(verdicts(root)) > len(before)

    for format in ("terminal", "markdown", "html"):
        done = opera("report", "--format", format, "--output", root / f"report.{format}", "--workspace", root)
        assert done.returncode == 0, done.stderr
        assert "openvino-onnx" in (root / f"report.{format}").read_text()

    finding = found[0]["id"]
    assert finding in opera("findings", "--workspace", root).stdout
    assert found[0]["members"][0] in opera("show", finding, "--workspace", root).stdout
    assert "fails, as found" in opera("repro", finding, "--verify", "--workspace", root).stdout
    test = found[0]["members"][0]
    rerun = opera("run", "--no-reduce", "--test", test, "--rerun", "--compiler", "onnxruntime", "--workspace", root)
    assert rerun.returncode == 0, rerun.stderr


def test_deleted_tests_are_made_again(filled):
    root = filled()
    run = ("run", "--no-reduce", "--compiler", "openvino", "--operator", "MaxPool", "--workspace", root)
    assert opera(*run).returncode == 0
    shutil.rmtree(root / "tests")
    shutil.rmtree(root / "reproducers")
    told = opera("repro", "all", "--workspace", root)
    assert told.returncode == 0, told.stderr
    assert "deleted" in told.stdout
    before = verdicts(root)
    again = opera(*run)
    assert again.returncode == 0, again.stderr
    assert verdicts(root) == before
    assert list((root / "reproducers").iterdir())


def test_new_findings_fail_a_pipeline_only_where_asked(filled):
    root = filled()
    run = ("run", "--reduce-seconds", 2, "--compiler", "openvino", "--operator", "MaxPool", "--workspace", root)
    done = opera(*run, "--fail-on-new")
    assert done.returncode == 1 and "new findings reduced" in done.stdout, done.stdout + done.stderr
    assert opera(*run, "--fail-on-new").returncode == 0


def test_a_time_budget_is_kept_and_the_rest_is_run_later(filled):
    root = filled()
    for seconds in (2, 8, 32):  # a busy machine may need longer to begin
        done = opera("run", "--no-reduce", "--compiler", "onnxruntime", "--time-budget", seconds, "--workspace", root)
        assert done.returncode == 0, done.stderr
        assert "time budget" in done.stdout
        if first := sum(x["tests"] for x in report(root)["frontends"]):
            break
    assert 0 < first < 1800
    opera("run", "--no-reduce", "--compiler", "onnxruntime", "--limit", first + 50, "--workspace", root)
    assert report(root)["frontends"][0]["tests"] == first + 50


def killed(arguments: list[object], ready, signal_number: int = signal.SIGKILL) -> None:
    """Run opera, and kill its parent process as soon as `ready()` holds."""
    process = subprocess.Popen(
        [*OPERA, *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    while not ready():
        assert process.poll() is None, "it ended before it could be killed"
        time.sleep(0.02)
    process.send_signal(signal_number)
    process.wait()


def count(root: Path, table: str) -> int:
    try:
        with Workspace.open(root, write=False) as opened:
            return int(opened.query(f"SELECT COUNT(*) FROM {table}")[0][0])
    except Exception:  # the file is being made
        return 0


@pytest.mark.full  # tests/faults/test_kills.py kills at a hundred moments
def test_a_killed_extract_is_finished_by_the_same_command(extracted, tmp_path):
    root = tmp_path / "workspace"
    killed(["extract", "onnx", "--workspace", root], lambda: count(root, "instances") > 200)
    kept = count(root, "instances")
    assert 200 < kept < count(extracted, "instances")
    done = opera("extract", "onnx", "--workspace", root)
    assert done.returncode == 0, done.stderr
    assert "were done before" in done.stderr
    for table in ("instances", "provenances", "expectations"):
        with Workspace.open(root, write=False) as here, Workspace.open(extracted, write=False) as there:
            column = "id" if table == "instances" else "instance"
            query = f"SELECT {column} FROM {table} ORDER BY 1"
            assert here.query(query) == there.query(query)


@pytest.mark.full  # tests/faults/test_kills.py kills at a hundred moments
def test_a_killed_prioritize_leaves_the_old_order_or_the_new_one(filled):
    root = filled()
    with Workspace.open(root, write=False) as opened:
        before = opened.ranking("onnx", "tvm")
    arguments = ["prioritize", "--strategy", "random", "--seed", "1", "--workspace", str(root)]
    for delay in (
        0.3,
        0.45,
        0.6,
        0.75,
        0.9,
    ):  # a fast machine has ended by the last, a slow one has not begun by the first
        process = subprocess.Popen([*OPERA, *arguments], stderr=subprocess.DEVNULL)
        time.sleep(delay)
        process.kill()
        process.wait()
        with Workspace.open(root, write=False) as opened:
            strategy, order, unranked = opened.ranking("onnx", "tvm")
        assert unranked == 0
        assert strategy == "random" or order == before[1]
    assert opera(*arguments).returncode == 0


@pytest.mark.full  # tests/integration/test_interrupts.py and tests/faults kill runs, too
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_run_is_finished_by_the_same_command(filled, how):
    root, whole = filled(), filled()
    arguments = [
        "run",
        "--no-reduce",
        "--compiler",
        "onnxruntime",
        "--limit",
        "800",
        "--workspace",
    ]  # so many that it does not end first
    killed([*arguments, root], lambda: count(root, "verdicts") > 50, how)
    kept = verdicts(root)
    assert len(kept) > 50
    done = opera(*arguments, root)
    assert done.returncode == 0, done.stderr
    assert opera(*arguments, whole).returncode == 0
    assert verdicts(root) == verdicts(whole)
    assert kept.items() <= verdicts(root).items()
    with Workspace.open(root, write=False) as opened:
        assert not opened.query("SELECT * FROM verdicts WHERE confirmation = 'pending'")


@pytest.mark.full  # tests/faults/test_disk.py has two commands at once, too
def test_two_runs_at_once_do_not_mix(filled):
    root = filled()
    first = subprocess.Popen(
        [*OPERA, "run", "--compiler", "onnxruntime", "--workspace", str(root)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        while not count(root, "verdicts"):
            assert first.poll() is None
            time.sleep(0.05)
        first.send_signal(signal.SIGSTOP)  # so that it is still there, however long the second takes
        second = opera("run", "--compiler", "onnxruntime", "--workspace", root)
        assert second.returncode == 2
        assert "in use by another opera process" in second.stderr
        assert opera("report", "--workspace", root).returncode == 0, "a report works meanwhile"
        first.send_signal(signal.SIGCONT)
        assert first.wait() == 0
    finally:
        first.kill()


def test_another_interpreter_runs_its_own_compiler_with_numpy_and_msgspec_alone(filled, tmp_path):
    python = environment_with(
        tmp_path / "other", ["numpy", "msgspec", "onnxruntime", "google", "flatbuffers", "packaging"]
    )
    probe = (
        "import importlib.util as u; print([n for n in ('onnx', 'typer', 'rich', 'pebble', 'tvm') if u.find_spec(n)])"
    )
    assert subprocess.run([python, "-c", probe], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    root = filled()
    done = opera(
        "run", "--no-reduce", "--compiler", "onnxruntime", "--python", python, "--limit", 60, "--workspace", root
    )
    assert done.returncode == 0, done.stderr
    seen = report(root)["frontends"][0]
    assert seen["tests"] == 60
    assert seen["verdicts"]["pass"] > 10
    assert not seen["verdicts"].get("error")


def environment_with(folder: Path, packages: list[str]) -> Path:
    """Make an environment that holds opera's package and some packages of this one, by links."""
    venv.create(folder, with_pip=False)
    site = next(folder.glob("lib/python*/site-packages"))
    here = Path(msgspec.__file__).parents[1]
    wanted = re.compile("|".join(re.escape(name) for name in packages), re.IGNORECASE)
    for entry in here.iterdir():
        if wanted.match(entry.name) or re.match(r"opera-.*\.dist-info", entry.name):
            (site / entry.name).symlink_to(entry)
    package = Path(sys.modules["opera"].__file__).parent
    (site / "opera").symlink_to(package)
    return folder / "bin" / "python"
