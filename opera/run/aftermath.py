"""What one test does to others in the same process: find the test that leaves it in a state in which others fail.

A worker runs many tests. Where one fails that passes in a fresh process and fails again after its predecessors, something
that ran before it matters. If one predecessor alone makes it fail, and others do not, that one is to blame: the finding is
its own, and what ran after it in that worker is run again in fresh processes. If the test fails after whatever ran before
it, or needs several predecessors, it keeps the finding, and their list.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from opera.pool.pool import Pool
from opera.pool.workers import DONE, Result
from opera.programs.verdicts import INCONSISTENT, PASS, Job, Limits, Outcome
from opera.run.outcomes import outcome_of, reached
from opera.run.plan import InstalledFrontend
from opera.store.workspace import Verdict

SEARCHES = 8
"""Workers of a run in which a culprit is searched; a compiler that leaks state everywhere would cost one for each."""
CONTROLS = 3
"""Other predecessors that are tried alone: a test that most of them make fail too is itself to blame."""
POISONS = "poisons"
"""Symptom of a test after which others fail in the same process."""
SECONDS = 10
"""A replay may take so many times the limit of one test."""


class Origin(msgspec.Struct, frozen=True):
    """Where a failure was seen: the worker, and the jobs that it had run before, as `test/variant`.

    `error` is how opera failed there, for a test that is tried again alone for that.
    """

    worker: int = -1
    predecessors: tuple[str, ...] = ()
    error: Outcome | None = None


class Suspicion(msgspec.Struct, frozen=True):
    """A test that fails after its predecessors and passes without them."""

    frontend: InstalledFrontend
    verdict: Verdict
    origin: Origin

    @property
    def name(self) -> str:
        return f"{self.verdict.test}/{self.verdict.variant}"


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
        pool: The run's own.
        handle: Takes results that are none of this class's.
        job: Makes the job of (frontend, `test/variant`).
    """

    def __init__(
        self,
        pool: Pool,
        limits: Limits,
        handle: Callable[[Result], None],
        job: Callable[[InstalledFrontend, str], Job],
    ) -> None:
        self._pool, self._limits, self._handle, self._job = pool, limits, handle, job
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

    def locate(self, culprit: Culprit) -> str:
        """Return the code that converts the operator of a culprit, once all that the run has begun is done."""
        target = culprit.victim.frontend
        self._pool.submit(
            target.name, self._job(target, culprit.name), seconds=self._limits.seconds, fresh=True,
            call="opera.run.worker:locate", tag=("probe",),
        )  # fmt: skip
        found = ""
        for result in self._pool.results():
            if result.tag != ("probe",):
                self._handle(result)
            elif result.status == DONE:
                found = result.payload
        return found

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
        """Run jobs and then the test in one fresh process; tell whether it fails as it did."""
        jobs = [self._job(suspicion.frontend, name) for name in (*before, suspicion.name)]
        self._pool.submit(
            suspicion.frontend.name, jobs, seconds=self._limits.seconds * SECONDS, memory=self._limits.memory, fresh=True,
            call="opera.run.worker:replay", tag=("probe",),
        )  # fmt: skip
        found = False
        for result in self._pool.results():
            if result.tag == ("probe",):
                found = reached(result, suspicion.name) and fails_alike(outcome_of(result), suspicion.verdict)
            else:
                self._handle(result)
        return found


def predecessors(history: list[Any]) -> tuple[str, ...]:
    """Return the names of the tests that a worker ran, of its history of tags."""
    return tuple(f"{tag[1].test}/{tag[1].frontend.variants[tag[2]].name}" for tag in history if tag[0] == "first")


def fails_alike(outcome: Outcome, verdict: Verdict) -> bool:
    """Whether a test fails as a verdict says."""
    one = (outcome.verdict, outcome.stage, outcome.symptom)
    return one == (verdict.outcome.verdict, verdict.outcome.stage, verdict.outcome.symptom)


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
