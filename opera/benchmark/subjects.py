"""What strategies are scored on: the tests of one frontend, and which of them reveal which fault."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import msgspec

from opera import libraries
from opera.benchmark.labels import Labels, digest
from opera.errors import CorpusError, UsageError
from opera.prioritize import Lookup, knowledge, nothing_known
from opera.prioritize.documents import from_document
from opera.prioritize.subspaces import Defaults, Row
from opera.programs.program import operators_of
from opera.store import runs, tests, verdicts
from opera.store.workspace import Workspace


class Subject(msgspec.Struct, frozen=True):
    """One thing to rank and score.

    Attributes:
        name: The frontend, or the name of a labelled corpus.
        cluster: What is not independent of others of the same name: the compiler.
        rows, equipped, defaults: As strategies take them.
        faults: Granularity → fault → positions of the tests that reveal it.
        costs: Seconds of each test, empty where they are not known.
        source: Gives what informed strategies need.
        preparation: What a strategy needs → seconds that finding it out has taken.
        same: Subjects with the same key are ranked alike by strategies that need nothing more.
        corpus: Instances of which `rows` were run, the first by `chosen_by`; 0 where that is all there is to know.
        chosen_by: The strategy that the workspace holds a ranking of.
        tests, library: Ids of what `rows` are of, and its library, where it is of a workspace.
    """

    name: str
    cluster: str
    rows: Sequence[Row]
    equipped: Sequence[Row]
    defaults: Defaults
    faults: dict[str, dict[str, list[int]]]
    costs: list[float] = []
    source: Lookup = nothing_known
    preparation: dict[str, float] = {}
    same: str = ""
    corpus: int = 0
    chosen_by: str = ""
    tests: Sequence[str] = ()
    library: str = ""


def live(workspaces: Sequence[Workspace], labels: Labels) -> list[Subject]:
    """Return a subject for each frontend of frozen labels. Raises UsageError where a workspace has other tests by now."""
    corpora: dict[tuple[Path, str], dict[str, Row]] = {}
    subjects = []
    for name, frontend in labels.frontends.items():
        run = [(x, verdicts.seconds(x, frontend.frontend, frontend.environment)) for x in workspaces]
        run = [x for x in run if digest(x[1]) == frontend.tests_digest] or [max(run, key=lambda x: len(x[1]))]
        workspace, costs = run[0]
        held = workspace.root, frontend.library
        if held not in corpora:
            corpora[held] = _rows(workspace, frontend.library, "")
        corpus = corpora[held]
        if digest(costs) != frontend.tests_digest:
            raise UsageError(
                f"{name} has run other tests than when the labels were frozen ({len(costs)}, then {frontend.tests})",
                cause="a later `opera run`, or another workspace",
                fix="freeze labels anew: opera benchmark --freeze labels.json",
            )
        instance_of = tests.instances(workspace)
        place = {instance: at for at, instance in enumerate(corpus)}
        ran = sorted(costs, key=lambda test: (place.get(instance_of[test], len(place)), test))
        instances = [instance_of[test] for test in ran]
        equipped = list(_rows(workspace, frontend.library, frontend.compiler).values())
        operators = {name for instance in instances for name in operators_of(corpus[instance].operator)}
        position = {test: at for at, test in enumerate(ran)}
        faults = {
            granularity: {fault: _positions(fault, members, position) for fault, members in found.items()}
            for granularity, found in frontend.faults.items()
        }
        known = knowledge.Known(workspace, frontend.frontend, frontend.environment, whole=True)
        subjects.append(
            Subject(
                name,
                frontend.compiler,
                [corpus[instance] for instance in instances],
                equipped,
                libraries.get(frontend.library).equipped_defaults(operators),
                faults,
                [costs[test] for test in ran],
                partial(known.of, instances),
                known.seconds(),
                f"{workspace.root} {frontend.library} {frontend.tests_digest} {frontend.compiler if equipped else ''}",
                len(corpus),
                runs.strategies(workspace).get((frontend.library, frontend.compiler), ""),
                ran,
                frontend.library,
            )
        )
    return subjects


def _positions(fault: str, tests: Sequence[str], position: dict[str, int]) -> list[int]:
    unknown = next((test for test in tests if test not in position), None)
    if unknown is not None:
        raise CorpusError(
            f"fault {fault!r} of the labels names test {unknown!r}, which was not run",
            cause="the labels were edited, or are of another workspace",
            fix="freeze labels anew: opera benchmark --freeze labels.json",
        )
    return [position[test] for test in tests]


def _rows(workspace: Workspace, library: str, equipped: str) -> dict[str, Row]:
    """Return instance → row in corpus order."""
    return {
        name: from_document(document, expectation)
        for _, name, document, expectation in workspace.documents(library, equipped=equipped)
    }
