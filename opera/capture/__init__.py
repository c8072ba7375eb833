"""Recording operator instances while somebody else's code runs.

A library's capture module is named in the entry-point group `opera.captures`. It hooks the callables that
`instrumentation/<library>.toml` names, inside a child process, and hands what it sees to a Recorder.
"""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any, Protocol

from opera.capture.recorder import Recorder
from opera.errors import SourceError


class Capture(Protocol):
    """The protocol of a capture module."""

    def install(self, recorder: Recorder, points: dict[str, list[str]]) -> None:
        """Hook the callables of `points` (kind of point → `module:qualified.name`) for the rest of the process."""


GROUP = "opera.captures"


def get(library: str) -> Capture:
    """Import the capture module of a library. Raises SourceError where none is registered."""
    for point in entry_points(group=GROUP, name=library):
        module: Any = point.load()
        capture: Capture = module
        return capture
    raise SourceError(
        f"opera does not know how to capture operators of {library!r}",
        cause="no installed package registers it under the entry-point group 'opera.captures'",
        fix="install opera itself (`pip install -e .` in a checkout), or the plugin that knows this library",
    )
