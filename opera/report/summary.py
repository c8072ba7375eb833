"""Everything a report shows, computed from what is stored: also while a run goes on, and from an empty workspace."""

from __future__ import annotations

import functools
import time
from collections import Counter, defaultdict
from collections.abc import Iterator

import msgspec

from opera import __version__
from opera.oracle.messages import cause
from opera.programs import values
from opera.programs.program import operators_of
from opera.programs.verdicts import ERROR, SCREENED, UNEXPORTED, UNSUPPORTED
from opera.report import sources as migration
from opera.report.admitted import Admitted, admitted
from opera.report.labels import labels, ordered
from opera.report.page import Page, page
from opera.report.sources import Comparison, SourceSummary
from opera.store import instances, runs, tests
from opera.store import verdicts as stored
from opera.store.families import held
from opera.store.tests import Newest
from opera.store.workspace import COMBINED, Workspace
from opera.triage.across import Cause, across
from opera.triage.disagreeing import Disagreeing, disagreeing
from opera.triage.disputed import Disputed, disputed
from opera.triage.findings import Finding, findings
from opera.triage.known import NONE, Known

CURVE_POINTS = 200
"""A curve is thinned to about this many points."""
REASONS = 15
"""Reasons of `unsupported` that are listed for a frontend; the rest is one number."""
APART = {
    "opera: ": "opera cannot carry the values (no word of the compiler's)",
    "machine: ": "the machine lacks something (no word of the compiler's)",
}
"""How reasons begin that are no word of the compiler's → what they are told as, apart from the others."""


class FrontendSummary(msgspec.Struct, frozen=True):
    """One frontend in one environment.

    Attributes:
        label: What tells it from the others: name and version, and what differs where those are equal.
        tests: Tests with a verdict; unsupported ones are among them, invalid ones are not.
        corpus: Valid instances of its library: what there is to run.
        verdicts: Verdict → tests; a test's verdict is the worst over its variants.
        seconds: Inside load, compile, infer (and export) of first executions.
        wall_seconds, workers: efficiency = seconds / (wall_seconds × workers), summed over runs.
        confirmation_seconds: Slot-seconds of confirmations and repeats, beside that.
        screened, unsupported, unexported: Reason → tests.
        curve: [tests run, findings found], thinned.
    """

    name: str
    label: str
    compiler: str
    library: str
    compiler_version: str
    library_version: str
    environment: str
    options: dict[str, str]
    tests: int
    corpus: int
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
    unexported: dict[str, int]
    curve: list[tuple[int, int]]


class Failure(msgspec.Struct, frozen=True):
    """A failure of opera's own, of a test file, or of the library, with its reason."""

    where: str
    what: str
    reason: str


class Report(msgspec.Struct, frozen=True):
    """The whole report; its JSON form is described by docs/report.schema.json.

    Attributes:
        causes: What findings of several frontends have in common.
        root: The workspace's folder, as it was given; reproducers' paths are relative to it.
        instances: Library → migration source → distinct instances (an instance of two sources counts for both).
        sources: Library → its families of sources: what they brought.
        comparisons: For each frontend, what the tests of each family found; in the order of `frontends`.
        unfinished: The newest run has not ended: it is going on, or was interrupted.
        invalid: Library → instances that the library itself rejects; `invalid_reasons` says why.
        matrix: Operator → label of the frontend → verdict → tests.
        errors: Where opera itself failed.
        extraction_failures: Test files that did not run to their end.
        library_crashes: Inputs of generators that killed the library itself, or made it hang.
        pages: `FINDING@ENVIRONMENT` → what is told of it; empty where that was not asked for.
        disputed: The library's own tests whose expected outputs independent implementations contradict.
        disagreements: References that computed different outputs when programs were generated: one of the two is wrong.
        admitted: What the schemas of each library admit, and how much of it its instances are at.
    """

    opera_version: str
    generated: str
    root: str
    unfinished: bool
    frontends: list[FrontendSummary]
    findings: list[Finding]
    causes: list[Cause]
    instances: dict[str, dict[str, int]]
    sources: dict[str, list[SourceSummary]]
    comparisons: list[Comparison]
    equipped: dict[str, dict[str, int]]
    invalid: dict[str, int]
    invalid_reasons: dict[str, int]
    matrix: dict[str, dict[str, dict[str, int]]]
    errors: list[Failure]
    extraction_failures: list[Failure]
    library_crashes: list[Failure]
    disputed: list[Disputed]
    disagreements: list[Disagreeing] = []
    admitted: list[Admitted] = []
    pages: dict[str, Page] = {}


def summarise(workspace: Workspace, *, balance: bool = False, pages: bool = False, known: Known = NONE) -> Report:
    """Compute the report of a workspace in a fixed number of queries, and some a finding where its `pages` are wanted.

    With `balance`, sources are compared by the same number of tests each (opera.report.sources.compare). Findings that are
    `known` come after those that are not.
    """
    found = known.within_workspace(workspace).marked(findings(workspace))
    verdicts, newest = _test_verdicts(workspace), tests.newest(workspace, rejected=True)
    counted = held(workspace)
    families = migration.by_family(counted)
    frontends = _frontends(workspace, found, verdicts, newest, migration.by_library(counted))
    invalid = [(library, reason) for library, _, status, reason in newest if status == "invalid"]
    return Report(
        opera_version=__version__,
        generated=time.strftime("%Y-%m-%d %H:%M:%S %z"),
        root=str(workspace.root),
        unfinished=runs.going_on(workspace),
        frontends=frontends,
        findings=found,
        causes=across(workspace, found),
        instances=migration.by_source(counted),
        sources=families,
        comparisons=migration.compare(workspace, families, _runs(frontends, found, verdicts), balance=balance),
        equipped=instances.equipped(workspace),
        invalid=dict(Counter(library for library, _ in invalid)),
        invalid_reasons=_top(Counter(reason[:160] for _, reason in invalid)),
        matrix=_matrix(workspace, frontends, verdicts),
        errors=_errors(workspace, newest),
        extraction_failures=_extraction_failures(workspace),
        library_crashes=_library_crashes(workspace),
        disputed=disputed(workspace),
        disagreements=disagreeing(workspace),
        admitted=admitted(workspace),
        pages={f"{x.id}@{x.environment}": page(workspace, x) for x in found} if pages else {},
    )


def _test_verdicts(workspace: Workspace) -> dict[tuple[str, str], dict[str, str]]:
    """Return (frontend, environment) → test → the worst verdict over its variants."""
    rank = {verdict: place for place, verdict in enumerate(COMBINED)}
    worst: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    superseded = workspace.superseded()
    for frontend, environment, test, verdict in stored.shown(workspace):
        if environment in superseded:
            continue
        mine = worst[frontend, environment]
        if test not in mine or rank[verdict] < rank[mine[test]]:
            mine[test] = verdict
    return dict(worst)


def _frontends(
    workspace: Workspace,
    found: list[Finding],
    verdicts: dict[tuple[str, str], dict[str, str]],
    newest: list[Newest],
    instances: dict[str, int],
) -> list[FrontendSummary]:
    accounts, environments = workspace.accounts(), workspace.environments()
    strategies = runs.strategies(workspace)
    corpus = Counter(instances)
    corpus.subtract(library for library, _, status, _ in newest if status == "invalid")
    keys = ordered(verdicts, environments)
    named = labels(keys, environments)
    reasons = _reasons(workspace, verdicts)
    first_found: dict[tuple[str, str], list[int]] = defaultdict(list)
    for finding in found:
        first_found[finding.frontend, finding.environment].append(finding.first_found)
    listed = []
    for key in keys:
        environment, ran = environments[key[1]], verdicts[key]
        told = accounts.get(key, [])
        seconds, wall = (sum(x[name] for x in told) for name in ("seconds", "wall_seconds"))
        slots = sum(x["wall_seconds"] * x["workers"] for x in told)
        counts = Counter(ran.values())
        listed.append(
            FrontendSummary(
                name=key[0],
                label=named[key],
                compiler=environment["compiler"],
                library=environment["library"],
                compiler_version=environment["version"],
                library_version=environment["library_version"],
                environment=key[1],
                options=environment["options"],
                tests=len(ran),
                corpus=corpus[environment["library"]],
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
                unexported=reasons[UNEXPORTED].get(key, {}),
                curve=_curve(sorted(first_found[key]), len(ran)),
            )
        )
    return listed


def _runs(
    frontends: list[FrontendSummary], found: list[Finding], verdicts: dict[tuple[str, str], dict[str, str]]
) -> Iterator[migration.Run]:
    groups: dict[tuple[str, str], list[Finding]] = defaultdict(list)
    for finding in found:
        groups[finding.frontend, finding.environment].append(finding)
    for x in frontends:
        key = (x.name, x.environment)
        yield migration.Run(x.label, x.library, x.compiler, verdicts[key], groups[key])


def _curve(places: list[int], tests: int) -> list[tuple[int, int]]:
    """Return [tests run, findings found]: a point before and at each finding, thinned, and the end, where those are that a
    reduction made a test of."""
    steps = [(0, 0)]
    for number, place in enumerate((min(x, tests) for x in places), 1):
        steps += [(max(place - 1, steps[-1][0]), number - 1), (place, number)]
    stride = max(1, len(steps) // CURVE_POINTS)
    return [*steps[::stride], (tests, len(places))]


def _reasons(
    workspace: Workspace, verdicts: dict[tuple[str, str], dict[str, str]]
) -> dict[str, dict[tuple[str, str], dict[str, int]]]:
    """Return verdict → (frontend, environment) → reason → tests, for what was screened, is unsupported, or was not exported."""
    counted: dict[str, dict[tuple[str, str], Counter[str]]] = {
        SCREENED: {}, UNSUPPORTED: {}, UNEXPORTED: {}
    }  # fmt: skip
    seen: set[tuple[str, str, str]] = set()
    for one in stored.explained(workspace, SCREENED, UNSUPPORTED, UNEXPORTED):
        key = (one.frontend, one.environment)
        told = verdicts.get(key, {}).get(one.test)
        if told != one.verdict or (*key, one.test) in seen:
            continue
        seen.add((*key, one.test))
        why = one.reason()
        reason = str(why.details.screen) if one.verdict == SCREENED else why.message
        reason = _by_its_exporter(reason) if one.verdict == UNEXPORTED else reason
        reason = next((said for prefix, said in APART.items() if reason.startswith(prefix)), reason)
        counted[one.verdict].setdefault(key, Counter())[reason[:120]] += 1
    return {name: {key: _top(counter) for key, counter in found.items()} for name, found in counted.items()}


@functools.cache
def _by_its_exporter(message: str) -> str:
    """Return why an artefact was not made, in a line: what every message of its exporter begins with left out."""
    artefact = message.partition(": ")[0]
    said = cause(message).partition("\n")[0] or message
    return said if said.startswith(artefact) else f"{artefact}: {said}"


def _top(counter: Counter[str]) -> dict[str, int]:
    """Return the most frequent reasons, what the rest comes to, and what is no word of the compiler's, however rare."""
    apart = {said: counter[said] for said in APART.values() if said in counter}
    words = Counter({reason: count for reason, count in counter.items() if reason not in apart})
    top = dict(words.most_common(REASONS))
    rest = words.total() - sum(top.values())
    return top | ({f"{len(words) - REASONS} other reasons": rest} if rest else {}) | apart


def _matrix(
    workspace: Workspace, frontends: list[FrontendSummary], verdicts: dict[tuple[str, str], dict[str, str]]
) -> dict[str, dict[str, dict[str, int]]]:
    operators = tests.operators(workspace)
    matrix: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for frontend in frontends:
        shown = verdicts[frontend.name, frontend.environment].items()
        for (called, verdict), count in Counter((operators.get(test, "?"), name) for test, name in shown).items():
            for operator in set(operators_of(called)):
                matrix[operator][frontend.label][verdict] += count
    return {name: {column: dict(cell) for column, cell in matrix[name].items()} for name in sorted(matrix)}


def _errors(workspace: Workspace, newest: list[Newest]) -> list[Failure]:
    superseded = workspace.superseded()
    found = [
        Failure(f"test {verdict.test} on {verdict.frontend}", verdict.outcome.stage, verdict.outcome.message[:1000])
        for verdict in stored.of_kind(workspace, ERROR)
        if verdict.environment not in superseded
    ]
    wrapped = [
        Failure(f"instance {name}", "wrap", reason[:1000]) for _, name, status, reason in newest if status == ERROR
    ]
    return found + wrapped


def _extraction_failures(workspace: Workspace) -> list[Failure]:
    return [Failure(x.file, x.status, x.reason[:1000]) for x in runs.unfinished(workspace)]


def _library_crashes(workspace: Workspace) -> list[Failure]:
    return [
        Failure(x.operator, x.how, _call(x.values) + (f"; it violates {x.violates}" if x.violates else ""))
        for x in workspace.crashes()
    ]


def _call(arguments: dict[str, object]) -> str:
    """Write arguments briefly: of tensors, dtype and shape."""
    told = []
    for name, form in arguments.items():
        value = values.decode(form)
        shown = f"{value.dtype}{list(value.shape)}" if isinstance(value, values.Tensor) else repr(value)[:60]
        told.append(f"{name}={shown}")
    return ", ".join(told)[:1000]
