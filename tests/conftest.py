"""Fixtures that all tests share."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from opera.store.workspace import Workspace

sys.path.insert(0, str(Path(__file__).parent))  # for `strategies`, under --import-mode=importlib

settings.register_profile("opera", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("opera")  # both look at the clock, which other work on the machine moves on

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell starts jobs in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)

LONGEST = (
    "integration/test_wheel", "integration/test_pipeline", "integration/test_command", "integration/test_keras",
    "benchmark/test_live", "compilers/test_torch_frontends", "integration/", "compilers/", "faults/", "triage/",
)  # fmt: skip
"""Files whose tests take longest, longest first: begun first, they leave no process of pytest-xdist alone at the end."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Bring the longest files to the front; the order inside a file, and of the others, stays."""

    def place(item: pytest.Item) -> int:
        path = item.path.as_posix()
        return next((place for place, name in enumerate(LONGEST) if f"/tests/{name}" in path), len(LONGEST))

    items.sort(key=place)


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


@pytest.fixture(scope="session")
def extracted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with ONNX's node tests, ranked; not to be written. Processes of pytest-xdist share one."""
    from commands import opera

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
