from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import OPERA, opera

from opera.errors import NoAnswer, NotInstalled, WorkspaceError
from opera.run import doctor

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")


def test_quickly_it_says_what_is_installed_and_imports_none_of_it(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from opera.run import doctor\n"
        "ok = doctor.show(Path('none'), 2, quick=True)\n"
        "heavy = {'torch', 'onnx', 'onnxruntime', 'keras', 'tensorflow', 'tvm', 'openvino'}\n"
        "print(ok, sorted(heavy & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stdout.splitlines()[-1] == "True []"
    assert "installed, not tried: onnxruntime-onnx" in done.stdout


def test_quickly_a_missing_compiler_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    find = doctor.importlib.util.find_spec
    gone = ("tvm", "iree")
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: None if name in gone else find(name))
    assert doctor.show(Path("none"), 2, ["tvm", "iree", "onnxruntime"], quick=True)
    told = capsys.readouterr().out
    assert "missing compiler  tvm                               pip install apache-tvm onnx" in told
    assert "missing compiler  iree                              opera env create iree" in told
    assert not doctor.show(Path("none"), 2, ["tvm"], quick=True)


def test_only_the_compilers_that_were_asked_for_are_checked(tmp_path: Path) -> None:
    done = opera("doctor", "--compiler", "onnxruntime", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    (line,) = [x for x in done.stdout.splitlines() if " compiler " in x]
    assert line.startswith("ok") and "planted wrong answer is caught" in line
    done = opera("doctor", "--compiler", "gcc", cwd=tmp_path)
    assert done.returncode == 2 and "there is no compiler called 'gcc'" in done.stderr


@pytest.mark.full
def test_lines_come_while_compilers_are_still_checked(tmp_path: Path) -> None:
    process = subprocess.Popen([*OPERA, "doctor", "--compiler", "onnxruntime"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline().startswith("ok")
    first = time.monotonic()
    assert "onnxruntime-onnx" in process.stdout.read()
    assert process.wait() == 0 and time.monotonic() - first > 0.3, "a compiler needs longer than that"


FAILURES = {
    "missing": (NotInstalled("the compiler cannot be used"), "missing", "pip install onnxruntime", True),
    "silent": (NoAnswer("onnxruntime did not answer in 300 s"), "silent", "300 s (the machine is busy)", False),
    "died": (NoAnswer("it died", cause="killed by SIGSEGV"), "silent", "it died (killed by SIGSEGV)", False),
    "wrong": (WorkspaceError("the disk is full"), "wrong", "the disk is full", False),
}


@pytest.mark.parametrize("name", FAILURES)
def test_missing_silent_and_wrong_are_told_apart(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error, mark, note, fine = FAILURES[name]

    def canaries(
        compiler: str, library: str, own: object, workers: int, pool: object, python: str, chosen: object
    ) -> tuple[str, str, str]:
        if compiler == "openvino":
            return doctor.OK, "1", "canaries"
        raise error

    monkeypatch.setattr(doctor, "_canaries", canaries)
    assert doctor.show(Path("none"), 2, ["onnxruntime", "openvino"]) == fine
    (line,) = [x for x in capsys.readouterr().out.splitlines() if "onnxruntime-onnx" in x]
    assert line.startswith(mark) and note in line
