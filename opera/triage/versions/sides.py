"""Which two environments are compared: what a user may name, and what that means.

A side is named as `openvino=2025.0` (compiler or frontend, and how its version begins), by how an environment's id begins, as
the folder of another workspace, or as FOLDER@ENVIRONMENT.
"""

from __future__ import annotations

import re
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from opera.errors import UsageError
from opera.store import verdicts
from opera.store.workspace import Workspace
from opera.triage.findings import version_key

AT_LEAST = 4
"""Characters of an environment's id that name it."""


class Side(msgspec.Struct, frozen=True):
    """A frontend in an environment of a workspace.

    Attributes:
        root: The workspace's folder, as it was given.
        tests: Tests with a verdict.
        document: What the environment is: version, options, CPU, ...
    """

    root: str
    frontend: str
    environment: str
    compiler: str
    version: str
    tests: int
    document: dict[str, Any]

    @property
    def name(self) -> str:
        """How a user names it, where that is enough: `openvino=2025.0.0`."""
        return f"{self.compiler}={self.version.partition(',')[0]}"


class Pair(NamedTuple):
    """Two sides of one frontend, and the workspaces that hold them."""

    before: Side
    after: Side
    one: Workspace
    other: Workspace


class Chosen(NamedTuple):
    """What is compared, and what is not: a line each."""

    pairs: list[Pair]
    notes: list[str]


def sides(workspace: Workspace) -> dict[str, list[Side]]:
    """Return frontend → its environments, the oldest version first, of one version the one that was run last last.

    Environments that a later run replaced are left out.
    """
    documents, superseded = workspace.environments(), workspace.superseded()
    found: dict[str, list[Side]] = defaultdict(list)
    for x in verdicts.ran(workspace):
        document = documents.get(x.environment)
        if document is None or x.environment in superseded:
            continue
        found[x.frontend].append(
            Side(
                str(workspace.root),
                x.frontend,
                x.environment,
                document["compiler"],
                document["version"],
                x.tests,
                document,
            )
        )
    # `ran` is in the order of runs, and sorting keeps it among equals
    return {name: sorted(found[name], key=lambda x: version_key(x.version)) for name in sorted(found)}


def choose(stack: ExitStack, workspace: Path, named: list[str], frontend: str = "") -> Chosen:
    """Return the pairs that two names mean, or, where there are none, the frontends of exactly two environments.

    Workspaces are opened in `stack`. Raises UsageError, with how the environments that there are can be named.
    """
    if len(named) == 1:
        raise UsageError(
            f"{named[0]!r} is one side; two are compared",
            fix="name the other one too, or neither where there are only two",
        )
    opened: dict[Path, Workspace] = {}

    def open_(root: Path) -> Workspace:
        if root not in opened:
            opened[root] = stack.enter_context(Workspace.open(root, write=False))
        return opened[root]

    if not named:
        return _only_two(open_(workspace), frontend)
    parts = [_parsed(text, workspace) for text in named]
    holders = [open_(root) for root, _ in parts]
    known = [sides(holder) for holder in holders]
    found = [_named(text, own, root) for (root, text), own in zip(parts, known, strict=True)]
    found = [{name: x for name, x in own.items() if frontend in ("", name)} for own in found]
    before, after = found
    both = [name for name in before if name in after]
    if not both:
        told = [f"{text} has {', '.join(own) or 'none'}" for text, own in zip(named, found, strict=True)]
        raise UsageError(
            f"{named[0]} and {named[1]} have no frontend in common{f' called {frontend}' if frontend else ''}",
            cause=f"other compilers, or other libraries: {'; '.join(told)}",
            fix="`opera report` lists the frontends of a workspace; compare two that ran the same one",
        )
    same = [name for name in both if holders[0] is holders[1] and before[name].environment == after[name].environment]
    if same:
        raise UsageError(
            f"{named[0]} and {named[1]} are the same environment of {', '.join(same)}",
            fix=f"name two of these: {_listed(known[0], same)}",
        )
    lonely = sorted({*before, *after} - {*both})
    notes = [f"{name} was run on one side only" for name in lonely]
    return Chosen([Pair(before[name], after[name], *holders) for name in both], notes)


def _only_two(workspace: Workspace, frontend: str) -> Chosen:
    """Return the frontends of exactly two environments, the older version before."""
    known = {name: own for name, own in sides(workspace).items() if frontend in ("", name)}
    pairs = [Pair(own[0], own[1], workspace, workspace) for own in known.values() if len(own) == 2]
    notes = [f"{name} was run in one environment only: {own[0].name}" for name, own in known.items() if len(own) == 1]
    more = {name: own for name, own in known.items() if len(own) > 2}
    if pairs:
        notes += [
            f"{name} has {len(own)} environments; name two: {_listed(known, [name])}" for name, own in more.items()
        ]
        return Chosen(pairs, notes)
    if more:
        raise UsageError(
            "there are more than two environments: name two",
            cause=f"{workspace.root} holds {_listed(known, list(more))}",
            fix="for example: opera diff {} {}".format(*(x.name for x in next(iter(more.values()))[-2:])),
        )
    raise UsageError(
        f"there are no two environments of {frontend or 'a frontend'} in {workspace.root}",
        cause=f"it holds {_listed(known, list(known)) or 'no verdicts'}",
        fix="run the other version into the same workspace: opera run --python ../other/bin/python, or name two workspaces",
    )


def _parsed(text: str, workspace: Path) -> tuple[Path, str]:
    """Return the folder of a side's workspace, and what names the environment in it (empty: the newest ones)."""
    folder, at, name = text.rpartition("@")
    if at and (Path(folder) / "opera.sqlite").is_file():
        return Path(folder), name
    if "=" not in text and ("/" in text or Path(text).is_dir()):
        return Path(text), ""
    return workspace, text


def _named(text: str, known: dict[str, list[Side]], root: Path) -> dict[str, Side]:
    """Return frontend → the side that a name means. Raises UsageError where that is none, or several of one frontend."""
    if not text:  # the newest version; of one version what was run last
        return {name: own[-1] for name, own in known.items()}
    every = [x for own in known.values() for x in own]
    name, equals, version = text.partition("=")
    if equals:
        mine = [x for x in every if name in (x.compiler, x.frontend)]
        pattern = re.compile(re.escape(version.strip()) + r"(?![0-9A-Za-z])")
        found = [x for x in mine if x.version == version] or [x for x in mine if version and pattern.match(x.version)]
    else:
        mine = every
        found = [x for x in every if len(text) >= AT_LEAST and x.environment.startswith(text)]
    if not found:
        raise UsageError(
            f"there is no environment {text!r} in {root}",
            cause=f"there are {_listed({'': mine or every}, ['']) or 'no verdicts yet'}",
            fix="name one of these, or run that version first: opera run --python ../old/bin/python",
        )
    groups: dict[str, list[Side]] = defaultdict(list)
    for x in found:
        groups[x.frontend].append(x)
    for frontend, group in groups.items():
        if len(group) > 1:
            raise UsageError(
                f"{text!r} is {len(group)} environments of {frontend}",
                cause="; ".join(f"{x.environment}: {_own(x, group)}" for x in group),
                fix=f"name one by its id, for example {group[0].environment}",
            )
    return {frontend: group[0] for frontend, group in groups.items()}


def _listed(known: dict[str, list[Side]], names: list[str]) -> str:
    """Return how the environments of some frontends are named, by ids where versions do not tell them apart."""
    listed = []
    for name in names:
        listed += [f"{x.environment} ({x.name})" if _twins(x, known[name]) else x.name for x in known[name]]
    return ", ".join(dict.fromkeys(listed))


def _twins(side: Side, own: list[Side]) -> bool:
    return any(x.version == side.version and x.frontend == side.frontend and x is not side for x in own)


def _own(side: Side, group: list[Side]) -> str:
    """Return what an environment has that the others of a group have not."""
    facts = {x.environment: set(flat(x.document)) for x in group}
    common = set.intersection(*facts.values())
    return ", ".join(f"{name} {value}" for name, value in sorted(facts[side.environment] - common)) or side.version


def flat(document: dict[str, Any], within: str = "") -> list[tuple[str, str]]:
    """Return the facts of an environment as (name, text), those of tables one by one."""
    found: list[tuple[str, str]] = []
    for name, value in document.items():
        if isinstance(value, dict):
            found += flat(value, f"{name} ")
        else:
            found.append((within + name, ", ".join(map(str, value)) if isinstance(value, list) else str(value)))
    return found
