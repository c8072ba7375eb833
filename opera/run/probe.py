"""What does it do, now? One way to ask: a program or a stored test, on one variant of one frontend, in one environment.

Whoever wants to know whether a failure is still there asks here: confirmation, replay, `opera repro`, and every search that
needs an answer before it goes on. The workers are warm, so an answer costs what the compiler takes; `fresh` asks a fork that
ran nothing before. A program that is no stored test is wrapped first, in a scratch folder that goes with the probe.

What a probe answers is what one execution showed, and nothing is stored. Inconsistent outputs are screened where a question
asks for that.
"""

from __future__ import annotations

import itertools
import shutil
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from opera import compilers, temporary
from opera.compilers import Variant, settings
from opera.errors import NoAnswer, UsageError
from opera.pool.interface import JobPool
from opera.pool.pool import Pool
from opera.pool.workers import DONE, Result
from opera.programs import migrated
from opera.programs.program import Captured, Program
from opera.programs.values import Value
from opera.programs.verdicts import AGAIN, ERROR, INCONSISTENT, INVALID, Job, Limits, Outcome
from opera.run import plan, tasks
from opera.run.groups import NOTHING, compiler_group, library_group, patches, unpatched
from opera.run.library_side import (
    Expected,
    ExpectRequest,
    Known,
    KnowRequest,
    Opened,
    OpenRequest,
    ScreenReply,
    ScreenRequest,
)
from opera.run.outcomes import outcome_of, reached
from opera.run.prepare import VALID, Preparation
from opera.run.transitions import unexported, with_screens
from opera.store import runs
from opera.store.folders import TESTS, Folders, drawn, keep_outputs, kept_outputs
from opera.store.rows import Test
from opera.store.workspace import Workspace

AHEAD = 96
"""Questions that are asked at a time: enough to keep every worker busy while the next programs are wrapped."""
LOCATING, KNOWING = "locating", "knowing"
"""Tags of what is asked for a converter, or for what a library knows, and not for an outcome."""
SEQUEL = 10
"""A test after others may take so many times the limit of one test."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked.

    Attributes:
        frontend: `tvm-onnx`.
        variant: Name of one of its variants; the first where it is none of them.
        test: Id of a stored test; empty where `program` is given.
        program: What is to be wrapped first.
        environment: Id of the stored environment whose interpreter is asked; empty for the one that runs opera.
        after: `test/variant` of what runs before it in the same process, which is a fresh one then.
        fresh: Whether a fresh fork is asked, which ran nothing before.
        unpatched: Whether the frontend is left without the patches that opera makes to it for speed.
        insist: Whether right outputs are computed again, too, to see whether they vary, and what is drawn over several seconds.
        way: Name of a way of the frontend's to run it otherwise than users do (opera.compilers.Way).
        limits: Of this question, where they are not the probe's.
        screened: Whether inconsistent outputs of a program are screened, as a run does it.
        keep: Folder of tests that the test made of a program is copied to, and beside which the outputs are kept where they are
            not the expected ones; None where it goes once it is answered.
    """

    frontend: str
    variant: str = ""
    test: str = ""
    program: Captured | None = None
    environment: str = ""
    after: tuple[str, ...] = ()
    fresh: bool = False
    unpatched: bool = False
    insist: bool = False
    way: str = ""
    limits: Limits | None = None
    screened: bool = False
    keep: Path | None = None


class Answer(msgspec.Struct, frozen=True):
    """What was seen.

    Attributes:
        outcome: Of the test; `invalid` where its library rejects the program, `unexported` where the exporter does.
        reached: Whether the test itself was run: one of those before it may have ended the process.
        tag: The asker's own.
        result: The pool's word, None where it was not executed.
    """

    question: Question
    outcome: Outcome
    reached: bool = True
    tag: Any = None
    result: Result | None = None


class Asked(msgspec.Struct, frozen=True):
    """The pool's tag of a question; `shown` is what is being screened."""

    question: Question
    test: str
    tag: Any = None
    shown: Outcome | None = None


class _MadeUp:
    """Programs that are no stored tests: known as long as somebody asks about them."""

    def __init__(self) -> None:
        self.programs: dict[str, Captured] = {}

    def captured_form(self, name: str) -> dict[str, Any]:
        """Return the corpus form of a program."""
        return self.programs[name].form()

    def tests(self, exporter: str) -> dict[str, Test]:
        """Return nothing: none is known from before."""
        return {}

    def save_tests(self, exporter: str, tests: Iterable[Test]) -> None:
        """Store nothing."""


class Probe:
    """Asks what programs and tests do. Use it in a `with` statement.

    Args:
        roots: Folders that hold stored tests (opera.store.folders): a workspace's, for one.
        interpreter: Environment → its interpreter, empty for the one that runs opera.
        chosen: Environment → its options, among them what was chosen of the compiler's settings.
        limits: Of questions that state none.
        workers: Processes at a time, of a pool of its own.
        pool: A run's pool, instead; it knows no scratch folder, so that only stored tests can be asked about.
        others: Takes results of that pool that are none of the probe's.
    """

    def __init__(
        self,
        *roots: Path,
        interpreter: Callable[[str], str] = lambda _: "",
        chosen: Callable[[str], Mapping[str, str]] = lambda _: NOTHING,
        limits: Limits | None = None,
        workers: int = 2,
        pool: JobPool | None = None,
        others: Callable[[Result], None] = lambda _: None,
    ) -> None:
        self.limits, self.interpreter, self._workers = limits or Limits(), interpreter, workers
        self._roots, self._is_own, self._others = roots, pool is None, others
        self._stack, self._programs = ExitStack(), _MadeUp()
        self._asked = 0  # questions that `answers` owes an answer to
        self._ready: deque[Answer] = deque()
        self._users: Counter[str] = Counter()  # test made for a question → questions about it
        self._chosen = chosen
        self._pythons: dict[str, str] = {}
        self._exporters: dict[str, str] = {}
        if pool is not None:
            self._open(pool, Folders.of(*roots))

    def _open(self, pool: JobPool, files: Folders) -> None:
        self.pool, self.files = pool, files
        self._prepare: Preparation[Asked] = Preparation(self._programs, files, pool, self.limits)

    @classmethod
    def of(cls, workspace: Workspace, *, workers: int = 2, limits: Limits | None = None) -> Probe:
        """Return one of a workspace's tests, with its environments' interpreters and its newest run's limits."""
        return cls(
            workspace.root, interpreter=workspace.interpreter, chosen=partial(options_of, workspace),
            limits=limits or limits_of(workspace), workers=workers,
        )  # fmt: skip

    def __enter__(self) -> Probe:
        if self._is_own:
            self._scratch = self._stack.enter_context(temporary.folder("probe"))
            pool = self._stack.enter_context(Pool({}, workers=self._workers))
            self._open(pool, Folders.of(self._scratch, *self._roots))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    # ------------------------------------------------------------------ asking

    def __call__(self, question: Question) -> Outcome:
        """Return what one test or program does; answers to others that come meanwhile are kept for `answers`.

        Raises NoAnswer where nobody was asked: the time of the run is over.
        """
        self.submit(question)
        others: list[Answer] = []
        try:
            for answer in self.answers():
                if answer.question is question:
                    return answer.outcome
                others.append(answer)
        finally:
            self._ready.extendleft(reversed(others))
            self._asked += len(others)
        raise NoAnswer(f"{question.frontend} was not asked", cause="the time budget of the run is used up")

    def ask(self, questions: Iterable[Question]) -> Iterator[Answer]:
        """Yield the answers to these questions as they come; questions are taken when there is room for them.

        More may be submitted in between: their answers are among these.
        """
        upcoming = iter(questions)
        for question in itertools.islice(upcoming, AHEAD):
            self.submit(question)
        for answer in self.answers():
            for question in itertools.islice(upcoming, max(0, AHEAD - self._asked)):
                self.submit(question)
            yield answer

    def submit(self, question: Question, tag: Any = None) -> None:
        """Ask, and go on: `answers` yields what is seen.

        On a run's pool, a question with a tag is the run's: it comes to `others`, and `take` makes an answer of it.
        """
        self._asked += self._is_own or tag is None
        asked = Asked(question, question.test, tag)
        if question.program is None:
            self._advance(asked)
            return
        if not self._is_own:
            raise UsageError("a probe that shares a run's pool can be asked about stored tests only")
        library = self._library_side(question)
        exporter, instance = self._exporter(library), question.program.program.id
        asked = msgspec.structs.replace(asked, test=plan.test_id(instance, exporter))
        self._users[asked.test] += 1
        if self._manifest(asked.test):
            self._advance(asked)
        else:
            self._programs.programs[instance] = question.program
            self._prepare.wrap(library, exporter, instance, asked)

    def answers(self) -> Iterator[Answer]:
        """Yield answers as they come, until every question has its own, or the time of a run is over."""
        while self._asked:
            while self._ready:
                self._asked -= 1
                yield self._ready.popleft()
            if not self._asked:
                return
            self._prepare.submit()
            result = next(self.pool.results(), None)
            if result is None:
                self._asked = 0
            elif self._is_own or (isinstance(result.tag, Asked) and result.tag.tag is None):
                self._ready.extend(self.take(result))
            else:
                self._others(result)

    def take(self, result: Result) -> list[Answer]:
        """Take in a result of the pool; return the answers that come of it."""
        task = result.tag
        if isinstance(task, tasks.Wrap):
            for asked, test in self._prepare.wrapped(task, result):
                self._wrapped(asked, test, result)
        elif isinstance(task, tasks.Export):
            export, waiting = self._prepare.exported(task, result)
            for asked in waiting:
                self._left(asked, "export", result) if export is None else self._advance(asked)
        elif isinstance(task, Asked):
            if task.shown is not None:
                return [self._answer(task, self._screened(task.shown, result), result=result)]
            outcome = outcome_of(result)
            if task.question.screened and task.question.program is not None and outcome.verdict == INCONSISTENT:
                self._screen(task, task.question.program, outcome)
                return []
            name = f"{task.test}/{self.variant(task.question).name}"
            there = not task.question.after or reached(result, name)
            return [self._answer(task, outcome, reached=there, result=result)]
        return []

    def known(self, library: str, program: Program, *, counted: bool = False) -> Known:
        """Return what a library says of a program's operators, and the programs that this one is made of; `counted`: and how
        many operations it becomes.

        Raises NoAnswer where it cannot be asked.
        """
        found: Known = self._says(library, KnowRequest(library, program.canonical(), counted), "known").decode(Known)
        return found

    def expected(self, captured: Captured) -> list[Value] | None:
        """Return what the library of a program computes for it, None where it rejects it; no compiler is asked.

        Raises NoAnswer where it cannot be asked.
        """
        library = captured.program.library
        request = ExpectRequest(library, msgspec.json.encode(captured.form()))
        found: Expected = self._says(library, request, "expected").decode(Expected)
        return migrated.unpack(found.values) if found.values else None

    def opened(self, library: str, test: str, artefact: str) -> Opened:
        """Return an artefact of a stored test as a program of the library whose models are such files.

        Raises NoAnswer where it cannot be asked.
        """
        found: Opened = self._says(library, OpenRequest(library, test, artefact), "opened").decode(Opened)
        return found

    def _says(self, library: str, request: Any, function: str) -> Result:
        """Return what a function of a library's side says. Raises NoAnswer."""
        asked = Asked(Question(frontend=f"any-{library}"), "", KNOWING)
        self.pool.submit(
            self._library(library), request, seconds=120, call=f"opera.run.library_side:{function}", tag=asked,
        )  # fmt: skip
        for result in self.pool.results():
            if result.tag is asked:
                if result.status != DONE:
                    raise NoAnswer(f"{library} was not asked", cause=f"{result.status} {result.message[-500:]}".strip())
                return result
            self._ready.extend(self.take(result))
        raise NoAnswer(f"{library} was not asked", cause="the time budget of the run is used up")

    def locate(self, question: Question) -> str:
        """Return the code that converts the operator of a stored test, empty where that cannot be told."""
        asked = Asked(question, question.test, LOCATING)
        self.pool.submit(
            self._group(question), self._job(question.frontend, question.test, question.variant),
            seconds=self.limits.seconds, fresh=True, call="opera.run.worker:locate", tag=asked,
        )  # fmt: skip
        for result in self.pool.results():
            if result.tag is asked:
                return str(result.payload) if result.status == DONE else ""
            if self._is_own:
                self._ready.extend(self.take(result))
            else:
                self._others(result)
        return ""

    def variant(self, question: Question) -> Variant:
        """Return the variant that a question is about."""
        return _variant(question.frontend, question.variant)

    # ------------------------------------------------------------------ what comes before an execution

    def _library_side(self, question: Question) -> str:
        """Return the library of a question's frontend; its workers are added where there are none yet."""
        library = _split(question.frontend)[1]
        self._library(library)
        return library

    def _library(self, library: str) -> str:
        """Return the group of a library's workers, added where there is none yet."""
        if f"library {library}" not in self.pool.groups:
            self.pool.add(f"library {library}", library_group(library, self.files))
        return f"library {library}"

    def _wrapped(self, asked: Asked, test: Test | None, result: Result) -> None:
        program = asked.question.program
        if program is not None:
            self._programs.programs.pop(program.program.id, None)
        if test is None:
            self._left(asked, "wrap", result)
        elif test.status == VALID:
            self._advance(asked)
        else:
            verdict, symptom = (INVALID, "") if test.status == INVALID else (ERROR, "opera")
            self._ready.append(self._answer(asked, Outcome(verdict, "wrap", symptom, test.reason)))

    def _advance(self, asked: Asked) -> None:
        """Execute what is there, or have its artefact made."""
        question, variant = asked.question, self.variant(asked.question)
        known = self._is_own and self._manifest(asked.test)  # in a run, what is asked about was executed before
        found = self._prepare.artefact(asked.test, variant.artefact) if known else None
        if isinstance(found, migrated.Export) and found.symptom:
            self._ready.append(self._answer(asked, unexported(variant, found)))
            return
        if isinstance(found, migrated.Export):
            self._prepare.export(self._library_side(question), asked.test, variant.artefact, asked)
            return
        limits = question.limits or self.limits
        job = self._job(question.frontend, asked.test, question.variant, question.way)
        save = self._outputs(asked) if question.screened or question.keep is not None else ""
        repeat = job.repeat or question.screened  # what is drawn is judged by several runs
        job = msgspec.structs.replace(job, insist=question.insist, repeat=repeat, save_outputs=save)
        before = [self._job(question.frontend, *name.partition("/")[::2]) for name in question.after]
        self.pool.submit(
            self._group(question),
            [*before, job] if before else job,
            seconds=limits.seconds * (SEQUEL if before else 1),
            memory=limits.memory,
            fresh=question.fresh or bool(before),
            call="opera.run.worker:replay" if before else "",
            tag=asked,
        )

    def _screen(self, asked: Asked, program: Captured, outcome: Outcome) -> None:
        """Look for another explanation of outputs that are not the expected ones, as a run does."""
        question = asked.question
        compiler, library = _split(question.frontend)
        request = ScreenRequest(
            library=library,
            compiler=compiler,
            test=asked.test,
            instance=program.program.canonical(),
            outcome=outcome,
            actual=self._outputs(asked),
        )
        self.pool.submit(
            self._library(library), request, seconds=120, call="opera.run.library_side:screen",
            tag=msgspec.structs.replace(asked, shown=outcome),
        )  # fmt: skip

    def _screened(self, outcome: Outcome, result: Result) -> Outcome:
        """Return what the screens leave of an inconsistency; what dies or hangs while it is screened explains nothing."""
        if result.status == DONE:
            return with_screens(outcome, result.decode(ScreenReply))
        return with_screens(outcome, ScreenReply(ERROR, f"{result.status} {result.message}".strip()))

    def _outputs(self, asked: Asked) -> str:
        """Return the name by which a worker leaves outputs that are not the expected ones, beside the tests.

        It is of this question alone: two may ask the same at a time, and what one left goes with its answer.
        """
        return f"{asked.test}-{id(asked.question):x}.msgpack"

    def _left(self, asked: Asked, stage: str, result: Result) -> None:
        """Answer that the library's side did not come to it: the machine did not serve it, or it cannot be started."""
        said = f"{result.group} is {result.status} {result.message[-2000:]}".strip()
        self._ready.append(self._answer(asked, Outcome(ERROR, stage, result.status, said, details={AGAIN: True})))

    def _answer(self, asked: Asked, outcome: Outcome, *, reached: bool = True, result: Result | None = None) -> Answer:
        """Return an answer; what was made for the question goes, unless others ask about it too."""
        if asked.question.program is not None:
            made = migrated.folder(self._scratch / TESTS, asked.test)
            if asked.question.keep is not None:
                self._keep(asked.test, migrated.folder(asked.question.keep, asked.test))
                keep_outputs(Path(self._scratch, self._outputs(asked)), self._kept(asked.question, asked.test))
            for name in (self._outputs(asked), drawn(self._outputs(asked))):
                Path(self._scratch, name).unlink(missing_ok=True)
            self._users[asked.test] -= 1
            if not self._users[asked.test]:
                del self._users[asked.test]
                shutil.rmtree(made, ignore_errors=True)
        return Answer(asked.question, outcome, reached, asked.tag, result)

    def _keep(self, test: str, folder: Path) -> None:
        """Copy a test to a folder, whether it was made for a question or is a stored one."""
        found = self.files.test(test)
        if found.is_dir() and not (folder.is_dir() and found.samefile(folder)):
            shutil.copytree(found, folder, dirs_exist_ok=True)

    def _kept(self, question: Question, test: str) -> Path:
        """Return where outputs are kept that are not the expected ones, beside the folder of tests."""
        name = kept_outputs(test, question.frontend, question.variant, question.environment)
        return Path(question.keep or self._scratch).parent / name

    def _manifest(self, test: str) -> bool:
        return (self.files.test(test) / "manifest.json").is_file()

    def _job(self, frontend: str, test: str, variant: str, way: str = "") -> Job:
        compiler, library = _split(frontend)
        found = _variant(frontend, variant)
        return Job(test, compiler, library, found.name, found.artefact, repeat=not way, way=way)

    def _group(self, question: Question) -> str:
        """Return the workers of a question's frontend and interpreter, added where there are none yet."""
        compiler, library = _split(question.frontend)
        if question.environment not in self._pythons:
            self._pythons[question.environment] = self.interpreter(question.environment)
        python = self._pythons[question.environment]
        plain = not question.unpatched or not patches(compiler, library)
        name = question.frontend if plain else unpatched(question.frontend)
        given = settings.of(compiler, self._chosen(question.environment))
        group = compiler_group(compiler, library, self.files, python, unpatched=not plain, chosen=given)
        if name in self.pool.groups and self.pool.groups[name] == group:
            return name
        name += f" of {python}" if python else ""
        name += f" with {given}" if given else ""
        if name not in self.pool.groups:
            self.pool.add(name, group)
        return name

    def _exporter(self, library: str) -> str:
        if library not in self._exporters:
            self._exporters[library] = plan.exporter_id(library)
        return self._exporters[library]


def options_of(workspace: Workspace, environment: str) -> dict[str, str]:
    """Return the options of an environment of a workspace, nothing for one that it does not hold."""
    found: dict[str, str] = workspace.environments().get(environment, {}).get("options", {})
    return found


def limits_of(workspace: Workspace) -> Limits:
    """Return the limits of a workspace's newest run."""
    options = runs.newest(workspace).get("options", {})
    return msgspec.convert(options["limits"], Limits) if options else Limits()


def _split(frontend: str) -> tuple[str, str]:
    """Return compiler and library of a frontend by its name."""
    compiler, _, library = frontend.rpartition("-")
    return compiler, library


def _variant(frontend: str, name: str) -> Variant:
    """Return a variant by its name, the first where there is none such."""
    compiler, library = _split(frontend)
    variants = compilers.frontend(compiler, library).VARIANTS
    return next((x for x in variants if x.name == name), variants[0])
