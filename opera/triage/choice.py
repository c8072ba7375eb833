"""Which member of a finding its script, its page and its sentence are about: one choice for all of them."""

from __future__ import annotations

import msgspec

from opera.programs import migrated
from opera.store.rows import Verdict
from opera.store.workspace import Workspace
from opera.triage import reduction


def choose(workspace: Workspace, verdicts: list[Verdict]) -> Verdict | None:
    """Return what shows a finding best: the program that a member was reduced to, else the first of its `candidates`.

    None where no member fails on its own (a state-dependent finding needs its predecessors, which `opera show` lists), or
    the folders of its tests were deleted.
    """
    return _reduced(workspace, verdicts) or next(iter(candidates(workspace, verdicts)), None)


def candidates(workspace: Workspace, verdicts: list[Verdict]) -> list[Verdict]:
    """Return the members that fail alone and whose tests are there, confirmed ones where there are such, the smallest first."""
    alone = [x for x in verdicts if "state-dependent" not in x.outcome.details.get("tags", ())]
    alone = [x for x in alone if "victim" not in x.outcome.details]
    alone = [x for x in alone if migrated.folder(workspace.tests_folder, x.test).is_dir()]
    confirmed = [x for x in alone if x.confirmation == "confirmed"] or alone
    return sorted(confirmed, key=lambda x: (_size(workspace, x.test), x.test))


def _reduced(workspace: Workspace, verdicts: list[Verdict]) -> Verdict | None:
    """Return the verdict on the smallest program that a member was reduced to, None where there is none."""
    members = {(x.test, x.environment, x.variant): x for x in verdicts}
    found = [
        (x.elements, x.stored, msgspec.structs.replace(members[key], test=x.stored, outcome=x.outcome))
        for finding in {x.finding for x in verdicts}
        for x in reduction.stored(workspace, finding)
        if (key := (x.test, x.environment, x.variant)) in members
        and migrated.folder(workspace.tests_folder, x.stored).is_dir()
    ]
    return min(found, key=lambda x: x[:2])[2] if found else None


def _size(workspace: Workspace, test: str) -> int:
    return sum(path.stat().st_size for path in migrated.folder(workspace.tests_folder, test).iterdir())
