"""TVM's importer of PyTorch's exported programs."""

import torch
import tvm
from tvm.relax.frontend.torch import from_exported_program

from opera.compilers.recipes.tvm import read, run


def load(path):
    return (from_exported_program(torch.export.load(path)),)


def infer(compiled, feeds, feed=tvm.runtime.tensor, read=read):
    """Run it: it returns a tuple even of one output, and None for what the program changed in place."""
    (machine,) = compiled
    return [read(item) for item in run(machine, [feed(value) for value in feeds.values()]) if item is not None]
