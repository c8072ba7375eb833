"""What the terminal says of an extraction from constraints."""

from __future__ import annotations

from collections.abc import Sequence

from opera.sources import DONE, Totals, UnitReport, telling
from opera.sources.docter.driver import Result
from opera.sources.docter.files import Unread
from opera.store.rows import Crash


class Summary:
    """Sums up APIs as they are done."""

    def __init__(self, violating: bool, unread: Sequence[Unread]) -> None:
        self.violating, self.unread = violating, unread
        self.inputs = self.taken = self.repeated = 0
        self.seconds = 0.0
        self.operators: set[str] = set()
        self.dead: dict[str, str] = {}
        self.unsatisfied: dict[str, str] = {}
        self.crashes: list[str] = []
        self.trouble: list[str] = []

    def add(self, file: str, result: Result, crashes: Sequence[Crash], report: UnitReport) -> None:
        """Take in one API."""
        inputs = result.taken + result.refused + len(crashes)
        self.inputs += inputs
        self.taken += result.taken
        self.repeated += result.repeated
        self.seconds += result.seconds
        if result.dead:
            self.dead[file] = result.dead
        elif not inputs:
            reason = next(iter(result.unsatisfied), "no input could be made")
            self.unsatisfied[file] = reason if report.status == DONE else report.reason
        if result.taken and not self.violating:
            self.operators.add(result.operator)
        self.crashes += [
            f"{x.operator}: {x.how}" + (f" (violates {x.violates})" if x.violates else "") for x in crashes
        ]
        if report.status != DONE:
            self.trouble.append(telling.in_trouble(report, file))

    def show(self, totals: Totals) -> None:
        """Print the summary."""
        share = f" ({100 * self.taken / self.inputs:.0f} %)" if self.inputs else ""
        print(
            f"{totals.units} APIs, {self.inputs} inputs, {self.taken} accepted by the library{share}, {self.repeated} made"
            f" twice; {totals.new} new instances of {len(self.operators)} operators, {totals.seconds:.0f} s"
        )
        if self.seconds:
            print(f"generated {(self.inputs + self.repeated) / self.seconds:.0f} inputs a second of generation")
        telling.show_left_out(totals.left_out)
        telling.show_list(
            "that opera cannot call, because they are gone or are no operators",
            [f"{name}: {why}" for name, why in self.dead.items()],
        )
        telling.show_list(
            "whose constraints cannot be satisfied", [f"{name}: {why}" for name, why in self.unsatisfied.items()]
        )
        telling.show_list("that could not be read", [f"{x.file}: {x.reason}" for x in self.unread])
        telling.show_list("that did not run to their end", self.trouble)
        telling.show_list("crashes of the library itself", self.crashes)
