"""Judge anew what is stored, where rules have changed since: no compiler is run for what was seen to be enough.

| verdict | judged anew from | else |
|---|---|---|
| crash, unsupported, error | the exception: classes, text, causes, traceback | run again |
| pass | identical outputs, or how far they were off, where only tolerances changed | run again |
| inconsistent, screened | the outputs that were kept: compared and screened again, on the library's side | run again |
| abort, timeout, out-of-memory | they hold, whatever the rules | |
| flaky, unexported | | run again, or seen from the stored export |

An `error` that says nothing of the test (records.AGAIN) is always run again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from opera import compilers
from opera.oracle import comparison as oracle
from opera.pool.pool import Pool
from opera.pool.workers import DONE, Result
from opera.programs import migrated
from opera.programs.case import Case, remembered
from opera.programs.migrated import read_manifest, read_values
from opera.programs.verdicts import (
    AGAIN,
    CRASH,
    ERROR,
    FAILURES,
    INCONSISTENT,
    PASS,
    SCREENED,
    UNSUPPORTED,
    VERDICTS,
    Outcome,
    Seen,
)
from opera.run import judge
from opera.run.aftermath import Origin
from opera.run.confirm import Confirming
from opera.run.ledger import Ledger, outcome_again
from opera.run.library_side import AGREES, ScreenReply, ScreenRequest
from opera.run.plan import Frontend, Item
from opera.run.rules import Rules
from opera.store.workspace import Verdict, Workspace

KEPT = 4 << 20
"""Bytes: outputs of inconsistent tests that are larger are not kept."""


class Changes(msgspec.Struct):
    """What judging anew did.

    Attributes:
        judged: How many verdicts were judged anew.
        moved: (verdict before, verdict now) → how many.
        again: How many verdicts hold too little to be judged: their tests are run again.
    """

    judged: int = 0
    moved: Counter[tuple[str, str]] = msgspec.field(default_factory=Counter)
    again: int = 0

    def note(self, before: Verdict, now: Verdict | None) -> None:
        """Count one."""
        self.judged += 1
        if now is None:
            self.again += 1
        elif now.verdict != before.verdict:
            self.moved[before.verdict, now.verdict] += 1

    def told(self) -> str:
        """Return what changed, in a line; empty where there was nothing to judge."""
        if not self.judged:
            return ""
        moves = [f"{count} {before} → {now}" for (before, now), count in self.moved.most_common()]
        parts = [f"{sum(self.moved.values())} moved ({', '.join(moves)})" if moves else "none moved"]
        if self.again:
            parts.append(f"{self.again} hold too little to be judged, and their tests are run again")
        return f"rules have changed since {self.judged} verdicts were stored: {'; '.join(parts)}"


def stale(workspace: Workspace, target: Frontend) -> Iterator[Verdict]:
    """Yield the verdicts of a frontend that its rules of today did not conclude, with what was seen."""
    of_frontend = "frontend = ? AND environment = ?"
    where = (target.name, target.environment)
    for (old,) in workspace.query(f"SELECT DISTINCT rules FROM verdicts WHERE {of_frontend}", where):
        kinds = [kind for kind in VERDICTS if not Rules.parse(old).hold(kind, target.rules)]
        asked = ", ".join("?" * len(kinds))
        for verdict in workspace.verdicts(
            f"{of_frontend} AND rules = ? AND (verdict IN ({asked}) OR verdict = ?)",
            (*where, old, *kinds, ERROR),
            seen=True,
        ):
            if verdict.verdict not in kinds and not verdict.details.get(AGAIN):
                continue
            if "victims" not in verdict.details:  # what it does to others was seen in many runs, and depends on no rule
                yield verdict


def kept_outputs(workspace: Workspace, test: str, target: Frontend, variant: str) -> Path:
    """Return where the outputs of an inconsistent test are kept."""
    return workspace.outputs_folder / test[:2] / f"{test}-{target.name}-{variant}-{target.environment}.msgpack"


def needs_screens(workspace: Workspace, target: Frontend, verdict: Verdict) -> bool:
    """Whether a stale verdict is judged anew by comparing and screening the outputs that were kept."""
    judged = verdict.verdict in (INCONSISTENT, SCREENED)
    kept = kept_outputs(workspace, verdict.test, target, verdict.variant)
    return judged and kept.is_file() and _folder(workspace, verdict).is_dir()


def anew(workspace: Workspace, target: Frontend, verdict: Verdict) -> Verdict | None:
    """Return a stale verdict as today's rules conclude it, None where what was seen is not enough."""
    seen = verdict.seen
    if seen is None or verdict.details.get(AGAIN):
        return None
    if seen.raised and verdict.verdict in (CRASH, UNSUPPORTED, ERROR):
        frontend = compilers.frontend(target.compiler, target.library)
        found = judge.conclude(frontend, _case(workspace, target, verdict), verdict.stage, seen)
        if found.hooks:  # the adapter wants more of the exception than was kept
            return None
        return msgspec.structs.replace(
            verdict, verdict=found.verdict, symptom=found.symptom, message=found.message, rules=str(target.rules)
        )
    if verdict.verdict == PASS and _still_agrees(workspace, target, verdict, seen):
        return msgspec.structs.replace(verdict, rules=str(target.rules))
    return None


def _still_agrees(workspace: Workspace, target: Frontend, verdict: Verdict, seen: Seen) -> bool:
    if seen.identical:
        return True
    if Rules.parse(verdict.rules).comparison != target.rules.comparison:
        return False
    folder = _folder(workspace, verdict)
    if not (folder / "manifest.json").is_file():
        return False
    manifest, expected = read_manifest(folder), read_values(folder, "expected")
    computes_in = compilers.computes_in(compilers.frontend(target.compiler, target.library))
    return oracle.within(seen.margins, *oracle.granted(computes_in, expected, manifest.rtol, manifest.atol))


def _case(workspace: Workspace, target: Frontend, verdict: Verdict) -> Case:
    """Return what is still known of the case that a verdict is of: its names."""
    query = "SELECT i.operator FROM tests t JOIN instances i ON i.id = t.instance WHERE t.id = ?"
    operator = next((str(row[0]) for row in workspace.query(query, (verdict.test,))), "")
    artefact = next((x.artefact for x in target.variants if x.name == verdict.variant), "")
    return remembered(target.library, operator, verdict.variant, artefact)


def _folder(workspace: Workspace, verdict: Verdict) -> Path:
    return migrated.folder(workspace.tests_folder, verdict.test)


def with_screens(outcome: Outcome, reply: ScreenReply) -> Outcome:
    """Add what the screens said to an inconsistency."""
    tags = list(reply.tags) if reply.status != ERROR else ["unscreened"]
    details = outcome.details | {"screen": reply.reason, "tags": tags} | reply.numbers
    return msgspec.structs.replace(
        outcome, verdict=SCREENED if reply.status == SCREENED else INCONSISTENT, details=details
    )


class Rejudging:
    """Judges the stale verdicts of a run's frontends anew.

    Args:
        by_test: (frontend, test) → item, of all that the run may come to.
        execute: Runs an item's variant again.

    Attributes:
        changes: What came of it.
    """

    def __init__(
        self,
        pool: Pool,
        ledger: Ledger,
        confirming: Confirming,
        by_test: Mapping[tuple[str, str], Item],
        execute: Callable[[Item], None],
    ) -> None:
        self.pool, self.ledger, self.confirming = pool, ledger, confirming
        self.by_test, self.execute = by_test, execute
        self.workspace, self.changes = ledger.workspace, Changes()

    def begin(self, frontends: Iterable[Frontend]) -> set[tuple[str, str, str]]:
        """Judge what can be judged here; return (frontend, test, variant) of what the library's side is asked about."""
        asked = set()
        for target in frontends:
            for verdict in list(stale(self.workspace, target)):
                if needs_screens(self.workspace, target, verdict):
                    asked.add((target.name, verdict.test, verdict.variant))
                    self._submit(target, verdict)
                else:
                    self._replace(target, verdict, anew(self.workspace, target, verdict))
        return asked

    def _submit(self, target: Frontend, verdict: Verdict) -> None:
        [(instance,)] = self.workspace.query("SELECT instance FROM tests WHERE id = ?", (verdict.test,))
        request = ScreenRequest(
            library=target.library, compiler=target.compiler, directory=str(_folder(self.workspace, verdict).absolute()),
            instance=self.workspace.instance(instance).canonical(), outcome=outcome_again(verdict),
            actual=str(kept_outputs(self.workspace, verdict.test, target, verdict.variant).absolute()), anew=True,
            computes_in=compilers.computes_in(compilers.frontend(target.compiler, target.library)),
        )  # fmt: skip
        self.pool.submit(
            f"library {target.library}", request, seconds=120, call="opera.run.library_side:screen",
            tag=("rejudge", target, verdict),
        )  # fmt: skip

    def screened(self, result: Result, target: Frontend, verdict: Verdict) -> None:
        """Take in what the library's side says."""
        reply = result.decode(ScreenReply) if result.status == DONE else None
        if reply is None or reply.outcome is None or reply.status == ERROR:
            self._replace(target, verdict, None)
            self._run_again(target, verdict)
            return
        outcome = with_screens(reply.outcome, reply)
        agrees = reply.status == AGREES
        now = msgspec.structs.replace(
            verdict, verdict=PASS if agrees else outcome.verdict, stage="" if agrees else verdict.stage,
            symptom=outcome.symptom, message=outcome.message, details=outcome.details,
            seen=None if agrees else verdict.seen, rules=str(target.rules),
        )  # fmt: skip  # of outputs that agree now no margins are known: other rules need them run again
        self._replace(target, verdict, now, confirm=True)

    def _run_again(self, target: Frontend, verdict: Verdict) -> None:
        """Run a test whose kept outputs could not be judged, though its turn may be over."""
        found = self.by_test.get((target.name, verdict.test))
        if found is not None:
            self.execute(msgspec.structs.replace(found, variant=target.place(verdict.variant), alone=True))

    def _replace(self, target: Frontend, before: Verdict, now: Verdict | None, *, confirm: bool = False) -> None:
        """Store a verdict that was judged anew, or have its test run when its turn comes.

        A failure that is another than before is confirmed: now, with `confirm`, else with all that is pending.
        """
        self.changes.note(before, now)
        if now is None:
            self.ledger.stored[target.name].pop((before.test, before.variant), None)
            return
        if now.verdict not in FAILURES:
            now = msgspec.structs.replace(now, finding="", confirmation="")
        elif (now.verdict, now.symptom) != (before.verdict, before.symptom):
            operator = self.ledger.operator(before.test)
            finding = self.ledger.finding(target, operator, outcome_again(now))
            now = msgspec.structs.replace(now, finding=finding, confirmation="pending")
            item = self.by_test.get((target.name, before.test))
            if item is not None and confirm:
                self.confirming.submit(item, now, Origin())
        (self.ledger.keep if now.verdict == before.verdict else self.ledger.store)(now)
