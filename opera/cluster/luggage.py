"""The tests and files that jobs take to nodes and bring back, on the driver's side."""

from __future__ import annotations

import os
from collections import OrderedDict
from pathlib import Path
from typing import Any

from opera.cluster import parcels
from opera.cluster.messages import Done, Made, Read, Request, Work
from opera.cluster.parcels import Store
from opera.programs.verdicts import Uses
from opera.store.folders import Files

REMEMBERED = 100_000
"""Tests whose digest is remembered, and parcels of which it is known that they are in the store."""


class Luggage:
    """What travels. A test is packed once for all nodes that need it, and again when it has changed.

    Args:
        files: The driver's own, where tests are read and to which those that nodes make are written.
        store: Where tests lie for all nodes; None where they travel with the messages.
    """

    def __init__(self, files: Files, store: Store | None) -> None:
        self._files, self._store = files, store
        self._packed: OrderedDict[str, tuple[int, str]] = OrderedDict()  # test → newest change of its folder, digest
        self._parcels: dict[str, bytes] = {}  # digest → parcel, of tests that were packed for what is being sent
        self._stored: OrderedDict[str, None] = OrderedDict()  # digests of parcels that are in the store
        self._inline: set[str] = set()  # and of those that a node did not find there

    def pack(self, work: Work, uses: Uses, *, at_home: bool) -> Work:
        """Return a job with what it uses of the files, unless they are where the node works."""
        if at_home:
            work.reads, work.makes, work.takes, work.leaves = (), (), {}, ()
        elif uses.reads or uses.makes or uses.takes or uses.leaves:
            reads = [Read(test, name) for test in uses.reads if (name := self._digest(test))]
            work.reads, work.makes, work.leaves = tuple(reads), uses.makes, uses.leaves
            work.takes = {}
            for name in uses.takes:
                place = self._files.file(name)
                if place.is_file():
                    work.takes[name] = place.read_bytes()
        return work

    def provide(self, request: Request, read: Read) -> None:
        """Put a test where a node finds it: into the store, or beside the job."""
        inline = self._store is None or read.digest in self._inline
        if not inline and read.digest in self._stored:
            return
        parcel = self._parcels.get(read.digest) or parcels.pack(self._files.test(read.test))
        if inline:
            request.parcels[read.digest] = parcel
        elif self._store is not None:
            self._store.put(read.digest, parcel)
            remember(self._stored, read.digest, None)

    def sent(self) -> None:
        """Forget the parcels of what was sent."""
        self._parcels.clear()

    def lacking(self, read: Read) -> None:
        """Take note that a node did not find a test: from now on it travels beside the job."""
        if self._store is not None:
            self._inline.add(read.digest)

    def keep(self, made: Made, reads: tuple[Read, ...]) -> bool:
        """Write a test that a node has made, or added to, to the driver's files; return whether both have the same now."""
        parcel = made.parcel
        if not parcel and self._store is not None:
            parcel = self._store.get(made.digest) or b""
            remember(self._stored, made.digest, None)
        if not parcel:
            return False  # the store has lost it: whoever needs the test has it made again
        folder = self._files.test(made.test)
        known = self._packed.pop(made.test, None)
        # Where something was added to it meanwhile, what is here now is more than the parcel.
        if known is None:
            same = not folder.exists()
        else:
            same = known[0] == _changed(str(folder)) and Read(made.test, known[1]) in reads
        parcels.unpack(parcel, folder)
        if same:
            remember(self._packed, made.test, (_changed(str(folder)), made.digest))
        return same

    def unpack(self, done: Done, uses: Uses) -> None:
        """Write the files that a job has left."""
        for name, content in done.files.items():
            if name in uses.leaves:
                place = self._files.file(name)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(content)

    def _digest(self, test: str) -> str:
        """Return the digest of a test as it is, empty where it is not here: its job will say so."""
        folder = self._files.test(test)
        try:
            changed = _changed(str(folder))
        except OSError:
            return ""
        known = self._packed.get(test)
        if known is None or known[0] != changed:
            parcel = parcels.pack(folder)
            known = changed, parcels.digest(parcel)
            self._parcels[known[1]] = parcel
        remember(self._packed, test, known)
        return known[1]


def uses_of(payload: Any) -> Uses:
    """Return what a job uses of the files, as its payload says, or the payloads in a list of them."""
    if not isinstance(payload, list):
        found: Uses = getattr(payload, "uses", None) or Uses()
        return found
    each = [uses_of(x) for x in payload]
    return Uses(
        *(tuple(dict.fromkeys(x for uses in each for x in getattr(uses, name))) for name in Uses.__struct_fields__)
    )


def remember(cache: OrderedDict[str, Any], key: str, value: Any, most: int = REMEMBERED) -> None:
    """Set what is known of a test, and forget those that were not asked for longest."""
    cache[key] = value
    cache.move_to_end(key)
    if len(cache) > most:
        cache.popitem(last=False)


def _changed(folder: str) -> int:
    """Return when a folder's files were last changed, in nanoseconds; OSError where it is not there."""
    newest = Path(folder).stat().st_mtime_ns
    with os.scandir(folder) as entries:
        for entry in entries:
            newest = max(newest, entry.stat(follow_symlinks=False).st_mtime_ns)
    return newest
