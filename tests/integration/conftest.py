"""One extraction of ONNX's own suite, made once and copied by each test that needs a filled workspace."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import opera

pytest.importorskip("onnx")


@pytest.fixture(scope="session")
def extracted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with ONNX's node tests, ranked; not to be written."""
    root = tmp_path_factory.mktemp("extracted") / "workspace"
    for command in (["extract", "onnx"], ["prioritize"]):
        done = opera(*command, "--workspace", root)
        assert done.returncode == 0, done.stderr
    return root


@pytest.fixture
def filled(extracted: Path, tmp_path: Path) -> Callable[[], Path]:
    """Make a copy of the extracted workspace."""

    def copy() -> Path:
        return Path(shutil.copytree(extracted, tmp_path / f"copy{len(list(tmp_path.iterdir()))}"))

    return copy
