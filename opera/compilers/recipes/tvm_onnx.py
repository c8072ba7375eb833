"""TVM's importer of ONNX models."""

import onnx
import tvm
from tvm.relax.frontend import detach_params
from tvm.relax.frontend.onnx import from_onnx

from opera.compilers.recipes.tvm import read, run


def load(path):
    """Return the module, the names of its inputs, constants that it takes after them, and how many outputs it has."""
    model = onnx.load(path)
    module, params = detach_params(from_onnx(model, keep_params_in_input=True))
    return module, [item.name for item in model.graph.input], params.get("main", ()), len(model.graph.output)


def infer(compiled, feeds, feed=tvm.runtime.tensor, read=read):
    machine, inputs, params, outputs = compiled
    result = run(machine, [*(feed(feeds[name]) for name in inputs if name in feeds), *params])
    return [read(result)] if outputs == 1 else [read(item) for item in result]
