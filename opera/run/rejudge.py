"""Judge anew what is stored, where rules have changed since: no compiler is run for what was seen to be enough.

| verdict | judged anew from | else |
|---|---|---|
| crash, refused-claimed, unsupported, error | the exception: classes, text, causes, traceback | run again |
| pass | identical outputs, or how far they were off, where only tolerances changed | run again |
| inconsistent, unstable, screened | outputs that were kept: compared and screened again, on the library's side | run again |
| abort, timeout, out-of-memory | they hold, whatever the rules | |
| flaky, unexported | | run again, or seen from the stored export |

An `error` that says nothing of the test (records.AGAIN) is always run again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec

from opera import compilers
from opera.oracle import comparison as oracle
from opera.oracle import randomness
from opera.pool.interface import JobPool
from opera.pool.workers import DONE, Result
from opera.programs.case import Case, remembered
from opera.programs.migrated import read_manifest, read_values
from opera.programs.verdicts import (
    AGAIN,
    CRASH,
    ERROR,
    FAILURES,
    INCONSISTENT,
    PASS,
    REFUSED,
    SCREENED,
    UNSTABLE,
    UNSUPPORTED,
    VERDICTS,
    Seen,
)
from opera.run import judge
from opera.run.ledger import Ledger, verdict_of
from opera.run.library_side import AGREES, ScreenReply, ScreenRequest
from opera.run.plan import InstalledFrontend, Lookup
from opera.run.rules import Rules
from opera.run.tasks import Again, Confirm, Origin, Rejudge, Step
from opera.run.transitions import with_screens
from opera.store import folders, tests, verdicts
from opera.store.rows import Verdict
from opera.store.workspace import Workspace


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
        elif now.outcome.verdict != before.outcome.verdict:
            self.moved[before.outcome.verdict, now.outcome.verdict] += 1

    def told(self) -> str:
        """Return what changed, in a line; empty where there was nothing to judge."""
        if not self.judged:
            return ""
        moves = [f"{count} {before} → {now}" for (before, now), count in self.moved.most_common()]
        parts = [f"{sum(self.moved.values())} moved ({', '.join(moves)})" if moves else "none moved"]
        if self.again:
            parts.append(f"{self.again} hold too little to be judged, and their tests are run again")
        return f"rules have changed since {self.judged} verdicts were stored: {'; '.join(parts)}"


def stale(workspace: Workspace, target: InstalledFrontend) -> Iterator[Verdict]:
    """Yield the verdicts of a frontend that its rules of today did not conclude, with what was seen."""
    for old in verdicts.rules(workspace, target.name, target.environment):
        kinds = [kind for kind in VERDICTS if not Rules.parse(old).hold(kind, target.rules)]
        for verdict in verdicts.concluded_by(workspace, target.name, target.environment, old, (*kinds, ERROR)):
            outcome = verdict.outcome
            if outcome.verdict not in kinds and not outcome.details.get(AGAIN):
                continue
            if "victims" not in outcome.details:  # what it does to others was seen in many runs, and depends on no rule
                yield verdict


def kept_outputs(test: str, target: InstalledFrontend, variant: str) -> str:
    """Return the name by which the outputs of an inconsistent test are kept (opera.store.folders.Files.file)."""
    return folders.kept_outputs(test, target.name, variant, target.environment)


def needs_screens(workspace: Workspace, target: InstalledFrontend, verdict: Verdict) -> bool:
    """Whether a stale verdict is judged anew by comparing and screening the outputs that were kept.

    Of a random program more than one run must have been.
    """
    judged = verdict.outcome.verdict in (INCONSISTENT, UNSTABLE, SCREENED)
    name, folder = kept_outputs(verdict.test, target, verdict.variant), _folder(workspace, verdict)
    if not judged or not workspace.files.file(name).is_file() or not (folder / "manifest.json").is_file():
        return False
    random = randomness.RANDOM in read_manifest(folder).tags and verdict.outcome.symptom not in randomness.FORMS
    return not random or workspace.files.file(folders.drawn(name)).is_file()


def anew(workspace: Workspace, target: InstalledFrontend, verdict: Verdict) -> Verdict | None:
    """Return a stale verdict as today's rules conclude it, None where what was seen is not enough."""
    outcome, seen = verdict.outcome, verdict.outcome.seen
    if seen is None or outcome.details.get(AGAIN):
        return None
    if seen.raised and outcome.verdict in (CRASH, REFUSED, UNSUPPORTED, ERROR):
        frontend = compilers.frontend(target.compiler, target.library)
        found = judge.conclude(frontend, _case(workspace, target, verdict), outcome.stage, seen)
        if found.hooks:  # the adapter wants more of the exception than was kept
            return None
        outcome = msgspec.structs.replace(
            outcome, verdict=found.verdict, symptom=found.symptom, message=found.message,
            details=found.details(outcome.details),
        )  # fmt: skip
        return msgspec.structs.replace(verdict, outcome=outcome, rules=str(target.rules))
    if outcome.verdict == PASS and _still_agrees(workspace, target, verdict, seen):
        return msgspec.structs.replace(verdict, rules=str(target.rules))
    return None


def _still_agrees(workspace: Workspace, target: InstalledFrontend, verdict: Verdict, seen: Seen) -> bool:
    if seen.identical:
        return True
    if Rules.parse(verdict.rules).comparison != target.rules.comparison:
        return False
    folder = _folder(workspace, verdict)
    if not (folder / "manifest.json").is_file():
        return False
    manifest, expected = read_manifest(folder), read_values(folder, "expected")
    computes_in = compilers.computes_in(compilers.frontend(target.compiler, target.library), target.device)
    return oracle.within(seen.margins, *oracle.granted(computes_in, expected, manifest))


def _case(workspace: Workspace, target: InstalledFrontend, verdict: Verdict) -> Case:
    """Return what is still known of the case that a verdict is of: its names."""
    operator, constants = tests.operator(workspace, verdict.test), tuple[str, ...]()
    artefact = next((x.artefact for x in target.variants if x.name == verdict.variant), "")
    if verdict.outcome.verdict == UNSUPPORTED and (_folder(workspace, verdict) / "manifest.json").is_file():
        manifest = read_manifest(_folder(workspace, verdict))
        constants = manifest.artefacts[artefact].constants(manifest.inputs) if artefact in manifest.artefacts else ()
    return remembered(target.library, operator, verdict.variant, artefact, constants)


def _folder(workspace: Workspace, verdict: Verdict) -> Path:
    return workspace.files.test(verdict.test)


class Rejudging:
    """Judges the stale verdicts of a run's frontends anew.

    Args:
        by_test: Finds the items that the run may come to.
        perform: Does the steps that follow.

    Attributes:
        changes: What came of it.
    """

    def __init__(
        self,
        pool: JobPool,
        ledger: Ledger,
        by_test: Lookup,
        perform: Callable[[list[Step]], None],
    ) -> None:
        self.pool, self.ledger, self.by_test, self.perform = pool, ledger, by_test, perform
        self.workspace, self.changes = ledger.workspace, Changes()

    def begin(self, frontends: Iterable[InstalledFrontend]) -> set[tuple[str, str, str]]:
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

    def _submit(self, target: InstalledFrontend, verdict: Verdict) -> None:
        instance = tests.test(self.workspace, verdict.test).instance
        request = ScreenRequest(
            library=target.library, compiler=target.compiler, test=verdict.test,
            instance=self.workspace.instance(instance).canonical(), outcome=verdict.outcome,
            actual=kept_outputs(verdict.test, target, verdict.variant), anew=True,
            computes_in=compilers.computes_in(compilers.frontend(target.compiler, target.library), target.device),
        )  # fmt: skip
        self.pool.submit(
            f"library {target.library}", request, seconds=120, call="opera.run.library_side:screen",
            tag=Rejudge(target, verdict),
        )  # fmt: skip

    def screened(self, task: Rejudge, result: Result) -> None:
        """Take in what the library's side says."""
        target, verdict = task.frontend, task.verdict
        reply = result.decode(ScreenReply) if result.status == DONE else None
        if reply is None or reply.outcome is None or reply.status == ERROR:
            self._replace(target, verdict, None)
            self._run_again(target, verdict)
            return
        outcome = with_screens(reply.outcome, reply)
        if reply.status == AGREES:  # no margins are known of outputs that agree now: other rules need them run again
            outcome = msgspec.structs.replace(outcome, verdict=PASS, stage="", seen=None)
        now = msgspec.structs.replace(verdict, outcome=outcome, rules=str(target.rules))
        self._replace(target, verdict, now, confirm=True)

    def _run_again(self, target: InstalledFrontend, verdict: Verdict) -> None:
        """Run a test whose kept outputs could not be judged, though its turn may be over."""
        found = self.by_test.get(target.name, verdict.test)
        if found is not None:
            alone = msgspec.structs.replace(found, variant=target.place(verdict.variant), alone=True)
            self.perform([Again(alone)])

    def _replace(
        self, target: InstalledFrontend, before: Verdict, now: Verdict | None, *, confirm: bool = False
    ) -> None:
        """Store a verdict that was judged anew, or have its test run when its turn comes.

        A failure that is another than before is confirmed: now, with `confirm`, else with all that is pending.
        """
        self.changes.note(before, now)
        if now is None:
            self.ledger.stored[target.name].pop((before.test, before.variant), None)
            return
        was, outcome = before.outcome, now.outcome
        if outcome.verdict not in FAILURES:
            now = msgspec.structs.replace(now, finding="", confirmation="")
        elif (outcome.verdict, outcome.symptom) != (was.verdict, was.symptom):
            operator = self.ledger.operator(before.test)
            now = verdict_of(target, before.test, operator, before.variant, outcome)
            now = msgspec.structs.replace(now, confirmation="pending")
            item = self.by_test.get(target.name, before.test)
            if item is not None and confirm:
                self.perform([Confirm(item, now, Origin())])
        (self.ledger.keep if outcome.verdict == was.verdict else self.ledger.store)(now)
