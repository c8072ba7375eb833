"""What frontends are called in reports: by version, and by what differs where that is equal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from opera.store import verdicts
from opera.store.workspace import Workspace
from opera.triage.findings import version_key


class Labelled(NamedTuple):
    """A frontend in an environment; `facts` are what the environment is made of, by name."""

    frontend: str
    environment: str
    label: str
    facts: dict[str, str]


def labelled(workspace: Workspace) -> list[Labelled]:
    """Return the frontends that tests were run on, in their environments but superseded ones, sorted by name and version."""
    environments, superseded = workspace.environments(), workspace.superseded()
    keys = [key for key in verdicts.frontends(workspace) if key[1] not in superseded]
    found = ordered(keys, environments)
    named = labels(found, environments)
    return [Labelled(*key, named[key], dict(_flat(environments[key[1]]))) for key in found]


def ordered(keys: Iterable[tuple[str, str]], environments: Mapping[str, dict[str, Any]]) -> list[tuple[str, str]]:
    """Return (frontend, environment) by name and version."""
    return sorted(keys, key=lambda key: (key[0], version_key(environments[key[1]]["version"]), key[1]))


def labels(keys: Iterable[tuple[str, str]], environments: Mapping[str, dict[str, Any]]) -> dict[tuple[str, str], str]:
    """Return (frontend, environment) → `tvm-onnx 0.27.0`, with what differs where several would be called so."""
    groups: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for key in keys:
        groups[f"{key[0]} {environments[key[1]]['version']}"].append(key)
    found = {}
    for label, group in groups.items():
        facts = {key: set(_flat(environments[key[1]])) for key in group}
        common = set.intersection(*facts.values())
        for key in group:
            own = ", ".join(f"{name} {value}" for name, value in sorted(facts[key] - common))
            found[key] = label if len(group) == 1 else f"{label} ({own or key[1]})"
    return found


def _flat(document: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in document.items():
        if isinstance(value, dict):
            yield from _flat(value)
        else:
            yield name, str(value)
