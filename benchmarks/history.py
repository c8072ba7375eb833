"""Does a workspace's own history order a run with a time budget better? `python benchmarks/history.py WORKSPACE ...`.

Nothing is run: the verdicts that workspaces hold say what each test costs and which findings it shows. Of each frontend, a half
of the tests, drawn at random, is history; the other half is run in several orders, and the findings that each has found by a
share of the whole time are counted, over 30 draws. What history says of an operator is the mean seconds of its tests, and how
many findings its tests showed (with one test of none added, for a few tests say little).

- `rank`: today's order, that of `opera prioritize`;
- `cheap`: operators take turns, the cheaper ones the more often: no findings are looked at;
- `rate`: expected findings a second by operator, whatever was run before;
- `fading`: the same, where the n-th test of an operator counts 1/n;
- `blocks`: today's order, in blocks of a twentieth of the tests that `fading` sorts.

Prints two lines of JSON a frontend, of `all` findings of the other half, as where a new release of a compiler is run and
history is of the last one, and of the `new` ones alone, which history does not show, as where the same release is run on:
order → the share of them that is found by 5, 10, 25 and 50 % of the seconds, and APFDc (that share, averaged over the seconds);
and the middle 95 % of the draws of each difference from `rank` in APFDc.
"""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from opera.store import verdicts
from opera.store.workspace import Workspace

DRAWS = 30
BUDGETS = (0.05, 0.10, 0.25, 0.50)
BLOCKS = 20
Array = np.ndarray[Any, Any]


class Tests:
    """The tests of a frontend by today's rank: their operators, seconds and findings."""

    def __init__(self, workspace: Workspace, frontend: str, environment: str) -> None:
        compiler, _, library = frontend.rpartition("-")
        _, ranked, _ = workspace.ranking(library, compiler)
        place = {instance: at for at, (instance, _) in enumerate(ranked)}
        seconds, found, instance_of = verdicts.seconds(workspace, frontend, environment), defaultdict(set), {}
        for x in verdicts.counted(workspace, frontend, environment):
            found[x.test].add(x.finding)
        for name, instance in workspace.query("SELECT id, instance FROM tests"):
            instance_of[name] = instance
        order = sorted((x for x in seconds if instance_of[x] in place), key=lambda x: place[instance_of[x]])
        self.operators = [ranked[place[instance_of[x]]][1] for x in order]
        self.seconds = np.array([seconds[x] for x in order])
        self.found = [frozenset(found[x]) for x in order]


def orders(tests: Tests, history: Array, rest: Array) -> dict[str, list[int]]:
    """Return order → the tests of `rest` in it, given what those of `history` showed; both hold places by rank."""
    cost, shown, count = defaultdict(float), defaultdict(set), Counter()  # type: ignore[var-annotated]
    for at in history.tolist():
        name = tests.operators[at]
        count[name] += 1
        cost[name] += tests.seconds[at]
        shown[name] |= tests.found[at]
    mean = float(tests.seconds[history].mean())
    common = len(set().union(*(tests.found[at] for at in history.tolist()))) / len(history)

    def expected(name: str) -> float:
        """Findings a second of an operator's first test."""
        finds = (len(shown[name]) + common) / (count[name] + 1)
        return finds / ((cost[name] + mean) / (count[name] + 1))

    seen: Counter[str] = Counter()
    turn = {}
    for at in rest.tolist():
        seen[tests.operators[at]] += 1
        turn[at] = seen[tests.operators[at]]
    rate = {name: expected(name) for name in {tests.operators[at] for at in rest.tolist()}}
    price = {name: (cost[name] + mean) / (count[name] + 1) for name in rate}
    ranked = rest.tolist()
    fading = {at: -rate[tests.operators[at]] / turn[at] for at in ranked}
    size = max(1, len(ranked) // BLOCKS)
    blocks = [ranked[at : at + size] for at in range(0, len(ranked), size)]
    return {
        "rank": ranked,
        "cheap": sorted(ranked, key=lambda at: turn[at] * price[tests.operators[at]]),
        "rate": sorted(ranked, key=lambda at: -rate[tests.operators[at]]),
        "fading": sorted(ranked, key=lambda at: fading[at]),
        "blocks": [at for block in blocks for at in sorted(block, key=lambda at: fading[at])],
    }


def curve(tests: Tests, order: list[int], known: frozenset[str]) -> list[float] | None:
    """Return the share of findings, but for those that are known, by each budget, and APFDc; None where there are none."""
    ends = np.cumsum(tests.seconds[order])
    first: dict[str, float] = {}
    for at, end in zip(order, ends.tolist(), strict=True):
        for name in tests.found[at] - known:
            first.setdefault(name, end)
    if not first:
        return None
    when = np.array(list(first.values())) / ends[-1]
    return [*(float((when <= budget).mean()) for budget in BUDGETS), float(1 - when.mean())]


def compared(tests: Tests, *, new: bool) -> dict[str, Any]:
    """Return what each order finds, averaged over the draws; with `new`, of what history does not show."""
    rng = np.random.default_rng(0)
    found: dict[str, list[list[float]]] = defaultdict(list)
    for _ in range(DRAWS):
        half = np.zeros(len(tests.seconds), bool)
        half[rng.permutation(len(half))[: len(half) // 2]] = True
        history = np.flatnonzero(half)
        known = frozenset[str]().union(*(tests.found[at] for at in history.tolist())) if new else frozenset[str]()
        for name, order in orders(tests, history, np.flatnonzero(~half)).items():
            if (each := curve(tests, order, known)) is not None:
                found[name].append(each)
    figures = {name: np.array(each) for name, each in found.items()}
    columns = [*(f"{100 * x:g} %" for x in BUDGETS), "APFDc"]
    told: dict[str, Any] = {}
    for name, each in figures.items():
        told[name] = dict(zip(columns, np.round(each.mean(axis=0), 3).tolist(), strict=True))
        if name != "rank":
            apart = each[:, -1] - figures["rank"][:, -1]
            told[name]["apart"] = np.round(np.percentile(apart, (2.5, 97.5)), 3).tolist()
    return told


def main(roots: list[str]) -> None:
    """Print a line of JSON a frontend that has 20 findings or more, for half of fewer says nothing."""
    for root in roots:
        with Workspace.open(Path(root), write=False) as workspace:
            for frontend, environment in verdicts.frontends(workspace):
                tests = Tests(workspace, frontend, environment)
                findings = len(set().union(*tests.found))
                if findings >= 20:
                    told = {"frontend": frontend, "tests": len(tests.found), "findings": findings}
                    for new in (False, True):
                        told["of"] = "new" if new else "all"
                        print(json.dumps(told | compared(tests, new=new)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
