"""References that disagree: generated programs for which two of them computed different outputs: one of them is wrong."""

from __future__ import annotations

import msgspec

from opera.store import disagreements
from opera.store.rows import Disagreement
from opera.store.workspace import Workspace

MOST = 20
"""Instances of a disagreement that are listed; `count` is of all."""


class Disagreeing(msgspec.Struct, frozen=True):
    """Programs of one operator for which two references computed different outputs in the same way.

    Attributes:
        operator: The operator.
        taken, other: The reference whose outputs the tests expect, and the one that computes something else.
        symptom: How they differ (opera.oracle.comparison).
        count: How many programs; `instances` are the ids of the first of them.
        test: What the first of them is called.
        message: How they differ there; what `other` computes is what was `got`.
    """

    operator: str
    taken: str
    other: str
    symptom: str
    count: int
    instances: tuple[str, ...]
    test: str
    message: str

    @property
    def where(self) -> str:
        """The operator, and the first program's name."""
        return f"{self.operator}, {self.test}"

    @property
    def what(self) -> str:
        """Who disagrees, and on how many programs."""
        programs = "1 program" if self.count == 1 else f"{self.count} programs"
        return f"{self.taken} and {self.other} disagree on {programs}"

    @property
    def reason(self) -> str:
        """How, on the first of them."""
        return f"{self.symptom}: {self.message}"


def disagreeing(workspace: Workspace) -> list[Disagreeing]:
    """Return the disagreements that extractions found, by operator, those of most programs first."""
    found: dict[tuple[str, str, str, str], dict[str, Disagreement]] = {}
    for x in disagreements.all_of(workspace):
        found.setdefault((x.operator, x.taken, x.other, x.symptom), {}).setdefault(x.instance, x)
    listed = []
    for (operator, taken, other, symptom), programs in found.items():
        first = next(iter(programs.values()))
        names = tuple(programs)[:MOST]
        listed.append(Disagreeing(operator, taken, other, symptom, len(programs), names, first.test, first.message))
    return sorted(listed, key=lambda x: (x.operator, -x.count, x.taken, x.other, x.symptom))
