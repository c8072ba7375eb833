"""A corpus of a hundred thousand instances: `python benchmarks/scale.py [WORKSPACE]`.

The corpus is what `opera extract torch` records, which is measured too, unless a workspace that holds it is named: that one is
ranked anew. `starts` is what a command does before its own work. Memory is the peak of the summed proportional set sizes (PSS).
"""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
from pipeline import measured

from opera import temporary
from opera.programs.program import Captured, parse_captured, parse_instance
from opera.store.workspace import Workspace

OPERA = [sys.executable, "-m", "opera.cli"]
COUNT = 100_000
PLAN = """
import sys
from pathlib import Path
from opera import compilers
from opera.run import plan
from opera.store.workspace import Workspace
with Workspace.open(Path(sys.argv[1]), write=False) as workspace:
    names = [name for name in compilers.registered() if "torch" in compilers.get(name).FRONTENDS]
    frontends = [plan.InstalledFrontend(f"{name}-torch", name, "torch", "", "", "", ()) for name in names]
    next(plan.merged(x.items() for x in plan.queues(workspace, frontends, plan.Selection())[0]))
"""


def run(*command: object) -> dict[str, float]:
    """Return wall and CPU seconds of a command with all its children, which must succeed."""
    before, began = _cpu(), time.perf_counter()
    subprocess.run([*map(str, command)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return {"seconds": round(time.perf_counter() - began, 2), "cpu_seconds": round(_cpu() - before, 2)}


def opera(*arguments: object) -> dict[str, float]:
    """Likewise for opera itself, with its peak memory in MiB."""
    before = _cpu()
    seconds, peak = measured(*arguments)
    return {"seconds": round(seconds, 2), "cpu_seconds": round(_cpu() - before, 2), "peak_mib": round(peak)}


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def storing(workspace: Workspace, folder: Path) -> dict[str, float]:
    """Store COUNT instances as an extraction does, out of its spool into an empty workspace."""
    spool = folder / "spool.jsonl"
    encoder, size = msgspec.json.Encoder(), 0
    with spool.open("wb") as lines:
        for size, (_, name, document, _) in enumerate(workspace.documents("torch"), 1):
            record = Captured(parse_instance(document), workspace.provenances(name)[0])
            lines.write(encoder.encode(record.form()) + b"\n")
            if size == COUNT:
                break
    with spool.open("rb") as lines, Workspace.open(folder / "stored", write=True) as other:
        began = time.process_time()
        other.add_captured(parse_captured(line) for line in lines)
        seconds = time.process_time() - began
    taken = (folder / "stored" / "opera.sqlite").stat().st_size
    return {"instances": size, "cpu_seconds": round(seconds, 2), "workspace_mb": round(taken / 1e6)}


def starts(root: Path, instance: str) -> dict[str, dict[str, float]]:
    """Run the commands that look something up, and what `opera run` does before its first test."""
    at = ("--workspace", root)
    commands: dict[str, Callable[[], dict[str, float]]] = {
        "extract --help": lambda: run(*OPERA, "extract", "--help"),
        "findings": lambda: run(*OPERA, "findings", *at),
        "show INSTANCE": lambda: run(*OPERA, "show", instance, *at),
        "report": lambda: run(*OPERA, "report", *at),
        "run: its plan": lambda: run(sys.executable, "-c", PLAN, root),
    }
    return {name: command() for name, command in commands.items()}


def main(given: str | None) -> None:
    """Print one line of JSON a measurement."""
    with temporary.folder("bench") as folder:
        root = Path(given) if given else folder / "corpus"
        if not given:
            extracted = opera("extract", "torch", "--workspace", root)
            print(json.dumps({"extract torch": extracted}), flush=True)
        with Workspace.open(root, write=False) as workspace:
            ((count,),) = workspace.query("SELECT COUNT(*) FROM instances WHERE library = 'torch'")
            ((instance,),) = workspace.query("SELECT id FROM instances LIMIT 1")
            print(
                json.dumps({"instances": count, "mb": round((root / "opera.sqlite").stat().st_size / 1e6)}), flush=True
            )
            print(json.dumps({"storing": storing(workspace, folder)}), flush=True)
        shutil.rmtree(folder / "stored")
        print(json.dumps({"prioritize": opera("prioritize", "--library", "torch", "--workspace", root)}), flush=True)
        print(json.dumps({"starts": starts(root, instance)}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
