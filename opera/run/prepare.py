"""Making what must be there before a test is executed: migrated tests in batches, and artefacts that tests only offer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from opera.errors import WorkspaceError
from opera.pool.interface import JobPool
from opera.pool.workers import ABORT, DONE, STARVED, UNAVAILABLE, Result
from opera.programs import migrated
from opera.programs.migrated import Artefact, Manifest
from opera.programs.verdicts import ERROR, Limits
from opera.run import plan, rules, tasks
from opera.run.library_side import MADE, ExportRequest, WrapReply, WrapRequest
from opera.store.folders import Files
from opera.store.rows import Test

WRAP_BATCH = 24
"""Instances wrapped by one library-side job."""
MANIFESTS = 10_000
"""Manifests that are remembered, more than a large cluster has under way."""
NOT_DONE = (STARVED, UNAVAILABLE)
"""What becomes of a job that says nothing of its test."""
VALID = "valid"
"""Status of a test that its library accepts (`invalid` and `error` are the others)."""
Waiter = TypeVar("Waiter")


class Programs(Protocol):
    """What is to be wrapped, and what became of it: a workspace, or programs that were made up just now."""

    def captured_form(self, name: str) -> dict[str, Any]:
        """Return the corpus form of an instance."""

    def tests(self, exporter: str) -> dict[str, Test]:
        """Return instance → test, for one exporter."""

    def save_tests(self, exporter: str, tests: Iterable[Test]) -> None:
        """Store what became of instances."""


class Wrapped(msgspec.Struct, frozen=True):
    """What became of a batch: tests that are made or known to be rejected, instances to be wrapped one by one, or left."""

    tests: tuple[Test, ...] = ()
    alone: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


class Preparation(Generic[Waiter]):
    """Wraps and exports what somebody waits for. What is made is stored, and serves everybody who asks later.

    Attributes:
        made: exporter → instance → its migrated test.
    """

    def __init__(self, programs: Programs, files: Files, pool: JobPool, limits: Limits) -> None:
        self.programs, self.files, self.pool, self.limits = programs, files, pool, limits
        self.made: dict[str, dict[str, Test]] = {}
        self._waiting: dict[str, list[Waiter]] = {}  # instance → who waits for it to be wrapped
        self._unwrapped: dict[tuple[str, str], list[str]] = defaultdict(list)  # library, exporter → instances
        self._exporting: dict[tuple[str, str], list[Waiter]] = {}  # (test, artefact) → who waits for it
        self._manifests: dict[
            str, Manifest
        ] = {}  # of the tests that were taken up last: each is asked for several times

    # ------------------------------------------------------------------ wrapping

    def tests(self, exporter: str) -> dict[str, Test]:
        """Return instance → test of one exporter, of all that is known."""
        if exporter not in self.made:
            self.made[exporter] = self.programs.tests(exporter)
        return self.made[exporter]

    def known(self, exporter: str, instance: str) -> Test | None:
        """Return the test of an instance where it is there, or is known to be invalid."""
        test = self.tests(exporter).get(instance)
        if test is not None and test.status == VALID and not self._readable(test.id):
            return None  # its folder was deleted or damaged: it is made again
        return test

    def _readable(self, test: str) -> bool:
        try:
            self._read(test)
        except WorkspaceError:
            return False
        return True

    def _read(self, test: str) -> Manifest:
        """Read the manifest of a test, which does not change while a run goes on."""
        found = self._manifests[test] = migrated.read_manifest(self.files.test(test))
        if len(self._manifests) > MANIFESTS:
            del self._manifests[next(iter(self._manifests))]
        return found

    def rejected(self, exporter: str, instance: str) -> bool:
        """Return whether the library is known to reject an instance."""
        test = self.tests(exporter).get(instance)
        return test is not None and test.status != VALID

    def wrap(self, library: str, exporter: str, instance: str, waiter: Waiter) -> None:
        """Have an instance wrapped by one of the next batches."""
        if instance not in self._waiting:
            self._waiting[instance] = []
            self._unwrapped[library, exporter].append(instance)
        self._waiting[instance].append(waiter)

    def submit(self) -> None:
        """Submit the batches that have come together."""
        for (library, exporter), instances in self._unwrapped.items():
            while instances:
                batch, instances[:] = instances[:WRAP_BATCH], instances[WRAP_BATCH:]
                self._submit(tasks.Wrap(library, exporter, tuple(batch)))

    def _submit(self, task: tasks.Wrap) -> None:
        requests = [self._request(task, name) for name in task.instances]
        self.pool.submit(f"library {task.library}", requests, seconds=120 + 5 * len(requests), tag=task)

    def _request(self, task: tasks.Wrap, instance: str) -> WrapRequest:
        captured = msgspec.json.encode(self.programs.captured_form(instance))
        return WrapRequest(task.library, plan.test_id(instance, task.exporter), captured)

    def wrapped(self, task: tasks.Wrap, result: Result) -> list[tuple[Waiter, Test | None]]:
        """Take in the result of a batch; return who waited for what became of it, None where that is left open."""
        found = wrapped(task, result)
        for name in found.alone:
            self._submit(msgspec.structs.replace(task, instances=(name,)))
        if found.tests:
            self.programs.save_tests(task.exporter, found.tests)
            self.tests(task.exporter).update((test.instance, test) for test in found.tests)
        done = [(waiter, test) for test in found.tests for waiter in self._waiting.pop(test.instance)]
        return [*done, *((waiter, None) for name in found.left for waiter in self._waiting.pop(name))]

    # ------------------------------------------------------------------ exporting

    def artefact(self, test: str, name: str) -> Artefact | migrated.Export | None:
        """Return an artefact that is there, or the Export that failed, or None where the test has no such artefact.

        An Export without a message means that it is offered and was not tried, or that it was checked by other rules.
        """
        manifest = self._manifests.get(test) or self._read(test)
        if name in manifest.artefacts:
            return manifest.artefacts[name]
        if name not in manifest.offers:
            return None
        found = migrated.read_export(self.files.test(test), name)
        stale = found is None or found.rules != rules.of_exports()
        return migrated.Export(None) if found is None or stale else found.artefact or found

    def export(self, library: str, test: str, name: str, waiter: Waiter) -> None:
        """Have an artefact made that a test offers."""
        waiting = self._exporting.setdefault((test, name), [])
        waiting.append(waiter)
        if len(waiting) == 1:
            self.pool.submit(
                f"library {library}",
                ExportRequest(library, name, test),
                seconds=self.limits.seconds,
                memory=self.limits.memory,
                call="opera.run.library_side:export",
                tag=tasks.Export(library, test, name),
            )

    def exported(self, task: tasks.Export, result: Result) -> tuple[migrated.Export | None, list[Waiter]]:
        """Take in the result of an export; return it, None where it is left open, and who waited for it."""
        export = exported(result)
        if export is not None and result.status != DONE:
            migrated.save_export(self.files.test(task.test), task.artefact, export)
        return export, self._exporting.pop((task.test, task.artefact))


def wrapped(task: tasks.Wrap, result: Result) -> Wrapped:
    """Return what the result of a batch says of its instances. One that kills the wrapper is found by wrapping each alone."""
    if result.status not in (DONE, UNAVAILABLE) and len(task.instances) > 1:
        return Wrapped(alone=task.instances)
    if result.status in NOT_DONE:
        return Wrapped(left=task.instances)
    if result.status == DONE:
        answers = result.decode(list[WrapReply])
    else:
        why = f"wrapping ended in {result.status}: {result.exit} {result.message or result.log}"[:2000]
        answers = [WrapReply(plan.test_id(task.instances[0], task.exporter), ERROR, why)]
    return Wrapped(
        tuple(
            Test(x.test, instance, VALID if x.status == MADE else x.status, x.reason, x.seconds)
            for instance, x in zip(task.instances, answers, strict=True)
        )
    )


def exported(result: Result) -> migrated.Export | None:
    """Return how an export went; what killed or stopped its process is its failure, what was not served is left open."""
    if result.status in NOT_DONE:
        return None
    if result.status == DONE:
        found: migrated.Export = result.decode(migrated.Export)
        return found
    said = f"{result.status} {result.exit}: {result.message or result.log}"[:2000]
    symptom = result.exit if result.status == ABORT else result.status
    return migrated.Export(None, symptom, said, result.seconds, rules.of_exports())
