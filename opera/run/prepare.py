"""Making what items need before they can be executed: migrated tests in batches, and artefacts that tests only offer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import msgspec

from opera.compilers import Variant
from opera.errors import WorkspaceError
from opera.pool.pool import Pool
from opera.pool.workers import DONE, STARVED, UNAVAILABLE, Result
from opera.programs import migrated
from opera.programs.migrated import Artefact, Export
from opera.programs.verdicts import ABORT, ERROR, Job, Limits
from opera.run import plan, rules
from opera.run.library_side import MADE, ExportRequest, WrapReply, WrapRequest
from opera.run.plan import InstalledFrontend, Item
from opera.store.workspace import Test, Workspace

WRAP_BATCH = 24
"""Instances wrapped by one library-side job."""
NOT_DONE = (STARVED, UNAVAILABLE)
"""What becomes of a job that says nothing of its test."""
VALID = "valid"
"""Status of a test that its library accepts (`invalid` and `error` are the others)."""


class Preparation:
    """Wraps and exports what items wait for. What is made is stored, and serves every frontend and every later run.

    Attributes:
        tests: exporter → instance → its migrated test.
        ready: Called with an item whose test is valid, or whose artefact was made or could not be made.
        dropped: Called with an item whose test its library rejects, or which opera could not make.
        exported: Called with an item and what its export cost: seconds inside the exporter, slot-seconds.
        left: Called with an item that opera could not prepare in time: nothing is stored, and the next run tries again.
    """

    def __init__(
        self,
        workspace: Workspace,
        pool: Pool,
        limits: Limits,
        exporters: set[str],
        ready: Callable[[Item], None],
        dropped: Callable[[Item], None],
        exported: Callable[[Item, float, float], None],
        left: Callable[[Item], None],
    ) -> None:
        self.workspace, self.pool, self.limits = workspace, pool, limits
        self.tests = {name: workspace.tests(name) for name in exporters}
        self.ready, self.dropped, self.exported, self.left = ready, dropped, exported, left
        self._waiting: dict[str, list[Item]] = {}  # instance → items that wait for it to be wrapped
        self._unwrapped: dict[str, list[str]] = defaultdict(list)  # exporter → instances to be wrapped next
        self._exporting: dict[tuple[str, str], list[Item]] = {}  # (test, artefact) → items that wait for it

    def folder(self, test: str) -> Path:
        """Return the folder of a migrated test."""
        return migrated.folder(self.workspace.tests_folder, test).absolute()

    def job(self, target: InstalledFrontend, variant: Variant, test: str, save: str = "") -> Job:
        """Return what runs a test through one variant."""
        return Job(
            test=test, compiler=target.compiler, library=target.library, variant=variant.name,
            artefact=variant.artefact, directory=str(self.folder(test)), save_outputs=save,
        )  # fmt: skip

    def named_job(self, target: InstalledFrontend, name: str) -> Job:
        """Return the job of a `test/variant`."""
        test, _, variant = name.partition("/")
        return self.job(target, target.variants[target.place(variant)], test)

    # ------------------------------------------------------------------ wrapping

    def known(self, item: Item) -> Test | None:
        """Return the item's test where it is there, or is known to be invalid."""
        test = self.tests[item.frontend.exporter].get(item.instance)
        if test is not None and test.status == VALID and not self._readable(item.test):
            return None  # its folder was deleted or damaged: it is made again
        return test

    def _readable(self, test: str) -> bool:
        try:
            migrated.read_manifest(self.folder(test))
        except WorkspaceError:
            return False
        return True

    def rejected(self, item: Item) -> bool:
        """Return whether the library is known to reject the item's instance."""
        test = self.tests[item.frontend.exporter].get(item.instance)
        return test is not None and test.status != VALID

    def wrap(self, item: Item) -> None:
        """Have the item's instance wrapped by one of the next batches."""
        if item.instance not in self._waiting:
            self._waiting[item.instance] = []
            self._unwrapped[item.frontend.exporter].append(item.instance)
        self._waiting[item.instance].append(item)

    def submit(self) -> None:
        """Submit the batches that have come together."""
        for exporter, instances in self._unwrapped.items():
            while instances:
                batch, instances[:] = instances[:WRAP_BATCH], instances[WRAP_BATCH:]
                self._submit_wrap(exporter, batch)

    def _submit_wrap(self, exporter: str, instances: list[str]) -> None:
        library = self._waiting[instances[0]][0].frontend.library
        requests = [self._wrap_request(library, name, exporter) for name in instances]
        self.pool.submit(
            f"library {library}", requests, seconds=120 + 5 * len(requests), tag=("wrap", exporter, instances)
        )

    def _wrap_request(self, library: str, instance: str, exporter: str) -> WrapRequest:
        test = plan.test_id(instance, exporter)
        captured = msgspec.json.encode(self.workspace.captured_form(instance))
        return WrapRequest(library, test, captured, str(self.folder(test)))

    def wrapped(self, result: Result, exporter: str, instances: list[str]) -> None:
        """Take in the result of a batch."""
        if (
            result.status not in (DONE, UNAVAILABLE) and len(instances) > 1
        ):  # one of them kills the wrapper: find out which
            for name in instances:
                self._submit_wrap(exporter, [name])
            return
        if result.status in NOT_DONE:
            for name in instances:
                for item in self._waiting.pop(name):
                    self.left(item)
            return
        if result.status == DONE:
            answers = result.decode(list[WrapReply])
        else:
            why = f"wrapping ended in {result.status}: {result.exit} {result.message or result.log}"[:2000]
            answers = [WrapReply(plan.test_id(instances[0], exporter), ERROR, why)]
        tests = [
            Test(
                answer.test, instance, VALID if answer.status == MADE else answer.status, answer.reason, answer.seconds
            )
            for instance, answer in zip(instances, answers, strict=True)
        ]
        self.workspace.save_tests(exporter, tests)
        for test in tests:
            self.tests[exporter][test.instance] = test
            for item in self._waiting.pop(test.instance):
                (self.ready if test.status == VALID else self.dropped)(item)

    # ------------------------------------------------------------------ exporting

    def artefact(self, test: str, name: str) -> Artefact | Export | None:
        """Return an artefact that is there, or the Export that failed, or None where the test has no such artefact.

        An Export without a message means that it is offered and was not tried, or that it was checked by other rules.
        """
        folder = self.folder(test)
        manifest = migrated.read_manifest(folder)
        if name in manifest.artefacts:
            return manifest.artefacts[name]
        if name not in manifest.offers:
            return None
        found = migrated.read_export(folder, name)
        stale = found is None or found.rules != rules.of_exports()
        return Export(None) if found is None or stale else found.artefact or found

    def export(self, item: Item, name: str) -> None:
        """Have an artefact made that the item's test offers."""
        waiting = self._exporting.setdefault((item.test, name), [])
        waiting.append(item)
        if len(waiting) == 1:
            library = item.frontend.library
            self.pool.submit(
                f"library {library}",
                ExportRequest(library, name, str(self.folder(item.test))),
                seconds=self.limits.seconds,
                memory=self.limits.memory,
                call="opera.run.library_side:export",
                tag=("export", item.test, name),
            )

    def made(self, result: Result, test: str, name: str) -> None:
        """Take in the result of an export; what killed or stopped its process is stored as its failure."""
        if result.status in NOT_DONE:
            for item in self._exporting.pop((test, name)):
                self.left(item)
            return
        if result.status == DONE:
            export = result.decode(Export)
        else:
            said = f"{result.status} {result.exit}: {result.message or result.log}"[:2000]
            symptom = result.exit if result.status == ABORT else result.status
            export = Export(None, symptom, said, result.seconds, rules.of_exports())
            migrated.save_export(self.folder(test), name, export)
        first, *rest = self._exporting.pop((test, name))
        self.exported(first, export.seconds, result.seconds)
        for item in (first, *rest):
            self.ready(item)
