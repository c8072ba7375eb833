"""Migrated tests on their way between machines: a folder as one value of bytes, and a store that all machines reach.

A parcel's name is the digest of its bytes, so that whoever has one of that name has the same files.
"""

from __future__ import annotations

import os
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from opera.errors import NotInstalled, UsageError, WorkspaceError

MANIFEST = "manifest.json"
"""Written last: a folder without one is an unfinished test (opera.programs.migrated)."""


def pack(folder: Path) -> bytes:
    """Return the files of a folder, and the folders in it (None), as one value of bytes; OSError where it cannot be read."""
    found: dict[str, bytes | None] = {}
    _collect(str(folder), "", found)
    return msgspec.msgpack.encode(dict(sorted(found.items())))


def _collect(folder: str, prefix: str, found: dict[str, bytes | None]) -> None:
    with os.scandir(folder) as entries:
        for entry in entries:
            name = prefix + entry.name
            if entry.is_dir(follow_symlinks=False):
                found[name] = None
                _collect(entry.path, f"{name}/", found)
            elif entry.is_file(follow_symlinks=False):
                found[name] = _read(entry.path)


def _read(path: str) -> bytes:
    """Return a file's bytes; it is one of many small ones, and this takes half as long as what Python's own objects do."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = []
        while part := os.read(descriptor, 1 << 20):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(descriptor)


def unpack(parcel: bytes, folder: Path) -> None:
    """Write the files of a parcel; those that are there and the same stay, and whoever reads meanwhile sees whole ones.

    Raises WorkspaceError for a parcel that is none, and OSError.
    """
    try:
        files = msgspec.msgpack.decode(parcel, type=dict[str, bytes | None])
    except msgspec.DecodeError as error:
        raise WorkspaceError(f"a migrated test came damaged from another machine: {error}") from None
    for name in files:
        if name.startswith("/") or ".." in name.split("/"):
            raise WorkspaceError(f"a migrated test from another machine names a file outside its folder: {name}")
    folder.mkdir(parents=True, exist_ok=True)
    # What tells that others are there comes after them: first how exports went, then the manifest.
    for name, data in sorted(files.items(), key=lambda x: (x[0] == MANIFEST, x[0].startswith("export-"), x[0])):
        place = folder / name
        if data is None:
            place.mkdir(parents=True, exist_ok=True)
        elif not _holds(place, data):
            place.parent.mkdir(parents=True, exist_ok=True)
            part = place.with_name(f".{place.name}.{os.getpid()}")
            part.write_bytes(data)
            part.replace(place)


def _holds(place: Path, data: bytes) -> bool:
    try:
        return place.read_bytes() == data
    except OSError:
        return False


def digest(parcel: bytes) -> str:
    """Return the name of a parcel."""
    return blake2b(parcel, digest_size=16).hexdigest()


class Store:
    """Parcels in a folder that all machines see, or in an object store, by fsspec.

    Raises NotInstalled where fsspec, or what it needs for such an address, is missing, and UsageError where the store cannot
    be written.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        try:
            from fsspec.core import url_to_fs

            system, root = url_to_fs(address)
        except ImportError as error:
            raise NotInstalled(
                f"the store {address} cannot be reached: {error}",
                cause="fsspec, or its package for such addresses (s3fs for s3://, gcsfs for gs://), is not installed",
                fix='pip install "opera[cluster]" s3fs, here and on every node',
            ) from None
        except ValueError as error:
            raise UsageError(
                f"{address} is no address of a store: {error}", fix="name a folder, or s3://BUCKET/FOLDER"
            ) from None
        self._system: Any = system
        self._root = str(root).rstrip("/")

    def check(self) -> None:
        """Write a file; raises UsageError where that fails."""
        try:
            self.put("0" * 32, b"")
        except Exception as error:  # every kind of store has errors of its own
            raise UsageError(
                f"the store {self.address} cannot be written: {error}",
                cause="it does not exist, or this user may not write there",
                fix="name a folder that every machine sees, or a bucket with its credentials in the environment",
            ) from None

    def put(self, name: str, parcel: bytes) -> None:
        """Store a parcel; what a kill leaves of one is none for readers, and is written over."""
        place = self._place(name)
        self._system.makedirs(place.rpartition("/")[0], exist_ok=True)
        self._system.pipe_file(place, parcel)

    def get(self, name: str) -> bytes | None:
        """Return a parcel, None where it is not there or damaged."""
        try:
            data: bytes = self._system.cat_file(self._place(name))
        except OSError:  # FileNotFoundError, and what stores make of a lost connection
            return None
        return data if digest(data) == name else None

    def _place(self, name: str) -> str:
        return f"{self._root}/{name[:2]}/{name}"
