"""Keras's exporter to ONNX, by way of tf2onnx."""


def export(model, path, signature):
    model.export(path, format="onnx", verbose=False, input_signature=[signature])
    return path
