"""Run the command line as a user does, in a process of its own."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

OPERA = [sys.executable, "-m", "opera.cli"]


def opera(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Return the finished process; its output is text."""
    return subprocess.run([*OPERA, *map(str, arguments)], capture_output=True, text=True, cwd=cwd, check=False)


def cpu_seconds_of_children() -> float:
    """Return what ended child processes of this one have computed: a busy machine hardly stretches that, as it does time."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
