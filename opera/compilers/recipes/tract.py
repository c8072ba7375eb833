"""tract on the CPU."""

import os

import numpy as np
import tract

os.environ["RUST_BACKTRACE"] = "0"  # else errors hold addresses


def load(path):
    """Parse the file, infer its types and shapes, and convert it to tract's own operators."""
    return tract.onnx().load(path).into_model()


def compile(model):
    """Optimise and plan; inputs have names until then."""
    names = [model.input_name(place) for place in range(model.input_count())]
    return model.into_runnable(), names


def run(compiled, feeds):
    runnable, names = compiled
    return [value.to_numpy() for value in runnable.run([np.array(feeds[name], order="C") for name in names])]
