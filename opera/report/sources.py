"""Migration sources compared, by family (store.families): what each brought, what its tests found, what no other found."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

import msgspec

from opera.errors import UsageError
from opera.programs.program import operators_of
from opera.programs.verdicts import FAILURES
from opera.store import tests
from opera.store.families import Held, family, of_instances, ordered
from opera.store.workspace import Workspace
from opera.triage.findings import Finding


class SourceSummary(msgspec.Struct, frozen=True):
    """What a family of sources brought to a library's corpus.

    Attributes:
        name: `tests`, `docter`, ...
        members: The migration sources that provenances name.
        instances: Distinct instances; one that two families hold counts for both.
        operators: Distinct operators among them; `operators_alone` are those that no other family has.
    """

    name: str
    members: tuple[str, ...]
    instances: int
    operators: int
    operators_alone: int


class Yield(msgspec.Struct, frozen=True):
    """What the tests of a family showed on one frontend.

    Attributes:
        tests: Tests with a verdict, of which `failing` failed.
        findings: Findings that at least one of these tests is a member of.
        findings_alone: Those of them that no test of another family is a member of.
    """

    source: str
    tests: int
    failing: int
    findings: int
    findings_alone: int


class Overlap(msgspec.Struct, frozen=True):
    """The findings (ids) that the tests of exactly these families show: one area of the paper's Venn figure."""

    sources: tuple[str, ...]
    findings: tuple[str, ...]


class Comparison(msgspec.Struct, frozen=True):
    """The families of a library on one frontend in one environment.

    Attributes:
        frontend: Its label.
        tests_each: With `--balance`, how many tests of each family count, best-ranked first; null where all do.
        yields: One for each family of the library, also those of which no test was run.
    """

    frontend: str
    library: str
    tests_each: int | None
    yields: list[Yield]
    overlaps: list[Overlap]


class Run(msgspec.Struct, frozen=True):
    """What `compare` needs of a frontend: test → verdict, and its findings."""

    label: str
    library: str
    compiler: str
    verdicts: dict[str, str]
    findings: list[Finding]


_Tests = dict[str, tuple[str, tuple[str, ...]]]
"""Test → its instance, and the families that hold it."""


def by_library(counts: Held) -> dict[str, int]:
    """Return library → instances."""
    found: Counter[str] = Counter()
    for (library, _, _), count in counts.items():
        found[library] += count
    return dict(found)


def by_source(counts: Held) -> dict[str, dict[str, int]]:
    """Return library → migration source → instances; one that two sources hold counts for both."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for (library, _, names), count in counts.items():
        for name in names:
            found[library][name] += count
    return {library: dict(sorted(found[library].items())) for library in sorted(found)}


def by_family(counts: Held) -> dict[str, list[SourceSummary]]:
    """Return library → its families."""
    instances: dict[str, Counter[str]] = defaultdict(Counter)
    members: dict[tuple[str, str], set[str]] = defaultdict(set)
    operators: dict[tuple[str, str], set[str]] = defaultdict(set)  # (library, operator) → families
    for (library, operator, names), count in counts.items():
        for name in names:
            members[library, family(name)].add(name)
        families = ordered(names)
        for name in operators_of(operator):
            operators[library, name].update(families)
        for name in families:
            instances[library][name] += count
    covered = Counter((library, name) for (library, _), families in operators.items() for name in families)
    alone = Counter((library, *families) for (library, _), families in operators.items() if len(families) == 1)
    return {
        library: [
            SourceSummary(
                name,
                tuple(sorted(members[library, name])),
                instances[library][name],
                covered[library, name],
                alone[library, name],
            )
            for name in ordered(instances[library])
        ]
        for library in sorted(instances)
    }


def compare(
    workspace: Workspace, sources: dict[str, list[SourceSummary]], runs: Iterable[Run], *, balance: bool
) -> list[Comparison]:
    """Compare the families of each frontend's library.

    With `balance`, only the same number of tests of each family counts: of each its best-ranked, as many as the family
    with fewest tests has (families of which none was run are left out of that). Raises UsageError where no frontend has
    run tests of two families.
    """
    told: dict[str, _Tests] = {}
    found = []
    for run in runs:
        names = [source.name for source in sources.get(run.library, [])]
        if run.library not in told:
            told[run.library] = _families_of_tests(workspace, run.library) if len(names) > 1 else {}
        known = told[run.library]
        tests: dict[str, list[str]] = {name: [] if len(names) > 1 else list(run.verdicts) for name in names}
        for test in run.verdicts.keys() & known.keys():
            for name in known[test][1]:
                tests[name].append(test)
        each = None
        if balance and sum(map(bool, tests.values())) > 1:
            each = min(len(members) for members in tests.values() if members)
            tests = _best_ranked(workspace, run, tests, known, each)
        found.append(_comparison(run, tests, each))
    if balance and not any(comparison.tests_each for comparison in found):
        raise UsageError(
            "there is nothing to balance: no frontend has run tests of two sources",
            cause="each library's instances come from one source, or the others' were not run yet",
            fix="extract from another source and run with `opera run --balance`, or leave --balance out",
        )
    return found


def _comparison(run: Run, tests: Mapping[str, list[str]], each: int | None) -> Comparison:
    counted: dict[str, set[str]] = {name: set(members) for name, members in tests.items()}
    areas: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for finding in run.findings:
        area = tuple(name for name, members in counted.items() if not members.isdisjoint(finding.members))
        if area:
            areas[area].append(finding.id)
    yields = [
        Yield(
            source=name,
            tests=len(members),
            failing=sum(run.verdicts[test] in FAILURES for test in members),
            findings=sum(len(found) for area, found in areas.items() if name in area),
            findings_alone=len(areas.get((name,), ())),
        )
        for name, members in counted.items()
    ]
    place = list(counted).index
    listed = sorted(areas, key=lambda area: (len(area), *map(place, area)))
    overlaps = [Overlap(area, tuple(areas[area])) for area in listed]
    return Comparison(run.label, run.library, each, yields, overlaps)


def _best_ranked(
    workspace: Workspace, run: Run, tests: dict[str, list[str]], known: _Tests, each: int
) -> dict[str, list[str]]:
    _, ranked, _ = workspace.ranking(run.library, run.compiler)
    place = {instance: at for at, (instance, _) in enumerate(ranked)}
    return {
        name: sorted(members, key=lambda test: (place[known[test][0]], test))[:each] for name, members in tests.items()
    }


def _families_of_tests(workspace: Workspace, library: str) -> _Tests:
    families = of_instances(workspace, library, tested=True)
    made = tests.instances(workspace)
    return {test: (instance, families[instance]) for test, instance in made.items() if instance in families}
