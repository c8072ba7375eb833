"""What Linux lets a process ask about others: to end with its parent, and to have its descendants' orphans."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_SET_PDEATHSIG, _SET_CHILD_SUBREAPER = 1, 36  # prctl(2)


def end_with(parent: int) -> None:
    """Have the kernel kill this process when its parent ends; also a program that takes its place. Its children live on."""
    _prctl(_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it was too late for that
        os._exit(1)


@contextmanager
def adopting() -> Iterator[None]:
    """Become the parent of the orphans of whatever is started meanwhile, so that `end_adopted` finds them."""
    _prctl(_SET_CHILD_SUBREAPER, 1)
    try:
        yield
    finally:
        _prctl(_SET_CHILD_SUBREAPER, 0)


def end_adopted(own: set[int]) -> int:
    """Kill all children but `own`, and theirs, until none is left; return how many there were that still ran."""
    ended, spared = 0, set(own)
    while rest := children() - spared:
        for pid in rest:
            ended += _runs(pid)
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


def children() -> set[int]:
    """Return the pids of this process's children; empty where the kernel does not list them."""
    found: set[int] = set()
    with suppress(OSError):
        for task in Path("/proc/self/task").iterdir():
            found |= {int(pid) for pid in (task / "children").read_text().split()}
    return found


def _runs(pid: int) -> bool:
    """Whether it is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (OSError, IndexError):
        return False


def _prctl(option: int, value: int) -> None:
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
