"""Scripts that break what they stand on: what they called before is stored, what is said is true, no process stays."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from leftovers import Watched
from own_scripts import MODEL, NO_HANDLERS, recorded, seen

import opera

pytest.importorskip("onnx")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "place"
    folder.mkdir()
    (folder / "model.py").write_text(MODEL)
    yield folder


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    found = Watched(tmp_path / "tmp")
    yield found
    assert not found.left(5)


RECORD = ["record", "--library", "onnx"]
CRASH = "import ctypes\nctypes.string_at(0)\n"
FORK = "if os.fork() == 0:\n    model.run('Abs')\n    time.sleep(300)\n"
LEFT = "it left 1 process running, not followed and ended now"
SCRIPTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "crashes": (CRASH, ("killed by SIGSEGV",)),
    "dies of an unnamed signal": ("os.kill(os.getpid(), 40)\n", ("killed by signal 40",)),
    "forks and the child goes on": (FORK, (LEFT, "exit code 0")),
    "forks a daemon": (
        "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        time.sleep(300)\n    os._exit(0)\n",
        (LEFT, "exit code 0"),
    ),
    "forks and the child crashes": (f"if os.fork() == 0:\n    {CRASH.replace(chr(10), '; ')}\nos.wait()\n", ("exit code 0",)),
    "starts a program that goes on": ("subprocess.Popen(['sleep', '300'])\n", (LEFT, "exit code 0")),
    "leaves at once": ("os._exit(0)\n", (NO_HANDLERS, "exit code 0")),
    "becomes another program": ("os.execvp('true', ['true'])\n", (NO_HANDLERS, "exit code 0")),
    "becomes Python again": ("os.execv(sys.executable, ['python', '-c', 'print(7)'])\n", (NO_HANDLERS, "exit code 0")),
    "deletes its own file": ("os.unlink(__file__)\n", ("exit code 0",)),
    "changes its folder": ("os.chdir('/')\nmodel.run('Relu')\n", ("exit code 0",)),
    "replaces its streams": (
        "sys.stdout = None\nsys.stderr = open(os.devnull, 'w')\nos.close(1)\nmodel.run('Relu')\n",
        ("exit code 0",),
    ),
    "breaks its streams": ("import io\nsys.stdout = io.StringIO()\nsys.stdout.close()\n", ("exit code 0",)),
    "has threads that end late": (
        "threading.Thread(target=time.sleep, args=(300,), daemon=True).start()\n", ("exit code 0",),
    ),
    "exits with a number": ("sys.exit(300)\n", ("exit code 44",)),
    "exits with a fraction": ("raise SystemExit(3.5)\n", ("exit code 1",)),
    "exits with a large number": ("raise SystemExit(10**30)\n", ("exit code 255",)),
    "exits with an object": ("raise SystemExit(object())\n", ("exit code 1",)),
    "exits with nothing": ("raise SystemExit(None)\n", ("exit code 0",)),
    "exits with what has no text": (
        "class Mute:\n    def __str__(self): raise ValueError\nraise SystemExit(Mute())\n", ("exit code 1",),
    ),
    "raises what is no exception": ("raise GeneratorExit('odd')\n", ("exit code 1",)),
    "installs handlers": (
        "for number in range(1, 32):\n    if number not in (9, 19):\n        signal.signal(number, lambda *_: None)\n"
        "os.kill(os.getpid(), signal.SIGTERM)\nmodel.run('Relu')\n",
        ("exit code 0",),
    ),
    "closes every file": ("os.closerange(3, 300)\nmodel.run('Abs')\n", ("exit code 0", "2 captured")),
    "opens its own file in place of opera's": (
        "os.closerange(3, 300)\nfiles = [open(f'mine{n}', 'w') for n in range(20)]\nmodel.run('Abs')\n",
        ("exit code 0", "2 captured"),
    ),
    "replaces what ends it": ("os._exit = sys.exit = exit = lambda *_: None\n", ("exit code 0",)),
    "forgets its exit handlers": ("import atexit\natexit._clear()\n", (NO_HANDLERS, "exit code 0")),
    "limits itself": (
        "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))\nmodel.run('Relu')\n",
        (NO_HANDLERS, "exit code 0"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SCRIPTS)
def test_what_was_called_before_is_stored(watched: Watched, place: Path, name: str) -> None:
    text, said = SCRIPTS[name]
    (place / "s.py").write_text(
        f"import os, signal, subprocess, sys, threading, time\nimport model\nmodel.run('Relu')\n{text}"
    )
    done = watched.run(*RECORD, "--", "python", "s.py", cwd=place)
    assert done.returncode == 0, done.stderr
    assert [operator for operator, *_ in seen(place)] == ["Relu", *["Abs"] * ("closerange" in text)]
    assert all(words in done.stdout for words in said), done.stdout
    package = str(Path(opera.__file__).parent)  # a checkout is called opera, too, and so is what lies in it
    assert f"{package}/" not in done.stderr, "frames of opera's are nobody's business"
    assert not any(path.stat().st_size for path in place.glob("mine*")), "opera writes into no file of the user's"


def test_threads_that_never_end_are_ended_where_a_time_is_given(watched: Watched, place: Path) -> None:
    (place / "s.py").write_text(
        "import threading, time, model\nmodel.run('Relu')\n"
        "def forever():\n    while True:\n        time.sleep(0.1)\nthreading.Thread(target=forever).start()\n"
    )
    done = watched.run(*RECORD, "--timeout", 6, "--", "python", "s.py", cwd=place)
    assert done.returncode == 0 and "still running after 6 s, and killed" in done.stdout
    assert [operator for operator, *_ in seen(place)] == ["Relu"] and recorded(place)[0][0] == "timeout"


@pytest.mark.parametrize("inside", [False, True], ids=["elsewhere", "in it"])
def test_a_script_that_deletes_the_folder_it_runs_in(watched: Watched, place: Path, inside: bool) -> None:
    (place / "s.py").write_text(
        "import os, shutil, model\nmodel.run('Relu')\nshutil.rmtree(os.getcwd())\nmodel.run('Abs')\n"
    )
    root = place / "results" if inside else place.parent / "results"
    done = watched.run(*RECORD, "--workspace", root, "--", "python", "s.py", cwd=place)
    assert "Traceback" not in done.stderr
    if inside:
        assert done.returncode == 2 and "was deleted while the program ran" in done.stderr
        assert "captured:" not in done.stdout
    else:
        assert done.returncode == 0 and [operator for operator, *_ in seen(place.parent)] == ["Relu", "Abs"]


def test_a_script_that_takes_no_interrupt_is_waited_for(watched: Watched, place: Path) -> None:
    (place / "s.py").write_text(
        "import signal, time, model\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('ready', flush=True)\n"
        "time.sleep(1)\nmodel.run('Relu')\n"
    )
    process = watched.start(*RECORD, "--", "python", "s.py", cwd=place)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    for _ in range(2):
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.1)
    out, err = process.communicate()
    assert process.returncode == 0 and "exit code 0" in out and "interrupted" in out, err


def test_a_script_ends_with_opera(watched: Watched, place: Path) -> None:
    (place / "s.py").write_text("import time, model\nmodel.run('Relu')\nprint('ready', flush=True)\ntime.sleep(300)\n")
    process = watched.start(*RECORD, "--", "python", "s.py", cwd=place)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    process.kill()
    process.communicate()
    while watched.processes():
        time.sleep(0.05)
    (place / "s.py").write_text("import model\nmodel.run('Relu')\n")
    assert watched.run(*RECORD, "--", "python", "s.py", cwd=place).returncode == 0
    with sqlite3.connect(place / "results" / "opera.sqlite") as database:
        assert database.execute("SELECT COUNT(*) FROM extraction_files").fetchone() == (1,)
