"""Whether what is known is still so: `opera known check`. What is gone, or looks otherwise, is told as what is new."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from fnmatch import fnmatchcase

import msgspec

from opera.programs.program import operators_of
from opera.programs.verdicts import ERROR, FAILURES, FLAKY, INVALID, PASS, SCREENED, TIMEOUT, UNEXPORTED, UNSUPPORTED
from opera.store import tests, verdicts
from opera.store.rows import Verdict
from opera.store.workspace import Workspace
from opera.triage.findings import Finding
from opera.triage.known import Entry, Known, alike, regressed, signature

HERE, GONE, CHANGED, REGRESSION, STAYS_FIXED, NOT_RUN = "here", "fixed?", "changed", "regression", "fixed", "not run"
TELLING = (REGRESSION, CHANGED, GONE)
"""What a file that is right says of no entry, worst first."""
SILENT = (ERROR, FLAKY, INVALID, UNEXPORTED)
"""Verdicts that say nothing of whether the compiler still fails so."""
WORST = (*FAILURES, SCREENED, UNSUPPORTED, PASS)


class State(msgspec.Struct, frozen=True):
    """What became of a known issue on a frontend in an environment.

    Attributes:
        state: One of HERE, ... above.
        told: What its tests show now, where that is something else.
    """

    entry: Entry
    frontend: str
    compiler_version: str
    state: str
    told: str = ""


def check(
    workspace: Workspace,
    known: Known,
    found: Sequence[Finding],
    frontend: str = "",
    among: Collection[tuple[str, str]] | None = None,
) -> list[State]:
    """Return what became of each entry in each environment of each frontend that it is about, in the order of the file.

    Args:
        known: As `Known.within_workspace` gives it.
        found: The findings of the workspace.
        frontend: Only this one; empty for all.
        among: Frontends and environments that are asked, all of whose findings are among `found`; None for all there are.
    """
    matching: dict[tuple[str, str], list[tuple[Finding, list[Entry]]]] = defaultdict(list)
    for finding in found:
        matching[finding.frontend, finding.environment].append((finding, known.all_of(finding)))
    superseded = workspace.superseded()
    shown, ran = _shown(workspace, known), _ran(workspace, known)
    states = []
    for entry in known.entries:
        for name, document in workspace.environments().items():
            frontend_of, version = f"{document['compiler']}-{document['library']}", str(document["version"])
            if name in superseded or frontend not in ("", frontend_of) or not _about(entry, frontend_of, version):
                continue
            key = (frontend_of, name)
            if among is not None and key not in among:
                continue
            seen = [x for test in entry.tests for x in shown.get((*key, test), ())]
            state, told = _state(entry, version, seen, matching[key])
            if state == NOT_RUN and _described(entry) and any(fnmatchcase(x, entry.operator) for x in ran[key]):
                state, told = GONE, f"tests of {entry.operator} were run, and none fails so"
            states.append(State(entry, frontend_of, version, state, told))
    return states


def _about(entry: Entry, frontend: str, version: str) -> bool:
    """Whether an entry says something of a frontend: of one that names none, its signature does."""
    of_signature = entry.signature.partition(" ")[0] or "*"
    return entry.covers(frontend, version) and (bool(entry.frontend) or fnmatchcase(frontend, of_signature))


def _shown(workspace: Workspace, known: Known) -> dict[tuple[str, str, str], list[Verdict]]:
    """Return (frontend, environment, instance) → verdicts that say something, of the instances that entries name."""
    wanted = {test for x in known.entries for test in x.tests}
    of = {test: instance for test, instance in tests.instances(workspace).items() if instance in wanted}
    found: dict[tuple[str, str, str], list[Verdict]] = defaultdict(list)
    for x in verdicts.of_tests(workspace, of):
        silent = x.outcome.verdict in SILENT or (x.outcome.verdict == TIMEOUT and x.confirmation != "confirmed")
        if not silent:
            found[x.frontend, x.environment, of[x.test]].append(x)
    return found


def _described(entry: Entry) -> bool:
    """Whether an entry says which operator fails, and no finding: then the tests of that operator are its tests."""
    return not entry.findings and bool(entry.operator)


def _ran(workspace: Workspace, known: Known) -> dict[tuple[str, str], set[str]]:
    """Return (frontend, environment) → operators of which tests were run there, where an entry asks for it."""
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    if any(_described(x) for x in known.entries):
        operators = tests.operators(workspace)
        for x in verdicts.shown(workspace):
            if x.verdict not in SILENT:
                found[x.frontend, x.environment].update(operators_of(operators.get(x.test, "?")))
    return found


def _state(
    entry: Entry, version: str, seen: Sequence[Verdict], matching: Sequence[tuple[Finding, list[Entry]]]
) -> tuple[str, str]:
    fixed = regressed(entry, version)
    here = [finding for finding, entries in matching if entry in entries]
    if here:
        return (REGRESSION, f"{here[0].id} fails again") if fixed else (HERE, "")
    if not seen:
        return NOT_RUN, ""
    tests_now = {x.test for x in seen if x.finding}
    others = [(finding, entries) for finding, entries in matching if tests_now & set(finding.members)]
    told = ", ".join(f"{x.id} ({x.verdict} in {x.stage}: {x.symptom})" for x, _ in others[:3])
    if any(entries and alike(entry.signature, signature(x)) for x, entries in others):
        return HERE, f"now a part of {told}"  # of one cause with another known issue, as far as reductions tell
    if fixed:
        return STAYS_FIXED, ""
    if others:
        return CHANGED, f"its tests now fail as {told}"
    now = next((word for word in WORST if any(x.outcome.verdict == word for x in seen)), PASS)
    if now != PASS:
        return CHANGED, f"its tests are now {now}"
    ran = len({x.test for x in seen})
    return GONE, f"{ran} of its tests were run, and pass"


def wrong(states: Sequence[State]) -> Iterator[State]:
    """Yield the states that a file which is right has none of, worst first."""
    return (x for kind in TELLING for x in states if x.state == kind)
