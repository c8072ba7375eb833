"""The frontends of Keras: what passes, what is refused, where it failed, and whose fault a wrong export is."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import ml_dtypes
import msgspec
import numpy as np
import pytest
from keras_instance import instance

pytest.importorskip("keras")
pytest.importorskip("tensorflow")
pytest.importorskip("tf2onnx")

from opera.compilers import Case, mnn, onnxexport, tflite, xla
from opera.compilers.openvino import compiler as openvino
from opera.compilers.shared.packing import Refusal, Told, Unlawful
from opera.compilers.tvm import compiler as tvm
from opera.libraries.exported import WrongExport
from opera.libraries.keras import library
from opera.libraries.keras import wrap as keras_model
from opera.oracle.comparison import compare
from opera.programs.case import remembered
from opera.programs.migrated import read_values
from opera.programs.program import Captured, Provenance
from opera.programs.values import Named

needs_tflite = pytest.mark.skipif(find_spec("tflite") is None, reason="the package tflite reads TFLite's models")
FROM_TFLITE = pytest.param(tvm, "tflite", id="tvm-tflite", marks=needs_tflite)
ROUTES: list[Any] = [FROM_TFLITE] + [
    pytest.param(compiler, variant.artefact, id=f"{compiler.NAME}-{variant.name}")
    for compiler in (tvm, openvino, tflite, xla, onnxexport)
    for variant in compiler.FRONTENDS["keras"].VARIANTS
    if (compiler, variant.artefact) != (tvm, "tflite")
]
if find_spec("MNN") is not None:
    ROUTES.append(pytest.param(mnn, "tflite", id="mnn-tflite", marks=needs_tflite))
each = pytest.mark.parametrize(("compiler", "artefact"), ROUTES)
X = np.array([[1, 2, 3], [4, 5, 6]], "float32")
WORDS = np.array([["b", "z"]], dtype=object)


@pytest.fixture
def make(tmp_path: Path) -> Any:
    """Wrap a call and export it; return the case and the expected outputs."""

    def once(artefact: str, operator: str, params: Any = None, **inputs: Any) -> tuple[Case, list[Any]]:
        made = instance(operator, params or {}, **inputs)
        manifest = library.wrap(Captured(made, Provenance("by-hand", "test.py", "here")), "t" * 20, tmp_path)
        library._kept.clear()
        library._live.cache_clear()
        found = manifest.artefacts.get(artefact) or library.export(manifest, tmp_path, artefact)
        feeds = dict(zip(manifest.inputs, read_values(tmp_path, "inputs"), strict=True))
        live = partial(library.live, manifest, tmp_path) if artefact == "live" else None
        expected = read_values(tmp_path, "expected")
        names = (manifest.outputs, "", artefact)
        case = Case("keras", operator, tmp_path / found.file, feeds, *names, live, "", tuple(x.dtype for x in expected))
        return case, expected

    return once


@each
def test_inputs_are_fed_in_their_order_and_a_wrong_expectation_is_caught(compiler, artefact, make, run):
    case, expected = make(artefact, "keras.ops.subtract", x1=X, x2=X[:, ::-1])
    stage, outputs = run(compiler, case)
    assert stage == "done", outputs
    assert compare(expected, outputs, case.outputs, None, None).symptom == ""
    assert compare([case.feeds["x1"]], outputs, case.outputs, None, None).symptom == "value"
    assert "sub" in compiler.FRONTENDS["keras"].conversion_function(case, None).lower()


@each
def test_weights_travel(compiler, artefact, make, run):
    case, expected = make(artefact, "keras.layers.Dense", {"units": 2, "bias_initializer": "ones"}, inputs=X)
    stage, outputs = run(compiler, case)
    assert stage == "done", outputs
    assert compare(expected, outputs, case.outputs, None, None).symptom == ""


@each
def test_several_outputs_come_in_their_order(compiler, artefact, make, run):
    case, expected = make(artefact, "keras.ops.top_k", {"k": 2}, x=X)
    stage, outputs = run(compiler, case)
    assert stage == "done", outputs
    assert compare(expected, outputs, case.outputs, None, None).symptom == ""


KINDS = {
    "scalar": np.float32(2.5),
    "bool": X > 2,
    "int8": X.astype("int8"),
    "float64": X.astype("float64"),
    "float16": X.astype("float16"),
}


OF_KIND = [
    pytest.param(*route.values, kind, marks=route.marks, id=f"{route.id}-{kind}")
    for route in ROUTES
    for kind in KINDS
    if route.id in ("openvino-saved-model", "tflite-live", "xla-live", "mnn-tflite")
    or (route.id == "tvm-tflite" and kind != "float64")
]
"""TVM's importer knows no float64 in TFLite models."""


@pytest.mark.parametrize(("compiler", "artefact", "kind"), OF_KIND)
def test_tensors_of_every_kind_travel_unchanged(compiler, artefact, kind, make, run):
    case, expected = make(artefact, "keras.ops.expand_dims", {"axis": 0}, x=KINDS[kind])
    stage, outputs = run(compiler, case)
    assert (stage, outputs) == ("done", expected)


def test_strings_travel(make, run):
    case, expected = make("live", "keras.ops.expand_dims", {"axis": 0}, x=WORDS)
    assert run(tflite, case) == ("done", expected)


SQUARE = {"x": np.array([[2.0, 1.0], [1.0, 3.0]], "float32")}
PATCH = {"inputs": X, "start_indices": np.array([0, 1], "int32"), "updates": X[:1, :2]}
REFUSED = [
    pytest.param(
        tvm,
        "tflite",
        "keras.ops.slice_update",
        PATCH,
        "load",
        "no converter for DYNAMIC_UPDATE_SLICE",
        marks=needs_tflite,
    ),
    (tvm, "onnx", "keras.ops.det", SQUARE, "load", "no converter for Det"),
    (
        openvino,
        "saved_model",
        "keras.ops.flip",
        {"x": X},
        "load",
        "does not support Reverse or ReverseV2 with multiple axes for the reversing",
    ),
    (openvino, "saved_model", "keras.ops.det", SQUARE, "load", "no conversion rule for MatrixDeterminant"),
    (openvino, "live", "keras.ops.det", SQUARE, "load", "no conversion rule for MatrixDeterminant"),
    (tflite, "live", "keras.ops.det", SQUARE, "load", "no TFLite operator for tf.MatrixDeterminant of f32"),
    (xla, "live", "keras.ops.det", SQUARE, "load", "no XLA kernel for MatrixDeterminant"),
    (onnxexport, "live", "keras.ops.inv", SQUARE, "compile", "operator MatrixInverse is not registered for opset 15"),
]


@pytest.mark.parametrize(("compiler", "artefact", "operator", "inputs", "stage", "reason"), REFUSED)
def test_the_compilers_own_words_make_it_unsupported(compiler, artefact, operator, inputs, stage, reason, make, run):
    case, _ = make(artefact, operator, **inputs)
    failed, error = run(compiler, case)
    assert (failed, compiler.FRONTENDS["keras"].unsupported(case, failed, error)) == (stage, reason)


def test_what_tensorflow_cannot_trace_is_a_failure_of_keras_own_export(make, run):
    """It was nobody's: `unsupported` on all frontends."""
    case, _ = make("live", "keras.ops.kron", x1=X, x2=X)
    stage, error = run(onnxexport, case)
    assert (stage, onnxexport.FRONTENDS["keras"].unsupported(case, stage, error)) == ("load", None)
    stage, told = run(onnxexport, msgspec.structs.replace(case, way=onnxexport.TRACED.name))
    said = "'SymbolicTensor' object cannot be interpreted as an integer"
    assert stage == "load" and isinstance(told, Unlawful) and said in str(error) and said in str(told)
    case, _ = make("live", "keras.ops.exp", x=X)
    stage, told = run(onnxexport, msgspec.structs.replace(case, way=onnxexport.TRACED.name))
    assert type(told) is Refusal


@pytest.mark.parametrize("compiler", [openvino, tflite, xla])
def test_what_tensorflow_cannot_trace_is_no_crash_of_a_compiler(compiler, make, run):
    case, _ = make("live", "keras.ops.kron", x1=X, x2=X)
    stage, error = run(compiler, case)
    reason = "TensorFlow cannot trace the model: TypeError: 'SymbolicTensor' object cannot be interpreted as an integer"
    assert (stage, compiler.FRONTENDS["keras"].unsupported(case, stage, error)) == ("load", reason)


def test_the_package_by_which_tvm_reads_tflite_may_be_missing():
    case = remembered("keras", "keras.ops.exp", "tflite", "tflite")
    told = tvm.FRONTENDS["keras"].unsupported(case, "load", ModuleNotFoundError("No module named 'tflite'"))
    assert told == "machine: the Python package tflite is not installed"


CONVERTERS = [
    ("keras.ops.exp", {}, {"x": X}, "tflite_frontend:OperatorConverter._convert_unary_elemwise[EXP]"),
    ("keras.layers.Dense", {"units": 2}, {"inputs": X}, "tflite_frontend:OperatorConverter.convert_fully_connected"),
    ("keras.ops.reshape", {"newshape": [3, 2]}, {"x": X}, "tflite_frontend:OperatorConverter.convert_reshape"),
    ("keras.ops.std", {}, {"x": X}, "expanded std"),
]


@needs_tflite
@pytest.mark.parametrize(("operator", "params", "inputs", "converter"), CONVERTERS, ids=[row[0] for row in CONVERTERS])
def test_tvm_tells_the_converter_of_what_a_layer_becomes(operator, params, inputs, converter, make):
    assert tvm.FRONTENDS["keras"].conversion_function(make("tflite", operator, params, **inputs)[0], None) == converter


@needs_tflite
def test_the_converter_that_raised_is_told(make, run):
    case, _ = make(
        "tflite", "keras.ops.tensordot", {"axes": 1}, x1=np.ones((2, 3, 4), "float32"), x2=np.ones((4, 5), "float32")
    )
    stage, error = run(tvm, case)
    assert stage == "load" and tvm.FRONTENDS["keras"].unsupported(case, stage, error) is None
    assert (
        tvm.FRONTENDS["keras"].conversion_function(case, error)
        == "tflite_frontend:OperatorConverter.convert_batch_matmul"
    )


@needs_tflite
def test_mnn_tells_the_operator_whose_result_its_message_names(make, run):
    case, _ = make("tflite", "keras.ops.quantile", {"q": 0.5}, x=np.float32([1, 2, 3]))
    stage, error = run(mnn, case)
    assert (stage, "GatherV2" in str(error)) == ("infer", True)
    assert mnn.FRONTENDS["keras"].conversion_function(case, error) == "GATHER"


@pytest.mark.parametrize("operator", ["keras.ops.abs", "keras.ops.count_nonzero"])
def test_a_file_that_declares_another_dtype_is_told_so_whatever_the_operator(operator, make, run):
    """tf2onnx writes bfloat16 as float16; what it makes of that is refused in as many words as there are operators."""
    case, _ = make("live", operator, x=np.ones(3, ml_dtypes.bfloat16))
    stage, error = run(onnxexport, case)
    assert (stage, type(error).__name__) == ("load", "DeclaredOtherwise")
    assert str(error) == "the file declares float16 for an input of bfloat16"
    frontend = onnxexport.FRONTENDS["keras"]
    assert isinstance(error, Told) and frontend.unsupported(case, stage, error) is None


@pytest.mark.parametrize(("dtype", "told"), [("complex64", "f32"), ("complex128", "f32"), ("float64", "")])
def test_openvino_that_takes_real_numbers_for_complex_ones_is_told_so(dtype, told, make, run):
    """It drops imaginary parts without a word, and has no type that opera could feed."""
    case, _ = make("live", "keras.ops.conjugate", x=np.ones(3, dtype))
    stage, shown = run(openvino, case)
    said = f"the loaded model declares {told} for an input of {dtype} of the same shape"
    assert (stage, str(shown)) == ("load", said) if told else stage == "done"
    assert not told or openvino.FRONTENDS["keras"].unsupported(case, stage, shown) is None


@pytest.mark.parametrize(("operator", "stage"), [("keras.ops.isinf", "load"), ("keras.ops.isfinite", "compile")])
def test_what_tf2onnx_logs_as_not_supported_is_a_refusal_where_its_file_is_invalid(operator, stage, make, run):
    """Keras has it go on after that; of what it logs nothing, and writes an invalid file all the same, it refuses nothing."""
    case, _ = make("live", operator, x=np.float16([1, 2]))
    failed, error = run(onnxexport, case)
    told = onnxexport.FRONTENDS["keras"].unsupported(case, failed, error)
    assert (failed, told) == (stage, "dtype 10 is not supported" if stage == "load" else None)


def test_openvino_tells_operator_and_place_of_its_translators(make, run):
    case, _ = make("saved_model", "keras.layers.StringLookup", {"vocabulary": ["a", "b"]}, inputs=WORDS)
    stage, error = run(openvino, case)
    assert stage == "load" and openvino.FRONTENDS["keras"].unsupported(case, stage, error) is None
    assert openvino.FRONTENDS["keras"].conversion_function(case, error) == "LookupTableFindV2@element_type.hpp:256"


def test_a_stateful_layer_starts_anew_with_every_inference(make):
    case, expected = make("live", "keras.layers.SimpleRNN", {"units": 2, "stateful": True}, sequence=X[None])
    xla.prepare()
    frontend = xla.FRONTENDS["keras"]
    compiled = frontend.compile(frontend.load(case), case)
    for _ in range(2):
        assert compare(expected, frontend.infer(compiled, case), case.outputs, None, None).symptom == ""


def test_compiling_leaves_the_state_of_a_layer_as_it_was(make, run):
    params = {"renorm": True, "momentum": 0.5, "renorm_momentum": 0.5}
    case, expected = make("live", "keras.layers.BatchNormalization", params, context={"training": True}, inputs=X)
    stage, outputs = run(xla, case)
    assert stage == "done", outputs
    assert compare(expected, outputs, case.outputs, None, None).symptom == ""


@pytest.mark.parametrize("operator", ["keras.ops.svd", "keras.ops.argmax"])
def test_a_file_that_its_own_runtime_refuses_is_the_exporters_fault(operator, make):
    with pytest.raises(WrongExport, match="ONNX Runtime does not run the exported file"):
        make("onnx", operator, **SQUARE)


def test_a_file_that_computes_something_else_is_the_exporters_fault(make, monkeypatch, tmp_path):
    case, _ = make("tflite", "keras.ops.subtract", x1=X, x2=X[:, ::-1])
    swapped = case.model.read_bytes()
    monkeypatch.setattr(keras_model.Live, "tflite", lambda self: swapped)
    with pytest.raises(WrongExport, match="the TFLite interpreter computes something else"):
        make("tflite", "keras.ops.add", x1=X, x2=X[:, ::-1])
    assert case.model.read_bytes() == swapped and not list(tmp_path.glob("model.tflite.*"))


@pytest.mark.parametrize("name", ["tflite", "xla", "onnxexport", "tvm", "openvino"])
def test_importing_the_module_imports_no_tensorflow(name: str) -> None:
    code = f"import sys, opera.compilers.{name}; sys.exit('tensorflow' in sys.modules or 'keras' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@needs_tflite
@needs_tflite
def test_of_a_model_that_is_a_constant_no_operator_is_left_and_that_is_told(make: Any, run: Any) -> None:
    """MNN's converter writes no output then. Its own file was read as if it were TFLite's, an error of opera's."""
    case, _ = make("tflite", "keras.ops.zeros_like", x=X)
    stage, error = run(mnn, case)
    assert stage == "load" and "find output" in str(error)
    assert mnn.FRONTENDS["keras"].conversion_function(case, error) == "NO_OPERATOR"
    assert str(run(mnn, msgspec.structs.replace(case, way="operators"))[1]) == "NO_OPERATOR"


@needs_tflite
def test_mnns_converter_keeps_the_names_of_the_operators_that_a_layer_is_made_of(make: Any, run: Any) -> None:
    image = np.ones((1, 3, 3, 1), np.float32)
    case, _ = make("tflite", "keras.layers.SeparableConv2D", {"filters": 1, "kernel_size": 1}, inputs=image)
    stage, told = run(mnn, msgspec.structs.replace(case, way="operators"))
    assert stage == "load" and {"DEPTHWISE_CONV_2D", "CONV_2D"} <= set(str(told).split())


def test_of_several_operators_that_fail_the_first_of_the_graph_is_told(make, run, monkeypatch):
    """Imag fails for FFT does, which is given float64: OpenVINO lists both, by the alphabet."""
    pair = (Named("keras.input", "x.0"), Named("keras.input", "x.1"))
    monkeypatch.setattr(
        sys.modules[__name__], "instance", partial(instance, context={"call": {"args": ["x"], "kwargs": []}})
    )
    case, _ = make("live", "keras.ops.fft", {"x": pair}, **{"x.0": X, "x.1": X})
    stage, error = run(openvino, case)
    assert stage == "load" and "-- Imag with a message" in str(error)
    assert openvino.FRONTENDS["keras"].conversion_function(case, error).startswith("FFT@fft_base.cpp:")


def test_a_converter_is_told_with_the_operator_where_that_has_another_name() -> None:
    """TVM converts a WHERE of one input as a SELECT, and a title told of a SELECT that no file had."""
    pytest.importorskip("tvm")
    from tvm.relax.frontend.tflite.tflite_frontend import ExprTable, OperatorConverter

    from opera.compilers.tvm.keras import _called

    converter = OperatorConverter(None, None, ExprTable(), None)
    told = {x: _called(converter, x).rpartition(".")[2] for x in ("WHERE", "SELECT_V2", "TILE", "ADD", "NO_SUCH")}
    assert told == {
        "WHERE": "convert_select[WHERE]",
        "SELECT_V2": "convert_select",
        "TILE": "convert_tile",
        "ADD": "_convert_elemwise[ADD]",
        "NO_SUCH": "NO_SUCH",
    }
