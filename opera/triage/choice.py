"""Which member of a finding its script, its page and its sentence are about: one choice for all of them."""

from __future__ import annotations

from opera.programs import migrated
from opera.store.rows import Verdict
from opera.store.workspace import Workspace


def choose(workspace: Workspace, verdicts: list[Verdict]) -> Verdict | None:
    """Return the member that shows a finding best: confirmed alone in a fresh process, and the smallest of those.

    None where no member fails on its own (a state-dependent finding needs its predecessors, which `opera show` lists), or
    the folders of its tests were deleted.
    """
    alone = [x for x in verdicts if "state-dependent" not in x.outcome.details.get("tags", ())]
    alone = [x for x in alone if migrated.folder(workspace.tests_folder, x.test).is_dir()]
    confirmed = [x for x in alone if x.confirmation == "confirmed"] or alone
    return min(confirmed, key=lambda x: (_size(workspace, x.test), x.test), default=None)


def _size(workspace: Workspace, test: str) -> int:
    return sum(path.stat().st_size for path in migrated.folder(workspace.tests_folder, test).iterdir())
