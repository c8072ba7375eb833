"""Keras's exporter to ONNX, by way of tf2onnx."""

import onnx


class DeclaredOtherwise(TypeError):
    """The file declares another dtype than the model has: whatever is fed, one of both is wrong."""


def export(model, path, signature):
    model.export(path, format="onnx", verbose=False, input_signature=[signature])
    check_declared(path, signature)
    return path


def check_declared(path, signature):
    held = {x.name: x.type.tensor_type.elem_type for x in onnx.load(path).graph.input}
    for given in signature:
        declared = onnx.TensorProto.DataType.Name(held.get(given.name, 0)).lower()
        declared = {"float": "float32", "double": "float64", "undefined": given.dtype.name}.get(declared, declared)
        if declared != given.dtype.name:
            raise DeclaredOtherwise(f"the file declares {declared} for an input of {given.dtype.name}")
