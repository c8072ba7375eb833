from __future__ import annotations

import subprocess
import sys

import pytest

from opera.errors import UsageError
from opera.run import releases

UV = """
  × No solution found when resolving dependencies:
  ╰─▶ Because there is no version of openvino==2099.1 and you require openvino==2099.1, we can conclude that your requirements
      are unsatisfiable.
"""
PIP = """
ERROR: Could not find a version that satisfies the requirement openvino==2099.1 (from versions: 2023.0.0, 2023.0.1)
ERROR: No matching distribution found for openvino==2099.1
"""


@pytest.mark.parametrize("version", ["--index-url=http://x", "2024.0 evil", "", "latest", "2024.0;x"])
def test_what_is_no_version_is_refused(version):
    with pytest.raises(UsageError):
        releases.check("openvino", version)


def test_what_is_no_package_of_its_own_is_refused():
    for compiler in ("onnxexport", "inductor"):
        with pytest.raises(UsageError, match="no package"):
            releases.check(compiler, "1.0")
    for compiler in ("openvino", "onnxruntime", "tvm"):
        releases.check(compiler, "1.0")


def test_the_reason_of_uv_and_of_pip_is_one_line():
    assert releases._reason(UV) == "there is no version of openvino==2099.1"
    assert releases._reason(PIP) == "ERROR: No matching distribution found for openvino==2099.1"
    assert releases._reason("") == "no reason given"


def test_what_a_release_was_built_with_is_the_lowest_that_it_states(tmp_path):
    where = tmp_path / "lib" / "python3.11" / "site-packages" / "apache_tvm-0.25.0.dist-info"
    where.mkdir(parents=True)
    stated = (
        "apache-tvm-ffi>=0.1.12",
        "ml_dtypes",
        "numpy (>=1.24.2)",
        "openvino-telemetry >=2023.1.0",
        'torch>=2; extra == "torch"',
    )
    where.joinpath("METADATA").write_text("".join(f"Requires-Dist: {x}\n" for x in stated), encoding="utf-8")
    assert releases._lowest(tmp_path, "apache-tvm") == ["apache-tvm-ffi==0.1.12", "openvino-telemetry==2023.1.0"]


def test_frontends_that_need_the_library_borrow_it():
    assert (
        releases.borrows("openvino", "torch")
        and releases.borrows("tvm", "torch")
        and releases.borrows("openvino", "keras")
    )
    assert not releases.borrows("openvino", "onnx") and not releases.borrows("onnxruntime", "onnx")


@pytest.mark.parametrize("borrow", [False, True])
def test_an_environment_finds_the_opera_that_runs(tmp_path, borrow, monkeypatch):
    monkeypatch.delenv("PYTHONPATH", raising=False)
    where = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(where)], check=True)
    releases._lend(where, "openvino", borrow)

    def say(code: str) -> str:
        command = [str(where / "bin" / "python"), "-P", "-c", code]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    found = say("import importlib.util as u; print(u.find_spec('numpy') is not None, u.find_spec('opera').origin)")
    numbers, origin = found.split()
    assert numbers == str(borrow) and origin.startswith(str(where))
    found = say("from importlib.metadata import entry_points as e; print({x.name for x in e(group='opera.compilers')})")
    assert "'openvino'" in found


def test_an_environment_that_cannot_be_made_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "")  # no uv

    def fails(step, **_):
        return subprocess.CompletedProcess(step, int("pip" in step), "", PIP)

    monkeypatch.setattr(subprocess, "run", fails)
    with pytest.raises(releases.Unavailable) as raised:
        releases.interpreter("openvino", "onnx", "2099.1")
    assert "openvino 2099.1 cannot be installed" in raised.value.what
    assert "No matching distribution" in raised.value.cause and "pip index versions openvino" in raised.value.fix
    assert not [x for x in releases.folder().iterdir() if x.is_dir()]
