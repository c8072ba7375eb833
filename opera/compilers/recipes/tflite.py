"""TensorFlow Lite: the TFLiteConverter with its default options, and LiteRT's interpreter, which runs what it writes."""

from pathlib import Path

import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter


def export(model, path, signature):
    """Convert as from_keras_model does, without the SavedModel on disk."""

    def serve(*inputs):
        return model(list(inputs))

    function = tf.function(serve, input_signature=signature, autograph=False)
    held = tf.Module()  # what the converter finds variables by
    held.variables_ = [variable.value for variable in model.variables]
    held.tables = [layer.lookup_table for layer in model.layers if hasattr(layer, "lookup_table")]
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function.get_concrete_function()], held)
    Path(path).write_bytes(converter.convert())
    return path


def allocate(path):
    """Have the interpreter read the model, choose kernels and allocate tensors."""
    interpreter = Interpreter(model_content=Path(path).read_bytes(), num_threads=1)
    interpreter.allocate_tensors()
    return interpreter


def infer(interpreter, feeds, outputs):
    run = interpreter.get_signature_runner("serving_default")
    known = run.get_input_details()
    result = run(**{name: value for name, value in feeds.items() if name in known})
    return [result[name] for name in outputs if name in result]
