"""TorchInductor: what torch.compile does in one call, step by step."""

import torch
from torch._inductor.compile_fx import compile_fx


def load(model, args):
    """Let Dynamo capture the model as one graph of static shapes."""
    graphs = []  # a captured graph, later what Inductor made of it, and its inputs

    def backend(graph, inputs):
        graphs.append([graph, inputs])
        return lambda *args: graphs[-1][0](*args)

    captured = torch.compile(model, backend=backend, fullgraph=True, dynamic=False)
    captured(*args)
    return captured, graphs


def compile_graphs(loaded):
    captured, graphs = loaded
    for entry in graphs:
        entry[0] = compile_fx(*entry)
    return captured
