"""Families of migration sources: what is compared with what. The paper's are human-written tests, DocTer and DeepREL."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cache

from opera import resources
from opera.store.examined import MADE
from opera.store.workspace import Workspace

TESTS = "tests"
"""The family of what people wrote: suites that `sources/*.toml` declare as theirs, and scripts and suites of the user's own."""
COMMAND = "command"
"""The source that `opera record` names."""

Held = Counter[tuple[str, str, tuple[str, ...]]]
"""(library, operator, migration sources) → instances that exactly these sources hold."""


def family(source: str) -> str:
    """Return the family of a source: TESTS, or for all that is not known to be written by people, the source itself."""
    return TESTS if source == COMMAND or source in _suites() else source


def ordered(sources: Iterable[str]) -> tuple[str, ...]:
    """Return the families of sources in the order in which they are shown: TESTS first."""
    return tuple(sorted({family(name) for name in sources}, key=lambda name: (name != TESTS, name)))


def held(workspace: Workspace) -> Held:
    """Count the corpus; the more instances are held by one source alone, the faster."""
    names = _names(workspace)
    if not names:
        return Counter()
    main = names[0]
    # An instance has a provenance, is equipped, or was made of a member: so those that are not looked up here are all held by
    # `main` alone.
    rows = workspace.query(
        f"SELECT library, operator, {_holders(names)} holders, COUNT(*) FROM instances i WHERE i.id IN"
        " (SELECT instance FROM provenances WHERE source != ? UNION SELECT instance FROM equipped"
        f" UNION SELECT instance FROM tests WHERE id IN (SELECT test FROM examined WHERE kind = '{MADE}')) GROUP BY 1, 2, 3",
        (*names, main),
    )
    found: Held = Counter({(row[0], row[1], _decoded(row[2], names)): row[3] for row in rows if row[2]})
    for library, operator, count in workspace.query("SELECT library, operator, COUNT(*) FROM instances GROUP BY 1, 2"):
        found[library, operator, (main,)] += count
    for library, operator, _, count in rows:
        found[library, operator, (main,)] -= count
    return +found


def of_instances(workspace: Workspace, library: str, *, tested: bool = False) -> dict[str, tuple[str, ...]]:
    """Return instance → the families that hold it, of a library's corpus, or only of what was made into tests."""
    names = _names(workspace)
    only = "AND i.id IN (SELECT instance FROM tests)" if tested else ""
    rows = workspace.query(
        f"SELECT i.id, {_holders(names)} FROM instances i WHERE i.library = ? {only}", (*names, library)
    )
    families = {found: ordered(_decoded(found, names)) for found in {row[1] for row in rows if row[1]}}
    return {instance: families[found] for instance, found in rows if found}


@cache
def _suites() -> frozenset[str]:
    files = [path.stem for path in resources.content("sources").glob("*.toml")]
    declared = [suite for file in files for suite in resources.declaration("sources", file)["suites"]]
    return frozenset(suite["name"] for suite in declared if suite.get("people", True))


def _names(workspace: Workspace) -> list[str]:
    """Return all migration sources, the one with most provenances first."""
    return [row[0] for row in workspace.query("SELECT source FROM provenances GROUP BY 1 ORDER BY COUNT(*) DESC, 1")]


def _holders(names: list[str]) -> str:
    """Return SQL, with `names` for parameters, of the numbers of the sources that hold instance i: a name may hold commas."""
    cases = "".join(f" WHEN ? THEN {number}" for number in range(len(names)))
    number = f"CASE source{cases} END" if names else "NULL"
    return f"(SELECT group_concat(DISTINCT {number}) FROM provenances WHERE instance = i.id)"


def _decoded(numbers: str, names: list[str]) -> tuple[str, ...]:
    return tuple(sorted(names[int(number)] for number in numbers.split(",")))
