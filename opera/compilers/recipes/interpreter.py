"""LiteRT's interpreter, which runs TensorFlow Lite models."""

from pathlib import Path

from ai_edge_litert.interpreter import Interpreter


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
