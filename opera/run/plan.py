"""What is to be run: the frontends that are installed, in their environments, and their tests by rank, interleaved."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator
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


def items(
    workspace: Workspace, frontends: list[InstalledFrontend], selection: Selection
) -> tuple[Iterator[Item], dict[str, int]]:
    """Return the ranked instances of all frontends, interleaved by relative rank, and how many each frontend has unranked.

    A test that has its verdicts is among them; whoever runs them passes it over, for it counts towards the limit.
    """
    queues, unranked = [], {}
    names = {target.library for target in frontends}
    sources = {library: families.of_instances(workspace, library) for library in names if selection.balance}
    corpora = {library: workspace.corpus(library) for library in names}
    for number, target in enumerate(frontends):
        _, ranked, rest = workspace.ranking(target.library, target.compiler, corpora[target.library])
        if selection.operator != "*":
            ranked = [pair for pair in ranked if matches(pair[1], selection.operator)]
        if selection.test:
            ranked = [pair for pair in ranked if _chosen(pair[0], target.exporter, selection.test)]
        if selection.instances:
            ranked = [pair for pair in ranked if pair[0] in selection.instances]
        if selection.balance:
            queues.append(
                _turns(number, target, ranked, sources[target.library], tests.rejected(workspace, target.exporter))
            )
        else:
            queues.append(_queue(number, target, ranked))
        if rest:
            unranked[target.name] = rest
    merged = heapq.merge(*queues, key=lambda pair: pair[0])
    return (item for _, item in merged), unranked


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


def _queue(
    number: int, target: InstalledFrontend, ranked: list[tuple[str, str]]
) -> Iterator[tuple[tuple[float, int], Item]]:
    """Yield the items of one frontend, each with its relative rank: made when they are asked for, for there may be many."""
    for at, (instance, operator) in enumerate(ranked):
        yield (at / len(ranked), number), Item(target, instance, operator, test_id(instance, target.exporter))


def _turns(
    number: int,
    target: InstalledFrontend,
    ranked: list[tuple[str, str]],
    sources: dict[str, tuple[str, ...]],
    rejected: set[str],
) -> Iterator[tuple[tuple[float, int], Item]]:
    """As `_queue`, but sources take turns: first the best of each, then the second best of each, ...

    What is known to be rejected is left out, so that it takes nobody's turn.
    """
    seen: Counter[str] = Counter()
    turns = []
    for instance, operator in ranked:
        if instance not in rejected:
            shares = sources[instance]
            turns.append((min(seen[share] for share in shares), instance, operator, shares))
            seen.update(shares)
    turns.sort(key=lambda turn: turn[0])
    least = min(seen.values(), default=1)
    for turn, instance, operator, shares in turns:
        test = test_id(instance, target.exporter)
        yield (turn / least, number), Item(target, instance, operator, test, shares=shares)
