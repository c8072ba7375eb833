"""Verified relations between operators, and how a workspace stores them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from opera.sources.deeprel.plans import LEAST, Pair, Tried, supported
from opera.store import runs
from opera.store.relations import SOURCE, STATUS, VALUE, candidates
from opera.store.workspace import Workspace

VERIFY = "verify "
"""How the names of extraction files begin that hold what became of an operator's candidates."""


class Relation(msgspec.Struct, frozen=True):
    """A verified relation: what the source is called with, the target can be called with.

    Attributes:
        kind: `value`: both return the same; `status`: both return.
        pair: Operators and how arguments are matched; its `relation` is `kind`.
        agreed, tried: Invocations on which both returned the same (more than zeros), of those tried.
        example: Id of an instance of the source on which they agree (on which both return).
    """

    kind: str
    pair: Pair
    agreed: int
    tried: int
    example: str


def key(library: str, version: str, candidates: str = "") -> str:
    """Return the identity of an extraction; `candidates` names a list of others than opera's own."""
    return f"{SOURCE} on {library} {version}" + (f" with the candidates of {candidates}" if candidates else "")


def verified(outcomes: Iterable[Tried]) -> list[Relation]:
    """Return the relations that hold: of all outcomes of both directions, none speaks against it.

    Values that differ in one direction refute equal values in both; what one direction refuses does not
    concern the other, for the one operator may take less than the other.
    """
    known = {(x.pair.source, x.pair.target): x for x in outcomes}
    found = []
    for (source, target), outcome in known.items():
        kind = supported(outcome)
        back = known.get((target, source))
        if kind == VALUE and back is not None and back.differed:
            kind = STATUS if not outcome.excused and outcome.tried >= LEAST else ""
        if kind:
            pair = msgspec.structs.replace(outcome.pair, relation=kind)
            shown = outcome.examples.get("agreed") or outcome.examples.get("differed") or outcome.examples["hollow"]
            found.append(Relation(kind, pair, outcome.agreed, outcome.tried, shown[0]))
    return sorted(found, key=lambda x: (x.kind != VALUE, x.pair.source, x.pair.target))


def pairs(relations: Iterable[Relation]) -> dict[tuple[str, str], str]:
    """Return unordered pair → its best relation."""
    found: dict[tuple[str, str], str] = {}
    for relation in relations:
        one, other = sorted((relation.pair.source, relation.pair.target))
        if found.get((one, other)) != VALUE:
            found[one, other] = relation.kind
    return found


def stored(workspace: Workspace, extraction: str, operator: str = "") -> Iterator[Tried]:
    """Yield what an extraction found about candidates: about all, or about those of an operator and where it is one."""
    for document in candidates(workspace, extraction, operator):
        yield msgspec.json.decode(document, type=Tried)


def about(workspace: Workspace, library: str, operator: str) -> list[Relation]:
    """Return an operator's relations, those of opera's own candidates and of lists; newer versions of the library win."""
    extractions = runs.extractions(workspace, f"{SOURCE} on {library} ")
    found = verified(outcome for name in extractions for outcome in stored(workspace, name, operator))
    return [x for x in found if operator in (x.pair.source, x.pair.target)]
