"""How many questions a probe answers in a second: `python benchmarks/probe.py [--count N] [--workers N]`.

For each ONNX frontend that is installed, over ONNX's node tests in random order: stored tests, as confirmation and replay ask
about; programs that no workspace holds, which are wrapped first, as searches and reduction ask about; one program at a time,
as a search does that needs each answer before the next question; and stored tests in a fresh fork each. Warm: imports are done.
CPU seconds are those of all processes; `if free` is what that comes to where nothing else is on the cores: as many as there are
workers, and one where each question waits for the answer to the last.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from opera import compilers, temporary
from opera.programs.program import Captured, parse_captured
from opera.run.probe import Probe, Question
from opera.store.workspace import Workspace

OPERA = [sys.executable, "-m", "opera.cli"]
ONE_BY_ONE = 4
"""So many times fewer questions are asked one at a time, or in a fresh fork each."""


def prepared(root: Path) -> Path:
    """Return a workspace whose node tests are wrapped, for one frontend ran over them."""
    for arguments in (
        ["extract", "onnx"],
        ["prioritize", "--compiler", "onnxruntime"],
        ["run", "--compiler", "onnxruntime"],
    ):
        command = [*OPERA, *arguments, "--workspace", str(root)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return root


def spent() -> float:
    """Return the CPU seconds of this process and of all that live under it."""
    tick, own = os.sysconf("SC_CLK_TCK"), resource.getrusage(resource.RUSAGE_SELF)
    total = own.ru_utime + own.ru_stime
    parents, used = dict[int, list[int]](), dict[int, float]()
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        pid = int(entry.parent.name)
        parents.setdefault(int(fields[1]), []).append(pid)
        used[pid] = sum(map(int, fields[11:15])) / tick  # user and system, its own and those of children that ended
    queue = list(parents.get(os.getpid(), ()))
    while queue:
        pid = queue.pop()
        total += used[pid]
        queue.extend(parents.get(pid, ()))
    return total


def measure(ask: Callable[[], int], cores: int) -> str:
    """Return a table's cells: questions, a second, CPU ms each, a second if so many cores were free."""
    before, began = spent(), time.perf_counter()
    count = ask()
    seconds, cpu = time.perf_counter() - began, spent() - before
    return f"{count} | {count / seconds:.0f} | {1000 * cpu / count:.1f} | {count * cores / cpu:.0f}"


def rows(workspace: Workspace, frontend: str, count: int, workers: int) -> None:
    """Measure one frontend, and print its rows."""
    tests = [x for (x,) in workspace.query("SELECT id FROM tests WHERE status = 'valid' ORDER BY id")]
    random.Random(1).shuffle(tests)
    programs: list[Captured] = []
    for test in tests[:count]:
        [(instance,)] = workspace.query("SELECT instance FROM tests WHERE id = ?", (test,))
        programs.append(parse_captured(msgspec.json.encode(workspace.captured_form(instance))))
    stored = [Question(frontend=frontend, test=x) for x in tests[:count]]
    made_up = [Question(frontend=frontend, program=x) for x in programs]
    few = count // ONE_BY_ONE
    fresh = [Question(frontend=frontend, test=x, fresh=True) for x in tests[:few]]

    def tell(name: str, ask: Callable[[], int], cores: int = workers) -> None:
        print(f"| {frontend} | {name} | {measure(ask, cores)} |", flush=True)

    with Probe(workspace.root, workers=workers) as probe:
        list(probe.ask(stored[: 8 * workers]))  # imports, and what a compiler does once
        tell("stored tests", lambda: len(list(probe.ask(stored))))
        tell("stored tests, a fresh fork each", lambda: len(list(probe.ask(fresh))))
    with Probe(workers=workers) as probe:  # it knows of no workspace, so that every program is wrapped
        list(probe.ask(made_up[: 8 * workers]))
        tell("new programs, wrapping included", lambda: len(list(probe.ask(made_up))))
        tell("new programs, one at a time", lambda: len([probe(x) for x in made_up[:few]]), cores=1)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--count", type=int, default=400, help="questions of a kind")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--frontend", action="append", help="may be given again (default: those of three compilers)")
    parser.add_argument("--workspace", type=Path, help="with wrapped node tests (default: one is made)")
    options = parser.parse_args()
    names = options.frontend or [compilers.frontend_name(x, "onnx") for x in ("onnxruntime", "openvino", "tvm")]
    print(
        "| frontend | what is asked | questions | a second | CPU ms each | a second if free |\n|---|---|---|---|---|---|"
    )
    with temporary.folder("bench") as folder:
        root = options.workspace or prepared(folder / "workspace")
        with Workspace.open(root, write=False) as workspace:
            for name in names:
                rows(workspace, name, options.count, options.workers)


if __name__ == "__main__":
    main()
