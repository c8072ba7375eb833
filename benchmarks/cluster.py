"""What the route over a cluster costs, and how far it carries: see docs/cluster.md.

- `python benchmarks/cluster.py overhead [COMPILER ...]`: CPU seconds of all processes of `opera run`, Ray's among them, on one
  node of one worker against the local pool, in turns, for two numbers of tests: their difference is without what a start costs.
  Needs root, for a cgroup of CPU accounting.
- `... simulate`: the real driver, scheduler, messages and workspace over nodes that only wait, on a clock of their own: what
  the driver computes counts as on this machine, what a node does costs its time there. Prints the share
  of workers' time that jobs had.
- `... store [COUNT]`: verdicts a second that the workspace takes in.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

from opera import temporary

OPERA = [sys.executable, "-m", "opera.cli"]
PAIRS = 3
SIZES = (200, 1200)


# ---------------------------------------------------------------------- overhead


def cpu_seconds(command: list[str]) -> float:
    """Return the CPU seconds of a command and of all that it starts, whoever reaps it."""
    v1 = Path("/sys/fs/cgroup/cpuacct")
    group = (v1 if v1.is_dir() else Path("/sys/fs/cgroup")) / f"opera-bench-{os.getpid()}"
    group.mkdir()
    try:
        enter = f'echo $$ > {group}/cgroup.procs && exec "$@"'
        subprocess.run(
            ["sh", "-c", enter, "sh", *command], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while (group / "cgroup.procs").read_text().strip():  # daemons end a moment later
            time.sleep(0.05)
        if v1.is_dir():
            return int((group / "cpuacct.usage").read_text()) / 1e9
        stat = dict(line.split() for line in (group / "cpu.stat").read_text().splitlines())
        return int(stat["usage_usec"]) / 1e6
    finally:
        group.rmdir()


def overhead(compilers: list[str]) -> None:
    """Print a line of JSON a compiler: CPU seconds of both routes, and the ratio of what a further test costs."""
    with temporary.folder("bench") as folder:
        subprocess.run(
            [*OPERA, "extract", "onnx", "--workspace", folder / "all"], check=True, stdout=subprocess.DEVNULL
        )
        subprocess.run([*OPERA, "prioritize", "--workspace", folder / "all"], check=True, stdout=subprocess.DEVNULL)
        for compiler in compilers:
            used: dict[tuple[str, int], list[float]] = {}
            for size in SIZES * PAIRS:
                for route in ("local", "cluster"):
                    shutil.copytree(folder / "all", folder / "run")
                    words = ["run", "--compiler", compiler, "--limit", str(size), "--workers", "1", "--no-reduce"]
                    more = ["--cluster", "local"] if route == "cluster" else []
                    taken = cpu_seconds([*OPERA, *words, *more, "--workspace", str(folder / "run")])
                    used.setdefault((route, size), []).append(round(taken, 2))
                    shutil.rmtree(folder / "run")
            middle = {key: statistics.median(x) for key, x in used.items()}
            each = {
                x: (middle[x, SIZES[1]] - middle[x, SIZES[0]]) / (SIZES[1] - SIZES[0]) for x in ("local", "cluster")
            }
            told = {
                "compiler": compiler,
                "cpu_seconds": {f"{route} {size}": x for (route, size), x in used.items()},
                "cpu_ms_a_further_test": {name: round(1000 * x, 2) for name, x in each.items()},
                "ratio_of_further_tests": round(each["cluster"] / each["local"], 3),
                "cpu_seconds_of_a_start": round(
                    middle["cluster", SIZES[0]]
                    - middle["local", SIZES[0]]
                    - SIZES[0] * (each["cluster"] - each["local"]),
                    1,
                ),
            }
            print(json.dumps(told), flush=True)


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("overhead", "simulate", "store"))
    parser.add_argument("words", nargs="*")
    given = parser.parse_args()
    if given.what == "overhead":
        overhead(given.words or ["onnxruntime", "openvino"])


if __name__ == "__main__":
    main()
