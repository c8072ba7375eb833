"""Run the command line as a user does, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

OPERA = [sys.executable, "-m", "opera.cli"]


def opera(*arguments: object, cwd: Path | None = None, timeout: float = 280) -> subprocess.CompletedProcess[str]:
    """Return the finished process; its output is text."""
    return subprocess.run(
        [*OPERA, *map(str, arguments)], capture_output=True, text=True, cwd=cwd, timeout=timeout, check=False
    )
