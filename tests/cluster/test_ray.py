"""The real thing: Ray clusters of several nodes on this machine, the real command, and nodes and drivers that are killed."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import opera
from leftovers import Watched

pytest.importorskip("onnxruntime")
pytest.importorskip("ray")
pytestmark = [pytest.mark.full, pytest.mark.timeout(1200)]
RUN = ["run", "--compiler", "onnxruntime", "--operator", "R*", "--no-reduce"]
"""Some 180 node tests."""
ROWS = "SELECT test, frontend, variant, environment, verdict, finding, confirmation FROM verdicts ORDER BY 1, 2, 3"
NODE: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 80 << 20}


def rows(root: Path, sql: str = ROWS) -> list[tuple[object, ...]]:
    with sqlite3.connect(root / "opera.sqlite") as database:
        return database.execute(sql).fetchall()


@pytest.fixture(scope="module")
def extracted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("extracted") / "workspace"
    assert opera("extract", "onnx", "--workspace", root).returncode == 0
    return root


@pytest.fixture(scope="module")
def local(extracted: Path) -> Path:
    """What a run of this machine alone stores."""
    root = extracted.parent / "local"
    shutil.copytree(extracted, root)
    done = opera(*RUN, "--workers", "2", "--workspace", root)
    assert done.returncode == 0, done.stderr
    return root


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], Any]]:
    """A function that starts a cluster of so many nodes; each has a temporary folder of its own."""
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_worker_niceness", "0")
    monkeypatch.setenv("OPERA_APART", "1")  # as on machines of their own
    monkeypatch.setenv("RAY_TMPDIR", f"/tmp/opera-ray-{os.getpid()}")  # sockets' paths are limited to 107 bytes
    started: list[Any] = []

    def start(nodes: int) -> Any:
        made = Cluster()
        started.append(made)
        for number in range(nodes):
            add(made, tmp_path / f"node{number}")
        made.wait_for_nodes()
        return made

    yield start
    for made in started:
        made.shutdown()
    shutil.rmtree(f"/tmp/opera-ray-{os.getpid()}", ignore_errors=True)


def add(cluster: Any, place: Path) -> Any:
    place.mkdir()
    return cluster.add_node(**NODE, env_vars={"TMPDIR": str(place)})


def begun(root: Path, count: int, process: subprocess.Popen[str]) -> None:
    """Wait until so many verdicts are stored."""
    while process.poll() is None and len(rows(root)) < count:
        time.sleep(0.02)
    assert process.poll() is None, "it ended before"


def ended(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate()
    assert process.returncode == 0, out + err
    assert "Traceback" not in err, err
    return out + err


def made_tests(root: Path) -> dict[str, bytes]:
    """Return the files of all tests; of exports, which tell how long they took, the names."""
    places = [x for x in root.glob("tests/*/*/*") if x.is_file()]
    return {str(x.relative_to(root)): b"" if x.name.startswith("export-") else x.read_bytes() for x in places}


def left(tmp_path: Path) -> list[str]:
    """Return the folders of opera's that are left on any node; what ends has a while for it."""
    for _ in range(200):
        found = [str(x) for x in tmp_path.glob("node*/opera-*")]
        if not found:
            break
        time.sleep(0.1)
    return found


def workers_left(tmp_path: Path) -> list[int]:
    """Return the processes of pools that are left on any node; what ends has a while for it."""
    for _ in range(200):
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                is_pool = b"opera.pool.forkserver" in (entry / "cmdline").read_bytes()
                if is_pool and f"TMPDIR={tmp_path}/node".encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
        if not found:
            break
        time.sleep(0.1)
    return found


def test_a_node_that_is_killed_takes_nothing_with_it(
    cluster: Any, tmp_path: Path, extracted: Path, local: Path
) -> None:
    made = cluster(3)
    root, watched = tmp_path / "workspace", Watched(tmp_path / "driver")
    shutil.copytree(extracted, root)
    process = watched.start(*RUN, "--cluster", made.address, "--workspace", root)
    begun(root, 30, process)
    made.remove_node(made.list_all_nodes()[1], allow_graceful=False)
    said = ended(process)
    assert "is lost" in said and "jobs of it are done elsewhere" in said
    assert said.count("does 1 jobs at a time") == 3
    assert rows(root) == rows(local)
    assert made_tests(root) == made_tests(local), "the driver's workspace has every test"
    assert not watched.left(20)


def test_a_driver_that_is_killed_is_resumed(cluster: Any, tmp_path: Path, extracted: Path, local: Path) -> None:
    made = cluster(2)
    root, watched = tmp_path / "workspace", Watched(tmp_path / "driver")
    shutil.copytree(extracted, root)
    process = watched.start(*RUN, "--cluster", made.address, "--workspace", root)
    begun(root, 20, process)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    before = rows(root)
    assert 20 <= len(before) < len(rows(local))
    assert workers_left(tmp_path) == [], "the nodes' processes end with the driver"
    said = ended(watched.start(*RUN, "--cluster", made.address, "--store", tmp_path / "store", "--workspace", root))
    counted = next(line for line in said.splitlines() if line.startswith("onnxruntime-onnx: "))
    done = {row[0] for row in rows(root) if row not in before}  # tests are counted, and some have several variants
    assert sum(map(int, re.findall(r"\d+", counted))) == len(done), "what was stored is not done again"
    assert rows(root) == rows(local)
    assert list((tmp_path / "store").glob("??/*")), "the second time by a folder that all nodes see"
    assert left(tmp_path) == []


def test_a_node_that_joins_late_does_its_share(cluster: Any, tmp_path: Path, extracted: Path, local: Path) -> None:
    made = cluster(1)
    root, watched = tmp_path / "workspace", Watched(tmp_path / "driver")
    shutil.copytree(extracted, root)
    process = watched.start(*RUN, "--cluster", made.address, "--workspace", root)
    begun(root, 5, process)
    add(made, tmp_path / "late")
    said = ended(process)
    assert said.count("does 1 jobs at a time") == 2
    assert rows(root) == rows(local)


def test_an_extraction_loses_nothing_with_a_node_that_is_killed(cluster: Any, tmp_path: Path, extracted: Path) -> None:
    made = cluster(3)
    root, watched = tmp_path / "workspace", Watched(tmp_path / "driver")
    process = watched.start("extract", "onnx", "--cluster", made.address, "--workspace", root)
    while process.poll() is None and not ((root / "opera.sqlite").is_file() and len(files(root)) > 8):
        time.sleep(0.02)
    assert process.poll() is None, "it ended before"
    made.remove_node(made.list_all_nodes()[1], allow_graceful=False)
    said = ended(process)
    assert "is lost" in said and said.count("does 1 jobs at a time") == 3
    for sql in (
        "SELECT seq, id, library, operator, document FROM instances ORDER BY seq",
        "SELECT * FROM provenances ORDER BY rowid",
        "SELECT * FROM expectations ORDER BY instance",
        "SELECT file, status FROM extraction_files ORDER BY file",
    ):
        assert rows(root, sql) == rows(extracted, sql)
    assert not watched.left(20)


def files(root: Path) -> list[tuple[object, ...]]:
    """Return the files of suites that are done; none while the workspace is being made."""
    with contextlib.suppress(sqlite3.OperationalError):
        return rows(root, "SELECT file FROM extraction_files")
    return []


def test_a_cluster_of_this_machine_alone(tmp_path: Path, extracted: Path, local: Path) -> None:
    root, watched = tmp_path / "workspace", Watched(tmp_path / "driver")
    shutil.copytree(extracted, root)
    said = ended(watched.start(*RUN, "--cluster", "local", "--workers", "2", "--workspace", root))
    assert said.count("does 2 jobs at a time") == 1
    assert rows(root) == rows(local)
    assert not watched.left(20)
