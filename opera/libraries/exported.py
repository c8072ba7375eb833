"""Checks of exported files in their own runtime, so that no compiler is blamed for what an exporter wrote wrongly."""

from __future__ import annotations

from pathlib import Path

from opera import compilers, migrated
from opera.execute import oracle
from opera.migrated import Manifest
from opera.values import RandomTensor


class WrongExport(Exception):
    """The exported file does not compute what the library computes, or no runtime was there that could tell."""


def check_onnx(manifest: Manifest, directory: Path, model: Path) -> None:
    """Run an exported ONNX file in ONNX Runtime. Raises WrongExport where its outputs are not the expected ones.

    A file that ONNX Runtime does not run proves nothing either way, and is refused too: the route over ONNX is a further
    one, and a failure on it must be the compiler's own.
    """
    runtime = compilers.get("onnxruntime")
    inputs = [x.tensor() if isinstance(x, RandomTensor) else x for x in migrated.read_values(directory, "inputs")]
    feeds = dict(zip(manifest.inputs, inputs, strict=True))
    case = compilers.Case(manifest.library, manifest.operator, model, feeds, manifest.outputs)
    try:
        runtime.prepare()
        outputs = runtime.infer(runtime.compile(runtime.load(case), case), case)
    except Exception as error:
        raise WrongExport(f"ONNX Runtime does not run the exported file: {error}") from error
    expected = migrated.read_values(directory, "expected")
    found = oracle.compare(expected, outputs, manifest.outputs, manifest.rtol, manifest.atol)
    random = "nondeterministic" in manifest.tags and found.symptom == "value"
    if found.symptom and not random:
        raise WrongExport(f"ONNX Runtime computes something else from the exported file: {found.message}")
