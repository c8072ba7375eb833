"""What a check found: lines of the program, what each calls, and what that showed on each frontend."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import msgspec

from opera import compilers
from opera.programs.program import Graph
from opera.programs.verdicts import ERROR, FAILURES, FLAKY, INVALID, PASS, SCREENED, UNEXPORTED, UNSUPPORTED, Outcome
from opera.report.programs import lines
from opera.store import sites, tests, verdicts
from opera.store.sites import Seen
from opera.store.workspace import COMBINED, Workspace
from opera.triage.distinct import causes
from opera.triage.findings import findings
from opera.triage.sentence import said

BAD = (*FAILURES, UNEXPORTED, UNSUPPORTED, ERROR)
"""Verdicts of a call that a user's model cannot live with, or that opera could not judge."""
NOT_RUN = "not run"


class Call(msgspec.Struct, frozen=True):
    """An operator that a line calls, and what it showed on one frontend.

    Attributes:
        verdict: A verdict word; `invalid` where the library itself rejects it alone, `not run` where time was over.
        finding: Its id, empty where it is none.
        sentence: What is wrong.
        modules: Paths of the modules or layers that the call is in.
        instances: Ids: a line calls an operator with several parameter settings.
        call: The call as a developer would write it.
        training: Whether it was made in training mode alone.
    """

    operator: str
    frontend: str
    verdict: str
    finding: str
    sentence: str
    modules: tuple[str, ...]
    instances: tuple[str, ...]
    call: tuple[str, ...]
    training: bool = False

    @property
    def bad(self) -> bool:
        return self.verdict in BAD


class Line(msgspec.Struct, frozen=True):
    """A line of the program; `file` is empty for calls that no line is known of."""

    file: str
    line: int
    text: str
    calls: tuple[Call, ...]

    @property
    def bad(self) -> bool:
        return any(call.bad for call in self.calls)


class _Shown(msgspec.Struct, frozen=True):
    verdict: str
    finding: str = ""
    sentence: str = ""


def of(workspace: Workspace, extraction: str, environments: dict[str, str]) -> list[Line]:
    """Return the lines of a program that was recorded, in order.

    `environments`: frontend → id of the environment that it was run in.
    """
    seen = sites.of_extraction(workspace, extraction)
    shown = _shown(workspace, {x.instance for x in seen}, environments)
    grouped: dict[tuple[str, int], list[Seen]] = defaultdict(list)
    for x in seen:
        grouped[x.file, x.line].append(x)
    return [
        Line(file, line, group[0].text, tuple(_calls(workspace, group, shown, environments)))
        for (file, line), group in sorted(grouped.items())
    ]


def _calls(
    workspace: Workspace, group: list[Seen], shown: dict[tuple[str, str], _Shown], frontends: Iterable[str]
) -> Iterable[Call]:
    """Yield what a line calls, the worst first: instances of an operator that show the same are one."""
    alike: dict[tuple[str, str, _Shown], list[Seen]] = defaultdict(list)
    operators = {x.instance: workspace.instance(x.instance) for x in group}
    for x in group:
        for frontend in frontends:
            alike[operators[x.instance].operator, frontend, shown[frontend, x.instance]].append(x)
    rank = {verdict: place for place, verdict in enumerate((*COMBINED, INVALID, NOT_RUN))}
    for (operator, frontend, found), members in sorted(alike.items(), key=lambda x: (rank[x[0][2].verdict], *x[0][:2])):
        program = operators[members[0].instance]
        yield Call(
            operator, frontend, found.verdict, found.finding, found.sentence,
            tuple(dict.fromkeys(x.module for x in members if x.module)),
            tuple(dict.fromkeys(x.instance for x in members)),
            tuple(lines(program)) if not isinstance(program, Graph) else (),
            all(call.context.get("training") is True for x in members for call in operators[x.instance].instances()),
        )  # fmt: skip


def _shown(workspace: Workspace, instances: set[str], environments: dict[str, str]) -> dict[tuple[str, str], _Shown]:
    """Return (frontend, instance) → what its test showed, the worst of all variants."""
    rank = {verdict: place for place, verdict in enumerate(COMBINED)}
    called = causes.causes(workspace)
    sentences = {(x.id, x.environment): x.sentence for x in findings(workspace)}
    found: dict[tuple[str, str], _Shown] = {}
    for name in instances:
        held = tests.of_instance(workspace, name)
        status = INVALID if held and all(x.status == INVALID for x in held) else NOT_RUN
        why = held[0].reason if status == INVALID else ""
        for frontend, environment in environments.items():
            told = _Shown(status, "", why)
            stored = [
                x
                for test in held
                for x in verdicts.of_test(workspace, test.id)
                if (x.frontend, x.environment) == (frontend, environment)
            ]
            for x in sorted(stored, key=lambda x: rank[x.outcome.verdict])[:1]:
                finding = called.of(x.finding, x.test) if x.finding else ""
                sentence = sentences.get((finding, environment), "") or _why(x.outcome, frontend)
                told = _Shown(x.outcome.verdict, finding, sentence)
            found[frontend, name] = told
    return found


def _why(outcome: Outcome, frontend: str) -> str:
    if outcome.verdict in (PASS, FLAKY, SCREENED):
        return ""
    return f"{compilers.title(frontend.rpartition('-')[0])}: {said(outcome)}"
