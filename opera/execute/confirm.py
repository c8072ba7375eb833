"""Which failures are confirmed in a fresh process (DESIGN: every one that is no exception, and a finding's first three)."""

from __future__ import annotations

from collections import Counter

from opera.execute.plan import Frontend
from opera.execute.records import ABORT, OUT_OF_MEMORY, TIMEOUT
from opera.workspace import Verdict, Workspace

MEMBERS = 3
"""So many members of each finding are confirmed; later ones are stored as unconfirmed."""


class Confirmations:
    """Decides for each failing verdict; counts the members that each finding already has."""

    def __init__(self, workspace: Workspace, frontends: list[Frontend]) -> None:
        self._environments = {x.environment for x in frontends}
        self._workspace = workspace
        rows = workspace.query(
            "SELECT finding, environment, COUNT(*) FROM verdicts WHERE finding != '' GROUP BY finding, environment"
        )
        self._members = Counter({(row[0], row[1]): row[2] for row in rows})

    def wanted(self, verdict: Verdict) -> str:
        """Return `pending` where the failing verdict is to be confirmed, else `unconfirmed`; counts it as a member."""
        key = (verdict.finding, verdict.environment)
        self._members[key] += 1
        always = verdict.verdict in (ABORT, TIMEOUT, OUT_OF_MEMORY)
        return "pending" if always or self._members[key] <= MEMBERS else "unconfirmed"

    def left_over(self) -> list[Verdict]:
        """Return the verdicts that an interrupted run left pending in these environments."""
        found = self._workspace.verdicts("confirmation = 'pending'")
        return [verdict for verdict in found if verdict.environment in self._environments]
