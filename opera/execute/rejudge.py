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
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from opera import compilers, migrated
from opera.execute import judge, oracle
from opera.execute.plan import Frontend
from opera.execute.records import AGAIN, CRASH, ERROR, INCONSISTENT, PASS, SCREENED, UNSUPPORTED, Seen
from opera.execute.rules import Rules
from opera.migrated import read_manifest, read_values
from opera.workspace import Verdict, Workspace

KEPT = 4 << 20
"""Bytes: outputs of inconsistent tests that are larger are not kept."""

Apply = Callable[[Verdict, Verdict | None], None]
"""Takes a stored verdict, and what it is now; None where the test is to be run again."""


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
    now = str(target.rules)
    found = workspace.verdicts(
        "frontend = ? AND environment = ? AND (rules != ? OR verdict = ?)",
        (target.name, target.environment, now, ERROR),
        seen=True,
    )
    for verdict in found:
        if "victims" in verdict.details:  # what it does to others was seen in many runs, and depends on no rule
            continue
        if verdict.details.get(AGAIN) or not Rules.parse(verdict.rules).hold(verdict.verdict, target.rules):
            yield verdict


def kept_outputs(workspace: Workspace, verdict: Verdict) -> Path:
    """Return where the outputs of an inconsistent test are kept."""
    name = f"{verdict.test}-{verdict.frontend}-{verdict.variant}-{verdict.environment}.msgpack"
    return workspace.outputs_folder / verdict.test[:2] / name


def needs_screens(workspace: Workspace, verdict: Verdict) -> bool:
    """Whether a stale verdict is judged anew by comparing and screening the outputs that were kept."""
    judged = verdict.verdict in (INCONSISTENT, SCREENED)
    return judged and kept_outputs(workspace, verdict).is_file() and _folder(workspace, verdict).is_dir()


def anew(workspace: Workspace, target: Frontend, verdict: Verdict) -> Verdict | None:
    """Return a stale verdict as today's rules conclude it, None where what was seen is not enough."""
    seen = verdict.seen
    if seen is None or verdict.details.get(AGAIN):
        return None
    if seen.raised and verdict.verdict in (CRASH, UNSUPPORTED, ERROR):
        found = judge.conclude(compilers.get(target.compiler), verdict.stage, seen)
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
    computes_in = getattr(compilers.get(target.compiler), "COMPUTES_IN", {})
    return oracle.within(seen.margins, *oracle.granted(computes_in, expected, manifest.rtol, manifest.atol))


def _folder(workspace: Workspace, verdict: Verdict) -> Path:
    return migrated.folder(workspace.tests_folder, verdict.test)
