"""What capture of PyTorch costs and sees, on test files of a real checkout: `python benchmarks/capture.py CHECKOUT [FILE ...]`.

Each file is run by pytest in processes of its own, with and without capture (the same plugin, the same seeds). CPU is the user
time of pytest, the best of `--repeat` runs. Outcomes are compared test by test. OPERA_PYTORCH may name the checkout too.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
from collections import Counter
from pathlib import Path

from opera import temporary

FILES = (
    "test/nn/test_pooling.py", "test/nn/test_dropout.py", "test/nn/test_embedding.py", "test/nn/test_multihead_attention.py",
    "test/test_shape_ops.py", "test/test_sort_and_select.py",
)  # fmt: skip
MOST_SLOWDOWN = 1.5
SHOWN = 4


def main() -> int:
    """Print one row a file; return 1 if an outcome changed, 0 otherwise (also where there is no checkout)."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", nargs="?", default=os.environ.get("OPERA_PYTORCH", ""))
    parser.add_argument("files", nargs="*", default=FILES)
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=1800)
    given = parser.parse_intermixed_args()
    if not Path(given.checkout, "test", "test_torch.py").is_file() or not given.checkout:
        print(
            "skipped: no PyTorch checkout (name one, or set OPERA_PYTORCH; docs/performance.md says where to get one)"
        )
        return 0
    print(
        "| file | tests | calls | distinct instances | operators | CPU without, with (s) | slowdown | outcomes changed |"
    )
    print("|---|---|---|---|---|---|---|---|")
    notes, changed = [], 0
    for file in given.files:
        plain = _best(Path(given.checkout), file, False, given)
        seen = _best(Path(given.checkout), file, True, given)
        different = sorted(
            name for name in plain["outcomes"].keys() | seen["outcomes"].keys()
            if plain["outcomes"].get(name) != seen["outcomes"].get(name)
        )  # fmt: skip
        changed += len(different)
        slowdown = seen["cpu"] / plain["cpu"]
        print(
            f"| {file} | {len(seen['outcomes'])} | {seen['calls']:,} | {seen['distinct']:,} | {seen['operators']}"
            f" | {plain['cpu']:.1f}, {seen['cpu']:.1f} | {slowdown:.2f} | {len(different)} |", flush=True,
        )  # fmt: skip
        own = seen["calls"] - sum(seen["left_out"].values())
        notes.append(f"{file}: {own:,} calls of operators by test code; left out:")
        notes += [f"  {count:,} {category}" for category, count in Counter(seen["left_out"]).most_common()]
        notes += [
            f"  CHANGED {name}: {plain['outcomes'].get(name)} → {seen['outcomes'].get(name)}"
            for name in different[:SHOWN]
        ]
    print("\n".join(["", *notes]))
    return 1 if changed else 0


def _best(checkout: Path, file: str, capture: bool, given: argparse.Namespace) -> dict[str, object]:
    runs = [_run(checkout, file, capture, given.timeout) for _ in range(given.repeat)]
    return min(runs, key=lambda run: run["cpu"])


def _run(checkout: Path, file: str, capture: bool, timeout: float) -> dict[str, object]:
    with temporary.folder("bench") as folder:
        answer = Path(folder, "answer.json")
        environment = os.environ | {
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0",
            "OMP_NUM_THREADS": "1",
        }  # fmt: skip
        subprocess.run(
            [sys.executable, __file__, "--child", str(checkout), file, str(int(capture)), folder],
            check=True, timeout=timeout, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        result: dict[str, object] = json.loads(answer.read_text())
        return result


def child(checkout: Path, file: str, capture: bool, folder: Path) -> None:
    """Run one file and write `answer.json`."""
    import pytest
    import torch  # noqa: F401 (both set-ups begin with it loaded)

    from opera import resources
    from opera.capture.plugin import Plugin
    from opera.capture.recorder import Recorder
    from opera.libraries.torch import hooks as capture_torch
    from opera.programs.program import parse_captured

    class Outcomes:
        def __init__(self) -> None:
            self.found: dict[str, str] = {}

        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            if report.when == "call" or report.outcome != "passed":
                self.found[report.nodeid.partition("::")[2]] = report.outcome

    outcomes, recorder = Outcomes(), Recorder("benchmark")
    if capture:
        capture_torch.install(recorder, resources.declaration("instrumentation", "torch")["points"])
    spool = folder / "spool"
    recorder.begin(file, spool)
    sys.path.append(str(checkout / "test"))
    options = [
        "-c",
        os.devnull,
        "--rootdir",
        str(folder),
        "--import-mode=importlib",
        "-p",
        "no:cacheprovider",
        "-q",
        "--noconftest",
    ]
    start = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    pytest.main([*options, str(checkout / file)], plugins=[Plugin(recorder), outcomes])
    cpu = resource.getrusage(resource.RUSAGE_SELF).ru_utime - start
    recorder.close()
    instances = {found.id: found.operator for found in (parse_captured(line).program for line in spool.open("rb"))}
    answer = {
        "cpu": cpu, "outcomes": outcomes.found, "calls": recorder.calls, "left_out": recorder.left_out,
        "distinct": len(instances), "operators": len(set(instances.values())), "bytes": spool.stat().st_size,
    }  # fmt: skip
    Path(folder, "answer.json").write_text(json.dumps(answer))
    os._exit(0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(Path(sys.argv[2]), sys.argv[3], sys.argv[4] == "1", Path(sys.argv[5]))
    raise SystemExit(main())
