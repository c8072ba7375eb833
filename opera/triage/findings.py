"""Findings of a workspace: failing verdicts of one signature in one environment, as reports show them."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import Any

import msgspec

from opera.programs.verdicts import PASS
from opera.store.workspace import COUNTED, REPRODUCERS, Verdict, Workspace
from opera.triage import partners
from opera.triage.signature import Signature


class Finding(msgspec.Struct, frozen=True):
    """One suspected bug of one frontend in one environment.

    Attributes:
        id: Content address of the signature; equal across versions of a compiler.
        operator: The members' most frequent operator; `operators` are all of them.
        message: Of the first member.
        members: Test ids in the order they were found.
        origins: For each member, the library's test that it was made of.
        confirmed: How many members failed again in a fresh process.
        tags: `single-reference`, `three-answers`, `state-dependent`, `passes-as-constants`, ...
        first_found: Tests that had been run on this frontend when it was found, itself included.
        reproducer: Path of the script in the workspace.
        numbers: What the oracle and the screens measured of the first member.
    """

    id: str
    frontend: str
    compiler_version: str
    environment: str
    verdict: str
    stage: str
    symptom: str
    operator: str
    operators: tuple[str, ...]
    conversion_function: str
    message: str
    members: tuple[str, ...]
    origins: tuple[str, ...]
    variants: tuple[str, ...]
    confirmed: int
    tags: tuple[str, ...]
    first_found: int
    reproducer: str | None
    numbers: dict[str, str | int | float | bool]


class _Known(msgspec.Struct):
    """What is looked up for every finding, each read in one query."""

    versions: dict[str, str]
    tests: dict[str, tuple[str, str]]  # test → operator, the library's test
    passed: set[tuple[str, str, str]]
    partners: partners.Told
    order: dict[tuple[str, str], dict[str, int]]


def findings(workspace: Workspace, frontend: str = "", environment: str = "") -> list[Finding]:
    """Return the findings: of a frontend's newest version first, then confirmed ones, then those with most members.

    Without `environment`, all environments but superseded ones.
    """
    known = _Known(
        {name: str(document["version"]) for name, document in workspace.environments().items()},
        {
            test: (operator, origin or "")
            for test, operator, origin, _ in workspace.query(
                "SELECT t.id, i.operator, p.test, MIN(p.rowid) FROM tests t JOIN instances i ON i.id = t.instance"
                " LEFT JOIN provenances p ON p.instance = i.id GROUP BY t.id"
            )
        },
        _passed(workspace),
        partners.tags(workspace),
        first_tests(workspace),
    )
    superseded = set() if environment else workspace.superseded()
    groups: dict[tuple[str, str], list[Verdict]] = defaultdict(list)
    for verdict in workspace.verdicts(
        f"{COUNTED} AND (? = '' OR frontend = ?) AND (? = '' OR environment = ?)",
        (frontend, frontend, environment, environment),
    ):
        if verdict.environment not in superseded:
            groups[verdict.finding, verdict.environment].append(verdict)
    found = [_finding(workspace, group, known) for group in groups.values()]
    found.sort(key=lambda x: (-min(x.confirmed, 1), -len(x.members), x.frontend, x.id))
    age = _ages(found)
    return sorted(found, key=lambda x: age[x.frontend, x.compiler_version])


def renew(workspace: Workspace) -> int:
    """Sort the failing verdicts whose findings another SIGNATURE_VERSION made anew; return how many findings that were."""
    stored = workspace.query("SELECT id, signature FROM findings")
    stale = [name for name, signature in stored if not _current(name, signature)]
    if not stale:
        return 0
    operators = dict(workspace.query("SELECT t.id, i.operator FROM tests t JOIN instances i ON i.id = t.instance"))
    moved, signatures = [], {}
    old = msgspec.json.encode(stale).decode()
    for verdict in workspace.verdicts("finding IN (SELECT value FROM json_each(?))", [old]):
        found = Signature.of(verdict.frontend, operators[verdict.test], verdict.outcome)
        signatures[found.id] = msgspec.json.encode(found)
        moved.append(msgspec.structs.replace(verdict, finding=found.id))
    workspace.move_verdicts(moved, signatures, stale)
    for name in stale:
        (workspace.root / REPRODUCERS / f"{name}.py").unlink(missing_ok=True)
    return len(stale)


def _current(name: str, signature: bytes) -> bool:
    try:
        return msgspec.json.decode(signature, type=Signature).id == name
    except msgspec.DecodeError:  # it has other fields now
        return False


def version_key(version: str) -> tuple[tuple[int, ...], str]:
    """Return what versions are sorted by: 0.9 comes before 0.27."""
    return tuple(int(digits) for digits in re.findall(r"\d+", version)), version


def _ages(found: list[Finding]) -> dict[tuple[str, str], int]:
    """Return (frontend, compiler version) → 0 for the frontend's newest version, 1 for the one before, ..."""
    versions: dict[str, set[str]] = defaultdict(set)
    for finding in found:
        versions[finding.frontend].add(finding.compiler_version)
    return {
        (frontend, version): age
        for frontend, names in versions.items()
        for age, version in enumerate(sorted(names, key=version_key, reverse=True))
    }


def first_tests(workspace: Workspace) -> dict[tuple[str, str], dict[str, int]]:
    """Return (frontend, environment) → test → how many tests had their first verdict when it had its own."""
    order: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    rows = "SELECT frontend, environment, test, MIN(rowid) FROM verdicts GROUP BY 1, 2, 3 ORDER BY 4"
    for frontend, environment, test, _ in workspace.stream(rows):
        place = order[frontend, environment]
        place[test] = len(place) + 1
    return order


def _passed(workspace: Workspace) -> set[tuple[str, str, str]]:
    """Return (frontend, environment, test) of what passes where inputs are constants of the model."""
    rows = workspace.query(
        "SELECT frontend, environment, test FROM verdicts WHERE verdict = ? AND variant = 'constants'", (PASS,)
    )
    return set(rows)


def _finding(workspace: Workspace, group: list[Verdict], known: _Known) -> Finding:
    first, shown = group[0], group[0].outcome
    members = tuple(dict.fromkeys(x.test for x in group))
    told = [known.tests.get(test, ("?", "")) for test in members]
    named = Counter(operator for operator, _ in told)
    tags = {tag for x in group for tag in x.outcome.details.get("tags", ())}
    key = (first.frontend, first.environment)
    if all((*key, test) in known.passed for test in members):
        tags.add("passes-as-constants")
    tags.update(*(known.partners.get((*key, test), ()) for test in members))
    script = f"{REPRODUCERS}/{first.finding}.py"
    return Finding(
        id=first.finding,
        frontend=first.frontend,
        compiler_version=known.versions.get(first.environment, "?"),
        environment=first.environment,
        verdict=shown.verdict,
        stage=shown.stage,
        symptom=shown.symptom,
        operator=named.most_common(1)[0][0],
        operators=tuple(name for name, _ in named.most_common()),
        conversion_function=shown.conversion_function,
        message=shown.message,
        members=members,
        origins=tuple(origin for _, origin in told),
        variants=tuple(dict.fromkeys(x.variant for x in group)),
        confirmed=len({x.test for x in group if x.confirmation == "confirmed"}),
        tags=tuple(sorted(tags)),
        first_found=min(known.order[key].get(test, 0) for test in members),
        reproducer=script if (workspace.root / script).is_file() else None,
        numbers=_numbers(shown.details),
    )


def _numbers(details: dict[str, Any]) -> dict[str, str | int | float | bool]:
    """Return the plain values among the details of a verdict, long texts shortened."""
    plain = {key: value for key, value in details.items() if isinstance(value, str | int | float) and value != ""}
    return {key: value[:500] if isinstance(value, str) else value for key, value in plain.items() if key != "log"}
