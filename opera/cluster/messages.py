"""What the driver and its nodes tell each other, as msgpack: a request and its reply at a time."""

from __future__ import annotations

import contextlib
from hashlib import blake2b
from pathlib import Path

import msgspec

import opera
from opera import resources
from opera.pool.workers import Group


class Read(msgspec.Struct, array_like=True, frozen=True):
    """A migrated test that a job reads, and the digest of its parcel (opera.cluster.parcels)."""

    test: str
    digest: str


class Work(msgspec.Struct, array_like=True):
    """One job; see opera.pool.pool.Pool.submit and opera.programs.verdicts.Uses."""

    number: int
    group: str
    call: str
    payload: msgspec.Raw
    seconds: float
    memory: int
    fresh: bool = False
    twice: bool = True
    reads: tuple[Read, ...] = ()
    makes: tuple[str, ...] = ()
    takes: dict[str, bytes] = {}
    leaves: tuple[str, ...] = ()


class Request(msgspec.Struct, array_like=True):
    """What a node is to do.

    Attributes:
        work: Jobs to be begun in this order.
        groups: Groups that the node does not know yet.
        parcels: Digest → parcel, of tests that the node is thought to lack.
        retire: Workers that are given no other job.
        release: Groups that have nothing to do, and give back their memory.
        until: Seconds from now after which no job begins, and after which none goes on.
        wait: Seconds after which the node answers at the latest.
    """

    work: list[Work] = []
    groups: dict[str, Group] = {}
    parcels: dict[str, bytes] = {}
    retire: list[int] = []
    release: list[str] = []
    until: tuple[float, float] | None = None
    wait: float = 0.0


class Made(msgspec.Struct, array_like=True):
    """A test that a job made or added to; the parcel is empty where it lies in the store."""

    test: str
    digest: str
    parcel: bytes


class Done(msgspec.Struct, array_like=True):
    """What became of a job; see opera.pool.workers.Result. `files` are those that it left, by their names."""

    number: int
    status: str
    raw: bytes
    message: str
    exit: str
    note: str
    mark: str
    log: str
    seconds: float
    worker: int
    busy: bool
    made: list[Made]
    files: dict[str, bytes]


class Reply(msgspec.Struct, array_like=True):
    """What a node has done.

    Attributes:
        done: Jobs that are over, in that order.
        lacking: Jobs that were not begun, for the node has not the tests that they read.
        left: Jobs that the node still has.
        forks: Group → workers forked since it was last told.
        unfit: Why the node is to be given no more jobs, and its jobs are to be done elsewhere; empty where it is well.
    """

    done: list[Done]
    lacking: list[int]
    left: int
    forks: dict[str, int]
    unfit: str = ""


class Hello(msgspec.Struct, array_like=True):
    """What a node says: its name, the digest of the opera that it runs, and whether it works in the driver's folder."""

    name: str
    code: str
    at_home: bool = False


class Home(msgspec.Struct, frozen=True):
    """The folder that tests of the driver are in, so that a node on its machine knows it: nothing moves to or from there.

    A folder that several machines mount is not that of both: what one writes, the other may see a while later.
    """

    path: str
    device: int
    inode: int
    boot: str

    @classmethod
    def of(cls, path: Path) -> Home:
        """Return a folder of this machine."""
        found = path.stat()
        return cls(str(path.absolute()), found.st_dev, found.st_ino, _boot())

    def is_here(self) -> bool:
        """Whether this process sees that very folder, on the same machine."""
        with contextlib.suppress(OSError):
            return Home.of(Path(self.path)) == self
        return False


def _boot() -> str:
    """Return what tells this machine, since it was started, from all others."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def code() -> str:
    """Return the digest of this opera: its modules and its content. Nodes that run another would conclude otherwise."""
    root = Path(opera.__file__).parent
    made = blake2b(digest_size=8)
    for place in (root, resources.content("instrumentation")):
        for path in sorted(path for kind in ("*.py", "*.toml") for path in place.rglob(kind)):
            if (
                place is not root or "_content" not in path.parts
            ):  # a wheel has it inside, a checkout beside the package
                made.update(path.relative_to(place).as_posix().encode())
                made.update(path.read_bytes())
    return made.hexdigest()
