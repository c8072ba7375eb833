"""What is to be run: frontends with their environments, and their tests in rank order, interleaved."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from opera import compilers, libraries
from opera.compilers import Variant
from opera.execute.records import ORACLE_VERSION
from opera.instance import identity
from opera.workspace import Workspace


class Frontend(msgspec.Struct, frozen=True):
    """A compiler's loader for one library's models, in one environment.

    Attributes:
        environment: Id of the stored environment: versions, options, target, CPU features, oracle.
        exporter: Id of what makes the migrated tests.
        seconds, memory: Limits that the compiler's module declares, in place of the run's own.
    """

    name: str
    compiler: str
    library: str
    version: str
    environment: str
    exporter: str
    variants: tuple[Variant, ...]


class Item(msgspec.Struct):
    """One test on its way through one frontend; `test` is empty until it is wrapped."""

    frontend: Frontend
    instance: str
    operator: str
    test: str
    variant: int = 0


class Selection(msgspec.Struct, frozen=True):
    """What of a ranking is wanted: the best `limit` tests of each frontend, by operator glob and by test or instance id."""

    limit: int | None = None
    operator: str = "*"
    test: str = ""
    rerun: bool = False


def exporter_id(library: str) -> str:
    """Return the id of what makes this library's migrated tests: its own version and its exporters'."""
    module = libraries.get(library)
    return identity(msgspec.json.encode({"library": library, **module.exporter()}, order="sorted"))[:12]


def test_id(instance: str, exporter: str) -> str:
    """Return the content address of a migrated test."""
    return identity(f"{instance} {exporter}".encode())


def frontend(workspace: Workspace, compiler: str, library: str, description: dict[str, Any]) -> Frontend:
    """Return a frontend with its environment stored; `description` is what `opera.execute.worker.describe` returned."""
    module = libraries.get(library)
    document = {
        **description,
        "compiler": compiler,
        "library": library,
        "library_version": module.version(),
        "exporter": module.exporter(),
        "oracle": ORACLE_VERSION,
    }
    return Frontend(
        name=compilers.frontend_name(compiler, library),
        compiler=compiler,
        library=library,
        version=description["version"],
        environment=workspace.save_environment(document),
        exporter=exporter_id(library),
        variants=tuple(compilers.get(compiler).FRONTENDS[library]),
    )


def items(
    workspace: Workspace, frontends: list[Frontend], selection: Selection
) -> tuple[Iterator[Item], dict[str, int]]:
    """Return the ranked instances of all frontends, interleaved by relative rank, and how many each frontend has unranked.

    A test that has its verdicts is among them; whoever runs them passes it over, for it counts towards the limit.
    """
    queues, unranked = [], {}
    corpora = {library: workspace.corpus(library) for library in {target.library for target in frontends}}
    for number, target in enumerate(frontends):
        _, ranked, missing = workspace.ranking(target.library, target.compiler, corpora[target.library])
        if selection.operator != "*":
            ranked = [pair for pair in ranked if fnmatchcase(pair[1], selection.operator)]
        if selection.test:
            ranked = [pair for pair in ranked if _chosen(pair[0], target.exporter, selection.test)]
        queues.append(_queue(number, target, ranked))
        if missing:
            unranked[target.name] = missing
    merged = heapq.merge(*queues, key=lambda pair: pair[0])
    return (item for _, item in merged), unranked


def _chosen(instance: str, exporter: str, name: str) -> bool:
    return instance.startswith(name) or test_id(instance, exporter).startswith(name)


def _queue(number: int, target: Frontend, ranked: list[tuple[str, str]]) -> Iterator[tuple[tuple[float, int], Item]]:
    """Yield the items of one frontend, each with its relative rank: made when they are asked for, for there may be many."""
    for at, (instance, operator) in enumerate(ranked):
        yield (at / len(ranked), number), Item(target, instance, operator, test_id(instance, target.exporter))
