"""Tries operators on each other's invocations in a capture child (opera.capture.child, kind `driver`).

`verify` runs one operator's invocations on each of its candidates; `transfer` runs the invocations of one operator's verified
partners on it, under instrumentation, so that they are captured as a suite's calls are.
"""

from __future__ import annotations

import os
import resource
import signal
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from opera.capture.recorder import Recorder
from opera.errors import CorpusError
from opera.programs import values
from opera.programs.program import Instance, parse_instance
from opera.sources.deeprel import apis, candidates
from opera.sources.deeprel import plans as files
from opera.sources.deeprel.apis import Api, Related, Unusable
from opera.sources.deeprel.matching import has_default, match
from opera.sources.deeprel.plans import Attempt, Pair, Plan, Tried, settled
from opera.sources.deeprel.replay import Replay
from opera.store.relations import ARROW, STATUS, TOLD

SECONDS = 10
"""A call that takes longer hangs."""
MEMORY = 6 << 30
"""Bytes of private memory that a child may take."""
EXCUSED = (
    "not implement", "not support", "unsupported", "expected a floating", "can't be cast", "must be floating", "for complex",
    "invalid combination of arg", "a complex", "for 'bool'", "bool tensor", "expected scalar type",
)  # fmt: skip
"""What an exception says where an operator only lacks a dtype (most of these are DeepREL's): it refutes nothing."""


def run(recorder: Recorder, part: str) -> tuple[int, int]:
    """Run a plan; return how many invocations were tried, and how many the targets refused."""
    path = Path(part)
    plan = msgspec.msgpack.decode(path.read_bytes(), type=Plan)
    target = apis.get(plan.library)
    with ExitStack() as stack:
        stack.enter_context(_limits())
        trials = _Trials(stack, recorder, target, plan, path)
        return trials.replay() if plan.title else trials.all()


@contextmanager
def _limits() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if soft == resource.RLIM_INFINITY or soft > MEMORY:
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, hard))
    before = signal.signal(signal.SIGALRM, signal.SIG_DFL)  # the kernel ends what hangs, in whatever code it hangs
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class _Trials:
    """One plan at work."""

    def __init__(self, stack: ExitStack, recorder: Recorder, target: Related, plan: Plan, path: Path) -> None:
        self.recorder, self.target, self.plan = recorder, target, plan
        target.prepare()
        self.watched = stack.enter_context(target.watching(recorder))
        self.known = [] if plan.title else files.outcomes(path)
        self.done = {(x.pair.source, x.pair.target) for x in self.known}
        self.skip = set(map(tuple, plan.skip))
        self.lines = stack.enter_context(files.outcomes_file(path).open("ab", buffering=0))
        self.attempt = stack.enter_context(files.attempt_file(path).open("wb", buffering=0))
        self.instances: dict[int, Instance] = {}
        self.results: dict[tuple[str, int], tuple[list[Any], bool] | str] = {}

    def all(self) -> tuple[int, int]:
        """Try all pairs."""
        pairs = self.plan.pairs or list(pairs_of(self.target, self.plan))
        for place, pair in enumerate(pairs):
            if (pair.source, pair.target) not in self.done:
                outcome = self._pair(place, pair)
                self.known.append(outcome)
                self.lines.write(msgspec.json.encode(outcome) + b"\n")
        return sum(x.tried for x in self.known), sum(x.raised + x.excused for x in self.known)

    def replay(self) -> tuple[int, int]:
        """Run records."""
        plan = self.plan
        self.recorder.file = plan.file

        @contextmanager
        def attempt(place: int, operator: str) -> Iterator[None]:
            self._attempt(-1, place, operator, plan.title, plan.names[place])
            with self._limited():
                yield

        skip = {document for _, document in self.skip}
        replayed = Replay(self.recorder, self.target, self.watched, attempt).all(
            plan.title, plan.names, plan.records, skip
        )
        self.lines.write(msgspec.json.encode(replayed) + b"\n")
        return replayed.taken + replayed.refused, replayed.refused

    def _pair(self, place: int, pair: Pair) -> Tried:
        outcome = Tried(pair)
        skipped: Counter[str] = Counter()
        transfer = bool(pair.relation)
        self.recorder.file = pair.source + ARROW + pair.target
        for document in pair.documents if pair.documents is not None else range(len(self.plan.documents)):
            if transfer and outcome.captured >= self.plan.limit:
                break
            if not transfer and settled(outcome):
                break
            try:
                self._one(place, pair, document, outcome)
            except Unusable as reason:
                skipped[str(reason)] += 1
            except CorpusError as error:
                skipped[error.what[:80]] += 1
        outcome.skipped = dict(skipped)
        return outcome

    def _one(self, place: int, pair: Pair, document: int, outcome: Tried) -> None:
        """Try one invocation."""
        name = self.plan.documents[document][0]
        if {(-1, document), (place, document)} & self.skip:
            raise Unusable("it hung or killed the process")
        given = self._expressed(pair, document)
        expected, telling = self._source(pair.source, document)
        self._attempt(place, document, pair.target, pair.source, name)
        try:
            with self._limited(), self.recorder.aside():
                found = self.target.call(pair.target, given)
        except Exception as error:
            text = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
            excused = any(part in text.lower() for part in EXCUSED)
            outcome.count("excused" if excused else "raised", name)
            outcome.error = outcome.error if excused else outcome.error or text
            return
        same = self.target.agree(expected, found)
        what = ("agreed" if telling else "hollow") if same else "differed"
        outcome.count(what, name)
        if pair.relation and (same or pair.relation == STATUS):
            self._record(pair, document, outcome)

    def _source(self, operator: str, document: int) -> tuple[list[Any], bool]:
        """Return what the source returns, and whether that tells anything; once for all its partners. Raises Unusable."""
        found = self.results.get((operator, document))
        if found is None:
            found = self.results[operator, document] = self._run_source(operator, document)
        if isinstance(found, str):
            raise Unusable(found)
        return found

    def _run_source(self, operator: str, document: int) -> tuple[list[Any], bool] | str:
        try:
            self._attempt(-1, document, operator, operator, self.plan.documents[document][0])
            with self._limited(), self.recorder.aside():
                one, other = (self.target.call(operator, self._arguments(document)) for _ in range(2))
                telling = self.target.telling(one, self._arguments(document))
        except Unusable as reason:
            return str(reason)
        except Exception as error:
            return f"the source raises {type(error).__name__}"
        if not one:
            return "it returns no tensor"
        return (one, telling) if self.target.agree(one, other) else "its result is random"

    def _arguments(self, document: int) -> dict[str, Any]:
        if document not in self.instances:
            self.instances[document] = parse_instance(self.plan.documents[document][1])
        return self.target.arguments(self.instances[document])

    def _expressed(self, pair: Pair, document: int) -> dict[str, Any]:
        return express(self.target, pair, self._arguments(document))

    def _record(self, pair: Pair, document: int, outcome: Tried) -> None:
        """Call it again, under instrumentation."""
        self.recorder.test = pair.relation + TOLD + self.plan.documents[document][0]
        before = self.recorder.recorded
        try:
            with self._limited(), self.watched():
                self.target.call(pair.target, self._expressed(pair, document))
        finally:
            self.recorder.flush()
            outcome.captured += self.recorder.recorded - before

    def _attempt(self, place: int, document: int, operator: str, source: str, instance: str) -> None:
        form = msgspec.json.encode(Attempt(place, document, operator, source, instance))
        os.pwrite(self.attempt.fileno(), form.ljust(1000), 0)

    @contextmanager
    def _limited(self) -> Iterator[None]:
        signal.setitimer(signal.ITIMER_REAL, self.plan.seconds or SECONDS)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)


def express(target: Related, pair: Pair, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call of the source as arguments of its partner. Raises Unusable where that cannot be said."""
    found = {}
    for name, item in arguments.items():
        other = pair.names.get(name)
        if other is not None:
            found[other] = item
        elif item is not None and not _may_be_dropped(target, pair, name, item):
            raise Unusable("an argument that the partner lacks")
    for name, form in pair.explicit.items():
        if name not in found:
            found[name] = target.decode(values.decode(form))
    if not set(pair.needed) <= set(found):
        raise Unusable("an argument that the partner needs")
    return found


def _may_be_dropped(target: Related, pair: Pair, name: str, item: Any) -> bool:
    if name not in pair.dropped:
        return False
    form = pair.dropped[name]
    return bool(form == FREE or values.encode(target.encode(item)) == form)


FREE = {"$named": {"kind": "opera", "name": "any"}}
"""Stands among `dropped` for whatever value."""


def pairs_of(target: Related, plan: Plan) -> Iterator[Pair]:
    """Yield the pairs of an operator and its candidates whose arguments can be matched."""
    known, found = _known(plan.library, plan.top if plan.partners is None else 0)
    source = known.get(plan.operator)
    if source is None:
        return
    shapes = (target.types(parse_instance(document)) for _, document in plan.documents[:50])
    source = apis.observed(source, shapes)
    partners = plan.partners if plan.partners is not None else [name for name, _ in found[plan.operator]]
    for name in partners:
        if name in known and name != plan.operator:
            pair = _pair(target, source, known[name])
            if pair is not None:
                yield pair


def _pair(target: Related, source: Api, other: Api) -> Pair | None:
    matching = match(source, other)
    if matching is None:
        return None
    defaults = {x.name: x.default for x in source.parameters}
    explicit = {name: values.encode(defaults[mine]) for name, mine in matching.explicit.items()}
    dropped: dict[str, Any] = dict.fromkeys(target.FREE, FREE)
    for x in source.parameters:
        if x.name not in matching.names and x.name not in dropped and has_default(x):
            dropped[x.name] = values.encode(x.default)
    needed = tuple(x.name for x in other.parameters if x.required)
    return Pair(source.operator, other.operator, matching.names, explicit, dropped, needed)


@cache
def _known(library: str, top: int) -> tuple[dict[str, Api], dict[str, list[tuple[str, float]]]]:
    """Return all operators, and the candidates of each: once a process."""
    found = apis.get(library).apis()
    return {x.operator: x for x in found}, candidates.candidates(found, top) if top else {}
