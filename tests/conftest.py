"""Fixtures that all tests share."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from opera.workspace import Workspace

sys.path.insert(0, str(Path(__file__).parent))  # for `strategies`, under --import-mode=importlib


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    """An empty workspace, open for writing."""
    with Workspace.open(tmp_path / "workspace", write=True) as opened:
        yield opened


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The published data of the OPERA artifact, where it is there."""
    folder = Path(os.environ.get("OPERA_SHARED_DATA", Path(__file__).parents[2] / "shared" / "data")) / "opera-artifact"
    if not folder.is_dir():
        pytest.skip("the published data of the OPERA artifact is not here (set OPERA_SHARED_DATA)")
    return folder
