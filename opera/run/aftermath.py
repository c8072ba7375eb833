"""What one test does to others in the same process: find the test that leaves it in a state in which others fail.

A worker runs many tests. Where one fails that passes in a fresh process and fails again after its predecessors, something
that ran before it matters. If one predecessor alone makes it fail, and others do not, that one is to blame: the finding is
its own, and what ran after it in that worker is run again in fresh processes. Where it is wrong itself, or dies, in a fresh
process, that failure is told, which a script shows; else that it spoils what comes after it. If the test fails after whatever
ran before it, or needs several predecessors, it keeps the finding, and their list.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import msgspec

from opera import compilers
from opera.compilers import THREADS
from opera.oracle.messages import gist
from opera.pool.interface import JobPool
from opera.pool.workers import Result
from opera.programs.verdicts import FAILURES, INCONSISTENT, PASS, SCREENED, Outcome
from opera.run.ledger import detailed
from opera.run.probe import Probe, Question
from opera.run.tasks import Suspicion, predecessors

SEARCHES = 8
"""Workers of a run in which a culprit is searched; a compiler that leaks state everywhere would cost one for each."""
CONTROLS = 3
"""Other predecessors that are tried alone: a test that most of them make fail too is itself to blame."""
FRESH = 3
"""Processes in which a culprit is run by itself: what writes where it should not may be right in one of them."""
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

    def outcome(self, culprit: Culprit, known: str, operator: str, harmed: list[str], where: str) -> Outcome | None:
        """Return what is told of a culprit: how it fails by itself, if it does; else that it spoils what comes after it.

        None where its verdict tells of it already.

        Args:
            known: The verdict on it: where its outputs were screened, that they are others is no failure of its own.
            operator: The victim's.
            harmed: The tests whose verdict it changed.
            where: The code that converts its operator.
        """
        own = self.by_itself(culprit)
        if own is None or (known == SCREENED and own.verdict == INCONSISTENT):
            return poisoning(culprit, operator, harmed, where, self.by_itself(culprit, threads=True))
        if own.verdict == known:
            return None
        return detailed(own, victims=harmed, victim=culprit.victim.name)

    def by_itself(self, culprit: Culprit, *, threads: bool = False) -> Outcome | None:
        """Return how a culprit fails in fresh processes of its own, which ran nothing before; None where it never does. It runs
        once in each, for it spoils them for itself as well.

        Args:
            threads: Whether it is asked with as many threads as the compiler takes by itself; None of one that has no such way.
        """
        frontend, (test, _, variant) = culprit.victim.frontend, culprit.name.partition("/")
        compiler, _, library = frontend.name.rpartition("-")
        ways = [x.name for x in compilers.ways(compilers.frontend(compiler, library)) if x.kind == THREADS]
        asked = [
            Question(
                frontend=frontend.name, variant=variant, test=test, environment=frontend.environment,
                fresh=True, way=way,
            )
            for way in (ways if threads else [""])
            for _ in range(FRESH)
        ]  # fmt: skip
        return next((x.outcome for x in self._probe.ask(asked) if x.outcome.verdict in FAILURES), None)

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


def _says(outcome: Outcome) -> str:
    return gist(outcome.message)[:300]


def poisoning(
    culprit: Culprit, operator: str, harmed: list[str], where: str, threads: Outcome | None = None
) -> Outcome:
    """Return the outcome of a culprit that is right by itself.

    Args:
        operator: The victim's.
        harmed: The tests whose verdict it changed.
        threads: How it fails by itself with the compiler's own number of threads.
    """
    victim = culprit.victim.verdict.outcome
    fails = f"{operator} fails ({victim.verdict} in {victim.stage}: {_says(victim)})"
    message = f"once it has run, other tests fail in the same process: {fails}"
    if threads is not None:
        message += f"; with the compiler's own number of threads it fails by itself: {_says(threads)}"
    details = {
        "tags": ["state-dependent"],
        "victims": harmed,
        "victim": culprit.victim.name,
        "victim_verdict": victim.verdict,
        "victim_stage": victim.stage,
        "victim_symptom": victim.symptom,
    }
    return Outcome(INCONSISTENT, victim.stage, POISONS, message, "", where, {}, details)
