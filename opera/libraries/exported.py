"""Checks of exported files in their own runtime, so that no compiler is blamed for what an exporter wrote wrongly."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from opera.compilers import Case
from opera.oracle import comparison as oracle
from opera.programs import migrated
from opera.programs.migrated import Manifest
from opera.programs.values import RandomTensor, Value


class WrongExport(Exception):
    """The exported file does not compute what the library computes, or no runtime was there that could tell."""


def check_onnx(manifest: Manifest, directory: Path, model: Path, expected: list[Value] | None = None) -> None:
    """Check an exported ONNX file in ONNX Runtime, see `check`."""
    from opera.compilers import onnxexport, onnxruntime

    def run(case: Case) -> list[Value]:
        onnxruntime.prepare()
        return onnxexport.run(onnxruntime.load(case), case)

    check(manifest, directory, model, "ONNX Runtime", run, expected)


def check_tflite(manifest: Manifest, directory: Path, model: Path, expected: list[Value] | None = None) -> None:
    """Check an exported TFLite file in TensorFlow Lite's interpreter, see `check`."""
    from opera.compilers import tflite

    check(manifest, directory, model, "the TFLite interpreter", tflite.run_file, expected)


def check(
    manifest: Manifest,
    directory: Path,
    model: Path,
    runtime: str,
    run: Callable[[Case], list[Value]],
    expected: list[Value] | None,
) -> None:
    """Run an exported file. Raises WrongExport where its outputs are not the `expected` ones (None: those of the test).

    A file that its own runtime does not run proves nothing either way, and is refused too: a failure of a compiler on it must
    be the compiler's own.
    """
    inputs = [x.tensor() if isinstance(x, RandomTensor) else x for x in migrated.read_values(directory, "inputs")]
    feeds = dict(zip(manifest.inputs, inputs, strict=True))
    case = Case(manifest.library, manifest.operator, model, feeds, manifest.outputs)
    try:
        outputs = run(case)
    except Exception as error:
        raise WrongExport(f"{runtime} does not run the exported file: {error}") from error
    wanted = migrated.read_values(directory, "expected") if expected is None else expected
    found = oracle.compare(wanted, outputs, manifest.outputs, manifest.rtol, manifest.atol)
    random = "nondeterministic" in manifest.tags and found.symptom == "value"
    if found.symptom and not random:
        raise WrongExport(f"{runtime} computes something else from the exported file: {found.message}")
