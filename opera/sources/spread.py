"""Extractions over many machines: capture children are workers of the pool of a cluster."""

from __future__ import annotations

import sys

from opera.pool.interface import JobPool
from opera.sources.dispatch import Open
from opera.store.folders import Folders


def over(address: str) -> Open:
    """Return what opens the pool of the cluster of that address (docs/cluster.md); the driver alone has the workspace."""

    def open(files: Folders, workers: int) -> JobPool:
        from opera.cluster import opening

        return opening.opened({}, address, workers=workers, files=files, say=lambda text: print(text, file=sys.stderr))

    return open
