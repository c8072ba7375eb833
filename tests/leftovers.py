"""Run opera with a temporary folder of its own, and tell what it has left behind: processes and folders."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

from commands import OPERA


class Watched:
    """Commands whose temporary folder is `place`: what they start is known by that name in its environment."""

    def __init__(self, place: Path) -> None:
        self.place = place
        place.mkdir(exist_ok=True)

    def start(self, *arguments: object, cwd: Path | None = None) -> subprocess.Popen[str]:
        """Start a command in a session of its own; its output is text, without a buffer."""
        environment = os.environ | {"TMPDIR": str(self.place), "PYTHONUNBUFFERED": "1"}
        return subprocess.Popen(
            [*OPERA, *map(str, arguments)], cwd=cwd, env=environment, start_new_session=True, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def run(self, *arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        process = self.start(*arguments, cwd=cwd)
        out, err = process.communicate()
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def processes(self) -> dict[int, str]:
        """Return pid → command line of what still runs."""
        found = {}
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and str(self.place).encode() in (entry / "environ").read_bytes():
                    line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    if line:  # none is a zombie's
                        found[int(entry.name)] = line
            except OSError:
                continue
        return found

    def left(self, seconds: float = 20.0) -> list[str]:
        """Return what is still there after so many seconds at the latest: processes, and folders of opera's."""
        deadline = time.monotonic() + seconds
        while True:
            found = [f"{pid} {line}" for pid, line in self.processes().items()]
            found += [path.name for path in self.place.glob("opera-*")]
            if not found or time.monotonic() > deadline:
                return found
            time.sleep(0.1)
