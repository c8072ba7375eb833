"""Migration sources that are no test suites: generators of inputs, named in the entry-point group `opera.sources`.

`opera extract --source NAME` calls the function that the entry point names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, cast

import msgspec

from opera import plugins
from opera.store.workspace import Workspace

GROUP = "opera.sources"


class Request(msgspec.Struct, frozen=True):
    """What the command line asks of a source; one that has no use for an option says so by UsageError.

    Attributes:
        target: A folder to import; empty for what the source makes itself.
        library: The library whose operators are called; empty where the target says it, or for all that are installed.
        workers: Processes at a time.
        timeout: Seconds that one unit of the source's work may take; None for the source's own limit.
        rerun: Do again what is done.
        seed: Of all that is random.
        count: Inputs for each operator; 0 for the source's own number.
        violating: Make inputs that break what is documented.
    """

    target: str = ""
    library: str = ""
    workers: int = 2
    timeout: float | None = None
    rerun: bool = False
    seed: int = 0
    count: int = 0
    violating: bool = False


Extraction: TypeAlias = Callable[[Workspace], bool]
"""Extracts into a workspace and prints a summary; False where nothing came of it."""
Source: TypeAlias = Callable[[Request], Extraction]
"""Checks a request before there is a workspace (UsageError, SourceError, NotInstalled), and returns what fulfils it."""


def get(name: str) -> Source:
    """Import a source. Raises UsageError for an unknown name."""
    return cast(Source, plugins.load(GROUP, "migration source", name))
