"""OpenVINO's importer of TensorFlow's graphs, given Keras models and what they export."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opera.compilers import Case
from opera.compilers.shared import keras_live
from opera.compilers.shared.messages import Rule

PRELOAD = (keras_live.BACKEND, "openvino.frontend.tensorflow.utils", "openvino.tools.ovc.convert_impl")


UNSUPPORTED = (
    Rule(r"TensorFlow Frontend (does not support [^\n.]{1,100})", r"\1", "load"),
    Rule(r"([^\n:]{1,60} (?:supports? only|(?:is|are) supported only) [^\n.]{1,60})", r"\1", "load"),
)
"""The words of its translators, beside those of openvino.py."""


def load_saved(case: Case) -> Any:
    """Convert a SavedModel, whose signature names inputs and outputs."""
    import openvino

    return openvino.convert_model(str(case.model))


def load_live(case: Case) -> Any:
    """Convert the model itself; outputs are named by its tensors, and by nothing where there is one alone."""
    import openvino

    live = keras_live.rebuilt(case)
    with keras_live.graph_of(live):
        model = openvino.convert_model(live.model)
    for name, tensor in zip(case.outputs, live.model.outputs, strict=True):
        for port in model.outputs:
            if tensor.name in port.get_names():
                port.get_tensor().add_names({name})
    return model


LOADERS: dict[str, Callable[[Case], Any]] = {"saved_model": load_saved, "live": load_live}
"""Artefact → what converts it."""
