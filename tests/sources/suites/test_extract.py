from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from opera.errors import SourceError
from opera.sources import Request, engine
from opera.sources.suites.extract import extraction
from opera.sources.suites.suites import recognise
from opera.store.workspace import Workspace

from .conftest import CASES, GOOD

Checkout = Callable[[dict[str, str]], Path]


def run(root: Path, at: Path, rerun: bool = False) -> None:
    begin = extraction(Request(str(root)))
    with Workspace.open(at, write=True) as workspace:
        assert engine.run(workspace, begin(workspace), workers=1, rerun=rerun)


def test_versions_that_differ_are_told(checkout: Checkout, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = checkout({f"{CASES}/a.py": GOOD})
    run(root, tmp_path / "one")
    assert f"9.9.9 on {recognise('onnx').installed}: names that" in capsys.readouterr().err
    (root / "VERSION_NUMBER").write_text(recognise("onnx").installed + "+debian")
    run(root, tmp_path / "two")
    assert "names that" not in capsys.readouterr().err


def test_what_is_done_is_passed_over_and_what_is_stored_is_counted(
    checkout: Checkout, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = checkout({f"{CASES}/a.py": GOOD, f"{CASES}/b.py": "import nowhere"})
    run(root, tmp_path / "w")
    out = capsys.readouterr().out
    assert "2 files, 1 tests, 1 captured: 1 new instances" in out and "b.py: failed-import: ModuleNotFoundError" in out
    run(root, tmp_path / "w")
    told = capsys.readouterr()
    assert "1 files were done before" in told.err and "1 files, 0 tests, 0 captured" in told.out
    run(root, tmp_path / "w", rerun=True)
    assert "2 files, 1 tests, 1 captured: 0 new instances" in capsys.readouterr().out


def test_nothing_that_runs_is_an_error(checkout: Checkout, tmp_path: Path) -> None:
    root = checkout({f"{CASES}/a.py": "import nowhere_1", "tests/python/b_test.py": "import nowhere_2"})
    with pytest.raises(SourceError, match="not one of the 2 test files") as caught:
        run(root, tmp_path / "w")
    assert "nowhere_1" in caught.value.cause
