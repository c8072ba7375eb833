"""What the route over a cluster costs, and how far it carries: see docs/cluster.md.

- `python benchmarks/cluster.py overhead [COMPILER ...]`: CPU seconds of `opera run --cluster local` on one node of one worker
  against the local pool, in turns. Workers compute the same on both routes; what differs is the route, the driver and the node.
  `overhead` is what the route takes more, as a share of all that the local run takes, once it is started. Ray's own processes,
  and its threads in the driver and the actor, take a share of a CPU as long as they last, however many tests a node does in
  that time, or none: `idle`, measured for IDLE seconds before each run, is left out of `overhead`, not of `overhead_with_ray`.
- `... simulate [WORKERS ...]`: the real driver, scheduler, messages and workspace over nodes that only wait, on a clock of
  their own: what the driver computes counts as on this machine, what a node does costs its time there (simulation.py).
- `... store [COUNT]`: verdicts a second that the workspace takes in, as a run stores them.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from opera import temporary

OPERA = [sys.executable, "-m", "opera.cli"]
PAIRS, LIMIT, IDLE = 3, 300, 10.0
TICKS = os.sysconf("SC_CLK_TCK")


# ---------------------------------------------------------------------- overhead


def family() -> dict[str, float]:
    """Return the CPU seconds of this process and its descendants so far.

    `workers` and their servers; `route`, the driver and the node's actor; `ray`, its own processes, which take them by the
    second and not by the test.
    """
    found: dict[int, tuple[int, str, float]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            line = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        own, reaped = int(fields[11]) + int(fields[12]), int(fields[13]) + int(fields[14])
        kind = "workers" if b"opera.pool.forkserver" in line else "route"
        if kind == "route" and int(entry.name) != os.getpid() and not line.startswith(b"ray::Actor"):
            kind = "ray"
        found[int(entry.name)] = int(fields[1]), kind, (own + (reaped if kind == "workers" else 0)) / TICKS
    seconds = {"workers": 0.0, "route": 0.0, "ray": 0.0}
    for pid, (_, kind, used) in found.items():
        at = pid
        while at in found and at != os.getpid():
            at = found[at][0]
        if at == os.getpid():
            seconds[kind] += used
    return seconds


def watched(words: list[str]) -> None:
    """Be `opera`, and print what was used before and during a run."""
    from opera.cli import main as opera
    from opera.run import driver

    go = driver._Run.go

    def measured(self: driver._Run) -> driver.Summary:
        idle, began = family(), time.monotonic()
        time.sleep(IDLE)
        before, waited = family(), time.monotonic() - began
        began = time.monotonic()
        summary = go(self)
        after, seconds = family(), time.monotonic() - began
        used = {name: round(after[name] - before[name], 2) for name in after}
        rates = {f"idle_{name}": round((before[name] - idle[name]) / waited, 4) for name in ("route", "ray")}
        told = {**used, **rates, "start": round(sum(idle.values()), 2), "seconds": round(seconds, 1)}
        print(json.dumps(told), flush=True)
        return summary

    driver._Run.go = measured  # type: ignore[method-assign]
    sys.argv = ["opera", *words]
    opera()


def overhead(compilers: list[str]) -> None:
    """Print a line of JSON a compiler."""
    with temporary.folder("bench") as folder:
        subprocess.run(
            [*OPERA, "extract", "onnx", "--workspace", folder / "all"], check=True, stdout=subprocess.DEVNULL
        )
        subprocess.run([*OPERA, "prioritize", "--workspace", folder / "all"], check=True, stdout=subprocess.DEVNULL)
        for compiler in compilers:
            used: dict[str, list[dict[str, float]]] = {"local": [], "cluster": []}
            for route in ("local", "cluster") * PAIRS:
                shutil.copytree(folder / "all", folder / "run")
                words = ["run", "--compiler", compiler, "--limit", str(LIMIT), "--workers", "1", "--no-reduce"]
                more = ["--cluster", "local"] if route == "cluster" else []
                done = subprocess.run(
                    [sys.executable, __file__, "watched", "--", *words, *more, "--workspace", str(folder / "run")],
                    check=True, capture_output=True, text=True,
                )  # fmt: skip
                used[route].append(json.loads(next(x for x in done.stdout.splitlines() if x.startswith('{"'))))
                shutil.rmtree(folder / "run")
            middle = {
                route: {name: statistics.median(x[name] for x in runs) for name in runs[0]}
                for route, runs in used.items()
            }
            local, cluster = middle["local"], middle["cluster"]
            all_more = cluster["route"] + cluster["ray"] - local["route"]
            more_seconds = cluster["route"] - local["route"] - cluster["idle_route"] * cluster["seconds"]
            told = {
                "compiler": compiler, "tests": LIMIT, **used,
                "overhead": round(more_seconds / (local["route"] + local["workers"]), 3),
                "overhead_with_ray": round(all_more / (local["route"] + local["workers"]), 3),
                "idle_share_of_a_cpu": round(cluster["idle_route"] + cluster["idle_ray"], 3),
                "cpu_ms_a_test_more": round(1000 * more_seconds / LIMIT, 2),
                "cpu_seconds_of_a_start_more": round(cluster["start"] - local["start"], 1),
            }  # fmt: skip
            print(json.dumps(told), flush=True)


# ---------------------------------------------------------------------- the simulation, and the store


def simulate(workers: list[int]) -> None:
    """Print a line of JSON a number of workers: nodes of 16, of which every eighth is half as fast."""
    from simulation import filled
    from simulation import simulate as run

    with temporary.folder("bench") as folder:
        words = ["--operator", "A*", "--compiler", "onnxruntime", "--no-reduce", "--workspace", folder / "real"]
        subprocess.run(
            [*OPERA, "extract", "onnx", "--workspace", folder / "real"], check=True, stdout=subprocess.DEVNULL
        )
        subprocess.run([*OPERA, "run", *words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for count in workers:
            mean = 0.5 if count < 500 else 1.0
            filled(folder / str(count), count * (200 if count < 500 else 80), folder / "real")
            print(json.dumps(run(folder / str(count), count // 16, 16, mean)), flush=True)


def store(count: int) -> None:
    """Print verdicts a second of CPU and of the wall, stored a thousand at a time beside their findings and the run's row."""
    from opera.programs.verdicts import PASS, Outcome, Seen
    from opera.store.rows import Verdict
    from opera.store.workspace import Workspace

    with tempfile.TemporaryDirectory() as folder, Workspace.open(Path(folder, "w"), write=True) as workspace:
        number, environment = workspace.start_run({}), workspace.save_environment({"compiler": "x"})
        outcome = Outcome(PASS, seconds={"load": 0.1, "compile": 0.2, "infer": 0.3}, seen=Seen(identical=True))
        began, computed, speeds = time.perf_counter(), time.process_time(), []
        for first in range(0, count, 1000):
            here = time.process_time()
            verdicts = [
                Verdict(f"{x:020x}", "x-onnx", "inputs", environment, outcome) for x in range(first, first + 1000)
            ]
            workspace.save_verdicts(number, verdicts, {})
            workspace.save_run(number, {}, finished=False)
            speeds.append(1000 / (time.process_time() - here))
        told = {
            "verdicts": count, "a_cpu_second": round(count / (time.process_time() - computed)),
            "a_second": round(count / (time.perf_counter() - began)), "the_slowest_thousand_a_cpu_second": round(min(speeds)),
        }  # fmt: skip
        print(json.dumps(told))


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("overhead", "simulate", "store", "watched"))
    parser.add_argument("words", nargs="*")
    given = parser.parse_args()
    if given.what == "overhead":
        overhead(given.words or ["onnxruntime", "openvino"])
    elif given.what == "simulate":
        simulate([int(x) for x in given.words] or [64, 1000])
    elif given.what == "store":
        store(int(given.words[0]) if given.words else 100_000)
    else:
        watched(given.words)


if __name__ == "__main__":
    main()
