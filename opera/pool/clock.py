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

from opera import processes

RUNNABLE = "RD"
"""States of /proc/PID/stat in which a process has, or waits for, a CPU or a disk."""
BACKSTOP = 20.0
"""A job may take so many times its limit in wall seconds on an idle machine, for the sake of one that is never served."""
LEAST_BACKSTOP = 120.0


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


def tree(pid: int) -> tuple[float, bool]:
    """Return the CPU seconds of a process and its descendants, and whether a thread of any of them can run."""
    cpu, runnable = 0.0, False
    left, seen = [pid], {pid}
    while left:
        one = left.pop()
        found = processes.look(one)
        if found is None:
            continue
        cpu += found.cpu
        runnable = runnable or found.state in RUNNABLE or any(_runs(one, thread) for thread in processes.threads(one))
        children = processes.children(one) - seen
        seen |= children
        left.extend(children)
    return cpu, runnable


def _runs(pid: int, thread: int) -> bool:
    found = processes.look(pid, thread)
    return found is not None and found.state in RUNNABLE
