"""Measure the whole way over what a library's package ships: extract, prioritize, and run.

`python benchmarks/pipeline.py [--library onnx] [--compiler NAME ...] [--limit N]` prints a Markdown table; seconds are wall
seconds, memory is the peak of the summed proportional set sizes (PSS) of all processes of a command.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from opera import temporary

OPERA = [sys.executable, "-m", "opera.cli"]
SAMPLE_SECONDS = 0.5


def measured(*arguments: object) -> tuple[float, float]:
    """Run a command; return wall seconds and peak memory in MiB."""
    began = time.perf_counter()
    process = subprocess.Popen([*OPERA, *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    peak = 0.0
    while process.poll() is None:
        peak = max(peak, sum(map(_pss, _family(process.pid))))
        time.sleep(SAMPLE_SECONDS)
    if process.returncode:
        raise SystemExit(f"opera {' '.join(map(str, arguments))} ended with {process.returncode}")
    return time.perf_counter() - began, peak / 1024


def _family(pid: int) -> list[int]:
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found, queue = [], [pid]
    while queue:
        found.append(queue.pop())
        queue.extend(parents.get(found[-1], ()))
    return found


def _pss(pid: int) -> float:
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return float(line.split()[1])
    except OSError:
        pass
    return 0.0


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", default="onnx")
    parser.add_argument("--compiler", action="append", default=[])
    parser.add_argument("--limit", type=int)
    options = parser.parse_args()
    more = ["--limit", options.limit] if options.limit else []
    for name in options.compiler:
        more += ["--compiler", name]
    with temporary.folder("bench") as folder:
        root = folder / "workspace"
        at = ["--workspace", root]
        print("| command | seconds | memory, MiB |\n|---|---|---|")
        for command in (["extract", options.library], ["prioritize"], ["run", *more]):
            seconds, peak = measured(*command, *at)
            print(f"| `opera {' '.join(map(str, command))}` | {seconds:.1f} | {peak:.0f} |", flush=True)
        text = subprocess.run(
            [*OPERA, "report", "--format", "json", *map(str, at)], capture_output=True, check=True
        ).stdout
        found = json.loads(text)
        size = sum(path.stat().st_size for path in root.rglob("*") if path.is_file()) / (1 << 20)
        print(f"\n{os.cpu_count()} cores; workspace {size:.0f} MiB; {len(found['findings'])} findings\n")
        print("| frontend | version | tests | seconds inside | wall | efficiency | tests/s | confirmation | verdicts |")
        print("|---|---|---|---|---|---|---|---|---|")
        for x in found["frontends"]:
            told = ", ".join(f"{count} {name}" for name, count in x["verdicts"].items() if count)
            print(
                f"| {x['name']} | {x['compiler_version']} | {x['tests']} | {x['seconds']:.1f} | {x['wall_seconds']:.1f}"
                f" | {x['efficiency']:.2f} | {x['tests'] / x['wall_seconds']:.0f} | {x['confirmation_seconds']:.1f} | {told} |"
            )


if __name__ == "__main__":
    main()
