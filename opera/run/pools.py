"""Where a run's jobs are done: in processes of this machine, or on the nodes of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from opera.pool.interface import JobPool
from opera.pool.pool import Pool
from opera.pool.workers import Group
from opera.run import plan
from opera.run.groups import library_of
from opera.store.folders import Files


def opened(
    groups: Mapping[str, Group], *, workers: int, cluster: str, store: str, files: Files, say: Callable[[str], None]
) -> JobPool:
    """Return a pool of these groups, on the cluster of that address if one is named.

    Raises NotInstalled, UsageError or NoAnswer where there is no such cluster.
    """
    if not cluster:
        return Pool(groups, workers=workers)
    from opera.cluster import opening

    whole = {**groups, **made_here(groups)}
    return opening.opened(whole, cluster, workers=workers, store=store, files=files, say=say)


def made_here(groups: Mapping[str, Group]) -> dict[str, Group]:
    """Return the groups of libraries as they do jobs only where tests are made as they are made here."""
    found = {}
    for name, group in groups.items():
        library = library_of(name)
        if library and group.identity is not None:
            identity = msgspec.structs.replace(group.identity, expected=plan.exporter_id(library))
            found[name] = msgspec.structs.replace(group, identity=identity)
    return found
