"""Rank what a workspace holds, for each library and compiler."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import msgspec

from opera.compilers import frontend_name, get
from opera.errors import UsageError
from opera.prioritize import defaults as known_defaults
from opera.prioritize import knowledge, needs, rank
from opera.prioritize.documents import from_document
from opera.prioritize.subspaces import Defaults, Row
from opera.store.workspace import Workspace


class Ranking(msgspec.Struct, frozen=True):
    """What one ranking did: counts and CPU seconds."""

    library: str
    compiler: str
    strategy: str
    instances: int
    operators: int
    equipped: int
    seconds: float


def prioritize(
    workspace: Workspace, strategy: str, *, chosen: list[str], compilers: list[str], seed: int | None
) -> Iterator[Ranking]:
    """Rank the instances of each of the libraries `chosen` for each of `compilers`, and store the orders."""
    for library in chosen:
        numbers: list[int] = []
        operators = workspace.operators(library)
        defaults: Defaults = known_defaults.of(workspace, library, operators)
        ranked: dict[str, list[int]] = {}
        first: dict[str, str] = {}  # key of an order → the compiler that it was stored for first
        for compiler in compilers:
            if library not in get(compiler).FRONTENDS:
                continue
            started = time.process_time()
            equipped = list(_rows(workspace, library, [], compiler))
            # What no equipped test tells apart is one order: with none, that of every other such compiler.
            key = compiler if equipped or needs(strategy) else ""
            if key not in ranked:  # rows are read anew for each order: a hundred thousand of them take 300 MB
                source = partial(_known, workspace, library, compiler)
                ranked[key] = rank(strategy, _rows(workspace, library, numbers), equipped, defaults, seed, source)
            result = Ranking(
                library, compiler, strategy, len(numbers), len(operators), len(equipped), time.process_time() - started
            )
            document = {"seed": seed, "equipped": len(equipped), "seconds": result.seconds}
            order = [numbers[at] for at in ranked[key]]
            workspace.save_ranking(library, compiler, strategy, document, order, first.get(key, ""))
            first.setdefault(key, compiler)
            yield result


def _known(workspace: Workspace, library: str, compiler: str, need: str) -> Sequence[Any]:
    """Be the source of what informed strategies need of a frontend's tests."""
    instances = [instance for instance, _ in workspace.corpus(library).values()]
    return knowledge.Known(workspace, frontend_name(compiler, library)).of(instances, need)


def _rows(workspace: Workspace, library: str, numbers: list[int], equipped: str = "") -> Iterator[Row]:
    """Yield the rows of the corpus, or of a compiler's equipped tests, and note their sequence numbers."""
    numbers.clear()
    for number, _, document, expectation in workspace.documents(library, equipped=equipped):
        numbers.append(number)
        yield from_document(document, expectation)


def show(workspace: Workspace, strategy: str, *, chosen: list[str], compilers: list[str], seed: int | None) -> None:
    """Rank, and print a line for each library and compiler. Raises UsageError where there is nothing to rank."""
    held = workspace.libraries()
    unknown = [name for name in chosen if name not in held]
    if unknown and held:
        raise UsageError(f"the workspace holds no instances of {unknown[0]}", fix=f"choose from {', '.join(held)}")
    if not held:
        raise UsageError(
            "the workspace holds no instances",
            cause="nothing was extracted yet, or another --workspace",
            fix="run `opera extract onnx` first",
        )
    for done in prioritize(workspace, strategy, chosen=chosen or held, compilers=compilers, seed=seed):
        known = f"{done.equipped} equipped tests" if done.equipped else "no equipped tests known"
        print(
            f"{frontend_name(done.compiler, done.library)}: {done.instances} instances of {done.operators} operators"
            f" ranked by {done.strategy} ({known}), {done.seconds:.1f} s"
        )
