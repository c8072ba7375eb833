"""Write down what wheels of TensorRT's Python bindings have: classes, methods with their parameters, and enumerations.

    pip download --no-deps tensorrt_cu12_bindings==11.4.0.106 cuda-bindings cuda-pathfinder torch_tensorrt    # and others
    python benchmarks/tensorrt_names.py *.whl > tests/compilers/tensorrt_names.json

The bindings are imported, which needs no GPU: in place of TensorRT's own libraries, which are some GB, there are empty ones
with the nine functions that the bindings call by name. Needs a C compiler. Nothing is kept of the wheels but names; of
Torch-TensorRT the sources are read.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

CALLED = (
    "createInferBuilder_INTERNAL", "createInferRefitter_INTERNAL", "createInferRuntime_INTERNAL",
    "createNvOnnxParserRefitter_INTERNAL", "createNvOnnxParser_INTERNAL", "getBuilderPluginRegistry",
    "getNvOnnxParserVersion", "getPluginRegistry", "initLibNvInferPlugins",
)  # fmt: skip
LIBRARIES = ("nvinfer", "nvinfer_plugin", "nvonnxparser")
CLASSES = (
    "Builder", "IBuilderConfig", "ICudaEngine", "IExecutionContext", "ILogger", "INetworkDefinition", "IOptimizationProfile",
    "IOutputAllocator", "ITensor", "OnnxParser", "ParserError", "Runtime", "DataType",
)  # fmt: skip
ENUMS = (
    "BuilderFlag", "DataType", "ErrorCode", "ILogger.Severity", "NetworkDefinitionCreationFlag", "TensorIOMode",
    "TensorLocation",
)  # fmt: skip
CUDA = (
    "cudaDriverGetVersion", "cudaRuntimeGetVersion", "cudaGetDevice", "cudaGetDeviceCount", "cudaGetDeviceProperties",
    "cudaGetErrorString", "cudaMalloc", "cudaFree", "cudaMemcpy", "cudaDeviceSynchronize", "cudaStreamCreate",
    "cudaStreamSynchronize", "cudaStreamDestroy",
)  # fmt: skip


def main() -> None:
    wheels = [Path(name) for name in sys.argv[1:]]
    together = [wheel for wheel in wheels if wheel.name.startswith("cuda")]  # one imports the other
    sources = [wheel for wheel in wheels if wheel.name.startswith("torch_tensorrt")]
    found = {f"torch_tensorrt {wheel.name.split('-')[1]}": of_sources(zipfile.ZipFile(wheel)) for wheel in sources}
    for group in (*([wheel] for wheel in wheels if wheel not in (*together, *sources)), together):
        with tempfile.TemporaryDirectory() as folder:
            for wheel in group:
                zipfile.ZipFile(wheel).extractall(folder)
            found |= json.loads(_asked(Path(folder), "cuda" if group is together else "tensorrt")) if group else {}
    print(json.dumps(dict(sorted(found.items())), indent=1))


def _asked(folder: Path, kind: str) -> str:
    """Have a process of its own import what was unpacked, and say what it has."""
    (folder / "empty.c").write_text("\n".join(f"void *{name}(void) {{ return 0; }}" for name in CALLED))
    for name in LIBRARIES if kind == "tensorrt" else ():
        for number in range(10, 13):
            file = f"lib{name}.so.{number}"
            subprocess.run(
                ["cc", "-shared", "-fPIC", "-o", folder / file, f"-Wl,-soname,{file}", folder / "empty.c"], check=True
            )
    env = {**os.environ, "LD_LIBRARY_PATH": str(folder), "PYTHONPATH": f"{folder}:{Path(__file__).parent}"}
    code = f"import json, tensorrt_names as names; print(json.dumps(names.{kind}()))"
    return subprocess.run([sys.executable, "-c", code], env=env, check=True, stdout=subprocess.PIPE, text=True).stdout


def of_sources(wheel: zipfile.ZipFile) -> dict[str, object]:
    """Return what Torch-TensorRT's sources have: parameters of dynamo.compile, its registry's methods, and its modules."""

    def defined(path: str) -> list[ast.stmt]:
        return ast.parse(wheel.read(f"torch_tensorrt/dynamo/{path}")).body

    compiles = next(x for x in defined("_compiler.py") if isinstance(x, ast.FunctionDef) and x.name == "compile")
    classes = [x for x in defined("conversion/_ConverterRegistry.py") if isinstance(x, ast.ClassDef)]
    registry = next(x for x in classes if x.name == "ConverterRegistry")
    runtime = [
        name for name in wheel.namelist() if "dynamo/runtime/" in name and name.endswith("TorchTensorRTModule.py")
    ]
    held = [x for name in runtime for x in defined(name.partition("dynamo/")[2]) if isinstance(x, ast.ClassDef)]
    return {
        "compile": [x.arg for x in (*compiles.args.args, *compiles.args.kwonlyargs)],
        "takes more": compiles.args.kwarg is not None,
        "registry": sorted(x.name for x in registry.body if isinstance(x, ast.FunctionDef) and x.name[0] != "_"),
        "modules": sorted(x.name for x in held if x.name.endswith("TorchTensorRTModule")),
    }


def tensorrt() -> dict[str, object]:
    """Return what the bindings have that can be imported here."""
    import tensorrt_bindings

    return {f"tensorrt {tensorrt_bindings.__version__}": of_module(tensorrt_bindings)}


def of_module(module: object) -> dict[str, object]:
    """Return {"classes": class → member → parameters of each overload, None for a property; "enums": name → members}."""
    classes = {name: dict(sorted(_members(getattr(module, name)))) for name in CLASSES}
    enums: dict[str, list[str]] = {}
    for name in ENUMS:
        held: object = module
        for part in name.split("."):
            held = getattr(held, part)
        enums[name] = sorted(held.__members__)  # type: ignore[attr-defined]
    return {"classes": classes, "enums": enums}


def cuda() -> dict[str, object]:
    """Return the parameters of functions of cuda.bindings.runtime, and members of two enumerations."""
    from importlib.metadata import version

    from cuda.bindings import runtime

    functions = {name: _overloads(name, getattr(runtime, name).__doc__, cut=0) for name in CUDA}
    enums = {
        "cudaMemcpyKind": [x.name for x in runtime.cudaMemcpyKind],
        "cudaError_t": [x.name for x in runtime.cudaError_t][:120],
    }
    properties = [x for x in dir(runtime.cudaDeviceProp) if x in ("name", "major", "minor")]
    return {
        f"cuda-bindings {version('cuda-bindings')}": {
            "functions": functions, "enums": enums, "cudaDeviceProp": properties,
        }
    }  # fmt: skip


def _members(kind: type) -> list[tuple[str, object]]:
    found: list[tuple[str, object]] = []
    for name, held in vars(kind).items():
        if isinstance(held, property):
            found.append((name, None))
        elif callable(held) and (name == "__init__" or not name.startswith("_")):
            found.append((name, _overloads(name, held.__doc__)))
    # What TensorRT calls of a class that a user derives is told by the documentation of the class.
    for name, parameters in re.findall(r"def (\w+)\(self, ([^)]*)\):", kind.__doc__ or ""):
        found.append((name, [[x.strip() for x in parameters.split(",")]]))
    return found


def _overloads(name: str, text: str | None, cut: int = 1) -> list[list[str]]:
    """Return the parameters of each overload, without the object itself; one with a default ends in `=`."""
    found = []
    for line in (text or "").splitlines():
        signature = re.fullmatch(rf"(?:\d+\. )?{name}\((.*)\)(?: -> .*)?", line.strip())
        if signature and "*args" not in signature[1]:
            parts = _split(signature[1])[cut:]
            found.append([_parameter(part) for part in parts])
    return found


def _parameter(text: str) -> str:
    name = text.partition("=")[0].partition(":")[0].strip().split()[-1]
    return name + ("=" if "=" in text else "")


def _split(text: str) -> list[str]:
    """Split at commas that are in no brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "([<") - (letter in ")]>")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part for part in parts if part.strip()]


if __name__ == "__main__":
    main()
