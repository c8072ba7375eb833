"""Which member of a finding its script, its page and its sentence are about: one choice for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from opera.programs import migrated
from opera.store.rows import Verdict
from opera.store.workspace import Workspace
from opera.triage import reduction
from opera.triage.reduction import Reduction


class Choice(NamedTuple):
    """What shows a finding: the verdict on a member, or on the smallest program that a member was reduced to.

    `reduction` is that of the program, None where the member itself is shown; `member` is the member.
    """

    verdict: Verdict
    member: Verdict
    reduction: Reduction | None = None

    @property
    def deciding(self) -> tuple[str, ...]:
        """What decides, as far as a reduction told: parameters, and what else."""
        return (*self.reduction.deciding, *self.reduction.besides) if self.reduction else ()


def choose(
    workspace: Workspace, verdicts: list[Verdict], known: Mapping[str, list[Reduction]] | None = None
) -> Choice | None:
    """Return what shows a finding best: the smallest program that a member was reduced to, of equal ones one of which is known
    what decides; else the first of its `candidates`.

    None where no member fails on its own (a state-dependent finding needs its predecessors, which `opera show` lists), or
    the folders of its tests were deleted. `known` is reduction.by_member, of who asks for many findings.
    """
    names = dict.fromkeys(x.test for x in verdicts)
    found = reduction.by_member(workspace, names) if known is None else known
    members = {(x.test, x.environment, x.variant): x for x in verdicts}
    reduced = [
        x
        for name in names
        for x in found.get(name, ())
        if (x.test, x.environment, x.variant) in members and migrated.folder(workspace.tests_folder, x.stored).is_dir()
    ]
    if reduced:
        best = min(reduced, key=lambda x: (x.elements, not (x.deciding or x.besides), x.stored))
        member = members[best.test, best.environment, best.variant]
        return Choice(msgspec.structs.replace(member, test=best.stored, outcome=best.outcome), member, best)
    return next((Choice(x, x) for x in candidates(workspace, verdicts)), None)


def candidates(workspace: Workspace, verdicts: list[Verdict]) -> list[Verdict]:
    """Return the members that fail alone and whose tests are there, confirmed ones where there are such, the smallest first."""
    alone = [x for x in verdicts if "state-dependent" not in x.outcome.details.get("tags", ())]
    alone = [x for x in alone if "victim" not in x.outcome.details]
    made = _made(workspace, (x for x in alone if x.confirmation == "confirmed")) or _made(workspace, alone)
    return sorted(made, key=lambda x: (_size(workspace, x.test), x.test))


def _made(workspace: Workspace, verdicts: Iterable[Verdict]) -> list[Verdict]:
    return [x for x in verdicts if migrated.folder(workspace.tests_folder, x.test).is_dir()]


def _size(workspace: Workspace, test: str) -> int:
    return sum(path.stat().st_size for path in migrated.folder(workspace.tests_folder, test).iterdir())
