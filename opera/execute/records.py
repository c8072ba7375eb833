"""Messages between opera and its workers, and the words for what a run showed. Needs msgspec only."""

from __future__ import annotations

import msgspec

ORACLE_VERSION = "1"
"""Changes whenever a comparison, tolerance, screen or rule of `unsupported` changes: part of a verdict's identity."""

PASS, INVALID, UNSUPPORTED, UNEXPORTED = "pass", "invalid", "unsupported", "unexported"
CRASH, ABORT, TIMEOUT, OUT_OF_MEMORY = "crash", "abort", "timeout", "out-of-memory"
INCONSISTENT, SCREENED, ERROR, FLAKY = "inconsistent", "screened", "error", "flaky"

MARK = "opera runs "
"""What a replay prints before each test, so that a death can be told to be the last test's."""

FAILURES = (ABORT, CRASH, TIMEOUT, OUT_OF_MEMORY, INCONSISTENT)
"""Verdicts that make findings, worst first."""
VERDICTS = (PASS, UNSUPPORTED, UNEXPORTED, *FAILURES, SCREENED, FLAKY, ERROR)
"""Every verdict of a test on a frontend; `invalid` is a status of the test itself."""


class Limits(msgspec.Struct, frozen=True):
    """Limits of one execution: wall seconds, and bytes of memory that a worker may grow by."""

    seconds: float = 30.0
    memory: int = 4 << 30


class Job(msgspec.Struct, frozen=True):
    """One execution: run the test in `directory` through one variant of one frontend.

    `save_outputs` is a file to write the outputs to (opera.migrated encoding) when they differ from the expected ones.
    """

    test: str
    compiler: str
    library: str
    variant: str
    artefact: str
    directory: str
    save_outputs: str = ""
    repeat: bool = True


class Outcome(msgspec.Struct, frozen=True):
    """What one execution showed.

    Attributes:
        verdict: pass, unsupported, crash, inconsistent or error from the worker; abort, timeout, out-of-memory from
            the pool.
        stage: load, compile or infer: where it ended (empty for pass).
        symptom: exception type, signal name, or one of count, shape, dtype, nan-mask, value.
        message: the exception's text or what differs, at most 4,000 characters.
        location: last line of the compiler's own code in the traceback (`onnx_frontend.py:_impl_v13`), if any.
        conversion_function: see Compiler.conversion_function.
        seconds: stage → seconds inside the compiler.
        details: numbers of the comparison, tail of the log, ...
    """

    verdict: str
    stage: str = ""
    symptom: str = ""
    message: str = ""
    location: str = ""
    conversion_function: str = ""
    seconds: dict[str, float] = {}
    details: dict[str, str | float | int | bool | list[str] | None] = {}
