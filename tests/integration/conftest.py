"""One extraction of ONNX's own suite, made once and copied by each test that needs a filled workspace."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import opera

pytest.importorskip("onnx")


@pytest.fixture(scope="session")
def extracted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with ONNX's node tests, ranked; not to be written. Processes of pytest-xdist share one."""
    folder = tmp_path_factory.getbasetemp()
    folder = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
    root = folder / "extracted"
    with (folder / "extracted.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # until it is closed
        if not root.exists():
            making = folder / "extracting"
            shutil.rmtree(making, ignore_errors=True)  # left by one that failed
            for command in (["extract", "onnx"], ["prioritize"]):
                done = opera(*command, "--workspace", making)
                assert done.returncode == 0, done.stderr
            making.rename(root)
    return root


@pytest.fixture
def filled(extracted: Path, tmp_path: Path) -> Callable[[], Path]:
    """Make a copy of the extracted workspace."""

    def copy() -> Path:
        return Path(shutil.copytree(extracted, tmp_path / f"copy{len(list(tmp_path.iterdir()))}"))

    return copy
