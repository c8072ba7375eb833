"""The artefacts that a Keras test offers, each made by the exporter that Keras or TensorFlow themselves have for it."""

from __future__ import annotations

import os
import shutil
import warnings
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

from opera.errors import InvalidTest
from opera.libraries import exported
from opera.libraries.keras import codec as keras_values
from opera.libraries.keras.wrap import Live
from opera.programs.migrated import Artefact, Manifest
from opera.programs.values import Value

FILES = {"saved_model": "saved_model", "tflite": "model.tflite", "onnx": "model.onnx"}
"""Artefact → its file in the test's folder; the first is a folder."""
CHECKS = {"onnx": exported.check_onnx, "tflite": exported.check_tflite}
"""Artefact → its check. A SavedModel has no runtime but TensorFlow."""


def export(live: Live, manifest: Manifest, directory: Path, artefact: str) -> Artefact:
    """Write one artefact. What the exporter raises passes through; what it prints does not reach the terminal.

    A file is run before it is handed on: WrongExport where it does not compute what Keras does.
    """
    if artefact not in FILES:
        raise InvalidTest(f"Keras exports no {artefact}")
    path = directory / FILES[artefact]
    temporary = directory / f"{path.name}.{os.getpid()}{path.suffix}"
    with warnings.catch_warnings(), redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        warnings.simplefilter("ignore")
        try:
            _write(live, artefact, temporary)
            if artefact in CHECKS:
                CHECKS[artefact](manifest, directory, temporary, _stated(live, manifest))
            if path.is_dir():
                shutil.rmtree(path)
            temporary.replace(path)
        finally:
            _remove(temporary)
    return Artefact(FILES[artefact], manifest.inputs)


def _write(live: Live, artefact: str, path: Path) -> None:
    match artefact:
        case "saved_model":
            live.saved_model(path)
        case "tflite":
            path.write_bytes(live.tflite())
        case _:
            live.onnx(path)


def _stated(live: Live, manifest: Manifest) -> list[Value] | None:
    """Return what Keras computes where the test states something itself: that the two agree is asked of compilers alone."""
    return None if manifest.reference == "eager" else [keras_values.from_array(item) for item in live.run()]


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
