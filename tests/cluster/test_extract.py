"""An extraction over nodes stores what one of this machine alone stores. The nodes are in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from commands import opera
from nearby import Nearby

from opera.capture.child import Needs, digest_of, has
from opera.cluster import pool as cluster
from opera.cluster.messages import Home
from opera.cluster.pool import ClusterPool
from opera.errors import SourceError
from opera.pool.interface import JobPool
from opera.sources import Request, dispatch, engine
from opera.sources.suites.extract import extraction
from opera.sources.suites.suites import recognise
from opera.store.folders import Folders
from opera.store.workspace import Workspace

pytest.importorskip("onnx")
CASES = "onnx/backend/test/case/node"
ROWS = (
    "SELECT seq, id, library, operator, document FROM instances ORDER BY seq",
    "SELECT * FROM provenances ORDER BY rowid",
    "SELECT * FROM expectations ORDER BY instance",
    "SELECT file, status FROM extraction_files ORDER BY file",
)
CASE = """
import os
import numpy as np
import onnx
from onnx.backend.test.case.base import Base
from onnx.backend.test.case.node import expect

class Thing(Base):
    @staticmethod
    def export() -> None:
        x = np.arange(NUMBER + 1, dtype=np.float32)
        expect(onnx.helper.make_node("Identity", ["x"], ["y"]), [x], [x], name="test_NUMBER")

MORE
"""
Checkout = Callable[[dict[str, str]], Path]


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "LOOK", 0.0)
    monkeypatch.setattr(cluster, "PATIENCE", 0.0)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout of six files, of which one cannot be imported and one kills its process after it has shown an instance."""
    root = tmp_path / "checkout"
    more = {3: "import nowhere", 4: "os.abort()"}
    texts = {f"{CASES}/c{n}.py": CASE.replace("NUMBER", str(n)).replace("MORE", more.get(n, "")) for n in range(6)}
    for name, text in ({f"{CASES}/__init__.py": "", "VERSION_NUMBER": "9.9.9\n"} | texts).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def extracted(root: Path, at: Path, machines: Nearby | None = None) -> list[object]:
    """Extract, here or on machines, and return what is stored."""
    said: list[str] = []

    def spread(files: Folders, workers: int) -> JobPool:
        assert machines is not None
        machines.home = Home.of(files.file("")) if machines.home is not None else None
        return ClusterPool({}, files=files, machines=machines, say=said.append)

    begin = extraction(Request(str(root)), spread=machines is not None)
    with Workspace.open(at, write=True) as workspace:
        assert engine.run(workspace, begin(workspace), workers=1, open=spread if machines else dispatch.local)
        return [workspace.query(sql) for sql in ROWS]


def test_nodes_of_which_one_dies_bring_what_a_local_extraction_brings(checkout: Path, tmp_path: Path) -> None:
    local = extracted(checkout, tmp_path / "local")
    assert len(local[0]) >= 5 and {status for _, status in local[3]} == {"done", "failed-import", "died"}
    machines = Nearby({"a": 1, "b": 1})
    machines.dies_at = {"b": 2}
    assert extracted(checkout, tmp_path / "nodes", machines) == local
    assert "b" not in machines.workers, "it died in the middle"
    assert machines.jobs("a") and machines.jobs("b")


def test_a_node_on_the_drivers_machine_writes_where_the_driver_reads(checkout: Path, tmp_path: Path) -> None:
    machines = Nearby({"a": 1}, home=Home.of(tmp_path))
    assert extracted(checkout, tmp_path / "home", machines) == extracted(checkout, tmp_path / "local")
    assert not any(work.leaves for request in machines.requests["a"] for work in request.work), "nothing moves"


def test_a_node_with_other_test_files_or_another_library_is_left_out(checkout: Path, tmp_path: Path) -> None:
    files = (f"{CASES}/c0.py",)
    needs = Needs("onnx", recognise("onnx").installed, str(checkout), files, digest_of(str(checkout), files))
    assert has(needs)
    (checkout / files[0]).write_text("")
    with pytest.raises(RuntimeError, match=r"the test files in .* are others there"):
        has(needs)
    (checkout / files[0]).unlink()
    with pytest.raises(RuntimeError, match="are not there"):
        has(needs)
    with pytest.raises(RuntimeError, match=r"onnx is .* there, and 0\.1 here"):
        has(Needs("onnx", "0.1"))
    with pytest.raises(RuntimeError, match="not-a-package is not installed there"):
        has(Needs("not-a-package", "1"))


def test_where_no_node_has_the_files_the_error_says_so(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("opera.sources.suites.extract.digest_of", lambda root, files: "another")
    with pytest.raises(SourceError, match="not one of the 6 test files") as caught:
        extracted(checkout, tmp_path / "w", Nearby({"a": 1}))
    assert "are others there" in caught.value.cause


def test_what_a_cluster_is_of_no_use_for_is_refused(tmp_path: Path) -> None:
    for words, what, fix in (
        (("extract", "--cluster", "local", "--source", "docter"), "--source generates inputs", "--workers"),
        (("benchmark", "--cluster", "local"), "runs no tests", "opera run --cluster"),
    ):
        done = opera(*words, "--workspace", tmp_path / "w")
        assert done.returncode == 2 and what in done.stderr and fix in done.stderr
    assert not (tmp_path / "w").exists()
