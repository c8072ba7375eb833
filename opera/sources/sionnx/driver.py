"""Makes the cases of one specification in a capture child, and records those that are tests."""

from __future__ import annotations

import resource
import signal
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path

import msgspec

from opera.capture.recorder import LeftOut, Recorder
from opera.errors import OperaError
from opera.programs import verdicts
from opera.sources.sionnx import answers, compat, encode, generate, parse, skeleton
from opera.sources.sionnx.algorithm import Algorithms
from opera.sources.sionnx.answers import Judged
from opera.sources.sionnx.case import Case
from opera.sources.sionnx.spec import Spec

SECONDS = 60.0
"""A case that takes longer hangs: the kernel ends the process."""
MEMORY = 6 << 30
"""Bytes of private memory that a child may take."""
EVALUATING = 10.0
"""CPU seconds that the evaluator may take for one specification, after which ONNX Runtime answers alone."""
SPECIFICATION, REPEATED, DISPUTED, OTHERS, UNASKED = "specification", "repeated", "disputed", "others", "unasked"
"""What becomes of cases, beside what answers.judge says: what the specification itself rejects, and what was made before."""
COMPAT = "compat"
"""Before the mode, where cases are made as the published code makes them."""
REASONS = 6
"""Reasons of each kind that are kept."""
NAME = 300
"""Characters of a test's name."""


class Plan(msgspec.Struct, frozen=True):
    """What is asked of one run: a file whose name is the job's.

    Attributes:
        text, file: A file of specifications, and its name.
        name, operator, since: Which of its definitions, for which operator and version.
        mode, count, seed, zero, nonfinite: See opera.sources.sionnx.generate; COMPAT before the mode: of ...sionnx.compat.
        start: The first case that is tried: those before were.
        unasked: Cases of which ONNX Runtime is not asked, for it ended the process.
        algorithm: Text of the checkout's reference implementation, run only where the user said so; empty for none.
        rest: Text and name of the file whose specification of the operator completes this one; empty for none.
        seconds: A case that takes longer hangs.
    """

    text: str
    file: str
    name: str
    operator: str
    since: int
    mode: str
    count: int
    seed: int
    zero: bool = False
    nonfinite: bool = False
    start: int = 0
    unasked: tuple[int, ...] = ()
    algorithm: str = ""
    rest: tuple[str, str] = ("", "")
    seconds: float = SECONDS


class Result(msgspec.Struct):
    """What became of a plan, beside what was captured.

    Attributes:
        counts: What became of cases (`accepted`, `checker`, ... of opera.sources.sionnx.answers; REPEATED) → how many; and of
            drafts that were none (SPECIFICATION). Of those accepted, DISPUTED ones have references that disagree, and OTHERS
            are answered by another than the evaluator; UNASKED ones are those of which it was not asked, for it was slow.
        reasons: The same → why → how many, of the most frequent reasons.
        seconds: Part (`generating`, `judging`, `recording`) → CPU seconds.
    """

    counts: dict[str, int] = {}
    reasons: dict[str, dict[str, int]] = {}
    seconds: dict[str, float] = {}

    def join(self, other: Result) -> None:
        """Add what became of further cases."""
        self.counts = dict(Counter(self.counts) + Counter(other.counts))
        self.seconds = {x: self.seconds.get(x, 0) + other.seconds.get(x, 0) for x in {**self.seconds, **other.seconds}}
        for name, reasons in other.reasons.items():
            self.reasons[name] = dict(Counter(self.reasons.get(name, {})) + Counter(reasons))

    def count(self, *names: str) -> int:
        """Return how many cases became one of these."""
        return sum(self.counts.get(name, 0) for name in names)


class Attempt(msgspec.Struct):
    """The case that is tried now, which is the one to blame if the process dies; `so_far` is what became of those before.

    `asked`: whether ONNX Runtime is asked.
    """

    number: int
    operator: str
    test: str
    asked: bool
    so_far: Result


def result_file(plan: Path) -> Path:
    return plan.with_suffix(".result")


def attempt_file(plan: Path) -> Path:
    return plan.with_suffix(".attempt")


def disagreements_file(plan: Path) -> Path:
    return plan.with_suffix(".disagreements")


def run(recorder: Recorder, part: str) -> tuple[int, int]:
    """Run a plan; return how many cases were tried, and how many were rejected."""
    path = Path(part)
    plan = msgspec.msgpack.decode(path.read_bytes(), type=Plan)
    recorder.file = plan.file
    spec = chosen(plan)
    with ExitStack() as stack:
        algorithms = stack.enter_context(Algorithms(plan.algorithm, spec.operator)) if plan.algorithm else None
        made = _Run(recorder, plan, spec, path, algorithms)
        made.all()
    result_file(path).write_bytes(msgspec.json.encode(made.told()))
    counts = made.counts
    return counts.total() - counts[DISPUTED] - counts[OTHERS] - counts[UNASKED], counts[answers.CHECKER] + counts[
        answers.REFERENCE
    ]


@lru_cache(8)
def parsed(text: str, file: str) -> list[Spec]:
    """Return the specifications of a file: a child does several of them."""
    return parse.parse(text, file)


def chosen(plan: Plan) -> Spec:
    """Return the specification of a plan."""
    found = next(x for x in parsed(plan.text, plan.file) if (x.name, x.signature) == (plan.name, plan.operator))
    if plan.mode.startswith(COMPAT):
        return msgspec.structs.replace(found, since=plan.since)
    for more in parsed(*plan.rest) if plan.rest[0] else ():
        if more.signature == plan.operator:
            found = msgspec.structs.replace(found, body=more.body, file=more.file, properties=more.properties)
    return skeleton.resolve(found, plan.since)


class _Run:
    """One plan at work."""

    def __init__(self, recorder: Recorder, plan: Plan, spec: Spec, path: Path, algorithms: Algorithms | None) -> None:
        self.recorder, self.plan, self.spec, self.algorithms = recorder, plan, spec, algorithms
        self.compat = plan.mode.startswith(COMPAT)
        self.patience = EVALUATING
        self.drafts = Counter[str]()
        self.attempt, self.disagreements = attempt_file(path), disagreements_file(path)
        self.seen: set[str] = set()
        self.counts, self.seconds = Counter[str](), dict.fromkeys(("generating", "judging", "recording"), 0.0)
        self.reasons: dict[str, Counter[str]] = {}

    def told(self) -> Result:
        """Return what became of the plan so far."""
        reasons = self.reasons | ({SPECIFICATION: self.drafts} if self.drafts else {})
        kept = {name: dict(found.most_common(REASONS)) for name, found in reasons.items()}
        counts = self.counts + Counter({SPECIFICATION: self.drafts.total()})
        return Result(dict(counts), kept, {name: round(x, 3) for name, x in self.seconds.items()})

    def all(self) -> None:
        """Try all cases."""
        _limit_memory()
        answers.prepare()
        before = signal.signal(signal.SIGALRM, signal.SIG_DFL)  # the kernel ends what hangs, in whatever code it hangs
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for case in self._timed():
                    self._one(case)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    def _timed(self) -> Iterator[Case]:
        """Yield the cases that are to be tried, and count the time that making them takes."""
        plan = self.plan
        if self.compat:
            made = compat.cases(self.spec, plan.mode.split()[-1], plan.count, plan.seed)
        else:
            made = generate.cases(
                self.spec, plan.mode, plan.count, plan.seed, empty=plan.zero, special=plan.nonfinite, rejected=self.drafts
            )  # fmt: skip
        while True:
            started = time.process_time()
            case = next(made, None)
            self.seconds["generating"] += time.process_time() - started
            if case is None:
                return
            if case.number >= plan.start:
                yield case

    def _one(self, case: Case) -> None:
        self.recorder.calls += 1
        started = time.process_time()
        test = name_of(case)
        asked = case.number not in self.plan.unasked
        attempt = Attempt(case.number, encode.signature(case), test, asked, self.told())
        self.attempt.write_bytes(msgspec.json.encode(attempt))
        signal.setitimer(signal.ITIMER_REAL, self.plan.seconds)
        judged = self._judged(case, test, asked)
        signal.setitimer(signal.ITIMER_REAL, 0)
        between = time.process_time()
        self.seconds["judging"] += between - started
        self.counts[judged.status] += 1
        if judged.status == answers.ACCEPTED:
            self._record(judged, test)
        elif judged.reason:
            self.reasons.setdefault(judged.status, Counter())[judged.reason] += 1
        self.seconds["recording"] += time.process_time() - between

    def _judged(self, case: Case, test: str, asked: bool) -> Judged:
        try:
            instance = encode.instance(case)
            if self.compat:
                instance = encode.described(instance)
        except (LeftOut, OperaError, ValueError, TypeError, OverflowError) as error:
            why = error.what if isinstance(error, OperaError) else str(error)
            return Judged(answers.CHECKER, f"no ONNX model can hold it: {type(error).__name__}: {why}"[:NAME])
        if instance.id in self.seen:
            return Judged(REPEATED)
        self.seen.add(instance.id)
        evaluator = self.patience > 0
        judged = answers.judge(instance, test, evaluator=evaluator, runtime=asked, algorithm=self.algorithms)
        self.patience -= judged.seconds
        self.counts[UNASKED] += not evaluator
        return judged

    def _record(self, judged: Judged, test: str) -> None:
        assert judged.instance is not None
        self.counts[DISPUTED] += judged.disputed
        self.counts[OTHERS] += bool(judged.reference)
        with self.disagreements.open("ab") as file:
            file.writelines(msgspec.json.encode(x) + b"\n" for x in judged.disagreements)
        tags = (verdicts.DISPUTED,) if judged.disputed else ()
        self.recorder.record(
            judged.instance, test=test, expected=judged.expected, reference=judged.reference, tags=tags
        )  # fmt: skip


def name_of(case: Case) -> str:
    """Return what a test is called: operator and version, its place among the cases, and the boundaries that it is at."""
    at = ", ".join(f"{part} {what}" for part, what in case.boundaries.items())
    text = f"{case.operator}-{case.since} {case.number}" + (f": {at}" if at else "")
    return "".join(x if x.isprintable() else "?" for x in text)[:NAME]


def _limit_memory() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if soft == resource.RLIM_INFINITY or soft > MEMORY:
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, hard))
