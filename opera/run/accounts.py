"""Where the time of a run went, and its efficiency."""

from __future__ import annotations

from collections import defaultdict

from opera.pool.workers import Account
from opera.run.plan import InstalledFrontend


class Accounts:
    """Seconds by frontend.

    efficiency = Σ seconds inside load, compile, infer and export of first executions / (wall seconds × workers)

    Frontends share the slots of one run. A frontend's `wall_seconds` are the slot-seconds that its first executions
    occupied, and its share (in proportion to those) of all slot-seconds in which none of the frontends was served: wrapping
    and screening, imports, idle slots; divided by the workers. Slot-seconds of confirmations stand beside it.
    """

    def __init__(self, frontends: list[InstalledFrontend], workers: float) -> None:
        self.frontends, self.workers = frontends, workers
        self.inside: dict[str, float] = defaultdict(float)
        self.slots: dict[str, float] = defaultdict(float)
        self.confirmation: dict[str, float] = defaultdict(float)
        self.tests: dict[str, set[str]] = defaultdict(set)

    def first(self, frontend: str, test: str, inside: float, occupied: float) -> None:
        """Account for a first execution."""
        self.inside[frontend] += inside
        self.slots[frontend] += occupied
        self.tests[frontend].add(test)

    def confirmed(self, frontend: str, occupied: float) -> None:
        """Account for a confirmation or a replay."""
        self.confirmation[frontend] += occupied

    def efficiency(self, wall: float) -> float:
        """Return that of the whole run after `wall` seconds, confirmations left out of both sides."""
        available = wall * self.workers - sum(self.confirmation.values())
        return sum(self.inside.values()) / available if available > 0 else 0.0

    def documents(self, wall: float, groups: dict[str, Account]) -> dict[tuple[str, str], dict[str, float]]:
        """Return (frontend, environment) → account, to be stored after `wall` seconds of the run."""
        served = sum(self.slots.values())
        rest = max(0.0, wall * self.workers - served - sum(self.confirmation.values()))
        found = {}
        for target in self.frontends:
            slots = self.slots[target.name]
            share = slots / served if served else 1 / len(self.frontends)
            found[target.name, target.environment] = {
                "seconds": self.inside[target.name],
                "slot_seconds": slots,
                "wall_seconds": (slots + share * rest) / self.workers,
                "workers": float(self.workers),
                "confirmation_seconds": self.confirmation[target.name],
                "tests": float(len(self.tests[target.name])),
                "forks": float(groups[target.name].forks),
            }
        return found
