"""What Linux tells of processes, and lets one ask: to end with its parent, to adopt orphans. Standard library only."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

_SET_PDEATHSIG, _SET_CHILD_SUBREAPER = 1, 36  # prctl(2)
_TICK = 1.0 / os.sysconf("SC_CLK_TCK")
_EXITING = 0x4
"""PF_EXITING of the kernel's include/linux/sched.h: set before the files of a dying process are closed."""


class Process(NamedTuple):
    """One look at a process: state letter, the kernel's flags, CPU seconds of it and of its children that were waited for."""

    state: str
    flags: int
    cpu: float

    @property
    def stopped(self) -> bool:
        """Whether a signal has stopped it."""
        return self.state in "Tt"

    @property
    def ended(self) -> bool:
        """Whether it is a zombie, or about to be one."""
        return self.state in "ZX" or bool(self.flags & _EXITING)


def look(pid: int, thread: int = 0) -> Process | None:
    """Look at a process, or at one of its threads; None where it is gone."""
    path = f"/proc/{pid}/task/{thread}/stat" if thread else f"/proc/{pid}/stat"
    try:
        fields = Path(path).read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return Process(fields[0], int(fields[6]), sum(map(int, fields[11:15])) * _TICK)


def threads(pid: int) -> list[int]:
    """Return the threads of a process, itself among them; none where it is gone."""
    with suppress(OSError):
        return [int(name) for name in os.listdir(f"/proc/{pid}/task")]  # noqa: PTH208  (names alone)
    return []


def children(pid: int = 0) -> set[int]:
    """Return the pids of a process's children, by default this one's; empty where the kernel does not list them."""
    pid = pid or os.getpid()
    found: set[int] = set()
    for thread in threads(pid):
        with suppress(OSError):
            found |= {int(child) for child in Path(f"/proc/{pid}/task/{thread}/children").read_text().split()}
    return found


def end_with_parent(yes: bool = True) -> None:
    """Have the kernel kill this process when its parent ends; also a program that takes its place. Its children live on."""
    _prctl(_SET_PDEATHSIG, signal.SIGKILL if yes else 0)


def end_with(parent: int, code: int = 1) -> None:
    """As `end_with_parent`; ends at once, with an exit code, where the parent has ended already."""
    end_with_parent()
    if os.getppid() != parent:
        os._exit(code)


def adopt(yes: bool = True) -> None:
    """Become the parent of the orphans of whatever this process has started."""
    _prctl(_SET_CHILD_SUBREAPER, yes)


@contextmanager
def adopting() -> Iterator[None]:
    """Adopt orphans meanwhile, so that `end_adopted` finds them."""
    adopt()
    try:
        yield
    finally:
        adopt(False)


def end_adopted(own: set[int]) -> int:
    """Kill all children but `own`, and theirs, until none is left; return how many there were that still ran."""
    ended, spared = 0, set(own)
    while rest := children() - spared:
        for pid in rest:
            found = look(pid)
            ended += found is not None and found.state != "Z"
            try:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            except PermissionError:  # it has become another user's
                spared.add(pid)
            except (ProcessLookupError, ChildProcessError):
                continue
    return ended


def signal_name(number: int) -> str:
    """Return `SIGSEGV` of 11; signals of one's own have no names."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _prctl(option: int, value: int) -> None:
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
