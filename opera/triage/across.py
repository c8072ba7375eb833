"""What findings of several frontends have in common: where compilers agree against a test, look at the library or the test."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from itertools import combinations

import msgspec

from opera.oracle import location
from opera.oracle.signature import normalise
from opera.programs.verdicts import INCONSISTENT, Outcome
from opera.store import verdicts
from opera.store.workspace import Workspace
from opera.triage.distinct import causes, uniting
from opera.triage.distinct.causes import Causes
from opera.triage.findings import Finding

SHARE = 0.5
"""Findings are one cause where they give the same answer to at least this share of the smaller one's tests."""


class Cause(msgspec.Struct, frozen=True):
    """What findings of several frontends have in common.

    Attributes:
        id: Of the finding that has most members.
        sentence: What that finding says.
    """

    id: str
    frontends: tuple[str, ...]
    findings: tuple[str, ...]
    operator: str
    sentence: str


def across(workspace: Workspace, found: Sequence[Finding]) -> list[Cause]:
    """Return the causes that findings of several frontends share, most frontends first.

    Two findings share one where a reduction is the same program with the same wrong answer, or where they gave the same wrong
    answer to the same tests.
    """
    told, known = causes.causes(workspace), {(x.id, x.environment) for x in found}
    reduced: dict[str, set[Hashable]] = defaultdict(set)
    for signature, x in causes.reduced(workspace):
        name, same = told.of(signature, x.test), answer(x.outcome)
        if same and (name, x.environment) in known:
            reduced[name].add((uniting.outline(x.program().program), same))
    by_id: dict[str, list[Finding]] = defaultdict(list)
    for finding in found:
        by_id[finding.id].append(finding)
    sizes = {name: len({test for x in of for test in x.members}) for name, of in by_id.items()}
    alike, shared = _shared(reduced), _shared(_answers(workspace, found, told))
    pairs = [
        (one, other)
        for one, other in alike | shared
        if ((one, other) in alike or shared[one, other] >= SHARE * min(sizes[one], sizes[other]))
        and by_id[one][0].frontend != by_id[other][0].frontend
    ]
    made = (_cause([x for name in group for x in by_id[name]]) for group in uniting.joined(pairs))
    return sorted((x for x in made if len(x.frontends) > 1), key=lambda x: (-len(x.frontends), x.operator, x.id))


def answer(outcome: Outcome) -> str:
    """Return the wrong answer in few words, the same where two compilers give the same but for rounding; else what is said.

    Empty where it says too little.
    """
    text = " ".join(outcome.message.split())
    if outcome.verdict != INCONSISTENT:
        message = normalise(text)
        return message if location.telling(message) else ""
    told = re.search(r"expected .*?, got [^;]*|\bshape .*|\bdtype .*|\S+ is expected, .*", text)
    return f"{outcome.symptom} {_rounded(told[0] if told else text)}"


def _rounded(text: str) -> str:
    """Return a text with three digits of each number."""
    return re.sub(r"-?\d+\.\d*(?:e[-+]?\d+)?", lambda x: f"{float(x[0]):.3g}", text)


def _shared(answers: dict[str, set[Hashable]]) -> Counter[tuple[str, str]]:
    """Return how many answers two findings share, of those that share any."""
    holders: dict[Hashable, set[str]] = defaultdict(set)
    for name, given in answers.items():
        for one in given:
            holders[one].add(name)
    return Counter(pair for names in holders.values() for pair in combinations(sorted(names), 2))


def _answers(workspace: Workspace, found: Sequence[Finding], told: Causes) -> dict[str, set[Hashable]]:
    """Return finding → (test, wrong answer)."""
    known = {(x.id, x.environment) for x in found}
    failing: dict[str, set[str]] = defaultdict(set)
    for x in found:
        for test in x.members:
            failing[test].add(x.frontend)
    answers: dict[str, set[Hashable]] = defaultdict(set)
    several = {
        test for test, frontends in failing.items() if len(frontends) > 1
    }  # to others, nobody else has an answer
    for verdict in verdicts.counted_of(workspace, several):
        name, same = told.of(verdict.finding, verdict.test), answer(verdict.outcome)
        if same and (name, verdict.environment) in known:
            answers[name].add((verdict.test, same))
    return answers


def _cause(findings: Sequence[Finding]) -> Cause:
    first = max(findings, key=lambda x: (len(x.members), x.id))
    return Cause(
        id=first.id,
        frontends=tuple(sorted({x.frontend for x in findings})),
        findings=tuple(dict.fromkeys(x.id for x in sorted(findings, key=lambda x: x.frontend))),
        operator=first.operator,
        sentence=first.sentence or first.message,
    )
