"""Run ranked tests on frontends: wrap, execute, try variants, screen, confirm, store.

One thread drives everything from the results of one pool. An item's way: (wrap) → execute variant → (screen, where outputs
are inconsistent) → store → (next variant) → (confirm in a fresh process). What is stored is never lost; what is not stored
is done again by the next run.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from opera import compilers, libraries
from opera.errors import NotInstalled, UsageError
from opera.execute import plan, quota, records
from opera.execute.accounts import Accounts
from opera.execute.confirm import Confirmations
from opera.execute.library_side import ScreenReply, ScreenRequest
from opera.execute.plan import Frontend, Item, Selection
from opera.execute.pool import DONE, UNAVAILABLE, Group, Pool, Result
from opera.execute.prepare import Preparation
from opera.execute.quota import Quota
from opera.execute.records import (
    ERROR,
    FAILURES,
    INCONSISTENT,
    SCREENED,
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
    """What a run did: frontend → verdict → tests, findings that were not there before, seconds, efficiency."""

    run: int
    counts: dict[str, dict[str, int]]
    new_findings: list[str]
    seconds: float
    efficiency: float
    stopped: str = ""


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
    groups = {compilers.frontend_name(*pair): compiler_group(*pair, options.python) for pair in pairs}
    groups |= {f"library {name}": library_group(name) for name in chosen}
    with Pool(groups, workers=options.workers) as pool:
        described = _describe(pool, pairs, options, progress)
        frontends = [
            plan.frontend(workspace, name, library, described[name]) for name, library in pairs if name in described
        ]
        return _Run(workspace, options, progress, pool, frontends).go()


def compiler_group(name: str, library: str, python: str = "") -> Group:
    """Return the workers of a frontend."""
    compiler = compilers.get(name)
    preload = (*compiler.PRELOAD, *(module for variant in compiler.FRONTENDS[library] for module in variant.preload))
    return Group(call="opera.execute.worker:run", python=python, preload=tuple(dict.fromkeys(preload)))


def library_group(name: str) -> Group:
    """Return the workers of a library's side."""
    return Group(call="opera.execute.library_side:wrap_batch", preload=tuple(libraries.get(name).PRELOAD))


def _describe(
    pool: Pool, pairs: list[tuple[str, str]], options: Options, progress: Progress
) -> dict[str, dict[str, Any]]:
    """Return compiler → description (version, options, CPU, ...) of those that can be run."""
    names = dict(pairs)  # the workers of any one frontend can describe its compiler
    for name, library in names.items():
        group = compilers.frontend_name(name, library)
        pool.submit(group, name, seconds=300, tag=name, call="opera.execute.worker:describe")
    found: dict[str, dict[str, Any]] = {}
    missing: dict[str, str] = {}
    for result in pool.results():
        if result.status == DONE and not result.payload["error"]:
            found[result.tag] = {key: value for key, value in result.payload.items() if key != "error"}
        else:
            missing[result.tag] = result.message or (result.payload or {}).get("error", "") or result.log
    for name, why in missing.items():
        hint = f"pip install {compilers.get(name).PACKAGE}"
        last = (why.strip().splitlines() or ["no reason given"])[-1]
        if name in options.compilers:
            raise NotInstalled(f"the compiler {name} cannot be used: {last}", cause="it is not installed", fix=hint)
        progress.say(f"{name} is left out: {last} ({hint})")
    if not found:
        raise NotInstalled(
            "no compiler is installed", fix='pip install "opera[onnxruntime]", or another; see `opera doctor`'
        )
    return {name: found[name] for name in names if name in found}


class _Run:
    def __init__(
        self, workspace: Workspace, options: Options, progress: Progress, pool: Pool, frontends: list[Frontend]
    ) -> None:
        self.workspace, self.options, self.progress, self.pool = workspace, options, progress, pool
        self.frontends = {x.name: x for x in frontends}
        self.accounts = Accounts(frontends, options.workers)
        exporters = {x.exporter for x in frontends}
        self.prepare = Preparation(
            workspace, pool, options.limits, exporters, self._advance, self._dropped, self._paid_export
        )
        self.stored = {x.name: workspace.verdict_names(x.name, x.environment) for x in frontends}
        self.confirmations = Confirmations(workspace, frontends)
        self.worst: dict[tuple[str, str], str] = {}  # (frontend, test) → worst verdict over its variants
        self.active = 0  # items between being taken up and their last verdict
        self.done = 0
        self.verdicts: dict[tuple[str, str, str], Verdict] = {}  # to be written
        self.signatures: dict[str, bytes] = {}
        self.new_findings: dict[str, None] = {}
        self.known = {row[0] for row in workspace.query("SELECT id FROM findings")}
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
        self.upcoming = iter(self.items)
        self.quota = Quota(self.items, self.options.selection)
        self.progress.begin(self.quota.total(item for item in self.items if not self.prepare.rejected(item)))
        self._resume_confirmations()
        try:
            self._feed()
            for result in self.pool.results():
                self._handle(result)
                self._feed()
                self._save(force=False)
        finally:
            self._save(force=True)
            for left in self.scratch.iterdir():
                left.unlink()
        wall = time.monotonic() - self.started
        self.workspace.save_run(self.number, self._account_documents(wall), finished=True)
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        for (frontend, _), verdict in self.worst.items():
            counts[frontend][verdict] += 1
        return Summary(
            self.number,
            {name: dict(x) for name, x in counts.items()},
            list(self.new_findings),
            wall,
            self.accounts.efficiency(wall),
            self.stopped,
        )

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
        """Take up an item; False where its library rejects it, or no more are wanted."""
        if self.prepare.rejected(item) or not self.quota.take(item):
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

    def _paid_export(self, item: Item, inside: float, occupied: float) -> None:
        self.accounts.first(item.frontend.name, item.test, inside, occupied)

    # ------------------------------------------------------------------ executing

    def _advance(self, item: Item) -> None:
        """Submit the next variant of an item that has no verdict yet, or be done with it."""
        target = item.frontend
        stored = self.stored[target.name]
        while item.variant < len(target.variants):
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

    def _execute(self, item: Item) -> None:
        target, variant = item.frontend, item.frontend.variants[item.variant]
        save = self._saved_outputs(item, variant.name)
        self.pool.submit(
            target.name,
            self._job(target, variant, item.test, save),
            seconds=self.options.limits.seconds,
            memory=self.options.limits.memory,
            tag=("first", item),
        )

    def _handle(self, result: Result) -> None:
        kind, *rest = result.tag
        if result.status == UNAVAILABLE:
            raise NotInstalled(
                f"{result.group} stopped working: {result.message.strip()[-500:]}", fix="run the command again"
            )
        handlers: dict[str, Callable[..., None]] = {
            "wrap": self.prepare.wrapped,
            "export": self.prepare.made,
            "first": self._executed,
            "locate": self._located,
            "screen": self._screened,
            "confirm": self._confirmed,
            "replay": self._replayed,
        }
        handlers[kind](result, *rest)

    def _executed(self, result: Result, item: Item) -> None:
        outcome = outcome_of(result)
        repeated = outcome.seconds.get("repeat", 0.0)
        inside = sum(outcome.seconds.values()) - repeated
        self.accounts.first(item.frontend.name, item.test, inside, result.seconds - repeated)
        self.accounts.confirmed(item.frontend.name, repeated)
        predecessors = [tag[1].test for tag in result.predecessors if tag[0] == "first"]
        variant = item.frontend.variants[item.variant].name
        if outcome.verdict == INCONSISTENT:
            self._submit_screen(item, variant, outcome, predecessors)
            return
        if outcome.verdict in DEATHS and not outcome.conversion_function:
            self.pool.submit(
                item.frontend.name,
                self._job(item.frontend, item.frontend.variants[item.variant], item.test),
                seconds=self.options.limits.seconds,
                call="opera.execute.worker:locate",
                tag=("locate", item, variant, outcome, predecessors),
            )
            return
        self._conclude(item, variant, outcome, predecessors)

    def _located(self, result: Result, item: Item, variant: str, outcome: Outcome, predecessors: list[str]) -> None:
        """Take note of what converts the operator of a test whose process died before it could tell."""
        if result.status == DONE:
            outcome = msgspec.structs.replace(outcome, conversion_function=result.payload)
        self._conclude(item, variant, outcome, predecessors)

    # ------------------------------------------------------------------ screening

    def _submit_screen(self, item: Item, variant: str, outcome: Outcome, predecessors: list[str]) -> None:
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
            tag=("screen", item, variant, outcome, predecessors),
        )  # fmt: skip

    def _saved_outputs(self, item: Item, variant: str) -> str:
        return str((self.scratch / f"{item.test}-{item.frontend.name}-{variant}.msgpack").absolute())

    def _screened(self, result: Result, item: Item, variant: str, outcome: Outcome, predecessors: list[str]) -> None:
        if result.status == DONE:
            reply = result.decode(ScreenReply)
        else:  # the library's own side died: the inconsistency stands, and says that nothing could be asked
            reply = ScreenReply(ERROR, f"{result.status} {result.exit} {result.message}".strip()[:500])
        screened = reply.status == SCREENED
        tags = list(reply.tags) if reply.status != ERROR else ["unscreened"]
        details = outcome.details | {"screen": reply.reason, "tags": tags} | reply.numbers
        verdict = SCREENED if screened else INCONSISTENT
        self._conclude(item, variant, msgspec.structs.replace(outcome, verdict=verdict, details=details), predecessors)

    # ------------------------------------------------------------------ concluding and confirming

    def _conclude(self, item: Item, variant: str, outcome: Outcome, predecessors: list[str]) -> None:
        verdict = self._verdict(item.frontend, item.test, item.operator, variant, outcome)
        if verdict.finding:
            state = self.confirmations.wanted(verdict)
            verdict = msgspec.structs.replace(verdict, confirmation=state)
            if state == "pending":
                self._submit_confirm(item, verdict, predecessors)
        self._store(verdict)
        item.variant += 1
        self._advance(item)

    def _verdict(self, target: Frontend, test: str, operator: str, variant: str, outcome: Outcome) -> Verdict:
        finding = ""
        if outcome.verdict in FAILURES:
            found = Signature.of(target.name, operator, outcome)
            finding = found.id
            if finding not in self.known:
                self.known.add(finding)
                self.new_findings[finding] = None
                self.signatures[finding] = msgspec.json.encode(found)
        return Verdict(
            test=test, frontend=target.name, variant=variant, environment=target.environment,
            verdict=outcome.verdict, stage=outcome.stage, symptom=outcome.symptom, message=outcome.message,
            location=outcome.location, conversion_function=outcome.conversion_function, finding=finding,
            seconds=outcome.seconds, details=outcome.details,
        )  # fmt: skip

    def _resume_confirmations(self) -> None:
        """Confirm what an interrupted run left pending."""
        operators = {item.test: item for item in self.items}
        for verdict in self.confirmations.left_over():
            if verdict.test in operators and verdict.frontend in self.frontends:
                found = operators[verdict.test]
                item = Item(self.frontends[verdict.frontend], found.instance, found.operator, verdict.test)
                self._submit_confirm(item, verdict, [])

    def _submit_confirm(self, item: Item, verdict: Verdict, predecessors: list[str]) -> None:
        variant = next(x for x in item.frontend.variants if x.name == verdict.variant)
        larger = 3 if verdict.verdict in (records.TIMEOUT, records.OUT_OF_MEMORY) else 1
        self.pool.submit(
            item.frontend.name,
            self._job(item.frontend, variant, item.test),
            seconds=self.options.limits.seconds * larger,
            memory=self.options.limits.memory * (2 if larger > 1 else 1),
            fresh=True,
            tag=("confirm", item, verdict, predecessors),
        )

    def _confirmed(self, result: Result, item: Item, verdict: Verdict, predecessors: list[str]) -> None:
        self.accounts.confirmed(item.frontend.name, result.seconds)
        again = self._again(item, verdict, outcome_of(result))
        if again is not None:
            self._store(again)
        elif predecessors:
            variant = next(x for x in item.frontend.variants if x.name == verdict.variant)
            before = [self._job(item.frontend, item.frontend.variants[0], test) for test in predecessors]
            self.pool.submit(
                item.frontend.name,
                [*before, self._job(item.frontend, variant, item.test)],
                seconds=self.options.limits.seconds * 10,
                memory=self.options.limits.memory,
                fresh=True,
                call="opera.execute.worker:replay",
                tag=("replay", item, verdict, predecessors),
            )
        else:
            self._flaky(item, verdict)

    def _replayed(self, result: Result, item: Item, verdict: Verdict, predecessors: list[str]) -> None:
        self.accounts.confirmed(item.frontend.name, result.seconds)
        again = self._again(item, verdict, outcome_of(result))
        if again is None:
            self._flaky(item, verdict)
            return
        tags = [*again.details.get("tags", []), "state-dependent"]
        details = again.details | {"tags": tags, "predecessors": predecessors}
        self._store(msgspec.structs.replace(again, details=details))

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

    def _flaky(self, item: Item, verdict: Verdict) -> None:
        details = verdict.details | {"was": verdict.verdict, "finding": verdict.finding}
        self._store(
            msgspec.structs.replace(verdict, verdict=records.FLAKY, finding="", confirmation="", details=details)
        )
        self.new_findings.pop(verdict.finding, None)

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
        self.done += 1

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


def outcome_of(result: Result) -> Outcome:
    """Return what a pool result shows of a test: the worker's own word, or what became of the worker."""
    if result.status == DONE:
        outcome: Outcome = result.decode(Outcome)
        return outcome
    stage = result.note or "load"
    seconds = {stage: result.seconds}
    if result.status == records.ABORT:
        return Outcome(records.ABORT, stage, result.exit, result.log, seconds=seconds)
    if result.status in (records.TIMEOUT, records.OUT_OF_MEMORY):
        return Outcome(result.status, stage, result.status, result.log, seconds=seconds)
    return Outcome(ERROR, stage, "opera", result.message[-4000:], seconds=seconds)
