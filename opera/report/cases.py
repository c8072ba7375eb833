"""Every test on every frontend, one after the other, as formats want it that list them all: none is held longer than needed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter

import msgspec

from opera.programs.program import operators_of
from opera.programs.verdicts import ERROR, FAILURES, PASS, SCREENED
from opera.store import tests, verdicts
from opera.store.rows import unpack
from opera.store.tests import Origin
from opera.store.verdicts import Tested
from opera.store.workspace import COMBINED, Workspace
from opera.triage.findings import Finding

PASSED, FAILED, SKIPPED, BROKEN = "passed", "failed", "skipped", "error"
"""What became of a test, in the words of CI systems: BROKEN is opera's own failure."""
RANK = {verdict: place for place, verdict in enumerate(COMBINED)}


class Case(msgspec.Struct, frozen=True):
    """A test on a frontend, with the worst verdict over its variants.

    Attributes:
        kind: PASSED, FAILED, SKIPPED or BROKEN. A failure of a known issue is skipped, and so is what says nothing against the
            compiler: unsupported, unexported, screened, flaky, time-outs that no fresh process confirmed.
        operator, name: What it calls, and the library's test that it was made of.
        seconds: Inside the compiler, over all variants.
        reason: Of whatever is neither a pass nor a failure, in few words; the message of a failure.
        finding: What it belongs to, where it fails.
    """

    test: str
    kind: str
    verdict: str
    operator: str
    name: str
    seconds: float
    reason: str = ""
    finding: Finding | None = None


class Count(msgspec.Struct):
    """How many cases a frontend has, in all and by kind, and their seconds."""

    kinds: dict[str, int]
    seconds: float = 0.0

    @property
    def total(self) -> int:
        """All cases."""
        return sum(self.kinds.values())


class _Rest(msgspec.Struct):
    """What is read of a verdict's document."""

    message: str = ""
    details: dict[str, object] = {}


class Cases:
    """The tests of a workspace on each frontend; `findings` are its findings, marked with what is known of them."""

    def __init__(self, workspace: Workspace, findings: Sequence[Finding]) -> None:
        self._workspace = workspace
        self._origins = tests.origins(workspace)
        self._findings: dict[tuple[str, str], dict[str, Finding]] = defaultdict(dict)
        for finding in findings:
            of = self._findings[finding.frontend, finding.environment]
            for test in finding.members:
                if test not in of or finding.new > of[test].new:  # of two variants' findings, the one that is new
                    of[test] = finding

    def count(self, frontend: str, environment: str) -> Count:
        """Count the cases of a frontend without reading what was said of them."""
        counted = Count(dict.fromkeys((PASSED, FAILED, SKIPPED, BROKEN), 0))
        for case in self._cases(frontend, environment, rest=False):
            counted.kinds[case.kind] += 1
            counted.seconds += case.seconds
        return counted

    def of(self, frontend: str, environment: str) -> Iterator[Case]:
        """Yield the cases of a frontend in the order of their tests' ids."""
        return self._cases(frontend, environment, rest=True)

    def _cases(self, frontend: str, environment: str, *, rest: bool) -> Iterator[Case]:
        found: Mapping[str, Finding] = self._findings[frontend, environment]
        rows = verdicts.by_test(self._workspace, frontend, environment, rest=rest)
        for test, group in groupby(rows, key=attrgetter("test")):
            yield _case(test, list(group), self._origins.get(test, Origin("?", "")), found.get(test))


def _case(test: str, shown: Sequence[Tested], origin: Origin, finding: Finding | None) -> Case:
    worst = min(shown, key=lambda x: RANK[x.verdict])
    seconds = sum(x.seconds for x in shown)
    said = msgspec.json.decode(unpack(worst.rest), type=_Rest) if worst.rest is not None else _Rest()
    known = finding is not None and not finding.new
    if worst.verdict in FAILURES and finding is not None:
        kind, reason = (SKIPPED if known else FAILED), said.message
    elif worst.verdict == PASS:
        kind, reason = PASSED, ""
    elif worst.verdict == ERROR:
        kind, reason = BROKEN, said.message
    else:
        why = str(said.details.get("screen", "")) if worst.verdict == SCREENED else said.message
        told = "not confirmed" if worst.verdict in FAILURES else worst.verdict
        kind, reason = SKIPPED, f"{told}: {why}" if why else told
    operator = " + ".join(dict.fromkeys(operators_of(origin.operator)))
    belongs = finding if worst.verdict in FAILURES else None
    return Case(test, kind, worst.verdict, operator, origin.test, seconds, reason, belongs)
