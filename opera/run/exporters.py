"""Whose failures of the library close a route: which frontends show them, and which tests they are to run.

These are exported files that compute something else than the library, and functions of its that a compiler works with
(Frontend.BEFORE) and that fail.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

import msgspec

from opera import compilers
from opera.programs.verdicts import UNEXPORTED
from opera.run.plan import InstalledFrontend, Item, Lookup
from opera.store import verdicts
from opera.store.rows import Verdict
from opera.store.workspace import Workspace

WRONG = "WrongExport"
"""Symptom of a file that computes something else in its own runtime (opera.libraries.exported)."""


def wrong(
    workspace: Workspace, frontends: Mapping[str, InstalledFrontend], items: Lookup
) -> dict[tuple[str, str], list[Item]]:
    """Return (compiler, library) of what is at fault → items of other frontends, one a test, whose route that closed."""
    found: dict[tuple[str, str], dict[str, Item]] = defaultdict(dict)
    for verdict in verdicts.of_kind(workspace, UNEXPORTED):
        target = frontends.get(verdict.frontend)
        if target is None or verdict.environment != target.environment:
            continue
        item = items.get(verdict.frontend, verdict.test)
        if item is None:
            continue
        for compiler in _at_fault(verdict, target):
            found[compiler, target.library][verdict.test] = item
    return {pair: list(tests.values()) for pair, tests in found.items()}


def _at_fault(verdict: Verdict, target: InstalledFrontend) -> list[str]:
    if asked := verdict.outcome.details.get("asked"):
        return testers(target.library, asked)
    if verdict.outcome.symptom != WRONG:
        return []
    return makers(target.library, next((x.artefact for x in target.variants if x.name == verdict.variant), ""))


def makers(library: str, artefact: str) -> list[str]:
    """Return the compilers whose frontend for a library is the exporter of an artefact."""
    return [x for x in _of(library) if getattr(compilers.frontend(x, library), "MAKES", None) == artefact]


def testers(library: str, module: str) -> list[str]:
    """Return the compilers whose frontend for a library tests a module of it."""
    return [x for x in _of(library) if module in getattr(compilers.frontend(x, library), "TESTS", ())]


def _of(library: str) -> list[str]:
    return [name for name in compilers.registered() if library in compilers.get(name).FRONTENDS]


def items(found: list[Item], target: InstalledFrontend) -> Iterator[Item]:
    """Yield the items of the same tests on the frontend that shows what is at fault."""
    for item in found:
        yield msgspec.structs.replace(item, frontend=target, variant=0, alone=False)
