"""TVM's importer of TensorFlow Lite models."""

from pathlib import Path

import tflite
import tvm
from tvm.relax.frontend.tflite import from_tflite

from opera.compilers.recipes.tvm import read, run


def load(path):
    model, inputs, outputs = read_model(path)
    return from_tflite(model), inputs, outputs


def read_model(path):
    """Return a model, and names of its inputs and outputs in its own order: its signature has them, if it has one."""
    model = tflite.Model.GetRootAsModel(Path(path).read_bytes(), 0)
    graph = model.Subgraphs(0)
    if not model.SignatureDefsLength():
        inputs = [graph.Tensors(place).Name().decode() for place in graph.InputsAsNumpy()]
        return model, inputs, [f"output_{place}" for place in range(graph.OutputsLength())]
    signature = model.SignatureDefs(0)
    inputs = [signature.Inputs(place) for place in range(signature.InputsLength())]
    outputs = [signature.Outputs(place) for place in range(signature.OutputsLength())]
    return model, names_of(graph.InputsAsNumpy(), inputs), names_of(graph.OutputsAsNumpy(), outputs)


def names_of(order, signature):
    """Return what the signature calls tensors; one that is several outputs has several names."""
    left, found = [(item.TensorIndex(), item.Name().decode()) for item in signature], []
    for place in order:
        entry = next(item for item in left if item[0] == place)
        left.remove(entry)
        found.append(entry[1])
    return found


def infer(compiled, feeds, feed=tvm.runtime.tensor, read=read):
    machine, inputs, outputs = compiled
    result = run(machine, [feed(feeds[name]) for name in inputs if name in feeds])
    found = dict(zip(outputs, [result] if len(outputs) == 1 else result, strict=True))
    return [read(found[name]) for name in sorted(found, key=lambda name: int(name.rpartition("_")[2]))]
