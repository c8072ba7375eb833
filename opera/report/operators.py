"""What is known of one operator, for `opera show`: where its instances come from, what it is related to, how it fares."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

import msgspec

from opera.store import instances, verdicts
from opera.store.workspace import COMBINED, Workspace


class Related(msgspec.Struct, frozen=True):
    """A verified relation to another operator (opera.sources.deeprel.relations).

    Attributes:
        operator: The other one.
        kind: `value` or `status`.
        agreed, tried: Invocations on which both returned the same, of those tried; of the direction that was tried more.
    """

    operator: str
    kind: str
    agreed: int
    tried: int


class Operator(msgspec.Struct, frozen=True):
    """An operator of one library.

    Attributes:
        instances: Source → instances.
        related: Equal values first, then by name.
        tests: For each environment, frontend with the compiler's version, and verdict → tests, by the worst over variants.
    """

    library: str
    name: str
    instances: Mapping[str, int]
    related: list[Related]
    tests: list[tuple[str, dict[str, int]]]


def operators(workspace: Workspace, name: str) -> list[Operator]:
    """Return the operator of that name, of every library that has one."""
    found = []
    for library in workspace.libraries():
        counts = instances.by_source(workspace, library, name)
        if counts:
            related = _related(workspace, library, name)
            found.append(Operator(library, name, counts, related, _tests(workspace, library, name)))
    return found


def _related(workspace: Workspace, library: str, name: str) -> list[Related]:
    """Return the verified relations, in either direction."""
    from opera.sources.deeprel import relations
    from opera.store.relations import VALUE

    best: dict[str, Related] = {}
    for x in relations.about(workspace, library, name):
        other = x.pair.target if x.pair.source == name else x.pair.source
        made = Related(other, x.kind, x.agreed, x.tried)
        known = best.get(other)
        if known is None or (made.kind == VALUE, made.tried) > (known.kind == VALUE, known.tried):
            best[other] = made
    return sorted(best.values(), key=lambda x: (x.kind != VALUE, x.operator))


def _tests(workspace: Workspace, library: str, name: str) -> list[tuple[str, dict[str, int]]]:
    rank = {verdict: place for place, verdict in enumerate(COMBINED)}
    superseded = workspace.superseded()
    versions = {
        key: str(document["version"]) for key, document in workspace.environments().items() if key not in superseded
    }
    worst: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    for frontend, environment, test, verdict in verdicts.of_operator(workspace, library, name):
        if environment in versions:
            held = worst[frontend, environment]
            held[test] = min(held.get(test, verdict), verdict, key=lambda x: rank[x])
    return [
        (f"{frontend} {versions[environment]}", dict(Counter(held.values()).most_common()))
        for (frontend, environment), held in sorted(worst.items())
    ]
