"""Runs what Keras exported in the file's own runtime, so that no compiler is blamed for what an exporter wrote wrongly."""

from __future__ import annotations

from pathlib import Path

from opera import migrated
from opera.compilers import Case, onnxexport, onnxruntime, tflite
from opera.execute import oracle
from opera.libraries import keras_values
from opera.libraries.exported import WrongExport
from opera.libraries.keras_model import Live
from opera.migrated import Manifest
from opera.values import RandomTensor, Value

RUNTIMES = {"onnx": "ONNX Runtime", "tflite": "the TFLite interpreter"}
"""Artefact → what its exporter means it for. A SavedModel has none but TensorFlow, and OpenVINO's IR is its own compiler's."""


def check(live: Live, manifest: Manifest, directory: Path, artefact: str, path: Path) -> None:
    """Run the exported file `path`. Raises WrongExport where it does not compute what Keras does, or does not run.

    What a test states as its outputs is not asked: that Keras itself computes them is the compilers' test.
    """
    if artefact not in RUNTIMES:
        return
    inputs = [x.tensor() if isinstance(x, RandomTensor) else x for x in migrated.read_values(directory, "inputs")]
    feeds = dict(zip(manifest.inputs, inputs, strict=True))
    case = Case(manifest.library, manifest.operator, path, feeds, manifest.outputs)
    try:
        outputs = tflite.run_file(case) if artefact == "tflite" else onnxexport.run(onnxruntime.load(case), case)
    except Exception as error:  # a runtime that refuses the file proves nothing for a compiler
        raise WrongExport(f"{RUNTIMES[artefact]} does not run the exported file: {error}") from error
    found = oracle.compare(
        _computed(live, manifest, directory), outputs, manifest.outputs, manifest.rtol, manifest.atol
    )
    random = "nondeterministic" in manifest.tags and found.symptom == "value"
    if found.symptom and not random:
        raise WrongExport(f"{RUNTIMES[artefact]} computes something else from the exported file: {found.message}")


def _computed(live: Live, manifest: Manifest, directory: Path) -> list[Value]:
    if manifest.reference == "eager":
        return migrated.read_values(directory, "expected")
    return [keras_values.from_array(item) for item in live.run()]
