"""How much of what a library's schemas admit its instances are at: types, classes of attributes' values, optional inputs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import cast

import msgspec

from opera import libraries
from opera.errors import UsageError, near
from opera.libraries import INPUT, TYPE, VALUE, Point, Specified
from opera.programs.program import Instance, parse
from opera.run import probe_schema
from opera.store import tests
from opera.store.families import of_instances
from opera.store.workspace import Workspace

FORMATS = ("terminal", "markdown", "json")
MOST = 50_000
"""Instances that a report looks at: each takes a fifth of a millisecond of the processor."""
KINDS = {TYPE: "types of type variables", VALUE: "attributes' values", INPUT: "optional inputs"}
"""Kind of a point → what such points are, in words."""


class Reach(msgspec.Struct, frozen=True):
    """Points of one kind.

    Attributes:
        admitted: How many the schemas admit.
        runs: At how many of them a reference runs some program: instances of the workspace that nobody rejected are at them, or
            a probe showed it.
        held: At how many any instance is.
        reached: Family of sources → at how many its instances are.
        lacking: Those at which a probe showed that a reference runs, and no instance is: `NAME VALUE`.
    """

    kind: str
    admitted: int
    runs: int
    held: int
    reached: dict[str, int]
    lacking: tuple[str, ...] = ()


class Admitted(msgspec.Struct, frozen=True):
    """What the schemas of a library admit.

    Attributes:
        probed: Whether it was probed what references run; else `runs` is what the accepted instances show, and a lower bound.
        totals: A Reach of each kind, over all operators.
        operators: Operator → likewise; kinds that it has no points of are left out.
    """

    library: str
    probed: bool
    totals: list[Reach]
    operators: dict[str, list[Reach]]


def specified(library: str) -> Specified | None:
    """Return a library that says what its schemas admit, None for others and for one that is not installed here."""
    if library not in libraries.registered() or not hasattr(module := libraries.get(library), "admitted"):
        return None
    try:
        module.version()
    except ImportError:
        return None
    return cast(Specified, module)


def reached(workspace: Workspace, library: Specified, name: str) -> dict[str, set[Point]]:
    """Return family → the points that its instances are at; those that the library is known to reject do not count."""
    found: dict[str, set[Point]] = defaultdict(set)
    families = of_instances(workspace, name)
    rejected = {
        x.instance for x in tests.newest(workspace, rejected=True) if x.library == name and x.status == "invalid"
    }
    for _, instance, document, _ in workspace.documents(name):
        if instance in families and instance not in rejected:
            program = parse(document)
            if isinstance(program, Instance):
                points = library.reached(program)
                for family in families[instance]:
                    found[family] |= points
    return dict(found)


def summed(
    name: str,
    admitted: Mapping[str, frozenset[Point]],
    found: Mapping[str, set[Point]],
    probed: Iterable[Point] | None = None,
) -> Admitted:
    """Return what is admitted and reached, of the operators of `admitted`; `probed` are points that a probe showed to run."""
    seen: set[Point] = set().union(*found.values())
    runs = seen.union(probed or ())

    def reach(points: Iterable[Point]) -> list[Reach]:
        kinds: dict[str, set[Point]] = {kind: set() for kind in KINDS}
        for point in points:
            kinds[point.kind].add(point)
        return [
            Reach(
                kind,
                len(mine),
                len(mine & runs),
                len(mine & seen),
                {family: len(mine & found[family]) for family in sorted(found, key=lambda x: (x != "tests", x))},
                tuple(sorted(f"{x.name} {x.value}" for x in mine & runs - seen)),
            )
            for kind, mine in kinds.items()
            if mine
        ]

    totals = [msgspec.structs.replace(x, lacking=()) for x in reach(set().union(*admitted.values()))]
    return Admitted(
        name, probed is not None, totals, {operator: reach(points) for operator, points in admitted.items()}
    )


def admitted(workspace: Workspace) -> list[Admitted]:
    """Return what is admitted and reached of each library of the workspace that says so; nothing is probed.

    A library with more than MOST instances is left to `opera coverage`.
    """
    listed = []
    for name in workspace.libraries():
        library = specified(name)
        if library is None or len(of_instances(workspace, name)) > MOST:
            continue
        if found := reached(workspace, library, name):
            listed.append(summed(name, library.admitted(), found))
    return listed


def share(count: int, of: int) -> str:
    """Return `12 (34.5 %)`."""
    return f"{count} ({100 * count / of:.1f} %)" if of else str(count)


def rows(found: Admitted) -> list[tuple[str, ...]]:
    """Return a heading and a line a kind: points admitted, run by a reference where that was asked, and reached by each family.

    Shares are of what a reference runs, where that was asked, else of what is admitted.
    """
    families = list(found.totals[0].reached) if found.totals else []
    several = len(families) > 1
    head = ("", "admitted", *(["a reference runs"] if found.probed else []), *families, *(["any"] if several else []))
    counts = [
        (x.admitted, x.runs, [*(x.reached[name] for name in families), *([x.held] if several else [])])
        for x in found.totals
    ]
    sums = [sum(column) for column in zip(*(shown for _, _, shown in counts), strict=True)]
    counts.append((sum(x[0] for x in counts), sum(x[1] for x in counts), sums))
    lines: list[tuple[str, ...]] = [head]
    for title, (admitted, runs, shown) in zip(
        [*(KINDS[x.kind] for x in found.totals), "together"], counts, strict=True
    ):
        asked = [share(runs, admitted)] if found.probed else []
        lines.append((title, str(admitted), *asked, *(share(x, runs if found.probed else admitted) for x in shown)))
    return lines


def show(workspace: Workspace, name: str, operator: str, *, probe: bool, workers: int, format: str) -> None:
    """Print what is admitted and reached, of operators that match a glob, by operator as well; probe what references run.

    Raises UsageError for a library that does not say what it admits, an unknown format, and a glob that matches nothing.
    """
    if format not in FORMATS:
        raise UsageError(
            f"there is no format {format!r}", cause=near(format, FORMATS), fix=f"choose from {', '.join(FORMATS)}"
        )
    if (library := specified(name)) is None:
        raise UsageError(
            f"{name} does not say what its operators admit",
            cause="it is not installed, or has no schemas",
            fix="try onnx",
        )
    points = {x: found for x, found in library.admitted().items() if fnmatchcase(x, operator)}
    if not points:
        raise UsageError(f"no operator of {name} matches {operator!r}", cause=near(operator, library.admitted()))
    found = reached(workspace, library, name)
    probed: set[Point] | None = None
    if probe:
        seen: set[Point] = set().union(*found.values())
        probed, _ = probe_schema.probe(
            workspace, name, {x: some - seen for x, some in points.items() if some - seen}, workers=workers
        )
    whole = summed(name, points, found, probed)
    if format == "json":
        print(msgspec.json.format(msgspec.json.encode(whole), indent=1).decode())
        return
    table = rows(whole)
    if format == "markdown":
        print("".join(f"| {' | '.join(line)} |\n" for line in (table[0], ("---",) * len(table[0]), *table[1:])), end="")
        return
    for line in table:
        print("  ".join(f"{cell:<{max(len(x[at]) for x in table)}}" for at, cell in enumerate(line)).rstrip())
    for called, reaches in whole.operators.items():
        lacking = [f"{x.kind} {what}" for x in reaches for what in x.lacking]
        if lacking:
            print(f"{called}: {len(lacking)} more that a reference runs: {', '.join(lacking)}")
