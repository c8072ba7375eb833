"""The data interface on a hundred thousand verdicts: `python benchmarks/data.py [VERDICTS]`.

The workspace is made through the real store. One line of JSON a measurement: wall and CPU seconds (of a second call, imports
being done), rows, and the peak memory of the process in MiB. Asked for: all verdicts as a DataFrame in 2 s.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import msgspec

import opera
from opera import temporary
from opera.data import formats
from opera.data.query import query
from opera.oracle.signature import Signature
from opera.programs.program import Captured, Instance, Operand, Provenance
from opera.programs.values import Tensor
from opera.programs.verdicts import CRASH, PASS, SCREENED, UNSUPPORTED, Outcome, Seen
from opera.store.rows import Test, Verdict
from opera.store.workspace import Workspace

COUNT, MOST_SECONDS = 100_000, 2.0
COMPILERS = ("onnxruntime", "openvino", "tvm", "tvm-old")
OPERATORS, CAUSES = 150, 400
COMPARED = {
    "differing": 0, "elements": 15, "max_abs": 0.0, "max_rel": 0.0, "rtol": 1e-3, "atol": 1e-5, "output": "Y", "chebyshev": 0.0,
    "paper_rule": False,
}  # fmt: skip
TEXT = "Check failed: the type of the operand is not what the operator takes, at frontend/onnx/onnx_frontend.py:#; " * 6


def fill(workspace: Workspace, count: int) -> None:
    """Store a corpus, its tests, a ranking for each compiler, and `count` verdicts of four compilers: 60 % pass, 25 % fail."""
    number = count // len(COMPILERS)
    instances = [_instance(place) for place in range(number)]
    workspace.add_captured(
        Captured(x, Provenance("suite", f"file{place % 90}.py", f"test_{place}")) for place, x in enumerate(instances)
    )
    workspace.save_tests("exporter", [Test(f"t{place:019x}", x.id, "valid") for place, x in enumerate(instances)])
    run = workspace.start_run({"workers": 2})
    for compiler in COMPILERS:
        workspace.save_ranking("onnx", compiler, "opera-wide", {}, list(range(1, number + 1)))
        document = {
            "compiler": compiler, "version": "1.0", "library": "onnx", "library_version": "1.23", "options": {},
            "exporter": {}, "oracle": "1",
        }  # fmt: skip
        environment = workspace.save_environment(document)
        frontend = f"{compiler}-onnx"
        signatures = [_signature(frontend, cause) for cause in range(CAUSES)]
        encoded = {x.id: msgspec.json.encode(x) for x in signatures}
        workspace.save_verdicts(run, _verdicts(number, frontend, environment), encoded)


def _instance(place: int) -> Instance:
    value = Tensor("float32", (2, place % 7 + 1), bytes(8 * (place % 7 + 1)))
    return Instance(
        "onnx", f"Op{place % OPERATORS}", {"axis": place}, (Operand("X", value),), ("Y",), {"opset": {"": 21}}
    )


def _verdicts(count: int, frontend: str, environment: str) -> Iterator[Verdict]:
    for place in range(count):
        cause = place % CAUSES
        outcome = _outcome(place % 20, cause)
        finding = _signature(frontend, cause).id if outcome.verdict == CRASH else ""
        yield Verdict(
            f"t{place:019x}", frontend, "inputs", environment, outcome, finding, finding and "confirmed", "rules"
        )


def _outcome(kind: int, cause: int) -> Outcome:
    seconds, converter = (
        {"load": 0.01, "compile": 0.02, "infer": 0.001},
        f"onnx_frontend:Op{cause % OPERATORS}._impl_v13",
    )
    if kind < 5:
        seen, details = Seen(frames=("a:b:1",) * 8), {"tags": ["single-reference"]}
        place = "onnx_frontend.py:_impl_v13"
        return Outcome(
            CRASH, "load", "ValueError", TEXT.replace("#", str(cause)), place, converter, seconds, details, seen
        )
    if kind < 7:
        return Outcome(UNSUPPORTED, "load", "OpNotImplemented", TEXT[:90], "", converter, seconds)
    if kind < 8:
        return Outcome(SCREENED, "infer", "value", "Y: 2 of 4", "", "", seconds, {"screen": "ill-conditioned"})
    return Outcome(PASS, seconds=seconds, details=COMPARED, seen=Seen(identical=True))


@cache
def _signature(frontend: str, cause: int) -> Signature:
    return Signature.of(frontend, f"Op{cause % OPERATORS}", _outcome(0, cause))


def measured(what: Callable[[], Any]) -> dict[str, float]:
    """Run it twice, and return what the second took."""
    what()
    began, cpu = time.perf_counter(), time.process_time()
    rows = what()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "seconds": round(time.perf_counter() - began, 2), "cpu_seconds": round(time.process_time() - cpu, 2),
        "rows": rows, "peak_mib": round(peak),
    }  # fmt: skip


def importing() -> float:
    """Return the seconds that `import opera` takes beside Python's own start, the best of five."""

    def best(code: str) -> float:
        taken = []
        for _ in range(5):
            began = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True)
            taken.append(time.perf_counter() - began)
        return min(taken)

    return round(best("import opera") - best("pass"), 3)


def main(count: int) -> int:
    """Print one line of JSON a measurement; return 1 where all verdicts take more CPU seconds than was asked for."""
    print(json.dumps({"import opera": importing()}), flush=True)
    with temporary.folder("bench") as folder:
        root = folder / "workspace"
        with Workspace.open(root, write=True) as workspace:
            began = time.perf_counter()
            fill(workspace, count)
            print(json.dumps({"filled": round(time.perf_counter() - began, 1)}), flush=True)
        with opera.open(root) as results, Workspace.open(root, write=False) as workspace:
            csv, parquet = folder / "verdicts.csv", folder / "verdicts.parquet"
            work: dict[str, Callable[[], Any]] = {
                "csv": lambda: formats.write(workspace, "verdicts", query(), "csv", csv),
                "parquet": lambda: formats.write(workspace, "verdicts", query(), "parquet", parquet),
                "one operator": lambda: len(results.verdicts(operator="Op7")),
                "crashes of one frontend": lambda: len(results.verdicts(frontend="tvm-onnx", status="crash")),
                "findings": lambda: len(results.findings()),
                "instances": lambda: len(results.instances()),
                "instances, details": lambda: len(results.instances(details=True)),
                "rankings": lambda: len(results.rankings()),
                "verdicts": lambda: len(results.verdicts()),
            }
            for name, what in work.items():
                figures = measured(what)
                print(json.dumps({name: figures}), flush=True)
    return int(figures["cpu_seconds"] > MOST_SECONDS)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else COUNT))
