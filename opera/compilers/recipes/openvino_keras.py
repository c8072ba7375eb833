"""OpenVINO's importer of TensorFlow's graphs, given Keras models and what they export."""

import os

import openvino

os.environ["CI"] = "true"  # keeps conversion from reporting to OpenVINO's makers, by processes that it forks


class DeclaredOtherwise(TypeError):
    """The loaded model declares another dtype than the model has: whatever is fed, one of both is wrong."""


def load_saved(path):
    return openvino.convert_model(path)


def load_live(model, outputs):
    """Convert the model itself; outputs are named by its tensors, and by nothing where there is one alone."""
    converted = openvino.convert_model(model)
    for name, tensor in zip(outputs, model.outputs, strict=True):
        for port in converted.outputs:
            if tensor.name in port.get_names():
                port.get_tensor().add_names({name})
    check_complex(model, converted)
    return converted


def check_complex(model, converted):
    """OpenVINO has no complex type: what it takes is real then, and of complex numbers only with an axis for both parts."""
    ports = {name: port for port in converted.inputs for name in port.get_names()}
    for given in model.inputs:
        port = ports.get(given.name)
        if (
            "complex" in given.dtype
            and port is not None
            and port.partial_shape == openvino.PartialShape(list(given.shape))
        ):
            kind = port.element_type.get_type_name()
            raise DeclaredOtherwise(f"the loaded model declares {kind} for an input of {given.dtype} of the same shape")
