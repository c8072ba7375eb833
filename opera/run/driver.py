"""Run ranked tests on frontends: wrap, execute, try variants, screen, confirm, store.

One thread drives everything from the results of one pool. An item's way: (wrap) → execute variant → (screen, where outputs
are inconsistent) → store → (next variant) → (confirm in a fresh fork). Each stage is a task (`tasks.py`), and what follows
from its result is said by pure functions (`transitions.py`, `confirm.py`): here they are fed, dispatched and saved. What is
stored is never lost; what is not stored is done again by the next run.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from contextlib import nullcontext
from functools import partial
from itertools import groupby
from typing import Protocol

import msgspec

from opera import compilers
from opera.errors import OperaError, UsageError
from opera.pool.interface import JobPool
from opera.pool.workers import DONE, STARVED, UNAVAILABLE, Result
from opera.programs.verdicts import ERROR, PASS, UNSUPPORTED, Job, Limits
from opera.run import exporters, plan, pools, quota, rejudge, renewal, transitions
from opera.run.accounts import Accounts
from opera.run.aftermath import Aftermath, Culprit
from opera.run.confirm import Members, confirmed, question, replayed
from opera.run.groups import describe, groups, unpatched
from opera.run.ledger import Ledger, verdict_of
from opera.run.library_side import ScreenReply, ScreenRequest
from opera.run.outcomes import outcome_of
from opera.run.plan import InstalledFrontend, Item, Selection
from opera.run.prepare import VALID, Preparation
from opera.run.probe import Answer, Asked, Probe, Question
from opera.run.quota import Quota
from opera.run.rejudge import Rejudging
from opera.run.tasks import (
    Advance,
    Again,
    Conclude,
    Confirm,
    Execute,
    Export,
    Finish,
    Locate,
    Need,
    Origin,
    Rejudge,
    Replay,
    Screen,
    Step,
    Store,
    Suspect,
    Wrap,
    predecessors,
    route,
)
from opera.store import verdicts
from opera.store.folders import keep_outputs
from opera.store.rows import Test
from opera.store.workspace import Workspace

LOOKAHEAD = 96
"""Items taken up at a time: enough to keep every slot busy while the next ones are wrapped."""
ROOM = 3
"""And so many times what the pool takes in at a time."""
OVERTIME = 0.05
"""Share of the time budget that jobs which run at its end are given to finish."""


class Options(msgspec.Struct, frozen=True):
    """What the user asked of a run; `compilers` empty means all that are installed, `python` empty this interpreter.

    `pythons` is compiler → interpreter of those that have one of their own. `chosen` are values of the compilers' settings
    (opera.compilers.settings).
    With the address of a `cluster`, `workers` are those of each node, 0 for as many as it has CPUs, and `store` is where tests
    lie for all of them, empty where they travel with the jobs (docs/cluster.md).
    """

    compilers: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    python: str = ""
    pythons: dict[str, str] = {}
    workers: int = 2
    cluster: str = ""
    store: str = ""
    time_budget: float | None = None
    selection: Selection = Selection()
    limits: Limits = Limits()
    chosen: dict[str, str] = {}

    def interpreter(self, compiler: str) -> str:
        """Return the interpreter of a compiler, empty for the one that runs opera."""
        return self.pythons.get(compiler, self.python)


class Progress(Protocol):
    """What a run tells whoever watches."""

    def say(self, text: str) -> None:
        """Show a line that stays."""

    def begin(self, total: int) -> None:
        """The number of (test, frontend) pairs to be run is known."""

    def step(self, counts: Counter[str], done: int, efficiency: float) -> None:
        """Some progress was made: verdicts so far, pairs done, efficiency so far."""


class Summary(msgspec.Struct, frozen=True):
    """What a run did: frontend → verdict → tests, findings that were not there before, seconds, efficiency.

    Attributes:
        stopped: Why it ended before all was done, empty where it did not.
        lost: Frontend → why it could not be run to the end.
    """

    run: int
    counts: dict[str, dict[str, int]]
    new_findings: list[str]
    seconds: float
    efficiency: float
    stopped: str = ""
    lost: dict[str, str] = {}


def run(workspace: Workspace, options: Options, progress: Progress, pool: JobPool | None = None) -> Summary:
    """Run what has no verdict yet, in a pool of its own or in one that holds this workspace's groups of these frontends.

    Raises UsageError, NotInstalled or NoAnswer where nothing can be run.
    """
    chosen = [name for name in workspace.libraries() if not options.libraries or name in options.libraries]
    if not chosen:
        raise UsageError(
            "the workspace holds no instances to run" + (" of that library" if options.libraries else ""),
            cause="nothing was extracted yet",
            fix="run `opera extract onnx` first",
        )
    if renewed := renewal.renew(workspace):
        progress.say(f"{renewed} findings are sorted anew: what makes two failures one is told apart differently now")
    names = list(options.compilers or compilers.registered())
    pairs = [(name, library) for name in names for library in chosen if library in compilers.get(name).FRONTENDS]
    if not pairs:
        raise UsageError(f"none of {', '.join(names)} has a frontend for {', '.join(chosen)}")
    plan.check(workspace, list(dict.fromkeys(library for _, library in pairs)), options.selection)
    if options.selection.balance:
        quota.check(workspace, list(dict.fromkeys(library for _, library in pairs)), options.selection)
    own = nullcontext(pool) if pool is not None else _pool(pairs, chosen, options, workspace, progress)
    with own as opened:
        described, missing = describe(opened, pairs, options.compilers)
        for why, group in groupby(missing.items(), lambda x: (x[1].what, x[1].fix)):
            left = ", ".join(frontend for frontend, _ in group)
            progress.say(f"{left} left out: {why[0]}" + (f" ({why[1]})" if why[1] else ""))
        frontends = [
            plan.installed(workspace, name, library, described[frontend])
            for name, library in pairs
            if (frontend := compilers.frontend_name(name, library)) in described
        ]
        for target in frontends:
            workspace.save_interpreter(target.environment, options.interpreter(target.compiler))
        return _Run(workspace, options, progress, opened, frontends).go()


def _pool(
    pairs: list[tuple[str, str]], chosen: list[str], options: Options, workspace: Workspace, progress: Progress
) -> JobPool:
    made = groups(pairs, chosen, options.interpreter, workspace.files, options.chosen)
    return pools.opened(
        made, workers=options.workers, cluster=options.cluster, store=options.store, files=workspace.files,
        say=progress.say,
    )  # fmt: skip


class _Run:
    def __init__(
        self,
        workspace: Workspace,
        options: Options,
        progress: Progress,
        pool: JobPool,
        frontends: list[InstalledFrontend],
    ) -> None:
        self.workspace, self.options, self.progress, self.pool = workspace, options, progress, pool
        self.frontends = {x.name: x for x in frontends}
        self.accounts = Accounts(frontends, pool.workers)
        number = workspace.start_run({"options": msgspec.to_builtins(options), "workers": round(pool.workers)})
        self.ledger = Ledger(workspace, frontends, self.accounts, number)
        self.prepare: Preparation[Item] = Preparation(workspace, workspace.files, pool, options.limits)
        self.probe = Probe(
            workspace.root,
            interpreter=self._interpreter,
            chosen=lambda _: options.chosen,
            limits=options.limits,
            pool=pool,
            others=self._handle,
        )
        self.aftermath = Aftermath(pool, self.probe)
        self.members = Members(workspace)
        self.active = 0  # items between being taken up and their last verdict
        self.done = 0
        self.lost: dict[str, str] = {}
        self.stopped = ""
        self.scratch = workspace.root / "scratch"
        self.scratch.mkdir(exist_ok=True)
        self.queues, unranked = plan.queues(workspace, frontends, options.selection)
        for name, count in unranked.items():
            progress.say(f"{name}: {count} tests are unranked and run last; `opera prioritize` ranks them")
        self.by_test = plan.Lookup(workspace, frontends, options.selection)
        self.quota = Quota(self.queues, options.selection)
        self.upcoming = self.quota.upcoming(self.queues, self.prepare.rejected)
        self.rejudging = Rejudging(pool, self.ledger, self.by_test, self._perform)

    def _interpreter(self, environment: str) -> str:
        """Return the interpreter of one of the run's environments."""
        compiler = next(x.compiler for x in self.frontends.values() if x.environment == environment)
        return self.options.interpreter(compiler)

    # ------------------------------------------------------------------ the loop

    def go(self) -> Summary:
        self.progress.begin(self.quota.total(self.queues, self.prepare.rejected))
        if self.options.time_budget is not None:
            end = self.ledger.started + self.options.time_budget
            self.pool.until(end, end + OVERTIME * self.options.time_budget)
        try:
            asked = self.rejudging.begin(self.frontends.values())
            self._save(force=True)
            self._resume_confirmations(asked)
            self._feed()
            for result in self.pool.results():
                self._handle(result)
                self._feed()
                self._save(force=False)
            self._save(force=True)
            self._ask_exporters()
            self._save(force=True)
            for culprit in self.aftermath.culprits():
                self._lay_blame(culprit)
            self._over()
        finally:
            self._save(force=True)
            for left in self.scratch.iterdir():
                left.unlink()
        return self._summary()

    def _summary(self) -> Summary:
        for text in (self.rejudging.changes.told(), *self._hooks_told(), self.aftermath.told()):
            if text:
                self.progress.say(text)
        wall = self.ledger.seconds()
        new = self.ledger.finish(self.pool.accounts)
        efficiency = self.accounts.efficiency(wall)
        return Summary(self.ledger.number, self.ledger.counts(), new, wall, efficiency, self.stopped, self.lost)

    def _hooks_told(self) -> list[str]:
        return [
            f"{frontend}: {function} of the adapter failed in {len(texts)} tests ({texts[0]}); its answer is missing in them"
            for (frontend, function), texts in self.ledger.hooks.items()
        ]

    def _save(self, *, force: bool) -> None:
        self.accounts.workers = self.pool.workers
        if self.ledger.save(self.pool.accounts, force=force):
            efficiency = self.accounts.efficiency(self.ledger.seconds())
            self.progress.step(+self.ledger.tally, self.done, efficiency)

    def _over(self) -> bool:
        budget = self.options.time_budget
        if budget is not None and self.ledger.seconds() >= budget and not self.stopped:
            self.stopped = f"the time budget of {budget:g} seconds is used up"
        return bool(self.stopped)

    # ------------------------------------------------------------------ feeding

    def _feed(self) -> None:
        """Take up items while there is room, and wrap what they need in batches."""
        while self.active < max(LOOKAHEAD, ROOM * self.pool.room) and not self._over():
            item = next(self.upcoming, None)
            if item is None:
                break
            self._take(item)
        self.prepare.submit()

    def _take(self, item: Item) -> bool:
        """Take up an item; False where its library rejects it, its frontend is lost, or no more are wanted."""
        if item.frontend.name in self.lost or self._known_as_rejected(item) or not self.quota.take(item):
            return False
        self.active += 1
        if self.prepare.known(item.frontend.exporter, item.instance) is None:
            self.prepare.wrap(item.frontend.library, item.frontend.exporter, item.instance, item)
        else:
            self._perform([Advance(item)])
        return True

    def _known_as_rejected(self, item: Item) -> bool:
        return self.prepare.rejected(item.frontend.exporter, item.instance)

    def _replace(self, rejected: Item) -> None:
        """Take up another item in place of one that its library rejects."""
        if self.options.selection.limit is not None or self.options.selection.balance:
            self.done -= 1  # another one takes its place, now or when it is come to
        for other in self.quota.replacements(rejected):
            if self._over() or self._take(other):
                break

    def _resume_confirmations(self, besides: set[tuple[str, str, str]]) -> None:
        """Confirm what an interrupted run left pending."""
        environments = {x.environment for x in self.frontends.values()}
        for verdict in verdicts.pending(self.workspace):
            item = self.by_test.get(verdict.frontend, verdict.test)
            known = verdict.environment in environments and item is not None
            if known and item is not None and (verdict.frontend, verdict.test, verdict.variant) not in besides:
                self._perform([Confirm(item, verdict, Origin())])

    # ------------------------------------------------------------------ what steps say

    def _perform(self, steps: Iterable[Step]) -> None:
        """Do what steps say, and what follows from that at once."""
        left = deque(steps)
        while left:
            match left.popleft():
                case Advance(item=item):
                    left.extend(self._advanced(item))
                case Conclude() as step:
                    left.extend(self._concluded(step))
                case Need(item=item, artefact=name):
                    self.prepare.export(item.frontend.library, item.test, name, item)
                case Again(item=item):
                    self.active += 1
                    self._execute(Execute(item))
                case Execute() as task:
                    self._execute(task)
                case Locate() as task:
                    self._locate(task)
                case Screen() as task:
                    self._screen(task)
                case Confirm() | Replay() as task:
                    self.probe.submit(question(task, self.options.limits), task)
                case Store(verdict=verdict):
                    self.ledger.store(verdict)
                case Suspect(suspicion=suspicion):
                    self.aftermath.suspect(suspicion)
                case Finish(item=item):
                    self.active -= 1
                    self.done += not item.alone
                case other:
                    raise TypeError(f"no step of an item: {other}")

    def _advanced(self, item: Item) -> list[Step]:
        if item.frontend.name in self.lost:
            return [Finish(item)]
        stored, rerun = self.ledger.stored[item.frontend.name], self.options.selection.rerun
        return transitions.advanced(item, stored, partial(self.prepare.artefact, item.test), rerun=rerun)

    def _concluded(self, step: Conclude) -> list[Step]:
        item = step.item
        verdict = verdict_of(item.frontend, item.test, item.operator, route(item).name, step.outcome)
        self.ledger.note_hooks(item.frontend.name, step.outcome)
        wanted = "" if item.alone else self.members.wanted(verdict)
        return transitions.concluded(step, verdict, wanted)

    def _execute(self, task: Execute) -> None:
        item = task.item
        self.pool.submit(
            item.frontend.name,
            msgspec.structs.replace(
                self._job(item, self._outputs(item)), way=task.way, repeat=not task.way, insist=bool(task.trial)
            ),
            seconds=self.options.limits.seconds,
            memory=self.options.limits.memory,
            fresh=item.alone or task.origin is not None,
            tag=task,
        )

    def _locate(self, task: Locate) -> None:
        self.pool.submit(
            task.item.frontend.name, self._job(task.item), seconds=self.options.limits.seconds,
            call="opera.run.worker:locate", tag=task,
        )  # fmt: skip

    def _screen(self, task: Screen) -> None:
        item = task.item
        request = ScreenRequest(
            library=item.frontend.library,
            compiler=item.frontend.compiler,
            test=item.test,
            instance=self.workspace.instance(item.instance).canonical(),
            outcome=task.outcome,
            actual=self._outputs(item),
        )
        self.pool.submit(
            f"library {item.frontend.library}", request, seconds=120, call="opera.run.library_side:screen", tag=task
        )

    def _job(self, item: Item, save: str = "") -> Job:
        variant, frontend = route(item), item.frontend
        return Job(item.test, frontend.compiler, frontend.library, variant.name, variant.artefact, save)

    def _outputs(self, item: Item) -> str:
        """Return the name by which a worker leaves outputs that are not the expected ones."""
        return f"{self.scratch.name}/{item.test}-{item.frontend.name}-{route(item).name}.msgpack"

    # ------------------------------------------------------------------ what results say

    def _handle(self, result: Result) -> None:
        """Go on with what a task showed."""
        if result.status == UNAVAILABLE:
            self._lose(result)
        match result.tag:
            case Wrap() as task:
                self._wrapped(self.prepare.wrapped(task, result))
            case Export() as task:
                self._exported(task, result)
            case Execute() | Locate() | Screen() as task if result.status == UNAVAILABLE:
                self._perform([Finish(task.item)])
            case _ if result.status == UNAVAILABLE:
                pass  # what was pending stays so, for the next run
            case Execute() as task:
                self._perform(self._executed(task, result))
            case Locate() as task:
                self._perform(transitions.located(task, result.payload if result.status == DONE else ""))
            case Screen() as task:
                self._perform(self._screened(task, result))
            case Rejudge() as task:
                self.rejudging.screened(task, result)
            case Asked():
                for answer in self.probe.take(result):
                    self._perform(self._answered(answer, result))
            case other:
                raise TypeError(f"no task of a run: {other}")

    def _lose(self, result: Result) -> None:
        """Note that a group of workers is no more: its frontends end here, and the others go on."""
        library = result.group.removeprefix("library ")
        for target in self.frontends.values():
            hit = result.group in (target.name, unpatched(target.name)) or (
                library != result.group and target.library == library
            )
            if hit and target.name not in self.lost:
                self.lost[target.name] = f"{result.group} stopped working: {result.message.strip()[-500:]}"
                self.progress.say(f"{target.name} ends here: {self.lost[target.name]}")

    def _wrapped(self, made: list[tuple[Item, Test | None]]) -> None:
        for item, test in made:
            valid = test is not None and test.status == VALID
            self._perform([Advance(item) if valid else Finish(item)])
            if test is not None and not valid:
                self._replace(item)

    def _exported(self, task: Export, result: Result) -> None:
        export, items = self.prepare.exported(task, result)
        if export is not None:
            self.accounts.first(items[0].frontend.name, task.test, export.seconds, result.seconds)
        self._perform([Finish(item) if export is None else Advance(item) for item in items])

    def _executed(self, task: Execute, result: Result) -> list[Step]:
        outcome, frontend = outcome_of(result), task.item.frontend.name
        repeated = outcome.seconds.get("repeat", 0.0)
        if result.fresh:
            self.accounts.confirmed(frontend, result.seconds)
        else:
            inside = sum(outcome.seconds.values()) - repeated
            self.accounts.first(frontend, task.item.test, inside, result.seconds - repeated)
            self.accounts.confirmed(frontend, repeated)
        self.aftermath.note(result, outcome)
        is_failure = outcome.verdict not in (PASS, UNSUPPORTED)  # what ran before it is long, and asked for then alone
        before = predecessors(result.predecessors) if is_failure else ()
        return transitions.executed(task, outcome, Origin(result.worker, before))

    def _screened(self, task: Screen, result: Result) -> list[Step]:
        if result.status == STARVED:  # it says nothing of the test, which the next run tries again
            return [Conclude(task.item, outcome_of(result), task.origin)]
        if result.status == DONE:
            reply = result.decode(ScreenReply)
        else:  # the library's own side died: the inconsistency stands, and says that nothing could be asked
            reply = ScreenReply(ERROR, f"{result.status} {result.exit} {result.message}".strip()[:500])
        self._keep_outputs(task.item)
        return transitions.screened(task, reply)

    def _keep_outputs(self, item: Item) -> None:
        """Keep the outputs of an inconsistent test, so that they can be compared and screened again by other rules."""
        files, name = self.workspace.files, rejudge.kept_outputs(item.test, item.frontend, route(item).name)
        keep_outputs(files.file(self._outputs(item)), files.file(name))

    def _answered(self, answer: Answer, result: Result) -> list[Step]:
        """Go on with what a fresh fork showed of a failure."""
        self.accounts.confirmed(answer.question.frontend, result.seconds)
        match answer.tag:
            case Confirm() as task:
                has_patches = unpatched(answer.question.frontend) in self.pool.groups
                return confirmed(task, answer.outcome, has_patches=has_patches)
            case Replay() as task:
                return replayed(task, answer.outcome, reached=answer.reached)
            case other:
                raise TypeError(f"no question of a run: {other}")

    # ------------------------------------------------------------------ what an exporter wrote wrongly

    def _ask_exporters(self) -> None:
        """Run the tests whose exported file computes something else on the exporter's own frontend: there it is a finding.

        An exporter that is among the run's frontends was asked already; one that cannot be described is left out.
        """
        wrong = exporters.wrong(self.workspace, self.frontends, self.by_test)
        pairs = [pair for pair in wrong if compilers.frontend_name(*pair) not in self.frontends]
        if not pairs or self._over():
            return
        of_all = groups(pairs, [], self.options.interpreter, self.workspace.files, self.options.chosen)
        for name, group in of_all.items():
            if name not in self.pool.groups:
                self.pool.add(name, group)
        try:
            described, _ = describe(self.pool, pairs, ())
        except OperaError as error:
            self.progress.say(f"no exporter was asked about its files: {error.what}")
            return
        for compiler, library in pairs:
            frontend = compilers.frontend_name(compiler, library)
            if frontend not in described:
                continue
            target = plan.installed(self.workspace, compiler, library, described[frontend])
            self.workspace.save_interpreter(target.environment, self.options.interpreter(compiler))
            self.frontends[target.name] = target
            self.ledger.admit(target)
            for item in exporters.items(wrong[compiler, library], target):
                self.by_test.add(item)
                self.active += 1
                self._perform([Advance(item)])
        for result in self.pool.results():
            self._handle(result)
            self._save(force=False)

    # ------------------------------------------------------------------ what spoils a worker

    def _lay_blame(self, culprit: Culprit) -> None:
        """Run anew what was run after a test that spoils the process, and make the finding that test's own."""
        target = culprit.victim.frontend
        stored, before = self.ledger.stored[target.name], dict(self.ledger.stored[target.name])
        for test, variant in culprit.successors:
            found = self.by_test.get(target.name, test)
            if found is not None:
                self._perform([Again(msgspec.structs.replace(found, variant=target.place(variant), alone=True))])
        for result in self.pool.results():
            self._handle(result)
        test, _, variant = culprit.name.partition("/")
        where = self.probe.locate(
            Question(frontend=target.name, variant=variant, test=test, environment=target.environment)
        )
        item = self.by_test.get(target.name, test)
        if item is None or self._over():
            return
        harmed = [f"{x}/{y}" for x, y in culprit.successors if stored.get((x, y)) != before.get((x, y))]
        of, known = self.ledger.operator(culprit.victim.verdict.test), before.get((test, variant), ("", ""))
        outcome = self.aftermath.outcome(culprit, known[0], of, harmed, where)
        if outcome is not None:
            verdict = verdict_of(target, test, item.operator, variant, outcome)
            self.ledger.store(msgspec.structs.replace(verdict, confirmation="confirmed"))
