"""Keras as a library. All tests share one import of TensorFlow; what must be quiet or fresh runs in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest
from keras_instance import instance

from opera.compilers.shared import tflite_models
from opera.errors import CorpusError, InvalidTest
from opera.programs import migrated
from opera.programs.program import Captured, Instance, Operand, Provenance
from opera.programs.values import Named, RandomTensor, Tensor

pytest.importorskip("keras")
pytest.importorskip("tensorflow")

from opera.libraries.keras import (
    api as keras_api,
)
from opera.libraries.keras import (
    backend as keras_backend,
)
from opera.libraries.keras import (
    calls as keras_calls,
)
from opera.libraries.keras import (
    codec as keras_values,
)
from opera.libraries.keras import (
    library as keras,
)
from opera.libraries.keras import (
    source as keras_source,
)
from opera.libraries.keras import (
    undefined as keras_undefined,
)
from opera.libraries.keras import (
    wrap as keras_model,
)

FUNCTION = {"kind": "function"}


def wrapped(tmp_path: Path, made: Instance):
    test = Captured(made, Provenance("x", "x", "x"))
    return keras.wrap(test, "ab" * 10, tmp_path / "test"), tmp_path / "test"


DENSE = {
    "units": 2,
    "activation": "relu",
    "dtype": "float32",
    "trainable": True,
    "kernel_initializer": {
        "module": "keras.initializers", "class_name": "RandomNormal",
        "config": {"mean": 0.0, "stddev": 0.5, "seed": None}, "registered_name": None,
    },
}  # fmt: skip
X = np.linspace(-1, 1, 12, dtype="float32").reshape(3, 4)


def test_wrap_runs_the_layer_and_the_folder_rebuilds_it(tmp_path):
    manifest, folder = wrapped(tmp_path, instance("keras.layers.Dense", DENSE, inputs=X))
    assert (manifest.inputs, manifest.outputs, manifest.reference) == (("inputs",), ("output_0",), "eager")
    assert manifest.artefacts["live"].feeds == ("inputs",) and manifest.tags == ("accumulating",)
    (expected,) = migrated.read_values(folder, "expected")
    live = keras_model.build(keras._stored(folder))
    kernel, bias = live.model.get_weights()
    assert np.allclose(expected.array(), np.maximum(X @ kernel + bias, 0), rtol=1e-5) and kernel.std() > 0.1
    assert [x.name for x in live.model.inputs] == ["inputs"] and live.inputs[0].dtype == np.float32


SPECTRAL = {"class_name": "Dense", "config": DENSE, "module": "keras.layers", "registered_name": None}
DRAWS = {
    "keras.layers.Dense": (DENSE, False),
    "keras.layers.GaussianNoise": ({"stddev": 1.0}, True),  # a seed of its own
    "keras.layers.SpectralNormalization": ({"layer": SPECTRAL}, True),  # no draw, but another state
}


@pytest.mark.parametrize("operator", list(DRAWS))
def test_what_a_run_leaves_as_it_was_is_run_once_and_exported_as_it_is(tmp_path, monkeypatch, operator):
    params, changes = DRAWS[operator]
    made = instance(operator, params, {"training": True}, inputs=X)
    runs, run = [], keras_model.Live.run
    monkeypatch.setattr(keras_model.Live, "run", lambda self, *rest: runs.append(self) or run(self, *rest))
    manifest, folder = wrapped(tmp_path, made)
    assert len(runs) == 1 + changes and ("nondeterministic" in manifest.tags) == changes
    assert (keras.live(manifest, folder) is runs[0]) != changes


def test_a_draw_from_the_seed_that_all_share_changes_the_state_of_a_model():
    live = keras_model.build(instance("keras.layers.Dense", DENSE, inputs=X))
    before = live.state()
    keras_backend.keras.random.normal((2,))
    first = live.state()
    keras_backend.keras.random.normal((2,))
    assert len({tuple(x) for x in (before, first, live.state())}) == 3


def test_a_model_is_built_and_runs_with_the_kernels_of_the_one_before(monkeypatch):
    from tensorflow.python.eager import context

    dropped = []
    monkeypatch.setattr(context.pywrap_tfe, "TFE_ContextClearCaches", dropped.append)
    made = instance("keras.layers.Dense", DENSE, inputs=X)
    first, second = (keras_model.build(made).run()[0] for _ in range(2))
    assert np.array_equal(first, second) and not dropped
    keras_backend.keras.backend.clear_session(free_memory=False)
    assert dropped  # outside of opera, all is as it was


@pytest.mark.parametrize("artefact", ["saved_model", "tflite", "onnx"])
def test_every_artefact_computes_the_same(tmp_path, artefact, capfd):
    pytest.importorskip({"onnx": "tf2onnx"}.get(artefact, "tensorflow"))
    manifest, folder = wrapped(tmp_path, instance("keras.layers.Dense", DENSE, inputs=X))
    capfd.readouterr()
    made = keras.export(manifest, folder, artefact)
    assert capfd.readouterr().out == ""
    assert sorted(path.name for path in folder.iterdir() if made.file in path.name) == [made.file]
    (expected,) = migrated.read_values(folder, "expected")
    assert np.allclose(_run(artefact, folder / made.file), expected.array(), rtol=1e-5)


def test_a_graph_that_moves_a_seed_on_is_converted_as_from_keras_model_does(tmp_path):
    """Frozen without a word of its variables, the converter stops at AssignVariableOp, which no user of Keras sees."""
    pictures = np.zeros((1, 4, 4, 3), np.float32)
    manifest, folder = wrapped(tmp_path, instance("keras.ops.image.elastic_transform", {}, FUNCTION, images=pictures))
    with pytest.raises(Exception, match="StatelessRandom") as raised:
        keras.export(manifest, folder, "tflite")
    assert "AssignVariableOp" not in str(raised.value)


@pytest.mark.full
@pytest.mark.parametrize("row", keras_api.instrumentation().plainest, ids=lambda x: f"{x.lowered} {x.inputs}")
def test_the_plainest_calls_become_the_operator_that_they_are_declared_for(tmp_path, row):
    pytest.importorskip("tflite")
    call = keras._plainest(row)
    assert call in keras.plainest(row.lowered.replace("_", "").lower())
    manifest, folder = wrapped(tmp_path, call)
    model = folder / keras.export(manifest, folder, "tflite").file
    assert row.lowered in tflite_models.telling(tflite_models.operators(model))


def _run(artefact: str, path: Path):
    if artefact == "saved_model":
        served = keras_backend.tensorflow.saved_model.load(str(path)).signatures["serving_default"]
        return served(inputs=X)["output_0"].numpy()
    if artefact == "tflite":
        from ai_edge_litert.interpreter import Interpreter

        interpreter = Interpreter(model_path=str(path))
        interpreter.allocate_tensors()
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], X)
        interpreter.invoke()
        return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    if artefact == "onnx":
        import onnxruntime

        return onnxruntime.InferenceSession(path).run(None, {"inputs": X})[0]
    import openvino

    precise = {"INFERENCE_PRECISION_HINT": "f32"}  # else bfloat16 on CPUs that have it
    return openvino.compile_model(path / "model.xml", "CPU", precise)(X)[0]


def test_several_inputs_and_outputs(tmp_path):
    names = [Named(keras_source.INPUT, name) for name in ("sequences", "initial_state.0")]
    made = Instance(
        "keras", "keras.layers.GRU",
        {"units": 2, "return_state": True, "call.initial_state": [names[1]]},
        (Operand("sequences", Tensor.of(np.ones((1, 3, 2), "float32"))), Operand("initial_state.0", Tensor.of(X[:1, :2]))),
        (), {"call": {"args": ["sequences"], "kwargs": ["call.initial_state"]}},
    )  # fmt: skip
    manifest, folder = wrapped(tmp_path, made)
    assert manifest.inputs == ("sequences", "initial_state_0") and len(manifest.outputs) == 2
    first, state = migrated.read_values(folder, "expected")
    assert first == state and first.shape == (1, 2)
    for names, line in ((("sequence",), "output_0, _, *_ ="), (("", "state"), "_, output_1, *_ =")):
        one = msgspec.structs.replace(made, outputs=names)
        assert line in keras_source.model(one)
        assert migrated.read_values(wrapped(tmp_path / line, one)[1], "expected") == [state]
    single = msgspec.structs.replace(made, params={**made.params, "return_state": False}, outputs=("sequence",))
    with pytest.raises(InvalidTest):
        wrapped(tmp_path / "single", single)


def test_functions_and_strings(tmp_path):
    made = instance("keras.ops.clip", {"x_min": -0.5, "x_max": 0.25}, FUNCTION, x=X)
    _, folder = wrapped(tmp_path / "a", made)
    assert np.array_equal(migrated.read_values(folder, "expected")[0].array(), np.clip(X, -0.5, 0.25))
    lookup = instance("keras.layers.StringLookup", {"vocabulary": ["a", "b"]}, inputs=np.array([["b", "z"]]))
    _, folder = wrapped(tmp_path / "b", lookup)
    assert migrated.read_values(folder, "expected")[0].array().tolist() == [[2, 0]]


def test_dropout_is_random_in_training_alone(tmp_path):
    tags = {
        training: wrapped(
            tmp_path / str(training), instance("keras.layers.Dropout", {"rate": 0.5}, {"training": training}, inputs=X)
        )[0].tags
        for training in (False, True)
    }
    assert tags == {False: (), True: ("nondeterministic",)}


def test_a_stateful_layer_starts_anew(tmp_path):
    params = {"units": 2, "stateful": True}
    manifest, _ = wrapped(tmp_path, instance("keras.layers.SimpleRNN", params, sequences=np.ones((1, 2, 2), "float32")))
    assert "nondeterministic" not in manifest.tags


def test_statistics_that_training_moves_are_those_of_the_start_in_every_run(tmp_path):
    """With renorm=True outputs depend on them: else a model would be taken for one that draws at random."""
    x = np.float32(np.arange(6).reshape(3, 2))
    call = instance("keras.layers.BatchNormalization", {"renorm": True, "momentum": 0.5}, inputs=x)
    manifest, _ = wrapped(tmp_path, msgspec.structs.replace(call, context={**call.context, "training": True}))
    assert "nondeterministic" not in manifest.tags
    call = instance("keras.layers.Dropout", {"rate": 0.5}, inputs=np.ones((8, 8), "float32"))
    manifest, _ = wrapped(tmp_path, msgspec.structs.replace(call, context={**call.context, "training": True}))
    assert "nondeterministic" in manifest.tags


@pytest.mark.parametrize(
    ("params", "x"),
    [
        ({"units": -1}, X),
        ({"units": 2, "no_such": 1}, X),
        ({"units": 2, "activation": "no_such"}, X),
        ({"units": 2}, np.float32(1)),
    ],
)
def test_what_keras_rejects_is_invalid(tmp_path, params, x):
    with pytest.raises(InvalidTest, match="Keras rejects it"):
        wrapped(tmp_path, instance("keras.layers.Dense", params, inputs=x))


def test_what_returns_a_sparse_tensor_is_invalid(tmp_path):
    """No compiler's model returns such: three outputs for one would be its format's, and no mistake."""
    x = np.int32([1, 0])
    for sparse in (False, True):
        call = instance("keras.ops.one_hot", {"num_classes": 3, "sparse": sparse}, x=x)
        if sparse:
            with pytest.raises(InvalidTest, match="sparse or ragged"):
                wrapped(tmp_path, call)
        else:
            wrapped(tmp_path, call)


EVIL = {"module": "os", "class_name": "system", "config": {}, "registered_name": "system"}
LAMBDA = {
    "module": "keras.layers", "class_name": "Lambda", "config": {"function": "x"}, "registered_name": None
}  # fmt: skip
GET_FILE = {"module": "keras.utils", "class_name": "get_file", "config": {"origin": "x"}, "registered_name": None}


@pytest.mark.parametrize(
    "made",
    [
        instance("keras.layers.Lambda", {"function": "x"}, inputs=X),
        instance("keras.utils.get_file", {}, inputs=X),
        instance("keras.layers.Dense", {"units": 1, "kernel_initializer": EVIL}, inputs=X),
        instance("keras.layers.Dense", {"units": 1, "kernel_initializer": GET_FILE}, inputs=X),
        instance("keras.layers.TimeDistributed", {"layer": LAMBDA}, inputs=X),
        instance("keras.layers.StringLookup", {"vocabulary": "/etc/hostname"}, inputs=X),
        instance("keras.ops.add", {"x2": Named("os", "system")}, FUNCTION, x1=X),
        msgspec.structs.replace(instance("keras.ops.abs", {}, x=X), context={}),
        msgspec.structs.replace(instance("keras.ops.abs", {}, x=X), context={"call": {"args": ["y"], "kwargs": []}}),
    ],
)
def test_names_that_are_not_kerass_own_are_refused(tmp_path, made):
    with pytest.raises(CorpusError):
        wrapped(tmp_path, made)


def test_values_never_become_code():
    hostile = 'a"); raise SystemExit(7) #'
    made = Instance(
        "keras", "keras.layers.Dense", {"units": hostile, hostile: hostile, "call.x y": {hostile: hostile}},
        (Operand(hostile, Tensor.of(X)),), (), {"call": {"args": [hostile], "kwargs": ["call.x y"]}},
    )  # fmt: skip
    with pytest.raises(InvalidTest):
        keras_model.build(made)


def test_the_source_is_what_a_developer_would_write():
    source = keras_source.model(instance("keras.layers.Dense", DENSE, inputs=X))
    assert (
        "keras.layers.Dense(units=2, activation='relu', kernel_initializer=keras.initializers.RandomNormal(" in source
    )
    assert "stddev=0.5" in source and "trainable" not in source and "from_config" not in source


def test_opinions_in_double_precision(tmp_path):
    manifest, folder = wrapped(tmp_path, instance("keras.layers.Dense", DENSE, inputs=X))
    eager, graph, double = keras.opinions(manifest, folder, migrated.read_values(folder, "inputs"), "none")
    (expected,) = migrated.read_values(folder, "expected")
    assert (eager.name, eager.independent, eager.outputs) == ("eager", False, [expected])
    assert (graph.name, graph.independent, graph.outputs) == ("graph", False, [expected])
    assert (double.name, double.independent) == ("float64", True) and double.outputs[0].dtype == "float32"
    assert np.allclose(double.outputs[0].array(), expected.array(), rtol=1e-5)
    integers = instance("keras.ops.add", {}, FUNCTION, x1=np.array([1]), x2=np.array([2]))
    manifest, folder = wrapped(tmp_path / "integers", integers)
    assert keras.opinions(manifest, folder, migrated.read_values(folder, "inputs"), "none")[2].outputs is None


def test_a_layer_in_mixed_precision_has_an_opinion_in_double_precision_too(tmp_path):
    mixed = {**DENSE, "dtype": "mixed_float16"}
    manifest, folder = wrapped(tmp_path, instance("keras.layers.Dense", mixed, inputs=X))
    double = keras.opinions(manifest, folder, migrated.read_values(folder, "inputs"), "none")[2]
    (expected,) = migrated.read_values(folder, "expected")
    assert double.outputs[0].dtype == expected.dtype == "float16"
    assert np.allclose(double.outputs[0].array(), expected.array(), rtol=1e-2) and double.outputs[0] != expected


def test_a_graph_that_contradicts_keras_run_eagerly_has_a_vote(tmp_path):
    made = instance(
        "keras.layers.RandomCrop",
        {"height": 2, "width": 2, "dtype": "mixed_float16"},
        data=np.ones((1, 3, 3, 4), "float32"),
    )
    manifest, folder = wrapped(tmp_path, made)
    _, graph, _ = keras.opinions(manifest, folder, migrated.read_values(folder, "inputs"), "none")
    (expected,) = migrated.read_values(folder, "expected")
    assert (graph.independent, expected.dtype, graph.outputs[0].dtype) == (True, "float32", "float16")


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (instance("keras.ops.mod", {}, x1=np.array([1, 2]), x2=np.array([0, 3])), "1 of 2 divisors"),
        (instance("keras.ops.mod", {}, x1=np.array([1.0]), x2=np.array([0.0])), None),
        (instance("keras.ops.left_shift", {}, x=np.array([1], "int8"), y=np.array([8], "int8")), "1 such"),
        (instance("keras.ops.left_shift", {}, x=np.array([1], "int8"), y=np.array([7], "int8")), None),
        (instance("keras.ops.cast", {"dtype": "uint8"}, x=np.array([-1.0, 3.0, np.nan])), "2 of 3"),
        (instance("keras.ops.cast", {"dtype": "float16"}, x=np.array([1e9])), None),
    ],
)
def test_undefined(made, why):
    found = keras_undefined.undefined(made, [])
    assert (found is None) if why is None else why in found


@pytest.mark.parametrize(("how", "count", "excused"), [(False, 2, True), (True, 2, False), (False, 1, False)])
def test_the_order_of_what_is_not_to_be_sorted_is_undefined(how, count, excused):
    made = instance("keras.ops.top_k", {"k": count, "sorted": how}, x=np.array([1, 2]))
    values = Tensor.of(np.array([2, 1][:count]))
    assert bool(keras_undefined.undefined(made, [values, values])) is excused


def test_equipped_defaults_are_those_of_a_configuration():
    found = keras.equipped_defaults(["keras.layers.Dense", "keras.ops.clip", "keras.layers.Nothing"])
    assert set(found) == {"keras.layers.Dense", "keras.ops.clip"}
    assert found["keras.layers.Dense"]["activation"] == "linear"
    assert found["keras.layers.Dense"]["kernel_initializer"]["class_name"] == "GlorotUniform"
    config = keras_values.encode(keras_backend.keras.layers.Dense(1).get_config())
    assert found["keras.layers.Dense"]["kernel_initializer"] == config["kernel_initializer"]


def test_large_inputs_are_described(tmp_path):
    large = instance("keras.ops.negative", {}, FUNCTION, x=X)
    described = RandomTensor("float32", (200, 200), 1, -1.0, 1.0)
    made = msgspec.structs.replace(large, inputs=(Operand("x", described),))
    _, folder = wrapped(tmp_path, made)
    assert migrated.read_values(folder, "inputs") == [described]
    huge = RandomTensor("float32", (1 << 13, 1 << 13), 1, -1.0, 1.0)
    with pytest.raises(InvalidTest, match="more than 256"):
        keras_model.build(msgspec.structs.replace(large, inputs=(Operand("x", huge), Operand("y", huge))))


def test_canaries(tmp_path):
    right, wrong = keras.canaries()
    for place, test in enumerate((right, wrong)):
        keras.wrap(test, "cd" * 10, tmp_path / str(place))
        stated = migrated.read_values(tmp_path / str(place), "expected")[0].array()
        computed = keras_model.build(test.program).run()[0]
        assert np.array_equal(stated, computed) is (test is right)


def test_the_allow_list():
    names = keras_api.objects()
    assert {"keras.layers.AveragePooling2D", "keras.ops.image.resize", "keras.activations.relu"} <= set(names)
    assert not {"keras.layers.AvgPool2D", "keras.layers.Lambda", "keras.ops.vectorized_map"} & set(names)
    assert keras_api.public_name(names["keras.ops.matmul"]) == "keras.ops.matmul"


IMPORT = """
import os
from opera.libraries.keras import backend as keras_backend
from tensorflow.python.eager import context
assert context._context is None or context._context._context_handle is None, "an operation was run"
assert keras_backend.keras.config.backend() == "tensorflow" and keras_backend.keras.config.floatx() == "float32"
pid = os.fork()
if pid == 0:
    keras_backend.keras.layers.Dense(1)(keras_backend.keras.ops.ones((1, 1)))
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
"""


def test_importing_is_quiet_runs_nothing_and_asks_no_keras_json(tmp_path, monkeypatch):
    (tmp_path / "keras.json").write_text('{"backend": "jax", "floatx": "float16"}')
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    done = subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_beginning_anew_gives_what_clearing_the_session_and_seeding_give():
    def cleared():
        keras_backend.keras.backend.clear_session(free_memory=False)
        keras_backend.keras.utils.set_random_seed(0)

    def made():
        library = keras_backend.keras
        layer = library.layers.Dense(3)
        layer.build((None, 4))
        return layer.name, layer.get_weights()[0], np.asarray(library.random.normal((5,)))

    cleared()
    name, weights, drawn = made()
    made()
    keras_calls.begin_anew()
    again = made()
    assert again[0] == name
    np.testing.assert_array_equal(again[1], weights)
    np.testing.assert_array_equal(again[2], drawn)


def test_beginning_anew_keeps_the_kernels_of_tensorflow(monkeypatch):
    from tensorflow.python.eager import context

    dropped = []
    monkeypatch.setattr(type(context.context()), "clear_kernel_cache", lambda _: dropped.append(1))
    monkeypatch.setattr(context, "set_global_seed", lambda _: dropped.append(1))
    keras_calls.begin_anew()
    assert not dropped


@pytest.mark.parametrize(
    ("operator", "given", "least", "most"),
    [("keras.ops.abs", {"x": X}, 1, 1), ("keras.layers.LSTM", {"sequences": np.ones((1, 2, 3), "f4")}, 20, 200)],
)
def test_it_is_counted_what_a_call_becomes(operator, given, least, most):
    """Those of its loop's body, too, and nothing that computes nothing."""
    program = instance(operator, {"units": 1} if "LSTM" in operator else {}, **given)
    assert least <= keras_model.operations(program) <= most


def test_what_tensorflow_cannot_trace_becomes_nothing():
    with pytest.raises(InvalidTest, match="cannot trace"):
        keras_model.operations(instance("keras.ops.kron", {}, x1=X, x2=X))


def test_a_function_that_draws_draws_anew_in_each_run_of_the_reference(tmp_path):
    """A model in double precision began all seeds anew: of nine runs eight were one, and no output could be called constant."""
    function = {"kind": "function", "call": {"args": ["images"], "kwargs": []}}
    images = np.random.default_rng(0).random((2, 6, 6, 1), "float32")
    made = instance("keras.ops.image.elastic_transform", {}, function, images=images)
    manifest, folder = wrapped(tmp_path, made)
    inputs = migrated.read_values(folder, "inputs")
    drawn = [keras.opinions(manifest, folder, inputs, "none")[0].outputs for _ in range(4)]
    assert all(x is not None and x not in drawn[:n] for n, x in enumerate(drawn))
