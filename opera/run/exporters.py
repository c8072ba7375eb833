"""Exported files that compute something else than the library: whose frontend shows that, and which tests it is to run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

import msgspec

from opera import compilers
from opera.programs.verdicts import UNEXPORTED
from opera.run.plan import InstalledFrontend, Item, Lookup
from opera.store import verdicts
from opera.store.workspace import Workspace

WRONG = "WrongExport"
"""Symptom of a file that computes something else in its own runtime (opera.libraries.exported)."""


def wrong(
    workspace: Workspace, frontends: Mapping[str, InstalledFrontend], items: Lookup
) -> dict[tuple[str, str], list[Item]]:
    """Return (compiler, library) of exporters → items of other frontends, one a test, whose route a wrong export closed."""
    found: dict[tuple[str, str], dict[str, Item]] = defaultdict(dict)
    for verdict in verdicts.of_kind(workspace, UNEXPORTED):
        target = frontends.get(verdict.frontend)
        if target is None or verdict.environment != target.environment or verdict.outcome.symptom != WRONG:
            continue
        item = items.get(verdict.frontend, verdict.test)
        if item is None:
            continue
        artefact = next((x.artefact for x in target.variants if x.name == verdict.variant), "")
        for compiler in makers(target.library, artefact):
            found[compiler, target.library][verdict.test] = item
    return {pair: list(tests.values()) for pair, tests in found.items()}


def makers(library: str, artefact: str) -> list[str]:
    """Return the compilers whose frontend for a library is the exporter of an artefact."""
    named = [name for name in compilers.registered() if library in compilers.get(name).FRONTENDS]
    return [name for name in named if getattr(compilers.frontend(name, library), "MAKES", None) == artefact]


def items(found: list[Item], target: InstalledFrontend) -> Iterator[Item]:
    """Yield the items of the same tests on an exporter's frontend."""
    for item in found:
        yield msgspec.structs.replace(item, frontend=target, variant=0, alone=False)
