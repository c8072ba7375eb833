"""Findings against the library's own tests: what such a test expects, and independent implementations agree to contradict."""

from __future__ import annotations

import msgspec

from opera.programs.verdicts import DISPUTED, SCREENED
from opera.store import tests, verdicts
from opera.store.workspace import Workspace


class Disputed(msgspec.Struct, frozen=True):
    """One test of a library whose expected outputs independent implementations contradict.

    Attributes:
        test: Its id.
        library, operator: What it is of.
        names: What the library calls it: the tests that state this expectation.
        compilers: Those that contradict it alike: the ones under test, and those that were asked.
        refused: Those that could not be asked, and why.
        message: How one of them contradicts the expectation.
    """

    test: str
    library: str
    operator: str
    names: tuple[str, ...]
    compilers: tuple[str, ...]
    refused: dict[str, str]
    message: str

    @property
    def where(self) -> str:
        """The operator, and the first test's name."""
        return f"{self.operator}, {self.names[0]}" if self.names else self.operator

    @property
    def what(self) -> str:
        """Who contradicts it."""
        return f"contradicted by {', '.join(self.compilers)}"

    @property
    def reason(self) -> str:
        """How, and who could not be asked."""
        refused = f" (could not be asked: {', '.join(self.refused)})" if self.refused else ""
        return f"{self.message}{refused}"


def disputed(workspace: Workspace) -> list[Disputed]:
    """Return the tests that state an expectation of their own which was disputed, by operator.

    A reference that opera computed is nobody's test, and is left out; so is a dispute by higher precision, which tells of
    rounding.
    """
    found: dict[str, Disputed] = {}
    for verdict in verdicts.of_kind(workspace, SCREENED):
        details = verdict.outcome.details
        if details.get("screen") != DISPUTED or not details.get("agrees_with_compiler"):
            continue
        known = found.get(verdict.test) or _of(workspace, verdict.test)
        if known is None:
            continue
        mine = verdict.frontend.rpartition("-")[0]
        named = (*known.compilers, mine, *str(details.get("by", "")).split(", "))
        refused = {key.removesuffix("_error"): str(x) for key, x in details.items() if key.endswith("_error")}
        found[verdict.test] = msgspec.structs.replace(
            known,
            compilers=tuple(sorted(set(named) - {""})),
            refused=known.refused | refused,
            message=known.message or verdict.outcome.message,
        )
    return sorted(found.values(), key=lambda x: (x.library, x.operator, x.names, x.test))


def _of(workspace: Workspace, test: str) -> Disputed | None:
    """Return a test that states what it expects, None for others."""
    stated = tests.stated(workspace, test)
    if stated is None:
        return None
    library, operator, instance = stated
    names = tuple(dict.fromkeys(x.test for x in workspace.provenances(instance)))
    return Disputed(test, library, operator, names, (), {}, "")
