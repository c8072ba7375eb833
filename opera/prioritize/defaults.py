"""Operators' defaults, asked of the library where the workspace does not have them yet."""

from __future__ import annotations

from collections.abc import Collection

from opera import libraries
from opera.prioritize.subspaces import Defaults
from opera.store import defaults as stored
from opera.store.workspace import Workspace


def of(workspace: Workspace, name: str, operators: Collection[str]) -> Defaults:
    """Return operator → parameter → default, without operators that the library does not have; what is new is stored."""
    library = libraries.get(name)
    exporter = stored.version(name, library.exporter())
    found = stored.known(workspace, name, exporter)
    if missing := [x for x in operators if x not in found]:
        asked = library.equipped_defaults(missing)
        found |= {x: asked.get(x) for x in missing}
        stored.save(workspace, name, exporter, {x: stored.encode(asked[x]) if x in asked else None for x in missing})
    return {x: known for x in operators if (known := found[x]) is not None}
