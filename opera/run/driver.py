"""Run ranked tests on frontends: wrap, execute, try variants, screen, confirm, store.

One thread drives everything from the results of one pool. An item's way: (wrap) → execute variant → (screen, where outputs
are inconsistent) → store → (next variant) → (confirm in a fresh process). What is stored is never lost; what is not stored
is done again by the next run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Protocol

import msgspec

from opera import compilers
from opera.errors import UsageError
from opera.pool.pool import Pool
from opera.pool.workers import DONE, STARVED, UNAVAILABLE, Result
from opera.programs.migrated import Artefact, Export
from opera.programs.verdicts import (
    AGAIN,
    DEATHS,
    ERROR,
    FAILURES,
    INCONSISTENT,
    UNEXPORTED,
    UNSUPPORTED,
    Limits,
    Outcome,
)
from opera.run import plan, quota, rejudge
from opera.run.accounts import Accounts
from opera.run.aftermath import Aftermath, Culprit, Origin, Suspicion, poisoning, predecessors
from opera.run.confirm import Confirming, Members
from opera.run.groups import describe, groups, unpatched
from opera.run.ledger import Ledger, verdict_of
from opera.run.library_side import ScreenReply, ScreenRequest
from opera.run.outcomes import outcome_of
from opera.run.plan import InstalledFrontend, Item, Selection
from opera.run.prepare import Preparation
from opera.run.quota import Quota
from opera.run.rejudge import Rejudging
from opera.store.workspace import Workspace
from opera.triage import findings

LOOKAHEAD = 96
"""Items taken up at a time: enough to keep every slot busy while the next ones are wrapped."""
OVERTIME = 0.05
"""Share of the time budget that jobs which run at its end are given to finish."""


class Options(msgspec.Struct, frozen=True):
    """What the user asked of a run; `compilers` empty means all that are installed, `python` empty this interpreter."""

    compilers: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    python: str = ""
    workers: int = 2
    time_budget: float | None = None
    selection: Selection = Selection()
    limits: Limits = Limits()


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


def run(workspace: Workspace, options: Options, progress: Progress, pool: Pool | None = None) -> Summary:
    """Run what has no verdict yet, in a pool of its own or in one that holds the groups of these frontends.

    Raises UsageError, NotInstalled or NoAnswer where nothing can be run.
    """
    chosen = [name for name in workspace.libraries() if not options.libraries or name in options.libraries]
    if not chosen:
        raise UsageError(
            "the workspace holds no instances to run" + (" of that library" if options.libraries else ""),
            cause="nothing was extracted yet",
            fix="run `opera extract onnx` first",
        )
    if renewed := findings.renew(workspace):
        progress.say(f"{renewed} findings are sorted anew: what makes two failures one is told apart differently now")
    names = list(options.compilers or compilers.registered())
    pairs = [(name, library) for name in names for library in chosen if library in compilers.get(name).FRONTENDS]
    if not pairs:
        raise UsageError(f"none of {', '.join(names)} has a frontend for {', '.join(chosen)}")
    if options.selection.balance:
        quota.check(workspace, list(dict.fromkeys(library for _, library in pairs)), options.selection)
    own = Pool(groups(pairs, chosen, options.python), workers=options.workers) if pool is None else nullcontext(pool)
    with own as opened:
        described, missing = describe(opened, pairs, options.compilers)
        for name, why in missing.items():
            progress.say(f"{name} is left out: {why.what}" + (f" ({why.fix})" if why.fix else ""))
        frontends = [
            plan.installed(workspace, name, library, described[name]) for name, library in pairs if name in described
        ]
        for target in frontends:
            workspace.save_interpreter(target.environment, options.python)
        return _Run(workspace, options, progress, opened, frontends).go()


class _Run:
    def __init__(
        self, workspace: Workspace, options: Options, progress: Progress, pool: Pool, frontends: list[InstalledFrontend]
    ) -> None:
        self.workspace, self.options, self.progress, self.pool = workspace, options, progress, pool
        self.frontends = {x.name: x for x in frontends}
        self.accounts = Accounts(frontends, options.workers)
        number = workspace.start_run({"options": msgspec.to_builtins(options), "workers": options.workers})
        self.ledger = Ledger(workspace, frontends, self.accounts, number)
        self.prepare = Preparation(
            workspace, pool, options.limits, {x.exporter for x in frontends},
            self._advance, self._dropped, self._paid_export, self._left,
        )  # fmt: skip
        self.aftermath = Aftermath(pool, options.limits, self._handle, self.prepare.named_job)
        self.members = Members(workspace)
        self.confirming = Confirming(pool, self.ledger, self.prepare, self.aftermath, options.limits)
        self.active = 0  # items between being taken up and their last verdict
        self.done = 0
        self.lost: dict[str, str] = {}
        self.stopped = ""
        self.scratch = workspace.root / "scratch"
        self.scratch.mkdir(exist_ok=True)
        source, unranked = plan.items(workspace, frontends, options.selection)
        for name, count in unranked.items():
            progress.say(f"{name}: {count} tests are unranked and run last; `opera prioritize` ranks them")
        self.items = list(source)
        self.by_test = {(item.frontend.name, item.test): item for item in self.items}
        self.upcoming = iter(self.items)
        self.quota = Quota(self.items, options.selection)
        self.rejudging = Rejudging(pool, self.ledger, self.confirming, self.by_test, self._execute_alone)
        self.handlers: dict[str, Callable[..., None]] = {
            "wrap": self.prepare.wrapped, "export": self.prepare.made, "first": self._executed, "locate": self._located,
            "screen": self._screened, "rejudge": self.rejudging.screened, **self.confirming.handlers,
        }  # fmt: skip

    # ------------------------------------------------------------------ the loop

    def go(self) -> Summary:
        self.progress.begin(self.quota.total(item for item in self.items if not self.prepare.rejected(item)))
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
        if self.ledger.save(self.pool.accounts, force=force):
            efficiency = self.accounts.efficiency(self.ledger.seconds())
            self.progress.step(Counter(self.ledger.worst.values()), self.done, efficiency)

    def _over(self) -> bool:
        budget = self.options.time_budget
        if budget is not None and self.ledger.seconds() >= budget and not self.stopped:
            self.stopped = f"the time budget of {budget:g} seconds is used up"
        return bool(self.stopped)

    def _feed(self) -> None:
        """Take up items while there is room, and wrap what they need in batches."""
        while self.active < LOOKAHEAD and not self._over():
            item = next(self.upcoming, None)
            if item is None:
                break
            self._take(item)
        self.prepare.submit()

    def _take(self, item: Item) -> bool:
        """Take up an item; False where its library rejects it, its frontend is lost, or no more are wanted."""
        if item.frontend.name in self.lost or self.prepare.rejected(item) or not self.quota.take(item):
            return False
        known = self.prepare.known(item)
        self.active += 1
        if known is None:
            self.prepare.wrap(item)
        else:
            self._advance(item)
        return True

    def _dropped(self, item: Item) -> None:
        """Take up another item in place of one that its library rejects."""
        self._finish(item)
        if self.options.selection.limit is not None or self.options.selection.balance:
            self.done -= 1  # another one takes its place, now or when it is come to
        for other in self.quota.replacements(item):
            if self._over() or self._take(other):
                break

    def _left(self, item: Item) -> None:
        """Leave an item that could not be prepared to the next run."""
        self._finish(item)

    def _paid_export(self, item: Item, inside: float, occupied: float) -> None:
        self.accounts.first(item.frontend.name, item.test, inside, occupied)

    # ------------------------------------------------------------------ executing

    def _advance(self, item: Item) -> None:
        """Submit the next variant of an item that has no verdict yet, or be done with it."""
        target = item.frontend
        stored = self.ledger.stored[target.name]
        while item.variant < len(target.variants) and target.name not in self.lost:
            variant = target.variants[item.variant]
            wanted = variant.after == "always" or self._rejected(item)
            rerun = self.options.selection.rerun
            if wanted and (rerun or (item.test, variant.name) not in stored):
                artefact = self.prepare.artefact(item.test, variant.artefact)
                if isinstance(artefact, Artefact):
                    self._execute(item)
                    return
                if artefact is not None and not artefact.symptom:
                    self.prepare.export(item, variant.artefact)
                    return
                if artefact is not None:
                    self._unexported(item, variant, artefact)
            item.variant += 1
        self._finish(item)

    def _unexported(self, item: Item, variant: compilers.Variant, export: Export) -> None:
        """Note that this route was closed by the exporter: no fault of the compiler's."""
        outcome = Outcome(UNEXPORTED, "export", export.symptom, f"{variant.artefact}: {export.message}")
        self.ledger.store(verdict_of(item.frontend, item.test, item.operator, variant.name, outcome))

    def _rejected(self, item: Item) -> bool:
        """Whether all variants so far ended in unsupported, or failed while the model was loaded."""
        stored = self.ledger.stored[item.frontend.name]
        before = [stored.get((item.test, x.name)) for x in item.frontend.variants[: item.variant]]
        return all(
            found is not None
            and (found[0] in (UNSUPPORTED, UNEXPORTED) or (found[0] in FAILURES and found[1] == "load"))
            for found in before
        )

    def _execute(self, item: Item, origin: Origin | None = None) -> None:
        """Submit an item's variant; with `origin`, in a fresh process, after opera failed in a worker that had run others."""
        target, number = item.frontend, item.variant
        variant = target.variants[number]
        self.pool.submit(
            target.name,
            self.prepare.job(target, variant, item.test, self._saved_outputs(item, variant.name)),
            seconds=self.options.limits.seconds,
            memory=self.options.limits.memory,
            fresh=item.alone or origin is not None,
            tag=("first", item, number, origin),
        )

    def _execute_alone(self, item: Item) -> None:
        """Run one variant of an item once more, whatever else becomes of the item."""
        self.active += 1
        self._execute(item)

    def _handle(self, result: Result) -> None:
        kind, *rest = result.tag
        if result.status == UNAVAILABLE:
            self._lose(result)
        if result.status != UNAVAILABLE or kind in ("wrap", "export"):
            self.handlers[kind](result, *rest)
        elif kind in ("first", "locate", "screen"):
            self._finish(rest[0])

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

    def _executed(self, result: Result, item: Item, number: int, origin: Origin | None) -> None:
        outcome = outcome_of(result)
        repeated = outcome.seconds.get("repeat", 0.0)
        if result.fresh:
            self.accounts.confirmed(item.frontend.name, result.seconds)
        else:
            inside = sum(outcome.seconds.values()) - repeated
            self.accounts.first(item.frontend.name, item.test, inside, result.seconds - repeated)
            self.accounts.confirmed(item.frontend.name, repeated)
        self.aftermath.note(result, outcome)
        here = Origin(result.worker, predecessors(result.predecessors))
        variant = item.frontend.variants[number].name
        if outcome.verdict == ERROR and here.predecessors and AGAIN not in outcome.details:
            self._execute(item, msgspec.structs.replace(here, error=outcome))  # the process may have been spoilt before
            return
        if origin is not None and origin.error is not None and outcome.verdict != ERROR:
            blamed = verdict_of(item.frontend, item.test, item.operator, variant, origin.error)
            self.aftermath.suspect(Suspicion(item.frontend, blamed, origin))
        if outcome.verdict == INCONSISTENT:
            self._submit_screen(item, variant, outcome, here)
            return
        if outcome.verdict in DEATHS and not outcome.conversion_function:
            self.pool.submit(
                item.frontend.name,
                self.prepare.job(item.frontend, item.frontend.variants[number], item.test),
                seconds=self.options.limits.seconds,
                call="opera.run.worker:locate",
                tag=("locate", item, variant, outcome, here),
            )
            return
        self._conclude(item, variant, outcome, here)

    def _located(self, result: Result, item: Item, variant: str, outcome: Outcome, origin: Origin) -> None:
        """Take note of what converts the operator of a test whose process died before it could tell."""
        if result.status == DONE:
            outcome = msgspec.structs.replace(outcome, conversion_function=result.payload)
        self._conclude(item, variant, outcome, origin)

    # ------------------------------------------------------------------ screening

    def _submit_screen(self, item: Item, variant: str, outcome: Outcome, origin: Origin) -> None:
        request = ScreenRequest(
            library=item.frontend.library,
            compiler=item.frontend.compiler,
            directory=str(self.prepare.folder(item.test)),
            instance=self.workspace.instance(item.instance).canonical(),
            outcome=outcome,
            actual=self._saved_outputs(item, variant),
        )
        self.pool.submit(
            f"library {item.frontend.library}", request, seconds=120, call="opera.run.library_side:screen",
            tag=("screen", item, variant, outcome, origin),
        )  # fmt: skip

    def _saved_outputs(self, item: Item, variant: str) -> str:
        return str((self.scratch / f"{item.test}-{item.frontend.name}-{variant}.msgpack").absolute())

    def _screened(self, result: Result, item: Item, variant: str, outcome: Outcome, origin: Origin) -> None:
        if result.status == STARVED:  # it says nothing of the test, which the next run tries again
            self._conclude(item, variant, outcome_of(result), origin)
            return
        if result.status == DONE:
            reply = result.decode(ScreenReply)
        else:  # the library's own side died: the inconsistency stands, and says that nothing could be asked
            reply = ScreenReply(ERROR, f"{result.status} {result.exit} {result.message}".strip()[:500])
        self._keep_outputs(item, variant)
        self._conclude(item, variant, rejudge.with_screens(outcome, reply), origin)

    def _keep_outputs(self, item: Item, variant: str) -> None:
        """Keep the outputs of an inconsistent test, so that they can be compared and screened again by other rules."""
        saved = Path(self._saved_outputs(item, variant))
        kept = rejudge.kept_outputs(self.workspace, item.test, item.frontend, variant)
        kept.unlink(missing_ok=True)  # an earlier run's, should these be too large
        if saved.is_file() and saved.stat().st_size <= rejudge.KEPT:
            kept.parent.mkdir(parents=True, exist_ok=True)
            saved.replace(kept)

    # ------------------------------------------------------------------ concluding and confirming

    def _conclude(self, item: Item, variant: str, outcome: Outcome, origin: Origin) -> None:
        verdict = verdict_of(item.frontend, item.test, item.operator, variant, outcome)
        self.ledger.note_hooks(item.frontend.name, outcome)
        if verdict.outcome.verdict in FAILURES:
            state = "confirmed" if item.alone else self.members.wanted(verdict)
            verdict = msgspec.structs.replace(verdict, confirmation=state)
            if state == "pending":
                self.confirming.submit(item, verdict, origin)
        self.ledger.store(verdict)
        if item.alone:
            self._finish(item)
            return
        item.variant += 1
        self._advance(item)

    def _resume_confirmations(self, besides: set[tuple[str, str, str]]) -> None:
        """Confirm what an interrupted run left pending."""
        environments = {x.environment for x in self.frontends.values()}
        for verdict in self.workspace.verdicts("confirmation = 'pending'", seen=True):
            item = self.by_test.get((verdict.frontend, verdict.test))
            known = verdict.environment in environments and item is not None
            if known and item is not None and (verdict.frontend, verdict.test, verdict.variant) not in besides:
                self.confirming.submit(item, verdict, Origin())

    def _lay_blame(self, culprit: Culprit) -> None:
        """Run anew what was run after a test that spoils the process, and make the finding that test's own."""
        target = culprit.victim.frontend
        stored, before = self.ledger.stored[target.name], dict(self.ledger.stored[target.name])
        for test, variant in culprit.successors:
            found = self.by_test.get((target.name, test))
            if found is not None:
                self._execute_alone(msgspec.structs.replace(found, variant=target.place(variant), alone=True))
        where = self.aftermath.locate(culprit)
        test, _, variant = culprit.name.partition("/")
        item = self.by_test.get((target.name, test))
        if item is None or self._over():
            return
        harmed = [f"{x}/{y}" for x, y in culprit.successors if stored.get((x, y)) != before.get((x, y))]
        outcome = poisoning(culprit, self.ledger.operator(culprit.victim.verdict.test), harmed, where)
        verdict = verdict_of(target, test, item.operator, variant, outcome)
        self.ledger.store(msgspec.structs.replace(verdict, confirmation="confirmed"))

    def _finish(self, item: Item) -> None:
        self.active -= 1
        self.done += not item.alone
