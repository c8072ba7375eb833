"""Finding libraries, compilers and strategies by entry point, from this repository or from outside."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from opera.errors import UsageError, near


@cache
def registered(group: str) -> dict[str, EntryPoint]:
    """Return name → entry point of all plugins of a group, whether what they need is installed or not, sorted by name."""
    return {point.name: point for point in sorted(entry_points(group=group), key=lambda point: point.name)}


def declared(prefix: str) -> str:
    """Return the plugins of all groups whose names begin so, as the text of an `entry_points.txt`."""
    every = entry_points()
    lines = []
    for group in sorted(x for x in every.groups if x.startswith(prefix)):
        lines += [f"[{group}]", *(f"{name} = {point.value}" for name, point in registered(group).items()), ""]
    return "\n".join(lines)


def load(group: str, kind: str, name: str) -> Any:
    """Import a plugin (not what it needs). Raises UsageError for an unknown name.

    A name with a dot or colon is that of a module, or of an object in one, for what is not registered.
    """
    if "." in name or ":" in name:
        where, _, attribute = name.partition(":")
        try:
            module = import_module(where)
            return getattr(module, attribute) if attribute else module
        except (ImportError, AttributeError, ValueError, TypeError) as error:
            raise UsageError(
                f"there is no {kind} {name!r}: {error}", fix="name a module, or an object as module:name"
            ) from None
    if name not in registered(group):
        raise UsageError(
            f"there is no {kind} called {name!r}",
            cause=near(name, registered(group)) or "a spelling mistake, or a plugin that is not installed",
            fix=f"choose from {', '.join(registered(group))}; `opera doctor` shows what is installed",
        )
    return registered(group)[name].load()
