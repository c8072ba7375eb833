"""What rows of a table are wanted, and what that comes to in a workspace: a name that it does not know is an error."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import msgspec

from opera.errors import UsageError
from opera.programs.program import matches
from opera.store import tables as stored
from opera.store.tables import Place
from opera.store.workspace import Workspace

Names: TypeAlias = str | Iterable[str] | None
"""One, several, or all (None)."""


class Query(msgspec.Struct, frozen=True):
    """The rows that are wanted: those that have one of each; None takes all.

    Attributes:
        operators: Globs; of a program of several calls, one operator is enough.
        environments: Ids; None takes all but those that a later run superseded, as reports do.
        details: Whether columns are wanted that take longer.
    """

    frontends: tuple[str, ...] | None = None
    libraries: tuple[str, ...] | None = None
    operators: tuple[str, ...] | None = None
    statuses: tuple[str, ...] | None = None
    environments: tuple[str, ...] | None = None
    details: bool = False


def query(
    *,
    frontend: Names = None,
    library: Names = None,
    operator: Names = None,
    status: Names = None,
    environment: Names = None,
    details: bool = False,
) -> Query:
    """Make a query of what a caller gives."""
    return Query(_names(frontend), _names(library), _names(operator), _names(status), _names(environment), details)


def _names(given: Names) -> tuple[str, ...] | None:
    return given if given is None else (given,) if isinstance(given, str) else tuple(given)


def places(workspace: Workspace, query: Query, table: str = "verdicts") -> list[Place]:
    """Return the frontends and environments that are wanted. Raises UsageError for one that the workspace does not know."""
    known, documents = stored.places(workspace, table), workspace.environments()
    _check(workspace, "frontend", query.frontends, {x.frontend for x in known})
    _check(workspace, "environment", query.environments, {x.environment for x in known})
    wanted = libraries(workspace, query)
    superseded = set() if query.environments is not None else workspace.superseded()
    return [
        x for x in known
        if (query.frontends is None or x.frontend in query.frontends)
        and (query.environments is None or x.environment in query.environments)
        and (wanted is None or documents[x.environment]["library"] in wanted)
        and x.environment not in superseded
    ]  # fmt: skip


def libraries(workspace: Workspace, query: Query) -> tuple[str, ...] | None:
    """Return the libraries that are wanted, None for all. Raises UsageError for one that the corpus does not have."""
    if query.libraries is not None:
        _check(workspace, "library", query.libraries, workspace.libraries())
    return query.libraries


def rankings(workspace: Workspace, query: Query) -> list[tuple[str, str]]:
    """Return (library, compiler) of the rankings that are wanted. Raises UsageError for a frontend without one."""
    known = {f"{compiler}-{library}": (library, compiler) for library, compiler in stored.rankings(workspace)}
    _check(workspace, "ranking for", query.frontends, known)
    wanted = libraries(workspace, query)
    return [
        at for name, at in known.items()
        if (query.frontends is None or name in query.frontends) and (wanted is None or at[0] in wanted)
    ]  # fmt: skip


def operators(workspace: Workspace, query: Query) -> list[str] | None:
    """Return the operators that are wanted, None for all. Raises UsageError for a glob that nothing matches."""
    if query.operators is None:
        return None
    known = sorted({name for _, name in stored.operators(workspace)})
    found: set[str] = set()
    for pattern in query.operators:
        fitting = {name for name in known if matches(name, pattern)}
        if not fitting:
            raise UsageError(
                f"no operator in {workspace.root} is called {pattern!r}",
                cause="a spelling mistake, or nothing of it was extracted",
                fix=f"patterns are globs, as 'Conv*'; there are {_some(known)}",
            )
        found |= fitting
    return sorted(found)


def statuses(query: Query, known: Sequence[str]) -> tuple[str, ...] | None:
    """Return the statuses that are wanted, None for all. Raises UsageError for one that is not known."""
    for name in query.statuses or ():
        if name not in known:
            raise UsageError(f"there is no status {name!r}", fix=f"choose from {', '.join(known)}")
    return query.statuses


def _check(workspace: Workspace, what: str, given: Iterable[str] | None, known: Iterable[str]) -> None:
    for name in given or ():
        if name not in known:
            raise UsageError(
                f"there is no {what} {name!r} in {workspace.root}",
                cause="a spelling mistake, or it was not run yet",
                fix=f"there are {_some(sorted(known))}" if known else "run `opera run` first",
            )


def _some(names: Sequence[str], most: int = 12) -> str:
    """Return some of the names."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} others" if len(names) > most else "")
