"""Findings of a workspace: failing verdicts of one signature in one environment, as reports show them."""

from __future__ import annotations

from collections import Counter, defaultdict

import msgspec

from opera.execute.records import PASS
from opera.triage.scripts import FOLDER
from opera.workspace import Verdict, Workspace


class Finding(msgspec.Struct, frozen=True):
    """One suspected bug of one frontend in one environment.

    Attributes:
        id: Content address of the signature; equal across versions of a compiler.
        operator: The members' most frequent operator; `operators` are all of them.
        message: Of the first member.
        members: Test ids in the order they were found.
        confirmed: How many members failed again in a fresh process.
        tags: `single-reference`, `three-answers`, `state-dependent`, `passes-as-constants`, ...
        first_found: Tests that had been run on this frontend when it was found, itself included.
        reproducer: Path of the script in the workspace.
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
    variants: tuple[str, ...]
    confirmed: int
    tags: tuple[str, ...]
    first_found: int
    reproducer: str | None


def findings(workspace: Workspace, frontend: str = "") -> list[Finding]:
    """Return the findings, those with most confirmed members and most members first."""
    versions = {name: document["version"] for name, document in workspace.environments().items()}
    operators = dict(workspace.query("SELECT t.id, i.operator FROM tests t JOIN instances i ON i.id = t.instance"))
    passed = _passed(workspace)
    groups: dict[tuple[str, str], list[Verdict]] = defaultdict(list)
    where, parameters = ("finding != '' AND frontend = ?", (frontend,)) if frontend else ("finding != ''", ())
    superseded = workspace.superseded()
    for verdict in workspace.verdicts(where, parameters):
        if verdict.environment in superseded:
            continue
        groups[verdict.finding, verdict.environment].append(verdict)
    order = first_tests(workspace)
    found = [_finding(workspace, group, versions, operators, passed, order) for group in groups.values()]
    return sorted(found, key=lambda x: (-min(x.confirmed, 1), -len(x.members), x.frontend, x.id))


def first_tests(workspace: Workspace) -> dict[tuple[str, str], dict[str, int]]:
    """Return (frontend, environment) → test → how many tests had their first verdict when it had its own."""
    order: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    rows = "SELECT frontend, environment, test, MIN(rowid) FROM verdicts GROUP BY 1, 2, 3 ORDER BY 4"
    for frontend, environment, test, _ in workspace.stream(rows):
        place = order[frontend, environment]
        place[test] = len(place) + 1
    return order


def _passed(workspace: Workspace) -> set[tuple[str, str, str]]:
    """Return (frontend, environment, test) of what passes through another variant than the first."""
    rows = workspace.query(
        "SELECT frontend, environment, test FROM verdicts WHERE verdict = ? AND variant = 'constants'", (PASS,)
    )
    return set(rows)


def _finding(
    workspace: Workspace,
    group: list[Verdict],
    versions: dict[str, str],
    operators: dict[str, str],
    passed: set[tuple[str, str, str]],
    order: dict[tuple[str, str], dict[str, int]],
) -> Finding:
    first = group[0]
    members = tuple(dict.fromkeys(x.test for x in group))
    named = Counter(operators.get(test, "?") for test in members)
    tags = {tag for x in group for tag in x.details.get("tags", ())}
    key = (first.frontend, first.environment)
    if all((*key, test) in passed for test in members):
        tags.add("passes-as-constants")
    script = f"{FOLDER}/{first.finding}.py"
    return Finding(
        id=first.finding,
        frontend=first.frontend,
        compiler_version=versions.get(first.environment, "?"),
        environment=first.environment,
        verdict=first.verdict,
        stage=first.stage,
        symptom=first.symptom,
        operator=named.most_common(1)[0][0],
        operators=tuple(name for name, _ in named.most_common()),
        conversion_function=first.conversion_function,
        message=first.message,
        members=members,
        variants=tuple(dict.fromkeys(x.variant for x in group)),
        confirmed=len({x.test for x in group if x.confirmation == "confirmed"}),
        tags=tuple(sorted(tags)),
        first_found=min(order[key].get(test, 0) for test in members),
        reproducer=script if (workspace.root / script).is_file() else None,
    )
