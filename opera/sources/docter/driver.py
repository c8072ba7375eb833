"""Runs the inputs of one API in a capture child (opera.capture.child): instances come out as they do from a suite."""

from __future__ import annotations

import random
import resource
import signal
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from opera.capture.recorder import Recorder
from opera.programs import values
from opera.sources.docter import documented
from opera.sources.docter.constraints import Api
from opera.sources.docter.documented import Bound, Dead, Documented
from opera.sources.docter.generate import Generator, Input
from opera.sources.docter.make import Unsatisfied
from opera.sources.docter.violate import Violator

SECONDS = 10
"""An input that takes longer hangs (DocTer's limit)."""
MEMORY = 6 << 30
"""Bytes of private memory that a child may take."""
GIVE_UP = 5
"""After so many inputs in a row that could not be made, no more are tried."""


class Plan(msgspec.Struct, frozen=True):
    """What is asked of one run: a file whose name is the job's.

    Attributes:
        library: Whose operators are called.
        api: Constraints; None for given inputs.
        given: Inputs made elsewhere (parameter → encoded value), in place of generated ones; of the API `api.title`.
        seed, count: Of the generator, and how many inputs.
        start: The first input: those before it were run.
        violating: Break one constraint in each.
        seconds: An input that takes longer hangs.
    """

    library: str
    api: Api
    seed: int
    count: int
    start: int = 0
    violating: bool = False
    given: list[dict[str, Any]] | None = None
    seconds: float = SECONDS


class Result(msgspec.Struct):
    """What became of a plan, beside what was captured.

    Attributes:
        operator: The operator it was found to be; `dead` says why there is none.
        remarks: Parameters renamed or left out.
        taken, refused: Inputs that the library took, or refused by an exception.
        repeated: Inputs that were made before and not run again.
        unsatisfied: Why inputs could not be made → how many.
        errors: Exception → how many.
        seconds: Time that generation took.
    """

    operator: str = ""
    dead: str = ""
    remarks: tuple[str, ...] = ()
    taken: int = 0
    refused: int = 0
    repeated: int = 0
    unsatisfied: dict[str, int] = {}
    errors: dict[str, int] = {}
    seconds: float = 0.0

    def join(self, other: Result) -> None:
        """Add what became of further inputs of the same API."""
        self.operator, self.dead = other.operator or self.operator, other.dead or self.dead
        self.remarks = other.remarks or self.remarks
        self.taken += other.taken
        self.refused += other.refused
        self.repeated += other.repeated
        self.seconds += other.seconds
        self.unsatisfied = dict(Counter(self.unsatisfied) + Counter(other.unsatisfied))
        self.errors = dict(Counter(self.errors) + Counter(other.errors))


class Attempt(msgspec.Struct):
    """The input that runs now, which is the one to blame if the process dies; `so_far` is what became of those before."""

    number: int
    operator: str
    values: dict[str, Any]
    violates: str = ""
    so_far: Result = msgspec.field(default_factory=Result)


def result_file(plan: Path) -> Path:
    return plan.with_suffix(".result")


def attempt_file(plan: Path) -> Path:
    return plan.with_suffix(".attempt")


def run(recorder: Recorder, part: str) -> tuple[int, int]:
    """Run a plan; return how many inputs were run, and how many the library refused."""
    path = Path(part)
    plan = msgspec.msgpack.decode(path.read_bytes(), type=Plan)
    target = documented.get(plan.library)
    recorder.file = plan.api.file or plan.api.title
    recorder.test = plan.api.title
    result = Result()
    try:
        bound = target.bind(plan.api)
        result.operator, result.remarks = bound.operator, bound.remarks
        _Run(recorder, target, bound, plan, path, result).all()
    except Dead as reason:
        result.dead = str(reason)
    result_file(path).write_bytes(msgspec.json.encode(result))
    return result.taken + result.refused, result.refused


class _Run:
    """One plan at work."""

    def __init__(
        self, recorder: Recorder, target: Documented, bound: Bound, plan: Plan, path: Path, result: Result
    ) -> None:
        self.recorder, self.target, self.bound, self.plan, self.result = recorder, target, bound, plan, result
        self.attempt = attempt_file(path)
        self.seen: set[bytes] = set()
        self.errors: Counter[str] = Counter()
        self.unsatisfied: Counter[str] = Counter()

    def all(self) -> None:
        """Run all inputs."""
        _limit_memory()
        before = signal.signal(signal.SIGALRM, signal.SIG_DFL)  # the kernel ends what hangs, in whatever code it hangs
        try:
            with warnings.catch_warnings(), self.target.watching(self.recorder) as watched:
                warnings.simplefilter("ignore")
                for number, made, violates, learn in self._timed():
                    learn(self._one(number, made, violates, watched))
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        self.result.errors = dict(self.errors.most_common(8))
        self.result.unsatisfied = dict(self.unsatisfied.most_common(4))

    def _timed(self) -> Iterator[tuple[int, dict[str, values.Value], str, Callable[[bool | None], None]]]:
        """Yield the inputs, and count the time that making them takes."""
        inputs = self._inputs()
        while True:
            started = time.perf_counter()
            found = next(inputs, None)
            self.result.seconds += time.perf_counter() - started
            if found is None:
                return
            yield found

    def _inputs(self) -> Iterator[tuple[int, dict[str, values.Value], str, Callable[[bool | None], None]]]:
        """Yield number, arguments, what they violate, and whom to tell whether the library took them."""
        if self.plan.given is not None:
            yield from self._given(self.plan.given)
            return
        generator = Generator(self.bound.api, self.plan.seed)
        violator = Violator(self.bound.api, self.plan.seed) if self.plan.violating else None
        failures = 0
        for number in range(self.plan.start, self.plan.count):
            try:
                made, violates = generator.draw(number), ""
                arguments = made.values
                if violator is not None:
                    arguments, violates = violator.violate(made.values, number)
            except Unsatisfied as reason:
                self.unsatisfied[str(reason)[:200]] += 1
                failures += 1
                if failures >= GIVE_UP:
                    return
                continue
            failures = 0
            yield number, arguments, violates, _learner(generator, made) if violator is None else lambda _: None

    def _given(
        self, given: list[dict[str, Any]]
    ) -> Iterator[tuple[int, dict[str, values.Value], str, Callable[[bool | None], None]]]:
        """Yield inputs that were made elsewhere; what a call needs besides (the input of a layer) is generated."""
        for number in range(self.plan.start, len(given)):
            names = self.bound.names
            stated = {names[name]: values.decode(x) for name, x in given[number].items() if name in names}
            missing = tuple(name for name in self.bound.api.required if name not in stated)
            rest = msgspec.structs.replace(self.bound.api, required=missing, optional=())
            try:
                made = Generator(rest, self.plan.seed, given=stated).draw(number).values if missing else {}
            except Unsatisfied as reason:
                self.unsatisfied[str(reason)[:200]] += 1
                continue
            yield number, stated | made, "", lambda _: None

    def _one(
        self, number: int, made: dict[str, values.Value], violates: str,
        watched: Callable[[], AbstractContextManager[None]],
    ) -> bool | None:  # fmt: skip
        """Run one input; return whether the library took it, None for one that was run before."""
        encoded = {name: values.encode(x) for name, x in made.items()}
        key = msgspec.json.encode(encoded)
        if key in self.seen:
            self.result.repeated += 1
            return None
        self.seen.add(key)
        attempt = Attempt(number, self.bound.operator, encoded, violates, self.result)
        self.attempt.write_bytes(msgspec.json.encode(attempt))
        _seed(self.plan.seed)
        signal.setitimer(signal.ITIMER_REAL, self.plan.seconds)
        try:
            call = self.target.prepare(self.bound, made, number)
            with watched():
                call()
        except Exception as error:
            self.errors[f"{type(error).__name__}: {' '.join(str(error).split())[:80]}"] += 1
            self.result.refused += 1
            return False
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            self.recorder.flush()
        self.result.taken += 1
        return True


def _learner(generator: Generator, made: Input) -> Callable[[bool | None], None]:
    return lambda taken: generator.learn(made, taken) if taken is not None else None


def _seed(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)


def _limit_memory() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if soft == resource.RLIM_INFINITY or soft > MEMORY:
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, hard))
