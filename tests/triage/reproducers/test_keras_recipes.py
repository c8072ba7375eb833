"""Each compiler's recipe in a Keras reproducer does what the compiler's module does, for every artefact it consumes."""

from __future__ import annotations

import contextlib
import io
import runpy
import sys
from importlib.util import find_spec

import numpy as np
import pytest
from keras_instance import instance

pytest.importorskip("keras")
pytest.importorskip("tensorflow")
pytest.importorskip("tf2onnx")

from opera import compilers
from opera.libraries.keras import library
from opera.programs.program import Captured, Provenance
from opera.programs.values import Tensor
from opera.programs.verdicts import CRASH, INCONSISTENT
from opera.triage.reproducers import reproducer

NAMES = ["tvm", "openvino", "tflite", "xla", "onnxexport"]
needs_tflite = pytest.mark.skipif(find_spec("tflite") is None, reason="TVM reads TFLite's models by the package tflite")
ROUTES = [
    pytest.param(name, variant.artefact, marks=[needs_tflite] if (name, variant.artefact) == ("tvm", "tflite") else [])
    for name in NAMES
    for variant in compilers.frontend(name, "keras").VARIANTS
]
X = np.array([[1, 2, 3], [4, 5, 6]], "float32")


def exhibit(compiler, artefact, verdict=INCONSISTENT, **fields):
    base = {"stage": "infer", "symptom": "value", "message": "output differs", "came_from": "test.py::here"}
    return reproducer.Exhibit("F1", f"{compiler}-keras", compiler, {}, artefact, verdict, **base | fields)


@pytest.fixture
def script(tmp_path, monkeypatch):
    """Write a script and run it in this process, for TensorFlow and the compilers take seconds to import."""
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)

    def once(shown, operator, params=None, expected=None, **inputs):
        made = instance(operator, params or {}, **inputs)
        manifest = library.wrap(Captured(made, Provenance("by-hand", "test.py", "here"), expected), "t" * 20, tmp_path)
        path = tmp_path / "F1.py"
        reproducer.write(shown, manifest, tmp_path, made, path)
        said = io.StringIO()
        with pytest.raises(SystemExit) as end, contextlib.redirect_stdout(said):
            runpy.run_path(str(path), run_name="__main__")
        return end.value.code, said.getvalue(), path.read_text()

    return once


@pytest.mark.parametrize(("compiler", "artefact"), ROUTES)
def test_a_planted_wrong_expectation_is_shown_and_a_right_one_is_gone(script, compiler, artefact):
    code, output, text = script(exhibit(compiler, artefact), "keras.layers.Dense", {"units": 2}, inputs=X)
    assert code == 0 and "gone: the outputs are as expected" in output, output
    assert "opera" not in text.replace("found by opera", "")
    wrong = (Tensor.of(3 * X[:, :2] + 1),)
    code, output, _ = script(exhibit(compiler, artefact), "keras.layers.Dense", {"units": 2}, wrong, inputs=X)
    assert code == 1 and "the failure is there" in output, output


@pytest.mark.parametrize(("compiler", "artefact"), ROUTES)
def test_inputs_and_outputs_come_in_their_order(script, compiler, artefact):
    code, output, _ = script(exhibit(compiler, artefact), "keras.ops.subtract", x1=X, x2=X[:, ::-1])
    assert code == 0 and "gone: the outputs are as expected" in output, output
    code, output, _ = script(exhibit(compiler, artefact), "keras.ops.top_k", {"k": 2}, x=X)
    assert code == 0 and "gone: the outputs are as expected" in output, output


@pytest.mark.parametrize(("compiler", "artefact"), [("openvino", "saved_model"), ("xla", "live")])
def test_low_precision_gets_through(script, compiler, artefact):
    import ml_dtypes

    code, output, _ = script(
        exhibit(compiler, artefact), "keras.ops.expand_dims", {"axis": 0}, x=X.astype(ml_dtypes.bfloat16)
    )
    assert code == 0 and "gone: the outputs are as expected" in output, output


def test_a_compiler_is_granted_the_precision_that_it_computes_in(script):
    """OpenVINO computes float64 in float32 by design."""
    x, computes_in = np.linspace(0, 1, 6).reshape(2, 3), {"float64": "float32"}
    code, output, _ = script(exhibit("openvino", "saved_model", computes_in=computes_in), "keras.ops.exp", x=x)
    assert code == 0 and "gone: the outputs are as expected" in output, output
    code, output, _ = script(exhibit("openvino", "saved_model"), "keras.ops.exp", x=x)
    assert code == 1 and "the failure is there" in output, output


def test_a_compiler_without_recipe_is_run_by_its_plugin(script, monkeypatch):
    monkeypatch.delattr(type(compilers.frontend("tflite", "keras")), "recipe")
    code, output, text = script(exhibit("tflite", "live"), "keras.layers.Dense", {"units": 2}, inputs=X)
    assert code == 0 and "gone: the outputs are as expected" in output, output
    assert "by_plugin.Plugin('tflite', 'keras', 'keras.layers.Dense', 'live', 'live'" in text


CRASHES = {
    "openvino": (
        "saved_model", "load", "OpConversionFailure", "LookupTableFindV2", "keras.layers.StringLookup",
        {"vocabulary": ["a", "b"]}, {"inputs": np.array([["b", "z"]], dtype=object)},
    ),
    "tvm": (
        "onnx", "load", "TypeError", "Reshape requires the input new shape to be Shape", "keras.ops.diagonal", {},
        {"x": X[:, :2]},
    ),
}  # fmt: skip


@pytest.mark.parametrize("compiler", CRASHES)
def test_a_crash_happens_in_the_same_stage_with_the_same_words(script, compiler):
    artefact, stage, symptom, words, operator, params, inputs = CRASHES[compiler]
    shown = exhibit(compiler, artefact, CRASH, stage=stage, symptom=symptom, message=words)
    code, output, _ = script(shown, operator, params, **inputs)
    assert code == 1 and "the failure is there" in output, output
