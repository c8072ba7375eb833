"""Rows as the rest of opera knows them, and how a verdict becomes one and is read again."""

from __future__ import annotations

import zlib
from typing import Any

import msgspec

from opera.programs.verdicts import Outcome, Seen

WRITTEN = (
    "test", "frontend", "variant", "environment", "verdict", "stage", "symptom", "finding", "confirmation", "seconds", "run",
    "document", "rules", "seen",
)  # fmt: skip
"""Columns of `verdicts`, in the order of `columns`."""
READ = (
    "test", "frontend", "variant", "environment", "finding", "confirmation", "rules", "verdict", "stage", "symptom", "document",
    "seen",
)  # fmt: skip
"""Columns of `verdicts`, in the order that `verdict` takes."""


class Verdict(msgspec.Struct, frozen=True):
    """What one run of one migrated test through one variant of one frontend showed, as it is stored.

    Attributes:
        test, frontend, variant, environment: Identity; `environment` is the id of a row of `environments`.
        outcome: What was shown, with what the screens and a confirmation added to its details.
        finding: Id of the finding it belongs to, empty where it is no failure.
        confirmation: `pending`, `confirmed`, `unconfirmed` (a later member), or empty where none is needed.
        rules: Digests of the rules that concluded it (opera.run.rules), empty where they are not known.
    """

    test: str
    frontend: str
    variant: str
    environment: str
    outcome: Outcome
    finding: str = ""
    confirmation: str = ""
    rules: str = ""


class _Rest(msgspec.Struct, frozen=True):
    """What is stored of an outcome beside its columns, in a document."""

    message: str = ""
    location: str = ""
    conversion_function: str = ""
    seconds: dict[str, float] = {}
    details: dict[str, Any] = {}


class Test(msgspec.Struct, frozen=True):
    """A row of `tests`: the migrated test made of an instance, or why there is none."""

    id: str
    instance: str
    status: str
    reason: str = ""
    seconds: float = 0.0


class Disagreement(msgspec.Struct, frozen=True):
    """Two references that computed different outputs for a program when it was generated: one of them is wrong.

    Attributes:
        instance, operator: The program.
        test: What its source calls it, with the boundaries that it is at.
        taken, other: The reference whose outputs are expected, and the one that computes something else.
        symptom, message: How they differ (opera.oracle.comparison): what `other` computes is what was `got`.
    """

    instance: str
    operator: str
    test: str
    taken: str
    other: str
    symptom: str
    message: str


class Crash(msgspec.Struct, frozen=True):
    """A call that killed the library's process, or hung.

    Attributes:
        how: `killed by SIGFPE`, `does not end in time`.
        operator: What was called.
        values: With what: encoded arguments by name, or in words under `arguments`.
        violates: The constraint that the input breaks; empty for one that conforms.
    """

    how: str
    operator: str
    values: dict[str, object]
    violates: str = ""


class Covered(msgspec.Struct, frozen=True):
    """What a test (of an instance) covers of a frontend: file → its lines (coverage.numbits), and the seconds to tell it."""

    instance: str
    files: dict[str, bytes]
    seconds: float


def columns(verdict: Verdict, run: int) -> tuple[object, ...]:
    """Return the columns of a verdict, in the order of WRITTEN."""
    x = verdict.outcome
    rest = _Rest(x.message, x.location, x.conversion_function, x.seconds, x.details)
    return (
        verdict.test, verdict.frontend, verdict.variant, verdict.environment, x.verdict, x.stage, x.symptom,
        verdict.finding, verdict.confirmation, sum(x.seconds.values()), run, pack(msgspec.json.encode(rest)),
        verdict.rules, None if x.seen is None else pack(msgspec.json.encode(x.seen)),
    )  # fmt: skip


def verdict(row: tuple[Any, ...], *, seen: bool) -> Verdict:
    """Inverse of `columns`, of READ; without `seen`, what it was concluded from is left out."""
    test, frontend, variant, environment, finding, confirmation, rules, *shown, document, observed = row
    kind, stage, symptom = shown
    rest = msgspec.json.decode(unpack(document), type=_Rest)
    held = msgspec.json.decode(unpack(observed), type=Seen) if seen and observed is not None else None
    outcome = Outcome(
        kind, stage, symptom, rest.message, rest.location, rest.conversion_function, rest.seconds, rest.details, held
    )
    return Verdict(test, frontend, variant, environment, outcome, finding, confirmation, rules)


PACKED = (b"\x78\x01", b"\x78\x9c")
"""How a zlib stream begins (RFC 1950, section 2.2): neither JSON nor any text does."""


def pack(data: bytes) -> bytes:
    """Compress a document where that pays; neither JSON nor a name starts like a zlib stream."""
    return zlib.compress(data, 1) if len(data) > 300 else data


def unpack(data: bytes) -> bytes:
    """Inverse of `pack`."""
    return zlib.decompress(data) if data[:2] in PACKED else data
