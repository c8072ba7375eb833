"""Where a run's jobs are done: in processes of this machine, or on the nodes of a cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

import msgspec

from opera.pool.interface import JobPool
from opera.pool.pool import Pool
from opera.pool.workers import Group
from opera.run import plan
from opera.run.groups import library_of
from opera.store.folders import Files

APART = "OPERA_APART"
"""Environment variable that, at 1, has nodes on the driver's own machine work in folders of their own, as the others do."""


def opened(
    groups: Mapping[str, Group], *, workers: int, cluster: str, store: str, files: Files, say: Callable[[str], None]
) -> JobPool:
    """Return a pool of these groups, on the cluster of that address if one is named.

    Raises NotInstalled, UsageError or NoAnswer where there is no such cluster.
    """
    if not cluster:
        return Pool(groups, workers=workers)
    from opera.cluster.messages import Home
    from opera.cluster.on_ray import RayMachines
    from opera.cluster.parcels import Store
    from opera.cluster.pool import ClusterPool

    place = Store(store) if store else None
    if place is not None:
        place.check()
    apart = os.environ.get(APART) == "1"
    machines = RayMachines(cluster, workers=workers, store=store, home=None if apart else Home.of(files.file("")))
    return ClusterPool({**groups, **made_here(groups)}, files=files, machines=machines, store=place, say=say)


def made_here(groups: Mapping[str, Group]) -> dict[str, Group]:
    """Return the groups of libraries as they do jobs only where tests are made as they are made here."""
    found = {}
    for name, group in groups.items():
        library = library_of(name)
        if library and group.identity is not None:
            identity = msgspec.structs.replace(group.identity, expected=plan.exporter_id(library))
            found[name] = msgspec.structs.replace(group, identity=identity)
    return found
