"""Everything a report shows, computed from what is stored: also while a run goes on, and from an empty workspace."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from typing import Any

import msgspec

from opera import __version__
from opera.execute.records import SCREENED, UNSUPPORTED
from opera.triage.findings import Finding, findings, first_tests
from opera.workspace import COMBINED, Workspace

CURVE_POINTS = 200
"""A curve is thinned to about this many points."""
REASONS = 15
"""Reasons of `unsupported` that are listed for a frontend; the rest is one number."""


class Frontend(msgspec.Struct, frozen=True):
    """One frontend in one environment.

    Attributes:
        tests: Tests with a verdict; unsupported ones are among them, invalid ones are not.
        verdicts: Verdict → tests; a test's verdict is the worst over its variants.
        seconds: Inside load, compile, infer (and export) of first executions.
        wall_seconds, workers: efficiency = seconds / (wall_seconds × workers), summed over runs.
        confirmation_seconds: Slot-seconds of confirmations and repeats, beside that.
        screened, unsupported: Reason → tests.
        curve: [tests run, findings found], thinned.
    """

    name: str
    compiler: str
    library: str
    compiler_version: str
    library_version: str
    environment: str
    options: dict[str, str]
    tests: int
    verdicts: dict[str, int]
    seconds: float
    wall_seconds: float
    workers: int
    efficiency: float
    confirmation_seconds: float
    tests_per_second: float
    strategy: str
    screened: dict[str, int]
    unsupported: dict[str, int]
    curve: list[tuple[int, int]]


class Failure(msgspec.Struct, frozen=True):
    """A failure of opera's own, or of a test file, with its reason."""

    where: str
    what: str
    reason: str


class Report(msgspec.Struct, frozen=True):
    """The whole report; its JSON form is described by docs/report.schema.json.

    Attributes:
        root: The workspace's folder, as it was given; reproducers' paths are relative to it.
        instances: Library → migration source → distinct instances (an instance of two sources counts for both).
        invalid: Library → tests that the library itself rejects; `invalid_reasons` says why.
        matrix: Operator → "frontend version" → verdict → tests.
        errors: Where opera itself failed.
        extraction_failures: Test files that did not run to their end.
    """

    opera_version: str
    generated: str
    root: str
    frontends: list[Frontend]
    findings: list[Finding]
    instances: dict[str, dict[str, int]]
    equipped: dict[str, dict[str, int]]
    invalid: dict[str, int]
    invalid_reasons: dict[str, int]
    matrix: dict[str, dict[str, dict[str, int]]]
    errors: list[Failure]
    extraction_failures: list[Failure]


def summarise(workspace: Workspace) -> Report:
    """Compute the report of a workspace in a fixed number of queries."""
    found = findings(workspace)
    verdicts = _test_verdicts(workspace)
    operators = dict(workspace.query("SELECT t.id, i.operator FROM tests t JOIN instances i ON i.id = t.instance"))
    frontends = _frontends(workspace, found, verdicts)
    return Report(
        opera_version=__version__,
        generated=time.strftime("%Y-%m-%d %H:%M:%S %z"),
        root=str(workspace.root),
        frontends=frontends,
        findings=found,
        instances=_nested(
            workspace.query(
                "SELECT i.library, p.source, COUNT(DISTINCT i.id) FROM provenances p JOIN instances i ON i.id = p.instance"
                " GROUP BY 1, 2 ORDER BY 1, 2"
            )
        ),
        equipped=_nested(
            workspace.query(
                "SELECT e.compiler, i.library, COUNT(DISTINCT i.id) FROM equipped e JOIN instances i ON i.id = e.instance"
                " GROUP BY 1, 2 ORDER BY 1, 2"
            )
        ),
        invalid=dict(
            workspace.query(
                "SELECT i.library, COUNT(DISTINCT i.id) FROM tests t JOIN instances i ON i.id = t.instance"
                " WHERE t.status = 'invalid' GROUP BY 1"
            )
        ),
        invalid_reasons=dict(
            workspace.query(
                "SELECT substr(reason, 1, 160), COUNT(*) FROM tests WHERE status = 'invalid' GROUP BY 1 ORDER BY 2 DESC"
                " LIMIT 20"
            )
        ),
        matrix=_matrix(frontends, verdicts, operators),
        errors=_errors(workspace),
        extraction_failures=_extraction_failures(workspace),
    )


def label(frontend: Frontend) -> str:
    """Return what tells a frontend's versions apart: `tvm-onnx 0.27.0`."""
    return f"{frontend.name} {frontend.compiler_version}"


def _test_verdicts(workspace: Workspace) -> dict[tuple[str, str], dict[str, str]]:
    """Return (frontend, environment) → test → the worst verdict over its variants."""
    rank = {verdict: place for place, verdict in enumerate(COMBINED)}
    worst: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    superseded = workspace.superseded()
    for frontend, environment, test, verdict in workspace.stream(
        "SELECT frontend, environment, test, verdict FROM verdicts"
    ):
        if environment in superseded:
            continue
        tests = worst[frontend, environment]
        if test not in tests or rank[verdict] < rank[tests[test]]:
            tests[test] = verdict
    return worst


def _frontends(
    workspace: Workspace, found: list[Finding], verdicts: dict[tuple[str, str], dict[str, str]]
) -> list[Frontend]:
    accounts, environments = workspace.accounts(), workspace.environments()
    order = first_tests(workspace)
    strategies = {
        (row[0], row[1]): row[2] for row in workspace.query("SELECT library, compiler, strategy FROM rankings")
    }
    reasons = _reasons(workspace, verdicts)
    first_found: dict[tuple[str, str], list[int]] = defaultdict(list)
    for finding in found:
        first_found[finding.frontend, finding.environment].append(finding.first_found)
    listed = []
    for key in sorted(verdicts, key=lambda key: (key[0], environments[key[1]]["version"], key[1])):
        environment, tests = environments[key[1]], verdicts[key]
        told = accounts.get(key, [])
        seconds, wall = (sum(x[name] for x in told) for name in ("seconds", "wall_seconds"))
        slots = sum(x["wall_seconds"] * x["workers"] for x in told)
        counts = Counter(tests.values())
        listed.append(
            Frontend(
                name=key[0],
                compiler=environment["compiler"],
                library=environment["library"],
                compiler_version=environment["version"],
                library_version=environment["library_version"],
                environment=key[1],
                options=environment["options"],
                tests=len(tests),
                verdicts={verdict: counts[verdict] for verdict in (*reversed(COMBINED),) if counts[verdict]},
                seconds=seconds,
                wall_seconds=wall,
                workers=int(told[-1]["workers"]) if told else 0,
                efficiency=seconds / slots if slots else 0.0,
                confirmation_seconds=sum(x["confirmation_seconds"] for x in told),
                tests_per_second=sum(x["tests"] for x in told) / wall if wall else 0.0,
                strategy=strategies.get((environment["library"], environment["compiler"]), ""),
                screened=reasons[SCREENED].get(key, {}),
                unsupported=reasons[UNSUPPORTED].get(key, {}),
                curve=_curve(sorted(first_found[key]), len(order[key])),
            )
        )
    return listed


def _curve(places: list[int], tests: int) -> list[tuple[int, int]]:
    """Return [tests run, findings found]: a point before and at each finding, thinned, and the end."""
    steps = [(0, 0)]
    for number, place in enumerate(places, 1):
        steps += [(max(place - 1, 0), number - 1), (place, number)]
    stride = max(1, len(steps) // CURVE_POINTS)
    return [*steps[::stride], (tests, len(places))]


def _reasons(
    workspace: Workspace, verdicts: dict[tuple[str, str], dict[str, str]]
) -> dict[str, dict[tuple[str, str], dict[str, int]]]:
    """Return verdict → (frontend, environment) → reason → tests, for what was screened or is unsupported."""
    counted: dict[str, dict[tuple[str, str], Counter[str]]] = {SCREENED: {}, UNSUPPORTED: {}}
    seen: set[tuple[str, str, str]] = set()
    for verdict in workspace.verdicts("verdict IN (?, ?)", (SCREENED, UNSUPPORTED)):
        key = (verdict.frontend, verdict.environment)
        if key not in verdicts or verdicts[key].get(verdict.test) != verdict.verdict or (*key, verdict.test) in seen:
            continue
        seen.add((*key, verdict.test))
        reason = str(verdict.details.get("screen", "")) if verdict.verdict == SCREENED else verdict.message
        counted[verdict.verdict].setdefault(key, Counter())[reason[:120]] += 1
    return {name: {key: _top(counter) for key, counter in found.items()} for name, found in counted.items()}


def _top(counter: Counter[str]) -> dict[str, int]:
    top = dict(counter.most_common(REASONS))
    rest = sum(counter.values()) - sum(top.values())
    return top | ({f"{len(counter) - REASONS} other reasons": rest} if rest else {})


def _matrix(
    frontends: list[Frontend], verdicts: dict[tuple[str, str], dict[str, str]], operators: dict[str, str]
) -> dict[str, dict[str, dict[str, int]]]:
    matrix: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for frontend in frontends:
        for test, verdict in verdicts[frontend.name, frontend.environment].items():
            matrix[operators.get(test, "?")][label(frontend)][verdict] += 1
    return {name: {column: dict(cell) for column, cell in matrix[name].items()} for name in sorted(matrix)}


def _errors(workspace: Workspace) -> list[Failure]:
    found = [
        Failure(f"test {verdict.test} on {verdict.frontend}", verdict.stage, verdict.message[:1000])
        for verdict in workspace.verdicts("verdict = 'error'")
    ]
    rows = workspace.query("SELECT instance, reason FROM tests WHERE status = 'error'")
    return found + [Failure(f"instance {name}", "wrap", reason[:1000]) for name, reason in rows]


def _extraction_failures(workspace: Workspace) -> list[Failure]:
    rows = workspace.query("SELECT file, status, document FROM extraction_files WHERE status != 'done' ORDER BY file")
    return [Failure(file, status, str(_json(document).get("reason", ""))[:1000]) for file, status, document in rows]


def _json(document: bytes) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(document)
    return found


def _nested(rows: list[tuple[str, str, int]]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for outer, inner, count in rows:
        found.setdefault(outer, {})[inner] = count
    return found
