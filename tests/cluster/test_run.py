"""A whole run over nodes stores what a run of this machine alone stores; what `--cluster` says where it cannot."""

from __future__ import annotations

import shutil
import socket
import sys
from pathlib import Path

import pytest
from faults.onnx_faults import Silent, relu
from nearby import Nearby

from opera.cluster import pool as cluster
from opera.cluster.on_ray import RayMachines
from opera.cluster.pool import ClusterPool
from opera.errors import NoAnswer, NotInstalled, UsageError
from opera.programs.verdicts import Limits
from opera.run import driver
from opera.run.groups import groups
from opera.run.pools import made_here
from opera.store.workspace import Workspace

COMPILERS = [f"faults.onnx_faults:{name}" for name in ("wrong_value", "segfault")]
ROWS = "SELECT test, frontend, variant, environment, verdict, finding, confirmation FROM verdicts ORDER BY 1, 2, 3"


def test_a_run_over_nodes_of_which_one_dies_stores_what_a_local_run_stores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnx")
    monkeypatch.setattr(cluster, "LOOK", 0.0)
    with Workspace.open(tmp_path / "local", write=True) as workspace:
        workspace.add_captured([relu(n, "Relu") for n in range(8)] + [relu(n, "LeakyRelu") for n in range(2)])
    shutil.copytree(tmp_path / "local", tmp_path / "nodes")
    options = driver.Options(compilers=tuple(COMPILERS), workers=1, limits=Limits(20.0))
    machines = Nearby({"a": 1, "b": 1})
    machines.dies_at = {"b": 6}
    rows, made = [], []
    for name in ("local", "nodes"):
        with Workspace.open(tmp_path / name, write=True) as workspace:
            if name == "local":
                summary = driver.run(workspace, options, Silent())
            else:
                needed = groups([(x, "onnx") for x in COMPILERS], ["onnx"], lambda _: "", workspace.files)
                with ClusterPool({**needed, **made_here(needed)}, files=workspace.files, machines=machines) as pool:
                    summary = driver.run(workspace, options, Silent(), pool)
            assert not summary.lost and len(summary.new_findings) == 2
            rows.append(workspace.query(ROWS))
            made.append({x.relative_to(workspace.root): x.read_bytes() for x in workspace.root.glob("tests/*/*/*")})
    assert rows[0] == rows[1] and len(rows[0]) == 20
    assert made[0] == made[1]
    assert "b" not in machines.workers, "it died in the middle"


def test_without_ray_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(NotInstalled, match="--cluster needs Ray") as caught:
        RayMachines("local")
    assert 'pip install "opera[cluster]"' in caught.value.fix


def test_a_cluster_that_is_not_there_is_told_in_a_moment() -> None:
    pytest.importorskip("ray")
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # nobody listens
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        for where in (address, f"ray://{address}"):
            with pytest.raises(NoAnswer, match="cannot be reached") as caught:
                RayMachines(where)
            assert "ray start --head" in caught.value.fix
    for where in ("nowhere", "host:", ":6379"):
        with pytest.raises(UsageError, match="no address of a cluster"):
            RayMachines(where)
