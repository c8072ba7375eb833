"""What the terminal says of an extraction from constraints."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Sequence

from opera.sources.docter.driver import Result
from opera.sources.docter.files import Unread
from opera.sources.suites.extract import LINE_SECONDS, SHOWN, left_out_line
from opera.sources.suites.suites import FileReport
from opera.store.workspace import Crash


class Totals:
    """Sums up APIs as they are done, and says so now and then on standard error."""

    def __init__(self, violating: bool, unread: Sequence[Unread]) -> None:
        self.violating, self.unread = violating, unread
        self.apis = self.inputs = self.taken = self.new = self.repeated = 0
        self.seconds = 0.0
        self.operators: set[str] = set()
        self.dead: dict[str, str] = {}
        self.unsatisfied: dict[str, str] = {}
        self.crashes: list[str] = []
        self.trouble: list[str] = []
        self.left_out: Counter[str] = Counter()
        self._last = time.monotonic()

    def add(self, file: str, result: Result, crashes: Sequence[Crash], report: FileReport, new: int) -> None:
        """Take in one API."""
        self.apis += 1
        self.inputs += result.taken + result.refused + len(crashes)
        self.taken += result.taken
        self.repeated += result.repeated
        self.seconds += result.seconds
        self.new += new
        self.left_out.update(report.left_out)
        if result.dead:
            self.dead[file] = result.dead
        elif not result.taken + result.refused + len(crashes):
            reason = next(iter(result.unsatisfied), "no input could be made")
            self.unsatisfied[file] = reason if report.status == "done" else report.reason
        if result.taken and not self.violating:
            self.operators.add(result.operator)
        self.crashes += [
            f"{x.operator}: {x.how}" + (f" (violates {x.violates})" if x.violates else "") for x in crashes
        ]
        if report.status != "done":
            self.trouble.append(f"{file}: {report.status}: {' '.join(report.reason.split())[:160]}")
        if time.monotonic() - self._last >= LINE_SECONDS:
            self._last = time.monotonic()
            print(f"{self.apis} APIs, {self.inputs} inputs, {self.new} instances; {file}", file=sys.stderr, flush=True)

    def show(self, seconds: float) -> None:
        """Print the summary."""
        share = f" ({100 * self.taken / self.inputs:.0f} %)" if self.inputs else ""
        print(
            f"{self.apis} APIs, {self.inputs} inputs, {self.taken} accepted by the library{share}, {self.repeated} made twice;"
            f" {self.new} new instances of {len(self.operators)} operators, {seconds:.0f} s"
        )
        if self.seconds:
            print(f"generated {(self.inputs + self.repeated) / self.seconds:.0f} inputs a second of generation")
        if self.left_out:
            print(left_out_line(self.left_out))
        self._list(
            "that opera cannot call, because they are gone or are no operators",
            [f"{name}: {why}" for name, why in self.dead.items()],
        )
        self._list(
            "whose constraints cannot be satisfied", [f"{name}: {why}" for name, why in self.unsatisfied.items()]
        )
        self._list("that could not be read", [f"{x.file}: {x.reason}" for x in self.unread])
        self._list("that did not run to their end", self.trouble)
        self._list("crashes of the library itself", self.crashes)

    def _list(self, what: str, lines: Sequence[str]) -> None:
        if lines:
            print(f"{len(lines)} {what}:")
            for line in lines[:SHOWN]:
                print(f"  {line[:200]}")
            if len(lines) > SHOWN:
                print(f"  and {len(lines) - SHOWN} more")
