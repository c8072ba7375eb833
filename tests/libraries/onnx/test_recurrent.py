"""RNN, GRU and LSTM are what ONNX Runtime computes, and what the documentation's equations say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper
from onnx.reference import ReferenceEvaluator

from opera.libraries.onnx import mended
from opera.libraries.onnx.recurrent import DEFAULTS, GATES, OF_TWO, SCALED, recurrent

NAMES = ("Tanh", "Sigmoid", "Relu", "LeakyRelu", "HardSigmoid", "Softsign", "Elu", "Affine", "ScaledTanh")


def model(kind: str, feeds: dict[str, Any], attributes: dict[str, Any]) -> Any:
    every = ("X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P")
    names = [x if x in feeds else "" for x in every]
    while not names[-1]:
        names.pop()
    outputs = ["Y", "Y_h", "Y_c"][: 3 if kind == "LSTM" else 2]
    node = helper.make_node(kind, names, outputs, hidden_size=feeds["R"].shape[2], **attributes)
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for name, x in feeds.items()
    ]
    graph = helper.make_graph([node], "g", inputs, [helper.make_tensor_value_info(x, 1, None) for x in outputs])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, dict[str, Any], dict[str, Any]]:
    kind, way = draw(st.sampled_from(list(GATES))), draw(st.sampled_from(["forward", "reverse", "bidirectional"]))
    d, (s, n, i, h) = 1 + (way == "bidirectional"), (draw(st.integers(1, 4)) for _ in range(4))
    drawn = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sizes: dict[str, tuple[int, ...]] = {"X": (s, n, i), "W": (d, GATES[kind] * h, i), "R": (d, GATES[kind] * h, h)}
    sizes |= {"B": (d, 2 * GATES[kind] * h), "initial_h": (d, n, h)} if draw(st.booleans()) else {}
    sizes |= {"initial_c": (d, n, h), "P": (d, 3 * h)} if kind == "LSTM" and draw(st.booleans()) else {}
    feeds = {name: drawn.uniform(-1, 1, size).astype("float32") for name, size in sizes.items()}
    if draw(st.booleans()):
        feeds["sequence_lens"] = drawn.integers(1, s + 1, n).astype("int32")
    how: dict[str, Any] = {"direction": way}
    if draw(st.booleans()):
        count = len(DEFAULTS[kind]) * d
        how["activations"] = draw(st.lists(st.sampled_from(NAMES), min_size=count, max_size=count))
        names = [x.lower() for x in how["activations"]]
        for key, takes in (("activation_alpha", SCALED), ("activation_beta", OF_TWO)):
            how[key] = [float(drawn.uniform(0.1, 1)) for x in names if x in takes]
    if draw(st.booleans()):
        how["clip"] = draw(st.sampled_from([0.25, 0.5, 2.0]))
    if kind != "RNN":
        how["input_forget" if kind == "LSTM" else "linear_before_reset"] = draw(st.integers(0, 1))
    return kind, feeds, {key: x for key, x in how.items() if x != []}


@given(calls())
@settings(max_examples=60, deadline=None)
def test_all_that_the_schema_has_is_computed_as_onnx_runtime_does(
    call: tuple[str, dict[str, Any], dict[str, Any]],
) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    kind, feeds, how = call
    made = model(kind, feeds, how)
    try:
        found = ReferenceEvaluator(made, new_ops=mended.operators()).run(None, feeds)
    except ValueError as error:
        assert "clip" in str(error) and kind == "LSTM" and "clip" in how
        return
    wanted = onnxruntime.InferenceSession(made.SerializeToString()).run(None, feeds)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def ones(kind: str, steps: int = 3) -> dict[str, Any]:
    return {"X": np.ones((steps, 1, 1)), "W": np.ones((1, GATES[kind], 1)), "R": np.ones((1, GATES[kind], 1))}


def test_input_and_forget_gate_are_coupled_and_what_ended_stays() -> None:
    y, h, c = recurrent("LSTM", {**ones("LSTM", 1), "input_forget": 1, "initial_c": np.full((1, 1, 1), 4.0)})
    i = 1 / (1 + np.exp(-1.0))
    assert c.item() == pytest.approx((1 - i) * 4 + i * np.tanh(1)) and h.item() == y.item() == pytest.approx(
        i * np.tanh(c.item())
    )
    y, h = recurrent("RNN", {**ones("RNN"), "sequence_lens": [2], "activations": ["Relu"]})
    assert (y.ravel().tolist(), h.item()) == ([1, 2, 0], 2)
    y, h = recurrent("RNN", {**ones("RNN"), "sequence_lens": [2], "activations": ["Relu"], "direction": "reverse"})
    assert (y.ravel().tolist(), h.item()) == ([2, 1, 0], 2), "the sequence is reversed, and not what it is padded with"


def test_what_stands_behind_a_sequence_is_beyond_no_bound() -> None:
    given = {**ones("LSTM", 2), "X": np.float64([0, 9]).reshape(2, 1, 1), "R": np.zeros((1, 4, 1)), "clip": 0.4}
    given["initial_c"] = np.full((1, 1, 1), 0.7)
    _, _, c = recurrent("LSTM", {**given, "sequence_lens": [1]})
    assert c.item() == pytest.approx(0.35)
    with pytest.raises(ValueError, match="leaves open"):
        recurrent("LSTM", {**given, "initial_c": np.full((1, 1, 1), 0.9)})


def test_the_batch_comes_first_in_the_other_layout() -> None:
    given = {
        "X": np.arange(6.0).reshape(2, 3, 1),
        "W": np.ones((1, 1, 1)),
        "R": np.zeros((1, 1, 1)),
        "activations": ["Relu"],
    }
    y, h = recurrent("RNN", {**given, "layout": 1})
    assert y.shape == (2, 3, 1, 1) and h.shape == (2, 1, 1) and y.ravel().tolist() == list(range(6))
    assert [x.shape for x in recurrent("RNN", given, reads=1)] == [(2, 1, 3, 1)]


def test_defaults_of_activations_are_those_of_the_operators_of_their_names() -> None:
    """ONNX Runtime's ThresholdedRelu has an alpha of 0 here."""
    given = {**ones("RNN", 1), "activations": ["ThresholdedRelu"]}
    assert (
        recurrent("RNN", given)[0].item() == 1 and recurrent("RNN", {**given, "activation_alpha": [1.5]})[0].item() == 0
    )


@pytest.mark.parametrize(
    ("kind", "more", "says"),
    [
        ("RNN", {"activations": ["Relu", "Relu"]}, "2 activations"),
        ("RNN", {"activations": ["Gelu"]}, "no activation 'gelu'"),
        ("RNN", {"activations": ["Affine"]}, "no alpha"),
        ("RNN", {"activations": ["Elu"], "activation_alpha": [1, 2]}, "2 of activation_alpha"),
        ("RNN", {"direction": "bidirectional"}, "no weights"),
        ("RNN", {"direction": "sideways"}, "no weights"),
        ("RNN", {"hidden_size": 5}, "no weights"),
        ("RNN", {"W": np.ones((2, 1, 1))}, "no weights"),
        ("RNN", {"W": np.ones((1, 3, 1)), "R": np.ones((1, 1, 3))}, "no weights"),
        ("RNN", {"R": np.ones((1, 1))}, "no weights"),
        ("RNN", {"B": np.ones((1, 3))}, "is wanted"),
        ("RNN", {"sequence_lens": [4]}, "no lengths"),
        ("RNN", {"layout": 2}, "neither 0 nor 1"),
        ("LSTM", {"clip": 0.5}, "leaves open"),
    ],
)
def test_what_the_documentation_does_not_settle_is_refused(kind: str, more: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        recurrent(kind, {**ones(kind), **more})
