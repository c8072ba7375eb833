"""What any reference runs of what schemas admit: calls of the workspace are changed until one is at a point, and asked about.

References run in library-side workers, for some of what they are asked ends a process. Nothing is stored.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping

from opera.libraries import Point
from opera.pool.pool import Pool
from opera.pool.workers import DONE
from opera.programs.program import Instance, parse
from opera.run.groups import library_group
from opera.run.library_side import ProbeRequest
from opera.store.folders import Folders
from opera.store.workspace import Workspace

CALLS = 4
"""Calls of an operator that are changed: the smallest ones, each of other types of inputs or other attributes given."""
LARGEST = 1 << 16
"""Bytes of a call's document; a larger one is not changed."""
POINTS = 20
"""Points of an operator that one job is asked about."""
SECONDS = 120.0
"""What such a job may take; what ends or hangs one is asked about point by point."""


def calls(workspace: Workspace, library: str) -> dict[str, list[bytes]]:
    """Return operator → documents of calls that may be changed, the smallest first."""
    smallest: dict[str, dict[object, bytes]] = defaultdict(dict)
    for _, _, document, _ in workspace.documents(library):
        if (
            len(document) <= LARGEST
            and isinstance(program := parse(document), Instance)
            and "body" not in program.context
        ):
            values = ((x.name, getattr(x.value, "dtype", type(x.value)), x.value is None) for x in program.inputs)
            key = (tuple(values), tuple(sorted(program.params)))
            known = smallest[program.operator].get(key)
            if known is None or len(document) < len(known):
                smallest[program.operator][key] = document
    return {operator: sorted(found.values(), key=len)[:CALLS] for operator, found in smallest.items()}


def probe(
    workspace: Workspace, library: str, points: Mapping[str, Iterable[Point]], *, workers: int
) -> tuple[set[Point], list[Point]]:
    """Return the points, given by operator, at which a reference runs something, and those at which it died or hung."""
    of = calls(workspace, library)
    files, group = Folders.of(workspace.root), f"library {library}"
    found: set[Point] = set()
    lost: list[Point] = []
    with Pool({group: library_group(library, files)}, workers=workers) as pool:

        def submit(operator: str, some: list[Point]) -> None:
            request = ProbeRequest(library, some, of[operator])
            pool.submit(group, request, seconds=SECONDS, call="opera.run.library_side:probe", tag=(operator, some))

        for operator in sorted(points):
            mine = sorted(points[operator], key=lambda x: (x.kind, x.name, x.value))
            if operator in of:
                for at in range(0, len(mine), POINTS):
                    submit(operator, mine[at : at + POINTS])
        for result in pool.results():
            operator, some = result.tag
            if result.status == DONE:
                found.update(result.decode(list[Point]))
            elif len(some) > 1:
                for point in some:
                    submit(operator, [point])
            else:
                lost += some
                last = (result.message.strip().splitlines() or [result.exit])[-1]
                print(
                    f"{some[0].operator} {some[0].name} {some[0].value}: {result.status} {last[:200]}", file=sys.stderr
                )
    return found, lost
