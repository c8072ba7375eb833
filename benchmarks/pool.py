"""Compare opera's worker pool with pebble's over a preloaded fork server: throughput, and jobs lost to faults.

`python benchmarks/pool.py`: 3,000 jobs that take no time; 100 jobs each in a fresh fork; 20 jobs of which one dies and one
hangs. Both pools have two workers and the same module preloaded; each figure is the median of three runs.
"""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Callable
from concurrent.futures import TimeoutError as FutureTimeout
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))  # both pools hand sys.path on to their workers

from faults import jobs
from pebble import ProcessExpired, ProcessPool

from opera.pool.pool import Pool
from opera.pool.workers import DONE, Group

WORKERS, TRIVIAL, FRESH, MIXED, LIMIT = 2, 3000, 100, 20, 2.0


def with_opera(call: str, count: int, fresh: bool) -> tuple[float, int]:
    """Return seconds (the first job, which waits for imports, excluded) and how many jobs were answered."""
    with Pool({"jobs": Group(call="faults.jobs:double", preload=("faults.jobs",))}, workers=WORKERS) as pool:
        pool.submit("jobs", 0, seconds=60)
        list(pool.results())
        begin = time.perf_counter()
        for number in range(count):
            pool.submit("jobs", number, seconds=LIMIT, call=call, fresh=fresh)
        answered = sum(result.status == DONE for result in pool.results())
        return time.perf_counter() - begin, answered


def with_pebble(function: Callable[[int], int], count: int, fresh: bool) -> tuple[float, int]:
    """The same with pebble."""
    context: Any = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["faults.jobs"])
    with ProcessPool(max_workers=WORKERS, max_tasks=1 if fresh else 0, context=context) as pool:
        pool.schedule(jobs.double, args=[0]).result()
        begin = time.perf_counter()
        futures = [pool.schedule(function, args=[number], timeout=LIMIT) for number in range(count)]
        answered = 0
        for future in futures:
            try:
                future.result()
                answered += 1
            except (ProcessExpired, FutureTimeout):
                pass
        return time.perf_counter() - begin, answered


def main() -> None:
    print(f"{'':24}{'opera':>22}{'pebble':>22}")
    for name, call, function, count, fresh in (
        ("trivial jobs", "faults.jobs:double", jobs.double, TRIVIAL, False),
        ("a fresh fork a job", "faults.jobs:double", jobs.double, FRESH, True),
        ("one dies, one hangs", "faults.jobs:mixed", jobs.mixed, MIXED, False),
    ):
        cells = []
        runs = [(with_opera(call, count, fresh), with_pebble(function, count, fresh)) for _ in range(3)]
        for pool in zip(*runs, strict=True):
            seconds, answered = sorted(pool)[1]
            cells.append(f"{count / seconds:8.0f}/s {count - answered:4d} lost")
        print(f"{name:24}{cells[0]:>22}{cells[1]:>22}", flush=True)


if __name__ == "__main__":
    main()
