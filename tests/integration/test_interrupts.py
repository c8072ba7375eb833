"""Ctrl-C, as a terminal sends it: to all processes of the foreground job."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from leftovers import Watched

from opera.store.workspace import Workspace

pytest.importorskip("onnxruntime")


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path / "tmp")


def rows(root: Path, table: str) -> int:
    try:
        with Workspace.open(root, write=False) as opened:
            return int(opened.query(f"SELECT COUNT(*) FROM {table}")[0][0])
    except Exception:  # the file is being made
        return 0


def interrupt(process: subprocess.Popen[str], ready: Callable[[], bool], times: int = 1) -> tuple[str, str]:
    """Press Ctrl-C, once or several times, when `ready()` holds; return what it printed."""
    deadline = time.monotonic() + 100
    while not ready():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    for _ in range(times):
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.1)
        if process.poll() is not None:
            break
    return process.communicate()


def check(process: subprocess.Popen[str], told: tuple[str, str], watched: Watched) -> None:
    assert process.returncode == 130, told
    assert "opera: interrupted; nothing that was stored is lost" in told[1]
    assert "Traceback" not in told[1] and "Exception ignored" not in told[1], told[1]
    assert not watched.left(5)


@pytest.mark.parametrize("times", [1, 2])
def test_extract(watched: Watched, tmp_path: Path, times: int) -> None:
    process = watched.start("extract", "onnx", cwd=tmp_path)
    told = interrupt(process, lambda: rows(tmp_path / "results", "instances") > 100, times)
    check(process, told, watched)
    assert rows(tmp_path / "results", "instances") > 100


@pytest.mark.parametrize("times", [pytest.param(1, marks=pytest.mark.full), 2])
def test_run(watched: Watched, filled: Callable[[], Path], times: int) -> None:
    root = filled()
    process = watched.start("run", "--compiler", "onnxruntime", "--workspace", root)
    told = interrupt(process, lambda: rows(root, "verdicts") > 50, times)
    check(process, told, watched)
    assert (
        watched.run("run", "--no-reduce", "--compiler", "onnxruntime", "--limit", 20, "--workspace", root).returncode
        == 0
    )


def test_while_workers_start(watched: Watched, filled: Callable[[], Path]) -> None:
    process = watched.start("run", "--compiler", "onnxruntime", "--workspace", filled())
    told = interrupt(process, lambda: any("forkserver" in line for line in watched.processes().values()))
    check(process, told, watched)


def test_doctor(watched: Watched, tmp_path: Path) -> None:
    process = watched.start("doctor", "--compiler", "onnxruntime", cwd=tmp_path)
    told = interrupt(process, lambda: bool(list(watched.place.glob("opera-doctor-*"))), 2)
    check(process, told, watched)


def opened(process: subprocess.Popen[str], file: str) -> bool:
    with suppress(OSError):
        return any(str(link.readlink()) == file for link in Path(f"/proc/{process.pid}/fd").iterdir())
    return False


@pytest.mark.parametrize("command", ["prioritize", "report --format html --output report.html"])
def test_what_only_computes(watched: Watched, filled: Callable[[], Path], tmp_path: Path, command: str) -> None:
    root = filled()
    process = watched.start(*command.split(), "--workspace", root, cwd=tmp_path)
    # It has the database open as soon as it is in its command.
    file = str(root / "opera.sqlite")
    told = interrupt(process, lambda: opened(process, file))
    if process.returncode == 0:
        pytest.skip("it had ended before")
    check(process, told, watched)
    assert not (tmp_path / "report.html").exists()


def test_import_stores_nothing(watched: Watched, tmp_path: Path) -> None:
    file = tmp_path / "corpus.jsonl.gz"
    with gzip.open(file, "wb", 1) as corpus:
        corpus.write(b'{"format": "opera-corpus", "version": 1}\n' + b'{"instance": ' + b" " * (400 << 20))
    process = watched.start("corpus", "import", file, cwd=tmp_path)
    told = interrupt(process, (tmp_path / "results" / "opera.sqlite").is_file)
    check(process, told, watched)
    assert rows(tmp_path / "results", "instances") == 0


def test_the_third_time_it_leaves_what_cleans_up(tmp_path: Path) -> None:
    code = (
        "import time\nfrom opera import interrupts\ninterrupts.handle()\n"
        "try:\n    print('ready', flush=True)\n    time.sleep(6000)\nfinally:\n    time.sleep(6000)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    _, err = interrupt(process, lambda: True, 3)
    assert "once more Ctrl-C leaves without that" in err


def test_while_the_commands_are_imported(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys\n"
        "class Presses:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'opera.cli':\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "from opera.__main__ import main\n"
        "sys.meta_path.insert(0, Presses())\n"
        "main()\n"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert told.returncode == 130 and told.stderr.startswith("opera: interrupted") and "Traceback" not in told.stderr


@pytest.mark.full
def test_whoever_ignores_it_is_not_asked(watched: Watched, filled: Callable[[], Path]) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process = watched.start("run", "--compiler", "onnxruntime", "--limit", 100, "--workspace", filled())
    finally:
        signal.signal(signal.SIGINT, before)
    interrupt(process, lambda: bool(watched.processes()), 2)
    assert process.returncode == 0
