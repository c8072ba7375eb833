"""Messages between opera and its workers, and the words for what a run showed. Needs msgspec only."""

from __future__ import annotations

from typing import Any

import msgspec

OBSERVATION_VERSION = "1"
"""Changes whenever a run observes something else of the same test: part of a verdict's identity. The rules that conclude
from what was observed are not: they have digests (`opera.run.rules`), and verdicts are judged anew when those change."""

PASS, INVALID, UNSUPPORTED, UNEXPORTED = "pass", "invalid", "unsupported", "unexported"
CRASH, ABORT, TIMEOUT, OUT_OF_MEMORY = "crash", "abort", "timeout", "out-of-memory"
INCONSISTENT, SCREENED, ERROR, FLAKY = "inconsistent", "screened", "error", "flaky"
UNSTABLE, REFUSED = "unstable", "refused-claimed"

FAILURES = (ABORT, UNSTABLE, CRASH, TIMEOUT, OUT_OF_MEMORY, INCONSISTENT, REFUSED)
"""Verdicts that make findings, worst first."""
DEATHS = (ABORT, TIMEOUT, OUT_OF_MEMORY)
"""Verdicts of a process that ended without an answer."""
FAULTS = ("SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGSEGV", "SIGTRAP")
"""Signals that a process dies of by its own fault. Which of them comes of overwritten memory differs from run to run."""
VERDICTS = (PASS, UNSUPPORTED, UNEXPORTED, *FAILURES, SCREENED, FLAKY, ERROR)
"""Every verdict of a test on a frontend; `invalid` is a status of the test itself."""


def deaths(symptom: str) -> tuple[str, ...]:
    """Return the signals by which a process may end that was seen to end by one of them."""
    return FAULTS if symptom in FAULTS else (symptom,)


AGAIN = "again"
"""Detail of an `error` that says nothing of the test, for opera or the machine was too slow: the next run tries again."""


DISPUTED = "reference-disputed"
"""Reason of a screen: independent implementations agree to contradict what the library's own test expects. Tag of a test
whose references already disagreed when it was generated."""
AGREES = "agrees"
"""Detail of outputs of a random program that are the expected ones by chance: what it draws else is looked at all the same."""
NEWER = "newer-opset"
"""Tag of a failure of a test that needs newer operators than the compiler declares to know."""


class Limits(msgspec.Struct, frozen=True):
    """Limits of one execution: seconds (as of `opera.pool.clock`), and bytes of memory that a worker may grow by."""

    seconds: float = 30.0
    memory: int = 4 << 30


class Uses(msgspec.Struct, frozen=True):
    """What a job reads and leaves, by the names of opera.store.folders: what is to be there, and is to be brought back.

    Attributes:
        reads: Ids of migrated tests.
        makes: Ids of tests that it makes or adds an artefact to.
        takes, leaves: Names of files; it may leave none.
    """

    reads: tuple[str, ...] = ()
    makes: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    leaves: tuple[str, ...] = ()


class Job(msgspec.Struct, frozen=True):
    """One execution: run a test, which the worker finds by its id, through one variant of one frontend.

    `save_outputs` names a file to write the outputs to (opera.programs.migrated encoding) when they differ from the expected
    ones; see opera.store.folders.Files.file. Wrong outputs are computed again where `repeat` is true, to see whether they vary;
    right ones too where `insist` is, and what is drawn over several seconds. `way` is of opera.compilers.Way.
    """

    test: str
    compiler: str
    library: str
    variant: str
    artefact: str
    save_outputs: str = ""
    repeat: bool = True
    insist: bool = False
    way: str = ""

    @property
    def name(self) -> str:
        """`test/variant`, as predecessors are listed."""
        return f"{self.test}/{self.variant}"

    @property
    def uses(self) -> Uses:
        return Uses(reads=(self.test,), leaves=(self.save_outputs,) if self.save_outputs else ())


class Raised(msgspec.Struct, frozen=True, array_like=True):
    """One exception of a chain of causes.

    Attributes:
        kinds: `module:qualified name` of its classes, in the order of method resolution.
        text: What it says, at most 64 Ki characters.
    """

    kinds: tuple[str, ...]
    text: str


class Margin(msgspec.Struct, frozen=True, array_like=True):
    """How far one float output is off, for whatever tolerance: see opera.oracle.comparison.margins.

    Attributes:
        corners: (|expected|, |actual - expected|) of the elements that decide.
    """

    dtype: str
    corners: list[tuple[float, float]]


WORKER = "opera.run.worker:"
"""How the frame begins that calls a compiler."""


class Seen(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one execution showed, before any rule was applied to it. `opera.run.judge` concludes from it.

    Attributes:
        raised: The exception, then what caused it, and so on; empty where none was raised.
        blame: Where the traceback leads: see opera.run.culprit.
        frames: The last frames of the traceback, `module:function:line`.
        identical: Whether the outputs are bit for bit the expected ones; None where there are none to be compared.
        margins: Of outputs that agree and are not identical.
        hooks: Function of the adapter that failed (`conversion_function`) → how.
    """

    raised: tuple[Raised, ...] = ()
    blame: str = ""
    frames: tuple[str, ...] = ()
    identical: bool | None = None
    margins: tuple[Margin, ...] = ()
    hooks: dict[str, str] = {}

    @property
    def whole(self) -> bool:
        """Whether all frames below opera's are there, for one of its own that calls a compiler is."""
        return any(x.startswith(WORKER) for x in self.frames)


class Outcome(msgspec.Struct, frozen=True):
    """What one execution showed.

    Attributes:
        verdict: pass, unsupported, crash, inconsistent, unstable or error from the worker; abort, timeout, out-of-memory
            from the pool.
        stage: load, compile or infer: where it ended (empty for pass); oracle, where a process died while opera compared.
        symptom: exception type, signal name, or one of count, shape, dtype, nan-mask, value, unstable.
        message: the exception's text or what differs, at most 4,000 characters.
        location: last line of the compiler's own code in the traceback (`onnx_frontend.py:_impl_v13`), if any.
        conversion_function: see Compiler.conversion_function.
        seconds: stage → seconds inside the compiler.
        details: numbers of the comparison and the screens, `tags`, `predecessors`, ...: strings, numbers, lists of strings.
        seen: what the verdict was concluded from; None where the process died, or opera failed, and where it was not read.
    """

    verdict: str
    stage: str = ""
    symptom: str = ""
    message: str = ""
    location: str = ""
    conversion_function: str = ""
    seconds: dict[str, float] = {}
    details: dict[str, Any] = {}
    seen: Seen | None = None

    @property
    def converter(self) -> str:
        """The name of the conversion function, without the line below it."""
        return self.conversion_function.partition("@")[0]

    @property
    def line(self) -> str:
        """The line of the compiler's sources below the conversion function (`pool.cpp:35`), where it is known."""
        return self.conversion_function.partition("@")[2]


def newer(outcome: Outcome) -> bool:
    """Whether a failure is one of a test that needs newer operators than the compiler knows."""
    return NEWER in outcome.details.get("tags", ())
