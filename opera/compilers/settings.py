"""What a user may choose of a compiler: `opera run --option NAME=VALUE`. Needs msgspec only.

A compiler declares its settings in SETTINGS, name → Setting, and states what holds under the same name in `options()`, where it
may leave out a default. So a choice is part of every verdict's environment, and who asks a compiler anew (reduction,
confirmation, blame) finds it there. Workers get it by an environment variable, before anything is imported.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from opera import compilers
from opera.errors import UsageError, near

VARIABLE = "OPERA_OPTIONS"
"""Environment variable of a compiler's workers: what was chosen, as JSON."""


class Setting(msgspec.Struct, frozen=True):
    """One thing that can be chosen.

    Attributes:
        default: What holds where nothing is chosen.
        about: In words.
        choices: The values there are.
    """

    default: str
    about: str
    choices: tuple[str, ...]


def declared(compiler: Any) -> dict[str, Setting]:
    """Return the SETTINGS of a compiler, empty where it has none."""
    return dict(getattr(compiler, "SETTINGS", {}))


def chosen(settings: Mapping[str, Setting]) -> dict[str, str]:
    """Return name → value of all settings, as they hold in this process."""
    given: dict[str, str] = msgspec.json.decode(os.environ.get(VARIABLE) or "{}")
    return {name: given.get(name, setting.default) for name, setting in settings.items()}


def of(name: str, given: Mapping[str, str]) -> dict[str, str]:
    """Return what of given values a compiler declares, without its defaults: of an environment's options, what was chosen."""
    known = declared(compilers.get(name))
    return {key: value for key, value in given.items() if key in known and value != known[key].default}


def environment(name: str, given: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that tell a compiler's workers; none where nothing is chosen but defaults."""
    found = of(name, given)
    return {VARIABLE: msgspec.json.encode(found, order="sorted").decode()} if found else {}


def parsed(texts: Iterable[str], names: Iterable[str]) -> dict[str, str]:
    """Return name → value of `NAME=VALUE`. Raises UsageError for what none of these compilers declares, or no value of it."""
    known: dict[str, dict[str, Setting]] = {}
    for name in names:
        for key, setting in declared(compilers.get(name)).items():
            known.setdefault(key, {})[name] = setting
    found: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"{text!r} is no option of a compiler", fix="write --option NAME=VALUE")
        if key not in known:
            raise UsageError(
                f"none of the compilers has an option {key!r}",
                cause=near(key, known),
                fix=f"they have: {_listed(known)}" if known else "leave it out, or name another --compiler",
            )
        values = dict.fromkeys(x for setting in known[key].values() for x in setting.choices)
        if value not in values:
            raise UsageError(f"{value!r} is no {key}", cause=near(value, values), fix=f"one of {', '.join(values)}")
        if found.setdefault(key, value) != value:
            raise UsageError(f"--option {key} is given twice", fix="run once for each")
    return found


def _listed(known: Mapping[str, Mapping[str, Setting]]) -> str:
    return "; ".join(f"{key} ({', '.join(held)})" for key, held in sorted(known.items()))
