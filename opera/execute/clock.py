"""How long a job has worked, whatever else the machine is doing. Linux.

A limit in wall seconds misfires where many processes share the cores: a healthy export becomes a time-out. A limit in CPU
seconds never ends what only waits. So both are counted, each where it says something: while a process or one of its
descendants can run, the CPU time that they were given; while all of them wait for something else, the time that goes by.
What a process waits for a CPU counts nothing.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

import msgspec

TICK = 1.0 / os.sysconf("SC_CLK_TCK")
RUNNABLE = "RD"
"""States of /proc/PID/stat in which a process has, or waits for, a CPU or a disk."""
STOPPED = "Tt"
EXITING = 0x4
"""PF_EXITING of the kernel's include/linux/sched.h: set before the files of a dying process are closed."""
BACKSTOP = 20.0
"""A job may take so many times its limit in wall seconds on an idle machine, for the sake of one that is never served."""
LEAST_BACKSTOP = 120.0


class Process(msgspec.Struct, frozen=True):
    """One look at a process: state letter, the kernel's flags, CPU seconds of it and of its children that were waited for."""

    state: str
    flags: int
    cpu: float


class Clock:
    """Counts the seconds of one job at a time, by looks at its process tree."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._at = self._cpu = 0.0
        self._known = False

    def start(self) -> None:
        """Begin anew."""
        self.seconds, self._known = 0.0, False

    def look(self, pid: int) -> float:
        """Return the seconds from the first look after the start to this one; `pid` is 0 where it is not known yet.

        Call it several times a second: of what happened in between, only CPU time is known.
        """
        if not pid:
            return 0.0
        now = time.monotonic()
        cpu, runnable = tree(pid)
        if self._known:
            used, passed = max(0.0, cpu - self._cpu), now - self._at
            self.seconds += used if runnable else max(used, passed)
        self._at, self._cpu, self._known = now, cpu, True
        return self.seconds


def wait(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Wait for a process that leads its own group; where it has worked for `seconds`, kill the group and return False."""
    watch, given_up = Clock(), time.monotonic() + backstop(seconds)
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.1)
            return True
        if watch.look(process.pid) >= seconds or time.monotonic() >= given_up:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return False


def backstop(seconds: float) -> float:
    """Return the wall seconds after which a job that was limited to `seconds` is given up, with regard to the load."""
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    return max(BACKSTOP * seconds, LEAST_BACKSTOP) * max(1.0, load)


def process(pid: int, thread: int = 0) -> Process | None:
    """Look at a process, or at one of its threads; None where it is gone."""
    path = f"/proc/{pid}/task/{thread}/stat" if thread else f"/proc/{pid}/stat"
    try:
        fields = Path(path).read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return Process(fields[0], int(fields[6]), sum(map(int, fields[11:15])) * TICK)


def tree(pid: int) -> tuple[float, bool]:
    """Return the CPU seconds of a process and its descendants, and whether a thread of any of them can run."""
    cpu, runnable = 0.0, False
    left, seen = [pid], {pid}
    while left:
        one = left.pop()
        found = process(one)
        if found is None:
            continue
        cpu += found.cpu
        threads = _threads(one)
        runnable = runnable or found.state in RUNNABLE or any(_runs(one, thread) for thread in threads if thread != one)
        for thread in threads:
            children = _children(one, thread) - seen
            seen |= children
            left.extend(children)
    return cpu, runnable


def _runs(pid: int, thread: int) -> bool:
    found = process(pid, thread)
    return found is not None and found.state in RUNNABLE


def _threads(pid: int) -> list[int]:
    try:
        return sorted(map(int, os.listdir(f"/proc/{pid}/task")))  # noqa: PTH208  (names alone)
    except OSError:
        return []


def _children(pid: int, thread: int) -> set[int]:
    try:
        return {int(child) for child in Path(f"/proc/{pid}/task/{thread}/children").read_text().split()}
    except OSError:
        return set()
