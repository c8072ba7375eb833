"""The recorder: what hooks hand their observations to. It never fails the code that it watches."""

from __future__ import annotations

import errno
import functools
import importlib
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import msgspec

from opera.capture.sites import Line, Site
from opera.errors import OperaError
from opera.programs.program import Captured, Program, Provenance, identity
from opera.programs.values import Value

MAX_DEFERRED = 10_000
"""More observations than this are not put off within one test."""


class LeftOut(Exception):
    """Something seen is not recorded; its text is the category that reports count."""


class _Spool:
    """A file of lines, each in one write: a process that dies leaves at most one cut line.

    What is watched may close every descriptor, and open files of its own under the same numbers: those are not written to.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._cut = path.absolute(), False
        self._open()

    def write(self, line: bytes) -> None:
        """Append a line. Raises OSError where there is no room; what was written of it then ends before the next one."""
        if not self._mine():
            self._open()
        data = b"\n" * self._cut + line + b"\n"
        self._cut = True
        if os.write(self._file, data) < len(data):
            raise OSError(errno.ENOSPC, "a line was cut")
        self._cut = False

    def close(self) -> None:
        if self._mine():
            os.close(self._file)

    def _open(self) -> None:
        self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._identity = self._found()

    def _mine(self) -> bool:
        try:
            return self._found() == self._identity
        except OSError:
            return False

    def _found(self) -> tuple[int, int]:
        status = os.fstat(self._file)
        return status.st_dev, status.st_ino


class Recorder:
    """Writes captured instances of one file at a time as JSON lines into a spool.

    Attributes:
        test: Name of the test that runs now.
        calls: Observations so far, recorded or not.
        recorded: Lines written.
        left_out: Category → how many observations were not recorded for that reason.
        unwritten: Why something that was seen in this file is lost; such a file is not done.
        keys: What a capture module has seen in this file, for its own duplicate checks.
        around: Makers of contexts in which a capture module wants tests and scripts to run.
        sited: Whether it is wanted which line of the program makes a call (opera.capture.sites).
        operators: What was recorded since the process began.
    """

    def __init__(self, source: str, *, sited: bool = False) -> None:
        self.sited = sited
        self.operators: set[str] = set()
        self.source, self.file, self.test, self.unwritten = source, "", "", ""
        self.calls = self.recorded = 0
        self.left_out: Counter[str] = Counter()
        self.keys: set[Any] = set()
        self.around: list[Callable[[], AbstractContextManager[None]]] = []
        self._deferred: list[Callable[[], None]] = []
        self._spool: _Spool | None = None
        self._sites: _Spool | None = None
        self._calls: dict[Any, int] = {}  # key → what it is called in the file of sites
        self._marks: set[Any] = set()
        self._recorded: set[int] = set()
        self._busy = threading.Lock()

    def begin(self, file: str, spool: Path, sites: Path | None = None) -> None:
        """Start a file; counts and duplicate checks begin anew. Where calls come from is written to `sites`."""
        self.close()
        self.file, self.test, self.unwritten, self.calls, self.recorded = file, "", "", 0, 0
        self.left_out.clear()
        self.keys.clear()
        self._deferred.clear()
        self._calls.clear()
        self._marks.clear()
        self._recorded.clear()
        self._spool = _Spool(spool)
        self._sites = _Spool(sites) if sites is not None and self.sited else None

    def close(self) -> None:
        """Close the spools of the current file."""
        for spool in (self._spool, self._sites):
            if spool is not None:
                spool.close()
        self._spool = self._sites = None

    def observe(self, look: Callable[[], None]) -> None:
        """Run `look`, which inspects a call and records what it finds. Whatever it raises is counted, never passed on.

        What `look` itself calls is not observed, nor what other threads do meanwhile.
        """
        if self._spool is None or not self._busy.acquire(blocking=False):
            return
        try:
            self.calls += 1
            look()
        except LeftOut as category:
            self.left_out[str(category)] += 1
        except OperaError as error:
            self.left_out[f"no encoding: {error.what[:60]}"] += 1
        except Exception as error:
            self.left_out[f"capture failed: {type(error).__name__}"] += 1
        finally:
            self._busy.release()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Run a test, or a whole script, in the contexts of the capture module."""
        with ExitStack() as stack:
            for make in self.around:
                stack.enter_context(make())
            yield

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Look away from what happens inside, for it is seen as a whole elsewhere."""
        mine = self._busy.acquire(blocking=False)
        try:
            yield
        finally:
            if mine:
                self._busy.release()

    def defer(self, look: Callable[[], None]) -> None:
        """Observe at the end of the current test, when what it builds has its final form."""
        if self._busy.locked():
            return
        if len(self._deferred) >= MAX_DEFERRED:
            self.left_out["too many models in one test"] += 1
        else:
            self._deferred.append(look)

    def flush(self) -> None:
        """Make the observations that were put off."""
        deferred, self._deferred = self._deferred, []
        for look in deferred:
            self.observe(look)

    def came(self, key: Any, place: Any, site: Callable[[], Site | None]) -> bool:
        """Note where the call of this key comes from; return whether it was recorded before.

        `place` tells calls of different lines or modules apart, and is hashed at each of them; `site` is asked once for each.
        """
        if self._sites is None:
            return False
        number = self._number(key)
        if (number, place) not in self._marks:
            self._marks.add((number, place))
            if found := site():
                self._write(self._sites, Line(number, site=found))
        return number in self._recorded

    def _number(self, key: Any) -> int:
        number = self._calls.get(key)
        if number is None:
            number = self._calls[key] = len(self._calls)
        return number

    def record(
        self,
        instance: Program,
        *,
        key: Any = None,
        test: str | None = None,
        expected: tuple[Value, ...] | None = None,
        rtol: float | None = None,
        atol: float | None = None,
        reference: str = "",
        tags: tuple[str, ...] = (),
    ) -> None:
        """Write one captured program (see opera.programs.program.Captured), and that calls of `key` (see `came`) are it."""
        provenance = Provenance(self.source, self.file, self.test if test is None else test)
        form = Captured(instance, provenance, expected, rtol, atol, reference, tags).form()
        assert self._spool is not None
        self._write(self._spool, form)
        self.recorded += 1
        self.operators.add(instance.operator)
        if self._sites is not None:
            key = ("recorded", self.recorded) if key is None else key
            name = identity(msgspec.json.encode(form["instance"], order="sorted"))
            number = self._number(key)
            self._recorded.add(number)
            self._write(self._sites, Line(number, name))

    def _write(self, spool: _Spool, line: Any) -> None:
        try:
            spool.write(msgspec.json.encode(line))
        except OSError as error:
            self.unwritten = f"what was captured could not be written: {error.strerror}"
            raise


class Collector(Recorder):
    """Keeps what hooks record in this process, in place of writing it.

    Attributes:
        programs: What was recorded, in the order in which calls began.
    """

    def __init__(self) -> None:
        super().__init__("")
        self.programs: list[Program] = []
        self.begin("", Path(os.devnull))

    def record(self, instance: Program, **_: Any) -> None:
        self.programs.append(instance)


def replace(point: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Replace the callable `module:qualified.name` by what `make` makes of it."""
    module, _, qualified = point.partition(":")
    owner: Any = importlib.import_module(module)
    *path, name = qualified.split(".")
    for step in path:
        owner = getattr(owner, step)
    original = getattr(owner, name)
    setattr(owner, name, functools.update_wrapper(make(original), original, updated=()))
