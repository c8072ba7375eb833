"""The published live benchmark from nothing: `python benchmarks/live.py --workspace DIR --output results/benchmarks/DATE`.

ONNX's full suite on OpenVINO, ONNX Runtime and TVM; a random sample of PyTorch's instances and all of Keras's on OpenVINO and
TVM. A part of a corpus is run in random order, so that no strategy has chosen what the strategies are scored on. It resumes
where it was stopped. Everything takes some hours on two cores; `--torch` and `--keras` make it shorter.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

HELD_OUT = Path(__file__).parents[1] / "results" / "benchmarks" / "held-out.toml"
TRACED = ("tvm-onnx", "tvm-torch", "tvm-keras")


def commands(options: argparse.Namespace) -> Iterator[list[str]]:
    """Yield the arguments of opera, one command after the other."""
    for target in ("onnx", *options.onnx, "torch", "keras"):
        yield ["extract", target]
    for checkout in options.tvm:
        yield ["extract", "--equipped", "tvm", checkout]
    yield ["prioritize", "--strategy", "random", "--seed", "0"]
    yield ["run", "--library", "onnx", *compilers("openvino", "onnxruntime", "tvm")]
    for library, limit in (("torch", options.torch), ("keras", options.keras)):
        yield ["run", "--library", library, *compilers("openvino", "tvm"), *(["--limit", str(limit)] if limit else [])]
    for frontend in TRACED:
        yield ["coverage", "--frontend", frontend, "--only-run"]
    yield ["benchmark", "--held-out", str(HELD_OUT), "--output", str(options.output)]


def compilers(*names: str) -> list[str]:
    """Return the options that choose compilers."""
    return [word for name in names for word in ("--compiler", name)]


def main() -> None:
    """Run them; a failing one stops the rest."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--workspace", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--onnx", nargs="*", default=[], help="checkouts of ONNX, beside the installed one's suite")
    parser.add_argument("--tvm", nargs="*", default=[], help="checkouts of TVM: what its own tests cover")
    parser.add_argument("--torch", type=int, default=10_000, help="how many of PyTorch's tests; 0 is all")
    parser.add_argument("--keras", type=int, default=0, help="how many of Keras's tests; 0 is all")
    options = parser.parse_args()
    for command in commands(options):
        print(f"\n## opera {' '.join(command)}\n", flush=True)
        words = [sys.executable, "-m", "opera.cli", *command, "--workspace", str(options.workspace)]
        subprocess.run(words, check=True)


if __name__ == "__main__":
    main()
