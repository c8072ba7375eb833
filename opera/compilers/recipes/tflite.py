"""TensorFlow Lite: the TFLiteConverter with its default options."""

from pathlib import Path

import tensorflow as tf


def export(model, path, signature):
    """Convert as from_keras_model does, without the SavedModel on disk."""

    def serve(*inputs):
        return model(list(inputs))

    function = tf.function(serve, input_signature=signature, autograph=False)
    concrete = function.get_concrete_function()
    held = tf.Module()  # what the converter finds variables by, that of the seed of all, which no layer has, as well
    held.variables_ = list(concrete.variables)
    held.tables = [layer.lookup_table for layer in model.layers if hasattr(layer, "lookup_table")]
    converter = tf.lite.TFLiteConverter.from_concrete_functions([concrete], held)
    Path(path).write_bytes(converter.convert())
    return path
