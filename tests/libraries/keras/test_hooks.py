"""Capture of Keras, by an extraction of a small checkout in child processes: nothing is hooked in this one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import suite_reports

from opera.programs.program import Captured
from opera.programs.values import Named, Tensor
from opera.sources import UnitReport
from opera.sources.suites import suites

pytest.importorskip("keras")
pytest.importorskip("tensorflow")

SUITE = """
import grain
import numpy as np
import pytest
import tensorflow as tf
from conftest import skip_if_backend

import keras
from keras.src import activations, layers, ops, testing


class Mine(layers.Layer):
    def __init__(self):
        super().__init__()
        self.inner = layers.Dense(2)

    def call(self, x):
        return self.inner(x)


class SmallTest(testing.TestCase):
    def test_eager_and_symbolic(self):
        layers.Dense(3, activation="relu")(keras.Input((4,)))
        layers.Dense(3, activation="relu")(np.ones((2, 4)))

    def test_symbolic_alone(self):
        layers.Embedding(3, 2)(keras.Input((None,), dtype="int32"))

    def test_merging(self):
        layers.Add()([np.ones((1, 2), "float32"), np.ones((1, 2), "float32")])

    def test_training(self):
        layers.Dropout(0.5)(np.ones((2, 2)), training=True)

    def test_masks(self):
        masked = layers.Masking()(np.ones((1, 3, 2)))
        layers.LSTM(2)(masked, initial_state=[np.zeros((1, 2)), np.zeros((1, 2))])

    def test_inside(self):
        layers.Bidirectional(layers.SimpleRNN(2))(np.ones((1, 3, 2), "float32"))

    def test_adapted(self):
        layer = layers.Normalization()
        layer.adapt(np.array([[1.0], [3.0]]))
        layer(np.ones((1, 1)))
        lookup = layers.StringLookup()
        lookup.adapt(np.array(["a", "b", "b"]))
        lookup(tf.constant(["b"]))

    def test_mine(self):
        Mine()(np.ones((1, 2)))

    def test_functions(self):
        ops.clip(np.ones((2,), "float32"), 0.0, x_max=2)
        ops.concatenate([np.ones((1,)), np.zeros((1,))], axis=0)
        ops.add([1.0, 2.0], 1.0)
        activations.gelu(ops.ones((2,)))

    def test_left_out(self):
        layers.Lambda(lambda x: x)(np.ones((1,)))
        layers.Dense(1, activation=lambda x: x)(np.ones((1, 1)))
        ops.add(tf.sparse.from_dense([[1.0]]), 1.0)

    def test_same_functions(self):
        assert activations.get("relu") is activations.relu is keras.activations.relu
        assert activations.serialize(activations.relu) == "relu"

    @skip_if_backend("tensorflow", "it is")
    def test_skipped(self):
        raise AssertionError

    def test_grain(self):
        grain.MapDataset.source([1])

    def test_of_own_configuration(self):
        assert keras.config.backend() == "tensorflow" and keras.config.floatx() == "float32"
"""


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[UnitReport, list[Captured]]]:
    """File → its report and records, of a checkout whose user has a keras.json that says otherwise."""
    root = tmp_path_factory.mktemp("checkout")
    home = tmp_path_factory.mktemp("home")
    (home / "keras.json").write_text('{"backend": "jax", "floatx": "float16"}')
    files = {
        "layers/layer.py": "",
        "version.py": '__version__ = "9.9.9"\n',
        "layers/small_test.py": SUITE,
        "layers/missing_test.py": "import not_installed_at_all\n",
    }
    for name, text in files.items():
        path = root / "keras" / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KERAS_HOME", str(home))
        patch.delenv("KERAS_BACKEND", raising=False)
        target = suites.recognise(str(root))
        assert (target.name, target.version) == ("keras", "9.9.9")
        return {Path(x.file).name: (x, list(x.records())) for x in suite_reports.reports(target, workers=1)}


@pytest.fixture(scope="module")
def found(reports: dict[str, tuple[UnitReport, list[Captured]]]) -> dict[str, list[Captured]]:
    """Test → its records."""
    seen: dict[str, list[Captured]] = {}
    for record in reports["small_test.py"][1]:
        seen.setdefault(record.provenance.test.partition("::")[2], []).append(record)
    return seen


def one(found: dict[str, list[Captured]], test: str, operator: str) -> Captured:
    (record,) = [x for x in found[test] if x.program.operator == operator]
    return record


def test_outcomes_are_those_of_the_suite(reports):
    report, _ = reports["small_test.py"]
    assert (report.status, report.failed, report.tests) == ("done", 0, 14)
    missing, _ = reports["missing_test.py"]
    assert missing.status == "failed-import" and "not_installed_at_all" in missing.reason


def test_a_symbolic_call_gives_way_to_the_same_on_real_tensors(found):
    dense = one(found, "test_eager_and_symbolic", "keras.layers.Dense").program
    assert dense.params["units"] == 3 and dense.params["activation"] == "relu" and "name" not in dense.params
    assert dense.params["dtype"] == "float32" and "symbolic" not in dense.context
    (operand,) = dense.inputs
    assert operand.name == "inputs" and isinstance(operand.value, Tensor)
    assert operand.value.dtype == "float32" and operand.value.shape == (2, 4)  # float64 is only numpy's default


def test_a_symbolic_call_gets_sizes_and_values_in_range(found):
    embedding = one(found, "test_symbolic_alone", "keras.layers.Embedding").program
    assert embedding.context["symbolic"] == ["inputs"]
    value = embedding.inputs[0].value
    assert value.dtype == "int32" and all(size > 1 for size in value.shape)
    assert set(value.array().ravel().tolist()) <= {0, 1, 2} and len(set(value.array().ravel().tolist())) > 1


def test_several_inputs_keep_their_container(found):
    add = one(found, "test_merging", "keras.layers.Add").program
    assert [x.name for x in add.inputs] == ["inputs.0", "inputs.1"]
    assert add.params["call.inputs"] == [Named("keras.input", "inputs.0"), Named("keras.input", "inputs.1")]
    assert add.context["call"] == {"args": ["call.inputs"], "kwargs": []}


def test_training_masks_and_states(found):
    assert one(found, "test_training", "keras.layers.Dropout").program.context["training"] is True
    lstm = one(found, "test_masks", "keras.layers.LSTM").program
    assert [x.name for x in lstm.inputs] == ["sequences", "initial_state.0", "initial_state.1", "mask"]
    assert lstm.inputs[-1].value.dtype == "bool" and lstm.context["call"]["kwargs"][-1] == "mask"
    assert lstm.context["training"] is False


def test_layers_inside_layers_are_marked(found):
    by_layer = Counter(
        (x.program.operator.rpartition(".")[2], x.program.context.get("inside")) for x in found["test_inside"]
    )
    assert by_layer["Bidirectional", None] == 1
    assert by_layer["SimpleRNN", "keras.layers.Bidirectional"] >= 1


def test_adapted_state_becomes_constructor_arguments(found):
    normalization = one(found, "test_adapted", "keras.layers.Normalization").program
    assert normalization.params["mean"] == [2.0] and normalization.params["variance"] == [1.0]
    assert normalization.context["state"] == ["mean", "variance"]
    lookup = one(found, "test_adapted", "keras.layers.StringLookup").program
    assert [str(x) for x in lookup.params["vocabulary"]] == ["b", "a"]
    assert lookup.inputs[0].value.dtype == "string"


def test_functions_are_seen_where_a_test_calls_them(found):
    clip = one(found, "test_functions", "keras.ops.clip").program
    assert clip.params == {"x_min": 0.0, "x_max": 2}
    assert clip.context["call"] == {"args": ["x", "x_min"], "kwargs": ["x_max"]}
    assert [x.name for x in one(found, "test_functions", "keras.ops.concatenate").program.inputs] == ["xs.0", "xs.1"]
    added = one(found, "test_functions", "keras.ops.add").program
    assert [x.name for x in added.inputs] == ["x1", "x2"]  # no tensor at all: what Keras makes tensors of
    assert {x.program.operator for x in found["test_functions"]} == {
        "keras.ops.clip", "keras.ops.concatenate", "keras.ops.add", "keras.activations.gelu",
    }  # fmt: skip


def test_what_cannot_be_said_is_counted(reports, found):
    left_out = reports["small_test.py"][0].left_out
    assert left_out["layer class defined by a test"] == 1
    assert left_out["sparse or ragged tensor"] == 1
    custom = "layer that cannot be serialised: custom object in the configuration"
    assert left_out.get(custom) == 1, left_out
    assert left_out["layer class without a public name"] == 1  # Lambda holds code
    assert not [name for name in left_out if name.startswith("capture failed")]
    assert {x.program.operator for x in found["test_mine"]} == {"keras.layers.Dense"}
