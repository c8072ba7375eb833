"""Opening the pool of a cluster, by its address."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from opera.cluster.messages import Home
from opera.cluster.on_ray import RayMachines
from opera.cluster.parcels import Store
from opera.cluster.pool import ClusterPool
from opera.pool.workers import Group
from opera.store.folders import Files

APART = "OPERA_APART"
"""Environment variable that, at 1, has nodes on the driver's own machine work in folders of their own, as the others do."""


def opened(
    groups: Mapping[str, Group],
    address: str,
    *,
    workers: int,
    files: Files,
    say: Callable[[str], None],
    store: str = "",
) -> ClusterPool:
    """Return a pool of these groups on a cluster; see docs/cluster.md.

    Args:
        groups, files, say: As of opera.cluster.pool.ClusterPool.
        address, store: As of opera.cluster.on_ray.RayMachines.
        workers: Processes at a time on each node, 0 for as many as it has CPUs.

    Raises NotInstalled, UsageError or NoAnswer where there is no such cluster.
    """
    place = Store(store) if store else None
    if place is not None:
        place.check()
    home = None if os.environ.get(APART) == "1" else Home.of(files.file(""))
    machines = RayMachines(address, workers=workers, store=store, home=home)
    return ClusterPool(groups, files=files, machines=machines, store=place, say=say)
