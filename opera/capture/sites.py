"""Which line of the user's program a call comes from: provenance of an instance, no part of its identity.

Only `opera record` asks for it. A call is named by a key of the capture module's, for many calls are one instance: what is
written says which line calls which key, and which instance a key became, in whatever order that is known.
"""

from __future__ import annotations

import linecache
import os
import site
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import FrameType

import msgspec

import opera

MAX_TEXT = 300
"""Characters of a source line that are kept."""
MAX_MODULE = 300
"""Characters of a module's path that are kept."""
OWN, INSTALLED, PASSED = range(3)


class Site(msgspec.Struct, frozen=True):
    """A line of a program that makes a call.

    Attributes:
        file: Absolute path.
        line: Counted from 1.
        text: The line as it was when it ran, without indentation; empty where no file holds it.
        module: Path of the module or layer that is called, or that calls (`Net.blocks.0.conv`); empty outside of one.
    """

    file: str
    line: int
    text: str = ""
    module: str = ""


NOWHERE = Site("", 0)


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line of the file that is written: where a call was made, or which instance it is (its id)."""

    call: int
    instance: str = ""
    site: Site | None = None


class Frames:
    """Finds the frame of the user's own code: the innermost one that is neither installed nor Python's.

    A program that is installed itself has none: then it is the innermost one that is not the library's, nor opera's.
    """

    def __init__(self, library: Iterable[str]) -> None:
        """Take the folders of the library that is watched, and of what it stands on."""
        paths = sysconfig.get_paths()
        self._passed = _folders(*library, str(Path(opera.__file__).parent))
        self._installed = _folders(paths["purelib"], paths["platlib"], site.getusersitepackages())
        self._python = _folders(paths["stdlib"], paths["platstdlib"])
        self._kinds: dict[str, int] = {}

    def site(self, frame: FrameType | None, module: str = "") -> Site | None:
        """Return where a call of this frame comes from; None where nothing but libraries calls."""
        second: FrameType | None = None
        while frame is not None:
            kind = self.kind(frame.f_code.co_filename)
            if kind == OWN:
                return _site(frame, module)
            if kind == INSTALLED and second is None:
                second = frame
            frame = frame.f_back
        return _site(second, module) if second is not None else None

    def kind(self, file: str) -> int:
        """Return whose a file is; it is looked at once."""
        found = self._kinds.get(file)
        if found is None:
            found = self._kinds[file] = self._kind(file)
        return found

    def _kind(self, file: str) -> int:
        if file.startswith(("<", *self._passed)):
            return PASSED
        if file.startswith(self._installed) or f"{os.sep}dist-packages{os.sep}" in file:
            return INSTALLED  # before Python's own, which may hold their folder
        return PASSED if file.startswith(self._python) else OWN


def _folders(*paths: str) -> tuple[str, ...]:
    """Return what the names of files in these folders begin with, links followed and not."""
    return tuple({os.path.join(form, "") for path in paths if path for form in (path, os.path.realpath(path))})  # noqa: PTH118


def _site(frame: FrameType, module: str) -> Site:
    file, line = os.path.abspath(frame.f_code.co_filename), frame.f_lineno or 0  # noqa: PTH100
    text = linecache.getline(file, line, frame.f_globals).strip()
    return Site(_plain(file), line, _plain(text)[:MAX_TEXT], _plain(module)[:MAX_MODULE])


def _plain(text: str) -> str:
    """Return text that can be stored and shown."""
    return "".join(c if c.isprintable() else " " for c in text.encode("utf-8", "backslashreplace").decode())


def read(path: Path) -> Iterator[tuple[str, Site]]:
    """Yield (instance, a line that calls it) of what a recorder wrote, NOWHERE for one that no line is known of."""
    instances: dict[int, list[str]] = {}
    sites: dict[int, list[Site]] = {}
    if path.is_file():
        for data in path.read_bytes().splitlines():
            try:
                line = msgspec.json.decode(data, type=Line)
            except msgspec.DecodeError:  # cut short: the process died, or the disk was full
                continue
            if line.site is not None:
                sites.setdefault(line.call, []).append(line.site)
            else:
                instances.setdefault(line.call, []).append(line.instance)
    for call, names in instances.items():
        yield from ((name, found) for name in names for found in sites.get(call, (NOWHERE,)))
