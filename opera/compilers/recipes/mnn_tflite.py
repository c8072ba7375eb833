"""MNN's importer of TensorFlow Lite models."""

import json
from pathlib import Path

import MNN.expr as F
import MNN.nn
import tflite

from opera.compilers.recipes.mnn import HELD, converted, placed, precise, read
from opera.compilers.recipes.mnn_told import fail, told

# This importer holds other types in float32 than that of ONNX; what comparisons return is int32 all the same.
HELD_OF_TFLITE = HELD | dict.fromkeys(["bool", "uint16", "uint32"], "float32 int32")


def convert_tflite(model, path, level="1"):
    """Convert it; beside it lies what its signature calls tensors, for MNN has only the names of the tensors."""
    Path(path).with_suffix(".json").write_text(json.dumps(signature_of(model)))
    return converted("TFLITE", model, path, level)


def signature_of(path):
    """Return what the signature calls inputs, and outputs, each with the name of its tensor; without one, their own names."""
    model = tflite.Model.GetRootAsModel(Path(path).read_bytes(), 0)
    graph = model.Subgraphs(0)
    if not model.SignatureDefsLength():
        inputs = [graph.Tensors(place).Name().decode() for place in graph.InputsAsNumpy()]
        outputs = [graph.Tensors(place).Name().decode() for place in graph.OutputsAsNumpy()]
        return [{name: name for name in inputs}, {f"output_{place}": name for place, name in enumerate(outputs)}]
    signature = model.SignatureDefs(0)
    inputs = [signature.Inputs(place) for place in range(signature.InputsLength())]
    outputs = [signature.Outputs(place) for place in range(signature.OutputsLength())]
    return [
        {item.Name().decode(): graph.Tensors(item.TensorIndex()).Name().decode() for item in items}
        for items in (inputs, outputs)
    ]


def load_tflite(path):
    inputs, outputs = json.loads(Path(path).with_suffix(".json").read_text())
    names = list(dict.fromkeys(outputs.values()))  # a tensor may be several outputs
    module, said = told(MNN.nn.load_module_from_file, path, list(inputs.values()), names, **precise())
    return (module, inputs, outputs) if module is not None else fail(said)


def infer_tflite(loaded, feeds, outputs, dtypes):
    module, inputs, named = loaded
    by_tensor = {tensor: feeds[name] for name, tensor in inputs.items()}
    info, names = module.get_info(), list(dict.fromkeys(named.values()))
    given = [
        placed(by_tensor[name], stated.dtype, F.NHWC)
        for name, stated in zip(info["inputNames"], info["inputs"], strict=True)
    ]
    found, said = told(module.forward, given)
    if not found or len(found) != len(names):
        fail(said)
    returned = dict(zip(names, found, strict=True))
    return [
        read(returned[named[name]], dtype, F.NHWC, HELD_OF_TFLITE)
        for name, dtype in zip(outputs, dtypes, strict=True)
        if name in named
    ]
