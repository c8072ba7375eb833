"""A machine of a cluster: today's pool, and the migrated tests that its jobs need. Knows nothing of Ray.

Each node has a folder of its own, which goes with it. A test that a job reads comes as a parcel, with the request or from the
store; what a job makes goes back in the reply. Where the disk runs full, what jobs show is not to be trusted: the node says
that it is unfit, and its jobs are done elsewhere.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import sys
import tempfile
import time
from collections import OrderedDict
from contextlib import ExitStack
from pathlib import Path

import msgspec

from opera import temporary
from opera.cluster import parcels
from opera.cluster.messages import Done, Hello, Home, Made, Read, Reply, Request, Work, code
from opera.cluster.parcels import Store
from opera.errors import OperaError, WorkspaceError
from opera.pool.pool import Pool
from opera.pool.workers import Result
from opera.store.folders import ROOTS, Folders

KEPT = 20_000
"""Tests that a node keeps for jobs to come."""
LEAST_FREE = 512 << 20
"""Bytes that must be free where tests and temporary files lie."""


class Node:
    """Does what requests say. Use it in a `with` statement, or `close` it.

    Args:
        workers: Processes at a time.
        store: Address of the store, empty where parcels come with requests.
        home: The driver's folder: where it is this machine's as well, tests stay there, and nothing moves.
        paths: The driver's `sys.path`: what of it is here too, is looked in after this machine's own.
        least_free: Bytes that must be free on its disk.
    """

    def __init__(
        self,
        workers: int,
        store: str = "",
        home: Home | None = None,
        paths: tuple[str, ...] = (),
        least_free: int = LEAST_FREE,
    ) -> None:
        _set_path(paths)
        self._stack, self._least_free = ExitStack(), least_free
        self._root = self._stack.enter_context(temporary.folder("node"))
        self._files = Folders.of(self._root)
        self._at_home = home is not None and home.is_here()
        (self._root / "scratch").mkdir()
        self._store = Store(store) if store else None
        self._pool = self._stack.enter_context(Pool({}, workers=workers))
        self._work: dict[int, Work] = {}
        self._have: OrderedDict[str, str] = OrderedDict()  # test → digest of the parcel that its folder is
        self._forks: dict[str, int] = {}

    def __enter__(self) -> Node:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all processes, and remove the folder."""
        self._stack.close()

    def hello(self) -> bytes:
        """Return what this node is (Hello)."""
        return msgspec.msgpack.encode(Hello(f"{socket.gethostname()} ({os.getpid()})", code(), self._at_home))

    def exchange(self, data: bytes) -> bytes:
        """Do what a request says for a while, and return what was done (Reply)."""
        request = msgspec.msgpack.decode(data, type=Request)
        lacking: list[int] = []
        done: list[Done] = []
        unfit = self._disk()
        try:
            if not unfit:
                self._obey(request, lacking)
                for result in self._pool.within(request.wait):
                    done.append(self._done(result))
        except OSError as error:
            unfit = f"{type(error).__name__}: {error}"
        except OperaError as error:
            unfit = str(error)
        unfit = unfit or self._disk()
        if unfit:  # a job may have failed for want of room
            done = []
        return msgspec.msgpack.encode(Reply(done, lacking, self._pool.left, self._new_forks(), unfit))

    def _disk(self) -> str:
        """Say that the disk is full, empty where it is not."""
        for place in (str(self._root), tempfile.gettempdir()):
            free = shutil.disk_usage(place).free
            if free < self._least_free:
                return f"its disk is full: {free >> 20} MiB are free at {place}"
        return ""

    def _obey(self, request: Request, lacking: list[int]) -> None:
        for name, group in request.groups.items():
            # What the driver's own folders are is nothing to a node.
            moved = ROOTS in group.env and not self._at_home
            told = group.env | (self._files.environment() if moved else {})
            self._pool.add(name, msgspec.structs.replace(group, env=told))
        if request.until is not None:
            begin, end = request.until
            self._pool.until(time.monotonic() + begin, time.monotonic() + end)
        for number in request.retire:
            self._pool.retire(number)
        for name in request.release:
            self._pool.release(name)
        for work in request.work:
            if not all(self._ready(read, request.parcels) for read in work.reads):
                lacking.append(work.number)
                continue
            for name, content in work.takes.items():
                self._place(name).write_bytes(content)
            self._work[work.number] = work
            self._pool.submit(
                work.group, work.payload, seconds=work.seconds, memory=work.memory, tag=work.number, fresh=work.fresh,
                call=work.call, twice=work.twice,
            )  # fmt: skip

    def _ready(self, read: Read, given: dict[str, bytes]) -> bool:
        """Whether a test is here, after it was fetched where it was not."""
        test, digest = read.test, read.digest
        if self._have.get(test) == digest:
            self._have.move_to_end(test)
            return True
        parcel = given.get(digest)
        if parcel is None and self._store is not None:
            parcel = self._store.get(digest)
        if parcel is None:
            return False
        parcels.unpack(parcel, self._files.test(test))
        self._hold(test, digest)
        return True

    def _hold(self, test: str, digest: str) -> None:
        """Note that a test is here; those that were not used for longest go."""
        self._have[test] = digest
        self._have.move_to_end(test)
        if len(self._have) > KEPT + KEPT // 10:
            used = {name for work in self._work.values() for name in (*work.makes, *(read.test for read in work.reads))}
            for name in [x for x in self._have if x not in used][: KEPT // 10]:
                del self._have[name]
                shutil.rmtree(self._files.test(name), ignore_errors=True)

    def _place(self, name: str) -> Path:
        place = self._files.file(name)
        if not place.resolve().is_relative_to(self._root.resolve()):
            raise WorkspaceError(f"a job names a file outside its node's folder: {name}")
        place.parent.mkdir(parents=True, exist_ok=True)
        return place

    def _done(self, result: Result) -> Done:
        work = self._work.pop(result.tag)
        files = {}
        for name in work.leaves:
            place = self._place(name)
            if place.is_file():
                files[name] = place.read_bytes()
                place.unlink()
        for name in work.takes:
            self._place(name).unlink(missing_ok=True)
        made = [found for test in work.makes if (found := self._made(test)) is not None]
        return Done(
            result.tag, result.status, result.raw, result.message, result.exit, result.note, result.mark, result.log,
            result.seconds, result.worker, result.busy, made, files,
        )  # fmt: skip

    def _made(self, test: str) -> Made | None:
        """Return a test that a job made, as it is now; None where it made none."""
        folder = self._files.test(test)
        if not (folder / parcels.MANIFEST).is_file():
            return None
        parcel = parcels.pack(folder)
        name = parcels.digest(parcel)
        self._hold(test, name)
        if self._store is not None:
            self._store.put(name, parcel)
            parcel = b""
        return Made(test, name, parcel)

    def _new_forks(self) -> dict[str, int]:
        """Return group → workers forked since the last call."""
        now = {name: account.forks for name, account in self._pool.accounts.items()}
        new = {name: forks - self._forks.get(name, 0) for name, forks in now.items()}
        self._forks = now
        return {name: forks for name, forks in new.items() if forks}


def _set_path(paths: tuple[str, ...]) -> None:
    """Have workers find the driver's modules, as far as they are here, and none that came with Ray."""
    ray = importlib.util.find_spec("ray")
    inside = Path(ray.origin).parent if ray is not None and ray.origin else None
    own = [x for x in sys.path if inside is None or not Path(x).absolute().is_relative_to(inside)]
    sys.path[:] = [*own, *(x for x in paths if x not in own and Path(x).exists())]
