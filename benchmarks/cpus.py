"""Run instances as if on other CPUs, and compare the verdicts: `python benchmarks/cpus.py [--limit N] [--workspace DIR]`.

Prints a Markdown table, then every verdict that differs from this machine's own; exits with 1 where one does. A CPU is emulated
by what libraries offer to keep them from using what the CPU has: oneDNN in PyTorch and OpenVINO, PyTorch itself, numpy,
OpenBLAS and glibc. ONNX Runtime, XLA and XNNPACK offer nothing that opera leaves alone: they show on several machines only,
with --keep on one and --against on the next. The last row is no CPU, but a user's environment that asks for less precision.
A compiler that crashes on an older CPU shows here too, and is no fault of opera's: OpenVINO's TopK does on SSE4.1.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from opera.store.workspace import Workspace

OPERA = [sys.executable, "-m", "opera.cli"]
HERE = "this machine"
Verdicts = dict[tuple[str, str, str], tuple[str, str]]
"""(test, frontend, variant) → (verdict, symptom)."""

TORCH = """
import torch
from torch.nn import functional as F
torch.manual_seed(0)
for dtype in (torch.float32, torch.bfloat16, torch.float16):
    x, square, image = (torch.randn(*shape).to(dtype) for shape in ((33, 65), (65, 65), (2, 16, 17, 17)))
    for call in (torch.exp, torch.tanh, torch.sigmoid, torch.softmax, torch.cumsum, torch.var, F.gelu, F.silu, torch.logsumexp):
        call(x, *([1] if call in (torch.softmax, torch.cumsum, torch.logsumexp) else []))
    torch.matmul(x, square), F.linear(x, square), F.layer_norm(x, (65,)), torch.bmm(x[None], square[None])
    F.conv2d(image, torch.randn(16, 16, 3, 3).to(dtype)), F.avg_pool2d(image, 3), F.batch_norm(image, image[0, :, 0, 0], image[0, :, 0, 1].abs())
    F.scaled_dot_product_attention(image, image, image), F.conv_transpose2d(image, torch.randn(16, 4, 3, 3).to(dtype))
for module in (torch.nn.LSTM(16, 16), torch.nn.GRU(16, 16)):
    module(torch.randn(5, 2, 16))
"""  # noqa: E501
KERAS = """
import os
os.environ["KERAS_BACKEND"] = "tensorflow"
import keras, numpy as np
random = np.random.default_rng(0)
x, image = random.standard_normal((8, 32)).astype("float32"), random.standard_normal((2, 9, 9, 4)).astype("float32")
for layer in (keras.layers.Dense(16), keras.layers.Softmax(), keras.layers.LayerNormalization(), keras.layers.Activation("gelu")):
    layer(x)
for layer in (keras.layers.Conv2D(8, 3), keras.layers.DepthwiseConv2D(3), keras.layers.AveragePooling2D(), keras.layers.Conv2DTranspose(4, 3)):
    layer(image)
for layer in (keras.layers.LSTM(8), keras.layers.GRU(8)):
    layer(random.standard_normal((2, 5, 4)).astype("float32"))
"""  # noqa: E501


def cpus() -> dict[str, dict[str, str]]:
    """Return name → environment variables."""
    from numpy._core._multiarray_umath import __cpu_dispatch__ as dispatched  # all that is above numpy's baseline

    newer = [name for name in dispatched if "AVX512" in name or name == "X86_V4"]
    return {
        HERE: {},
        "x86-64 with AVX2": {
            "ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2", "OPENBLAS_CORETYPE": "Haswell",
            "NPY_DISABLE_CPU_FEATURES": " ".join(newer), "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX512VL",
        },
        "x86-64 with SSE4.1": {
            "ONEDNN_MAX_CPU_ISA": "SSE41", "ATEN_CPU_CAPABILITY": "default", "OPENBLAS_CORETYPE": "Nehalem",
            "NPY_DISABLE_CPU_FEATURES": " ".join(dispatched),
            "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX2,-FMA,-FMA4,-AVX",
        },
        "an environment that asks for speed": {
            "ONEDNN_DEFAULT_FPMATH_MODE": "ANY", "DNNL_DEFAULT_FPMATH_MODE": "ANY", "TF_SET_ONEDNN_FPMATH_MODE": "BF16",
            "TF_ENABLE_ONEDNN_OPTS": "1", "XLA_FLAGS": "--xla_cpu_enable_fast_math=true",
        },
    }  # fmt: skip


def opera(*arguments: object, env: dict[str, str] | None = None) -> None:
    """Run opera; a failing command ends this one."""
    done = subprocess.run(
        [*OPERA, *map(str, arguments)], env=os.environ | (env or {}), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"opera {' '.join(map(str, arguments))}:\n{done.stderr[-4000:]}")


def extracted(folder: Path) -> Path:
    """Return a ranked workspace with ONNX's node tests, and calls of PyTorch and Keras whose kernels depend on the CPU."""
    root = folder / "extracted"
    opera("extract", "onnx", "--workspace", root)
    for library, script in (("torch", TORCH), ("keras", KERAS)):
        path = folder / f"{library}_calls.py"
        path.write_text(script)
        opera("extract", "--library", library, "--workspace", root, "--", "python", path)
    opera("prioritize", "--workspace", root)
    return root


def verdicts(root: Path) -> Verdicts:
    """Return what a workspace has."""
    with Workspace.open(root, write=False) as workspace:
        return {(x.test, x.frontend, x.variant): (x.outcome.verdict, x.outcome.symptom) for x in workspace.verdicts()}


def operators(root: Path) -> dict[str, str]:
    """Return test → operator."""
    with Workspace.open(root, write=False) as workspace:
        rows = workspace.query("SELECT tests.id, operator FROM tests JOIN instances ON instances.id = tests.instance")
        return dict(rows)


def differing(own: Verdicts, other: Verdicts) -> list[str]:
    """Return a line for every verdict that is another one, or is missing on either side."""
    both = sorted(own.keys() | other.keys())
    return [
        f"{frontend} {test} ({variant}): {' '.join(own.get(key, ('none',)))} → {' '.join(other.get(key, ('none',)))}"
        for key in both
        for test, frontend, variant in [key]
        if own.get(key) != other.get(key)
    ]


def compare(options: argparse.Namespace, folder: Path) -> list[str]:
    """Run on every CPU and print the table; return what differs."""
    source = options.workspace or extracted(folder)
    own: Verdicts = verdicts(options.against) if options.against else {}
    found: list[str] = []
    print("| as if on | verdicts | differ |\n|---|---|---|", flush=True)
    for name, variables in cpus().items():
        root = options.keep if options.keep and name == HERE else folder / "run"
        shutil.copytree(source, root)
        opera("run", "--limit", options.limit, *options.run, "--workspace", root, env=variables)
        other = verdicts(root)
        own = own or other
        lines = differing(own, other)
        print(f"| {name} | {len(other)} | {len(lines)} |", flush=True)
        called = operators(root)
        found += [f"{name}: {line} {called.get(line.split()[1], '')}" for line in lines]
        shutil.rmtree(folder / "run", ignore_errors=True)
    return found


def main() -> None:
    """Print the table and the differences."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--limit", type=int, default=100, help="best-ranked tests of each frontend")
    parser.add_argument("--workspace", type=Path, help="ranked, not yet run; it is copied (default: one is made)")
    parser.add_argument("--keep", type=Path, help="where to keep the workspace that ran without emulation")
    parser.add_argument("--against", type=Path, help="a workspace that --keep left on another machine")
    parser.add_argument("run", nargs="*", help="options of opera run, after --: -- --compiler tvm")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="opera-cpus-") as folder:
        found = compare(options, Path(folder))
    print("\n" + "\n".join(found) if found else "\nno verdict depends on the CPU")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
