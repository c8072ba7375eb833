"""What one test does to others in the same process: find the test that leaves it in a state in which others fail.

A worker runs many tests. Where one fails that passes in a fresh process and fails again after its predecessors, something
that ran before it matters. If one predecessor alone makes it fail, and others do not, that one is to blame: the finding is
its own, and what ran after it in that worker is run again in fresh processes. If the test fails after whatever ran before
it, or needs several predecessors, it keeps the finding, and their list.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import msgspec

from opera.pool.interface import JobPool
from opera.pool.workers import Result
from opera.programs.verdicts import INCONSISTENT, PASS, Outcome
from opera.run.probe import Probe, Question
from opera.run.tasks import Suspicion, predecessors

SEARCHES = 8
"""Workers of a run in which a culprit is searched; a compiler that leaks state everywhere would cost one for each."""
CONTROLS = 3
"""Other predecessors that are tried alone: a test that most of them make fail too is itself to blame."""
POISONS = "poisons"
"""Symptom of a test after which others fail in the same process."""


class Culprit(msgspec.Struct, frozen=True):
    """A job after which another fails.

    Attributes:
        name: Of the job, as `test/variant`.
        victim: The test that was searched with.
        successors: (test, variant) of what its worker ran after it, in order.
    """

    name: str
    victim: Suspicion
    successors: tuple[tuple[str, str], ...]


class Aftermath:
    """Collects suspicions while a run goes on, and searches for culprits at its end.

    Args:
        pool: The run's own, and the probe on it.
    """

    def __init__(self, pool: JobPool, probe: Probe) -> None:
        self._pool, self._probe = pool, probe
        self._suspicions: dict[int, list[Suspicion]] = defaultdict(list)
        self._histories: dict[int, list[Any]] = {}
        self._passed: dict[str, list[str]] = defaultdict(list)  # frontend → the first tests that passed

    def note(self, result: Result, outcome: Outcome) -> None:
        """Remember what a worker has run."""
        self._histories[result.worker] = result.history
        passed = self._passed[result.group]
        if outcome.verdict == PASS and len(passed) < CONTROLS + 2:  # two of them may be the culprit and its victim
            passed += predecessors([result.tag])

    def suspect(self, suspicion: Suspicion) -> None:
        """Take note of a test that needs its predecessors to fail; its worker is given nothing more to do."""
        self._pool.retire(suspicion.origin.worker)
        self._suspicions[suspicion.origin.worker].append(suspicion)

    def culprits(self) -> Iterator[Culprit]:
        """Yield the culprits of all suspicions, one a worker at most."""
        for worker, suspicions in list(self._suspicions.items())[:SEARCHES]:
            for suspicion in sorted(suspicions, key=lambda x: len(x.origin.predecessors)):
                name = self._search(suspicion)
                if name:
                    after = predecessors(self._histories.get(worker, []))
                    rest = after[after.index(name) + 1 :] if name in after else ()
                    parts = [x.partition("/") for x in dict.fromkeys(rest) if x != name]
                    yield Culprit(name, suspicion, tuple((test, variant) for test, _, variant in parts))
                    break

    def told(self) -> str:
        """Return that some were not searched for, a line; empty where all were."""
        left = len(self._suspicions) - SEARCHES
        if left <= 0:
            return ""
        return f"{left} more workers had tests that fail only after others: what spoils them was searched in {SEARCHES}"

    def _search(self, suspicion: Suspicion) -> str:
        """Return the predecessor that alone makes the test fail, an empty string where there is none such.

        Binary search for the shortest run of last predecessors after which it fails: what one of them leaves behind stays.
        """
        before = suspicion.origin.predecessors
        low, high = 0, len(before)  # it fails after before[low:], and passes after before[high:]
        while high - low > 1:
            middle = (low + high) // 2
            if self._fails(suspicion, before[middle:]):
                low = middle
            else:
                high = middle
        culprit = before[low] if before else ""
        if not culprit or culprit == suspicion.name or not self._fails(suspicion, (culprit,)):
            return ""
        controls = self._others(suspicion, culprit)[:CONTROLS] or [suspicion.name]
        failing = sum(self._fails(suspicion, (x,)) for x in controls)
        return "" if 2 * failing > len(controls) else culprit

    def _others(self, suspicion: Suspicion, culprit: str) -> list[str]:
        """Return what else may run before the test: its other predecessors, the last first, then what passed anywhere."""
        others = [*reversed(suspicion.origin.predecessors), *self._passed[suspicion.frontend.name]]
        return [name for name in dict.fromkeys(others) if name not in (culprit, suspicion.name)]

    def _fails(self, suspicion: Suspicion, before: tuple[str, ...]) -> bool:
        """Run tests and then the suspicious one in one fresh fork; tell whether it fails as it did."""
        verdict = suspicion.verdict
        asked = Question(
            frontend=verdict.frontend, variant=verdict.variant, test=verdict.test, environment=verdict.environment,
            after=before,
        )  # fmt: skip
        return any(x.reached and fails_alike(x.outcome, verdict.outcome) for x in self._probe.ask([asked]))


def fails_alike(outcome: Outcome, other: Outcome) -> bool:
    """Whether a test fails as another outcome says."""
    return (outcome.verdict, outcome.stage, outcome.symptom) == (other.verdict, other.stage, other.symptom)


def poisoning(culprit: Culprit, operator: str, harmed: list[str], where: str) -> Outcome:
    """Return the outcome of a culprit: `operator` is the victim's, `harmed` are the tests whose verdict it changed."""
    victim = culprit.victim.verdict.outcome
    fails = f"{operator} fails ({victim.verdict} in {victim.stage}: {victim.message[:300]})"
    message = f"once it has run, other tests fail in the same process: {fails}"
    details = {
        "tags": ["state-dependent"],
        "victims": harmed,
        "victim": culprit.victim.name,
        "victim_verdict": victim.verdict,
        "victim_stage": victim.stage,
        "victim_symptom": victim.symptom,
    }
    return Outcome(INCONSISTENT, victim.stage, POISONS, message, "", where, {}, details)
