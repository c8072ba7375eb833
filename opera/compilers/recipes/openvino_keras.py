"""OpenVINO's importer of TensorFlow's graphs, given Keras models and what they export."""

import os

import openvino

os.environ["CI"] = "true"  # keeps conversion from reporting to OpenVINO's makers, by processes that it forks


def load_saved(path):
    return openvino.convert_model(path)


def load_live(model, outputs):
    """Convert the model itself; outputs are named by its tensors, and by nothing where there is one alone."""
    converted = openvino.convert_model(model)
    for name, tensor in zip(outputs, model.outputs, strict=True):
        for port in converted.outputs:
            if tensor.name in port.get_names():
                port.get_tensor().add_names({name})
    return converted
