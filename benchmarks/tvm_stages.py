"""Where the time of a TVM test goes: CPU milliseconds of each stage, as users compile, in the trial as it was, and linked.

    python benchmarks/tvm_stages.py WORKSPACE [--tests 60]

WORKSPACE holds ONNX tests that were run or wrapped (`opera run --library onnx`). Tests that TVM does not load are passed over.
"""

from __future__ import annotations

import argparse
import random
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

from stages import Clock


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workspace", type=Path)
    parser.add_argument("--tests", type=int, default=60)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    import tvm
    from tvm import relax

    from opera.compilers.recipes import tvm_onnx
    from opera.compilers.tvm import trial

    folders = sorted(path.parent for path in (given.workspace / "tests").rglob("model.onnx"))
    random.Random(3).shuffle(folders)
    clock = Clock()

    def started(executable: Any) -> Any:
        return relax.VirtualMachine(executable, tvm.cpu())

    def usual(module: Any) -> Any:
        with tvm.transform.PassContext(opt_level=3):
            return tvm.compile(module, target=tvm.target.Target("llvm"))

    for folder in folders[: given.tests]:
        with suppress(Exception):  # what a compiler refuses, or fails at, is none of this
            module, *_ = clock("load", tvm_onnx.load, str(folder / "model.onnx"))
            clock("as users do: start", started, clock("as users do: compile", usual, module))
            clock("trial, JIT: start", started, clock("trial, JIT: compile", trial.compiled, module, 3))
            executable = clock("trial, linked: compile", trial.compiled, module, 3)
            clock("trial, linked: link", trial.linked, executable)
            clock("trial, linked: start", started, executable)
    print(*clock.table(), sep="\n")


if __name__ == "__main__":
    main()
