"""Operators of Keras found, their arguments by name, and the call."""

from __future__ import annotations

import numpy as np
import pytest
from keras_instance import instance

pytest.importorskip("keras")
pytest.importorskip("tensorflow")

from opera.errors import CorpusError
from opera.libraries.calls import Dead, Unusable
from opera.libraries.keras import calls
from opera.libraries.keras.backend import keras
from opera.programs.values import Named, RandomTensor, Tensor

X = np.array([[1.0, -2.0], [3.0, 5.0]], "float32")


def test_operators_are_found_by_tensorflows_and_keras_own_names() -> None:
    for title in ("keras.layers.MaxPooling2D", "tf.keras.layers.MaxPool2D"):
        assert calls.find(title) == "keras.layers.MaxPooling2D"
    assert calls.find("tf.keras.layers.maxpool2d", loosely=True) == "keras.layers.MaxPooling2D"
    assert calls.find("tf.keras.backend.abs", loosely=True) == "keras.ops.abs"
    assert calls.find("tf.keras.layers.experimental.preprocessing.Rescaling", loosely=True) == "keras.layers.Rescaling"


@pytest.mark.parametrize(
    ("title", "why"),
    [
        ("tf.abs", "TensorFlow's own"),
        ("tf.keras.layers.CuDNNLSTM", "no longer"),
        ("keras.layers", "no longer"),
        ("keras.layers.Lambda", "no operator"),
    ],
)
@pytest.mark.parametrize("loosely", [False, True])
def test_what_is_no_operator_is_not_found(title: str, why: str, loosely: bool) -> None:
    with pytest.raises(Dead, match=why):
        calls.find(title, loosely=loosely)


def test_values_are_live() -> None:
    assert calls.decode(Named("dtype", "float16")) == "float16"
    made = calls.decode((Tensor.of(X), [Named("slice", "0:1:")], {"a": 1}))
    assert keras.ops.is_tensor(made[0]) and made[1:] == ([slice(0, 1, None)], {"a": 1})
    text = calls.decode(Tensor.of(np.array(["a", "b"], dtype=object)))
    assert keras.backend.standardize_dtype(text.dtype) == "string"
    with pytest.raises(CorpusError):
        calls.decode(Named("os", "system"))
    with pytest.raises(CorpusError):
        calls.decode({"class_name": "Popen", "config": {}, "module": "subprocess"})


def test_an_instance_can_be_called_again() -> None:
    seen = instance("keras.ops.subtract", {}, x1=X, x2=X[:, ::-1].copy())
    given = calls.arguments(seen)
    found = calls.call(seen.operator, given, ("x1", "x2"), dict)
    np.testing.assert_array_equal(found, X - X[:, ::-1])


def test_layers_are_made_and_called_in_their_mode() -> None:
    given = {"rate": 0.5, "call.inputs": keras.ops.convert_to_tensor(X), "training": False}
    made = calls.call("keras.layers.Dropout", given, (), lambda layer, own: layer(**own))
    np.testing.assert_array_equal(made, X)
    made = calls.call("keras.layers.Dropout", given | {"training": True}, (), lambda layer, own: layer(**own))
    assert not np.array_equal(made, X)


def test_values_are_bound_to_parameters() -> None:
    found = calls.bind("keras.layers.Dense", [3], {"name": "mine", "activation": "relu"}, [Tensor.of(X)])
    np.testing.assert_array_equal(found.pop("call.inputs"), X)
    assert found == {"units": 3, "activation": "relu"}
    with pytest.raises(Unusable, match="class"):
        calls.bind("keras.layers.Dense", [3], {}, None)
    with pytest.raises(Unusable, match="more positional"):
        calls.bind("keras.ops.absolute", [Tensor.of(X), 1], {}, None)
    large = RandomTensor("float32", (calls.LARGE + 1,), 1, 0.0, 1.0).tensor()
    with pytest.raises(Unusable, match="large"):
        calls.bind("keras.ops.concatenate", [[large]], {}, None)
