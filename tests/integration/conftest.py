"""Copies of one extraction of ONNX's own suite (tests/conftest.py makes it) for tests that need a filled workspace."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("onnx")


@pytest.fixture
def filled(extracted: Path, tmp_path: Path) -> Callable[[], Path]:
    """Make a copy of the extracted workspace."""

    def copy() -> Path:
        return Path(shutil.copytree(extracted, tmp_path / f"copy{len(list(tmp_path.iterdir()))}"))

    return copy
