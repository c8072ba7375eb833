"""A wheel built from the repository works where the repository is not."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from opera import compilers

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in ("opera", "instrumentation", "templates", "sources"):
        shutil.copytree(REPOSITORY / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(REPOSITORY / name, source)
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, source],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return next(out.glob("opera-*.whl"))


def test_it_holds_the_content(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    for kind in ("instrumentation/onnx.toml", "sources/onnx.toml", "templates/onnx/script.py.j2"):
        assert f"opera/_content/{kind}" in names
    assert {f"opera/compilers/refusals/{name}.toml" for name in ("onnxruntime", "openvino", "tvm", "torch")} <= set(
        names
    )
    assert not [name for name in names if name.startswith(("tests/", "results/"))]


@pytest.fixture
def run(wheel, tmp_path):
    """Run opera as it is installed from the wheel, elsewhere."""
    site = tmp_path / "site"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", site, wheel], check=True
    )
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import opera; assert opera.__file__.startswith(sys.argv[1]), opera.__file__\n"
        "from opera import resources; assert str(resources.content('sources')).startswith(sys.argv[1])\n"
        "sys.argv[:] = ['opera', *sys.argv[2:]]\n"
        "from opera.cli import main; main()\n"
    )

    def go(*arguments: object) -> str:
        done = subprocess.run(
            [sys.executable, "-c", code, site, *map(str, arguments)], capture_output=True, text=True, cwd=tmp_path
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return go


@pytest.mark.full
def test_every_compiler_is_judged_rightly(run):
    lines = run("doctor").splitlines()
    found = [line.split()[2] for line in lines if re.search(r"^ok +compiler .*planted wrong answer is caught", line)]
    expected = {
        compilers.frontend_name(name, x) for name in compilers.registered() for x in compilers.get(name).FRONTENDS
    }
    assert set(found) == expected, lines


def test_it_works_installed_elsewhere(run, tmp_path):
    table = " ".join(run("doctor", "--compiler", "onnxruntime").split())
    assert re.search(r"ok .*onnxruntime-onnx .*planted wrong answer is caught", table), table
    assert not (tmp_path / "results").exists()
    run("extract", "onnx")
    run("prioritize")
    run("run", "--no-reduce", "--compiler", "onnxruntime", "--operator", "ReduceSum")
    run("report", "--format", "html", "--output", "report.html")
    assert "ReduceSum" in (tmp_path / "report.html").read_text()
