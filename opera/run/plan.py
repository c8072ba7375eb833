"""What is to be run: the frontends that are installed, in their environments, and their tests by rank, interleaved."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from opera import compilers, libraries
from opera.compilers import Variant
from opera.errors import UsageError, near
from opera.programs.program import identity, matches
from opera.programs.verdicts import OBSERVATION_VERSION
from opera.run import rules
from opera.run.rules import Rules
from opera.store import families, tests
from opera.store.workspace import Workspace


class InstalledFrontend(msgspec.Struct, frozen=True):
    """A frontend as a run finds it: in one environment, with the rules of today.

    Attributes:
        environment: Id of the stored environment: versions of compiler, exporter and library, options, target, CPU
            features, and of what is observed (opera.programs.verdicts.OBSERVATION_VERSION). Rules are no part of it.
        exporter: Id of what makes the migrated tests.
        rules: What its verdicts are concluded by.
        device: What it runs on, as its compiler's options say; empty where they do not.
    """

    name: str
    compiler: str
    library: str
    version: str
    environment: str
    exporter: str
    variants: tuple[Variant, ...]
    rules: Rules = Rules()
    device: str = ""

    def place(self, variant: str) -> int:
        """Return the place of a variant by its name, that of the first for a name that is none."""
        return next((place for place, x in enumerate(self.variants) if x.name == variant), 0)


class Item(msgspec.Struct, frozen=True):
    """One test on its way through one frontend: `variant` is the place of the variant that is next.

    `shares` are what it counts for where tests are limited: the families of its migration sources with `balance`, else one.
    With `alone` only this variant is run, once more and in a fresh process.
    """

    frontend: InstalledFrontend
    instance: str
    operator: str
    test: str
    variant: int = 0
    shares: tuple[str, ...] = ("",)
    alone: bool = False


class Selection(msgspec.Struct, frozen=True):
    """What of a ranking is wanted: the best `limit` tests of each frontend, by operator glob and by test or instance id.

    With `balance`, the same number of tests of each family of migration sources (opera.store.families). `instances` are the ids
    that are wanted, empty for all.
    """

    limit: int | None = None
    operator: str = "*"
    test: str = ""
    rerun: bool = False
    balance: bool = False
    instances: frozenset[str] = frozenset()


def exporter_id(library: str) -> str:
    """Return the id of what makes this library's migrated tests: its own version and its exporters'."""
    module = libraries.get(library)
    return identity(msgspec.json.encode({"library": library, **module.exporter()}, order="sorted"))[:12]


def test_id(instance: str, exporter: str) -> str:
    """Return the content address of a migrated test."""
    return identity(f"{instance} {exporter}".encode())


def installed(workspace: Workspace, compiler: str, library: str, description: dict[str, Any]) -> InstalledFrontend:
    """Return a frontend with its environment stored; `description` is what `opera.run.worker.describe` returned."""
    module = libraries.get(library)
    device = str(description["options"].get("device", ""))
    document = {
        **description,
        "options": {**description["options"], **compilers.options(compilers.frontend(compiler, library))},
        "compiler": compiler,
        "library": library,
        "library_version": module.version(),
        "exporter": module.exporter(),
        "oracle": OBSERVATION_VERSION,
    }
    return InstalledFrontend(
        name=compilers.frontend_name(compiler, library),
        compiler=compiler,
        library=library,
        version=description["version"],
        environment=workspace.save_environment(document),
        exporter=exporter_id(library),
        variants=compilers.frontend(compiler, library).VARIANTS,
        rules=rules.of(compiler, library, device),
        device=device,
    )


class Queue(msgspec.Struct, frozen=True):
    """The tests of one frontend, best first. Its items are made when they are asked for: there may be millions.

    Attributes:
        ranked: (instance, operator) of each; those that several frontends share are the same tuples.
        shares, turns: Where sources take turns, what each counts for and its relative rank (0 ≤ rank); else empty.
    """

    frontend: InstalledFrontend
    ranked: list[tuple[str, str]]
    shares: list[tuple[str, ...]] = []
    turns: list[float] = []

    def items(self) -> Iterator[tuple[float, Item]]:
        """Yield each test with its relative rank."""
        target, length = self.frontend, len(self.ranked)
        for at, (instance, operator) in enumerate(self.ranked):
            test = test_id(instance, target.exporter)
            if self.turns:
                yield self.turns[at], Item(target, instance, operator, test, shares=self.shares[at])
            else:
                yield at / length, Item(target, instance, operator, test)


def queues(
    workspace: Workspace, frontends: list[InstalledFrontend], selection: Selection
) -> tuple[list[Queue], dict[str, int]]:
    """Return the ranked instances of each frontend that are wanted, and how many each frontend has unranked."""
    found, unranked = [], {}
    names = {target.library for target in frontends}
    sources = {library: families.of_instances(workspace, library) for library in names if selection.balance}
    corpora = {library: workspace.corpus(library) for library in names}
    for target in frontends:
        _, ranked, rest = workspace.ranking(target.library, target.compiler, corpora[target.library])
        if selection.operator != "*" or selection.test or selection.instances:
            ranked = [pair for pair in ranked if wanted(selection, target, *pair)]
        if selection.balance:
            rejected = tests.rejected(workspace, target.exporter)
            found.append(_in_turns(target, ranked, sources[target.library], rejected))
        else:
            found.append(Queue(target, ranked))
        if rest:
            unranked[target.name] = rest
    return found, unranked


def merged(each: Iterable[Iterable[tuple[float, Item]]]) -> Iterator[Item]:
    """Yield the items of several queues, interleaved by relative rank.

    A test that has its verdicts is among them; whoever runs them passes it over, for it counts towards the limit.
    """
    return (item for _, item in heapq.merge(*each, key=lambda x: x[0]))  # equal ones in the order of the queues


def wanted(selection: Selection, target: InstalledFrontend, instance: str, operator: str) -> bool:
    """Whether an instance is one of those that a selection is of."""
    return (
        matches(operator, selection.operator)
        and (not selection.test or _chosen(instance, target.exporter, selection.test))
        and (not selection.instances or instance in selection.instances)
    )


class Lookup:
    """Finds the item of a test that was made, among all that a run may come to: nothing is held of the others."""

    def __init__(self, workspace: Workspace, frontends: list[InstalledFrontend], selection: Selection) -> None:
        self._workspace, self._selection = workspace, selection
        self._frontends = {target.name: target for target in frontends}
        self._added: dict[tuple[str, str], Item] = {}

    def add(self, item: Item) -> None:
        """Have an item beside those of the selection."""
        self._added[item.frontend.name, item.test] = item

    def get(self, frontend: str, test: str) -> Item | None:
        """Return the item of a test on a frontend, None where the run does not come to it."""
        target = self._frontends.get(frontend)
        if (frontend, test) in self._added or target is None:
            return self._added.get((frontend, test))
        found = tests.in_corpus(self._workspace, test)
        if found is None or test_id(found.instance, target.exporter) != test:
            return None
        if not wanted(self._selection, target, found.instance, found.operator):
            return None
        return Item(target, found.instance, found.operator, test)


def check(workspace: Workspace, chosen: list[str], selection: Selection) -> None:
    """Raise UsageError where no instance of these libraries is what is asked for, however much was run before."""
    operators = {name: workspace.operators(name) for name in chosen}
    everything = set[str]().union(*operators.values())
    if selection.operator != "*" and not any(fnmatchcase(x, selection.operator) for x in everything):
        raise UsageError(
            f"no operator in the workspace matches {selection.operator!r}",
            cause=near(selection.operator, everything),
            fix="give a glob of whole names, as 'Conv*' or '*.conv2d'; `opera operators` lists them",
        )
    if selection.test:
        made = ((instance, name) for name in chosen for instance, _ in workspace.corpus(name).values())
        exporters = {name: exporter_id(name) for name in chosen}
        if not any(_chosen(instance, exporters[name], selection.test) for instance, name in made):
            raise UsageError(
                f"no test or instance in the workspace has an id that begins with {selection.test!r}",
                cause="another workspace, or a test that another version of the library made",
                fix="`opera show OPERATOR` and `opera show FINDING` tell ids",
            )


def _chosen(instance: str, exporter: str, name: str) -> bool:
    return instance.startswith(name) or test_id(instance, exporter).startswith(name)


def _in_turns(
    target: InstalledFrontend, ranked: list[tuple[str, str]], sources: dict[str, tuple[str, ...]], rejected: set[str]
) -> Queue:
    """Return a queue in which sources take turns: first the best of each, then the second best of each, ...

    What is known to be rejected is left out, so that it takes nobody's turn.
    """
    seen: Counter[str] = Counter()
    turns = []
    for pair in ranked:
        if pair[0] not in rejected:
            shares = sources[pair[0]]
            turns.append((min(seen[share] for share in shares), pair, shares))
            seen.update(shares)
    turns.sort(key=lambda turn: turn[0])
    least = min(seen.values(), default=1)
    return Queue(target, [pair for _, pair, _ in turns], [x for *_, x in turns], [turn / least for turn, *_ in turns])
