"""Which findings a user wants to see: by frontend, operator and status."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from opera.errors import UsageError, near
from opera.programs.program import matches
from opera.programs.verdicts import FAILURES
from opera.triage.findings import Finding
from opera.triage.known import STATUSES

NEW, KNOWN, CONFIRMED, UNCONFIRMED = "new", "known", "confirmed", "unconfirmed"
READY, DOUBTFUL = "ready", "doubtful"


class Wanted(msgspec.Struct, frozen=True):
    """What is asked for; all of `statuses` must hold of a finding (`statuses` below says which it has)."""

    frontend: str = ""
    operator: str = "*"
    statuses: tuple[str, ...] = ()


def statuses(finding: Finding) -> set[str]:
    """Return the words that hold of a finding: whether a fresh process confirmed it, whether it is known, whether it is ready
    to be filed or there are doubts, verdict, tags.

    Of one that the file of known issues has, its status there too (`by-design`): `confirmed` is what opera itself saw.
    """
    words = {
        CONFIRMED if finding.confirmed else UNCONFIRMED,
        NEW if finding.new else KNOWN,
        DOUBTFUL if finding.doubts else READY,
        finding.verdict,
        *finding.tags,
    }
    return words | ({finding.known.status} - {CONFIRMED} if finding.known is not None else set())


def choose(found: Sequence[Finding], wanted: Wanted, frontends: Iterable[str]) -> list[Finding]:
    """Return those that are wanted, in their order. Raises UsageError for what nothing could be.

    `frontends` are those that were run: one of them may have no finding.
    """
    known = sorted(set(frontends) | {x.frontend for x in found})
    if wanted.frontend and wanted.frontend not in known:
        raise UsageError(
            f"nothing was run on a frontend called {wanted.frontend!r}",
            cause=near(wanted.frontend, known),
            fix=f"choose from {', '.join(known)}" if known else "run `opera run` first",
        )
    words = {NEW, KNOWN, UNCONFIRMED, READY, DOUBTFUL, *STATUSES, *FAILURES}.union(*map(statuses, found))
    for word in wanted.statuses:
        if word not in words:
            raise UsageError(
                f"no finding has the status {word!r}",
                cause=near(word, words),
                fix=f"choose from {', '.join(sorted(words))}",
            )
    return [
        x
        for x in found
        if wanted.frontend in ("", x.frontend)
        and (wanted.operator == "*" or any(matches(name, wanted.operator) for name in x.operators))
        and statuses(x).issuperset(wanted.statuses)
    ]
