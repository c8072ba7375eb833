"""Runs plans in child processes; a call that hangs or kills its process is left out, and the plan goes on."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import msgspec

from opera import resources
from opera.capture.child import Answer, Job, Setup
from opera.sources.children import Children, Lost, how
from opera.sources.deeprel import plans as files
from opera.sources.deeprel.plans import Attempt, Outcome, Plan
from opera.sources.deeprel.replay import Replayed
from opera.sources.suites.suites import FileReport
from opera.store.workspace import Crash

DRIVER = "opera.sources.deeprel.driver"
PATIENCE = 3600.0
"""Seconds that a plan may take; single calls have their own limit, and a signal of their own ends what exceeds it."""
MAX_DEATHS = 6
"""A plan that costs more processes than this is given up."""


class Done(msgspec.Struct, frozen=True):
    """What became of a plan."""

    plan: Plan
    report: FileReport
    outcomes: list[Outcome]
    replayed: Replayed
    crashes: list[Crash]


class Pool:
    """Runs plans in children, each used for many. Use it as a context manager."""

    def __init__(self, source: str, library: str, folder: Path, workers: int) -> None:
        self.setup = Setup(source, library, resources.declaration("instrumentation", library).get("points", {}))
        self._children, self._workers = Children(folder), workers
        self._executor = ThreadPoolExecutor(workers)

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)
        self._children.close()

    def run(self, plans: Iterable[tuple[str, Plan]]) -> Iterator[Done]:
        """Run (name, plan) one after the other, and yield what became of them in this order.

        No more plans are taken from the iterable than are needed to keep the children busy.
        """
        waiting: deque[Future[Done]] = deque()
        for number, (name, plan) in enumerate(plans):
            waiting.append(self._executor.submit(self._run, name, plan, self._children.folder / f"{number}.plan"))
            while len(waiting) > 2 * self._workers:
                yield self._finished(waiting)
        while waiting:
            yield self._finished(waiting)

    def _finished(self, waiting: deque[Future[Done]]) -> Done:
        return waiting.popleft().result()

    def _run(self, name: str, plan: Plan, path: Path) -> Done:
        spool = path.with_suffix(".spool")
        crashes: list[Crash] = []
        for file in (spool, files.outcomes_file(path)):
            file.unlink(missing_ok=True)
        while True:
            path.write_bytes(msgspec.msgpack.encode(plan))  # JSON would make None of infinity
            try:
                job = Job("driver", "", str(path), str(spool), driver=DRIVER)
                answer = self._children.run(self.setup, job, PATIENCE)
                break
            except Lost as lost:
                status, reason = lost.args
                blamed = _blamed(path) if status == "died" else None
                if blamed is None or len(crashes) >= MAX_DEATHS or (blamed.pair, blamed.document) in plan.skip:
                    answer = Answer(status, reason, 0, 0, 0, 0, {}, 0.0)
                    break
                crashes.append(Crash(how(reason), blamed.operator, {"arguments": f"{blamed.source} {blamed.instance}"}))
                plan = msgspec.structs.replace(plan, skip=[*plan.skip, (blamed.pair, blamed.document)])
        report = FileReport(
            self.setup.source, name, answer.status, answer.reason, answer.tests, answer.failed, answer.calls,
            answer.left_out, answer.seconds, spool,
        )  # fmt: skip
        found = [] if plan.title else files.outcomes(path)
        replayed = files.replayed(path) if plan.title else Replayed()
        for file in (path, files.outcomes_file(path), files.attempt_file(path)):
            file.unlink(missing_ok=True)
        return Done(plan, report, found, replayed, crashes)


def _blamed(path: Path) -> Attempt | None:
    """Return the call that ran when the process died."""
    try:
        return msgspec.json.decode(files.attempt_file(path).read_bytes().strip(b"\0 "), type=Attempt)
    except (OSError, msgspec.DecodeError):
        return None
