"""Since when, and until when, a finding fails: what `opera bisect` learned, stored beside the finding."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from opera.store import examined
from opera.store.workspace import Workspace


class Asked(msgspec.Struct, frozen=True):
    """What a release showed: `told` is FAILS, GOOD or UNTOLD of opera.triage.versions.bisect, `says` it in a few words."""

    version: str
    told: str
    says: str


class Since(msgspec.Struct, frozen=True):
    """Since when and until when a finding fails, as far as releases told.

    Attributes:
        environment, frontend, seen_in: Where it was found, and in which version.
        test: What was asked: the stored test of its reduction, or a member.
        first_bad: The first release that fails; empty where no older one could tell.
        last_good: The newest before it that does not, and `good` what that showed; empty where the oldest fails already.
        between: Releases between these two that could not tell: it may be one of them.
        fixed_in: The first newer release that does not fail; empty where none was asked, or all fail.
        last_bad: The newest release that is known to fail.
        asked: Every release that was asked, the oldest first.
    """

    finding: str
    environment: str
    frontend: str
    seen_in: str
    test: str
    first_bad: str = ""
    last_good: str = ""
    good: str = ""
    between: tuple[str, ...] = ()
    fixed_in: str = ""
    last_bad: str = ""
    asked: tuple[Asked, ...] = ()

    @property
    def sentence(self) -> str:
        """Say it: `since 2026.2.0 (2026.0.0 passes)`; empty where nothing was learned."""
        told = []
        if self.first_bad and self.last_good:
            told.append(f"since {self.first_bad} ({self.last_good}: {self.good})")
            if self.between:
                told.append(f"or since {' or '.join(self.between)}, which cannot tell")
        elif self.first_bad:
            told.append(f"in {self.first_bad} already, the oldest that can tell")
        if self.fixed_in:
            told.append(f"gone in {self.fixed_in} (still in {self.last_bad})")
        elif self.last_bad not in ("", self.seen_in):
            told.append(f"still in {self.last_bad}")
        return ", ".join(told)


def save(workspace: Workspace, found: Since, member: str) -> None:
    """Store what was learned of a finding by asking about a member, in place of what was known."""
    document = msgspec.json.encode(found)
    examined.save(workspace, examined.SINCE, examined.Examined(found.finding, found.environment, member, document))


def stored(workspace: Workspace, names: Iterable[str]) -> list[Since]:
    """Return what is known of a finding, by all the ids that it has or had; of the newest version last."""
    wanted = set(names)
    found = [
        msgspec.json.decode(x.document, type=Since)
        for x in examined.documents(workspace, examined.SINCE)
        if x.finding in wanted
    ]
    return sorted(found, key=lambda x: x.seen_in)
