"""Scripts and suites of a user's own, run under instrumentation: nothing they do may be changed, or lose what they called."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from commands import OPERA, opera
from own_scripts import MODEL, NO_HANDLERS, recorded, seen


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "model.py").write_text(MODEL)
    return tmp_path


def record(place: Path, *command: str, library: str = "onnx") -> subprocess.CompletedProcess[str]:
    return opera("record", "--library", library, "--", *command, cwd=place)


def test_a_script_runs_as_python_runs_it(place: Path) -> None:
    folder = place / "deep"
    folder.mkdir()
    (folder / "beside.py").write_text("")
    (folder / "s.py").write_text(
        "import os, sys, pickle, atexit, threading, beside\nsys.path.append(os.getcwd())\nimport model\n"
        "class Mine: pass\n"
        "print(sys.argv, __name__, __file__, os.getcwd(), sys.path[0], os.environ['HELLO'], input())\n"
        "print(any('opera' in word for word in sys.argv), type(pickle.loads(pickle.dumps(Mine()))) is Mine)\n"
        "atexit.register(lambda: model.run('Neg'))\n"
        "os.chdir('/')\nmodel.run('Relu')\n"
        "threading.Timer(0.5, lambda: model.run('Abs')).start()\n"
    )
    command = [sys.executable, "deep/s.py", "--", "-x", "a b"]
    environment = os.environ | {"HELLO": "ho"}
    plain = subprocess.run(command, cwd=place, env=environment, input="in\n", capture_output=True, text=True)
    watched = subprocess.run(
        [*OPERA, "record", "--library", "onnx", "--", "python", *command[1:]],
        cwd=place, env=environment, input="in\n", capture_output=True, text=True,
    )  # fmt: skip
    assert plain.returncode == watched.returncode == 0, watched.stderr
    assert watched.stdout.startswith(plain.stdout) and "['deep/s.py', '--', '-x', 'a b'] __main__" in plain.stdout
    assert seen(place) == [(op, "deep/s.py", "") for op in ("Relu", "Abs", "Neg")]
    again = record(place, "python", "deep/s.py", "--", "-x", "a b")
    assert "done before" not in again.stdout + again.stderr and recorded(place)[0][0] == "done"


def test_the_command_needs_no_dashes_and_its_old_name_works_with_a_hint(place: Path) -> None:
    (place / "s.py").write_text("import sys, model\nmodel.run(sys.argv[2])\n")
    new = opera("record", "--library", "onnx", "python", "s.py", "--workers", "Relu", cwd=place)
    assert new.returncode == 0 and "hint" not in new.stderr, new.stderr
    old = opera("extract", "--library", "onnx", "--", "python", "s.py", "--workers", "Abs", cwd=place)
    assert old.returncode == 0 and old.stderr.count("hint: `opera record` does this now") == 1
    assert [operator for operator, *_ in seen(place)] == ["Relu", "Abs"]


ENDINGS = {
    "sys.exit(3)": ("done", "exit code 3"),
    "sys.exit('farewell')": ("done", "exit code 1"),
    "raise ValueError('mine')": ("done", "exit code 1"),
    "raise KeyboardInterrupt": ("done", "exit code 130"),
    "os._exit(4)": ("done", f"{NO_HANDLERS}; exit code 4"),
    "os.kill(os.getpid(), 9)": ("died", "killed by SIGKILL"),
    "subprocess.run(['true'])": ("done", "it started processes, which are not followed"),
}


@pytest.mark.parametrize("ending", ENDINGS, ids=[text.partition("(")[0] for text in ENDINGS])
def test_however_a_script_ends_what_it_called_is_stored(place: Path, ending: str) -> None:
    (place / "s.py").write_text(f"import os, subprocess, sys, model\nmodel.run('Relu')\n{ending}\n")
    done = record(place, "python", "s.py")
    assert done.returncode == 0
    assert seen(place) == [("Relu", "s.py", "")]
    assert recorded(place) == [ENDINGS[ending]]
    assert all(part in done.stdout for part in ENDINGS[ending][1].split("; "))
    assert "opera/capture" not in done.stderr and "runpy" not in done.stderr
    if "mine" in ending:
        script = place / "s.py"
        assert f'File "{script}", line 3, in <module>\n    {ending}' in done.stderr


def test_forked_processes_are_not_followed(place: Path) -> None:
    (place / "s.py").write_text(
        "import os, sys, model\nmodel.run('Relu')\nif os.fork() == 0:\n    model.run('Abs')\n    sys.exit(0)\n"
        "os.wait()\nmodel.run('Neg')\n"
    )
    done = record(place, "python", "s.py")
    assert [operator for operator, *_ in seen(place)] == ["Relu", "Neg"]
    assert "not followed" in done.stdout


def test_ctrl_c_ends_the_script_and_loses_nothing(place: Path) -> None:
    (place / "s.py").write_text("import time, model\nmodel.run('Relu')\nprint('ready', flush=True)\ntime.sleep(3600)\n")
    process = subprocess.Popen(
        [*OPERA, "record", "--library", "onnx", "--", "python", "s.py"], cwd=place, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate()
    assert "interrupted" in out and "1 captured" in out and "KeyboardInterrupt" in err
    assert process.returncode == 130 and "opera: interrupted; nothing that was stored is lost" in err
    assert [operator for operator, *_ in seen(place)] == ["Relu"]


def test_a_script_that_hangs_is_killed_where_a_time_is_given(place: Path) -> None:
    (place / "s.py").write_text("import time, model\nmodel.run('Relu')\ntime.sleep(3600)\n")
    done = opera("record", "--library", "onnx", "--timeout", "20", "--", "python", "s.py", cwd=place)
    assert "still running after 20 s" in done.stdout and done.returncode == 0
    assert recorded(place)[0][0] == "timeout" and len(seen(place)) == 1


SUITE = """
import random
import model, pytest

@pytest.fixture
def number():
    return model.run("Neg")

def test_random(number, configured):
    assert configured == 7 and random.random() != 0.8444218515250481, "nobody seeds"

class TestIt:
    @pytest.mark.parametrize("op", ["Relu", "Abs"])
    def test_op(self, op):
        assert model.run(op)

def test_fails():
    assert model.run("Sqrt") is None
"""


@pytest.mark.parametrize("command", [["pytest", "mine"], ["python", "-m", "pytest", "mine", "-q"]], ids=" ".join)
def test_a_suite_keeps_its_configuration_and_plugins(place: Path, command: list[str]) -> None:
    (place / "mine").mkdir()
    (place / "mine" / "test_a.py").write_text(SUITE)
    (place / "conftest.py").write_text("import pytest\n@pytest.fixture\ndef configured():\n    return 7\n")
    (place / "pytest.ini").write_text("[pytest]\npythonpath = .\n")
    done = record(place, *command)
    file = " ".join(["pytest", *command[command.index("mine") :]])
    assert "exit code 1" in done.stdout and "4 tests (1 failed)" in done.stdout, done.stdout + done.stderr
    assert seen(place) == [
        (op, file, f"mine/test_a.py::{test}")
        for op, test in [
            ("Neg", "test_random"), ("Relu", "TestIt::test_op[Relu]"), ("Abs", "TestIt::test_op[Abs]"), ("Sqrt", "test_fails"),
        ]
    ]  # fmt: skip


def test_modules_run_by_name(place: Path) -> None:
    (place / "package").mkdir()
    (place / "package" / "__main__.py").write_text(
        "import sys, model\nassert __name__ == '__main__'\nmodel.run(sys.argv[1])\n"
    )
    done = record(place, "python", "-m", "package", "Relu")
    assert seen(place) == [("Relu", "package", "")], done.stderr
    done = record(place, "python", "-m", "nowhere")
    assert done.returncode == 2 and "No module named nowhere" in done.stderr


def test_a_script_of_pytorch(place: Path) -> None:
    pytest.importorskip("torch")
    (place / "net.py").write_text(
        "import threading, torch\nnet = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.ReLU())\n"
        "net(torch.rand(1, 1, 8, 8)).sum().backward()\n"
        "thread = threading.Thread(target=lambda: torch.rand(3, 3) @ torch.rand(3, 3))\nthread.start(); thread.join()\n"
        "big = torch.ones(1 << 28, dtype=torch.uint8).sum()\n"
        "try:\n    torch.ones(2).cuda()\nexcept (AssertionError, RuntimeError):\n    print('no device')\n"
        "held = [torch.ones(2)]; held.append(held)\n"
        "try:\n    torch.stack(held)\nexcept TypeError:\n    print('no tensor')\n"
    )
    done = record(place, "python", "net.py", library="torch")
    assert done.returncode == 0 and "no tensor" in done.stdout, done.stderr
    found = [operator for operator, *_ in seen(place)]
    assert {"torch.nn.Conv2d", "torch.nn.ReLU", "torch.Tensor.sum"} <= set(found)
    assert any("matmul" in operator for operator in found), "threads are watched too"
    assert (place / "results" / "opera.sqlite").stat().st_size < 10 << 20, "large tensors are described"
