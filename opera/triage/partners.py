"""Verified relations as an oracle: operators that agree in the library, and what became of both after compilation.

An invocation that DeepREL's relations carried over (`opera extract --source deeprel`) and the one that it came from give the
same values in the library: opera computed both before it stored the second. So where one passes on a frontend and the other
fails, the compiler makes a difference that the library does not make.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from opera.programs.verdicts import FAILURES, PASS
from opera.store import relations, verdicts
from opera.store.workspace import COMBINED, Workspace

PASSES, FAILS = "partner-passes", "partner-fails"
"""Tags of a finding: on the same input, an operator that agrees in the library passes, or fails too, on the same frontend."""
Told = Mapping[tuple[str, str, str], frozenset[str]]
"""(frontend, environment, test) → tags."""


def tags(workspace: Workspace) -> Told:
    """Return what partners tell of the tests of a workspace that failed."""
    agreeing = _agreeing(workspace)
    if not agreeing:
        return {}
    told_of = _verdicts(workspace)
    found: dict[tuple[str, str, str], frozenset[str]] = {}
    for (frontend, environment, instance), (test, verdict) in told_of.items():
        if verdict in FAILURES:
            others = {told_of.get((frontend, environment, x), ("", ""))[1] for x in agreeing.get(instance, ())}
            told = {PASSES} if PASS in others else set()
            found[frontend, environment, test] = frozenset(told | ({FAILS} if others & set(FAILURES) else set()))
    return found


def _agreeing(workspace: Workspace) -> dict[str, set[str]]:
    """Return instance → those of other operators with the same values in the library."""
    found: dict[str, set[str]] = defaultdict(set)
    for one, other in relations.agreeing(workspace):
        found[one].add(other)
        found[other].add(one)
    return found


def _verdicts(workspace: Workspace) -> dict[tuple[str, str, str], tuple[str, str]]:
    """Return (frontend, environment, instance) → (test, its verdict over all variants)."""
    order = {name: place for place, name in enumerate(COMBINED)}
    found: dict[tuple[str, str, str], tuple[str, str]] = {}
    for frontend, environment, instance, test, verdict in verdicts.of_instances(workspace):
        known = found.get((frontend, environment, instance))
        if known is None or order.get(verdict, 99) < order.get(known[1], 99):
            found[frontend, environment, instance] = (test, verdict)
    return found
