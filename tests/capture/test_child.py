"""How a capture child runs a file by pytest."""

from __future__ import annotations

from pathlib import Path

import pytest

from opera.capture import child
from opera.capture.recorder import Recorder

LOOKED = """
from pathlib import Path

def pytest_ignore_collect(collection_path):
    with Path(__file__).with_name("looked").open("a") as file:
        print(collection_path.name, file=file)
"""
COLLECTED = """
def test_nothing():
    pass
"""


@pytest.mark.parametrize("arguments", [(), ("--noconftest",)])
def test_where_no_conftest_is_read_no_folder_above_the_file_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.syspath_prepend(tmp_path)
    name = f"looking{len(arguments)}"
    (tmp_path / f"{name}.py").write_text(LOOKED)
    package = tmp_path / "package" / "inner"
    package.mkdir(parents=True)
    (tmp_path / "package" / "beside").mkdir()
    (package / f"{name}_test.py").write_text(COLLECTED)
    file = f"package/inner/{name}_test.py"
    hooks = child.Hooks("x", "x", {})
    job = child.Job(
        hooks=hooks, kind="pytest", root=str(tmp_path), file=file, spool="", arguments=("-p", name, *arguments)
    )
    assert child._run_pytest(job, Recorder("x")) == ("done", "", 1, 0)
    looked = tmp_path / "looked"
    assert (looked.is_file() and "beside" in looked.read_text().split()) == (not arguments)
