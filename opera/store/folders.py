"""Where migrated tests lie: whoever has a test's id finds its folder, under the roots of the machine it is on.

Jobs carry ids and names, never paths. A worker is told its roots once, in its group's environment, so that one on another
machine has its own; another kind of `Files` may fetch there what it does not have yet. Needs numpy and msgspec only.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Protocol

import msgspec

from opera import temporary
from opera.programs import migrated

ROOTS = "OPERA_ROOTS"
"""Environment variable that names the roots of a process, the first of which is written to."""
TESTS = "tests"
"""The folder of a root that holds migrated tests."""
KEPT = 4 << 20
"""Bytes: outputs of inconsistent tests that are larger are not kept."""
TOLD = os.environ.get(ROOTS, "")
"""What this process was told, read once: a compiler may do to the environment what it likes."""


class Files(Protocol):
    """What processes share: migrated tests, by id, and files that one leaves for another, by name."""

    def test(self, name: str) -> Path:
        """Return the folder of a migrated test: where it is, else where it is to be made."""

    def file(self, name: str) -> Path:
        """Return the path of a file that has such a name (`scratch/NAME`, `outputs/ab/NAME`)."""


class Folders(msgspec.Struct, frozen=True):
    """Files in folders of this machine.

    Attributes:
        roots: Absolute; tests are looked for in one after the other. What is new goes to the first.
    """

    roots: tuple[str, ...]

    @classmethod
    def of(cls, *roots: Path) -> Folders:
        """Return those of some roots; a workspace's folder is one."""
        return cls(tuple(str(root.absolute()) for root in roots))

    def test(self, name: str) -> Path:
        """Return the folder of a migrated test: where it is, else where it is to be made."""
        if len(self.roots) == 1:
            return migrated.folder(Path(self.roots[0], TESTS), name)
        places = [migrated.folder(Path(root, TESTS), name) for root in self.roots]
        return next((place for place in places[1:] if not places[0].is_dir() and place.is_dir()), places[0])

    def file(self, name: str) -> Path:
        """Return the path of a file that has such a name."""
        return Path(self.roots[0], name)

    def environment(self) -> dict[str, str]:
        """Return what a group of workers is told in its environment."""
        return {ROOTS: os.pathsep.join(self.roots)}


def here() -> Files:
    """Return the files that this process was told of."""
    return Folders(tuple(TOLD.split(os.pathsep)))


def kept_outputs(test: str, frontend: str, variant: str, environment: str) -> str:
    """Return the name by which the outputs of an inconsistent test are kept (`Files.file`)."""
    return f"outputs/{test[:2]}/{test}-{frontend}-{variant}-{environment}.msgpack"


def keep_outputs(saved: Path, kept: Path) -> None:
    """Keep outputs that are not the expected ones, and those of further runs of what is random, in place of earlier ones;
    these stay where none were left, and large ones are not kept."""
    if not saved.is_file():
        return
    for here, there in ((saved, kept), (Path(drawn(str(saved))), Path(drawn(str(kept))))):
        there.unlink(missing_ok=True)
        if here.is_file() and here.stat().st_size <= KEPT:
            there.parent.mkdir(parents=True, exist_ok=True)
            with temporary.beside(there) as part:
                shutil.move(here, part)  # another file system, as /tmp may be


def drawn(name: str) -> str:
    """Return the name by which further runs of a random program are kept, beside a file of its outputs."""
    return f"{name.removesuffix('.msgpack')}-drawn.msgpack"
