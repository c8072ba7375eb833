"""Which part of a compiler is wrong: the conversion, an optimisation, a kernel, the exporter, or the library itself."""

from __future__ import annotations

import msgspec

from opera.store import examined
from opera.store.workspace import Workspace

CONVERSION, OPTIMISATION, KERNEL = "conversion", "optimisation", "kernel"
EXPORTER, LIBRARY, UNKNOWN = "exporter", "library", "unknown"


class Evidence(msgspec.Struct, frozen=True):
    """One thing that was tried: `way` in words (`graph optimisations off`), and what came of it (`passes`)."""

    way: str
    shows: str
    remark: str = ""


class Blame(msgspec.Struct, frozen=True):
    """Which part is wrong, and what says so.

    Attributes:
        verdict: CONVERSION, OPTIMISATION, KERNEL, EXPORTER, LIBRARY or UNKNOWN.
        because: One sentence.
        test: The member, or the stored test of its reduction, that was asked about.
    """

    finding: str
    environment: str
    test: str
    verdict: str
    because: str
    evidence: tuple[Evidence, ...] = ()
    seconds: float = 0.0


def save(workspace: Workspace, found: Blame) -> None:
    """Store a verdict, in place of an earlier one of the same test."""
    examined.forget(workspace, examined.BLAME, found.finding, found.environment)
    document = msgspec.json.encode(found)
    examined.save(workspace, examined.BLAME, examined.Examined(found.finding, found.environment, found.test, document))


def stored(workspace: Workspace, finding: str = "") -> list[Blame]:
    """Return what is stored of a finding, of all findings where none is given."""
    return [msgspec.json.decode(x.document, type=Blame) for x in examined.documents(workspace, examined.BLAME, finding)]
