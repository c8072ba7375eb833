"""A wheel built from the repository works where the repository is not."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

COMPILERS = ("onnxruntime", "openvino", "tvm")
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
    assert not [name for name in names if name.startswith(("tests/", "results/"))]


def test_it_works_installed_elsewhere(wheel, tmp_path):
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

    def run(*arguments: object) -> str:
        done = subprocess.run(
            [sys.executable, "-c", code, site, *map(str, arguments)], capture_output=True, text=True, cwd=tmp_path
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    table = " ".join(run("doctor").split())
    for name in COMPILERS:
        assert re.search(rf"ok .*{name}-onnx .*planted wrong answer is caught", table), table
    assert not (tmp_path / "results").exists()
    run("extract", "onnx")
    run("prioritize")
    run("run", "--compiler", "onnxruntime", "--operator", "Reduce*")
    run("report", "--format", "html", "--output", "report.html")
    assert "ReduceSum" in (tmp_path / "report.html").read_text()
