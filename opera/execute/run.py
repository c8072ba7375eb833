"""Run ranked tests on frontends: wrap, execute, try variants, screen, confirm, store.

One thread drives everything from the results of one pool. An item's way: (wrap) → execute variant → (screen, where outputs
are inconsistent) → store → (next variant) → (confirm in a fresh process). What is stored is never lost; what is not stored
is done again by the next run.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import msgspec

from opera import compilers
from opera.errors import UsageError
from opera.execute import plan, quota, records, rejudge
from opera.execute.accounts import Accounts
from opera.execute.aftermath import SECONDS, Aftermath, Culprit, Origin, Suspicion, predecessors
from opera.execute.confirm import Confirmations
from opera.execute.groups import describe, groups, unpatched
from opera.execute.library_side import AGREES, ScreenReply, ScreenRequest
from opera.execute.outcomes import outcome_of, reached
from opera.execute.plan import Frontend, Item, Selection
from opera.execute.pool import DONE, STARVED, UNAVAILABLE, Pool, Result
from opera.execute.prepare import Preparation
from opera.execute.quota import Quota
from opera.execute.records import (
    ABORT,
    AGAIN,
    ERROR,
    FAILURES,
    INCONSISTENT,
    PASS,
    SCREENED,
    TIMEOUT,
    UNEXPORTED,
    UNSUPPORTED,
    Job,
    Limits,
    Outcome,
)
from opera.migrated import Artefact, Export
from opera.triage import findings
from opera.triage.signature import Signature
from opera.workspace import COMBINED, Verdict, Workspace

LOOKAHEAD = 96
"""Items taken up at a time: enough to keep every slot busy while the next ones are wrapped."""
DEATHS = (records.ABORT, records.TIMEOUT, records.OUT_OF_MEMORY)
SAVE_SECONDS = 1.0
"""Verdicts are written at least this often."""
OVERTIME = 0.05
"""Share of the time budget that jobs which run at its end are given to finish."""
SENT = ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGALRM", "SIGUSR1", "SIGUSR2", "SIGSTOP")
"""Signals that come from somebody: a death by one of them that does not happen again was somebody else's doing."""
POISONS = "poisons"
"""Symptom of a test after which others fail in the same process."""
PATCHED = "fails only with the patches that opera makes to the exporter for speed (OPERA_UNPATCHED=1 leaves them out)"


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


def run(workspace: Workspace, options: Options, progress: Progress) -> Summary:
    """Run what has no verdict yet. Raises UsageError or NotInstalled where nothing can be run."""
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
    with Pool(groups(pairs, chosen, options.python), workers=options.workers) as pool:
        described, missing = describe(pool, pairs, options.compilers)
        for name, why in missing.items():
            progress.say(f"{name} is left out: {why.what}" + (f" ({why.fix})" if why.fix else ""))
        frontends = [
            plan.frontend(workspace, name, library, described[name]) for name, library in pairs if name in described
        ]
        for target in frontends:
            workspace.save_interpreter(target.environment, options.python)
        return _Run(workspace, options, progress, pool, frontends).go()


class _Run:
    def __init__(
        self, workspace: Workspace, options: Options, progress: Progress, pool: Pool, frontends: list[Frontend]
    ) -> None:
        self.workspace, self.options, self.progress, self.pool = workspace, options, progress, pool
        self.frontends = {x.name: x for x in frontends}
        self.accounts = Accounts(frontends, options.workers)
        self.patched = {x.name for x in frontends if unpatched(x.name) in pool.groups}
        self.located: dict[str, str] = {}  # culprit → its conversion function
        exporters = {x.exporter for x in frontends}
        self.prepare = Preparation(
            workspace, pool, options.limits, exporters, self._advance, self._dropped, self._paid_export, self._left
        )
        self.stored = {x.name: workspace.verdict_names(x.name, x.environment) for x in frontends}
        self.confirmations = Confirmations(workspace, frontends)
        self.worst: dict[tuple[str, str], str] = {}  # (frontend, test) → worst verdict over its variants
        self.active = 0  # items between being taken up and their last verdict
        self.done = 0
        self.verdicts: dict[tuple[str, str, str], Verdict] = {}  # to be written
        self.signatures: dict[str, bytes] = {}
        self.known = set(workspace.finding_ids())
        self.changes = rejudge.Changes()
        self.hooks: dict[tuple[str, str], list[str]] = defaultdict(list)  # (frontend, function) → how it failed
        self.lost: dict[str, str] = {}
        self.aftermath = Aftermath(pool, self._handle, self._probe_job)
        self.started = self.saved = time.monotonic()
        self.stopped = ""
        self.scratch = workspace.root / "scratch"
        self.scratch.mkdir(exist_ok=True)

    # ------------------------------------------------------------------ the loop

    def go(self) -> Summary:
        run_document = {"options": msgspec.to_builtins(self.options), "workers": self.options.workers}
        self.number = self.workspace.start_run(run_document)
        self.source, unranked = plan.items(self.workspace, list(self.frontends.values()), self.options.selection)
        for name, count in unranked.items():
            self.progress.say(f"{name}: {count} tests are unranked and run last; `opera prioritize` ranks them")
        self.items = list(self.source)
        self.by_test = {(item.frontend.name, item.test): item for item in self.items}
        self.upcoming = iter(self.items)
        self.quota = Quota(self.items, self.options.selection)
        self.progress.begin(self.quota.total(item for item in self.items if not self.prepare.rejected(item)))
        if self.options.time_budget is not None:
            end = self.started + self.options.time_budget
            self.pool.until(end, end + OVERTIME * self.options.time_budget)
        try:
            screened = self._judge_anew()
            self._save(force=True)
            self._resume_confirmations(screened)
            self._feed()
            for result in self.pool.results():
                self._handle(result)
                self._feed()
                self._save(force=False)
            self._save(force=True)
            for culprit in self.aftermath.culprits():
                self._blame(culprit)
            self._over()
        finally:
            self._save(force=True)
            for left in self.scratch.iterdir():
                left.unlink()
        return self._summary(time.monotonic() - self.started)

    def _summary(self, wall: float) -> Summary:
        self.workspace.save_run(self.number, self._account_documents(wall), finished=True)
        self.workspace.drop_empty_findings()
        for text in (self.changes.told(), *self._hooks_told()):
            if text:
                self.progress.say(text)
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        for (frontend, _), verdict in self.worst.items():
            counts[frontend][verdict] += 1
        return Summary(
            self.number,
            {name: dict(x) for name, x in counts.items()},
            [name for name in self.workspace.finding_ids() if name not in self.known],
            wall,
            self.accounts.efficiency(wall),
            self.stopped,
            self.lost,
        )

    def _hooks_told(self) -> list[str]:
        return [
            f"{frontend}: {function} of the adapter failed in {len(texts)} tests ({texts[0]}); its answer is missing in them"
            for (frontend, function), texts in self.hooks.items()
        ]

    def _over(self) -> bool:
        budget = self.options.time_budget
        if budget is not None and time.monotonic() - self.started >= budget and not self.stopped:
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

    # ------------------------------------------------------------------ rules that changed

    def _judge_anew(self) -> set[tuple[str, str, str]]:
        """Judge stored verdicts by today's rules; return (frontend, test, variant) of those that are being screened again."""
        screened = set()
        for target in self.frontends.values():
            for verdict in list(rejudge.stale(self.workspace, target)):
                if rejudge.needs_screens(self.workspace, verdict):
                    screened.add((target.name, verdict.test, verdict.variant))
                    self._submit_screen_anew(target, verdict)
                else:
                    self._replace(target, verdict, rejudge.anew(self.workspace, target, verdict))
        return screened

    def _submit_screen_anew(self, target: Frontend, verdict: Verdict) -> None:
        [(instance,)] = self.workspace.query("SELECT instance FROM tests WHERE id = ?", (verdict.test,))
        request = ScreenRequest(
            library=target.library, compiler=target.compiler, directory=str(self.prepare.folder(verdict.test)),
            instance=self.workspace.instance(instance).canonical(), outcome=_outcome(verdict),
            actual=str(rejudge.kept_outputs(self.workspace, verdict).absolute()), anew=True,
            computes_in=dict(getattr(compilers.get(target.compiler), "COMPUTES_IN", {})),
        )  # fmt: skip
        self.pool.submit(
            f"library {target.library}", request, seconds=120, call="opera.execute.library_side:screen",
            tag=("rejudge", target, verdict),
        )  # fmt: skip

    def _screened_anew(self, result: Result, target: Frontend, verdict: Verdict) -> None:
        reply = result.decode(ScreenReply) if result.status == DONE else None
        if reply is None or reply.outcome is None or reply.status == ERROR:
            self._run_again(target, verdict)
            return
        outcome = _with_screens(reply.outcome, reply)
        name = PASS if reply.status == AGREES else outcome.verdict
        seen = records.Seen() if name == PASS else verdict.seen
        now = msgspec.structs.replace(
            verdict, verdict=name, symptom=outcome.symptom, message=outcome.message, details=outcome.details,
            stage="" if name == PASS else verdict.stage, seen=seen, rules=str(target.rules),
        )  # fmt: skip
        self._replace(target, verdict, now, confirm=True)

    def _run_again(self, target: Frontend, verdict: Verdict) -> None:
        """Run a test whose kept outputs could not be judged, though its turn may be over."""
        self._replace(target, verdict, None)
        found = self.by_test.get((target.name, verdict.test))
        if found is not None:
            self.active += 1
            self._execute(msgspec.structs.replace(found, variant=target.place(verdict.variant), alone=True))

    def _replace(self, target: Frontend, before: Verdict, now: Verdict | None, *, confirm: bool = False) -> None:
        """Store a verdict that was judged anew, or have its test run again."""
        self.changes.note(before, now)
        if now is None:
            self.stored[target.name].pop((before.test, before.variant), None)
            return
        if now.verdict not in FAILURES:
            now = msgspec.structs.replace(now, finding="", confirmation="")
        elif (now.verdict, now.symptom) != (before.verdict, before.symptom):
            item = self.by_test.get((target.name, before.test))
            operator = self._operator(before.test) if item is None else item.operator
            finding = self._finding(target, operator, _outcome(now))
            now = msgspec.structs.replace(now, finding=finding, confirmation="pending")
            if item is not None and confirm:
                self._submit_confirm(item, now, Origin())
        if now.verdict == before.verdict:
            self.verdicts[now.test, now.frontend, now.variant] = now
        else:
            self._store(now)

    def _operator(self, test: str) -> str:
        rows = self.workspace.query(
            "SELECT i.operator FROM tests t JOIN instances i ON i.id = t.instance WHERE t.id = ?", (test,)
        )
        return str(rows[0][0]) if rows else ""

    # ------------------------------------------------------------------ executing

    def _advance(self, item: Item) -> None:
        """Submit the next variant of an item that has no verdict yet, or be done with it."""
        target = item.frontend
        stored = self.stored[target.name]
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
        self._store(self._verdict(item.frontend, item.test, item.operator, variant.name, outcome))

    def _rejected(self, item: Item) -> bool:
        """Whether all variants so far ended in unsupported, or failed while the model was loaded."""
        stored = self.stored[item.frontend.name]
        before = [stored.get((item.test, x.name)) for x in item.frontend.variants[: item.variant]]
        return all(
            found is not None
            and (found[0] in (UNSUPPORTED, UNEXPORTED) or (found[0] in FAILURES and found[1] == "load"))
            for found in before
        )

    def _job(self, target: Frontend, variant: compilers.Variant, test: str, save: str = "") -> Job:
        return Job(
            test=test, compiler=target.compiler, library=target.library, variant=variant.name,
            artefact=variant.artefact, directory=str(self.prepare.folder(test)), save_outputs=save,
        )  # fmt: skip

    def _named_job(self, target: Frontend, name: str) -> Job:
        """Return the job of a `test/variant`."""
        test, _, variant = name.partition("/")
        return self._job(target, target.variants[target.place(variant)], test)

    def _execute(self, item: Item, origin: Origin | None = None) -> None:
        """Submit an item's variant; with `origin`, in a fresh process, after opera failed in a worker that had run others."""
        target, number = item.frontend, item.variant
        variant = target.variants[number]
        self.pool.submit(
            target.name,
            self._job(target, variant, item.test, self._saved_outputs(item, variant.name)),
            seconds=self.options.limits.seconds,
            memory=self.options.limits.memory,
            fresh=item.alone or origin is not None,
            tag=("first", item, number, origin),
        )

    def _handle(self, result: Result) -> None:
        kind, *rest = result.tag
        if result.status == UNAVAILABLE:
            self._lose(result)
        handlers: dict[str, Callable[..., None]] = {
            "wrap": self.prepare.wrapped,
            "export": self.prepare.made,
            "first": self._executed,
            "locate": self._located,
            "screen": self._screened,
            "rejudge": self._screened_anew,
            "confirm": self._confirmed,
            "patched": self._confirmed_patched,
            "replay": self._replayed,
            "culprit": self._located_culprit,
        }
        if result.status != UNAVAILABLE or kind in ("wrap", "export"):
            handlers[kind](result, *rest)
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
        self.aftermath.note(result)
        here = Origin(result.worker, predecessors(result.predecessors))
        variant = item.frontend.variants[number].name
        if outcome.verdict == ERROR and here.predecessors and AGAIN not in outcome.details:
            self._execute(item, here)  # what ran before may have spoilt the process
            return
        if origin is not None and outcome.verdict != ERROR:
            error = Outcome(ERROR, outcome.stage, "opera")
            blamed = self._verdict(item.frontend, item.test, item.operator, variant, error)
            self.aftermath.suspect(Suspicion(item.frontend, blamed, origin))
        if outcome.verdict == INCONSISTENT:
            self._submit_screen(item, variant, outcome, here)
            return
        if outcome.verdict in DEATHS and not outcome.conversion_function:
            self.pool.submit(
                item.frontend.name,
                self._job(item.frontend, item.frontend.variants[number], item.test),
                seconds=self.options.limits.seconds,
                call="opera.execute.worker:locate",
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
            f"library {item.frontend.library}", request, seconds=120, call="opera.execute.library_side:screen",
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
        self._conclude(item, variant, _with_screens(outcome, reply), origin)

    def _keep_outputs(self, item: Item, variant: str) -> None:
        """Keep the outputs of an inconsistent test, so that they can be compared and screened again by other rules."""
        saved = Path(self._saved_outputs(item, variant))
        if saved.is_file() and saved.stat().st_size <= rejudge.KEPT:
            verdict = Verdict(item.test, item.frontend.name, variant, item.frontend.environment, INCONSISTENT)
            kept = rejudge.kept_outputs(self.workspace, verdict)
            kept.parent.mkdir(parents=True, exist_ok=True)
            saved.replace(kept)

    # ------------------------------------------------------------------ concluding and confirming

    def _conclude(self, item: Item, variant: str, outcome: Outcome, origin: Origin) -> None:
        verdict = self._verdict(item.frontend, item.test, item.operator, variant, outcome)
        for function, text in (outcome.seen.hooks if outcome.seen else {}).items():
            self.hooks[item.frontend.name, function].append(text)
        if verdict.verdict in FAILURES:
            state = "confirmed" if item.alone else self.confirmations.wanted(verdict)
            verdict = msgspec.structs.replace(verdict, confirmation=state)
            if state == "pending":
                self._submit_confirm(item, verdict, origin)
        self._store(verdict)
        if item.alone:
            self.active -= 1
            return
        item.variant += 1
        self._advance(item)

    def _verdict(self, target: Frontend, test: str, operator: str, variant: str, outcome: Outcome) -> Verdict:
        failed = outcome.verdict in FAILURES
        details = outcome.details
        if failed and outcome.seen is not None and outcome.seen.hooks:
            tags = details.get("tags")
            details = details | {"tags": [*(tags if isinstance(tags, list) else []), "adapter-failed"]}
        return Verdict(
            test=test, frontend=target.name, variant=variant, environment=target.environment,
            verdict=outcome.verdict, stage=outcome.stage, symptom=outcome.symptom, message=outcome.message,
            location=outcome.location, conversion_function=outcome.conversion_function,
            finding=self._finding(target, operator, outcome) if failed else "",
            seconds=outcome.seconds, details=details, rules=str(target.rules), seen=outcome.seen,
        )  # fmt: skip

    def _finding(self, target: Frontend, operator: str, outcome: Outcome) -> str:
        found = Signature.of(target.name, operator, outcome)
        self.signatures.setdefault(found.id, msgspec.json.encode(found))
        return found.id

    def _resume_confirmations(self, besides: set[tuple[str, str, str]]) -> None:
        """Confirm what an interrupted run left pending."""
        for verdict in self.confirmations.left_over():
            item = self.by_test.get((verdict.frontend, verdict.test))
            if item is not None and (verdict.frontend, verdict.test, verdict.variant) not in besides:
                self._submit_confirm(item, verdict, Origin())

    def _submit_confirm(self, item: Item, verdict: Verdict, origin: Origin, *, patched: bool = False) -> None:
        """Run a failing test again in a fresh process; an exporter first as its users have it, without opera's patches."""
        variant = item.frontend.variants[item.frontend.place(verdict.variant)]
        larger = 3 if verdict.verdict in (TIMEOUT, records.OUT_OF_MEMORY) else 1
        first = item.frontend.name in self.patched and not patched
        self.pool.submit(
            unpatched(item.frontend.name) if first else item.frontend.name,
            self._job(item.frontend, variant, item.test),
            seconds=self.options.limits.seconds * larger,
            memory=self.options.limits.memory * (2 if larger > 1 else 1),
            fresh=True,
            tag=("confirm" if not patched else "patched", item, verdict, origin),
        )

    def _confirmed(self, result: Result, item: Item, verdict: Verdict, origin: Origin) -> None:
        self.accounts.confirmed(item.frontend.name, result.seconds)
        outcome = outcome_of(result)
        if AGAIN in outcome.details:
            return  # it stays pending, for the next run
        again = self._again(item, verdict, outcome)
        if again is not None:
            self._store(again)
        elif item.frontend.name in self.patched:
            self._submit_confirm(item, verdict, origin, patched=True)
        else:
            self._unconfirmed(item, verdict, origin, outcome)

    def _confirmed_patched(self, result: Result, item: Item, verdict: Verdict, origin: Origin) -> None:
        """Tell a failure that opera's patches make from one that needs predecessors."""
        outcome = outcome_of(result)
        if AGAIN in outcome.details:
            return
        if self._again(item, verdict, outcome) is None:
            self._unconfirmed(item, verdict, origin, outcome)
        else:
            message = f"{PATCHED}: {verdict.message}"
            self._store(msgspec.structs.replace(verdict, verdict=ERROR, message=message, finding="", confirmation=""))

    def _unconfirmed(self, item: Item, verdict: Verdict, origin: Origin, outcome: Outcome) -> None:
        """Go on with a failure that a fresh process did not show: after its predecessors, it may come back."""
        if not origin.predecessors:
            self._flaky(item, verdict, outcome)
            return
        names = (*origin.predecessors, f"{verdict.test}/{verdict.variant}")
        self.pool.submit(
            item.frontend.name,
            [self._named_job(item.frontend, name) for name in names],
            seconds=self.options.limits.seconds * SECONDS,
            memory=self.options.limits.memory,
            fresh=True,
            call="opera.execute.worker:replay",
            tag=("replay", item, verdict, origin, outcome),
        )

    def _replayed(self, result: Result, item: Item, verdict: Verdict, origin: Origin, alone: Outcome) -> None:
        self.accounts.confirmed(item.frontend.name, result.seconds)
        outcome = outcome_of(result)
        if AGAIN in outcome.details:
            return
        there = reached(result, f"{verdict.test}/{verdict.variant}")
        again = self._again(item, verdict, outcome) if there else None
        if again is None:
            self._flaky(item, verdict, alone)
            return
        tags = [*again.details.get("tags", []), "state-dependent"]
        details = again.details | {"tags": tags, "predecessors": list(origin.predecessors)}
        again = msgspec.structs.replace(again, details=details)
        self._store(again)
        self.aftermath.suspect(Suspicion(item.frontend, again, origin))

    def _again(self, item: Item, verdict: Verdict, outcome: Outcome) -> Verdict | None:
        """Return the verdict confirmed, or None where the test does not fail this time.

        Where it fails in another way, what the fresh process showed counts: it had no predecessors to be confused by.
        """
        if outcome.verdict not in FAILURES:
            return None
        if outcome.verdict in DEATHS and not outcome.conversion_function:
            outcome = msgspec.structs.replace(outcome, conversion_function=verdict.conversion_function)
        new = self._verdict(item.frontend, item.test, item.operator, verdict.variant, outcome)
        if new.finding == verdict.finding:
            return msgspec.structs.replace(verdict, confirmation="confirmed")
        kept = {key: value for key, value in verdict.details.items() if key in ("screen", "tags")}
        return msgspec.structs.replace(new, confirmation="confirmed", details=new.details | kept)

    def _flaky(self, item: Item, verdict: Verdict, alone: Outcome) -> None:
        """Store what does not fail again as flaky; but a death by a signal that somebody sent says nothing of the test."""
        if verdict.verdict == ABORT and verdict.symptom in SENT:
            self._store(self._verdict(item.frontend, item.test, item.operator, verdict.variant, alone))
            return
        details = verdict.details | {"was": verdict.verdict, "finding": verdict.finding}
        self._store(
            msgspec.structs.replace(verdict, verdict=records.FLAKY, finding="", confirmation="", details=details)
        )

    def _probe_job(self, target: Frontend, name: str) -> tuple[Job, float, int]:
        return self._named_job(target, name), self.options.limits.seconds, self.options.limits.memory

    def _blame(self, culprit: Culprit) -> None:
        """Run anew what was run after a test that spoils the process, and make the finding that test's own."""
        target, victim = culprit.victim.frontend, culprit.victim.verdict
        stored, before = self.stored[target.name], dict(self.stored[target.name])
        for test, variant in culprit.successors:
            found = self.by_test.get((target.name, test))
            if found is not None:
                self.active += 1
                self._execute(msgspec.structs.replace(found, variant=target.place(variant), alone=True))
        self.pool.submit(
            target.name, self._named_job(target, culprit.name), seconds=self.options.limits.seconds, fresh=True,
            call="opera.execute.worker:locate", tag=("culprit", culprit),
        )  # fmt: skip
        for result in self.pool.results():
            self._handle(result)
        test, _, variant = culprit.name.partition("/")
        item = self.by_test.get((target.name, test))
        if item is None or self._over():
            return
        harmed = [f"{x}/{y}" for x, y in culprit.successors if stored.get((x, y)) != before.get((x, y))]
        fails = f"{self._operator(victim.test)} fails ({victim.verdict} in {victim.stage}: {victim.message[:300]})"
        outcome = Outcome(
            INCONSISTENT, victim.stage, POISONS, f"once it has run, other tests fail in the same process: {fails}", "",
            self.located.get(culprit.name, ""), {},
            {"tags": ["state-dependent"], "victims": harmed, "victim": culprit.victim.name,
             "victim_verdict": victim.verdict, "victim_stage": victim.stage, "victim_symptom": victim.symptom},
        )  # fmt: skip
        verdict = self._verdict(target, test, item.operator, variant, outcome)
        self._store(msgspec.structs.replace(verdict, confirmation="confirmed"))

    def _located_culprit(self, result: Result, culprit: Culprit) -> None:
        self.located[culprit.name] = result.payload if result.status == DONE else ""

    # ------------------------------------------------------------------ storing

    def _store(self, verdict: Verdict) -> None:
        self.verdicts[verdict.test, verdict.frontend, verdict.variant] = verdict
        stored = self.stored[verdict.frontend]
        stored[verdict.test, verdict.variant] = (verdict.verdict, verdict.stage)
        variants = self.frontends[verdict.frontend].variants
        found = {stored[verdict.test, x.name][0] for x in variants if (verdict.test, x.name) in stored}
        self.worst[verdict.frontend, verdict.test] = next(name for name in COMBINED if name in found)

    def _finish(self, item: Item) -> None:
        self.active -= 1
        self.done += not item.alone

    def _account_documents(self, wall: float) -> dict[tuple[str, str], dict[str, float]]:
        return self.accounts.documents(wall, self.pool.accounts)

    def _save(self, *, force: bool) -> None:
        now = time.monotonic()
        if not force and now - self.saved < SAVE_SECONDS:
            return
        self.saved, wall = now, now - self.started
        if self.verdicts:
            self.workspace.save_verdicts(self.number, self.verdicts.values(), self.signatures)
            self.verdicts, self.signatures = {}, {}
        self.workspace.save_run(self.number, self._account_documents(wall), finished=False)
        self.progress.step(Counter(self.worst.values()), self.done, self.accounts.efficiency(wall))


def _with_screens(outcome: Outcome, reply: ScreenReply) -> Outcome:
    """Add what the screens said to an inconsistency."""
    tags = list(reply.tags) if reply.status != ERROR else ["unscreened"]
    details = outcome.details | {"screen": reply.reason, "tags": tags} | reply.numbers
    return msgspec.structs.replace(
        outcome, verdict=SCREENED if reply.status == SCREENED else INCONSISTENT, details=details
    )


def _outcome(verdict: Verdict) -> Outcome:
    """Return what a stored verdict was made of."""
    return Outcome(
        verdict.verdict, verdict.stage, verdict.symptom, verdict.message, verdict.location,
        verdict.conversion_function, verdict.seconds, verdict.details, verdict.seen,
    )  # fmt: skip
