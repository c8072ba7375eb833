"""What the terminal says of an extraction from specifications."""

from __future__ import annotations

from collections.abc import Sequence

from opera.sources import DONE, Totals, UnitReport, telling
from opera.sources.sionnx import answers
from opera.sources.sionnx.driver import DISPUTED, OTHERS, REPEATED, SPECIFICATION, UNASKED, Result
from opera.sources.sionnx.files import Unread

GOAL = 0.9
"""Share of the cases which the specification lets through that the checker and the references are to accept."""
LET_THROUGH = (answers.ACCEPTED, answers.CHECKER, answers.REFERENCE)


class Summary:
    """Sums up specifications as they are done; `each`: with a line for each of them."""

    def __init__(self, unread: Sequence[Unread], each: bool) -> None:
        self.unread, self.each = unread, each
        self.total = Result()
        self.operators: set[str] = set()
        self.lines: list[str] = []
        self.low: list[tuple[float, str]] = []
        self.empty: list[str] = []
        self.deaths: list[str] = []
        self.trouble: list[str] = []

    def add(self, title: str, operator: str, result: Result, deaths: Sequence[str], report: UnitReport) -> None:
        """Take in one version of an operator."""
        self.total.join(result)
        accepted, let_through = result.count(answers.ACCEPTED), result.count(*LET_THROUGH)
        why = _reasons(result)
        if accepted:
            self.operators.add(operator)
        elif report.status == DONE:
            self.empty.append(f"{title}: {why or 'the specification admits no case'}")
        if let_through and accepted < GOAL * let_through:
            self.low.append((accepted / let_through, f"{title}: {_share(accepted, let_through)}; {why}"))
        self.lines.append(f"{title}: {_counts(result)}" + (f"; {why}" if why else ""))
        self.deaths += [f"{title}: {x}" for x in deaths]
        if report.status != DONE:
            self.trouble.append(telling.in_trouble(report, title))

    def show(self, totals: Totals) -> None:
        """Print the summary."""
        total, accepted = self.total, self.total.count(answers.ACCEPTED)
        let_through = total.count(*LET_THROUGH)
        made = total.count(*LET_THROUGH, answers.UNANSWERED, REPEATED)
        print(
            f"{totals.units} specifications, {made} cases ({total.count(REPEATED)} made twice), {accepted} accepted"
            f" ({_share(accepted, let_through)} of what the specifications let through); {totals.new} new instances of"
            f" {len(self.operators)} operators, {totals.seconds:.0f} s"
        )
        print(
            f"rejected: {total.count(SPECIFICATION)} drafts by the specification itself, {total.count(answers.CHECKER)} by"
            f" ONNX's checker, {total.count(answers.REFERENCE)} by the references; {total.count(answers.UNANSWERED)} that no"
            " reference can run"
        )
        print(
            f"{total.count(DISPUTED)} tests whose references disagree; {total.count(OTHERS)} whose outputs the evaluator"
            f" could not compute ({total.count(UNASKED)} cases for which it was not asked, being slow)"
        )
        seconds = total.seconds
        if made and seconds.get("generating"):
            print(
                f"a second of CPU: {made / seconds['generating']:.0f} cases generated,"
                f" {made / sum(seconds.values()):.0f} generated, checked, run by the references and recorded"
            )
        if self.each:
            for line in self.lines:
                print(f"  {line[:240]}")
        telling.show_left_out(totals.left_out)
        telling.show_list("of which not one case is a test", self.empty)
        telling.show_list(f"of which less than {GOAL:.0%} are accepted", [line for _, line in sorted(self.low)])
        telling.show_list("that could not be read", [f"{x.file}: {x.reason}" for x in self.unread])
        telling.show_list("that did not run to their end", self.trouble)
        telling.show_list("cases that ended the process of a reference", self.deaths)


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "none"


def _counts(result: Result) -> str:
    names = (
        answers.ACCEPTED,
        DISPUTED,
        SPECIFICATION,
        answers.CHECKER,
        answers.REFERENCE,
        answers.UNANSWERED,
        REPEATED,
    )
    return ", ".join(f"{result.counts[x]} {x}" for x in names if result.counts.get(x))


def _reasons(result: Result) -> str:
    """Return the most frequent reason why a case is no test."""
    found = [
        (count, f"{name}: {' '.join(why.split())}")
        for name, table in result.reasons.items()
        if name != SPECIFICATION or not result.count(*LET_THROUGH)
        for why, count in table.items()
    ]
    return max(found)[1][:160] if found else ""
