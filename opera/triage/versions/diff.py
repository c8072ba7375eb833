"""What differs between two environments of a frontend: findings first, then tests that are supported, or no longer are.

Only tests that have a verdict in both are compared. A finding is matched with itself by its id; where a message was worded
anew, or the code that it names was moved, by the tests that fail on both sides.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

import msgspec

from opera import __version__, compilers
from opera.programs.program import operators_of
from opera.programs.verdicts import FAILURES, PASS, SCREENED, TIMEOUT, UNSTABLE, UNSUPPORTED
from opera.run import rules
from opera.run.rules import Rules
from opera.store import tests, verdicts
from opera.store.rows import Verdict
from opera.store.tests import Origin
from opera.store.workspace import COMBINED, Workspace
from opera.triage.alike import alike
from opera.triage.findings import Finding, findings
from opera.triage.known import NONE as NOTHING_KNOWN
from opera.triage.known import Known, Mark
from opera.triage.versions.sides import Chosen, Pair, flat

NEW, REACHED, GROWN, LOST, CHANGED, REFUSED, GONE, STILL, FIXED, GAINED = (
    "new", "newly reached", "grown", "no longer supported", "changed", "refused now", "gone", "still there", "fixed",
    "now supported",
)  # fmt: skip
KINDS = (NEW, REACHED, GROWN, LOST, CHANGED, REFUSED, GONE, STILL, FIXED, GAINED)
"""What became of a finding or a test, the worst first."""
REGRESSIONS = (NEW, REACHED, GROWN, LOST)
MEANINGS = {
    NEW: "a finding that was not there: of its tests some passed before",
    REACHED: "a finding whose tests were unsupported before, or that varies from run to run: the fault itself may be older",
    GROWN: "a finding that was there, and by now has tests that passed before",
    LOST: "passed before, and is unsupported by now",
    CHANGED: "still fails, in another way",
    REFUSED: "failed before, and is unsupported by now: neither fixed nor found",
    GONE: "failed before, and is screened, not exported or flaky by now, or passes by chance or by another route alone",
    STILL: "fails as it did",
    FIXED: "failed before, and passes by now: all its tests do",
    GAINED: "was unsupported before, and passes by now",
}
PASSES, FAILS, NONE, UNCLEAR = "passes", "fails", "unsupported", "unclear"
"""What a verdict says of a test on one side."""
SAME = "same"
"""Of a test that no table lists: it passes, or is unsupported, on both sides, or one of them says nothing of it."""


class Shown(msgspec.Struct, frozen=True):
    """What a test showed on one side: `says` is its verdict and what made it so, `reason` why it is unsupported."""

    state: str
    says: str
    verdict: Verdict
    finding: str = ""


class Test(msgspec.Struct, frozen=True):
    """A test that was run on both sides.

    Attributes:
        origin: The library's own test that it was made of.
        kind: One of KINDS, or `same`.
        before, after: What it showed: `crash in load`.
        finding_before, finding_after: Empty where it is of none.
    """

    test: str
    origin: str
    operator: str
    kind: str
    before: str
    after: str
    finding_before: str = ""
    finding_after: str = ""


class Move(msgspec.Struct, frozen=True):
    """What became of one finding.

    Attributes:
        kind: One of KINDS.
        finding: Its id: after, and before where it is gone.
        also: Ids that stand for it on the other side, where that is not its own.
        operator, sentence: What is wrong, as the side of `finding` shows it.
        was: What was wrong before, where it is told or fails otherwise.
        tests: Of it that were run on both sides.
        moves: `pass → crash in load` → how many of them.
        members: Those tests.
        unsure: No member failed again in a fresh process: it is not confirmed yet.
        known: What the file of known issues says of it; None of one that is new, or gone.
    """

    kind: str
    finding: str
    also: tuple[str, ...]
    operator: str
    sentence: str
    was: str
    tests: int
    moves: dict[str, int]
    members: tuple[str, ...]
    unsure: bool = False
    known: Mark | None = None

    @property
    def regression(self) -> bool:
        """Whether something has become worse that nobody has looked at: what is known is none, unless it should be gone."""
        return self.kind in REGRESSIONS and (self.known is None or self.known.regression)


class Support(msgspec.Struct, frozen=True):
    """Tests of an operator that one side does not support: `kind` is LOST or GAINED, `reason` why, in its words."""

    kind: str
    operator: str
    reason: str
    tests: tuple[str, ...]


class Between(msgspec.Struct, frozen=True):
    """A frontend in two environments.

    Attributes:
        before, after: Versions; where those are equal, `differs` says what else is not.
        environments: Ids of both; `roots` are the workspaces that hold them.
        compared: Tests with a verdict in both.
        only_before, only_after: Tests with a verdict in one: not compared.
        differs: What else the environments differ in, `numpy 1.26.4 → 2.4.6`.
        notes: What the reader must know: verdicts concluded by other rules, for one.
        verdicts: `pass → crash` → tests.
        counts: Kind → (findings, tests); a finding that grew has tests that are still failing, too.
        operators: Operator → kind → tests.
    """

    frontend: str
    before: str
    after: str
    environments: tuple[str, str]
    roots: tuple[str, str]
    compared: int
    only_before: int
    only_after: int
    differs: tuple[str, ...]
    notes: tuple[str, ...]
    verdicts: dict[str, int]
    counts: dict[str, tuple[int, int]]
    findings: tuple[Move, ...]
    support: tuple[Support, ...]
    operators: dict[str, dict[str, int]]
    tests: tuple[Test, ...]

    def of(self, kind: str) -> list[Move]:
        """Return the findings of a kind."""
        return [x for x in self.findings if x.kind == kind]

    @property
    def regressions(self) -> int:
        """Findings that are new, newly reached or have grown, and not known, and what is no longer supported."""
        return sum(x.regression for x in self.findings) + sum(x.kind in REGRESSIONS for x in self.support)


class Diff(msgspec.Struct, frozen=True):
    """What `opera diff` tells; its JSON form is described by docs/diff.schema.json. `notes` says what was not compared."""

    opera_version: str
    frontends: list[Between]
    notes: list[str]

    @property
    def regressions(self) -> int:
        """As of all frontends together."""
        return sum(x.regressions for x in self.frontends)


def diff(chosen: Chosen, known: Known = NOTHING_KNOWN) -> Diff:
    """Compare pairs of sides; `known` are known issues of the later side."""
    return Diff(__version__, [between(pair, known) for pair in chosen.pairs], chosen.notes)


def between(pair: Pair, known: Known = NOTHING_KNOWN) -> Between:
    """Compare the tests that both sides of a frontend have a verdict of."""
    before, after = pair.before, pair.after
    found = (
        _findings(pair.one, before.frontend, before.environment),
        _findings(pair.other, after.frontend, after.environment),
    )
    shown = (
        _shown(pair.one, before.frontend, before.environment, found[0]),
        _shown(pair.other, after.frontend, after.environment, found[1]),
    )
    both = [test for test in shown[1] if test in shown[0]]
    origins = tests.origins(pair.other)
    moved = {test: _sight(shown[0][test], shown[1][test]) for test in both}
    issues = known.within_workspace(pair.other)
    moves = [
        msgspec.structs.replace(x, known=issues.mark(found[1][x.finding])) if x.finding in found[1] else x
        for x in matched(moved, *found)
    ]
    told = [_test(name, origins[name], *sight) for name, sight in moved.items() if name in origins]
    numbers = Counter(x.kind for x in moves), Counter(x.kind for x in told)
    operators: dict[str, Counter[str]] = defaultdict(Counter)
    for x in told:
        if x.kind != SAME:
            for operator in set(operators_of(x.operator)):
                operators[operator][x.kind] += 1
    return Between(
        frontend=before.frontend,
        before=before.version,
        after=after.version,
        environments=(before.environment, after.environment),
        roots=(before.root, after.root),
        compared=len(both),
        only_before=len(shown[0]) - len(both),
        only_after=len(shown[1]) - len(both),
        differs=tuple(_differs(pair)),
        notes=tuple(_notes(pair, moved.values())),
        verdicts=dict(
            Counter(f"{one.verdict.outcome.verdict} → {two.verdict.outcome.verdict}" for one, two in moved.values())
        ),
        counts={kind: (numbers[0][kind], numbers[1][kind]) for kind in KINDS if numbers[0][kind] or numbers[1][kind]},
        findings=tuple(moves),
        support=tuple(_support(told, moved)),
        operators={name: dict(operators[name]) for name in sorted(operators)},
        tests=tuple(told),
    )


# ---------------------------------------------------------------------- what one side shows


def _findings(workspace: Workspace, frontend: str, environment: str) -> dict[str, Finding]:
    return {x.id: x for x in findings(workspace, frontend, environment)}


def _shown(workspace: Workspace, frontend: str, environment: str, found: dict[str, Finding]) -> dict[str, list[Shown]]:
    """Return test → what it showed through each variant, the worst first; tests in the order in which they were run."""
    of = {test: x.id for x in found.values() for test in x.members}
    rank = {verdict: place for place, verdict in enumerate(COMBINED)}
    shown: dict[str, list[Shown]] = defaultdict(list)
    for x in verdicts.of_frontend(workspace, frontend, environment):
        shown[x.test].append(Shown(state(x), says(x), x, of.get(x.test, "")))
    return {test: sorted(own, key=lambda x: rank[x.verdict.outcome.verdict]) for test, own in shown.items()}


def _sight(before: list[Shown], after: list[Shown]) -> tuple[Shown, Shown]:
    """Return what a test showed on both sides: of one that failed, through the variant that did, where both were run.

    Else what only moved from one route to another would count as fixed. What varies from run to run may be right by chance.
    """
    one, two = before[0], after[0]
    if one.state == FAILS and two.state != FAILS:
        other = msgspec.structs.replace(
            two, state=UNCLEAR
        )  # it passes by another route, and the one that failed was not asked
        two = next(
            (x for x in after if x.verdict.variant == one.verdict.variant), other if two.state == PASSES else two
        )
    elif two.state == FAILS and one.state != FAILS:
        one = next((x for x in before if x.verdict.variant == two.verdict.variant), one)
    if one.verdict.outcome.verdict == UNSTABLE and two.state == PASSES:
        two = msgspec.structs.replace(two, state=UNCLEAR)
    if two.verdict.outcome.verdict == UNSTABLE and one.state == PASSES:
        one = msgspec.structs.replace(one, state=NONE)
    return one, two


def state(verdict: Verdict) -> str:
    """Return what a verdict says of a test. A time-out that no fresh process confirmed says nothing."""
    name = verdict.outcome.verdict
    if name in FAILURES:
        return FAILS if verdict.finding and (name != TIMEOUT or verdict.confirmation == "confirmed") else UNCLEAR
    return {PASS: PASSES, UNSUPPORTED: NONE}.get(name, UNCLEAR)


def says(verdict: Verdict) -> str:
    """Return a verdict with what made it so, in two or three words."""
    x = verdict.outcome
    if x.verdict == SCREENED:
        return f"{SCREENED} ({x.details.get('screen', '')})"
    if x.verdict not in FAILURES:
        return x.verdict
    return f"{x.verdict} in {x.stage}" if x.symptom in ("", x.verdict) else f"{x.verdict} in {x.stage} ({x.symptom})"


def _test(name: str, origin: Origin, before: Shown, after: Shown) -> Test:
    kind = {
        (PASSES, FAILS): NEW, (NONE, FAILS): REACHED, (PASSES, NONE): LOST, (NONE, PASSES): GAINED, (FAILS, PASSES): FIXED,
        (FAILS, NONE): REFUSED, (FAILS, UNCLEAR): GONE, (UNCLEAR, FAILS): CHANGED,
    }.get((before.state, after.state), SAME)  # fmt: skip
    if (before.state, after.state) == (FAILS, FAILS):
        same = before.finding == after.finding or alike(before.verdict.outcome, after.verdict.outcome)
        kind = STILL if same else CHANGED
    return Test(name, origin.test, origin.operator, kind, before.says, after.says, before.finding, after.finding)


# ---------------------------------------------------------------------- findings


def matched(moved: dict[str, tuple[Shown, Shown]], before: dict[str, Finding], after: dict[str, Finding]) -> list[Move]:
    """Return what became of each finding of both sides that has tests among those compared, the worst kinds first.

    A finding of the later side that the earlier one has not is the same one, or was that one, where at least half of its tests
    failed before; else it is new.
    """
    told: dict[str, list[str]] = defaultdict(list)
    had: dict[str, list[str]] = defaultdict(list)
    for test, (one, two) in moved.items():
        if one.state == FAILS:
            had[one.finding].append(test)
        if two.state == FAILS:
            told[two.finding].append(test)
    moves, accounted = [], set[str]()
    for name, own in told.items():
        failed = [test for test in own if moved[test][0].state == FAILS]
        passed = any(moved[test][0].state == PASSES for test in own)
        came = {moved[test][0].finding for test in failed}
        known = name in before
        if not known and 2 * len(failed) < len(own):
            unsupported = any(moved[test][0].state == NONE for test in own)
            kind = NEW if passed else REACHED if unsupported else CHANGED
            moves.append(_move(kind, after[name], own, moved, came, before))
            continue
        accounted |= came | {name}
        same = known or all(alike(moved[x][0].verdict.outcome, moved[x][1].verdict.outcome) for x in failed)
        kind = GROWN if passed else STILL if same else CHANGED
        own = list(dict.fromkeys([*own, *(had[name] if known else ())]))
        moves.append(_move(kind, after[name], own, moved, came - {name}, before))
    for name, own in had.items():
        if name in accounted:
            continue
        ends = {moved[test][1].state for test in own}
        kind = CHANGED if FAILS in ends else REFUSED if NONE in ends else GONE if UNCLEAR in ends else FIXED
        into = {moved[test][1].finding for test in own if moved[test][1].state == FAILS}
        moves.append(_move(kind, before[name], own, moved, into, {}))
    return sorted(moves, key=lambda x: (KINDS.index(x.kind), -x.tests, x.finding))


def _move(
    kind: str,
    of: Finding,
    own: Iterable[str],
    moved: dict[str, tuple[Shown, Shown]],
    also: set[str],
    before: dict[str, Finding],
) -> Move:
    own, also = list(own), also - {of.id}
    was = [before[name].sentence for name in sorted(also) if name in before]
    return Move(
        kind=kind,
        finding=of.id,
        also=tuple(sorted(also)),
        operator=of.operator,
        sentence=of.sentence,
        was=next((x for x in was if x != of.sentence), ""),
        tests=len(own),
        moves=dict(Counter(f"{moved[x][0].says} → {moved[x][1].says}" for x in own).most_common()),
        members=tuple(own),
        unsure=not of.confirmed,
    )


def _stale(verdict: Verdict, now: Rules) -> bool:
    """Whether a verdict would be judged anew; one whose rules are not known (it was imported, or made by hand) is left."""
    return bool(verdict.rules) and not Rules.parse(verdict.rules).hold(verdict.outcome.verdict, now)


def _support(told: Iterable[Test], moved: dict[str, tuple[Shown, Shown]]) -> list[Support]:
    """Return what is supported on one side only, those that were lost first, then by how many tests."""
    groups: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for x in told:
        if x.kind in (LOST, GAINED):
            refusing = moved[x.test][1 if x.kind == LOST else 0].verdict.outcome.message
            groups[x.kind, x.operator, refusing].append(x.test)
    found = [Support(*key, tuple(names)) for key, names in groups.items()]
    return sorted(found, key=lambda x: (KINDS.index(x.kind), -len(x.tests), x.operator, x.reason))


# ---------------------------------------------------------------------- what else differs


def _differs(pair: Pair) -> Iterable[str]:
    """Yield what the environments differ in beside the version."""
    one, two = (dict(flat(x.document)) for x in (pair.before, pair.after))
    for name in [*one, *(name for name in two if name not in one)]:
        if name != "version" and one.get(name) != two.get(name):
            yield f"{name} {one.get(name, 'not stated')} → {two.get(name, 'not stated')}"


def _notes(pair: Pair, moved: Iterable[tuple[Shown, Shown]]) -> Iterable[str]:
    """Yield what the reader must know of how far the sides can be compared."""
    before, after, moved = pair.before, pair.after, list(moved)
    if before.compiler in compilers.registered():
        for side, shown in zip((before, after), zip(*moved, strict=True), strict=False):
            device = str(side.document.get("options", {}).get("device", ""))
            now = rules.of(before.compiler, before.frontend.rpartition("-")[2], device)
            stale = sum(_stale(x.verdict, now) for x in shown)
            if stale:
                yield f"{stale} verdicts of {side.version} are of older rules: the same `opera run` again judges them anew"
    if not moved:
        made = [", ".join(f"{k} {v}" for k, v in x.document.get("exporter", {}).items()) for x in (before, after)]
        why = f": the tests were made by {made[0]} and by {made[1]}" if made[0] != made[1] else ""
        yield f"no test was run on both sides{why}. `opera run --limit N` takes the same ones where the ranking is the same"
