"""Where the time of a TVM test goes: CPU milliseconds of each stage, as users compile, in the trial as it was, and linked.

    python benchmarks/tvm_stages.py WORKSPACE [--tests 60]

WORKSPACE holds ONNX tests that were run or wrapped (`opera run --library onnx`). Tests that TVM does not load are passed over.
"""

from __future__ import annotations

import argparse
import random
import resource
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any


def cpu() -> float:
    """Return the CPU seconds of this process and of those that it waited for: the linker is one."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(x.ru_utime + x.ru_stime for x in used)


class Clock:
    """Adds up the CPU seconds of stages."""

    def __init__(self) -> None:
        self.seconds, self.times = defaultdict[str, float](float), Counter[str]()

    def __call__(self, stage: str, function: Callable[..., Any], *arguments: Any) -> Any:
        begin = cpu()
        try:
            return function(*arguments)
        finally:
            self.seconds[stage] += cpu() - begin
            self.times[stage] += 1


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
    clock, left_out = Clock(), 0

    def started(executable: Any) -> Any:
        return relax.VirtualMachine(executable, tvm.cpu())

    def usual(module: Any) -> Any:
        with tvm.transform.PassContext(opt_level=3):
            return tvm.compile(module, target=tvm.target.Target("llvm"))

    for folder in folders[: given.tests]:
        try:
            module, *_ = clock("load", tvm_onnx.load, str(folder / "model.onnx"))
            clock("as users do: start", started, clock("as users do: compile", usual, module))
            clock("trial, JIT: start", started, clock("trial, JIT: compile", trial.compiled, module, 3))
            executable = clock("trial, linked: compile", trial.compiled, module, 3)
            clock("trial, linked: link", trial.linked, executable)
            clock("trial, linked: start", started, executable)
        except Exception:  # what TVM refuses, or fails at, is none of this
            left_out += 1
    for stage, seconds in clock.seconds.items():
        print(f"{stage:26} {1000 * seconds / clock.times[stage]:7.1f} CPU ms, {clock.times[stage]} times")
    print(f"{left_out} of {given.tests} are left out")


if __name__ == "__main__":
    main()
